#include "core/lite/format/secret.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/io/aes_gcm.h"

namespace lunaria::lite {

namespace {

struct SecretHead {
    char mark[12] = {'l', 'u', 'n', 'a', 'r', 'i', 'a', ' ', 'l', 'o', 'c', 'k'};
    uint32_t version = kVersion;
    uint64_t bytes = 0;  // of the file
    char start[12] = {};
    uint8_t tag[16] = {};
    uint8_t unused[12] = {};
};
static_assert(sizeof(SecretHead) == 64);

bool is_key(std::string_view key) { return key.size() == 16 || key.size() == 24 || key.size() == 32; }

}  // namespace

bool is_encrypted(std::span<const std::byte> file) {
    const SecretHead blank;
    return file.size() >= sizeof blank && std::memcmp(file.data(), blank.mark, sizeof blank.mark) == 0;
}

bool decrypt(std::span<const std::byte> file, std::string_view key, FileBytes& plain, Fault& fault) {
    auto refuse = [&](uint64_t offset, std::string text) {
        fault = {offset, std::move(text)};
        return false;
    };
    if (!is_encrypted(file)) return refuse(0, "this is no encrypted light model");
    if (!is_key(key)) return refuse(0, "the model is encrypted: a key of 16, 24 or 32 bytes is needed");
    SecretHead head;
    std::memcpy(&head, file.data(), sizeof head);
    if (head.version != kVersion) return refuse(offsetof(SecretHead, version), "it is of another version");
    if (head.bytes != file.size() - sizeof head) return refuse(offsetof(SecretHead, bytes), "it has another length");
    if (std::ranges::any_of(head.unused, [](uint8_t b) { return b != 0; }))
        return refuse(offsetof(SecretHead, unused), "bytes that mean nothing are set");
    std::string text(reinterpret_cast<const char*>(file.data()) + sizeof head, head.bytes);
    AesGcm::Block tag;
    std::memcpy(tag.data(), head.tag, tag.size());
    if (!AesGcm(key).open(std::string_view(head.start, sizeof head.start), tag, text))
        return refuse(sizeof head, "the key is another one, or the file was changed");
    const size_t room = (text.size() + 127) / 64 * 64;
    plain.data.reset(static_cast<std::byte*>(std::aligned_alloc(64, room)));
    if (!plain.data) return refuse(sizeof head, "there is no memory for it");
    plain.size = text.size();
    std::memcpy(plain.data.get(), text.data(), text.size());
    return true;
}

std::string encrypted(std::string_view file, std::string_view key, std::string_view start) {
    SecretHead head;
    head.bytes = file.size();
    std::memcpy(head.start, start.data(), sizeof head.start);
    std::string text(file);
    const AesGcm::Block tag = AesGcm(key).seal(std::string_view(head.start, sizeof head.start), text);
    std::memcpy(head.tag, tag.data(), tag.size());
    return std::string(reinterpret_cast<const char*>(&head), sizeof head) + text;
}

std::string key_of(std::string_view digits) {
    std::string key;
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
        int byte = 0;
        for (const char c : digits.substr(i, 2)) {
            const int digit = c >= '0' && c <= '9'   ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
            if (digit < 0) return {};
            byte = byte * 16 + digit;
        }
        key += static_cast<char>(byte);
    }
    return digits.size() % 2 == 0 && is_key(key) ? key : std::string();
}

}  // namespace lunaria::lite
