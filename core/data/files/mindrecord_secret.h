// MindRecord files under a key, as the reference product encrypts them: the plain file in pieces of 64 MiB, each with
// its own check, and a mark at the end. Files are replaced whole.
#pragma once

#include <string>
#include <string_view>

#include "core/io/file.h"

namespace lunaria::data {

// The mark of the kind of encryption, 7 bytes such as "AES-GCM"; empty for a plain file.
std::string encryption_of(const std::string& path);
void encrypt_mindrecord(const std::string& path, std::string_view key);
// Writes the plain content. Throws where the file was not encrypted under this key.
void decrypt_mindrecord(const std::string& from, Sink& to, std::string_view key);

}  // namespace lunaria::data
