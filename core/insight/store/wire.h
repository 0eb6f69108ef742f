// The fields of a Protocol Buffers message in memory, without copies and without exceptions: files of events are gone
// through a million messages at a time, most of which are looked at for one number.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lunaria::insight {

class Wire {
  public:
    explicit Wire(std::string_view bytes) : rest_(bytes) {}

    // Goes to the next field; false at the end, and where the bytes are no message.
    bool next() {
        if (rest_.empty() || broken_) return false;
        const uint64_t key = varint();
        field = static_cast<uint32_t>(key >> 3);
        type = static_cast<int>(key & 7);
        switch (type) {
            case 0:
                number = varint();
                break;
            case 1:
                bytes = take(8);
                break;
            case 2:
                bytes = take(varint());
                break;
            case 5:
                bytes = take(4);
                break;
            default:
                broken_ = true;
        }
        return !broken_;
    }
    bool broken() const { return broken_; }

    // The value of the field that next() came to; 0 or nothing where its kind is another.
    double float64() const {
        if (type == 1) return fixed<double>();
        return type == 5 ? static_cast<double>(fixed<float>()) : 0;
    }
    int64_t integer() const { return type == 0 ? static_cast<int64_t>(number) : 0; }
    std::string_view text() const { return type == 2 ? bytes : std::string_view(); }

    uint32_t field = 0;
    int type = 0;
    uint64_t number = 0;     // of a varint
    std::string_view bytes;  // of all other kinds

  private:
    template <class T>
    T fixed() const {
        T value;
        std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    }
    uint64_t varint() {
        uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (rest_.empty()) break;
            const auto byte = static_cast<unsigned char>(rest_.front());
            rest_.remove_prefix(1);
            value |= static_cast<uint64_t>(byte & 127) << shift;
            if (byte < 128) return value;
        }
        broken_ = true;
        return 0;
    }
    std::string_view take(uint64_t count) {
        if (broken_ || count > rest_.size()) {
            broken_ = true;
            return {};
        }
        const std::string_view taken = rest_.substr(0, static_cast<size_t>(count));
        rest_.remove_prefix(static_cast<size_t>(count));
        return taken;
    }

    std::string_view rest_;
    bool broken_ = false;
};

}  // namespace lunaria::insight
