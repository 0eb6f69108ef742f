#include "core/watch/watchpoint.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lunaria::watch {

bool Watchpoint::needs_earlier() const {
    return std::ranges::any_of(questions, [](const Question& q) {
        return q.quantity == Quantity::unchanged || q.quantity == Quantity::update_ratio;
    });
}

bool Watchpoint::asks_for_zeros() const {
    return target == Target::tensor &&
           std::ranges::any_of(questions, [](const Question& q) { return q.quantity == Quantity::zero_percentage; });
}

const Statistics& Subject::statistics() {
    if (!statistics_) statistics_ = statistics_of(now_);
    return *statistics_;
}

const Glance& Subject::glance() {
    if (!glance_) glance_ = glance_at(now_);
    return *glance_;
}

bool Subject::all_zero() { return glance_ ? glance_->all_zero : are_zero(now_); }

std::optional<Subject::Answer> Subject::ask(const Watchpoint& point) {
    if (!has_statistics(now_) || now_.size() == 0) return {};
    for (size_t i = 0; i < point.questions.size(); ++i)
        if (const std::optional<double> value = applies(point, point.questions[i])) return Answer{i, *value};
    return {};
}

std::optional<double> Subject::applies(const Watchpoint& point, const Question& q) {
    double value = 0;
    switch (q.quantity) {
        case Quantity::not_finite:
            if (glance().all_finite) return {};
            return static_cast<double>(statistics().count - statistics().finite());
        case Quantity::overflow:
            if (!flag_) return {};
            return 1;
        case Quantity::unchanged: {
            if (!before_) return {};
            const Change change = change_of(now_, *before_, point.tolerance);
            if (change.unequal) return {};
            return change.largest;
        }
        case Quantity::update_ratio:
            if (!before_) return {};
            value = update_ratio(now_, *before_, point.epsilon);
            break;
        case Quantity::range_percentage:
            // Mostly the answer is known after few elements.
            if (q.compare == Question::Compare::less && lie_within(now_, point.low, point.high, q.bound)) return {};
            value = percentage_within(now_, point.low, point.high);
            break;
        case Quantity::zero_percentage:
            if (q.bound >= 100 && !all_zero()) return {};
            value = statistics().zero_percentage();
            break;
        case Quantity::abs_mean:
            if (q.compare == Question::Compare::less && !statistics_ && reaches_absolute_mean(now_, q.bound)) return {};
            value = value_of(q.quantity);
            break;
        default:
            value = value_of(q.quantity);
    }
    const bool holds = q.compare == Question::Compare::greater ? value > q.bound
                       : q.compare == Question::Compare::less  ? value < q.bound
                                                               : value >= q.bound;
    if (!holds) return {};
    return value;
}

// Infinities are the largest and smallest elements where there are any.
double Subject::value_of(Quantity quantity) {
    if (quantity == Quantity::abs_mean && !statistics_) return absolute_mean_of(now_);
    const Statistics& s = statistics();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double max = s.positive_infinity ? kInfinity : s.finite() || !s.negative_infinity ? s.max : -kInfinity;
    const double min = s.negative_infinity ? -kInfinity : s.finite() || !s.positive_infinity ? s.min : kInfinity;
    switch (quantity) {
        case Quantity::max:
            return max;
        case Quantity::min:
            return min;
        case Quantity::mean:
            return s.mean();
        case Quantity::abs_mean:
            return s.absolute_mean();
        default:
            return max - min;
    }
}

}  // namespace lunaria::watch
