// The state machine of a federated job: random events against a plain model, and what each setting is for.
#include "core/federated/rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace lunaria::federated {

namespace {

// The same rules, written down as sets of devices for each phase of a synchronous job, without marks and bits.
class Model {
  public:
    explicit Model(const JobSettings& s) : s_(s) {
        order_ = {Phase::starting};
        if (s.encryption != Encryption::none) order_.push_back(Phase::exchanging_keys);
        if (s.encryption == Encryption::pairwise) order_.push_back(Phase::sharing_secrets);
        order_.push_back(Phase::updating);
        if (s.encryption == Encryption::pairwise && s.signed_lists) order_.push_back(Phase::signing_lists);
        if (s.encryption == Encryption::pairwise) order_.push_back(Phase::reconstructing);
        order_.push_back(Phase::aggregating);
    }

    int64_t iteration = 1;
    size_t at = 0;  // the place of the phase in the order
    bool over = false;
    std::map<Phase, std::set<DeviceId>> taken;
    std::map<DeviceId, uint64_t> digests;

    Phase phase() const { return over ? Phase::finished : order_[at]; }
    bool has(Phase phase) const { return std::ranges::find(order_, phase) != order_.end(); }

    void pass(Time now) {
        now_ = now;
        if (over || phase() == Phase::aggregating || !begun_) return;
        if (now < std::min(phase_end_, end_)) return;
        if (phase_end_ <= end_) {
            if (taken[phase()].size() < needed(at)) return fail();
            next();
            if (phase() == Phase::aggregating || now < end_) return;
        }
        fail();
    }

    Code start(DeviceId d, bool& repeated) {
        if (over) return Code::out_of_time;
        if (taken[Phase::starting].contains(d)) {
            if (phase() == Phase::aggregating) return Code::out_of_time;
            repeated = true;
            return Code::succeed;
        }
        if (at != 0) return Code::out_of_time;
        if (!begun_) {
            begun_ = true;
            phase_end_ = now_ + s_.start_window;
            end_ = now_ + s_.global_window;
        }
        take(d, Phase::starting);
        return Code::succeed;
    }

    Code request(DeviceId d, int64_t i, Phase phase, uint64_t digest, bool& repeated) {
        if (!has(phase) || i < 1 || i > iteration) return Code::request_error;
        if (i < iteration) return Code::out_of_time;
        if (!taken[Phase::starting].contains(d)) return Code::request_error;
        if (taken[phase].contains(d)) {
            if (phase == Phase::updating && digests[d] != digest) return Code::request_error;
            repeated = true;
            return Code::succeed;
        }
        const size_t place = place_of(phase);
        if (over || at > place) return Code::out_of_time;
        if (!taken[order_[place - 1]].contains(d)) return at < place ? Code::not_ready : Code::request_error;
        if (at < place) return Code::not_ready;
        if (phase == Phase::updating) digests[d] = digest;
        take(d, phase);
        return Code::succeed;
    }

    void finish() { advance(); }

    size_t needed(size_t place) const {
        const Phase p = order_[place];
        if (p == Phase::starting) return static_cast<size_t>(s_.start_threshold);
        const auto before = taken.contains(order_[place - 1]) ? taken.at(order_[place - 1]).size() : 0;
        const auto share = [&](double r) {
            // In whole percents, exactly.
            const auto percents = static_cast<size_t>(std::lround(r * 100));
            return std::max<size_t>(1, (before * percents + 99) / 100);
        };
        const auto t = static_cast<size_t>(s_.reconstruct_threshold);
        if (p == Phase::signing_lists || p == Phase::reconstructing) return t;
        if (p != Phase::updating) return share(s_.share_ratio);
        if (s_.encryption == Encryption::stable) return std::max<size_t>(1, before);
        return s_.encryption == Encryption::pairwise ? std::max(t, share(s_.update_ratio)) : share(s_.update_ratio);
    }

  private:
    size_t place_of(Phase phase) const {
        return static_cast<size_t>(std::ranges::find(order_, phase) - order_.begin());
    }
    void take(DeviceId d, Phase phase) {
        taken[phase].insert(d);
        const bool counts = phase == Phase::starting || phase == Phase::updating;
        if (taken[phase].size() == (counts ? needed(at) : taken[order_[at - 1]].size())) next();
    }
    void next() {
        ++at;
        if (phase() != Phase::aggregating)
            phase_end_ = now_ + (phase() == Phase::updating ? s_.update_window : s_.cipher_window);
    }
    void fail() { advance(); }
    void advance() {
        if (iteration == s_.iterations) {
            over = true;
            return;
        }
        ++iteration;
        at = 0;
        begun_ = false;
        taken.clear();
        digests.clear();
    }

    JobSettings s_;
    std::vector<Phase> order_;
    bool begun_ = false;
    Time now_ = 0, phase_end_ = 0, end_ = 0;
};

JobSettings random_settings(std::mt19937_64& random) {
    const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
    JobSettings s;
    s.name = "job";
    s.iterations = 1 + below(4);
    s.start_threshold = 1 + below(6);
    s.start_window = 1 + below(60);
    s.update_window = 1 + below(60);
    s.cipher_window = 1 + below(60);
    s.global_window = below(3) ? 1000 : 1 + below(150);
    s.update_ratio = static_cast<double>(1 + below(100)) / 100;
    s.share_ratio = static_cast<double>(1 + below(100)) / 100;
    s.encryption = static_cast<Encryption>(below(3));
    s.reconstruct_threshold = 1 + below(static_cast<uint64_t>(s.start_threshold));
    s.signed_lists = below(2);
    s.spread = below(2) * 100;
    return s;
}

constexpr Phase kRequests[] = {Phase::exchanging_keys, Phase::sharing_secrets, Phase::updating, Phase::signing_lists,
                               Phase::reconstructing};

void compare(const Rounds& rounds, const Model& model) {
    ASSERT_EQ(rounds.iteration(), model.iteration);
    ASSERT_EQ(name_of(rounds.phase()), name_of(model.phase()));
    if (model.over) return;
    for (const auto& [phase, devices] : model.taken)
        ASSERT_EQ(rounds.taken(phase), static_cast<int64_t>(devices.size())) << name_of(phase);
    if (model.phase() != Phase::aggregating) {
        ASSERT_EQ(rounds.needed(rounds.phase()), static_cast<int64_t>(model.needed(model.at)));
    }
}

// One random event for both.
void step(std::mt19937_64& random, Rounds& rounds, Model& model, Time& now) {
    const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
    now += below(4) ? below(5) : below(80);
    model.pass(now);
    const DeviceId d = random() % 9;
    const int64_t i = below(8) ? model.iteration : below(6);
    Code wanted = Code::succeed;
    Answer a;
    bool repeated = false;
    switch (below(8)) {
        case 0:
        case 1:
            wanted = model.start(d, repeated);
            a = rounds.start(now, d);
            break;
        case 2:
            rounds.tick(now);
            return;
        case 3: {
            // What is asked of a phase is there when it is over.
            const Phase p = kRequests[below(5)];
            const bool is_there =
                model.has(p) && i == model.iteration && model.taken[p].contains(d) && model.phase() > p;
            a = rounds.look(now, d, i, p);
            ASSERT_EQ(a.code == Code::succeed, is_there);
            return;
        }
        case 4:
            if (model.phase() == Phase::aggregating && below(2)) {
                model.finish();
                rounds.finish(now, true);
                return;
            }
            [[fallthrough]];
        default: {
            // Mostly what the phase waits for.
            const Phase waits = model.phase();
            const bool fits = below(4) && waits > Phase::starting && waits < Phase::aggregating;
            const Phase p = fits ? waits : kRequests[below(5)];
            const uint64_t digest = below(6) ? d : random();
            wanted = model.request(d, i, p, digest, repeated);
            a = p == Phase::updating ? rounds.update(now, d, i, digest) : rounds.cipher(now, d, i, p);
        }
    }
    ASSERT_EQ(static_cast<int>(a.code), static_cast<int>(wanted)) << a.reason;
    ASSERT_EQ(a.repeated, repeated);
    if (a.code == Code::not_ready || (a.code == Code::out_of_time && !model.over)) {
        ASSERT_GT(a.next_request, now);
    }
    ASSERT_EQ(a.reason.empty(), a.code == Code::succeed || a.code == Code::not_ready);
}

TEST(Rounds, AnswersAsAPlainModelForRandomEventsAndAfterRestarts) {
    for (uint64_t seed = 0; seed < 400; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random(seed);
        const JobSettings settings = random_settings(random);
        auto rounds = std::make_unique<Rounds>(settings);
        Model model(settings);
        Time now = 0;
        for (int i = 0; i < 300 && !testing::Test::HasFatalFailure(); ++i) {
            step(random, *rounds, model, now);
            compare(*rounds, model);
            if (random() % 10 == 0) {
                const std::string bytes = rounds->bytes();
                rounds = std::make_unique<Rounds>(settings, bytes);
                ASSERT_EQ(rounds->bytes(), bytes);
            }
        }
        ASSERT_FALSE(testing::Test::HasFatalFailure());
    }
}

// Of an asynchronous job: what each device does, by its name.
struct Asynchronous {
    int64_t iteration = 1, buffered = 0;
    struct Device {
        int64_t started = 0, sent_in = 0;
        bool sent = false;
    };
    std::map<DeviceId, Device> devices;
    int64_t training(int64_t oldest) const {
        return std::ranges::count_if(
            devices, [&](const auto& d) { return !d.second.sent && d.second.started >= std::max<int64_t>(1, oldest); });
    }
};

TEST(Rounds, AsynchronousJobsAnswerAsAPlainModel) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random(seed);
        JobSettings s;
        s.name = "job";
        s.asynchronous = true;
        s.iterations = 1000;
        s.buffer = 1 + static_cast<int64_t>(random() % 3);
        s.concurrency = random() % 2 ? s.buffer + static_cast<int64_t>(random() % 3) : 0;
        s.max_staleness = static_cast<int64_t>(random() % 4);
        auto rounds = std::make_unique<Rounds>(s);
        Asynchronous model;
        for (int i = 0; i < 300; ++i) {
            const Time now = i;
            const DeviceId d = random() % 7;
            auto& device = model.devices[d];
            const int64_t oldest = model.iteration - s.max_staleness;
            if (random() % 2) {
                const bool trains = device.started >= std::max<int64_t>(1, oldest) && !device.sent;
                Code wanted = Code::succeed;
                if (model.buffered == s.buffer)
                    wanted = Code::not_ready;
                else if (device.sent && device.sent_in == model.iteration)
                    wanted = Code::out_of_time;
                else if (!trains && s.concurrency && model.training(oldest) >= s.concurrency)
                    wanted = Code::out_of_time;
                else
                    device = {model.iteration, 0, false};
                ASSERT_EQ(static_cast<int>(rounds->start(now, d).code), static_cast<int>(wanted));
            } else {
                const int64_t of = random() % 5 ? device.started : 1 + static_cast<int64_t>(random() % 4);
                Code wanted = Code::request_error;
                if (of >= 1 && of <= model.iteration && device.sent && device.sent_in >= oldest) {
                    wanted = Code::succeed;
                } else if (of >= 1 && of == device.started && of >= oldest && !device.sent) {
                    wanted = model.buffered == s.buffer ? Code::not_ready : Code::succeed;
                    if (wanted == Code::succeed) device.sent = true, device.sent_in = model.iteration, ++model.buffered;
                } else if (of >= 1 && of < oldest && (device.sent ? device.sent_in : device.started) < oldest) {
                    wanted = Code::out_of_time;
                }
                const Answer a = rounds->update(now, d, of, d);
                ASSERT_EQ(static_cast<int>(a.code), static_cast<int>(wanted)) << a.reason;
                if (a.code == Code::succeed && !a.repeated) {
                    ASSERT_EQ(a.staleness, model.iteration - of);
                }
            }
            ASSERT_EQ(rounds->phase() == Phase::aggregating, model.buffered == s.buffer);
            ASSERT_EQ(rounds->training(), model.training(model.iteration - s.max_staleness));
            if (model.buffered == s.buffer && random() % 2) {
                rounds->finish(now, true);
                ++model.iteration;
                model.buffered = 0;
            }
            if (random() % 10 == 0) {
                const std::string bytes = rounds->bytes();
                rounds = std::make_unique<Rounds>(s, bytes);
                ASSERT_EQ(rounds->bytes(), bytes);
            }
        }
    }
}

JobSettings three_devices() {
    JobSettings s;
    s.name = "job";
    s.iterations = 10;
    s.start_threshold = 3;
    s.update_ratio = 0.6;
    return s;
}

TEST(Rounds, FailedIterationKeepsItsNumberAndSaysWhy) {
    Rounds rounds(three_devices());
    rounds.start(0, 1);
    EXPECT_EQ(rounds.deadline(), 3000);
    EXPECT_FALSE(rounds.tick(2999));
    EXPECT_TRUE(rounds.tick(3000));
    EXPECT_EQ(rounds.iteration(), 2);
    EXPECT_EQ(rounds.last().iteration, 1);
    EXPECT_FALSE(rounds.last().valid);
    EXPECT_NE(rounds.last().reason.find("too few devices started"), std::string::npos);
    EXPECT_EQ(rounds.deadline(), std::nullopt);
    // What it answers to an update of the iteration that is over.
    EXPECT_EQ(rounds.update(3001, 1, 1, 0).code, Code::out_of_time);
    EXPECT_EQ(rounds.model(3001, 1).code, Code::succeed);
    EXPECT_EQ(rounds.model(3001, 1).reason, "the iteration failed, and the weights are those before it");
    EXPECT_EQ(rounds.model(3001, 2).code, Code::not_ready);
    EXPECT_EQ(rounds.model(3001, 3).code, Code::request_error);
}

// The next iteration may begin long before this one's window ends, and waits 3 s for its three devices.
TEST(Rounds, ARefusedDeviceComesBackInTimeForTheNextIteration) {
    JobSettings s = three_devices();
    s.update_window = 60'000;
    Rounds rounds(s);
    for (DeviceId d = 1; d <= 3; ++d) rounds.start(10, d);
    const Answer late = rounds.start(20, 4);
    EXPECT_EQ(late.code, Code::out_of_time);
    EXPECT_EQ(late.next_request, 3020);
    for (DeviceId d = 1; d <= 3; ++d) rounds.update(1000, d, 1, 0);
    rounds.finish(1001, true);
    EXPECT_EQ(rounds.model(1002, 1).reason, "");
    rounds.start(1002, 1);
    rounds.start(1002, 2);
    EXPECT_EQ(rounds.start(late.next_request, 4).code, Code::succeed);
    EXPECT_EQ(rounds.phase(), Phase::updating);
}

TEST(Rounds, LateAndUnknownDevicesChangeNothing) {
    Rounds rounds(three_devices());
    for (DeviceId d = 1; d <= 3; ++d) EXPECT_TRUE(rounds.start(10, d).changed);
    const std::string before = rounds.bytes();
    const Answer late = rounds.start(10, 4);
    EXPECT_EQ(late.code, Code::out_of_time);
    EXPECT_EQ(late.next_request, 3010);
    EXPECT_EQ(rounds.update(10, 4, 1, 0).code, Code::request_error);
    EXPECT_EQ(rounds.update(10, 1, 2, 0).code, Code::request_error);
    EXPECT_EQ(rounds.cipher(10, 1, 1, Phase::exchanging_keys).code, Code::request_error);
    EXPECT_EQ(rounds.bytes(), before);
    EXPECT_TRUE(rounds.update(11, 2, 1, 77).changed);
    EXPECT_TRUE(rounds.update(12, 2, 1, 77).repeated);
    EXPECT_EQ(rounds.update(12, 2, 1, 78).code, Code::request_error);
    EXPECT_EQ(rounds.taken(Phase::updating), 1);
    // Two of three are 0.6 of them.
    EXPECT_TRUE(rounds.update(12, 3, 1, 0).changed);
    EXPECT_EQ(rounds.phase(), Phase::aggregating);
    EXPECT_EQ(rounds.update(12, 1, 1, 0).code, Code::out_of_time);
    EXPECT_FALSE(rounds.close(12, Phase::updating));
    rounds.finish(13, true);
    EXPECT_EQ(rounds.iteration(), 2);
    EXPECT_THROW(rounds.finish(13, true), Error);
}

TEST(Rounds, SecureAggregationGoesOnWithThoseThatAreLeft) {
    JobSettings s = three_devices();
    s.start_threshold = 5;
    s.encryption = Encryption::pairwise;
    s.share_ratio = 0.6;
    s.reconstruct_threshold = 2;
    Rounds rounds(s);
    for (DeviceId d = 0; d < 5; ++d) rounds.start(0, d);
    ASSERT_EQ(rounds.phase(), Phase::exchanging_keys);
    // It waits for all of them, but not beyond the window.
    for (DeviceId d = 0; d < 4; ++d) EXPECT_EQ(rounds.cipher(1, d, 1, Phase::exchanging_keys).code, Code::succeed);
    EXPECT_EQ(rounds.look(1, 0, 1, Phase::exchanging_keys).code, Code::not_ready);
    EXPECT_EQ(rounds.cipher(1, 0, 1, Phase::sharing_secrets).code, Code::not_ready);
    EXPECT_TRUE(rounds.tick(3000));
    EXPECT_EQ(rounds.look(3000, 0, 1, Phase::exchanging_keys).code, Code::succeed);
    EXPECT_EQ(rounds.cipher(3000, 4, 1, Phase::exchanging_keys).code, Code::out_of_time);
    EXPECT_EQ(rounds.cipher(3000, 4, 1, Phase::sharing_secrets).code, Code::request_error);
    for (DeviceId d = 0; d < 3; ++d) rounds.cipher(3001, d, 1, Phase::sharing_secrets);
    rounds.tick(6000);
    ASSERT_EQ(rounds.phase(), Phase::updating);
    rounds.update(6001, 0, 1, 0);
    rounds.update(6001, 1, 1, 0);
    ASSERT_EQ(rounds.phase(), Phase::reconstructing);
    EXPECT_EQ(rounds.cipher(6002, 2, 1, Phase::reconstructing).code, Code::request_error);
    rounds.cipher(6002, 0, 1, Phase::reconstructing);
    EXPECT_FALSE(rounds.close(6002, Phase::reconstructing));
    rounds.cipher(6002, 1, 1, Phase::reconstructing);
    EXPECT_EQ(rounds.phase(), Phase::aggregating);
}

TEST(Rounds, SelectionIsOfTheSeedAndRefusedDevicesSpreadOut) {
    JobSettings s = three_devices();
    s.start_threshold = 1'000'000;
    s.selection = 0.25;
    s.spread = 10'000;
    s.seed = 5;
    Rounds rounds(s), again(s);
    int64_t taken = 0, early = 0;
    for (DeviceId d = 0; d < 20'000; ++d) {
        const Answer a = rounds.start(0, d), b = again.start(0, 19'999 - d);
        taken += a.code == Code::succeed;
        if (a.code == Code::out_of_time) early += a.next_request < 3000 + s.spread / 2;
        (void)b;
    }
    EXPECT_NEAR(static_cast<double>(taken), 5000, 250);
    EXPECT_NEAR(static_cast<double>(early), 7500, 300);
    EXPECT_EQ(rounds.members().all(), again.members().all());
}

TEST(Rounds, AsynchronousJobGivesUpDevicesThatSendNothing) {
    JobSettings s;
    s.name = "job";
    s.asynchronous = true;
    s.iterations = 100;
    s.buffer = s.concurrency = 2;
    s.global_window = 1000;
    Rounds rounds(s);
    rounds.start(0, 1);
    rounds.start(0, 2);
    EXPECT_EQ(rounds.start(1, 3).code, Code::out_of_time);
    EXPECT_TRUE(rounds.tick(1000));
    EXPECT_FALSE(rounds.last().valid);
    EXPECT_EQ(rounds.training(), 0);
    EXPECT_EQ(rounds.update(1001, 1, 1, 0).code, Code::request_error);
    EXPECT_EQ(rounds.start(1001, 3).code, Code::succeed);
    rounds.update(1002, 3, 2, 0);
    // One update waits for another one, but not for ever.
    EXPECT_TRUE(rounds.tick(2002));
    EXPECT_EQ(rounds.phase(), Phase::aggregating);
}

TEST(Rounds, SettingsOutOfRangeAreNamed) {
    const auto fails = [](auto change, std::string_view text) {
        JobSettings s = three_devices();
        change(s);
        try {
            Rounds rounds(s);
            ADD_FAILURE() << text;
        } catch (const Error& e) {
            EXPECT_NE(std::string_view(e.what()).find(text), std::string_view::npos) << e.what();
        }
    };
    fails([](JobSettings& s) { s.iterations = 0; }, "iterations must be 1 to");
    fails([](JobSettings& s) { s.update_ratio = 0; }, "update_ratio must be above 0");
    fails([](JobSettings& s) { s.update_ratio = std::nan(""); }, "update_ratio");
    fails([](JobSettings& s) { s.start_window = 0; }, "start_window");
    fails([](JobSettings& s) { s.encryption = Encryption::pairwise, s.reconstruct_threshold = 4; }, "only 3 devices");
    fails([](JobSettings& s) { s.asynchronous = true, s.encryption = Encryption::stable; }, "cannot be encrypted");
    fails([](JobSettings& s) { s.asynchronous = true, s.buffer = 3, s.concurrency = 2; }, "only 2 devices train");
}

TEST(Rounds, DamagedBytesAreRefused) {
    Rounds rounds(three_devices());
    for (DeviceId d = 1; d <= 3; ++d) rounds.start(10, d);
    const std::string bytes = rounds.bytes();
    JobSettings other = three_devices();
    other.name = "another";
    EXPECT_THROW(Rounds(other, bytes), Error);
    other = three_devices();
    other.asynchronous = true;
    other.update_ratio = 1;
    Rounds fresh(three_devices());
    fresh.start(0, 1);
    EXPECT_THROW(Rounds(other, fresh.bytes()), Error);
    std::mt19937_64 random(3);
    for (int i = 0; i < 3000; ++i) {
        std::string damaged = bytes;
        if (random() % 2) damaged.resize(random() % damaged.size());
        for (uint64_t k = random() % 3; k > 0 && !damaged.empty(); --k)
            damaged[random() % damaged.size()] = static_cast<char>(random());
        try {
            Rounds read(three_devices(), damaged);
            read.start(20, 4);
            read.update(20, 1, 1, 0);
            read.tick(1'000'000'000);
        } catch (const Error&) {
        }
    }
}

TEST(Rounds, TenThousandIterationsNeedNoMoreThanOne) {
    JobSettings s = three_devices();
    s.iterations = 20'000;
    Rounds rounds(s);
    size_t first = 0;
    for (int64_t round = 1; round <= 10'000; ++round) {
        for (DeviceId d = 0; d < 3; ++d) rounds.start(round, d + static_cast<DeviceId>(round) * 17);
        if (round == 1) first = rounds.bytes().size();
        if (round == 10'000) {
            EXPECT_LT(rounds.bytes().size(), first + 64);
        }
        for (DeviceId d = 0; d < 2; ++d) rounds.update(round, d + static_cast<DeviceId>(round) * 17, round, 1);
        rounds.finish(round, true);
    }
    EXPECT_EQ(rounds.iteration(), 10'001);
}

TEST(Rounds, MillionsOfDevicesInARoundWithoutGrowth) {
    JobSettings s;
    s.name = "job";
    s.iterations = 1000;
    constexpr int64_t kDevices = 200'000;
    s.start_threshold = kDevices;
    Rounds rounds(s);
    for (int64_t round = 1; round <= 5; ++round) {
        for (int64_t d = 0; d < kDevices + 1000; ++d) rounds.start(round, static_cast<DeviceId>(d * 31 + round));
        ASSERT_EQ(rounds.phase(), Phase::updating);
        for (int64_t d = 0; d < kDevices; ++d)
            ASSERT_EQ(rounds.update(round, static_cast<DeviceId>(d * 31 + round), round, 7).code, Code::succeed);
        ASSERT_EQ(rounds.members().size(), kDevices);
        rounds.finish(round, true);
        ASSERT_EQ(rounds.members().size(), 0);
    }
}

}  // namespace

}  // namespace lunaria::federated
