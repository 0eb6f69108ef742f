#include "core/io/aes_gcm.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/error.h"

namespace lunaria {

namespace {

uint8_t doubled(uint8_t x) { return static_cast<uint8_t>(x << 1 ^ (x & 0x80 ? 0x1b : 0)); }

struct Tables {
    std::array<uint8_t, 256> substitute{};
    // The column of a round for each value of a byte: substituted and mixed.
    std::array<std::array<uint32_t, 256>, 4> mixed{};

    Tables() {
        // Walks through the powers p of 3, which are all bytes but 0, and their inverses q, the powers of the inverse
        // of 3.
        uint8_t p = 1, q = 1;
        do {
            p = static_cast<uint8_t>(p ^ doubled(p));
            q = static_cast<uint8_t>(q ^ q << 1);
            q = static_cast<uint8_t>(q ^ q << 2);
            q = static_cast<uint8_t>(q ^ q << 4);
            if (q & 0x80) q ^= 0x09;
            substitute[p] =
                static_cast<uint8_t>(q ^ std::rotl(q, 1) ^ std::rotl(q, 2) ^ std::rotl(q, 3) ^ std::rotl(q, 4) ^ 0x63);
        } while (p != 1);
        substitute[0] = 0x63;
        for (size_t i = 0; i < 256; ++i) {
            const uint8_t s = substitute[i], two = doubled(s);
            const uint32_t column = static_cast<uint32_t>(two) << 24 | static_cast<uint32_t>(s) << 16 |
                                    static_cast<uint32_t>(s) << 8 | static_cast<uint32_t>(two ^ s);
            for (int k = 0; k < 4; ++k) mixed[static_cast<size_t>(k)][i] = std::rotr(column, 8 * k);
        }
    }
};

const Tables& tables() {
    static const Tables instance;
    return instance;
}

uint32_t load32(const uint8_t* p) {
    return static_cast<uint32_t>(p[0]) << 24 | static_cast<uint32_t>(p[1]) << 16 | static_cast<uint32_t>(p[2]) << 8 |
           p[3];
}
void store32(uint8_t* p, uint32_t v) {
    for (int k = 0; k < 4; ++k) p[k] = static_cast<uint8_t>(v >> (24 - 8 * k));
}
uint64_t load64(const uint8_t* p) { return static_cast<uint64_t>(load32(p)) << 32 | load32(p + 4); }
void store64(uint8_t* p, uint64_t v) {
    store32(p, static_cast<uint32_t>(v >> 32));
    store32(p + 4, static_cast<uint32_t>(v));
}

uint32_t substituted(uint32_t word) {
    const auto& s = tables().substitute;
    return static_cast<uint32_t>(s[word >> 24]) << 24 | static_cast<uint32_t>(s[word >> 16 & 255]) << 16 |
           static_cast<uint32_t>(s[word >> 8 & 255]) << 8 | s[word & 255];
}

}  // namespace

AesGcm::AesGcm(std::string_view key) {
    if (key.size() != 16 && key.size() != 24 && key.size() != 32)
        throw argument_error("AES", str("the key must have 16, 24 or 32 bytes, not ", key.size()));
    const size_t length = key.size() / 4;
    rounds_ = static_cast<int>(length) + 6;
    for (size_t i = 0; i < length; ++i) words_[i] = load32(reinterpret_cast<const uint8_t*>(key.data()) + 4 * i);
    uint8_t constant = 1;
    for (size_t i = length; i < 4 * static_cast<size_t>(rounds_ + 1); ++i) {
        uint32_t word = words_[i - 1];
        if (i % length == 0) {
            word = substituted(std::rotl(word, 8)) ^ static_cast<uint32_t>(constant) << 24;
            constant = doubled(constant);
        } else if (length > 6 && i % length == 4) {
            word = substituted(word);
        }
        words_[i] = words_[i - length] ^ word;
    }
    // In this field the first bit is that of the constant: multiplying by x shifts to the right.
    const Block zero = encrypted({});
    Element h{load64(zero.data()), load64(zero.data() + 8)};
    for (size_t bit = 8; bit > 0; bit /= 2) {
        multiples_[bit] = h;
        const uint64_t out = h.low & 1;
        h.low = h.low >> 1 | h.high << 63;
        h.high = h.high >> 1 ^ (out ? 0xe100000000000000 : 0);
    }
    for (size_t i = 1; i < 16; ++i) {
        const size_t top = std::bit_floor(i);
        if (top != i)
            multiples_[i] = {multiples_[top].high ^ multiples_[i - top].high,
                             multiples_[top].low ^ multiples_[i - top].low};
        for (size_t bit = 0; bit < 4; ++bit)
            if (i >> bit & 1) remainders_[i] ^= 0xe100000000000000 >> (3 - bit);
    }
}

AesGcm::Block AesGcm::encrypted(const Block& block) const {
    const auto& mixed = tables().mixed;
    std::array<uint32_t, 4> s{}, t{};
    for (size_t i = 0; i < 4; ++i) s[i] = load32(block.data() + 4 * i) ^ words_[i];
    size_t w = 4;
    for (int round = 1; round < rounds_; ++round, w += 4) {
        for (size_t i = 0; i < 4; ++i)
            t[i] = mixed[0][s[i] >> 24] ^ mixed[1][s[(i + 1) % 4] >> 16 & 255] ^ mixed[2][s[(i + 2) % 4] >> 8 & 255] ^
                   mixed[3][s[(i + 3) % 4] & 255] ^ words_[w + i];
        s = t;
    }
    Block out{};
    for (size_t i = 0; i < 4; ++i) {
        const uint32_t word =
            (s[i] & 0xff000000) | (s[(i + 1) % 4] & 0xff0000) | (s[(i + 2) % 4] & 0xff00) | (s[(i + 3) % 4] & 0xff);
        store32(out.data() + 4 * i, substituted(word) ^ words_[w + i]);
    }
    return out;
}

AesGcm::Element AesGcm::times_key(Element x) const {
    Element z;
    for (int i = 0; i < 32; ++i) {
        const uint64_t word = i < 16 ? x.low : x.high;
        const uint64_t out = z.low & 15;
        z.low = z.low >> 4 | z.high << 60;
        z.high = z.high >> 4 ^ remainders_[out];
        const Element& m = multiples_[word >> (4 * (i % 16)) & 15];
        z.high ^= m.high;
        z.low ^= m.low;
    }
    return z;
}

AesGcm::Element AesGcm::hash(std::string_view bytes, uint64_t before, uint64_t bits) const {
    Element y;
    for (size_t at = 0; at < bytes.size(); at += 16) {
        Block block{};
        std::memcpy(block.data(), bytes.data() + at, std::min<size_t>(16, bytes.size() - at));
        y = times_key({y.high ^ load64(block.data()), y.low ^ load64(block.data() + 8)});
    }
    return times_key({y.high ^ before, y.low ^ bits});
}

AesGcm::Block AesGcm::first_counter(std::string_view start) const {
    Block counter{};
    if (start.size() == 12) {
        std::memcpy(counter.data(), start.data(), 12);
        counter[15] = 1;
        return counter;
    }
    const Element y = hash(start, 0, 8 * start.size());
    store64(counter.data(), y.high);
    store64(counter.data() + 8, y.low);
    return counter;
}

// Mixes the bytes with the blocks behind this counter.
void AesGcm::count(Block counter, std::string& bytes) const {
    for (size_t at = 0; at < bytes.size(); at += 16) {
        store32(counter.data() + 12, load32(counter.data() + 12) + 1);
        const Block key = encrypted(counter);
        for (size_t k = 0; k < 16 && at + k < bytes.size(); ++k)
            bytes[at + k] = static_cast<char>(static_cast<uint8_t>(bytes[at + k]) ^ key[k]);
    }
}

AesGcm::Block AesGcm::tag_of(const Block& counter, std::string_view bytes) const {
    const Element y = hash(bytes, 0, 8 * bytes.size());
    const Block key = encrypted(counter);
    Block tag{};
    store64(tag.data(), y.high ^ load64(key.data()));
    store64(tag.data() + 8, y.low ^ load64(key.data() + 8));
    return tag;
}

AesGcm::Block AesGcm::seal(std::string_view start, std::string& bytes) const {
    const Block counter = first_counter(start);
    count(counter, bytes);
    return tag_of(counter, bytes);
}

bool AesGcm::open(std::string_view start, const Block& tag, std::string& bytes) const {
    const Block counter = first_counter(start);
    if (tag_of(counter, bytes) != tag) return false;
    count(counter, bytes);
    return true;
}

}  // namespace lunaria
