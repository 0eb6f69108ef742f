// An event of a file, looked through for the kinds of its values and the numbers of its scalars. All other contents are
// read when a page asks for them.
#pragma once

#include <array>
#include <functional>
#include <string_view>

#include "core/base/error.h"

namespace lunaria::insight {

enum class Kind { scalar, image, histogram, tensor, audio, text, pr_curve, landscape, hparams, other };
inline constexpr size_t kKinds = static_cast<size_t>(Kind::other) + 1;
// The names that answers use: "scalars", "images" and so on.
inline constexpr std::array<std::string_view, kKinds> kKindNames = {
    "scalars", "images", "histograms", "tensors", "audio", "texts", "pr_curves", "landscapes", "hparams", "others"};

struct ScannedEvent {
    double wall = 0;  // seconds since 1970
    int64_t step = 0;
    bool has_graph = false;
    std::string_view summary;  // the message with the values
};

struct ScannedValue {
    std::string_view tag;
    Kind kind = Kind::other;
    bool has_kind = false;  // whether the value tells its kind; later values of a tag may leave that to the first
    double number = 0;      // of a scalar
    uint32_t width = 0, height = 0;  // of a picture
};

// Throws a file_error that begins with `place` and has the record's offset where the bytes are no event.
ScannedEvent scan_event(std::string_view bytes, const std::string& place, uint64_t offset);

// Calls f(const ScannedValue&, std::string_view bytes of the value) for every value.
template <class F>
void scan_values(const ScannedEvent& event, const std::string& place, F f);

ScannedValue scan_value(std::string_view bytes, const std::string& place);

}  // namespace lunaria::insight

#include "core/insight/store/wire.h"

namespace lunaria::insight {

template <class F>
void scan_values(const ScannedEvent& event, const std::string& place, F f) {
    Wire summary(event.summary);
    while (summary.next())
        if (summary.field == 1 && summary.type == 2) f(scan_value(summary.bytes, place), summary.bytes);
    if (summary.broken()) throw file_error(place, "corrupt: a summary is no message");
}

}  // namespace lunaria::insight
