#include "core/insight/store/event_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "core/data/files/frames.h"

namespace lunaria::insight {

namespace {

constexpr size_t kHead = 12;  // bytes before a content: its length, and the check sum of that
constexpr size_t kMostHparams = 100;

template <class T>
T number(std::string_view text, size_t at) {
    T value;
    std::memcpy(&value, text.data() + at, sizeof value);
    return value;
}

}  // namespace

RecordSource::RecordSource(const std::string& path, size_t block)
    : path_(path), block_(block), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat info;
    if (!file_ || fstat(file_.number(), &info) != 0) throw file_error(path, std::strerror(errno));
    if (!S_ISREG(info.st_mode)) throw file_error(path, "it is no regular file");
    size_ = static_cast<uint64_t>(info.st_size);
    inode_ = info.st_ino;
}

void RecordSource::fail(std::string_view what, uint64_t offset) const {
    throw file_error(path_, str("a record is corrupt: ", what, " (offset ", offset, ")"));
}

std::string_view RecordSource::bytes(uint64_t offset, size_t count) {
    if (offset >= kept_at_ && offset + count <= kept_at_ + kept_.size())
        return std::string_view(kept_).substr(static_cast<size_t>(offset - kept_at_), count);
    const uint64_t wanted = std::min<uint64_t>(std::max(count, block_), size_ - std::min(size_, offset));
    if (count > wanted) return {};
    kept_at_ = offset;
    kept_.resize(static_cast<size_t>(wanted));
    size_t there = 0;
    while (there < kept_.size()) {
        const ssize_t got =
            pread(file_.number(), kept_.data() + there, kept_.size() - there, static_cast<off_t>(offset + there));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        there += static_cast<size_t>(got);
    }
    kept_.resize(there);
    return there < count ? std::string_view() : std::string_view(kept_).substr(0, count);
}

std::optional<std::string_view> RecordSource::record(uint64_t offset) {
    const std::string_view head = bytes(offset, kHead);
    if (head.empty()) return std::nullopt;
    if (masked_crc32c(head.substr(0, 8)) != number<uint32_t>(head, 8)) fail("the crc of its length is wrong", offset);
    const auto length = number<uint64_t>(head, 0);
    if (length > size_ || offset + length + kAround > size_) return std::nullopt;
    if (length > kLargest) fail(str("its length, ", length, " bytes, is more than ", kLargest), offset);
    const std::string_view all = bytes(offset, static_cast<size_t>(length + kAround));
    if (all.empty()) return std::nullopt;
    const std::string_view content = all.substr(kHead, static_cast<size_t>(length));
    if (masked_crc32c(content) != number<uint32_t>(all, kHead + content.size()))
        fail("the crc of its data is wrong", offset);
    return content;
}

bool EventFile::refresh(uint64_t most) {
    more_ = false;
    struct stat info;
    if (stat(place_.c_str(), &info) != 0) return false;
    const bool replaced = inode_ != 0 && (info.st_ino != inode_ || static_cast<uint64_t>(info.st_size) < at_);
    if (replaced) *this = EventFile(path_, place_);
    changed_ = static_cast<double>(info.st_mtim.tv_sec) + 1e-9 * static_cast<double>(info.st_mtim.tv_nsec);
    if (!problem_.empty() || static_cast<uint64_t>(info.st_size) == at_) return replaced;
    const uint64_t before = at_;
    try {
        RecordSource source(place_, static_cast<size_t>(std::clamp<uint64_t>(info.st_size - at_, 4096, 1 << 20)));
        inode_ = source.inode();
        while (const auto content = source.record(at_)) {
            take_event(*content, at_);
            at_ = RecordSource::end_of(at_, *content);
            ++records_;
            if (at_ - before < most) continue;
            more_ = at_ < source.size();
            break;
        }
    } catch (const Error& e) {
        problem_ = str(path_, ": record ", records_, ": ", e.message());
    }
    return replaced || at_ != before || !problem_.empty();
}

// Values of a tag whose first one told its kind.
Kind EventFile::kind_of(const ScannedValue& value) const {
    if (value.has_kind || !(value.kind == Kind::tensor || value.kind == Kind::text)) return value.kind;
    if (scalars_.contains(value.tag)) return Kind::scalar;
    for (size_t k = 0; k < kKinds; ++k)
        if (items_[k].contains(value.tag)) return static_cast<Kind>(k);
    return value.kind;
}

void EventFile::take_event(std::string_view content, uint64_t offset) {
    const ScannedEvent event = scan_event(content, path_, offset);
    if (event.wall > 0 && (first_wall_ == 0 || event.wall < first_wall_)) first_wall_ = event.wall;
    last_wall_ = std::max(last_wall_, event.wall);
    has_graph_ |= event.has_graph;
    if (event.summary.empty()) return;
    last_step_ = std::max(last_step_, event.step);
    scan_values(event, path_, [&](const ScannedValue& value, std::string_view bytes) {
        const Kind kind = kind_of(value);
        const auto list_of = [&](auto& tags) -> auto& {
            const auto found = tags.find(value.tag);
            return found != tags.end() ? found->second : tags[std::string(value.tag)];
        };
        if (kind == Kind::hparams && hparams_.size() < kMostHparams) hparams_.emplace_back(bytes);
        if (kind == Kind::scalar)
            list_of(scalars_).add(offset, {event.step, event.wall, value.number});
        else
            list_of(items_[static_cast<size_t>(kind)])
                .push_back({offset, event.step, event.wall, value.width, value.height});
    });
}

void read_points(RecordSource& source, std::string_view tag, const Series& series, size_t stretch,
                 std::vector<Point>& points) {
    uint64_t last = UINT64_MAX;
    for (const uint64_t offset : series.offsets(stretch)) {
        // All values of the tag in a record are taken when the record is come upon.
        if (offset == last) continue;
        last = offset;
        const auto content = source.record(offset);
        if (!content) throw file_error(source.path(), str("the record at ", offset, " is no longer there"));
        const ScannedEvent event = scan_event(*content, source.path(), offset);
        scan_values(event, source.path(), [&](const ScannedValue& value, std::string_view) {
            if (value.tag == tag && (value.kind == Kind::scalar || !value.has_kind))
                points.push_back({event.step, event.wall, value.number});
        });
    }
}

}  // namespace lunaria::insight
