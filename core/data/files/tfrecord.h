// TFRecord files of tf.Example messages. A record is its length, a check sum of the length, the bytes and a check sum
// of them (CRC-32C, rotated and offset).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/data/records.h"
#include "core/io/file.h"

namespace lunaria::data {

// The records of files, one after the other. Lengths are checked here, contents when a record is read. Columns:
// `names`, or the features of the first record in alphabetical order. Numbers become tensors of one axis, one string a
// text, several a list of texts.
RecordsPtr tfrecord_records(const std::vector<std::string>& paths, Names names);

// Writes records to a file that is complete after commit, and unchanged without it.
class TfrecordWriter {
  public:
    explicit TfrecordWriter(const std::string& path) : sink_(path) {}
    // Tensors are written as lists of their elements.
    void write(const Names& names, const Row& row);
    void commit() { sink_.commit(); }

  private:
    FileSink sink_;
};

}  // namespace lunaria::data
