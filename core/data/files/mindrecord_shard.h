// One file of MindRecord, read at random rows. Several threads may read at once.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "core/data/files/mindrecord_format.h"
#include "core/tensor/value.h"

namespace lunaria::data {

class MindrecordShard {
  public:
    // Reads the header. `skip_damaged`: reads all pages too, and leaves out the rows of damaged ones. `undo`: reads the
    // file as it was before the last commit.
    explicit MindrecordShard(const std::string& path, bool skip_damaged = false, bool undo = false);

    const MindrecordHeader& header() const { return header_; }
    int64_t rows() const { return groups_.empty() ? 0 : groups_.back().end; }
    int64_t skipped() const { return skipped_; }  // number of rows that were left out

    // Calls take(value) for the fields with these numbers.
    void read(int64_t row, const std::vector<int>& wanted, const std::function<void(Value)>& take) const;

    // The place of a row, for the index: pages by their numbers, offsets that include the lengths of rows.
    struct Place {
        size_t raw_page, blob_page;
        uint64_t group, raw_begin, raw_end, blob_begin, blob_end;
    };
    Place place(int64_t row) const;

  private:
    // Rows whose scalars are next to each other in a raw page and whose blobs fill a page.
    struct Group {
        int64_t begin = 0, end = 0;
        size_t raw = 0, blob = 0;
        uint64_t raw_offset = 0;
    };
    // The places of a group's rows and the end of the last one, found when one of its rows is first asked for. The raw
    // rows, which are small, are kept as well as long as there are not too many.
    struct Offsets {
        std::vector<uint32_t> raw, blob;
        Tensor kept;
        std::string_view raw_rows;  // the bytes kept
        bool known = false;
    };

    void find_groups();
    void leave_out_damaged();
    const Group& group_of(int64_t row) const;
    const Offsets& offsets(const Group& group) const;
    Tensor checked_page(size_t page) const;
    std::vector<uint32_t> walk(std::string_view rows, uint64_t begin, int64_t count, size_t page) const;
    std::string where(size_t page) const;

    std::unique_ptr<Source> source_;
    MindrecordHeader header_;
    size_t blob_fields_ = 0;
    std::vector<Group> groups_;
    int64_t skipped_ = 0;
    mutable std::mutex mutex_;
    mutable std::vector<Offsets> offsets_;  // guarded by mutex_ until the places are known
    mutable std::vector<char> checked_;     // pages; guarded by mutex_
    mutable size_t kept_ = 0;               // bytes of raw rows; guarded by mutex_
};

}  // namespace lunaria::data
