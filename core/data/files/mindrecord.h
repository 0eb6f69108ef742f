// MindRecord files, version 2.0 and 3.0: a header in JSON, then pages of rows. Scalars of a row are a MessagePack map
// in a raw page; bytes and arrays are in a blob page. Read from the pages alone: no index file is needed.
#pragma once

#include <string>
#include <vector>

#include "core/data/records.h"

namespace lunaria::data {

// The rows of the files; with `whole`, of all files that belong to the first one by its header. Columns: `names`, or
// all in alphabetical order. Bytes become a tensor of uint8. `skip_damaged`: rows of damaged pages are left out, for
// which all pages are read at once; their number goes to `skipped` unless that is null.
RecordsPtr mindrecord_records(const std::vector<std::string>& paths, bool whole, Names names, bool skip_damaged = false,
                              int64_t* skipped = nullptr);

}  // namespace lunaria::data
