// Cryptography, as tested libraries have it: nothing of it is written here. The module lunaria_primitives
// (cryptography/module.cpp) implements this table by OpenSSL and libsodium, and is opened at the first use. Functions
// are pure and safe for threads; random numbers are the caller's (core/io/secure_random.h), so that tests can give
// them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lunaria::federated {

using Bytes32 = std::array<uint8_t, 32>;  // public: keys, points, digests
using Bytes64 = std::array<uint8_t, 64>;  // signatures, input of hashes to the group
using Nonce = std::array<uint8_t, 12>;    // never twice under one key
inline constexpr size_t kSealTag = 16;    // bytes that sealing adds

// Overwrites memory in a way that no compiler removes.
void wipe(void* bytes, size_t count);
void wipe(std::string& text);

// 32 bytes that stay with their owner: wiped when they are no longer needed. A key, a scalar, a seed.
class Secret {
  public:
    Secret() = default;
    explicit Secret(const Bytes32& bytes) : bytes_(bytes) {}
    Secret(const Secret&) = default;
    Secret& operator=(const Secret&) = default;
    ~Secret() { wipe(bytes_.data(), bytes_.size()); }

    // Of the system's cryptographic generator.
    static Secret random(std::string_view where);
    // Of the first 32 bytes of a text, which has as many.
    static Secret of(std::string_view bytes);

    Bytes32& bytes() { return bytes_; }
    const Bytes32& bytes() const { return bytes_; }
    std::string_view view() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

  private:
    Bytes32 bytes_{};
};

template <size_t n>
std::string_view view_of(const std::array<uint8_t, n>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), n};
}

// The bytes of a stream cipher, one after the other.
class Keystream {
  public:
    virtual ~Keystream() = default;
    virtual void next(std::span<uint8_t> to) = 0;
};

class Primitives {
  public:
    virtual ~Primitives() = default;

    virtual Bytes32 sha256(std::string_view bytes) const = 0;
    // HKDF with SHA-256 (RFC 5869); at most 255 · 32 bytes.
    virtual void hkdf(std::string_view secret, std::string_view salt, std::string_view info,
                      std::span<uint8_t> to) const = 0;

    // X25519 (RFC 7748). False: the other key has an order that gives away the result.
    virtual Bytes32 agreement_key(const Secret& secret) const = 0;
    virtual bool agree(const Secret& secret, const Bytes32& other, Secret& shared) const = 0;

    // Ed25519 (RFC 8032); the secret is the seed.
    virtual Bytes32 signing_key(const Secret& seed) const = 0;
    virtual Bytes64 sign(const Secret& seed, std::string_view message) const = 0;
    virtual bool verify(const Bytes32& key, std::string_view message, const Bytes64& signature) const = 0;

    // ChaCha20-Poly1305 (RFC 8439): the sealed text, then its tag. `extra` is authenticated and not sent.
    virtual std::string seal(const Secret& key, const Nonce& nonce, std::string_view extra,
                             std::string_view plain) const = 0;
    // False: not sealed under this key with this nonce and extra, or changed; `plain` is then empty.
    virtual bool open(const Secret& key, const Nonce& nonce, std::string_view extra, std::string_view sealed,
                      std::string& plain) const = 0;

    // AES-256 in counter mode from counter 0. A key serves one stream.
    virtual std::unique_ptr<Keystream> keystream(const Secret& key) const = 0;

    // Numbers modulo the prime order of ristretto255, about 2^252, 32 bytes with the low byte first.
    virtual Secret scalar(const Bytes64& bytes) const = 0;   // 64 random bytes, reduced: as good as uniform
    virtual bool is_scalar(const Bytes32& bytes) const = 0;  // below the order
    virtual Secret scalar_sum(const Secret& a, const Secret& b) const = 0;
    virtual Secret scalar_difference(const Secret& a, const Secret& b) const = 0;
    virtual Secret scalar_product(const Secret& a, const Secret& b) const = 0;
    // False where a is 0.
    virtual bool scalar_inverse(const Secret& a, Secret& inverse) const = 0;

    // Points of ristretto255, a group of that order. False: the bytes are no point, or the result is the neutral one.
    virtual bool is_point(const Bytes32& point) const = 0;
    virtual bool base_multiple(const Secret& scalar, Bytes32& result) const = 0;
    virtual bool multiple(const Secret& scalar, const Bytes32& point, Bytes32& result) const = 0;
    virtual bool point_sum(const Bytes32& a, const Bytes32& b, Bytes32& result) const = 0;
    // A point whose logarithm is unknown, by 64 bytes of a hash.
    virtual Bytes32 hashed_point(const Bytes64& hash) const = 0;
};

// The module's, opened at the first call. Throws a state_error of `where` when the libraries are not installed.
const Primitives& primitives(std::string_view where);

// What the module defines; null where libsodium cannot be set up.
inline constexpr const char* kPrimitivesSymbol = "lunaria_primitives";
using PrimitivesFunction = const Primitives* (*)();

}  // namespace lunaria::federated
