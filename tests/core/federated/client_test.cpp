// A client's state machine against a server in memory, with requests that get lost, altered and repeated, and crashes
// between any two of them.
#include "core/federated/client/job.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/federated/client/local_noise.h"
#include "tests/today.h"

namespace lunaria::federated::client {
namespace {

using messages::Code;
using messages::Feature;

Feature weights_of(const std::vector<float>& values) {
    Feature feature;
    feature.name = "weight";
    feature.shape = {static_cast<int64_t>(values.size())};
    feature.data.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return feature;
}
std::vector<float> values_of(const Feature& feature) {
    std::vector<float> values(feature.data.size() / sizeof(float));
    std::memcpy(values.data(), feature.data.data(), feature.data.size());
    return values;
}

// A job of one client: each iteration's update is the next model.
struct Server {
    int64_t now = 1'000'000, iteration = 1, iterations = 3;
    std::vector<float> model = {1, 2, 3};
    std::vector<std::string> updates;  // that were taken
    int64_t newest = 0;                // timestamp that was seen
    bool wants_close_clocks = false;

    messages::Reply answer(std::string_view endpoint, const messages::Envelope& request) {
        messages::Reply reply;
        reply.iteration = iteration;
        reply.timestamp = now;
        reply.next_request_time = now + 50;
        if (wants_close_clocks && std::abs(request.timestamp - now) > 10'000) {
            reply.code = Code::request_error;
            reply.reason = "the timestamp is too old";
            return reply;
        }
        EXPECT_GT(request.timestamp, newest) << "a repeated request has a new time";
        newest = request.timestamp;
        if (endpoint == messages::kStartFLJob) {
            if (iteration > iterations) {
                reply.code = Code::out_of_time;
                reply.next_request_time = 0;
                reply.reason = "the job is over";
                return reply;
            }
            messages::StartedFLJob started;
            started.is_selected = true;
            started.plan.iterations = iterations;
            started.plan.seed = 7;
            started.model = {{weights_of(model)}, iteration - 1};
            reply.content = messages::written(started);
        } else if (endpoint == messages::kUpdateModel) {
            const auto update = messages::parsed<messages::UpdateModel>(request.content, "the update");
            if (request.iteration == iteration) {
                updates.push_back(request.content);
                model = values_of(update.features.at(0));
                ++iteration;
            } else {
                EXPECT_EQ(request.content, updates.back()) << "a repeated update is the same";
            }
        } else {
            reply.content = messages::written(messages::FeatureMap{{weights_of(model)}, iteration - 1});
        }
        return reply;
    }
};

enum class Trouble { none, lost_request, lost_reply, late, altered_reply, cut_reply, bad_gateway, twice, replayed };

struct Wire final : Connection {
    Server* server = nullptr;
    std::function<Trouble()> trouble;
    int64_t* requests = nullptr;

    Reply post(std::string_view path, std::string_view body, std::string_view) override {
        ++*requests;
        const Trouble now = trouble ? trouble() : Trouble::none;
        Reply reply;
        reply.status = 200;
        if (now == Trouble::lost_request) {
            reply.fault = Fault::unreachable;
            return reply;
        }
        const auto envelope = messages::parsed<messages::Envelope>(body, "the request");
        reply.body = messages::written(server->answer(path.substr(1), envelope));
        if (now == Trouble::twice) {
            server->newest = 0;
            reply.body = messages::written(server->answer(path.substr(1), envelope));
        }
        if (now == Trouble::replayed) {
            // The answer to the second of two copies, of a server that knows requests by their signatures.
            messages::Reply refused;
            refused.code = Code::request_error;
            refused.reason = "replayed: the request was sent before";
            refused.timestamp = server->now;
            reply.body = messages::written(refused);
        }
        if (now == Trouble::lost_reply) reply.fault = Fault::dropped;
        if (now == Trouble::late) reply.fault = Fault::late;
        if (now == Trouble::altered_reply) reply.body[reply.body.size() / 2] ^= 4;
        if (now == Trouble::cut_reply) reply.body.resize(reply.body.size() / 2);
        if (now == Trouble::bad_gateway) reply.status = 502;
        return reply;
    }
};

struct Party {
    Server server;
    JobOptions options;
    int64_t clock = 1'000'000, requests = 0, trained = 0;
    std::function<Trouble()> trouble;
    std::string folder;

    Party() {
        char name[] = "/tmp/lunaria_client_XXXXXX";
        folder = mkdtemp(name);
        options.job = "job";
        options.client = "a";
        options.state_path = folder + "/state";
        options.patience_ms = 10'000;
        options.backoff.first_ms = 100;
    }
    ~Party() { std::filesystem::remove_all(folder); }

    std::unique_ptr<Job> job() {
        auto wire = std::make_unique<Wire>();
        wire->server = &server;
        wire->trouble = [this] { return trouble ? trouble() : Trouble::none; };
        wire->requests = &requests;
        return std::make_unique<Job>(options, std::move(wire), [this] { return clock; });
    }
    // One step; whether the job goes on.
    bool step(Job& job) {
        const Event event = job.advance();
        clock += event.wait_ms;
        server.now += event.wait_ms;
        if (event.kind == Event::Kind::train) {
            ++trained;
            LocalUpdate update;
            update.samples = 4;
            std::vector<float> values = values_of(job.model().features.at(0));
            for (float& value : values) value = value * 0.5f + static_cast<float>(job.draw_seed() % 97);
            update.features = {weights_of(values)};
            update.rule_state = job.rule_state() + "x";
            job.give(std::move(update));
        }
        return event.kind != Event::Kind::ended;
    }
    void run() {
        const auto all = job();
        while (step(*all)) {
        }
    }
};

TEST(FederatedClient, takes_part_until_the_job_ends) {
    Party run;
    run.run();
    EXPECT_EQ(run.trained, 3);
    EXPECT_EQ(run.server.updates.size(), 3u);
    EXPECT_EQ(StateFile(run.options.state_path).load("job", "a")->rule, "xxx");
}

TEST(FederatedClient, any_trouble_with_any_request_changes_nothing) {
    Party plain;
    plain.run();
    size_t number = 0;
    for (const Trouble trouble : {Trouble::lost_request, Trouble::lost_reply, Trouble::late, Trouble::altered_reply,
                                  Trouble::cut_reply, Trouble::bad_gateway, Trouble::twice, Trouble::replayed})
        for (int64_t at = 1; at <= plain.requests; ++at) {
            if (!lunaria::testing::is_of_today(number++, 5)) continue;
            Party run;
            run.trouble = [&] { return run.requests == at ? trouble : Trouble::none; };
            run.run();
            EXPECT_EQ(run.server.updates, plain.server.updates) << at;
            EXPECT_EQ(run.trained, 3) << at;
        }
}

TEST(FederatedClient, a_crash_after_any_step_changes_nothing) {
    Party plain;
    plain.run();
    for (int64_t at = 1; at <= plain.requests + 3; ++at) {
        Party run;
        auto job = run.job();
        int64_t steps = 0;
        while (run.step(*job))
            if (++steps == at) job = run.job();
        EXPECT_EQ(run.server.updates, plain.server.updates) << at;
        EXPECT_EQ(StateFile(run.options.state_path).load("job", "a")->rule, "xxx") << at;
    }
}

TEST(FederatedClient, gives_up_when_its_patience_ends) {
    Party run;
    run.trouble = [] { return Trouble::lost_request; };
    try {
        run.run();
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(error.message().find("there is no connection to the server"), std::string::npos) << error.what();
    }
    EXPECT_GT(run.clock - 1'000'000, run.options.patience_ms);
    EXPECT_LT(run.clock - 1'000'000, 2 * run.options.patience_ms);
}

TEST(FederatedClient, learns_the_servers_clock) {
    Party run;
    run.server.wants_close_clocks = true;
    run.clock += 86'400'000;
    run.run();
    EXPECT_EQ(run.server.updates.size(), 3u);
}

TEST(FederatedClient, refuses_updates_that_are_no_numbers) {
    Party run;
    const auto job = run.job();
    while (job->advance().kind != Event::Kind::train) {
    }
    LocalUpdate update;
    update.samples = 1;
    update.features = {weights_of({1, NAN, 2})};
    EXPECT_THROW(job->give(update), Error);
    update.features = {weights_of({1, 2})};
    EXPECT_THROW(job->give(update), Error);
    update.features = {};
    EXPECT_THROW(job->give(update), Error);
}

TEST(FederatedClient, waits_longer_each_time_and_each_client_otherwise) {
    BackoffOptions options;
    options.first_ms = 100;
    options.most_ms = 1000;
    options.jitter = 0.5;
    const Backoff backoff(options);
    options.seed = 1;
    const Backoff other(options);
    int64_t whole = 100;
    bool differs = false;
    for (uint32_t attempt = 0; attempt < 40; ++attempt) {
        const int64_t wait = backoff.wait_ms(attempt, 3);
        EXPECT_GE(wait, whole / 2 - 1);
        EXPECT_LE(wait, whole);
        EXPECT_EQ(wait, backoff.wait_ms(attempt, 3));
        differs |= wait != other.wait_ms(attempt, 3);
        whole = std::min<int64_t>(whole * 2, 1000);
    }
    EXPECT_TRUE(differs);
}

TEST(FederatedClient, knows_a_damaged_state_and_that_of_another_client) {
    Party run;
    ClientState state;
    state.job = "job";
    state.client = "a";
    state.update = std::string("\0x", 2);
    state.phase = 6;
    const StateFile file(run.options.state_path);
    file.save(state);
    EXPECT_EQ(file.load("job", "a")->update, state.update);
    EXPECT_EQ(file.load("job", "a")->phase, 6);
    EXPECT_THROW(file.load("job", "b"), Error);
    EXPECT_THROW(file.load("other", "a"), Error);
    std::string text;
    std::getline(std::ifstream(file.path(), std::ios::binary), text, '\xff');
    for (size_t i = 0; i < text.size(); ++i) {
        std::string damaged = text;
        damaged[i] ^= 1;
        std::ofstream(file.path(), std::ios::binary) << damaged;
        EXPECT_THROW(file.load("job", "a"), Error) << i;
    }
}

TEST(FederatedClient, quantised_models_become_floats) {
    Feature feature;
    feature.name = "w";
    feature.shape = {3};
    feature.type = messages::ElementType::quantised;
    feature.data = std::string("\x00\x80\xff", 3);
    feature.low = -1;
    feature.high = 1;
    const std::vector<float> values = values_of(plain({{feature}, 1}).features.at(0));
    EXPECT_EQ(values[0], -1);
    EXPECT_NEAR(values[1], 1.0f / 255, 1e-6f);
    EXPECT_NEAR(values[2], 1, 1e-6f);
}

TEST(LocalNoise, has_the_least_deviation_of_the_exact_condition) {
    // By mpmath with 40 digits.
    EXPECT_NEAR(gaussian_deviation(1, 1e-5, 1), 3.7306316348159418, 1e-12);
    EXPECT_NEAR(gaussian_deviation(1, 1e-5, 6), 6 * 3.7306316348159418, 1e-11);
    EXPECT_NEAR(gaussian_deviation(50, 0.01, 1), 0.12460112363122812, 1e-12);
    EXPECT_NEAR(gaussian_deviation(0.1, 1e-6, 1), 36.304690426195783, 1e-10);
    EXPECT_NEAR(gaussian_deviation(8, 1e-5, 1), 0.60022907219895156, 1e-12);
}

TEST(LocalNoise, clips_and_adds_normal_noise) {
    uint64_t counter = 0;
    const auto random = [&](void* to, size_t bytes) {
        auto* words = static_cast<uint32_t*>(to);
        for (size_t i = 0; i < bytes / 4; ++i) words[i] = philox(3, ++counter, 0)[0];
    };
    constexpr size_t kCount = 40'001;
    std::vector<double> change(kCount, 1e300);
    make_private(change, 1.5, 2, 1e-5, random);
    const double deviation = gaussian_deviation(2, 1e-5, 3), each = 1.5 / std::sqrt(static_cast<double>(kCount));
    double mean = 0, square = 0;
    for (const double x : change) mean += (x - each) / kCount;
    for (const double x : change) square += (x - each) * (x - each) / kCount;
    EXPECT_NEAR(mean, 0, 5 * deviation / std::sqrt(kCount));
    EXPECT_NEAR(std::sqrt(square) / deviation, 1, 5 / std::sqrt(2.0 * kCount));
    std::vector<double> small = {0.1, -0.2};
    make_private(small, 1e9, 1e4, 0.5, [](void* to, size_t bytes) { std::memset(to, 0xff, bytes); });
    EXPECT_NEAR(small[0], 0.1, 1e-3) << "the logarithm of 1 is no noise";
}

}  // namespace
}  // namespace lunaria::federated::client
