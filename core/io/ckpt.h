// MindSpore's .ckpt files: protobuf messages, one after the other, each with the name of a tensor and the tensor, and
// at the end, optionally, a checksum of the rest.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <variant>

#include "core/io/elements.h"

namespace lunaria {

// A tensor, or a text that was appended.
using CkptValue = std::variant<Tensor, std::string>;
using NamedCkptValue = std::pair<std::string, CkptValue>;

// The treatment of a file's checksum: compare it if there is one, require it, or ignore it.
enum class CkptCheck { present, required, never };

// An open file: its structure is read and checked, contents are read when they are asked for.
class CkptFile {
  public:
    explicit CkptFile(const std::string& path, CkptCheck check = CkptCheck::present)
        : CkptFile(open_source(path), check) {}
    explicit CkptFile(std::unique_ptr<Source> source, CkptCheck check = CkptCheck::present);

    // In the order of the file.
    std::vector<std::string> names() const;
    // Throws when there is nothing of this name, or when tensors cannot have its type.
    CkptValue read(const std::string& name) const;
    std::vector<NamedCkptValue> read_all() const;

    // A value may be cut into pieces, which follow each other in the file but need not touch.
    struct Piece {
        uint64_t offset = 0, bytes = 0;
    };
    struct Entry {
        std::string name, type;
        std::vector<int64_t> dims;
        std::vector<Piece> pieces;
        uint64_t offset = 0;  // of the entry, for messages
        uint64_t bytes() const;
    };

  private:
    void add(Entry entry);
    CkptValue read(const Entry& entry) const;

    std::unique_ptr<Source> source_;
    std::vector<Entry> entries_;
    std::map<std::string, size_t, std::less<>> places_;
};

// Values lie in the order given; names must differ and be UTF-8. `checksum`: one is appended.
void write_ckpt(const std::string& path, std::span<const NamedCkptValue> values, bool checksum = false);
void write_ckpt(Sink& sink, std::span<const NamedCkptValue> values, bool checksum = false);

}  // namespace lunaria
