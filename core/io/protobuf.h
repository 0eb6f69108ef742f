// The wire format of Protocol Buffers, in which MindIR, checkpoints and ONNX files are written. We have our own reader
// and writer, because the four kinds of fields take less code than the library's start-up costs, and because a reader
// of untrusted files needs its own bounds: lengths against the bytes that are there, depth, no groups.
#pragma once

#include <bit>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace lunaria {

class FilesInside;

// The fields of one message, front to back. The caller skips unknown ones. Every error is a file_error that begins with
// the file's name.
class ProtoReader {
  public:
    // `others`: the files that messages may name, for contents outside of this file.
    ProtoReader(std::string_view bytes, std::string_view file, FilesInside* others = nullptr)
        : rest_(bytes), file_(std::make_shared<const std::string>(file)), others_(others) {}

    // Goes to the next field; false at the end.
    bool next();
    uint32_t field() const { return field_; }
    // Whether the field's content is bytes, a text or a message.
    bool has_bytes() const { return wire_ == 2; }

    // The field's content; throws when the file has it as another kind.
    int64_t integer() const;
    bool boolean() const { return integer() != 0; }
    float float32() const;
    double float64() const;
    std::string_view bytes() const;
    std::string text() const;  // throws when it is not UTF-8
    // The message in the field; messages may be nested kDeepest times.
    ProtoReader message() const;
    // Adds all numbers of a repeated field, packed or not, to the list.
    template <class List>
    void integers(List& list) const {
        if (wire_ != 2) return list.push_back(integer());
        ProtoReader packed = *this;
        packed.rest_ = bytes_;
        while (!packed.rest_.empty()) list.push_back(static_cast<int64_t>(packed.varint()));
    }
    template <class List>
    void floats(List& list) const {
        if (wire_ == 5) return list.push_back(float32());
        packed_size(4);
        for (size_t i = 0; i < bytes_.size(); i += 4) list.push_back(std::bit_cast<float>(fixed<uint32_t>(i)));
    }
    template <class List>
    void doubles(List& list) const {
        if (wire_ == 1) return list.push_back(float64());
        packed_size(8);
        for (size_t i = 0; i < bytes_.size(); i += 8) list.push_back(std::bit_cast<double>(fixed<uint64_t>(i)));
    }

    [[noreturn]] void fail(std::string_view what) const { throw file_error(*file_, str("corrupt: ", what)); }
    const std::string& file() const { return *file_; }
    FilesInside* others() const { return others_; }

  private:
    static constexpr int kDeepest = 64;
    uint64_t varint();
    void packed_size(size_t each) const;
    template <class T>
    T fixed(size_t at) const {
        T v = 0;
        for (size_t i = 0; i < sizeof(T); ++i)
            v |= static_cast<T>(static_cast<unsigned char>(bytes_[at + i])) << (8 * i);
        return v;
    }
    std::string_view take(uint64_t count);

    std::string_view rest_;
    std::shared_ptr<const std::string> file_;  // one for all messages of a file
    FilesInside* others_;
    int depth_ = 0;
    uint32_t field_ = 0;
    int wire_ = 0;
    uint64_t number_ = 0;
    std::string_view bytes_;
};

// Writes fields into a string.
class ProtoWriter {
  public:
    ProtoWriter& integer(uint32_t field, int64_t value);
    ProtoWriter& float32(uint32_t field, float value);
    ProtoWriter& float64(uint32_t field, double value);
    ProtoWriter& bytes(uint32_t field, std::string_view value);
    ProtoWriter& message(uint32_t field, const ProtoWriter& value) { return bytes(field, value.text()); }
    const std::string& text() const { return text_; }

  private:
    void varint(uint64_t value);
    std::string text_;
};

bool is_utf8(std::string_view text);

}  // namespace lunaria
