// Writes MindRecord files: one, or several shards that belong together, each with its index for other readers
// (FILE.db). After commit the files are complete; before it they are as they were. A writer that is killed leaves
// temporary files, which the next one removes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/data/files/mindrecord_format.h"
#include "core/data/node.h"

namespace lunaria::data {

class MindrecordWriter {
  public:
    struct Options {
        std::vector<std::string> paths;  // of the shards
        std::string description;
        std::vector<MindrecordField> fields;  // of mindrecord_fields
        std::vector<std::string> index;
        uint64_t header_size = 1 << 24, page_size = 1 << 25;
    };
    explicit MindrecordWriter(const Options& options);
    // Appends to the rows of a file and of the shards that belong to it.
    explicit MindrecordWriter(const std::string& path);
    ~MindrecordWriter();
    MindrecordWriter(const MindrecordWriter&) = delete;

    const std::vector<MindrecordField>& fields() const;
    // Takes a value for each field, in their order: texts (bytes, too), integers, numbers or tensors (bytes, too). Rows
    // are split evenly among the shards. Throws, and writes no row, when a value does not fit its field. `in_parallel`:
    // several threads encode the rows.
    void write(std::span<const Row> rows, bool in_parallel = true);
    // Ends the writing and returns the number of rows in all shards.
    int64_t commit();

  private:
    class Output;
    std::vector<std::unique_ptr<Output>> outputs_;
    bool committed_ = false;
};

}  // namespace lunaria::data
