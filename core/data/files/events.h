// Files of events: records of a training, as TensorBoard, PyTorch and MindSpore write them. A reader of frames
// (core/data/files/frames.h) with an Event message in each.
#pragma once

#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "core/data/files/frames.h"
#include "core/tensor/tensor.h"

namespace lunaria {

// A value that was recorded under a tag at a step.
struct Shown {
    struct Histogram {
        double least = 0, most = 0, count = 0, sum = 0, squares = 0;
        double nan = 0, up = 0, down = 0;    // values outside of all bins
        std::vector<double> limits, counts;  // the upper end of each bin, and the count in it
    };
    // A picture or a sound, encoded.
    struct Encoded {
        std::string bytes, type;  // type: of a sound, such as audio/wav
        // height, width and channels of a picture; sample_rate, channels and frames of a sound
        std::map<std::string, double> about;
    };
    // The bytes that a plug-in of TensorBoard keeps for itself.
    struct Data {
        std::string bytes;
    };
    std::string tag, kind;  // "scalar", "histogram", "image", "audio", "text", "tensor", "landscape" (its
                            // message as Data), or the name of a plug-in
    std::variant<Data, double, std::string, Histogram, Encoded, Tensor> value;
};

struct Event {
    double wall_time = 0;  // seconds since 1970
    int64_t step = 0;
    std::string version;  // of the format; the first event states it
    bool has_graph = false;
    std::vector<Shown> values;
    // Fields from 6 on that are messages, by number, undecoded: explanations and, in a lineage file, the lineage.
    std::map<uint32_t, std::string> others;
};

// One event; `place` is how messages begin.
Event read_event(std::string_view bytes, const std::string& place);

// One value of an event. `plugin`: the plug-in of TensorBoard's that an earlier value of the tag named, for one that
// names none.
Shown read_shown(std::string_view bytes, const std::string& place, std::string_view plugin = {});

// The events of a file, front to back.
class EventReader {
  public:
    // `partial`: the end of the file may lack the end of a record, as it does while a training writes it.
    explicit EventReader(std::unique_ptr<Source> source, bool partial = false, uint64_t offset = 0, size_t record = 0)
        : source_(std::move(source)), partial_(partial), offset_(offset), record_(record) {}
    // Nothing at the end.
    std::optional<Event> next();
    // Where the next event begins, and its number.
    uint64_t offset() const { return offset_; }
    size_t record() const { return record_; }

  private:
    std::unique_ptr<Source> source_;
    bool partial_;
    uint64_t offset_;
    size_t record_;
};

}  // namespace lunaria
