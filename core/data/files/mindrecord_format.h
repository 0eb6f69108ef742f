// The header of a MindRecord file: sizes, schema and the list of its pages. Page i begins at header_size + i *
// page_size; the last one ends with the file. Rows are in blob pages (bytes and arrays) and raw pages (scalars); each
// blob page has a row group in a raw page, with the scalars of the same rows one after the other.
//
// Files written here have check sums (CRC-32C) of the pages and of the header in keys that other readers leave alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/file.h"
#include "core/tensor/dtype.h"

namespace lunaria::data {

struct MindrecordField {
    std::string name;
    DType dtype = DType::u8;
    bool is_text = false;
    bool is_array = false;
    std::vector<int64_t> shape;  // -1: as many as there are
    int blob = -1;               // position among the blob fields

    bool is_bytes() const { return !is_text && !is_array && blob >= 0; }
    const char* type_name() const;
    friend bool operator==(const MindrecordField&, const MindrecordField&) = default;
};

// By name, in order; `blob` is set. Throws, in the name of `where`, for names, types and numbers of fields that a file
// cannot have.
std::vector<MindrecordField> mindrecord_fields(std::string_view where, std::vector<MindrecordField> fields);

struct MindrecordPage {
    struct Group {
        uint64_t id = 0, offset = 0;  // number of the blob page among the blob pages; offset in the raw page
    };
    bool is_blob = false;
    uint64_t type_id = 0, used = 0;  // number among the pages of its kind; bytes
    uint64_t begin = 0, end = 0;     // rows of a blob page
    std::vector<Group> groups;       // of a raw page
    std::optional<uint32_t> crc;
};

struct MindrecordHeader {
    uint64_t header_size = 1 << 24, page_size = 1 << 25, compression = 0;
    std::string description;
    std::vector<MindrecordField> fields;
    std::vector<std::string> index;  // fields
    std::vector<MindrecordPage> pages;
    std::vector<std::string> siblings;  // the shards, this one too
    uint64_t shard = 0;
    // The last commit of a Lunaria writer: its random number for this set of files, the number of commits, and the
    // pages before the last commit. A writer of several shards that is killed leaves some of them a commit behind.
    struct Commit {
        uint64_t files = 0, number = 0, pages_before = 0;
    };
    std::optional<Commit> commit;

    // Throws file_error in the name of the source. The header that it returns is consistent: pages lie within the file,
    // row groups have blob pages.
    static MindrecordHeader read(const Source& source);
    // The header's bytes at the beginning of a file, header_size of them. Throws where they do not fit.
    std::string area(const std::string& path) const;
    // The header as it was before the last commit.
    void undo_commit();
    uint64_t start_of(size_t page) const { return header_size + page * page_size; }
};

// The number of commits that all of the headers share. Throws, in the name of `path`, where the headers do not belong
// together. Nothing where another program has written one of them.
std::optional<uint64_t> common_commit(const std::string& path, const std::vector<const MindrecordHeader*>& headers);

inline constexpr uint64_t kLeastHeader = 1 << 14, kMostHeader = 1 << 27, kLeastPage = 1 << 15, kMostPage = 1 << 28;

}  // namespace lunaria::data
