// Encrypted light files: a head of 64 bytes (mark, version, a start that no two files have in common, the tag), and the
// file under AES in Galois/counter mode. One wrong bit of file or key is an error; the file is decrypted in memory
// only.
#pragma once

#include <cstdlib>
#include <memory>

#include "core/lite/format/file.h"

namespace lunaria::lite {

struct FreeBytes {
    void operator()(std::byte* bytes) const { std::free(bytes); }
};
// The bytes of a file in memory, aligned to 64 bytes.
struct FileBytes {
    std::unique_ptr<std::byte, FreeBytes> data{};
    size_t size = 0;
    std::span<const std::byte> span() const { return {data.get(), size}; }
};

bool is_encrypted(std::span<const std::byte> file);
// `key`: 16, 24 or 32 bytes. False: the file is damaged, or the key is another one.
bool decrypt(std::span<const std::byte> file, std::string_view key, FileBytes& plain, Fault& fault);
// `start`: 12 random bytes.
std::string encrypted(std::string_view file, std::string_view key, std::string_view start);
// The bytes of a key in hexadecimal digits; empty where it is none.
std::string key_of(std::string_view digits);

}  // namespace lunaria::lite
