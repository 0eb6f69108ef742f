#include "core/federated/server/secure_round.h"

#include "tests/core/federated/secure_sum.h"
#include "tests/core/federated/served.h"

using namespace lunaria;
using namespace lunaria::federated;
using namespace lunaria::federated::tested;
using messages::Code;

namespace {

JobOptions secured(int64_t clients, Encryption encryption) {
    JobOptions secured = options(clients, 2);
    secured.rounds.encryption = encryption;
    secured.rounds.cipher_window = 1000;
    secured.rounds.reconstruct_threshold = encryption == Encryption::pairwise ? 2 : 1;
    secured.rounds.update_ratio = encryption == Encryption::pairwise ? 0.6 : 1.0;
    secured.upload = messages::Encoding::masked;
    secured.code.ring.bits = 56;
    secured.code.fraction_bits = 20;
    return secured;
}

SecureSettings settings_of(const JobOptions& options) {
    SecureSettings settings;
    settings.job = "job";
    settings.iteration = 1;
    settings.ring = options.code.ring;
    settings.size = 4;
    settings.threshold = static_cast<size_t>(options.share_threshold);
    return settings;
}

std::vector<uint64_t> elements_of(const JobOptions& options, const std::vector<float>& values, int64_t samples) {
    FixedPoint code = options.code;
    code.most_weight = samples;
    std::vector<uint64_t> elements(values.size() + 1);
    code.encode("test", std::span<const float>(values), samples, elements);
    return elements;
}

std::string masked(std::string payload, int64_t samples) {
    messages::UpdateModel update;
    update.samples = samples;
    update.encoding = messages::Encoding::masked;
    update.payload = std::move(payload);
    return messages::written(update);
}

Job::Mean mean_of(Served& served) {
    Job::Mean mean;
    EXPECT_EQ(served.desk.next(5).kind, Work::Kind::aggregate);
    served.desk.in("job", [&](Job& job) { mean = job.secure_mean(); });
    return mean;
}

const std::vector<std::string> kNames = {"a", "b", "c"};
const std::vector<std::vector<float>> kValues = {{1, 2, 3}, {-4, 0.5f, 8}, {50, 50, 50}};
constexpr int64_t kSamples[] = {1, 3, 5};

}  // namespace

// A server that is killed between any two requests; the third client sends keys and shares, but no update.
TEST(SecureRoundTest, masks_come_off_wherever_the_server_was_killed) {
    for (int killed = 0; killed <= 16; ++killed) {
        const Folder folder;
        const JobOptions options = secured(3, Encryption::pairwise);
        auto served = std::make_unique<Served>(folder / "store", options);
        served->work();
        int step = 0;
        const auto ask = [&](std::string_view endpoint, const std::string& client, const std::string& content) {
            if (step++ == killed) {
                served.reset();
                served = std::make_unique<Served>(folder / "store", options);
            }
            const auto reply = served->ask(endpoint, client, content, 1);
            EXPECT_EQ(reply.code, Code::succeed) << endpoint << " of " << client << ": " << reply.reason;
            // A repeated request is taken as well.
            EXPECT_EQ(served->ask(endpoint, client, content, 1).code, Code::succeed) << endpoint;
            return reply.content;
        };
        std::vector<SecureClient> clients;
        for (const std::string& name : kNames) {
            EXPECT_EQ(served->start(name).code, Code::succeed);
            clients.push_back(test_client(settings_of(options), name));
        }
        for (size_t i = 0; i < 3; ++i) ask(messages::kExchangeKeys, kNames[i], clients[i].keys());
        std::vector<std::string> shares;
        for (size_t i = 0; i < 3; ++i) shares.push_back(clients[i].shares(ask(messages::kGetKeys, kNames[i], "")));
        for (size_t i = 0; i < 3; ++i) ask(messages::kShareSecrets, kNames[i], shares[i]);
        for (size_t i = 0; i < 2; ++i) {
            const std::string list = ask(messages::kGetSecrets, kNames[i], "");
            const auto payload = clients[i].update(list, elements_of(options, kValues[i], kSamples[i]));
            ask(messages::kUpdateModel, kNames[i], masked(payload, kSamples[i]));
        }
        for (size_t i = 0; i < 2; ++i) {
            clients[i].list_signature(ask(messages::kGetClientList, kNames[i], ""));
            ask(messages::kReconstructSecrets, kNames[i], clients[i].reveal(""));
        }
        const Job::Mean mean = mean_of(*served);
        EXPECT_EQ(mean.clients, (std::vector<std::string>{"a", "b"}));
        EXPECT_EQ(mean.samples, 4);
        EXPECT_EQ(mean.values, (std::vector<double>{-2.75, 0.875, 6.75})) << killed;
    }
}

TEST(SecureRoundTest, what_does_not_belong_to_the_sum_is_refused_and_changes_nothing) {
    const Folder folder;
    const JobOptions options = secured(2, Encryption::pairwise);
    Served served(folder / "store", options);
    served.work();
    served.start("a");
    served.start("b");
    messages::ClientKeys wrong;
    wrong.cipher_key = std::string(32, '\0');
    wrong.mask_key = std::string(32, '\xff');
    const auto reply = served.ask(messages::kExchangeKeys, "a", messages::written(wrong), 1);
    EXPECT_EQ(reply.code, Code::request_error);
    EXPECT_FALSE(reply.reason.empty());
    SecureClient a = test_client(settings_of(options), "a"), b = test_client(settings_of(options), "b");
    EXPECT_EQ(served.ask(messages::kExchangeKeys, "a", a.keys(), 1).code, Code::succeed);
    const std::string keys = b.keys();
    EXPECT_EQ(served.ask(messages::kExchangeKeys, "c", keys, 1).code, Code::request_error);
    EXPECT_EQ(served.ask(messages::kExchangeKeys, "b", keys, 1).code, Code::succeed);
    const std::string list = served.ask(messages::kGetKeys, "a", "", 1).content;
    const std::string shares = a.shares(list);
    EXPECT_EQ(served.ask(messages::kShareSecrets, "b", shares, 1).code, Code::request_error) << "shares of another";
    EXPECT_EQ(served.ask(messages::kShareSecrets, "a", shares, 1).code, Code::succeed);
}

TEST(SecureRoundTest, sums_of_silos_need_one_message_of_each) {
    const Folder folder;
    const JobOptions options = secured(3, Encryption::stable);
    auto served = std::make_unique<Served>(folder / "store", options);
    served->work();
    std::vector<StableClient> clients;
    for (const std::string& name : kNames) {
        EXPECT_EQ(served->start(name).code, Code::succeed);
        clients.emplace_back(settings_of(options), name, std::nullopt, SigningKeys(), given_random(name));
    }
    for (size_t i = 0; i < 3; ++i)
        EXPECT_EQ(served->ask(messages::kExchangeKeys, kNames[i], clients[i].keys(), 1).code, Code::succeed);
    for (size_t i = 0; i < 3; ++i) {
        if (i == 1) {
            served.reset();
            served = std::make_unique<Served>(folder / "store", options);
        }
        clients[i].take_keys(served->ask(messages::kGetKeys, kNames[i], "", 1).content);
        const auto payload = clients[i].update(2, elements_of(options, kValues[i], kSamples[i]));
        EXPECT_EQ(served->ask(messages::kUpdateModel, kNames[i], masked(payload, kSamples[i]), 1).code, Code::succeed);
    }
    const Job::Mean mean = mean_of(*served);
    EXPECT_EQ(mean.samples, 9);
    EXPECT_EQ(mean.values[0], (1.0 - 12.0 + 250.0) / 9.0);
}
