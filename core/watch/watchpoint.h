// A watchpoint: what is asked of which tensors of a program. The conditions with their names are rows of
// interpreter/lua/lunaria/insight/conditions.lua; here are the questions that they consist of.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/operator/op.h"
#include "core/watch/statistics.h"

namespace lunaria::watch {

enum class Target : uint8_t { weight, gradient, activation, tensor };

// What is compared with a bound. `overflow` and `not_finite` have none, `unchanged` has the watchpoint's tolerance.
enum class Quantity : uint8_t {
    not_finite,
    overflow,  // the device's flag
    unchanged,
    zero_percentage,
    max,
    min,
    mean,
    abs_mean,
    range_percentage,  // of elements within the watchpoint's range
    max_min,           // the distance of the largest and the smallest
    update_ratio,      // the mean change in relation to the mean magnitude
};
// The names in this order, for the Lua side.
inline constexpr std::array<std::string_view, 11> kQuantities = {
    "not_finite", "overflow", "unchanged",        "zero_percentage", "max",         "min",
    "mean",       "abs_mean", "range_percentage", "max_min",         "update_ratio"};

// The questions of one watchpoint are alternatives.
struct Question {
    enum class Compare : uint8_t { greater, less, at_least };
    Quantity quantity = Quantity::not_finite;
    Compare compare = Compare::greater;
    double bound = 0;
};

struct Watchpoint {
    Target target = Target::tensor;
    bool at_start = false;       // weights as they are when they are first seen
    bool only_matrices = false;  // without `nodes`: only tensors of two axes and more, so that no bias is meant
    std::vector<Question> questions;
    std::vector<const Op*> operators;  // results of these only; empty: of all
    // Operators whose results are finite where their operands are: they are not asked about NaN and infinities.
    std::vector<const Op*> preserving;
    std::vector<std::string> nodes;  // these only, see Node::is_called; empty: all
    double low = 0, high = 0;        // the range
    Tolerance tolerance;
    double epsilon = 1e-9;

    // Whether it compares with the step before.
    bool needs_earlier() const;
    bool asks_for_zeros() const;
};

// A tensor of which questions are asked; what is computed of it is kept for further ones.
class Subject {
  public:
    // `before` may be null. `flag`: whether the device's overflow flag was raised by the operator.
    Subject(const Tensor& now, const Tensor* before, bool flag) : now_(now), before_(before), flag_(flag) {}

    struct Answer {
        size_t question;
        double value;  // of the quantity; of `not_finite` how many elements there are
    };
    // The first question of the watchpoint that applies; nothing where none does.
    std::optional<Answer> ask(const Watchpoint& point);
    const Tensor& tensor() const { return now_; }
    const Statistics& statistics();

  private:
    const Glance& glance();
    bool all_zero();
    // The value if the question applies.
    std::optional<double> applies(const Watchpoint& point, const Question& question);
    double value_of(Quantity quantity);

    const Tensor& now_;
    const Tensor* before_;
    bool flag_;
    std::optional<Glance> glance_;
    std::optional<Statistics> statistics_;
};

}  // namespace lunaria::watch
