// A run: a folder with files of events, lineage or graphs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/insight/store/event_file.h"
#include "core/insight/store/lineage.h"

namespace lunaria::insight {

// What people write about a run.
struct Annotation {
    std::string notes;
    std::vector<std::string> labels;
};

struct Run {
    std::string id;     // in addresses: a hash of the name, the same whenever the server runs
    std::string name;   // the folder's path below the base folder; "." for that itself
    std::string place;  // the folder
    std::vector<std::unique_ptr<EventFile>> events;  // in the order of their names
    std::vector<std::string> lineage_files;          // names
    std::vector<std::string> graph_files;            // names: MindIR, ONNX and MindSpore's .pb
    Lineage lineage;
    double lineage_stamp = 0;  // another one means that a lineage file was written
    Annotation annotation;
    uint64_t version = 0;  // of the store when something in the run changed last
    double changed = 0;    // when a file was written last, in seconds since 1970

    // The files that have a tag, with what they have under it.
    std::vector<std::pair<const EventFile*, const Series*>> scalars(std::string_view tag) const;
    std::vector<std::pair<const EventFile*, const std::vector<Item>*>> items(Kind kind, std::string_view tag) const;
    // Names of tags, sorted.
    std::vector<std::string> tags(Kind kind) const;
    double first_wall() const;
    double last_wall() const;
    int64_t last_step() const;
};

// An id that stands for a text in addresses: no address holds a path.
std::string id_of(std::string_view text);

}  // namespace lunaria::insight
