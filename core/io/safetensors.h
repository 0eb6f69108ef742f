// Hugging Face's .safetensors files. We hold a file to the letter of the format: where the common library is lenient
// (repeated names, a header that starts with a space) we refuse.
#pragma once

#include <map>
#include <span>

#include "core/io/elements.h"
#include "core/io/mapping.h"

namespace lunaria {

// An open file: the header is read and checked, tensors are read when they are asked for.
class SafetensorsFile {
  public:
    // The way to contents: read, or mapped where their alignment allows it (core/io/mapping.h).
    enum class Contents { read, mapped };
    explicit SafetensorsFile(const std::string& path, Contents contents = Contents::read)
        : SafetensorsFile(open_source(path)) {
        if (contents == Contents::mapped) map();
    }
    explicit SafetensorsFile(std::unique_ptr<Source> source);

    // In the order of the header.
    std::vector<std::string> names() const;
    const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
    // Throws when there is no such tensor, or its type is one that tensors do not have.
    Tensor read(const std::string& name) const;
    std::vector<NamedTensor> read_all() const;

    struct Entry {
        std::string name, dtype;
        std::vector<int64_t> shape;
        uint64_t begin = 0, end = 0;  // from the start of the data
    };
    const Source& source() const { return *source_; }
    const std::vector<Entry>& entries() const { return entries_; }
    // The offset in the file at which the data start.
    uint64_t data() const { return data_; }
    // Throws when tensors do not have the entry's type, or not so many axes.
    DType dtype_of(const Entry& entry) const;

  private:
    Tensor read(const Entry& entry) const;
    void map();
    std::unique_ptr<Source> source_;
    std::shared_ptr<Mapping> mapping_;  // null: contents are read; tensors share the mapping
    uint64_t data_ = 0;                 // offset of the data in the file
    std::vector<Entry> entries_;
    std::map<std::string, size_t, std::less<>> places_;
    std::vector<std::pair<std::string, std::string>> metadata_;
};

inline std::vector<NamedTensor> read_safetensors(const std::string& path) { return SafetensorsFile(path).read_all(); }

using Metadata = std::vector<std::pair<std::string, std::string>>;
// Tensors lie in the order given; names must differ and be UTF-8.
void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata = {});
void write_safetensors(Sink& sink, std::span<const NamedTensor> tensors, const Metadata& metadata = {});

}  // namespace lunaria
