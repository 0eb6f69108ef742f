// A client's side of secure aggregation that is killed between any two of its steps.
#include "core/federated/client/secure_steps.h"

#include <gtest/gtest.h>

#include "core/federated/secure_server.h"

namespace lunaria::federated::client {
namespace {

constexpr size_t kSize = 5, kClients = 3;

messages::Plan plan_of(const char* kind) {
    messages::Plan plan;
    plan.cipher.type = kind;
    plan.cipher.share_threshold = 2;
    plan.cipher.ring_bits = 48;
    plan.cipher.fraction_bits = 20;
    plan.cipher.clip = 8;
    return plan;
}

SecureSettings settings_of(const messages::Plan& plan) {
    SecureSettings settings;
    settings.job = "job";
    settings.iteration = 4;
    settings.ring.bits = static_cast<int>(plan.cipher.ring_bits);
    settings.size = kSize + 1;
    settings.threshold = static_cast<size_t>(plan.cipher.share_threshold);
    return settings;
}

std::vector<double> values_of(size_t client) {
    std::vector<double> values(kSize);
    for (size_t i = 0; i < kSize; ++i) values[i] = 0.25 * static_cast<double>(client) - 0.125 * static_cast<double>(i);
    return values;
}
int64_t weight_of(size_t client) { return 3 + static_cast<int64_t>(client); }

std::vector<double> expected() {
    std::vector<double> mean(kSize);
    double whole = 0;
    for (size_t c = 0; c < kClients; ++c) whole += static_cast<double>(weight_of(c));
    for (size_t c = 0; c < kClients; ++c)
        for (size_t i = 0; i < kSize; ++i) mean[i] += values_of(c)[i] * static_cast<double>(weight_of(c)) / whole;
    return mean;
}

std::vector<double> mean_of(const messages::Plan& plan, const std::vector<uint64_t>& sum) {
    FixedPoint code;
    code.ring.bits = static_cast<int>(plan.cipher.ring_bits);
    code.fraction_bits = static_cast<int>(plan.cipher.fraction_bits);
    code.clip = plan.cipher.clip;
    return code.mean("test", sum);
}

// The clients of a sum; the first one is made anew from its state after each of its steps whose number is in `kills`.
struct Clients {
    std::vector<SecureSteps> all;
    std::string name(size_t c) const { return std::string(1, static_cast<char>('a' + c)); }
    unsigned kills = 0;
    int step = 0;
    bool has_sealed = false;

    explicit Clients(const messages::Plan& plan) {
        for (size_t c = 0; c < kClients; ++c)
            all.emplace_back(plan, "job", name(c), 4, kSize, std::nullopt, SigningKeys());
    }
    void may_crash() {
        if (kills >> step++ & 1) {
            const std::string saved = all[0].saved();
            all[0] = SecureSteps::restored(saved, has_sealed, std::nullopt, SigningKeys());
        }
    }
};

TEST(SecureSteps, give_the_sum_whatever_crashes) {
    const messages::Plan plan = plan_of("PW_ENCRYPT");
    for (unsigned kills = 0; kills < 64; ++kills) {
        SecureServer server(settings_of(plan));
        Clients clients(plan);
        clients.kills = kills;
        const auto each = [&](auto f) {
            for (size_t c = 0; c < kClients; ++c) f(c, clients.all[c], clients.name(c));
            clients.may_crash();
        };
        each([&](size_t, SecureSteps& s, const std::string& name) { server.accept_keys(name, s.content()); });
        server.close();
        each([&](size_t, SecureSteps& s, const std::string& name) { s.take(server.key_list(name)); });
        each([&](size_t, SecureSteps& s, const std::string& name) { server.accept_shares(name, s.content()); });
        server.close();
        each([&](size_t, SecureSteps& s, const std::string& name) { s.take(server.share_list(name)); });
        clients.has_sealed = true;
        each([&](size_t c, SecureSteps& s, const std::string& name) {
            server.accept_update(name, s.sealed(values_of(c), weight_of(c)));
        });
        server.close();
        each([&](size_t, SecureSteps& s, const std::string&) { s.take(server.client_list()); });
        each([&](size_t, SecureSteps& s, const std::string& name) { server.accept_revealed(name, s.content()); });
        const SecureSum sum = server.finish();
        EXPECT_TRUE(sum.wrong.empty()) << kills;
        const std::vector<double> mean = mean_of(plan, sum.elements);
        for (size_t i = 0; i < kSize; ++i) EXPECT_NEAR(mean[i], expected()[i], 1e-6) << kills;
    }
}

TEST(SecureSteps, of_silos_give_the_sum_whatever_crashes) {
    const messages::Plan plan = plan_of("STABLE_PW_ENCRYPT");
    for (unsigned kills = 0; kills < 8; ++kills) {
        StableServer server(settings_of(plan));
        Clients clients(plan);
        clients.kills = kills;
        for (size_t c = 0; c < kClients; ++c) server.accept_keys(clients.name(c), clients.all[c].content());
        clients.may_crash();
        server.close_keys();
        server.start(5);
        for (SecureSteps& one : clients.all) one.take(server.key_list());
        clients.may_crash();
        for (size_t c = 0; c < kClients; ++c)
            server.accept_update(clients.name(c), clients.all[c].sealed(values_of(c), weight_of(c)));
        const std::vector<double> mean = mean_of(plan, server.finish());
        for (size_t i = 0; i < kSize; ++i) EXPECT_NEAR(mean[i], expected()[i], 1e-6) << kills;
    }
}

}  // namespace
}  // namespace lunaria::federated::client
