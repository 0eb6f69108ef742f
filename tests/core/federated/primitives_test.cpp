// The module against the vectors of the standards that it implements.
#include "core/federated/primitives.h"

#include <gtest/gtest.h>

namespace lunaria::federated {
namespace {

std::string unhex(std::string_view text) {
    std::string bytes;
    for (size_t i = 0; i + 1 < text.size(); i += 2)
        bytes += static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
    return bytes;
}

template <size_t n>
std::array<uint8_t, n> array_of(std::string_view hex) {
    const std::string bytes = unhex(hex);
    std::array<uint8_t, n> result{};
    std::copy(bytes.begin(), bytes.end(), result.begin());
    return result;
}

const Primitives& table() { return primitives("test"); }

TEST(Primitives, Agreement_of_keys_as_RFC_7748) {
    // Bob's key is the standard's; the other one and what is shared are of OpenSSL.
    const Secret alice(array_of<32>(std::string(64, '0').replace(1, 1, "7")));
    const Secret bob(array_of<32>("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"));
    EXPECT_EQ(table().agreement_key(bob),
              array_of<32>("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"));
    Secret one, two;
    EXPECT_TRUE(table().agree(alice, table().agreement_key(bob), one));
    EXPECT_TRUE(table().agree(bob, table().agreement_key(alice), two));
    EXPECT_EQ(one.bytes(), two.bytes());
    EXPECT_EQ(one.bytes(), array_of<32>("ab2a7f429c57e360bc4cd2fb11de5252acfac68bf075cd64c4f59009aa604f31"));
    EXPECT_FALSE(table().agree(alice, Bytes32{}, one));  // a point of small order
}

TEST(Primitives, Signatures_as_RFC_8032) {
    const Secret seed(array_of<32>("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"));
    const Bytes32 key = table().signing_key(seed);
    EXPECT_EQ(key, array_of<32>("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"));
    Bytes64 signature = table().sign(seed, "");
    EXPECT_EQ(signature,
              array_of<64>("e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e3"
                           "9701cf9b46bd25bf5f0595bbe24655141438e7a100b"));
    EXPECT_TRUE(table().verify(key, "", signature));
    EXPECT_FALSE(table().verify(key, "x", signature));
    signature[5] ^= 1;
    EXPECT_FALSE(table().verify(key, "", signature));
}

TEST(Primitives, Keys_out_of_secrets_as_RFC_5869) {
    Bytes32 out{};
    table().hkdf(unhex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"), unhex("000102030405060708090a0b0c"),
                 unhex("f0f1f2f3f4f5f6f7f8f9"), out);
    EXPECT_EQ(out, array_of<32>("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"));
    table().hkdf(unhex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"), "", "", out);
    EXPECT_EQ(out, array_of<32>("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"));
}

TEST(Primitives, Digests_and_streams) {
    EXPECT_EQ(table().sha256("abc"), array_of<32>("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    // AES-256 of a counter block of zeros under a key of zeros, and the parts of a stream are the stream.
    std::array<uint8_t, 32> together{}, part{};
    table().keystream(Secret())->next(together);
    EXPECT_EQ(std::string(view_of(together).substr(0, 16)), unhex("dc95c078a2408989ad48a21492842087"));
    const auto stream = table().keystream(Secret());
    stream->next(std::span(part).first(5));
    stream->next(std::span(part).subspan(5));
    EXPECT_EQ(together, part);
}

TEST(Primitives, Sealed_texts_open_unchanged_only) {
    const Secret key(array_of<32>("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"));
    const Nonce nonce = array_of<12>("070000004041424344454647");
    const std::string extra = unhex("50515253c0c1c2c3c4c5c6c7");
    const std::string plain =
        "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would "
        "be it.";
    const std::string sealed = table().seal(key, nonce, extra, plain);
    EXPECT_EQ(sealed.substr(plain.size()), unhex("1ae10b594f09e26a7e902ecbd0600691"));  // RFC 8439, 2.8.2
    std::string opened;
    EXPECT_TRUE(table().open(key, nonce, extra, sealed, opened));
    EXPECT_EQ(opened, plain);
    for (size_t i = 0; i < sealed.size(); ++i) {
        std::string changed = sealed;
        changed[i] ^= 1;
        EXPECT_FALSE(table().open(key, nonce, extra, changed, opened));
        EXPECT_TRUE(opened.empty());
    }
    EXPECT_FALSE(table().open(key, nonce, "", sealed, opened));
    EXPECT_FALSE(table().open(key, nonce, extra, sealed.substr(0, 15), opened));
}

TEST(Primitives, Scalars_are_a_field) {
    const Secret a = table().scalar(array_of<64>(std::string(128, '7'))),
                 b = table().scalar(array_of<64>(std::string(128, 'c')));
    EXPECT_TRUE(table().is_scalar(a.bytes()));
    EXPECT_FALSE(table().is_scalar(
        array_of<32>("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")));  // the order
    EXPECT_TRUE(table().is_scalar(array_of<32>("ecd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")));
    EXPECT_EQ(table().scalar_difference(table().scalar_sum(a, b), b).bytes(), a.bytes());
    Secret inverse;
    EXPECT_TRUE(table().scalar_inverse(b, inverse));
    EXPECT_EQ(table().scalar_product(table().scalar_product(a, b), inverse).bytes(), a.bytes());
    EXPECT_FALSE(table().scalar_inverse(Secret(), inverse));
}

TEST(Primitives, Points_of_ristretto255) {
    Bytes32 one{}, two{}, sum{};
    Secret unit, twice;
    unit.bytes()[0] = 1;
    twice.bytes()[0] = 2;
    EXPECT_TRUE(table().base_multiple(unit, one));
    EXPECT_EQ(one, array_of<32>("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76"));  // RFC 9496
    EXPECT_TRUE(table().base_multiple(twice, two));
    EXPECT_EQ(two, array_of<32>("6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919"));
    EXPECT_TRUE(table().point_sum(one, one, sum));
    EXPECT_EQ(sum, two);
    EXPECT_TRUE(table().multiple(twice, one, sum));
    EXPECT_EQ(sum, two);
    EXPECT_FALSE(table().base_multiple(Secret(), sum));
    EXPECT_TRUE(table().is_point(one));
    Bytes32 none = one;
    none[0] ^= 1;
    EXPECT_FALSE(table().is_point(none));
    EXPECT_FALSE(table().multiple(twice, none, sum));
    // SHA-512 of "Ristretto is traditionally a short shot of espresso coffee", by RFC 9496.
    EXPECT_EQ(table().hashed_point(
                  array_of<64>("5d1be09e3d0c82fc538112490e35701979d99e06ca3e2b5b54bffe8b4dc772c14d98b696a1bbfb5ca"
                               "32c436cc61c16563790306c79eaca7705668b47dffe5bb6")),
              array_of<32>("3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46"));
}

TEST(Primitives, Secrets_are_wiped) {
    alignas(Secret) std::array<unsigned char, sizeof(Secret)> place;
    auto* secret = new (place.data()) Secret(Secret::random("test"));
    EXPECT_NE(secret->bytes(), Bytes32{});
    secret->~Secret();
    EXPECT_EQ(place, (std::array<unsigned char, sizeof(Secret)>{}));
}

}  // namespace
}  // namespace lunaria::federated
