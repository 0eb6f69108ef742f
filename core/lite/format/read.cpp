#include <array>
#include <cstring>

#include "core/lite/format/check.h"
#include "core/lite/format/describe.h"
#include "core/lite/format/file.h"
#include "core/lite/format/head.h"
#include "core/lite/format/sizes.h"

namespace lunaria::lite {

namespace {

// After the first fault all numbers are 0 and all lists empty.
class Reader : public Archive {
  public:
    static constexpr bool kReads = true;
    Reader(std::span<const std::byte> file, const Head& head, Fault& fault)
        : file_(file), content_(file.subspan(head.content_at, head.content_bytes)), fault_(fault) {
        position_ = sizeof(Head);
        end_ = position_ + head.description_bytes;
    }

    uint64_t number() {
        uint64_t v = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<uint64_t>(*take(1));
            if (shift == 63 && byte > 1) break;
            v |= (byte & 0x7f) << shift;
            if (byte < 0x80) return v;
        }
        refuse("a number is too long");
        return 0;
    }
    // The number of items that take at least a byte each.
    size_t count() {
        const uint64_t n = number();
        if (n <= end_ - position_) return static_cast<size_t>(n);
        refuse("a list promises " + std::to_string(n) + " items, but " + std::to_string(end_ - position_) +
               " bytes are left");
        return 0;
    }
    void operator()(std::string& v) {
        const size_t size = count();
        v.assign(reinterpret_cast<const char*>(take(size)), has_failed() ? 0 : size);
    }
    void operator()(double& v) { std::memcpy(&v, take(8), 8); }
    void at(const Value&) { values_.push_back(position_); }
    void at(const Step&) { steps_.push_back(position_); }
    void stored(const std::byte*& data, uint64_t& bytes) {
        bytes = number();
        if (bytes == 0) return;
        const uint64_t at = number();
        if (at > content_.size() / kAlignment || bytes > content_.size() - at * kAlignment)
            return refuse("elements end behind the file");
        data = content_.data() + at * kAlignment;
    }
    void refuse(const std::string& what) {
        if (has_failed()) return;
        fault_ = {position_, what};
        position_ = end_;
    }
    bool has_failed() const { return !fault_.text.empty(); }
    bool is_done() const { return position_ == end_; }
    void place(const ModelFault& fault) {
        if (fault.text.empty()) return;
        if (fault.step != kNone)
            fault_ = {steps_[fault.step], "step " + std::to_string(fault.step) + ": " + fault.text};
        else if (fault.value != kNone)
            fault_ = {values_[fault.value], "value " + std::to_string(fault.value) + ": " + fault.text};
        else
            fault_ = {sizeof(Head), fault.text};
    }

  private:
    // Zeros where fewer bytes are left.
    const std::byte* take(size_t bytes) {
        static constexpr std::byte kZeros[8]{};
        if (bytes > end_ - position_) {
            refuse("the description ends too early");
            return kZeros;
        }
        const std::byte* const taken = file_.data() + position_;
        position_ += bytes;
        return taken;
    }
    std::span<const std::byte> file_, content_;
    Fault& fault_;
    uint64_t position_ = 0, end_ = 0;
    std::vector<uint64_t> values_, steps_;  // where they begin
};

bool read_head(std::span<const std::byte> file, Head& head, Fault& fault) {
    auto refuse = [&](uint64_t offset, std::string text) {
        fault = {offset, std::move(text)};
        return false;
    };
    const Head blank;
    if (file.size() < sizeof(Head) || std::memcmp(file.data(), blank.mark, sizeof blank.mark) != 0)
        return refuse(0, "this is no light model");
    std::memcpy(&head, file.data(), sizeof head);
    if (head.version != kVersion)
        return refuse(offsetof(Head, version),
                      "it is of version " + std::to_string(head.version) + ", not " + std::to_string(kVersion));
    if (head.sum != sum_of(head)) return refuse(offsetof(Head, sum), "the checksum of the head is wrong");
    if (head.file_bytes != file.size())
        return refuse(offsetof(Head, file_bytes),
                      "it has " + std::to_string(file.size()) + " bytes instead of " + std::to_string(head.file_bytes));
    const uint64_t room = file.size() - sizeof(Head);
    if (head.description_bytes > room || head.content_at != padded(sizeof(Head) + head.description_bytes) ||
        head.content_at > file.size() || head.content_bytes != file.size() - head.content_at)
        return refuse(offsetof(Head, description_bytes), "its parts do not fit into it");
    if (head.description_sum != crc32(file.subspan(sizeof(Head), head.content_at - sizeof(Head))))
        return refuse(sizeof(Head), "the checksum of the description is wrong");
    return true;
}

bool check_content(std::span<const std::byte> content, uint64_t at, std::span<const uint32_t> sums, Fault& fault) {
    for (size_t i = 0; i < sums.size(); ++i) {
        const auto part = content.subspan(i * kSummed, std::min<uint64_t>(kSummed, content.size() - i * kSummed));
        if (crc32(part) == sums[i]) continue;
        fault = {at + i * kSummed, "the checksum of the " + std::to_string(part.size()) + " bytes from here is wrong"};
        return false;
    }
    return true;
}

// tables[k][b]: the remainder of byte b with k zero bytes behind it.
constexpr auto kTables = [] {
    std::array<std::array<uint32_t, 256>, 8> tables{};
    for (uint32_t b = 0; b < 256; ++b) {
        uint32_t c = b;
        for (int i = 0; i < 8; ++i) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        tables[0][b] = c;
    }
    for (size_t k = 1; k < 8; ++k)
        for (size_t b = 0; b < 256; ++b) tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
    return tables;
}();

}  // namespace

uint32_t crc32(std::span<const std::byte> bytes, uint32_t start) {
    uint32_t c = ~start;
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
        uint64_t eight = 0;
        std::memcpy(&eight, bytes.data(), 8);
        eight ^= c;
        c = 0;
        for (size_t k = 0; k < 8; ++k) c ^= kTables[7 - k][eight >> (8 * k) & 0xff];
    }
    for (const std::byte b : bytes) c = c >> 8 ^ kTables[0][(c ^ static_cast<uint32_t>(b)) & 0xff];
    return ~c;
}

std::string Fault::message() const { return "at byte " + std::to_string(offset) + ": " + text; }

bool read_model(std::span<const std::byte> file, Model& model, Fault& fault, const ReadOptions& options) {
    fault = {};
    model = {};
    Head head;
    if (!read_head(file, head, fault)) return false;
    Reader reader(file, head, fault);
    describe(reader, model);
    std::vector<uint32_t> sums;
    describe(reader, sums);
    if (!reader.is_done()) reader.refuse("bytes are left over");
    if (sums.size() != (head.content_bytes + kSummed - 1) / kSummed) reader.refuse("checksums are missing");
    if (reader.has_failed()) return false;
    if (options.checks_weights && !check_content(file.subspan(head.content_at), head.content_at, sums, fault))
        return false;
    ModelFault found = check_form(model);
    if (found.text.empty()) found = check_sizes(model, sizes_of(model));
    reader.place(found);
    return !reader.has_failed();
}

}  // namespace lunaria::lite
