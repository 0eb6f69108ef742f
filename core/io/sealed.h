// Bytes under a key in pieces of at most 64 MiB, as the reference product writes them: each piece has a head with its
// tag and its start, so that it is decrypted and checked by itself. A sealed file is such pieces one after the other.
#pragma once

#include "core/io/aes_gcm.h"
#include "core/io/file.h"

namespace lunaria {

inline constexpr uint64_t kSealedPiece = uint64_t{64} << 20, kSealedHead = 48;  // bytes

// A piece: its head, and the data under the key. No two pieces have the same start.
std::string sealed_piece(const AesGcm& cipher, std::string bytes);
// The data of the piece at a place of a source, of which it takes kSealedHead bytes more. `hint`: for the error where
// the key is another one.
std::string opened_piece(const AesGcm& cipher, const Source& source, uint64_t at, std::string_view hint);

bool is_sealed(const Source& source);
// The plain content of a sealed file, in memory only.
std::unique_ptr<Source> open_sealed(const Source& sealed, std::string_view key, std::string_view hint);

// Passes what is written on under a key. finish() is called after the last byte.
class SealingSink final : public Sink {
  public:
    SealingSink(Sink& to, std::string_view key) : Sink(to.name()), to_(to), cipher_(key) {}
    void finish();

  private:
    void write_some(const char* bytes, size_t count) override;

    Sink& to_;
    AesGcm cipher_;
    std::string piece_;
};

}  // namespace lunaria
