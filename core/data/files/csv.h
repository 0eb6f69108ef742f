// Texts in files: comma-separated values (RFC 4180) and lines.
#pragma once

#include <string>
#include <vector>

#include "core/data/records.h"

namespace lunaria::data {

enum class CellType { text, integer, number };

struct CsvOptions {
    char delimiter = ',';
    Names names;                  // empty: the first line of every file
    std::vector<CellType> types;  // empty: texts in all columns
    // The values of empty cells, one for each of the types.
    std::vector<int64_t> integers;
    std::vector<double> numbers;
};

// Quoted fields may hold delimiters, quotes (doubled) and line breaks. A byte order mark and empty lines are left out.
// Errors name file and line.
RecordsPtr csv_records(const std::vector<std::string>& paths, const CsvOptions& options);

// The lines of the files that are not empty, without their ends, as the column `text`.
RecordsPtr line_records(const std::vector<std::string>& paths);

}  // namespace lunaria::data
