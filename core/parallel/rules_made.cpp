// Rules of operators whose results follow from attributes and random numbers. A piece is made without communication:
// constants in the size of the piece, the mask of a dropout from the places of its elements, everything else by making
// the whole and keeping the part. All give the same numbers on any number of ranks.
#include <array>
#include <cmath>

#include "core/base/interrupt.h"
#include "core/parallel/rule_families.h"
#include "core/random/random.h"

namespace lunaria::parallel {

namespace {

Value part_of(Builder& b, const Value& whole, const Region& part, const Shape& shape) {
    Expr y(b, whole);
    for (size_t k = 0; k < part.size(); ++k)
        if (part[k].size() != shape[static_cast<int>(k)])
            y = b.call("narrow", {y, static_cast<int64_t>(k), part[k].begin, part[k].size()});
    return y.value();
}

class MadeRule final : public Rule {
  public:
    using Rule::Rule;

    bool is_sized = false;

  protected:
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        if (is_sized) {
            std::vector<Value> args(local.begin(), local.end());
            args[0] = Value::ints(shape_of(work.results[0]));
            return b.emit(op(), args);
        }
        const Value whole = b.emit(op(), local);
        if (results.size() == 1) return part_of(b, whole, work.results[0], results[0].type.shape);
        std::vector<Value> parts;
        for (size_t j = 0; j < results.size(); ++j)
            parts.push_back(part_of(b, b.item(whole, j), work.results[j], results[j].type.shape));
        return Value::list(std::move(parts));
    }
};

// Element i of the whole is dropped by word i of the call's random words (core/random/random.h).
Tensor mask_of_part(RandomStream stream, double p, const Region& part, const Shape& whole) {
    const auto limit = static_cast<uint64_t>(std::ldexp(p, 32));
    const Shape sizes = shape_of(part);
    const Strides strides = contiguous_strides(whole);
    const int64_t row = sizes.rank() > 0 ? sizes.back() : 1, rows = row > 0 ? sizes.size() / row : 0;
    Tensor mask = Tensor::empty(DType::boolean, sizes);
    bool* to = mask.data<bool>();
    for_elements(rows, [&](int64_t r) {
        int64_t first = 0, rest = r;
        for (int k = sizes.rank() - 1; k >= 0; --k) {
            const int64_t at = k == sizes.rank() - 1 ? 0 : rest % sizes[k];
            if (k < sizes.rank() - 1) rest /= sizes[k];
            first += (part[static_cast<size_t>(k)].begin + at) * strides[k];
        }
        std::array<uint32_t, 4> words{};
        for (int64_t i = first; i < first + row; ++i) {
            if (i == first || i % 4 == 0) words = philox(stream.seed, static_cast<uint64_t>(i / 4), stream.counter);
            to[r * row + i - first] = words[static_cast<size_t>(i % 4)] >= limit;
        }
    });
    return mask;
}

// The mask depends on the place in the whole alone; a piece has the part of it that belongs to its elements.
class DropoutRule final : public Rule {
  public:
    using Rule::Rule;

  protected:
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        const Expr mask(b, mask_of(b, local, work.results[0]));
        const Expr x(b, local[0]);
        const Expr kept = b.call("where", {mask, x / (1 - local[1].number()), b.zeros_like(x)});
        return Value::list({kept.value(), mask.value()});
    }

  private:
    // In a graph the stream is not known yet: there the mask of the whole is drawn.
    Value mask_of(Builder& b, std::span<const Value> local, const Region& part) const {
        const Shape& whole = operands[0].shape;
        if (&b == &eager_builder()) {
            RandomStream stream = default_generator().next_stream();
            if (!local[2].is_nil()) stream = {static_cast<uint64_t>(local[2].integer()), 0};
            return Value(mask_of_part(stream, local[1].number(), part, whole));
        }
        std::vector<Value> args(local.begin(), local.end());
        args[0] = b.call("full", {whole, int64_t{1}, results[0].type.dtype}).value();
        return part_of(b, b.item(b.emit(op(), args), 1), part, whole);
    }
};

}  // namespace

RulePtr dropout_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<DropoutRule>(call, types);
    if (rule->operands.size() != 1) return nullptr;
    for (int k = 0; k < types[0].shape.rank(); ++k) {
        const int f = rule->add(Kind::pass, types[0].shape[k]);
        rule->operands[0].axes[static_cast<size_t>(k)] = {f};
        for (Result& r : rule->results) r.axes[static_cast<size_t>(k)] = {f};
    }
    return rule;
}

RulePtr made_rule(const Call& call, const Types& types, std::string_view words) {
    auto rule = std::make_unique<MadeRule>(call, types);
    rule->is_sized = words == "sized";
    for (Result& r : rule->results)
        for (int k = 0; k < r.type.shape.rank(); ++k)
            r.axes[static_cast<size_t>(k)] = {rule->add(Kind::make, r.type.shape[k])};
    return rule;
}

}  // namespace lunaria::parallel
