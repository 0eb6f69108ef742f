#include "core/federated/ring.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/base/error.h"
#include "core/federated/shamir.h"
#include "core/federated/stable_masks.h"

namespace lunaria::federated {
namespace {

TEST(FixedPoint, Weighted_sums_are_exact) {
    FixedPoint code;
    code.fraction_bits = 20;
    code.clip = 8;
    code.most_weight = 1000;
    code.most_clients = 100;
    code = FixedPoint::smallest("test", code);
    EXPECT_EQ(code.ring.bits, 48);  // 100,000 · 2^23 has 40 bits, and a sign
    std::mt19937 random(2);
    std::normal_distribution<double> normal(0, 2);
    std::vector<uint64_t> sum(51, 0), one(51);
    std::vector<__int128> plain(50, 0);
    int64_t weights = 0, clipped = 0;
    for (int client = 0; client < 100; ++client) {
        std::vector<double> values(50);
        for (double& v : values) v = normal(random);
        const int64_t weight = 1 + static_cast<int64_t>(random() % 1000);
        weights += weight;
        clipped += code.encode<double>("test", values, weight, one);
        for (size_t i = 0; i < 50; ++i)
            plain[i] +=
                weight * static_cast<__int128>(std::llrint(std::min(8.0, std::max(-8.0, values[i])) * (1 << 20)));
        add_packed(code.ring, packed(code.ring, one), sum);
    }
    EXPECT_GT(clipped, 0);
    EXPECT_EQ(code.ring.number(sum.back()), weights);
    const std::vector<double> mean = code.mean("test", sum);
    for (size_t i = 0; i < 50; ++i) {
        EXPECT_EQ(code.ring.number(sum[i]), static_cast<int64_t>(plain[i]));
        EXPECT_EQ(mean[i],
                  static_cast<double>(static_cast<int64_t>(plain[i])) / static_cast<double>(weights) / (1 << 20));
    }
}

TEST(FixedPoint, Rounds_to_the_nearest_and_refuses_what_is_no_number) {
    FixedPoint code;
    code.fraction_bits = 1;
    code.clip = 4;
    std::vector<uint64_t> to(5);
    EXPECT_EQ(code.encode<float>("test", std::vector<float>{0.25f, 0.75f, -0.25f, 5.0f}, 1, to), 1);
    EXPECT_EQ(to, (std::vector<uint64_t>{0, 2, 0, 8, 1}));
    EXPECT_THROW(code.encode<double>("test", std::vector<double>{NAN, 0, 0, 0}, 1, to), Error);
    EXPECT_THROW(code.encode<double>("test", std::vector<double>{INFINITY, 0, 0, 0}, 1, to), Error);
    EXPECT_THROW(code.encode<double>("test", std::vector<double>{1, 0, 0, 0}, 2, to), Error);
    code.refuses = true;
    EXPECT_THROW(code.encode<double>("test", std::vector<double>{4.5, 0, 0, 0}, 1, to), Error);
}

TEST(FixedPoint, Sums_that_would_not_fit_are_refused) {
    FixedPoint code;
    code.ring.bits = 32;
    code.fraction_bits = 16;
    code.clip = 8;
    code.most_clients = 4095;
    EXPECT_NO_THROW(code.check("test"));
    code.most_clients = 4096;
    EXPECT_THROW(code.check("test"), Error);
    code.clip = std::numeric_limits<double>::max();
    EXPECT_THROW(FixedPoint::smallest("test", code), Error);
    code.clip = 8;
    code.ring.bits = 33;
    EXPECT_THROW(code.check("test"), Error);
}

TEST(Shamir, Any_threshold_of_shares_restores_and_fewer_do_not) {
    const Primitives& table = primitives("test");
    const Random random = system_random("test");
    const Secret secret = random_scalar(table, random);
    std::vector<Secret> places;
    for (int i = 0; i < 7; ++i) places.push_back(share_place(table, str("holder ", i)));
    const std::vector<Secret> shares = shared_secret(table, secret, 4, places, random);
    for (unsigned chosen = 1; chosen < 128; ++chosen) {
        std::vector<Secret> at, of;
        for (unsigned i = 0; i < 7; ++i)
            if (chosen >> i & 1) {
                at.push_back(places[i]);
                of.push_back(shares[i]);
            }
        EXPECT_EQ(Interpolation(table, at).at_zero(of).bytes() == secret.bytes(), at.size() >= 4);
    }
    places[1] = places[0];
    EXPECT_THROW(Interpolation(table, places), Error);
}

TEST(StableMasks, Silos_exchange_keys_once) {
    for (const bool is_signed : {false, true}) {
        SecureSettings settings;
        settings.job = "silos";
        settings.size = 100;
        settings.is_signed = is_signed;
        const auto seed = [](std::string_view id) { return Secret(primitives("test").sha256(id)); };
        const SigningKeys signing = [&](std::string_view id, std::string_view) -> std::optional<Bytes32> {
            return primitives("test").signing_key(seed(id));
        };
        StableServer server(settings, signing);
        std::vector<StableClient> clients;
        for (int i = 0; i < 4; ++i) {
            const std::string id = str("silo ", i);
            clients.emplace_back(settings, id, Identity{seed(id), {}}, signing);
            EXPECT_TRUE(server.accept_keys(id, clients.back().keys()));
        }
        server.close_keys();
        for (StableClient& c : clients) c.take_keys(server.key_list());
        std::string last;
        for (int64_t iteration = 1; iteration < 4; ++iteration) {
            server.start(iteration);
            for (int i = 0; i < 4; ++i) {
                const std::string update =
                    clients[i].update(iteration, std::vector<uint64_t>(100, 1000 * i + iteration));
                if (i == 3 && !last.empty()) {
                    EXPECT_THROW(server.accept_update("silo 3", last), Error);  // of the iteration before
                }
                if (i == 3) last = update;
                EXPECT_TRUE(server.accept_update(str("silo ", i), update));
                EXPECT_FALSE(server.accept_update(str("silo ", i), update));
            }
            EXPECT_EQ(server.finish(), std::vector<uint64_t>(100, 6000 + 4 * iteration));
        }
        EXPECT_THROW(clients[0].update(3, std::vector<uint64_t>(100, 1)), Error);  // its mask was used
        server.start(4);
        for (int i = 0; i < 3; ++i)
            server.accept_update(str("silo ", i), clients[i].update(4, std::vector<uint64_t>(100, 1)));
        try {
            server.finish();
            ADD_FAILURE();
        } catch (const Error& e) {
            EXPECT_NE(std::string(e.what()).find("missing: 'silo 3'"), std::string::npos);
        }
    }
}

}  // namespace
}  // namespace lunaria::federated
