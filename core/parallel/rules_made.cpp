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

// Operators of these rules alone, with one kernel for host memory.
class PartOp final : public Op {
  public:
    PartOp(SignatureText text, InferFn infer_types, Kernel kernel) : Op(text, registry()), kernel_(kernel) {
        infer(infer_types);
        method(false);
    }

  private:
    std::span<const Kernel> kernels_on(const Device& device) const override {
        return device.is_host() ? std::span(&kernel_, 1) : std::span<const Kernel>();
    }
    const Kernel kernel_;
};

// The stream of one call, as a tensor: the seed and the counter.
const Op& stream_op() {
    static PartOp op(
        "random_stream()",
        [](const Call&) -> Types {
            return {{DType::i64, {2}, nullptr}};
        },
        [](const KernelCall& call) {
            call.out[0].data<int64_t>()[0] = static_cast<int64_t>(call.seed);
            call.out[0].data<int64_t>()[1] = static_cast<int64_t>(call.counter);
            return true;
        });
    static const Op& drawing = op.effect(Effect::random);
    return drawing;
}

// Element i of the whole is dropped by word i of the call's random words (core/random/random.h).
bool mask_of_part(const KernelCall& call) {
    const int64_t* stream = call.tensor(0).data<int64_t>();
    const auto limit = static_cast<uint64_t>(std::ldexp(call.args[1].number(), 32));
    const auto numbers = [&](size_t i) { return Call(call.op, call.args, call.dtype).ints(i); };
    const std::vector<int64_t> begin = numbers(2), whole = numbers(4);
    const Shape& sizes = call.out[0].shape();
    const Strides strides = contiguous_strides(Shape(whole));
    const int64_t row = sizes.rank() > 0 ? sizes.back() : 1, rows = row > 0 ? sizes.size() / row : 0;
    bool* to = call.out[0].data<bool>();
    for_elements(rows, [&](int64_t r) {
        int64_t first = 0, rest = r;
        for (int k = sizes.rank() - 1; k >= 0; --k) {
            const int64_t at = k == sizes.rank() - 1 ? 0 : rest % sizes[k];
            if (k < sizes.rank() - 1) rest /= sizes[k];
            first += (begin[static_cast<size_t>(k)] + at) * strides[k];
        }
        std::array<uint32_t, 4> words{};
        for (int64_t i = first; i < first + row; ++i) {
            if (i == first || i % 4 == 0)
                words = philox(static_cast<uint64_t>(stream[0]), static_cast<uint64_t>(i / 4),
                               static_cast<uint64_t>(stream[1]));
            to[r * row + i - first] = words[static_cast<size_t>(i % 4)] >= limit;
        }
    });
    return true;
}

const Op& mask_op() {
    static const PartOp op(
        "mask_of_part(stream: tensor, p: number, begin: ints, size: ints, whole: ints)",
        [](const Call& c) -> Types {
            return {{DType::boolean, Shape(c.ints(3)), nullptr}};
        },
        mask_of_part);
    return op;
}

// The mask depends on the place in the whole alone; a piece has the part of it that belongs to its elements.
class DropoutRule final : public Rule {
  public:
    using Rule::Rule;

  protected:
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        const Region& part = work.results[0];
        Shape begin;
        for (const Interval& axis : part) begin.push_back(axis.begin);
        const Value args[] = {stream(b, local[2]), local[1], Value::ints(begin), Value::ints(shape_of(part)),
                              Value::ints(operands[0].shape)};
        const Expr mask(b, b.emit(mask_op(), args)), x(b, local[0]);
        const Expr kept = b.call("where", {mask, x / (1 - local[1].number()), b.zeros_like(x)});
        return Value::list({kept.value(), mask.value()});
    }

  private:
    static Value stream(Builder& b, const Value& seed) {
        if (seed.is_nil()) return b.emit(stream_op(), {});
        Tensor given = Tensor::zeros(DType::i64, {2});
        given.data<int64_t>()[0] = seed.integer();
        return b.constant(given).value();
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
