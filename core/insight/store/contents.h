// Records of tags that are no scalars, read from the files when they are asked for.
#pragma once

#include "core/data/files/events.h"
#include "core/insight/store/run.h"

namespace lunaria::insight {

// A record of a tag, and where it lies.
struct Record {
    const EventFile* file;
    Item item;
};

// All records of a tag, by step.
std::vector<Record> records_of(const Run& run, Kind kind, std::string_view tag);
// At most `most` of a list, evenly spread, the first and the last among them.
std::vector<size_t> spread(size_t count, size_t most);

// Reads records; a file stays open while its records follow each other.
class RecordReader {
  public:
    RecordReader(Kind kind, std::string_view tag) : kind_(kind), tag_(tag) {}
    // The value's message, until the next call.
    std::string_view bytes(const Record& record);
    // The value of the record's tag.
    Shown read(const Record& record);

  private:
    Kind kind_;
    std::string tag_;
    const EventFile* file_ = nullptr;
    std::optional<RecordSource> source_;
};

}  // namespace lunaria::insight
