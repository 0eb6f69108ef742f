#include "core/insight/store/contents.h"

#include <algorithm>

namespace lunaria::insight {

namespace {

std::string_view plugin_of(Kind kind) {
    switch (kind) {
        case Kind::scalar:
            return "scalars";
        case Kind::image:
            return "images";
        case Kind::histogram:
            return "histograms";
        case Kind::audio:
            return "audio";
        case Kind::text:
            return "text";
        default:
            return {};
    }
}

std::string_view found(const std::optional<std::string_view>& content, const Record& record) {
    if (!content)
        throw file_error(record.file->path(), str("the record at ", record.item.offset, " is no longer there"));
    return *content;
}

}  // namespace

std::vector<Record> records_of(const Run& run, Kind kind, std::string_view tag) {
    std::vector<Record> records;
    for (const auto& [file, items] : run.items(kind, tag))
        for (const Item& item : *items) records.push_back({file, item});
    std::ranges::stable_sort(records, {}, [](const Record& r) { return r.item.step; });
    return records;
}

std::vector<size_t> spread(size_t count, size_t most) {
    std::vector<size_t> places;
    const size_t taken = std::min(count, most);
    for (size_t i = 0; i < taken; ++i) places.push_back(taken == 1 ? count - 1 : i * (count - 1) / (taken - 1));
    return places;
}

std::string_view RecordReader::bytes(const Record& record) {
    if (record.file != file_) {
        source_.emplace(record.file->place());
        file_ = record.file;
    }
    const ScannedEvent event =
        scan_event(found(source_->record(record.item.offset), record), file_->path(), record.item.offset);
    std::string_view bytes;
    scan_values(event, file_->path(), [&](const ScannedValue& value, std::string_view content) {
        if (value.tag == tag_ && (value.kind == kind_ || !value.has_kind)) bytes = content;
    });
    if (bytes.empty()) throw file_error(file_->path(), str("the record at ", record.item.offset, " is another now"));
    return bytes;
}

Shown RecordReader::read(const Record& record) {
    const std::string_view content = bytes(record);
    return read_shown(content, str(file_->path(), " (offset ", record.item.offset, ")"), plugin_of(kind_));
}

}  // namespace lunaria::insight
