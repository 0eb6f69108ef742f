// GGUF files (llama.cpp's): texts and numbers about a model, and its weights, many of them in blocks
// (core/tensor/blocks.h). Versions 2 and 3, little-endian.
#pragma once

#include <functional>
#include <map>
#include <span>

#include "core/io/elements.h"
#include "core/io/mapping.h"
#include "core/tensor/blocks.h"
#include "core/tensor/value.h"

namespace lunaria {

// A value of the metadata, as it lies in the file.
struct GgufValue {
    enum class Type : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
    Type type = Type::u32;  // of each item
    bool is_array = false;
    uint64_t count = 1;
    // The items one after the other; before each text of an array is its length, a u64.
    std::string bytes;

    // Calls `f` for each item: a boolean, an integer, a number or a text. Integers of 64 bits without a sign wrap.
    void each(const std::function<void(const Value&)>& f) const;

    static GgufValue of(bool x);
    static GgufValue of(int64_t x);  // u32 where it fits, else i64
    static GgufValue of(double x);   // f32
    static GgufValue of(std::string_view text);
    static GgufValue array(Type type) { return {type, true, 0, {}}; }
    // Appends to an array of the type that `x` has, or of numbers: i32, i64 or f32.
    void append(const Value& x);
};
using GgufMetadata = std::vector<std::pair<std::string, GgufValue>>;

// An open file: the header is read and checked, tensors are read when they are asked for.
class GgufFile {
  public:
    enum class Contents { read, mapped };
    explicit GgufFile(const std::string& path, Contents contents = Contents::read);
    explicit GgufFile(std::unique_ptr<Source> source);

    struct Entry {
        std::string name, type;      // the type as the format calls it: "F32", "Q8_0"
        std::vector<int64_t> shape;  // of the numbers
        DType dtype = DType::u8;
        const BlockForm* form = nullptr;  // null: numbers of `dtype`
        bool supported = false;           // false: of a type that is not read
        uint64_t begin = 0, bytes = 0;    // from the start of the data
    };
    const std::vector<Entry>& entries() const { return entries_; }
    // Throws when there is no such tensor.
    const Entry& entry(const std::string& name) const;
    const GgufMetadata& metadata() const { return metadata_; }
    const GgufValue* find(std::string_view key) const;  // null where there is none

    // The numbers, or bytes in the entry's form: the last axis is then the bytes of a row. Throws for a type that is
    // not read.
    Tensor read(const Entry& entry) const;

  private:
    void check_ranges();
    std::unique_ptr<Source> source_;
    std::shared_ptr<Mapping> mapping_;  // null: contents are read; tensors share the mapping
    uint64_t data_ = 0;                 // offset of the data in the file
    std::vector<Entry> entries_;
    std::map<std::string, size_t, std::less<>> places_;
    GgufMetadata metadata_;
};

// With a form: bytes in this form, or numbers that are written in it.
struct GgufTensor {
    std::string name;
    Tensor tensor;
    const BlockForm* form = nullptr;
};
// Tensors lie in the order given; names must differ.
void write_gguf(Sink& sink, std::span<const GgufTensor> tensors, const GgufMetadata& metadata);
void write_gguf(const std::string& path, std::span<const GgufTensor> tensors, const GgufMetadata& metadata);

}  // namespace lunaria
