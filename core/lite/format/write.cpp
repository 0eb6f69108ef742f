#include <bit>
#include <cstring>
#include <map>

#include "core/lite/format/check.h"
#include "core/lite/format/describe.h"
#include "core/lite/format/file.h"
#include "core/lite/format/head.h"
#include "core/lite/format/sizes.h"

namespace lunaria::lite {

namespace {

struct Stored {
    const std::byte* data;
    uint64_t bytes;
};

class Writer : public Archive {
  public:
    static constexpr bool kReads = false;
    std::string text{};
    std::vector<Stored> contents{};
    uint64_t content_bytes = 0;

    void number(uint64_t v) {
        for (; v >= 0x80; v >>= 7) text += static_cast<char>(v | 0x80);
        text += static_cast<char>(v);
    }
    void operator()(std::string& v) {
        number(v.size());
        text += v;
    }
    void operator()(double& v) {
        char bytes[8];
        std::memcpy(bytes, &v, 8);
        text.append(bytes, 8);
    }
    template <class T>
    void at(const T&) {}
    void stored(const std::byte* data, uint64_t bytes) {
        number(bytes);
        if (bytes == 0) return;
        number(place_of({data, bytes}) / kAlignment);
    }

  private:
    // Where the bytes are stored: equal ones, such as weights that two layers have in common, are stored once.
    uint64_t place_of(const Stored& stored) {
        const auto [known, is_new] = places_.try_emplace({stored.data, stored.bytes}, content_bytes);
        if (!is_new) return known->second;
        const std::pair key(crc32({stored.data, stored.bytes}), stored.bytes);
        for (auto [at, end] = equal_.equal_range(key); at != end; ++at)
            if (std::memcmp(at->second.first, stored.data, stored.bytes) == 0) return known->second = at->second.second;
        equal_.emplace(key, std::pair(stored.data, content_bytes));
        contents.push_back(stored);
        content_bytes += padded(stored.bytes);
        return known->second;
    }
    std::map<std::pair<const std::byte*, uint64_t>, uint64_t> places_;
    std::multimap<std::pair<uint32_t, uint64_t>, std::pair<const std::byte*, uint64_t>> equal_;  // by checksum and size
};

// The content in its place, with zeros up to the next multiple of 64.
class Content {
  public:
    explicit Content(std::span<const Stored> parts) : parts_(parts) {}
    // f(bytes) for each run of bytes in order; until it returns false.
    template <class F>
    bool each(F&& f) const {
        static constexpr std::byte kZeros[kAlignment]{};
        for (const Stored& part : parts_)
            if (!f(std::span(part.data, part.bytes)) || !f(std::span(kZeros).first(padded(part.bytes) - part.bytes)))
                return false;
        return true;
    }
    std::vector<uint32_t> sums() const {
        std::vector<uint32_t> sums;
        uint64_t at = 0;
        each([&](std::span<const std::byte> bytes) {
            while (!bytes.empty()) {
                if (at % kSummed == 0) sums.push_back(0);
                const auto part = bytes.first(std::min<uint64_t>(bytes.size(), kSummed - at % kSummed));
                sums.back() = crc32(part, sums.back());
                at += part.size();
                bytes = bytes.subspan(part.size());
            }
            return true;
        });
        return sums;
    }

  private:
    std::span<const Stored> parts_;
};

std::string place_of(const Model& model, const ModelFault& fault) {
    if (fault.step != kNone) {
        const Step& s = model.steps[fault.step];
        return "step " + std::to_string(fault.step) + " (" + s.kind + " " + s.label + "): ";
    }
    return fault.value == kNone ? "" : "value " + std::to_string(fault.value) + ": ";
}

}  // namespace

std::string write_model(const Model& model, const std::function<bool(std::span<const std::byte>)>& sink) {
    ModelFault fault = check_form(model);
    if (fault.text.empty()) fault = check_sizes(model, sizes_of(model));
    if (!fault.text.empty()) return place_of(model, fault) + fault.text;
    Writer writer;
    describe(writer, const_cast<Model&>(model));  // a writer changes nothing
    const Content content(writer.contents);
    std::vector<uint32_t> sums = content.sums();
    describe(writer, sums);
    Head head;
    head.description_bytes = writer.text.size();
    head.content_at = padded(sizeof(Head) + writer.text.size());
    head.content_bytes = writer.content_bytes;
    head.file_bytes = head.content_at + head.content_bytes;
    writer.text.resize(head.content_at - sizeof(Head), '\0');
    head.description_sum = crc32(std::as_bytes(std::span(writer.text)));
    head.sum = sum_of(head);
    const bool done =
        sink(std::as_bytes(std::span(&head, 1))) && sink(std::as_bytes(std::span(writer.text))) && content.each(sink);
    return done ? "" : "it could not be written";
}

}  // namespace lunaria::lite
