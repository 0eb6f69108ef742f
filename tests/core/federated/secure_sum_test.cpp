#include "tests/core/federated/secure_sum.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include "core/base/error.h"
#include "tests/today.h"

namespace lunaria::federated {
namespace {

SecureSettings settings_of(size_t size, size_t threshold, bool is_signed = false, size_t neighbours = 0,
                           int bits = 64) {
    SecureSettings settings;
    settings.job = "test";
    settings.iteration = 7;
    settings.ring.bits = bits;
    settings.size = size;
    settings.threshold = threshold;
    settings.neighbours = neighbours;
    settings.is_signed = is_signed;
    return settings;
}

std::string error_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& e) {
        return e.what();
    }
    return "no error";
}

// Every way in which up to six clients drop out at one phase, which is another one each day.
TEST(SecureSum, Sum_of_survivors_is_the_plain_sum_for_every_set_that_drops_out) {
    int sums = 0, aborts = 0, phases = 0;
    for (size_t phase = 0; phase < 5; ++phase) {
        if (!lunaria::testing::is_of_today(phase, 5)) continue;
        ++phases;
        for (size_t n = 3; n <= 6; ++n)
            for (unsigned dropped = 0; dropped < 1u << n; ++dropped) {
                const size_t threshold = n / 2 + 1;
                SumCase c(settings_of(9, threshold, n % 2 == 0), n);
                for (size_t i = 0; i < n; ++i)
                    if (dropped >> i & 1) c.drops[i] = static_cast<int>(phase);
                if (n - static_cast<size_t>(std::popcount(dropped)) < threshold) {
                    EXPECT_THROW(c.run(), Error);
                    ++aborts;
                    continue;
                }
                const SecureSum sum = c.run();
                EXPECT_EQ(sum.elements, c.plain_sum());
                EXPECT_TRUE(sum.wrong.empty());
                ++sums;
            }
    }
    EXPECT_EQ(sums, phases * (4 + 5 + 16 + 22));
    EXPECT_EQ(aborts, phases * (4 + 11 + 16 + 42));
}

// Of 100 clients 33 drop out, at one of the phases or each at its own, another one each day; the 34th is one too many.
TEST(SecureSum, Hundred_clients_of_whom_a_third_drops_out_at_each_phase) {
    for (int phase = 1; phase < 6; ++phase) {
        if (!lunaria::testing::is_of_today(static_cast<size_t>(phase), 5)) continue;
        std::mt19937 random(3 + phase);
        SumCase c(settings_of(40, 67, phase == 3, 0, 40), 100);
        std::vector<size_t> order(100);
        std::iota(order.begin(), order.end(), size_t{0});
        std::shuffle(order.begin(), order.end(), random);
        for (size_t i = 0; i < 33; ++i) c.drops[order[i]] = phase < 5 ? phase : static_cast<int>(random() % 5);
        if (phase == 1) {
            SumCase fewer = c;
            fewer.drops[order[33]] = phase;
            EXPECT_NE(error_of([&] { fewer.run(); }).find("threshold is 67"), std::string::npos);
        }
        EXPECT_EQ(c.run().elements, c.plain_sum());
    }
}

TEST(SecureSum, Few_neighbours_give_the_same_sum) {
    std::mt19937 random(5);
    for (const size_t neighbours : {6, 10}) {
        SumCase c(settings_of(33, neighbours / 2 + 1, true, neighbours, 32), 40);
        for (int& drop : c.drops)
            if (random() % 10 == 0) drop = static_cast<int>(random() % 5);
        EXPECT_EQ(c.run().elements, c.plain_sum());
    }
}

TEST(SecureSum, Sums_in_several_threads_at_once) {
    std::vector<std::thread> threads;
    std::atomic<int> right = 0;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&right, i] {
            SumCase c(settings_of(50, 3, i % 2 == 1), 5);
            c.drops[static_cast<size_t>(i)] = i;
            right += c.run().elements == c.plain_sum();
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 4);
}

TEST(SecureSum, Rings_of_all_widths) {
    for (int bits = 8; bits <= 64; bits += 8) {
        SumCase c(settings_of(2500, 2, false, 0, bits), 3);
        c.drops[1] = 2;
        EXPECT_EQ(c.run().elements, c.plain_sum()) << bits;
    }
}

// What the server sees of a client is uniform, and has nothing to do with its vector: small weights, far from uniform.
TEST(SecureSum, Masked_updates_are_uniform) {
    const size_t size = 100000;
    SumCase c(settings_of(size, 5, false, 0, 32), 8);
    std::mt19937 random(11);
    std::normal_distribution<double> normal(0, 0.05);
    std::vector<std::vector<double>> values(8, std::vector<double>(size));
    for (size_t i = 0; i < 8; ++i)
        for (size_t j = 0; j < size; ++j) {
            values[i][j] = 100 * normal(random);
            c.vectors[i][j] = c.settings.ring.element(std::llrint(values[i][j] * 65536));
        }
    c.run();
    for (size_t i = 0; i < 8; ++i) {
        std::vector<uint64_t> masked(size, 0);
        add_packed(c.settings.ring, std::string_view(c.updates[i]).substr(32), masked);
        for (const int shift : {24, 16, 8, 0}) {
            std::array<double, 256> counts{};
            for (const uint64_t e : masked) ++counts[e >> shift & 255];
            double chi2 = 0;
            for (const double count : counts) chi2 += (count - size / 256.0) * (count - size / 256.0) / (size / 256.0);
            EXPECT_LT(chi2, 350) << "client " << i;  // 255 degrees of freedom: 1 in 30,000
            EXPECT_GT(chi2, 175);
        }
        double xy = 0, xx = 0, yy = 0;
        for (size_t j = 0; j < size; ++j) {
            const auto y = static_cast<double>(c.settings.ring.number(masked[j]));
            xy += values[i][j] * y;
            xx += values[i][j] * values[i][j];
            yy += y * y;
        }
        EXPECT_LT(std::fabs(xy / std::sqrt(xx * yy)), 0.02 + 0.01)
            << "client " << i;  // 4 deviations of 20,000 are 0.028
    }
}

// Sums whose messages can be changed on their way.
struct Protocol {
    explicit Protocol(const SecureSettings& s, size_t n) : settings(s), server(test_server(s)) {
        for (size_t i = 0; i < n; ++i) clients.push_back(test_client(s, str("c", i)));
    }
    void keys() {
        for (SecureClient& c : clients) sent.push_back(c.keys());
        for (size_t i = 0; i < clients.size(); ++i) server.accept_keys(clients[i].id(), sent[i]);
        server.close();
    }
    void shares() {
        sent.clear();
        for (SecureClient& c : clients) {
            sent.push_back(c.shares(server.key_list(c.id())));
            server.accept_shares(c.id(), sent.back());
        }
        server.close();
    }
    void updates() {
        sent.clear();
        for (size_t i = 0; i < clients.size(); ++i) {
            sent.push_back(
                clients[i].update(server.share_list(clients[i].id()), std::vector<uint64_t>(settings.size, i + 1)));
            server.accept_update(clients[i].id(), sent.back());
        }
        server.close();
    }
    void lists() {
        for (SecureClient& c : clients) {
            const std::string signature = c.list_signature(server.client_list());
            if (settings.is_signed) server.accept_list_signature(c.id(), signature);
        }
        if (settings.is_signed) server.close();
    }
    std::vector<uint64_t> reveal() {
        for (SecureClient& c : clients)
            server.accept_revealed(c.id(), c.reveal(settings.is_signed ? server.list_signatures() : std::string()));
        return server.finish().elements;
    }
    SecureSettings settings;
    SecureServer server;
    std::vector<SecureClient> clients;
    std::vector<std::string> sent;
};

TEST(SecureSum, Repeated_messages_change_nothing_and_others_are_refused) {
    for (const bool is_signed : {false, true}) {
        Protocol p(settings_of(5, 3, is_signed), 4);
        p.keys();
        p.shares();
        for (size_t i = 0; i < 4; ++i) {
            const std::string update =
                p.clients[i].update(p.server.share_list(p.clients[i].id()), std::vector<uint64_t>(5, i + 1));
            EXPECT_TRUE(p.server.accept_update(p.clients[i].id(), update));
            EXPECT_FALSE(p.server.accept_update(p.clients[i].id(), update));
            // Of another client, cut off, changed.
            EXPECT_NE(error_of([&] { p.server.accept_update(p.clients[(i + 1) % 4].id(), update); }).find("client 'c"),
                      std::string::npos);
            EXPECT_NE(
                error_of([&] { p.server.accept_update(p.clients[i].id(), update.substr(1)); }).find("bytes instead of"),
                std::string::npos);
            std::string changed = update;
            changed.back() ^= 1;
            EXPECT_NE(error_of([&] { p.server.accept_update(p.clients[i].id(), changed); }).find("update"),
                      std::string::npos);
            EXPECT_NE(error_of([&] { p.server.accept_shares(p.clients[i].id(), p.sent[i]); }).find("phase of shares"),
                      std::string::npos);
        }
        p.server.close();
        p.lists();
        EXPECT_EQ(p.reveal(), std::vector<uint64_t>(5, 10));
        EXPECT_NE(error_of([&] { p.server.finish(); }).find("done"), std::string::npos);
    }
}

TEST(SecureSum, Messages_of_another_iteration_are_refused) {
    SecureSettings other = settings_of(5, 3, true);
    other.iteration = 8;
    Protocol p(settings_of(5, 3, true), 4), q(other, 4);
    const std::string keys = p.clients[0].keys();
    EXPECT_NE(error_of([&] { q.server.accept_keys("c0", keys); }).find("not signed by it for this sum"),
              std::string::npos);
    // Unsigned: keys do not tell, and the shares under them do not open.
    Protocol r(settings_of(5, 3), 4);
    SecureSettings again = r.settings;
    again.iteration = 8;
    Protocol s(again, 4);
    r.keys();
    r.shares();
    s.keys();
    s.shares();
    EXPECT_NE(error_of([&] {
                  s.clients[0].update(r.server.share_list("c0"), std::vector<uint64_t>(5, 1));
              }).find("altered, or is of another sum"),
              std::string::npos);
    // A client whose step failed gives nothing more.
    EXPECT_NE(error_of([&] { s.clients[0].list_signature(""); }).find("turn of nothing"), std::string::npos);
}

TEST(SecureSum, Changed_messages_are_named_errors_or_the_right_sum) {
    std::mt19937 random(1);
    const auto change = [&](std::string text) {
        if (text.empty()) return text;
        switch (random() % 3) {
            case 0:
                text[random() % text.size()] ^= static_cast<char>(1 << random() % 8);
                break;
            case 1:
                text.resize(random() % text.size());
                break;
            default:
                text.insert(random() % text.size(), 1, static_cast<char>(random()));
        }
        return text;
    };
    int errors = 0, sums = 0;
    for (int i = 0; i < 360; ++i) {
        const bool is_signed = i % 2;
        const int which = i / 2 % 9;
        const auto maybe = [&](int place, std::string text) { return place == which ? change(std::move(text)) : text; };
        try {
            Protocol p(settings_of(3, 3, is_signed), 4);
            const auto of_first = [&](size_t k, int place, const std::string& text) {
                return k == 0 ? maybe(place, text) : text;
            };
            for (size_t k = 0; k < 4; ++k) p.server.accept_keys(p.clients[k].id(), of_first(k, 0, p.clients[k].keys()));
            p.server.close();
            for (size_t k = 0; k < 4; ++k)
                p.server.accept_shares(
                    p.clients[k].id(),
                    of_first(k, 1, p.clients[k].shares(of_first(k, 2, p.server.key_list(p.clients[k].id())))));
            p.server.close();
            for (size_t k = 0; k < 4; ++k)
                p.server.accept_update(
                    p.clients[k].id(),
                    of_first(k, 3,
                             p.clients[k].update(of_first(k, 4, p.server.share_list(p.clients[k].id())),
                                                 std::vector<uint64_t>(3, k))));
            p.server.close();
            for (size_t k = 0; k < 4; ++k) {
                const std::string signature = p.clients[k].list_signature(of_first(k, 5, p.server.client_list()));
                if (is_signed) p.server.accept_list_signature(p.clients[k].id(), of_first(k, 6, signature));
            }
            if (is_signed) p.server.close();
            for (size_t k = 0; k < 4; ++k)
                p.server.accept_revealed(p.clients[k].id(),
                                         of_first(k, 7,
                                                  p.clients[k].reveal(of_first(
                                                      k, 8, is_signed ? p.server.list_signatures() : std::string()))));
            EXPECT_EQ(p.server.finish().elements, std::vector<uint64_t>(3, 6)) << which;
            ++sums;
        } catch (const Error& e) {
            EXPECT_GT(std::string(e.what()).size(), 20u);
            ++errors;
        }
    }
    EXPECT_GT(errors, 180);
    EXPECT_GT(sums, 10);
}

TEST(SecureSum, A_client_that_reveals_wrong_shares_is_found_and_left_out) {
    Protocol p(settings_of(4, 3), 5);
    p.keys();
    p.shares();
    p.updates();
    p.lists();
    for (size_t i = 0; i < 5; ++i) {
        std::string message = p.clients[i].reveal({});
        if (i == 1) {
            auto list = messages::parsed<messages::ShareList>(message, "test");
            for (messages::Share& share : list.shares) share.bytes[3] ^= 1;
            message = messages::written(list);
        }
        p.server.accept_revealed(p.clients[i].id(), message);
    }
    const SecureSum sum = p.server.finish();
    EXPECT_EQ(sum.elements, std::vector<uint64_t>(4, 15));
    EXPECT_EQ(sum.wrong, std::vector<std::string>{"c1"});
}

TEST(SecureSum, A_server_with_two_lists_gets_no_shares) {
    Protocol p(settings_of(4, 3, true), 4);
    p.keys();
    p.shares();
    p.updates();
    // It tells one client that another has dropped out.
    messages::ClientList shorter;
    shorter.clients = {"c0", "c1", "c2"};
    for (size_t i = 0; i < 4; ++i) {
        const std::string signature =
            p.clients[i].list_signature(i == 0 ? messages::written(shorter) : p.server.client_list());
        if (i > 0) p.server.accept_list_signature(p.clients[i].id(), signature);
        if (i == 0) {
            EXPECT_NE(error_of([&] { p.server.accept_list_signature("c0", signature); }).find("not signed the list"),
                      std::string::npos);
        }
    }
    p.server.close();
    EXPECT_NE(error_of([&] { p.clients[0].reveal(p.server.list_signatures()); }).find("has signed another list"),
              std::string::npos);
    EXPECT_NO_THROW(p.clients[1].reveal(p.server.list_signatures()));
}

TEST(SecureSum, No_secret_is_in_an_error) {
    // All errors of changed messages name clients and numbers; hexadecimal or raw keys are in none of them.
    Protocol p(settings_of(2, 2), 3);
    p.keys();
    p.shares();
    const std::string list = p.server.share_list("c0");
    std::string changed = list;
    changed.back() ^= 1;
    const std::string message = error_of([&] { p.clients[0].update(changed, std::vector<uint64_t>{1, 2}); });
    EXPECT_EQ(message, "secure aggregation: client 'c2': its share for client 'c0' was altered, or is of another sum");
}

TEST(SecureSum, Settings_that_protect_nothing_are_refused) {
    EXPECT_NE(error_of([] { test_server(settings_of(5, 1)); }).find("at least 2"), std::string::npos);
    EXPECT_NE(error_of([] { test_server(settings_of(5, 3, false, 3)); }).find("even"), std::string::npos);
    EXPECT_NE(error_of([] { test_server(settings_of(5, 9, false, 4)); }).find("more than the neighbours"),
              std::string::npos);
    EXPECT_NE(error_of([] { test_server(settings_of(0, 2)); }).find("size"), std::string::npos);
    EXPECT_NE(error_of([] { SumCase(settings_of(5, 2, true), 6).run(); }).find("more than half"), std::string::npos);
    EXPECT_NE(error_of([] { SecureClient(settings_of(5, 2), ""); }).find("id"), std::string::npos);
    EXPECT_NE(error_of([] { SecureClient(settings_of(5, 2, true), "a"); }).find("signing key"), std::string::npos);
}

}  // namespace
}  // namespace lunaria::federated
