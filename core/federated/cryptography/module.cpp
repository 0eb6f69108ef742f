// The module lunaria_primitives: the table of primitives.h by OpenSSL's EVP interface and libsodium's ristretto255.
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sodium.h>

#include <stdexcept>

#include "core/federated/primitives.h"

namespace lunaria::federated {

// The module links nothing else of the program.
void wipe(void* bytes, size_t count) { sodium_memzero(bytes, count); }

namespace {

template <class T, void (*release)(T*)>
struct Releasing {
    void operator()(T* pointer) const { release(pointer); }
};
using Key = std::unique_ptr<EVP_PKEY, Releasing<EVP_PKEY, EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Releasing<EVP_PKEY_CTX, EVP_PKEY_CTX_free>>;
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, Releasing<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free>>;
using Digesting = std::unique_ptr<EVP_MD_CTX, Releasing<EVP_MD_CTX, EVP_MD_CTX_free>>;

// What cannot fail for valid sizes fails only without memory.
void must(bool done) {
    if (!done) throw std::runtime_error("cryptography: the library failed");
}

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

class AesCounter final : public Keystream {
  public:
    explicit AesCounter(const Secret& key) : context_(EVP_CIPHER_CTX_new()) {
        const unsigned char start[16] = {};
        must(context_ &&
             EVP_EncryptInit_ex(context_.get(), EVP_aes_256_ctr(), nullptr, key.bytes().data(), start) == 1);
    }
    void next(std::span<uint8_t> to) override {
        std::fill(to.begin(), to.end(), uint8_t{0});
        constexpr size_t kPiece = size_t{1} << 30;
        for (size_t at = 0; at < to.size(); at += kPiece) {
            int written = 0;
            const int count = static_cast<int>(std::min(kPiece, to.size() - at));
            must(EVP_EncryptUpdate(context_.get(), to.data() + at, &written, to.data() + at, count) == 1);
        }
    }

  private:
    Cipher context_;
};

class Table final : public Primitives {
  public:
    Bytes32 sha256(std::string_view bytes) const override {
        Bytes32 digest{};
        must(EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1);
        return digest;
    }
    void hkdf(std::string_view secret, std::string_view salt, std::string_view info,
              std::span<uint8_t> to) const override {
        const KeyContext context(EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr));
        size_t count = to.size();
        must(context && EVP_PKEY_derive_init(context.get()) == 1 &&
             EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()) == 1 &&
             (salt.empty() ||
              EVP_PKEY_CTX_set1_hkdf_salt(context.get(), bytes_of(salt), static_cast<int>(salt.size())) == 1) &&
             EVP_PKEY_CTX_set1_hkdf_key(context.get(), bytes_of(secret), static_cast<int>(secret.size())) == 1 &&
             EVP_PKEY_CTX_add1_hkdf_info(context.get(), bytes_of(info), static_cast<int>(info.size())) == 1 &&
             EVP_PKEY_derive(context.get(), to.data(), &count) == 1);
    }

    Bytes32 agreement_key(const Secret& secret) const override {
        Bytes32 open{};
        must(crypto_scalarmult_base(open.data(), secret.bytes().data()) == 0);
        return open;
    }
    bool agree(const Secret& secret, const Bytes32& other, Secret& shared) const override {
        return crypto_scalarmult(shared.bytes().data(), secret.bytes().data(), other.data()) == 0;
    }

    Bytes32 signing_key(const Secret& seed) const override {
        Bytes32 open{};
        size_t count = open.size();
        must(EVP_PKEY_get_raw_public_key(private_key(seed).get(), open.data(), &count) == 1);
        return open;
    }
    Bytes64 sign(const Secret& seed, std::string_view message) const override {
        Bytes64 signature{};
        size_t count = signature.size();
        const Key key = private_key(seed);
        const Digesting context(EVP_MD_CTX_new());
        must(context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
             EVP_DigestSign(context.get(), signature.data(), &count, bytes_of(message), message.size()) == 1);
        return signature;
    }
    // libsodium's, which refuses keys of small order and signatures that are not canonical.
    bool verify(const Bytes32& key, std::string_view message, const Bytes64& signature) const override {
        return crypto_sign_verify_detached(signature.data(), bytes_of(message), message.size(), key.data()) == 0;
    }

    std::string seal(const Secret& key, const Nonce& nonce, std::string_view extra,
                     std::string_view plain) const override {
        std::string sealed(plain.size() + kSealTag, '\0');
        crypto_aead_chacha20poly1305_ietf_encrypt(reinterpret_cast<unsigned char*>(sealed.data()), nullptr,
                                                  bytes_of(plain), plain.size(), bytes_of(extra), extra.size(), nullptr,
                                                  nonce.data(), key.bytes().data());
        return sealed;
    }
    bool open(const Secret& key, const Nonce& nonce, std::string_view extra, std::string_view sealed,
              std::string& plain) const override {
        plain.clear();
        if (sealed.size() < kSealTag) return false;
        plain.resize(sealed.size() - kSealTag);
        if (crypto_aead_chacha20poly1305_ietf_decrypt(reinterpret_cast<unsigned char*>(plain.data()), nullptr, nullptr,
                                                      bytes_of(sealed), sealed.size(), bytes_of(extra), extra.size(),
                                                      nonce.data(), key.bytes().data()) == 0)
            return true;
        plain.clear();
        return false;
    }

    std::unique_ptr<Keystream> keystream(const Secret& key) const override { return std::make_unique<AesCounter>(key); }

    Secret scalar(const Bytes64& bytes) const override {
        Secret result;
        crypto_core_ristretto255_scalar_reduce(result.bytes().data(), bytes.data());
        return result;
    }
    // A number below the order is left as it is when it is reduced.
    bool is_scalar(const Bytes32& bytes) const override {
        Bytes64 wide{};
        std::copy(bytes.begin(), bytes.end(), wide.begin());
        const bool same = sodium_memcmp(scalar(wide).bytes().data(), bytes.data(), bytes.size()) == 0;
        sodium_memzero(wide.data(), wide.size());
        return same;
    }
    Secret scalar_sum(const Secret& a, const Secret& b) const override {
        Secret result;
        crypto_core_ristretto255_scalar_add(result.bytes().data(), a.bytes().data(), b.bytes().data());
        return result;
    }
    Secret scalar_difference(const Secret& a, const Secret& b) const override {
        Secret result;
        crypto_core_ristretto255_scalar_sub(result.bytes().data(), a.bytes().data(), b.bytes().data());
        return result;
    }
    Secret scalar_product(const Secret& a, const Secret& b) const override {
        Secret result;
        crypto_core_ristretto255_scalar_mul(result.bytes().data(), a.bytes().data(), b.bytes().data());
        return result;
    }
    bool scalar_inverse(const Secret& a, Secret& inverse) const override {
        return crypto_core_ristretto255_scalar_invert(inverse.bytes().data(), a.bytes().data()) == 0;
    }

    bool is_point(const Bytes32& point) const override {
        return crypto_core_ristretto255_is_valid_point(point.data()) == 1;
    }
    bool base_multiple(const Secret& scalar, Bytes32& result) const override {
        return crypto_scalarmult_ristretto255_base(result.data(), scalar.bytes().data()) == 0;
    }
    bool multiple(const Secret& scalar, const Bytes32& point, Bytes32& result) const override {
        return crypto_scalarmult_ristretto255(result.data(), scalar.bytes().data(), point.data()) == 0;
    }
    bool point_sum(const Bytes32& a, const Bytes32& b, Bytes32& result) const override {
        return crypto_core_ristretto255_add(result.data(), a.data(), b.data()) == 0;
    }
    Bytes32 hashed_point(const Bytes64& hash) const override {
        Bytes32 point{};
        crypto_core_ristretto255_from_hash(point.data(), hash.data());
        return point;
    }

  private:
    static Key private_key(const Secret& seed) {
        Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.bytes().data(), seed.bytes().size()));
        must(key != nullptr);
        return key;
    }
};

}  // namespace

}  // namespace lunaria::federated

extern "C" __attribute__((visibility("default"))) const lunaria::federated::Primitives* lunaria_primitives() {
    static const lunaria::federated::Table table;
    return sodium_init() >= 0 ? &table : nullptr;
}
