#include "core/federated/server/desk.h"

#include <cmath>
#include <limits>
#include <thread>

#include "tests/core/federated/served.h"

using namespace lunaria;
using namespace lunaria::federated;
using namespace lunaria::federated::tested;
using messages::Code;

namespace {

int code(const messages::Reply& reply) { return static_cast<int>(reply.code); }

}  // namespace

TEST(DeskTest, an_iteration_goes_from_start_to_the_new_model) {
    const Folder folder;
    Served served(folder / "store", options(2));
    EXPECT_EQ(served.start("a").code, Code::not_ready) << "the plan is not there yet";
    ASSERT_TRUE(served.work());
    const auto started = served.start("a");
    ASSERT_EQ(started.code, Code::succeed) << started.reason;
    const auto content = messages::parsed<messages::StartedFLJob>(started.content, "startFLJob");
    EXPECT_TRUE(content.is_selected);
    EXPECT_EQ(values_of(content.model.features.at(0)), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(code(served.update("a", 1, {0, 0, 0})), 201) << "the others have not started";
    EXPECT_EQ(served.start("b").code, Code::succeed);
    EXPECT_EQ(served.start("c").code, Code::out_of_time) << "enough have started";
    EXPECT_EQ(served.update("a", 1, {1, 1, 1}).code, Code::succeed);
    EXPECT_EQ(served.ask(messages::kGetModel, "a", "", 1).code, Code::not_ready);
    EXPECT_EQ(served.update("b", 1, {4, 4, 4}, 2).code, Code::succeed);
    ASSERT_TRUE(served.work());
    const auto reply = served.ask(messages::kGetModel, "a", "", 1);
    ASSERT_EQ(reply.code, Code::succeed);
    const auto map = messages::parsed<messages::FeatureMap>(reply.content, "getModel");
    EXPECT_EQ(map.version, 1);
    EXPECT_EQ(values_of(map.features.at(0)), (std::vector<float>{3, 3, 3}));
    EXPECT_EQ(reply.iteration, 2);
}

TEST(DeskTest, a_repeated_request_counts_once_and_another_update_is_refused) {
    const Folder folder;
    Served served(folder / "store", options(2));
    served.work();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(served.start("a").code, Code::succeed);
    served.start("b");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(served.update("a", 1, {1, 1, 1}).code, Code::succeed);
    const auto other = served.update("a", 1, {2, 2, 2});
    EXPECT_EQ(other.code, Code::request_error) << other.reason;
    served.update("b", 1, {3, 3, 3});
    ASSERT_TRUE(served.work());
    EXPECT_EQ(served.weights(), (std::vector<float>{2, 2, 2}));
}

TEST(DeskTest, an_update_that_does_not_fit_changes_nothing_and_is_refused_by_name) {
    const Folder folder;
    JobOptions strict = options(1);
    strict.largest_weight = 100;
    Served served(folder / "store", strict);
    served.work();
    served.start("a");
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    const std::pair<std::vector<float>, std::string> cases[] = {
        {{1, kNaN, 1}, "tensor w: element 1 is nan"},
        {{1, 1, -INFINITY}, "tensor w: element 2 is -inf"},
        {{101, 1, 1}, "tensor w: element 0 is 101, more than 100"},
        {{1, 1}, "tensor w has shape (2), the model's has (3)"}};
    for (const auto& [values, reason] : cases) {
        const auto reply = served.update("a", 1, values);
        EXPECT_EQ(reply.code, Code::request_error);
        EXPECT_EQ(reply.reason, reason);
    }
    messages::UpdateModel update;
    update.samples = 1;
    update.features.push_back(feature("v", {1, 2, 3}));
    auto reply = served.ask(messages::kUpdateModel, "a", messages::written(update), 1);
    EXPECT_EQ(reply.reason, "the model has no tensor v");
    update.features[0].name = "w";
    update.features.push_back(update.features[0]);
    reply = served.ask(messages::kUpdateModel, "a", messages::written(update), 1);
    EXPECT_EQ(reply.reason, "tensor w is there twice");
    update.features.clear();
    reply = served.ask(messages::kUpdateModel, "a", messages::written(update), 1);
    EXPECT_EQ(reply.reason, "tensor w is missing");
    update.features.push_back(feature("w", {1, 2, 3}));
    update.samples = 0;
    reply = served.ask(messages::kUpdateModel, "a", messages::written(update), 1);
    EXPECT_EQ(reply.reason, "an update of no samples");
    update.samples = 1;
    update.encoding = messages::Encoding::masked;
    reply = served.ask(messages::kUpdateModel, "a", messages::written(update), 1);
    EXPECT_EQ(reply.reason, "the update's encoding is masked, the plan asks for plain");
    EXPECT_FALSE(served.work(0.05)) << "nothing was taken";
    EXPECT_EQ(served.update("a", 1, {5, 6, 7}).code, Code::succeed);
    ASSERT_TRUE(served.work());
    EXPECT_EQ(served.weights(), (std::vector<float>{5, 6, 7}));
}

TEST(DeskTest, messages_that_are_no_messages_are_request_errors) {
    const Folder folder;
    Served served(folder / "store", options(1));
    for (const std::string& body : {std::string(), std::string("\xff\xff\xff", 3), std::string(1000, 'x')}) {
        const auto reply = served.desk.ask(messages::kStartFLJob, body);
        EXPECT_EQ(reply.code, Code::request_error) << reply.reason;
        EXPECT_FALSE(reply.reason.empty());
    }
    EXPECT_EQ(served.ask("nonsense", "a", "").reason, "there is no such endpoint");
    messages::Envelope envelope;
    envelope.job = "another";
    envelope.client = "a";
    EXPECT_EQ(served.desk.ask(messages::kGetModel, messages::written(envelope)).reason, "there is no such job");
}

TEST(DeskTest, another_desk_goes_on_at_every_phase) {
    const Folder folder;
    // What happens one after the other; between any two of them the server ends without a word.
    const std::vector<std::function<bool(Served&)>> steps = {
        [](Served& s) { return s.work(); },
        [](Served& s) { return s.start("a").code == Code::succeed; },
        [](Served& s) { return s.start("b").code == Code::succeed; },
        [](Served& s) {
            return s.update("b", 1, {0.1f, 0.2f, 0.3f}, 3).code == Code::succeed;
        },
        [](Served& s) {
            return s.update("a", 1, {0.7f, 0.5f, 0.9f}, 4).code == Code::succeed;
        },
        [](Served& s) { return s.work(); },
        [](Served& s) { return s.ask(messages::kGetModel, "a", "", 1).code == Code::succeed; },
        [](Served& s) { return s.start("b").code == Code::succeed; },
        [](Served& s) { return s.start("c").code == Code::succeed; },
        [](Served& s) {
            return s.update("c", 2, {1, 2, 3}, 3).code == Code::succeed;
        },
        [](Served& s) {
            return s.update("b", 2, {3, 2, 1}, 4).code == Code::succeed;
        },
        [](Served& s) { return s.work(); },
    };
    std::vector<float> expected;
    for (size_t killed = 0; killed <= steps.size(); ++killed) {
        const std::string store = folder / str("store", killed);
        auto served = std::make_unique<Served>(store, options(2));
        for (size_t i = 0; i < steps.size(); ++i) {
            if (i == killed) {
                served.reset();
                served = std::make_unique<Served>(store, options(2));
            }
            ASSERT_TRUE(steps[i](*served)) << "step " << i << " where the server ended before step " << killed;
        }
        if (expected.empty()) expected = served->weights();
        EXPECT_EQ(served->weights(), expected) << killed;
        EXPECT_EQ(served->ask(messages::kGetModel, "a", "", 2).iteration, 3);
    }
}

TEST(DeskTest, windows_stand_still_while_no_server_runs) {
    const Folder folder;
    auto served = std::make_unique<Served>(folder / "store", options(1));
    served->work();
    served->start("a");
    served->wait(900);
    served.reset();
    served = std::make_unique<Served>(folder / "store", options(1));
    EXPECT_EQ(served->update("a", 1, {1, 1, 1}).code, Code::succeed);
    served->work();
    served->start("a");
    served->wait(1100);
    const auto late = served->update("a", 2, {9, 9, 9});
    EXPECT_EQ(late.code, Code::out_of_time) << late.reason;
    EXPECT_EQ(late.iteration, 3) << "the iteration has failed, the number advances";
    EXPECT_EQ(served->weights(), (std::vector<float>{1, 1, 1}));
    std::vector<HistoryRow> history;
    served->desk.in("job", [&](Job& job) { history = served->desk.store().history(job.number(), 0, 10); });
    ASSERT_EQ(history.size(), 2u);
    EXPECT_TRUE(history[0].is_valid);
    EXPECT_FALSE(history[1].is_valid);
    EXPECT_EQ(history[1].reason, "too few devices sent an update within their window");
}

TEST(DeskTest, two_desks_share_a_store_and_one_of_them_computes) {
    const Folder folder;
    Served first(folder / "store", options(2));
    Served second(folder / "store", options(2));
    ASSERT_TRUE(first.work());
    EXPECT_EQ(first.start("a").code, Code::succeed);
    EXPECT_EQ(second.start("b").code, Code::succeed);
    EXPECT_EQ(second.start("a").code, Code::succeed) << "the same client, at another server";
    EXPECT_EQ(second.update("a", 1, {2, 2, 2}).code, Code::succeed);
    EXPECT_EQ(first.update("b", 1, {4, 4, 4}).code, Code::succeed);
    EXPECT_FALSE(second.work(0.3)) << "the first server owns the job";
    ASSERT_TRUE(first.work());
    EXPECT_EQ(second.ask(messages::kGetModel, "a", "", 1).code, Code::succeed);
    EXPECT_EQ(second.weights(), (std::vector<float>{3, 3, 3}));
}

TEST(DeskTest, a_full_disk_is_an_error_by_name_and_loses_nothing) {
    const Folder folder;
    JobOptions large = options(2);
    const std::vector<float> values(100'000, 1.0f);
    {
        Served served(folder / "store", large);
        served.desk.in("job", [&](Job& job) { job.put_model(model(values), ""); });
        served.work();
        served.start("a");
        served.start("b");
        EXPECT_EQ(served.update("a", 1, values).code, Code::succeed);
    }
    const auto size = static_cast<int64_t>(std::filesystem::file_size(folder / "store"));
    {
        Served served(folder / "store", large, size);
        const auto reply = served.update("b", 1, values);
        EXPECT_EQ(reply.code, Code::system_error);
        EXPECT_NE(reply.reason.find("the disk is full"), std::string::npos) << reply.reason;
        EXPECT_EQ(served.update("a", 1, values).code, Code::succeed) << "what was taken is known";
        EXPECT_FALSE(served.work(0.05));
    }
    Served served(folder / "store", large);
    EXPECT_EQ(served.update("b", 1, values).code, Code::succeed);
    EXPECT_TRUE(served.work());
}

TEST(DeskTest, clients_of_many_threads_are_all_taken) {
    const Folder folder;
    constexpr int kClients = 48;
    Served served(folder / "store", options(kClients));
    served.work();
    std::atomic<int> fine = 0;
    const auto all = [&](auto f) {
        std::vector<std::thread> threads;
        for (int i = 0; i < kClients; ++i)
            threads.emplace_back([&, i] { fine += f(str("client", i)) == Code::succeed; });
        for (std::thread& thread : threads) thread.join();
    };
    all([&](const std::string& client) { return served.start(client).code; });
    EXPECT_EQ(fine, kClients);
    all([&](const std::string& client) { return served.update(client, 1, {1, 2, 3}).code; });
    EXPECT_EQ(fine, 2 * kClients);
    ASSERT_TRUE(served.work());
    EXPECT_EQ(served.weights(), (std::vector<float>{1, 2, 3}));
}

TEST(DeskTest, requests_of_verified_clients_are_signed_fresh_and_new) {
    const Folder folder;
    JobOptions verified = options(1);
    verified.verifies = true;
    verified.replay_window = 1000;
    verified.certificate = [](std::string_view pem) {
        ClientCertificate shown;
        shown.name = pem;
        shown.key = std::string(32, 'k');
        if (pem == "revoked") shown.problem = "certificate revoked";
        return shown;
    };
    // The signature is the number of the request in 64 bytes.
    verified.signature = [](std::string_view, std::string_view, std::string_view signature) {
        return signature.size() == 64 && signature[0] == 's';
    };
    Served served(folder / "store", verified);
    served.work();
    const auto asked = [&](std::string client, std::string certificate, char number, int64_t apart = 0,
                           char first = 's') {
        messages::Envelope envelope;
        envelope.job = "job";
        envelope.client = std::move(client);
        envelope.certificate = std::move(certificate);
        envelope.timestamp = served.wall - apart;
        envelope.signature = std::string(63, number);
        envelope.signature.insert(envelope.signature.begin(), first);
        messages::StartFLJob start;
        start.samples = 1;
        envelope.content = messages::written(start);
        return served.desk.ask(messages::kStartFLJob, messages::written(envelope));
    };
    EXPECT_EQ(asked("a", "revoked", '0').reason, "the client's certificate is refused: certificate revoked");
    EXPECT_EQ(asked("a", "b", '0').reason, "the client's certificate has another name");
    EXPECT_EQ(asked("a", "a", '0', 0, 'x').reason, "the request's signature is not the client's");
    EXPECT_EQ(asked("a", "a", '0', 1001).code, Code::request_error);
    EXPECT_EQ(asked("a", "a", '0', -1001).code, Code::request_error);
    EXPECT_EQ(asked("a", "a", '0').code, Code::succeed);
    EXPECT_EQ(asked("a", "a", '0').reason,
              "replayed: the request was sent before, and a repeated one needs a new timestamp");
    EXPECT_EQ(asked("a", "a", '1').code, Code::succeed) << "the same request, sent anew";
    const auto stranger = served.update("b", 1, {1, 1, 1});
    EXPECT_EQ(stranger.code, Code::request_error);
    // An iteration that has failed meanwhile is over, for clients whose keys are forgotten, too: they begin anew.
    served.wait(1100);
    EXPECT_EQ(served.update("a", 1, {1, 1, 1}).reason, "the iteration is over");
    EXPECT_EQ(served.update("a", 2, {1, 1, 1}).code, Code::request_error);
}

TEST(DeskTest, a_disabled_job_takes_no_requests_and_a_new_instance_begins_anew) {
    const Folder folder;
    Served served(folder / "store", options(1));
    served.work();
    served.desk.in("job", [](Job& job) { job.enable(false); });
    EXPECT_EQ(served.start("a").code, Code::out_of_time);
    served.desk.in("job", [](Job& job) { job.enable(true); });
    EXPECT_EQ(served.start("a").code, Code::succeed);
    JobSettings settings = options(2).rounds;
    settings.name = "job";
    served.desk.in("job", [&](Job& job) { job.begin_instance(settings, "second", "{}"); });
    ASSERT_TRUE(served.work());
    EXPECT_EQ(served.start("a").code, Code::succeed);
    EXPECT_EQ(served.update("a", 1, {1, 1, 1}).code, Code::not_ready) << "two clients are needed now";
}

TEST(DeskTest, a_model_of_an_iteration_that_failed_is_told_from_a_new_one) {
    const Folder folder;
    Served served(folder / "store", options(1));
    served.work();
    served.start("a");
    served.wait(1100);
    const auto reply = served.ask(messages::kGetModel, "a", "", 1);
    EXPECT_EQ(reply.code, Code::succeed);
    EXPECT_EQ(reply.reason,
              "the iteration failed, and the weights are those before it: too few devices sent an update within their "
              "window");
}

TEST(DeskTest, in_hybrid_training_the_next_iteration_waits_for_the_weights_of_a_worker) {
    const Folder folder;
    JobOptions hybrid = options(1);
    hybrid.takes_weights = true;
    auto served = std::make_unique<Served>(folder / "store", hybrid);
    const auto push = [&](const std::vector<float>& values, int64_t version) {
        return served->ask(messages::kPushWeights, "worker", model(values, version));
    };
    const auto iteration = [&](int64_t number) {
        EXPECT_EQ(served->start("a").code, Code::succeed);
        EXPECT_EQ(push({9, 9, 9}, number - 1).reason, "an iteration is on its way");
        const auto update = static_cast<float>(number);
        EXPECT_EQ(served->update("a", number, {update, update, update}).code, Code::succeed);
        EXPECT_EQ(push({9, 9, 9}, number - 1).code, Code::not_ready) << "updates are aggregated";
        ASSERT_TRUE(served->work());
    };
    served->work();
    iteration(1);
    EXPECT_EQ(served->start("a").reason, "the weights of a worker on the server are awaited");
    EXPECT_EQ(push({5, 5, 5}, 0).code, Code::out_of_time) << "of an older model";
    EXPECT_EQ(push({5, 5}, 1).code, Code::request_error);
    EXPECT_EQ(push({5, NAN, 5}, 1).reason, "tensor w: element 1 is nan");
    served = std::make_unique<Served>(folder / "store", hybrid);
    EXPECT_EQ(served->start("a").code, Code::not_ready) << "also after the server was killed";
    EXPECT_EQ(push({5, 6, 7}, 1).code, Code::succeed);
    EXPECT_EQ(push({5, 6, 8}, 1).code, Code::succeed) << "until a client starts";
    served = std::make_unique<Served>(folder / "store", hybrid);
    EXPECT_EQ(served->weights(), (std::vector<float>{5, 6, 8}));
    iteration(2);
    EXPECT_EQ(served->start("a").code, Code::not_ready);
    served->wait(1100);
    iteration(3);
    EXPECT_EQ(push({9, 9, 9}, 3).reason, "the job is over");
    EXPECT_EQ(served->weights(), (std::vector<float>{3, 3, 3}));
}
