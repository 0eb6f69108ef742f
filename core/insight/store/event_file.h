// A file of events as the store knows it: which tags it has, and where their records lie. refresh() goes on where it
// ended, so that a file that a training writes is gone through once.
#pragma once

#include <array>
#include <optional>
#include <unordered_map>

#include "core/insight/store/scan.h"
#include "core/insight/store/series.h"
#include "core/io/descriptor.h"

namespace lunaria::insight {

// A record of a tag whose values are no scalars.
struct Item {
    uint64_t offset = 0;
    int64_t step = 0;
    double wall = 0;
    uint32_t width = 0, height = 0;  // of a picture
};

// What a file has under each tag.
struct TagHash {
    using is_transparent = void;
    size_t operator()(std::string_view tag) const { return std::hash<std::string_view>()(tag); }
};
template <class T>
using Tags = std::unordered_map<std::string, T, TagHash, std::equal_to<>>;

// An open file, of which a stretch is kept in memory: records that lie near each other are read at once.
class RecordSource {
  public:
    // Reads `block` bytes at a time.
    explicit RecordSource(const std::string& path, size_t block = size_t{1} << 16);
    uint64_t size() const { return size_; }
    // The file's number: another one means that the file was replaced.
    uint64_t inode() const { return inode_; }
    const std::string& path() const { return path_; }
    // The content of the record at `offset`, until the next call. Throws where it is damaged; nothing where the file
    // ends within it, as it does while its writer is at work.
    std::optional<std::string_view> record(uint64_t offset);
    static uint64_t end_of(uint64_t offset, std::string_view content) { return offset + kAround + content.size(); }
    static constexpr uint64_t kLargest = uint64_t{128} << 20;

  private:
    static constexpr uint64_t kAround = 16;  // bytes around a content: length, check sums
    std::string_view bytes(uint64_t offset, size_t count);
    [[noreturn]] void fail(std::string_view what, uint64_t offset) const;

    std::string path_;
    size_t block_;
    Descriptor file_;
    uint64_t size_ = 0, inode_ = 0;
    std::string kept_;
    uint64_t kept_at_ = 0;
};

class EventFile {
  public:
    // `path` as errors and answers name it: its name in the run's folder. `place`: where the file is.
    EventFile(std::string path, std::string place) : path_(std::move(path)), place_(std::move(place)) {}

    // Goes through records that were not there before, about `most` bytes; whether it came upon any. `more()` tells
    // whether some are left.
    bool refresh(uint64_t most);
    bool more() const { return more_; }

    const std::string& path() const { return path_; }
    const std::string& place() const { return place_; }
    // Why reading ended before the end of the file; empty where it did not.
    const std::string& problem() const { return problem_; }

    const Tags<Series>& scalars() const { return scalars_; }
    const Tags<std::vector<Item>>& items(Kind kind) const { return items_[static_cast<size_t>(kind)]; }
    bool has_graph() const { return has_graph_; }
    // Values of TensorBoard's plug-in of hyper-parameters.
    const std::vector<std::string>& hparams() const { return hparams_; }
    double first_wall() const { return first_wall_; }
    double last_wall() const { return last_wall_; }
    int64_t last_step() const { return last_step_; }
    // When it was written last, in seconds since 1970.
    double changed() const { return changed_; }

  private:
    void take_event(std::string_view content, uint64_t offset);
    Kind kind_of(const ScannedValue& value) const;

    std::string path_, place_;
    uint64_t at_ = 0, inode_ = 0, records_ = 0;
    bool more_ = false, has_graph_ = false;
    std::string problem_;
    Tags<Series> scalars_;
    std::array<Tags<std::vector<Item>>, kKinds> items_;
    std::vector<std::string> hparams_;
    double first_wall_ = 0, last_wall_ = 0, changed_ = 0;
    int64_t last_step_ = -1;
};

// The points of a stretch, read from the file.
void read_points(RecordSource& source, std::string_view tag, const Series& series, size_t stretch,
                 std::vector<Point>& points);

}  // namespace lunaria::insight
