#include "core/data/files/mindrecord_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/interrupt.h"
#include "core/data/files/mindrecord_index.h"
#include "core/data/files/mindrecord_shard.h"
#include "core/io/crc32c.h"
#include "core/io/protobuf.h"
#include "core/threads/threads.h"

namespace lunaria::data {

namespace {

using nlohmann::json;

std::string base_name(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string little_endian(uint64_t value) { return {reinterpret_cast<const char*>(&value), 8}; }

std::string big_endian_bytes(uint64_t value, int bytes) {
    std::string text;
    for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
    return text;
}

// Integers in as many bytes as each needs; see unpacked in mindrecord_shard.cpp.
template <class T>
std::string packed(std::span<const T> list) {
    std::string widths((list.size() + 3) / 4, '\0'), values;
    for (size_t i = 0; i < list.size(); ++i) {
        const int64_t v = list[i];
        const int code = v == static_cast<int8_t>(v)    ? 0
                         : v == static_cast<int16_t>(v) ? 1
                         : v == static_cast<int32_t>(v) ? 2
                                                        : 3;
        widths[i / 4] = static_cast<char>(static_cast<unsigned char>(widths[i / 4]) | code << (6 - 2 * (i % 4)));
        values.append(reinterpret_cast<const char*>(&v), size_t{1} << code);
    }
    return big_endian_bytes(list.size(), 4) + widths + values;
}

[[noreturn]] void wrong(const MindrecordField& field, std::string_view what) {
    throw value_error("write_raw_data", str("field '", field.name, "' ", what));
}

std::string blob_of(const MindrecordField& field, const Value& value) {
    if (field.is_bytes() && value.kind() == Value::Kind::string) return value.string();
    if (!value.is_tensor()) wrong(field, str("must be ", field.is_array ? "a tensor" : "bytes"));
    const Tensor t = value.tensor().contiguous();
    if (t.dtype() != field.dtype)
        wrong(field,
              str("must be of dtype ", field.is_bytes() ? "uint8" : field.type_name(), ", got ", name_of(t.dtype())));
    const std::string_view bytes(static_cast<const char*>(t.raw()), t.nbytes());
    if (field.is_bytes()) return std::string(bytes);
    bool fits = static_cast<size_t>(t.rank()) == field.shape.size();
    for (int i = 0; fits && i < t.rank(); ++i)
        fits = field.shape[static_cast<size_t>(i)] == -1 || field.shape[static_cast<size_t>(i)] == t.dim(i);
    // A field of open shape takes a tensor of any shape, which has one axis when it is read.
    if (!fits && field.shape.size() == 1 && field.shape[0] == -1) fits = true;
    if (!fits) wrong(field, str("has shape ", t.shape(), ", which is not that of the schema"));
    const size_t count = static_cast<size_t>(t.size());
    if (field.dtype == DType::i32) return packed<int32_t>({t.data<int32_t>(), count});
    if (field.dtype == DType::i64) return packed<int64_t>({t.data<int64_t>(), count});
    return std::string(bytes);
}

json scalar_of(const MindrecordField& field, const Value& value) {
    if (field.is_text) {
        if (value.kind() != Value::Kind::string) wrong(field, "must be a text");
        if (!is_utf8(value.string()))
            throw value_error("write_raw_data", str("field '", field.name, "' is not UTF-8"))
                .hint("bytes belong into a field of type bytes");
        return value.string();
    }
    if (is_float(field.dtype)) {
        if (!value.is_number()) wrong(field, "must be a number");
        return field.dtype == DType::f32 ? static_cast<double>(static_cast<float>(value.number())) : value.number();
    }
    if (value.kind() != Value::Kind::integer) wrong(field, "must be an integer");
    if (field.dtype == DType::i32 && value.integer() != static_cast<int32_t>(value.integer()))
        wrong(field, str("is ", value.integer(), ", which is out of range of int32"));
    return value.integer();
}

// A row with the lengths before it, as it lies in the pages.
struct Encoded {
    std::string raw, blob;
    uint64_t saved = 0;  // bytes, by packing
};

Encoded encoded(const std::vector<MindrecordField>& fields, const Row& row) {
    json scalars = json::object();
    std::vector<std::string> blobs;
    Encoded result;
    for (size_t i = 0; i < fields.size(); ++i) {
        if (fields[i].blob < 0) {
            scalars[fields[i].name] = scalar_of(fields[i], row[i]);
            continue;
        }
        blobs.push_back(blob_of(fields[i], row[i]));
        if (const uint64_t plain = row[i].is_tensor() ? row[i].tensor().nbytes() : 0; plain > blobs.back().size())
            result.saved += plain - blobs.back().size();
    }
    if (scalars.empty()) scalars["id"] = 0;
    std::string raw;
    json::to_msgpack(scalars, raw);
    std::string blob;
    if (blobs.size() == 1) blob = std::move(blobs[0]);
    if (blobs.size() > 1)
        for (const std::string& b : blobs) blob += big_endian_bytes(b.size(), 8) + b;
    if (blobs.empty()) blob.assign(4, '\0');
    result.raw = little_endian(raw.size()) + raw;
    result.blob = little_endian(blob.size()) + blob;
    return result;
}

}  // namespace

class MindrecordWriter::Output {
  public:
    Output(const std::string& path, MindrecordHeader header) : path_(path), sink_(path), header_(std::move(header)) {
        if (sink_.is_device()) throw file_error(path, "is no regular file");
    }
    // Appends after the pages of the file.
    Output(const std::string& path, std::unique_ptr<Source> old) : Output(path, MindrecordHeader::read(*old)) {
        old_ = std::move(old);
    }
    // Called once the number of commits that the files share is known.
    void take_over(std::optional<uint64_t> commits) {
        if (commits && header_.commit->number > *commits) header_.undo_commit();
        constexpr uint64_t kPiece = 8 << 20;
        for (uint64_t at = 0; at < old_->size(); at += kPiece)
            sink_.write_at(at, old_->text(at, static_cast<size_t>(std::min(kPiece, old_->size() - at))));
        old_.reset();
        for (const MindrecordPage& page : header_.pages) {
            ++(page.is_blob ? blob_pages_ : raw_pages_);
            if (page.is_blob) row_ = std::max(row_, page.end);
        }
        first_row_ = row_;
        pages_before_ = header_.pages.size();
    }

    const MindrecordHeader& header() const { return header_; }
    int64_t rows() const { return static_cast<int64_t>(row_); }
    void add(const Encoded& row) {
        if (blob_.size() + row.blob.size() > header_.page_size || group_.size() + row.raw.size() > header_.page_size)
            end_group();
        blob_ += row.blob;
        group_ += row.raw;
        header_.compression += row.saved;
        ++row_;
    }
    // The file and its index, neither under its final name yet.
    void complete() {
        end_group();
        if (!raw_groups_.empty()) end_raw_page();
        if (header_.pages.empty()) sink_.write_at(header_.header_size - 1, std::string_view("\0", 1));
        if (header_.commit) *header_.commit = {header_.commit->files, header_.commit->number + 1, pages_before_};
        sink_.write_at(0, header_.area(path_));
        index_ = std::make_unique<FileSink>(path_ + ".db");
        write_mindrecord_index(*index_, MindrecordShard(sink_.draft()), base_name(path_));
    }
    void commit_file() { sink_.commit(); }
    void commit_index() { index_->commit(); }

  private:
    void end_group() {
        if (blob_.empty()) return;
        const uint64_t id = blob_pages_++;
        put({true, id, blob_.size(), first_row_, row_, {}, crc32c(blob_)}, blob_);
        first_row_ = row_;
        if (raw_.size() + group_.size() > header_.page_size) end_raw_page();
        raw_groups_.push_back({id, raw_.size()});
        raw_ += group_;
        blob_.clear();
        group_.clear();
    }
    void end_raw_page() {
        put({false, raw_pages_++, raw_.size(), 0, 0, std::move(raw_groups_), crc32c(raw_)}, raw_);
        raw_groups_.clear();
        raw_.clear();
    }
    void put(MindrecordPage page, std::string_view bytes) {
        sink_.write_at(header_.start_of(header_.pages.size()), bytes);
        header_.pages.push_back(std::move(page));
    }

    std::string path_;
    FileSink sink_;
    MindrecordHeader header_;
    std::unique_ptr<Source> old_;
    std::unique_ptr<FileSink> index_;
    uint64_t pages_before_ = 0, blob_pages_ = 0, raw_pages_ = 0, row_ = 0, first_row_ = 0;
    std::string blob_, group_;  // rows of the blob page that is being filled, and their scalars
    std::string raw_;           // the raw page that is being filled, with its complete groups
    std::vector<MindrecordPage::Group> raw_groups_;
};

MindrecordWriter::MindrecordWriter(const Options& options) {
    MindrecordHeader header;
    header.header_size = options.header_size;
    header.page_size = options.page_size;
    header.description = options.description;
    header.fields = options.fields;
    header.index = options.index;
    for (const std::string& path : options.paths) header.siblings.push_back(base_name(path));
    // A number that no other writer uses.
    header.commit = MindrecordHeader::Commit{std::random_device()(), 0, 0};
    for (const std::string& path : options.paths) {
        header.shard = outputs_.size();
        outputs_.push_back(std::make_unique<Output>(path, header));
    }
}

MindrecordWriter::MindrecordWriter(const std::string& path) {
    const MindrecordHeader header = MindrecordHeader::read(*open_source(path));
    const std::string folder = path.substr(0, path.size() - base_name(path).size());
    std::vector<std::string> names = header.siblings;
    if (names.size() < 2) names = {base_name(path)};
    for (const std::string& name : names) {
        if (name.empty() || name.find('/') != std::string::npos || name == "..")
            throw file_error(path, "corrupt: the header names a shard outside of the folder");
        outputs_.push_back(std::make_unique<Output>(folder + name, open_source(folder + name)));
        if (outputs_.back()->header().fields != header.fields)
            throw file_error(path, "the files have different schemas");
    }
    std::vector<const MindrecordHeader*> headers;
    for (const auto& output : outputs_) headers.push_back(&output->header());
    const auto commits = common_commit(path, headers);
    for (const auto& output : outputs_) output->take_over(commits);
}

MindrecordWriter::~MindrecordWriter() = default;

const std::vector<MindrecordField>& MindrecordWriter::fields() const { return outputs_.front()->header().fields; }

void MindrecordWriter::write(std::span<const Row> rows, bool in_parallel) {
    if (committed_) throw state_error("write_raw_data", "the file was committed");
    const MindrecordHeader& header = outputs_.front()->header();
    std::vector<Encoded> list(rows.size());
    const auto count = static_cast<int64_t>(rows.size());
    constexpr int64_t kRowsWorthAThread = 64;
    parallel_for(count, in_parallel ? kRowsWorthAThread : std::max<int64_t>(count, 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            list[static_cast<size_t>(i)] = encoded(header.fields, rows[static_cast<size_t>(i)]);
    });
    for (size_t i = 0; i < list.size(); ++i)
        if (const size_t most = std::max(list[i].blob.size(), list[i].raw.size()); most > header.page_size)
            throw value_error("write_raw_data",
                              str("row ", i, " takes ", most, " bytes, but a page has ", header.page_size))
                .hint("set_page_size gives pages more, up to 256 MiB");
    const size_t shards = outputs_.size(), each = list.size() / shards, more = list.size() % shards;
    size_t at = 0;
    for (size_t s = 0; s < shards; ++s)
        for (size_t i = 0; i < each + (s < more); ++i) {
            poll_interrupt();
            outputs_[s]->add(list[at++]);
        }
}

int64_t MindrecordWriter::commit() {
    if (committed_) throw state_error("commit", "the file was committed before");
    for (const auto& output : outputs_) output->complete();
    committed_ = true;
    int64_t rows = 0;
    // Files are put in place before their indexes, so that an index never names a row that its file lacks.
    for (const auto& output : outputs_) output->commit_file();
    for (const auto& output : outputs_) {
        output->commit_index();
        rows += output->rows();
    }
    return rows;
}

}  // namespace lunaria::data
