// NumPy's .npz files: zip archives of .npy files.
#pragma once

#include <span>

#include "core/io/npy.h"
#include "core/io/zip.h"

namespace lunaria {

// An open archive. Members are read when they are asked for, so that an unreadable one does not spoil the others.
class NpzFile {
  public:
    explicit NpzFile(const std::string& path) : NpzFile(open_source(path)) {}
    explicit NpzFile(std::unique_ptr<Source> source);
    // Without ".npy", in the order of the archive.
    const std::vector<std::string>& names() const { return names_; }
    // Throws when there is no such member. Arrays of texts are values that are no tensors (see read_npy_value).
    Value read(const std::string& name) const;
    // The members that are tensors.
    std::vector<NamedTensor> read_all() const;

  private:
    std::unique_ptr<Source> source_;
    std::vector<std::string> names_;
    std::vector<ZipMember> members_;
};

inline std::vector<NamedTensor> read_npz(const std::string& path) { return NpzFile(path).read_all(); }

void write_npz(const std::string& path, std::span<const NamedTensor> tensors, bool compressed = false);
void write_npz(Sink& sink, std::span<const NamedTensor> tensors, bool compressed = false);

}  // namespace lunaria
