#include "core/io/sealed.h"

#include <algorithm>
#include <random>

#include "core/base/interrupt.h"

namespace lunaria {

namespace {

constexpr uint32_t kMagic = 0x7f3a5ed8;
constexpr size_t kStart = 16;  // bytes

// The head of a piece: the magic number, the tag, the number of bytes after these two and itself, the start with its
// length, the length of the data; all numbers with the lowest byte first.
struct Head {
    uint32_t magic = kMagic;
    AesGcm::Block tag{};
    uint32_t rest = 0, start_size = kStart;
    std::array<uint8_t, kStart> start{};
    uint32_t size = 0;
};
static_assert(sizeof(Head) == kSealedHead);

// The reference product stores 16 bytes of the start and uses only as many as the counter mode takes.
std::string_view text_of(const std::array<uint8_t, kStart>& start) {
    return {reinterpret_cast<const char*>(start.data()), 12};
}

class PlainSource final : public Source {
  public:
    PlainSource(std::string name, std::string bytes)
        : Source(std::move(name), bytes.size()), bytes_(std::move(bytes)) {}

  private:
    void read_some(uint64_t offset, char* to, size_t count) const override {
        std::copy_n(bytes_.data() + offset, count, to);
    }
    std::string bytes_;
};

}  // namespace

std::string sealed_piece(const AesGcm& cipher, std::string bytes) {
    std::random_device chance;
    Head head;
    for (uint8_t& byte : head.start) byte = static_cast<uint8_t>(chance());
    head.size = static_cast<uint32_t>(bytes.size());
    head.rest = head.size + kStart + 8;
    head.tag = cipher.seal(text_of(head.start), bytes);
    return std::string(reinterpret_cast<const char*>(&head), sizeof head) + bytes;
}

std::string opened_piece(const AesGcm& cipher, const Source& source, uint64_t at, std::string_view hint) {
    Head head;
    if (source.size() - at < sizeof head) throw source.error("corrupt: a piece goes past its end");
    source.read(at, &head, sizeof head);
    if (head.magic != kMagic || head.start_size != kStart) throw source.error("corrupt: a piece has another form");
    if (head.size > source.size() - at - sizeof head) throw source.error("corrupt: a piece goes past its end");
    std::string bytes = source.text(at + sizeof head, head.size);
    if (!cipher.open(text_of(head.start), head.tag, bytes))
        throw source.error("cannot be decrypted: the key is another one, or the file is damaged")
            .hint(std::string(hint));
    return bytes;
}

bool is_sealed(const Source& source) {
    uint32_t magic = 0;
    if (source.size() < kSealedHead) return false;
    source.read(0, &magic, sizeof magic);
    return magic == kMagic;
}

std::unique_ptr<Source> open_sealed(const Source& sealed, std::string_view key, std::string_view hint) {
    if (!is_sealed(sealed)) throw sealed.error("is not encrypted").hint("read it without a key");
    const AesGcm cipher(key);
    std::string plain;
    for (uint64_t at = 0; at < sealed.size();) {
        poll_interrupt();
        const std::string bytes = opened_piece(cipher, sealed, at, hint);
        plain += bytes;
        at += kSealedHead + bytes.size();
    }
    return std::make_unique<PlainSource>(sealed.name(), std::move(plain));
}

void SealingSink::write_some(const char* bytes, size_t count) {
    while (count > 0) {
        const size_t some = std::min<size_t>(count, kSealedPiece - piece_.size());
        piece_.append(bytes, some);
        bytes += some;
        count -= some;
        if (piece_.size() == kSealedPiece) finish();
    }
}

void SealingSink::finish() {
    if (piece_.empty()) return;
    to_.write(sealed_piece(cipher_, std::move(piece_)));
    piece_ = {};
}

}  // namespace lunaria
