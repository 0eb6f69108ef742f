#include "core/federated/signds.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/federated/compression.h"
#include "core/io/proto_fields.h"

namespace lunaria::federated {

namespace {

constexpr int64_t kMostSent = 50;

// Of v top places among h: the weights without epsilon, whose greatest is 1.
std::vector<double> weights_of(int64_t size, int64_t top, int64_t sent) {
    std::vector<double> logs(static_cast<size_t>(sent) + 1, -INFINITY);
    const int64_t least = std::max(int64_t{0}, sent - (size - top)), most = std::min(sent, top);
    double log = 0;
    for (int64_t v = least; v <= most; ++v) {
        logs[static_cast<size_t>(v)] = log;
        const auto n = static_cast<double>(v);
        log += std::log((static_cast<double>(top) - n) * (static_cast<double>(sent) - n)) -
               std::log((n + 1) * (static_cast<double>(size - top - sent) + n + 1));
    }
    const double greatest = *std::ranges::max_element(logs);
    for (double& w : logs) w = std::exp(w - greatest);
    return logs;
}

struct Law {
    int64_t threshold = 0;
    std::vector<double> probabilities;
    double expected = 0;  // the share of top places
};

// With the threshold for which most top places are expected.
Law law_of(int64_t size, int64_t top, int64_t sent, double epsilon) {
    const std::vector<double> weights = weights_of(size, top, sent);
    Law best;
    best.expected = -1;
    for (int64_t threshold = 1; threshold <= sent; ++threshold) {
        // Times e^-epsilon below the threshold, which does not overflow.
        std::vector<double> law(weights);
        double sum = 0, top_sum = 0;
        for (size_t v = 0; v < law.size(); ++v) {
            if (static_cast<int64_t>(v) < threshold) law[v] *= std::exp(-epsilon);
            sum += law[v];
            top_sum += law[v] * static_cast<double>(v);
        }
        if (!(sum > 0)) continue;
        const double expected = top_sum / sum / static_cast<double>(sent);
        if (expected <= best.expected) continue;
        for (double& p : law) p /= sum;
        best = {threshold, std::move(law), expected};
    }
    return best;
}

// A number below `count`, all as likely as each other.
uint64_t below(uint64_t count, const std::function<uint64_t()>& draw) {
    const uint64_t most = ~uint64_t{0} - (~uint64_t{0} % count + 1) % count;
    uint64_t drawn = draw();
    while (drawn > most) drawn = draw();
    return drawn % count;
}

// Moves `count` of the elements to the front, every choice as likely as any other.
void choose(std::span<int64_t> list, size_t count, const std::function<uint64_t()>& draw) {
    for (size_t i = 0; i < count; ++i) std::swap(list[i], list[i + static_cast<size_t>(below(list.size() - i, draw))]);
}

struct SignDSMessage {
    int64_t size = 0, sign = 0, sent = 0;
    std::string places;

    static proto::Fields<SignDSMessage> fields() {
        static constexpr proto::Field<SignDSMessage> kFields[] = {
            proto::field<&SignDSMessage::size>(1),
            proto::field<&SignDSMessage::sign>(2),
            proto::field<&SignDSMessage::sent>(3),
            {4, [](SignDSMessage& m, const ProtoReader& p) { m.places = p.bytes(); },
             [](const SignDSMessage& m, uint32_t n, ProtoWriter& w) { w.bytes(n, m.places); }}};
        return kFields;
    }
};

}  // namespace

void SignDSPlan::find(std::string_view where) {
    const auto fail = [&](std::string_view what) { throw argument_error(where, what); };
    if (size < 2 || size > int64_t{1} << 31) fail(str("a vector has from 2 to 2^31 elements, got ", size));
    if (!(k > 0 && k <= 0.25)) fail(str("sign_k must be above 0 and at most 0.25, got ", k));
    if (!(epsilon > 0 && epsilon <= 100)) fail(str("sign_eps must be above 0 and at most 100, got ", epsilon));
    if (!(threshold_ratio >= 0.5 && threshold_ratio <= 1))
        fail(str("sign_thr_ratio must be from 0.5 to 1, got ", threshold_ratio));
    if (most_sent < 0 || most_sent > kMostSent)
        fail(str("sign_dim_out must be from 0 to ", kMostSent, ", got ", most_sent));
    top = std::max(int64_t{1}, static_cast<int64_t>(std::floor(static_cast<double>(size) * k + 1e-9)));
    if (most_sent > size) fail(str("sign_dim_out (", most_sent, ") is more than the elements (", size, ")"));
    Law law;
    sent = most_sent;
    if (sent > 0) law = law_of(size, top, sent, epsilon);
    for (int64_t h = std::min(kMostSent, size); sent == 0 && h >= 1; --h) {
        law = law_of(size, top, h, epsilon);
        if (h == 1 || law.expected >= threshold_ratio) sent = h;
    }
    threshold = law.threshold;
    probabilities = std::move(law.probabilities);
    expected_share = law.expected;
}

template <class T>
SignDSUpdate signds(std::string_view where, const SignDSPlan& plan, std::span<const T> change,
                    const std::function<uint64_t()>& draw) {
    if (static_cast<int64_t>(change.size()) != plan.size)
        throw argument_error(where, str("the vector has ", change.size(), " elements instead of ", plan.size));
    for (size_t i = 0; i < change.size(); ++i)
        if (!std::isfinite(change[i])) throw argument_error(where, str("element ", i, " is ", change[i]));
    SignDSUpdate update;
    update.sign = draw() & 1 ? 1 : -1;
    std::vector<int64_t> places(change.size());
    std::iota(places.begin(), places.end(), int64_t{0});
    const auto is_before = [&](int64_t a, int64_t b) {
        const T x = static_cast<T>(update.sign) * change[static_cast<size_t>(a)],
                y = static_cast<T>(update.sign) * change[static_cast<size_t>(b)];
        return x > y || (x == y && a < b);
    };
    std::nth_element(places.begin(), places.begin() + (plan.top - 1), places.end(), is_before);
    // The first count at which the running sum of the law passes a uniform number.
    const double uniform = static_cast<double>(draw() >> 11) * 0x1p-53;
    size_t of_top = 0;
    for (double sum = plan.probabilities[0]; sum <= uniform && of_top + 1 < plan.probabilities.size();
         sum += plan.probabilities[++of_top]) {
    }
    const std::span<int64_t> all(places);
    const auto top = static_cast<size_t>(plan.top), rest = static_cast<size_t>(plan.sent) - of_top;
    choose(all.first(top), of_top, draw);
    choose(all.subspan(top), rest, draw);
    update.places.assign(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(of_top));
    for (size_t i = 0; i < rest; ++i) update.places.push_back(all[top + i]);
    std::ranges::sort(update.places);
    return update;
}
template SignDSUpdate signds(std::string_view, const SignDSPlan&, std::span<const float>,
                             const std::function<uint64_t()>&);
template SignDSUpdate signds(std::string_view, const SignDSPlan&, std::span<const double>,
                             const std::function<uint64_t()>&);

std::string written_signds(const SignDSPlan& plan, const SignDSUpdate& update) {
    return proto::message_of(SignDSMessage{plan.size, update.sign, plan.sent, written_places(update.places)}).text();
}

SignDSUpdate read_signds(const SignDSPlan& plan, std::string_view payload) {
    const ProtoReader p(payload, "SignDS update");
    const auto m = proto::read_message<SignDSMessage>(p);
    if (m.size != plan.size || m.sent != plan.sent)
        p.fail(str("it has ", m.sent, " places of ", m.size, " instead of ", plan.sent, " of ", plan.size));
    if (m.sign != 1 && m.sign != -1) p.fail(str("its sign is ", m.sign));
    return {static_cast<int>(m.sign),
            read_places("SignDS update", m.places, static_cast<size_t>(plan.sent), plan.size)};
}

}  // namespace lunaria::federated
