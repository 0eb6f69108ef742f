// The light file: a head of 64 bytes, the description (all of a Model but elements and machine code), and the elements
// and code, each aligned to 64 bytes. Numbers are little-endian. The head has a CRC-32 of its own and of the
// description; the description has those of the rest, one for each MiB.
#pragma once

#include <functional>

#include "core/lite/format/model.h"

namespace lunaria::lite {

inline constexpr uint32_t kVersion = 1;

struct Fault {
    uint64_t offset = 0;  // in the file
    std::string text{};   // empty: there is none
    std::string message() const;
};

struct ReadOptions {
    bool checks_weights = true;  // compares their checksums, which reads all of them
};

// Reads a model whose constants stay where they are: `file` has to be aligned to 64 bytes, as a mapping is, and to live
// as long as the model. False: the file is damaged or of another version; `model` is then of no use.
bool read_model(std::span<const std::byte> file, Model& model, Fault& fault, const ReadOptions& options = {});

// Gives the bytes of the file to `sink` in order, until it returns false. Constants with equal
// bytes are written once. The fault of a model that cannot be written; otherwise an empty text.
std::string write_model(const Model& model, const std::function<bool(std::span<const std::byte>)>& sink);

uint32_t crc32(std::span<const std::byte> bytes, uint32_t start = 0);

}  // namespace lunaria::lite
