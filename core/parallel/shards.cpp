#include "core/parallel/shards.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/io/crc32c.h"
#include "core/parallel/region.h"

namespace lunaria::parallel {
namespace {

using nlohmann::json;

// Sums are of blocks, so that a rectangle can be read and checked without the rest of its piece.
constexpr uint64_t kBlock = uint64_t{1} << 20;
constexpr std::string_view kKey = "shard:";
constexpr std::string_view kComplete = "complete";

std::string hex(uint32_t number) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", number);
    return digits;
}

uint64_t blocks_of(uint64_t bytes) { return (bytes + kBlock - 1) / kBlock; }

std::string sums_of(const Tensor& dense) {
    const std::string_view bytes(static_cast<const char*>(dense.raw()), dense.nbytes());
    std::string sums;
    for (uint64_t at = 0; at < bytes.size(); at += kBlock) sums += hex(crc32c(bytes.substr(at, kBlock)));
    return sums;
}

std::vector<int64_t> listed(const Shape& shape) { return {shape.begin(), shape.end()}; }

// The description of a piece as its file has it.
class Description {
  public:
    Description(const Source& source, const std::string& name, const std::string& text) : source_(source), name_(name) {
        value_ = json::parse(text, nullptr, false);
        if (!value_.is_object()) fail("is no JSON object");
    }

    Shape sizes(const char* key, std::span<const int64_t> like) const {
        const auto found = value_.find(key);
        if (found == value_.end() || !found->is_array() || found->size() != like.size())
            fail(str("has no '", key, "' of ", like.size(), " numbers"));
        Shape result;
        for (const json& item : *found) {
            if (!item.is_number_integer() || item.get<int64_t>() < 0) fail(str("has a '", key, "' that is no size"));
            result.push_back(item.get<int64_t>());
        }
        return result;
    }
    int64_t number(const char* key) const {
        const auto found = value_.find(key);
        if (found == value_.end()) return 0;
        if (!found->is_number_integer()) fail(str("has a '", key, "' that is no number"));
        return found->get<int64_t>();
    }
    std::string text(const char* key) const {
        const auto found = value_.find(key);
        if (found == value_.end()) return {};
        if (!found->is_string()) fail(str("has a '", key, "' that is no text"));
        return found->get<std::string>();
    }
    std::vector<uint32_t> sums(uint64_t bytes) const {
        const std::string digits = text("crc32c");
        if (number("block") != static_cast<int64_t>(kBlock)) fail("has sums of blocks of another size");
        if (digits.size() != 8 * blocks_of(bytes))
            fail(str("has ", digits.size() / 8, " sums, not ", blocks_of(bytes)));
        std::vector<uint32_t> sums(blocks_of(bytes));
        for (size_t i = 0; i < sums.size(); ++i) {
            const char* first = digits.data() + 8 * i;
            const auto [end, failure] = std::from_chars(first, first + 8, sums[i], 16);
            if (failure != std::errc() || end != first + 8) fail("has a sum that is no number");
        }
        return sums;
    }
    [[noreturn]] void fail(std::string_view what) const {
        throw source_.error(str("corrupt: the description of the piece of '", name_.substr(0, 60), "' ", what));
    }

  private:
    const Source& source_;
    const std::string& name_;
    json value_;
};

bool is_inside(const Region& place, const Shape& all) {
    for (size_t axis = 0; axis < place.size(); ++axis)
        if (place[axis].begin < 0 || place[axis].end < place[axis].begin ||
            place[axis].end > all[static_cast<int>(axis)])
            return false;
    return true;
}

bool parse_number(std::string_view& text, int64_t& number) {
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    if (digits < 4 || digits > 9) return false;
    std::from_chars(text.data(), text.data() + digits, number);
    text.remove_prefix(digits);
    return true;
}

[[noreturn]] void fail(const std::string& path, std::string_view doing) {
    throw file_error(path, str(doing, ": ", std::system_category().message(errno)));
}

void sync_folder(const std::string& path) {
    const Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder) fsync(folder.number());
}

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code failure;
    for (std::filesystem::directory_iterator entry(folder, failure), end; !failure && entry != end;
         entry.increment(failure))
        names.push_back(entry->path().filename().string());
    if (failure) throw file_error(folder, "cannot be read: " + failure.message());
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace

int64_t writer_of(std::string_view name, int64_t replicas) {
    return static_cast<int64_t>(crc32c(name)) % std::max<int64_t>(replicas, 1);
}

std::string shard_name(int64_t rank, int64_t ranks) {
    char name[64];
    std::snprintf(name, sizeof name, "rank-%04lld-of-%04lld.safetensors", static_cast<long long>(rank),
                  static_cast<long long>(ranks));
    return name;
}

bool parse_shard_name(std::string_view name, int64_t& rank, int64_t& ranks) {
    if (!name.starts_with("rank-")) return false;
    name.remove_prefix(5);
    if (!parse_number(name, rank) || !name.starts_with("-of-")) return false;
    name.remove_prefix(4);
    return parse_number(name, ranks) && name == ".safetensors" && rank < ranks;
}

void write_pieces(Sink& sink, std::span<const Piece> pieces, const Metadata& metadata) {
    std::vector<NamedTensor> tensors;
    Metadata texts = metadata;
    for (const Piece& piece : pieces) {
        if (piece.tensor.size() == 0 && piece.whole.size() != 0) continue;
        Tensor dense = piece.tensor.contiguous().to_host();
        json description = {{"shape", listed(piece.whole)},
                            {"offsets", listed(piece.offsets)},
                            {"replica", piece.replica},
                            {"block", kBlock},
                            {"crc32c", sums_of(dense)}};
        if (!piece.mesh.empty()) description["mesh"] = piece.mesh;
        if (!piece.layout.empty()) description["layout"] = piece.layout;
        texts.emplace_back(str(kKey, piece.name), description.dump());
        tensors.emplace_back(piece.name, std::move(dense));
    }
    write_safetensors(sink, tensors, texts);
}

bool complete_step(const std::string& draft, const std::string& final, int64_t ranks) {
    int64_t there = 0;
    std::error_code failure;
    for (std::filesystem::directory_iterator entry(draft, failure), end; !failure && entry != end;
         entry.increment(failure)) {
        int64_t rank = 0, of = 0;
        if (parse_shard_name(entry->path().filename().string(), rank, of) && of == ranks) ++there;
    }
    // Another rank that found all files may have given the folder its name already.
    if (failure && failure != std::errc::no_such_file_or_directory)
        throw file_error(draft, "cannot be read: " + failure.message());
    if (there < ranks) return false;
    const std::string mark = str(draft, "/", kComplete);
    const Descriptor made(open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!made) {
        if (errno == EEXIST || errno == ENOENT) return false;
        fail(mark, "cannot be made");
    }
    fsync(made.number());
    sync_folder(draft);
    // A folder that has the name already is exchanged for the new one, so that there is a complete one at all times.
    if (renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, final.c_str(), RENAME_EXCHANGE) == 0) {
        std::filesystem::remove_all(draft, failure);
    } else if (rename(draft.c_str(), final.c_str()) != 0) {
        std::filesystem::remove_all(final, failure);
        if (rename(draft.c_str(), final.c_str()) != 0) fail(draft, str("cannot be renamed to ", final));
    }
    sync_folder(folder_of(final));
    return true;
}

namespace {

// What remains of a region without the parts of a tensor; found(part, region) is called for each region that a part
// has and none before.
template <class Found>
std::vector<Region> without_parts(const Shards::Whole& tensor, const Region& wanted, const Found& found) {
    std::vector<Region> missing;
    if (elements(wanted) > 0) missing.push_back(wanted);
    for (const Shards::Part& part : tensor.parts) {
        if (missing.empty()) break;
        std::vector<Region> rest;
        for (const Region& area : missing) {
            const Region common = intersection(area, part.place);
            if (elements(common) == 0) {
                rest.push_back(area);
                continue;
            }
            found(part, common);
            subtract(area, common, rest);
        }
        missing = std::move(rest);
    }
    return missing;
}

}  // namespace

Shards::Shards(const std::string& path) : path_(path) {
    std::error_code failure;
    if (!std::filesystem::is_directory(path, failure)) {
        add(SafetensorsFile(path), 0);
        return;
    }
    std::string first;
    for (const std::string& name : names_in(path)) {
        int64_t rank = 0, ranks = 0;
        if (!parse_shard_name(name, rank, ranks)) continue;
        if (ranks_ != 0 && ranks != ranks_)
            throw file_error(path, str("has files of ", ranks_, " and of ", ranks, " ranks: ", first, " and ", name));
        ranks_ = ranks;
        first = name;
        add(SafetensorsFile(str(path, "/", name)), rank);
    }
    if (files_.empty()) throw file_error(path, str("has no files of ranks, as ", shard_name(0, 1)));
}

Shards::Shards(std::unique_ptr<Source> file)
    : path_(file->name()), only_(std::make_unique<SafetensorsFile>(std::move(file))) {
    add(*only_, 0);
}

void Shards::add(const SafetensorsFile& file, int64_t rank) {
    const Source& source = file.source();
    std::map<std::string_view, const std::string*> descriptions;
    Metadata metadata;
    for (const auto& [key, text] : file.metadata()) {
        if (key.starts_with(kKey))
            descriptions.emplace(std::string_view(key).substr(kKey.size()), &text);
        else
            metadata.emplace_back(key, text);
    }
    for (const SafetensorsFile::Entry& entry : file.entries()) {
        const DType dtype = file.dtype_of(entry);
        const Shape own = checked_shape(entry.name, entry.shape, size_of(dtype));
        Part part{files_.size(), whole(own), file.data() + entry.begin, {}, 0};
        Whole described{dtype, own, {}, {}, {}};
        if (const auto found = descriptions.find(entry.name); found != descriptions.end()) {
            const Description description(source, entry.name, *found->second);
            described.shape = checked_shape(entry.name, description.sizes("shape", entry.shape).dims(), size_of(dtype));
            const Shape offsets = description.sizes("offsets", entry.shape);
            for (int axis = 0; axis < own.rank(); ++axis) {
                if (own[axis] > described.shape[axis] || offsets[axis] > described.shape[axis] - own[axis])
                    description.fail(str("says that it begins at ", offsets, " of a tensor of shape ", described.shape,
                                         "; it has shape ", own));
                part.place[static_cast<size_t>(axis)] = {offsets[axis], offsets[axis] + own[axis]};
            }
            part.sums = description.sums(entry.end - entry.begin);
            part.replica = description.number("replica");
            described.mesh = description.text("mesh");
            described.layout = description.text("layout");
        }
        Whole& tensor = tensors_.emplace(entry.name, described).first->second;
        if (tensor.dtype != dtype || tensor.shape != described.shape)
            throw source.error(str("corrupt: '", entry.name, "' is ", name_of(dtype), " ", described.shape,
                                   " here and ", name_of(tensor.dtype), " ", tensor.shape, " in ",
                                   files_[tensor.parts[0].file].path));
        tensor.parts.push_back(std::move(part));
    }
    files_.push_back({source.name(), source.size(), rank, std::move(metadata)});
}

std::vector<int64_t> Shards::absent() const {
    std::vector<int64_t> absent;
    size_t next = 0;
    for (int64_t rank = 0; rank < ranks_; ++rank) {
        if (next < files_.size() && files_[next].rank == rank)
            ++next;
        else
            absent.push_back(rank);
    }
    return absent;
}

const Shards::Whole& Shards::at(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found != tensors_.end()) return found->second;
    const auto ranks = absent();
    Error error = file_error(path_, str("has no tensor named '", name, "' among its ", tensors_.size()));
    throw ranks.empty() ? error : error.hint(str("the file of rank ", ranks[0], " of ", ranks_, " is not there"));
}

const Source& Shards::open(size_t file, std::unique_ptr<Source>& opened) const {
    if (only_) return only_->source();
    opened = open_source(files_[file].path);
    if (opened->size() != files_[file].size)
        throw opened->error(str("was changed: it had ", files_[file].size, " bytes and has ", opened->size()));
    return *opened;
}

std::vector<Region> Shards::missing(const std::string& name) const {
    const Whole& tensor = at(name);
    return without_parts(tensor, whole(tensor.shape), [](const Part&, const Region&) {});
}

Error Shards::incomplete(const std::string& name, const std::vector<Region>& missing) const {
    std::string message = str("the elements ", missing[0], " of '", name, "' are in none of its files");
    const auto ranks = absent();
    if (ranks.empty()) return file_error(path_, message);
    message += ranks.size() == 1 ? ": rank " : ": ranks ";
    constexpr size_t kShown = 8;
    for (size_t i = 0; i < std::min(ranks.size(), kShown); ++i) message += str(i > 0 ? ", " : "", ranks[i]);
    if (ranks.size() > kShown) message += str(" and ", ranks.size() - kShown, " more");
    return file_error(path_,
                      str(message, " of ", ranks_, " had them, and ",
                          ranks.size() == 1 ? shard_name(ranks[0], ranks_) + " is" : "their files are", " not there"));
}

// The bytes from `begin` to `end` of a piece's contents, which lie in one block that has a sum: all of the block is
// read into `to`, which has room for it, and compared.
void Shards::read_blocks(const Source& source, const std::string& name, const Part& part, uint64_t begin, uint64_t end,
                         char* to) const {
    source.read(part.offset + begin, to, end - begin);
    bytes_read_ += end - begin;
    const uint64_t block = begin / kBlock;
    if (crc32c({to, end - begin}) == part.sums[block]) return;
    throw source.error(str("damaged: the sum of bytes ", part.offset + begin, " to ", part.offset + end,
                           " is wrong; they hold '", name, "' ", part.place));
}

void Shards::copy(const std::string& name, const Part& part, const Region& area, const Region& wanted, Tensor& to,
                  Check check) const {
    std::unique_ptr<Source> opened;
    const Source& source = open(part.file, opened);
    const uint64_t width = size_of(to.dtype());
    const uint64_t bytes = static_cast<uint64_t>(elements(part.place)) * width;
    const bool compares = check == Check::sums && !part.sums.empty();
    constexpr uint64_t kDirect = 4096;  // shorter runs are read with the others of their block
    std::vector<char> block;
    uint64_t have = UINT64_MAX;  // the number of the block in `block`
    each_run(area, part.place, wanted, [&](int64_t from, int64_t into, int64_t count) {
        uint64_t begin = static_cast<uint64_t>(from) * width;
        const uint64_t end = begin + static_cast<uint64_t>(count) * width;
        char* target = static_cast<char*>(to.raw()) + static_cast<uint64_t>(into) * width;
        while (begin < end) {
            const uint64_t number = begin / kBlock, start = number * kBlock;
            const uint64_t stop = std::min(start + kBlock, bytes), until = std::min(stop, end);
            if (compares && begin == start && until == stop) {
                read_blocks(source, name, part, begin, until, target);
            } else if (!compares && until - begin >= kDirect) {
                source.read(part.offset + begin, target, until - begin);
                bytes_read_ += until - begin;
            } else {
                if (have != number) {
                    block.resize(stop - start);
                    if (compares)
                        read_blocks(source, name, part, start, stop, block.data());
                    else
                        source.read(part.offset + start, block.data(), stop - start), bytes_read_ += stop - start;
                    have = number;
                }
                std::memcpy(target, block.data() + (begin - start), until - begin);
            }
            target += until - begin;
            begin = until;
        }
    });
}

Tensor Shards::read(const std::string& name, const Region& wanted, Check check) const {
    const Whole& tensor = at(name);
    if (static_cast<int>(wanted.size()) != tensor.shape.rank() || !is_inside(wanted, tensor.shape))
        throw file_error(path_, str("'", name, "' has shape ", tensor.shape, ", and ", wanted, " is not inside of it"));
    // A file may claim a tensor of any size: memory is taken for elements that are there.
    int64_t there = 0;
    for (const Part& part : tensor.parts) there += elements(part.place);
    if (elements(wanted) > there) throw incomplete(name, missing(name));
    Tensor result = Tensor::empty(tensor.dtype, shape_of(wanted));
    const std::vector<Region> rest = without_parts(
        tensor, wanted, [&](const Part& part, const Region& area) { copy(name, part, area, wanted, result, check); });
    if (!rest.empty()) throw incomplete(name, rest);
    // A C++ bool that is neither 0 nor 1 is undefined behaviour in every kernel.
    if (tensor.dtype == DType::boolean) {
        char* bytes = static_cast<char*>(result.raw());
        for (uint64_t i = 0; i < result.nbytes(); ++i) bytes[i] = bytes[i] != 0;
    }
    return result;
}

void Shards::verify(size_t file) const {
    std::unique_ptr<Source> opened;
    const Source& source = open(file, opened);
    std::vector<char> block(kBlock);
    for (const auto& [name, tensor] : tensors_)
        for (const Part& part : tensor.parts) {
            if (part.file != file) continue;
            const uint64_t bytes = static_cast<uint64_t>(elements(part.place)) * size_of(tensor.dtype);
            for (size_t i = 0; i < part.sums.size(); ++i)
                read_blocks(source, name, part, i * kBlock, std::min((i + 1) * kBlock, bytes), block.data());
        }
}

}  // namespace lunaria::parallel
