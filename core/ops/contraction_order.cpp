#include "core/ops/contraction_order.h"

#include <bit>
#include <limits>

namespace lunaria {

namespace {

// A set of operands has one product, in whatever order it is computed. Its cheapest order is the best of all ways to
// divide the set in two.
class Exhaustive {
  public:
    Exhaustive(std::span<const LabelSet> operands, LabelSet result, const LabelSizes& sizes)
        : operands_(operands), sizes_(sizes), sets_(size_t{1} << operands.size()) {
        const size_t whole = sets_.size() - 1;
        for (size_t set = 1; set <= whole; ++set) {
            LabelSet inside = 0, outside = result;
            for (size_t i = 0; i < operands.size(); ++i) (set >> i & 1 ? inside : outside) |= operands[i];
            sets_[set].labels = inside & outside;
            if (!std::has_single_bit(set)) divide(set);
        }
    }

    ContractionOrder order() {
        ContractionOrder order;
        order.cost = sets_.back().cost;
        add(sets_.size() - 1, order);
        return order;
    }

  private:
    struct Set {
        LabelSet labels = 0;
        double cost = 0;
        size_t left = 0;  // the half of the division with the first operand
    };

    // From left to right unless another order is cheaper.
    void divide(size_t set) {
        Set& s = sets_[set];
        s.cost = std::numeric_limits<double>::infinity();
        const size_t lowest = set & (~set + 1);
        auto look = [&](size_t left) {
            const Set &a = sets_[left], &b = sets_[set ^ left];
            const double cost = a.cost + b.cost + contraction_cost(a.labels | b.labels, sizes_);
            if (cost < s.cost) {
                s.cost = cost;
                s.left = left;
            }
        };
        look(set ^ std::bit_floor(set));
        for (size_t left = (set - 1) & set; left != 0; left = (left - 1) & set)
            if (left & lowest) look(left);
    }

    size_t add(size_t set, ContractionOrder& order) {
        if (std::has_single_bit(set)) return static_cast<size_t>(std::countr_zero(set));
        const size_t left = add(sets_[set].left, order), right = add(set ^ sets_[set].left, order);
        order.steps.emplace_back(left, right);
        return operands_.size() + order.steps.size() - 1;
    }

    std::span<const LabelSet> operands_;
    const LabelSizes& sizes_;
    std::vector<Set> sets_;
};

ContractionOrder greedy(std::span<const LabelSet> operands, LabelSet result, const LabelSizes& sizes) {
    struct Term {
        size_t number;
        LabelSet labels;
    };
    std::vector<Term> terms;
    for (size_t i = 0; i < operands.size(); ++i) terms.push_back({i, operands[i]});
    // The labels of the product of terms i and j.
    auto product = [&](size_t i, size_t j) {
        LabelSet outside = result;
        for (size_t k = 0; k < terms.size(); ++k)
            if (k != i && k != j) outside |= terms[k].labels;
        return (terms[i].labels | terms[j].labels) & outside;
    };
    ContractionOrder order;
    while (terms.size() > 1) {
        size_t left = 0, right = 1;
        double best = std::numeric_limits<double>::infinity();
        for (size_t i = 0; i < terms.size(); ++i)
            for (size_t j = i + 1; j < terms.size(); ++j) {
                const double grown = contraction_cost(product(i, j), sizes) - contraction_cost(terms[i].labels, sizes) -
                                     contraction_cost(terms[j].labels, sizes);
                if (grown >= best) continue;
                best = grown;
                left = i;
                right = j;
            }
        order.cost += contraction_cost(terms[left].labels | terms[right].labels, sizes);
        order.steps.emplace_back(terms[left].number, terms[right].number);
        terms[left] = {operands.size() + order.steps.size() - 1, product(left, right)};
        terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(right));
    }
    return order;
}

}  // namespace

double contraction_cost(LabelSet labels, const LabelSizes& sizes) {
    double cost = 1;
    for (; labels != 0; labels &= labels - 1) cost *= sizes[static_cast<size_t>(std::countr_zero(labels))];
    return cost;
}

ContractionOrder contraction_order(std::span<const LabelSet> operands, LabelSet result, const LabelSizes& sizes) {
    constexpr size_t kMostExhaustive = 8;
    if (operands.size() > kMostExhaustive) return greedy(operands, result, sizes);
    return Exhaustive(operands, result, sizes).order();
}

}  // namespace lunaria
