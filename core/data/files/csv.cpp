#include "core/data/files/csv.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/interrupt.h"
#include "core/io/file.h"

namespace lunaria::data {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// One file, record by record.
class CsvReader {
  public:
    CsvReader(const std::string& path, char delimiter) : path_(path), delimiter_(delimiter), text_(read_file(path)) {
        if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
    }
    // Reads the cells of the next record; false at the end. `line`: the record's first line.
    bool next(std::vector<std::string>& cells) {
        while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) line_ += text_[at_++] == '\n';
        if (at_ >= text_.size()) return false;
        cells.clear();
        begun_ = line_;
        for (;;) {
            cells.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted() : plain());
            if (at_ >= text_.size()) return true;
            const char c = text_[at_++];
            if (c == delimiter_) continue;
            if (c == '\r' && at_ < text_.size() && text_[at_] == '\n') ++at_;
            ++line_;
            return true;
        }
    }
    int64_t line() const { return begun_; }
    [[noreturn]] void fail(const std::string& what) const { throw file_error(path_, str("line ", begun_, ": ", what)); }

  private:
    bool ends(char c) const { return c == delimiter_ || c == '\n' || c == '\r'; }
    std::string plain() {
        const size_t begin = at_;
        while (at_ < text_.size() && !ends(text_[at_])) ++at_;
        return text_.substr(begin, at_ - begin);
    }
    std::string quoted() {
        std::string cell;
        for (++at_; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (c == '\n') ++line_;
            if (c != '"') {
                cell += c;
            } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
                cell += text_[++at_];
            } else {
                ++at_;
                if (at_ < text_.size() && !ends(text_[at_])) fail("text follows the quote that closes a field");
                return cell;
            }
        }
        fail("the quote that opens a field is never closed");
    }

    std::string path_;
    char delimiter_;
    std::string text_;
    size_t at_ = 0;
    int64_t line_ = 1, begun_ = 1;
};

template <class T>
T number_of(const CsvReader& file, const std::string& cell, const std::string& name, T if_empty, const char* kind) {
    size_t begin = cell.find_first_not_of(" \t"), end = cell.find_last_not_of(" \t");
    if (begin == std::string::npos) return if_empty;
    if (cell[begin] == '+') ++begin;
    T value{};
    const char* last = cell.data() + end + 1;
    const auto [rest, problem] = std::from_chars(cell.data() + begin, last, value);
    if (problem != std::errc() || rest != last)
        file.fail(str("column '", name, "' has '", cell.substr(0, 40), "', which is no ", kind));
    return value;
}

class CsvColumns {
  public:
    CsvColumns(const Names& names, const CsvOptions& options) : names_(names), options_(options) {
        texts_.resize(names.size());
        integers_.resize(names.size());
        numbers_.resize(names.size());
    }
    CellType type(size_t c) const { return options_.types.empty() ? CellType::text : options_.types[c]; }
    void add(const CsvReader& file, const std::vector<std::string>& cells) {
        for (size_t c = 0; c < names_.size(); ++c) switch (type(c)) {
                case CellType::text:
                    texts_[c].emplace_back(std::string_view(cells[c]));
                    break;
                case CellType::integer:
                    integers_[c].push_back(number_of(file, cells[c], names_[c], options_.integers[c], "integer"));
                    break;
                case CellType::number:
                    numbers_[c].push_back(
                        static_cast<float>(number_of(file, cells[c], names_[c], options_.numbers[c], "number")));
                    break;
            }
    }
    std::vector<Column> finish() {
        std::vector<Column> columns;
        for (size_t c = 0; c < names_.size(); ++c) {
            Column column{names_[c], {}, {}};
            if (type(c) == CellType::text)
                column.texts = std::move(texts_[c]);
            else if (type(c) == CellType::integer)
                column.tensor = Tensor::from<int64_t>(integers_[c], {static_cast<int64_t>(integers_[c].size())});
            else
                column.tensor = Tensor::from<float>(numbers_[c], {static_cast<int64_t>(numbers_[c].size())});
            columns.push_back(std::move(column));
        }
        return columns;
    }

  private:
    Names names_;
    const CsvOptions& options_;
    std::vector<std::vector<Value>> texts_;
    std::vector<std::vector<int64_t>> integers_;
    std::vector<std::vector<float>> numbers_;
};

}  // namespace

RecordsPtr csv_records(const std::vector<std::string>& paths, const CsvOptions& options) {
    std::vector<std::string> cells;
    std::optional<CsvColumns> columns;
    Names names = options.names;
    for (const std::string& path : paths) {
        CsvReader file(path, options.delimiter);
        if (options.names.empty()) {
            if (!file.next(cells)) throw file_error(path, "is empty: its first line must name the columns");
            if (columns && cells != names) file.fail("the names of the columns are others than in " + paths.front());
            names = cells;
        }
        if (!options.types.empty() && options.types.size() != names.size())
            throw argument_error("CSVDataset", str("column_defaults has ", options.types.size(),
                                                   " values, but there are ", names.size(), " columns"));
        if (!columns) columns.emplace(names, options);
        for (int64_t n = 0; file.next(cells); ++n) {
            if (n % 1024 == 0) poll_interrupt();
            if (cells.size() != names.size())
                file.fail(str("there are ", cells.size(), " columns, but ", names.size(), " are expected"));
            columns->add(file, cells);
        }
    }
    return table_records("CSVDataset", columns->finish());
}

RecordsPtr line_records(const std::vector<std::string>& paths) {
    Column column{"text", {}, {}};
    for (const std::string& path : paths) {
        const std::string text = read_file(path);
        std::string_view rest = text;
        if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
        while (!rest.empty()) {
            if (column.texts.size() % 65536 == 0) poll_interrupt();
            const size_t end = std::min(rest.find('\n'), rest.size());
            std::string_view line = rest.substr(0, end);
            rest.remove_prefix(std::min(end + 1, rest.size()));
            if (line.ends_with('\r')) line.remove_suffix(1);
            if (!line.empty()) column.texts.emplace_back(line);
        }
    }
    std::vector<Column> columns;
    columns.push_back(std::move(column));
    return table_records("TextFileDataset", std::move(columns));
}

}  // namespace lunaria::data
