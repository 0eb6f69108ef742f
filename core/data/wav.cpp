#include "core/data/wav.h"

#include <cstring>

#include "core/error.h"

namespace lunaria::data {

namespace {

class Wav {
  public:
    explicit Wav(std::string_view bytes) : bytes_(bytes) {
        if (bytes.size() < 12 || bytes.substr(0, 4) != "RIFF" || bytes.substr(8, 4) != "WAVE")
            fail("it does not begin as one");
        for (size_t at = 12; at + 8 <= bytes.size();) {
            const std::string_view name = bytes.substr(at, 4);
            const size_t size = number<uint32_t>(at + 4), begin = at + 8;
            if (name == "data") {
                if (channels_ == 0) fail("its samples come before their format");
                if (size > bytes.size() - begin) fail("its samples go past the end");
                take(bytes.substr(begin, size));
                return;
            }
            if (size > bytes.size() - begin) fail("a part goes past the end");
            if (name == "fmt ") format(begin, size);
            at = begin + size + size % 2;
        }
        fail("it has no samples");
    }
    Tensor samples;
    int64_t rate = 0;

  private:
    [[noreturn]] static void fail(std::string_view what) {
        throw value_error("DecodeWav", str("the bytes are no WAV file that can be read: ", what));
    }
    template <class T>
    T number(size_t at) const {
        T value;
        std::memcpy(&value, bytes_.data() + at, sizeof value);
        return value;
    }
    void format(size_t at, size_t size) {
        if (size < 16) fail("its format is too short");
        int kind = number<uint16_t>(at);
        channels_ = number<uint16_t>(at + 2);
        rate = number<uint32_t>(at + 4);
        bits_ = number<uint16_t>(at + 14);
        // The kind is told further behind.
        if (kind == 0xFFFE && size >= 26) kind = number<uint16_t>(at + 24);
        float_ = kind == 3;
        const bool known =
            float_ ? bits_ == 32 : kind == 1 && (bits_ == 8 || bits_ == 16 || bits_ == 24 || bits_ == 32);
        if (channels_ == 0 || rate == 0 || rate > INT32_MAX || !known) fail("its format is not known");
    }
    void take(std::string_view data) {
        const size_t each = static_cast<size_t>(bits_ / 8);
        const int64_t count = static_cast<int64_t>(data.size() / (each * static_cast<size_t>(channels_)));
        samples = Tensor::empty(DType::f32, {channels_, count});
        float* to = samples.data<float>();
        const char* p = data.data();
        for (int64_t i = 0; i < count; ++i)
            for (int64_t c = 0; c < channels_; ++c, p += each) to[c * count + i] = one(p);
    }
    float one(const char* p) const {
        if (float_) {
            float value;
            std::memcpy(&value, p, 4);
            return value;
        }
        // Bytes are from 0 on, wider samples signed.
        if (bits_ == 8) return (static_cast<float>(static_cast<unsigned char>(*p)) - 128) / 128;
        int32_t value = 0;
        const int bytes = bits_ / 8;
        std::memcpy(reinterpret_cast<char*>(&value) + 4 - bytes, p, static_cast<size_t>(bytes));
        return static_cast<float>(static_cast<double>(value) / 2147483648.0);
    }
    std::string_view bytes_;
    int64_t channels_ = 0;
    int bits_ = 0;
    bool float_ = false;
};

class WavDecoder final : public Transform {
  public:
    WavDecoder() : Transform("DecodeWav") {}
    size_t results(size_t inputs) const override {
        if (inputs != 1) throw argument_error(name(), str("takes one column, got ", inputs));
        return 2;
    }
    void apply(Row& row, RowDraws&) const override {
        if (!row[0].is_tensor() || row[0].tensor().dtype() != DType::u8)
            throw argument_error(name(), "the bytes of a file are expected");
        const Tensor bytes = row[0].tensor().contiguous();
        Wav wav({static_cast<const char*>(bytes.raw()), bytes.nbytes()});
        row = {Value(wav.samples), Value(Tensor::scalar(DType::i32, static_cast<double>(wav.rate)))};
    }
};

class TextSplitter final : public Transform {
  public:
    TextSplitter() : Transform("TextSplitter") {}
    void apply(Row& row, RowDraws&) const override {
        std::string_view text = row[0].string();
        std::vector<Value> list;
        for (size_t at = 0; (at = text.find('\0')) != std::string_view::npos; text.remove_prefix(at + 1))
            list.emplace_back(text.substr(0, at));
        list.emplace_back(text);
        row[0] = Value::list(std::move(list));
    }
};

}  // namespace

TransformPtr text_splitter() { return std::make_shared<TextSplitter>(); }

TransformPtr wav_decoder() { return std::make_shared<WavDecoder>(); }

}  // namespace lunaria::data
