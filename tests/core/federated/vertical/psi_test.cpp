#include "core/federated/vertical/psi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/error.h"
#include "tests/today.h"

namespace lunaria::federated {
namespace {

std::vector<std::string> numbered(int from, int count, int step = 1) {
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) ids.push_back("id " + std::to_string(from + i * step));
    return ids;
}

struct Transcript {
    std::vector<std::string> first, second;            // the common ids at each side
    std::vector<std::string> from_first, from_second;  // messages
};

Transcript run(const std::vector<std::string>& a, const std::vector<std::string>& b, int64_t bins = 1,
               bool first_learns = true, bool second_learns = true) {
    PsiOptions options{true, first_learns, second_learns, bins, {}};
    PrivateIntersection first(a, options);
    options.is_first = false;
    PrivateIntersection second(b, options);
    Transcript result;
    for (int turns = 0; turns < 10'000 && !(first.is_done() && second.is_done()); ++turns) {
        if (auto message = first.next()) {
            result.from_first.push_back(*message);
            second.take(*message);
        }
        if (auto message = second.next()) {
            result.from_second.push_back(*message);
            first.take(*message);
        }
    }
    EXPECT_TRUE(first.is_done() && second.is_done());
    for (const size_t i : first.common()) result.first.push_back(a[i]);
    for (const size_t i : second.common()) result.second.push_back(b[i]);
    return result;
}

std::vector<std::string> joined(std::vector<std::string> a, std::vector<std::string> b) {
    std::ranges::sort(a);
    std::ranges::sort(b);
    std::vector<std::string> common;
    std::ranges::set_intersection(a, b, std::back_inserter(common));
    return common;
}

TEST(Psi, FindsExactlyTheCommonIdsOnBothSides) {
    size_t number = 0;
    for (const auto& [a, b] : std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>>{
             {numbered(0, 40), numbered(20, 40)},
             {numbered(0, 7), numbered(0, 90)},
             {numbered(0, 90, 3), numbered(5, 4)},
             {numbered(0, 10), numbered(100, 10)},
             {numbered(0, 10), numbered(0, 10)},
             {{}, numbered(0, 5)},
             {numbered(0, 5), {}},
             {{}, {}},
             {{"", "a", std::string("a\0", 2)}, {"a", ""}}})
        for (const int64_t bins : {1, 3, 16})
            for (const auto& [first, second] :
                 {std::pair(true, true), std::pair(true, false), std::pair(false, true)}) {
                if (!lunaria::testing::is_of_today(number++, 4)) continue;
                const Transcript got = run(a, b, bins, first, second);
                const auto expected = joined(a, b);
                EXPECT_EQ(got.first, first ? expected : std::vector<std::string>()) << bins;
                EXPECT_EQ(got.second, second ? expected : std::vector<std::string>()) << bins;
            }
}

// All points that a side has sent.
std::vector<Bytes32> points_in(const std::vector<std::string>& messages) {
    std::vector<Bytes32> all;
    for (const std::string& text : messages) {
        const PsiMessage m = read_psi_message(text);
        all.insert(all.end(), m.points.begin(), m.points.end());
    }
    return all;
}

TEST(Psi, PointsOfARunTellNothingOfAnotherAndStandInNoOrder) {
    const auto a = numbered(0, 300), b = numbered(150, 300);
    const Transcript one = run(a, b), other = run(a, b);
    const auto points = points_in(one.from_first), again = points_in(other.from_first);
    ASSERT_EQ(points.size(), 300u);
    EXPECT_TRUE(std::ranges::is_sorted(points));
    const std::set<Bytes32> known(points.begin(), points.end());
    for (const Bytes32& point : again) EXPECT_FALSE(known.contains(point));
    // Neither side's points are among the other's: equal ids show only when both scalars are in.
    for (const Bytes32& point : points_in(one.from_second)) EXPECT_FALSE(known.contains(point));
}

TEST(Psi, BytesOfPointsLookRandom) {
    // The low 251 bits of encodings of random points: chi-squared of 248 whole bits, each with a mean of half.
    const auto points = points_in(run(numbered(0, 2000), {}).from_first);
    const auto n = static_cast<double>(points.size());
    double chi = 0;
    for (size_t bit = 1; bit < 249; ++bit) {  // the lowest one is 0 in each encoding
        double ones = 0;
        for (const Bytes32& p : points) ones += p[bit / 8] >> (bit % 8) & 1;
        chi += (ones - n / 2) * (ones - n / 2) / (n / 4);
    }
    EXPECT_LT(std::abs(chi - 248) / std::sqrt(2 * 248), 4.5) << chi;
}

TEST(Psi, WhatIsSentDependsOnTheSizesAlone) {
    // Other ids that are not common, and common ids: the lengths of all messages are the same.
    for (const int64_t bins : {1, 4}) {
        const Transcript one = run(numbered(0, 100), numbered(50, 80), bins),
                         other = run(numbered(0, 100), numbered(500, 80), bins);
        ASSERT_EQ(one.from_first.size(), other.from_first.size());
        for (size_t i = 0; i < one.from_first.size(); ++i) {
            EXPECT_EQ(one.from_first[i].size(), other.from_first[i].size());
            EXPECT_EQ(one.from_second[i < one.from_second.size() ? i : 0].size(),
                      other.from_second[i < one.from_second.size() ? i : 0].size());
        }
    }
    // Each bin has as many points as every other.
    std::set<size_t> sizes;
    for (const std::string& text : run(numbered(0, 100), numbered(0, 3), 8).from_first)
        if (const PsiMessage m = read_psi_message(text); m.bin >= 0) sizes.insert(m.points.size());
    EXPECT_EQ(sizes.size(), 1u);
}

TEST(Psi, ASideThatIsNotToLearnGetsNothingToCompareWith) {
    const Transcript got = run(numbered(0, 50), numbered(25, 50), 2, true, false);
    for (const std::string& text : got.from_first) EXPECT_TRUE(read_psi_message(text).doubled.empty());
    EXPECT_TRUE(got.second.empty());
    const Transcript turned = run(numbered(0, 50), numbered(25, 50), 2, false, true);
    for (const std::string& text : turned.from_second) EXPECT_TRUE(read_psi_message(text).doubled.empty());
}

TEST(Psi, GivenScalarsGiveTheSameMessages) {
    Bytes64 wide{};
    wide[0] = 7;
    PsiOptions options{true, true, true, 1, primitives("test").scalar(wide)};
    PrivateIntersection one(numbered(0, 5), options), other(numbered(0, 5), options);
    EXPECT_EQ(*one.next(), *other.next());
}

std::string problem_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

// The first side's first message, changed.
std::string changed(const std::function<void(PsiMessage&)>& change) {
    PrivateIntersection first(numbered(0, 4), PsiOptions());
    PsiMessage m = read_psi_message(*first.next());
    change(m);
    PsiOptions options;
    options.is_first = false;
    PrivateIntersection second(numbered(2, 4), options);
    return problem_of([&] { second.take(text_of(m)); });
}

TEST(Psi, WhatIsNoPointIsRefused) {
    // The neutral element, encodings that are not canonical (the prime itself, and the prime plus 1), a negative one.
    Bytes32 neutral{}, prime{}, beyond{}, negative{};
    prime.fill(0xff);
    prime[0] = 0xed;
    prime[31] = 0x7f;
    beyond = prime;
    beyond[0] = 0xee;
    negative[0] = 1;
    for (const Bytes32& bad : {neutral, prime, beyond, negative})
        EXPECT_NE(changed([&](PsiMessage& m) {
                      m.points[0] = bad;
                      std::ranges::sort(m.points);
                  }).find("no point of the group, or its neutral one"),
                  std::string::npos);
    EXPECT_EQ(changed([](PsiMessage&) {}), "");
}

TEST(Psi, MessagesThatDoNotBelongHereAreRefused) {
    EXPECT_NE(changed([](PsiMessage& m) { std::swap(m.points[0], m.points[1]); }).find("not in order"),
              std::string::npos);
    EXPECT_NE(changed([](PsiMessage& m) { m.points[1] = m.points[0]; }).find("not in order"), std::string::npos);
    EXPECT_NE(changed([](PsiMessage& m) { m.points.pop_back(); }).find("3 points for a bin of 4"), std::string::npos);
    EXPECT_NE(changed([](PsiMessage& m) { m.bins = 2; }).find("has 2 bins"), std::string::npos);
    EXPECT_NE(changed([](PsiMessage& m) { m.second_learns = 0; }).find("lets the first learn"), std::string::npos);
    EXPECT_NE(changed([](PsiMessage& m) { m.bin = 1; }).find("bin 1 in the place of bin 0"), std::string::npos);
    EXPECT_NE(changed([](PsiMessage& m) { m.doubled = m.points; }).find("not to learn"), std::string::npos);
    EXPECT_NE(problem_of([] { read_psi_message("\x08\x02"); }).find("format 2"), std::string::npos);
    EXPECT_NE(problem_of([] { PrivateIntersection(numbered(0, 2), PsiOptions()).take(""); }).find("out of turn"),
              std::string::npos);
    EXPECT_NE(problem_of([] {
                  PrivateIntersection(std::vector<std::string>{"a", "b", "a"}, PsiOptions());
              }).find("id 3 of 3"),
              std::string::npos);
}

}  // namespace
}  // namespace lunaria::federated
