#include "core/parallel/rule.h"

#include <algorithm>
#include <limits>

#include "core/operator/infer.h"
#include "core/parallel/rule_families.h"

namespace lunaria::parallel {

const char* name_of(Kind k) {
    static constexpr const char* kNames[] = {"pass", "reduce", "make", "move", "spread", "whole"};
    return kNames[static_cast<size_t>(k)];
}

namespace {

bool is_operand(const Value& v) { return v.is_tensor() || v.is_node(); }

// The positions of an axis that belong to intervals of its factors.
Interval span_of(const AxisFactors& axis, int64_t size, const Rule& rule, const std::vector<Interval>& cuts) {
    if (axis.empty()) return {0, size};
    int64_t begin = 0, last = 0;
    for (int f : axis) {
        const Interval& cut = cuts[static_cast<size_t>(f)];
        if (cut.empty()) return {0, 0};
        const int64_t whole = rule.factors[static_cast<size_t>(f)].size;
        begin = begin * whole + cut.begin;
        last = last * whole + cut.end - 1;
    }
    return {begin, last + 1};
}

Region region_of(const std::vector<AxisFactors>& axes, const Shape& shape, const Rule& rule,
                 const std::vector<Interval>& cuts) {
    Region region;
    for (int k = 0; k < shape.rank(); ++k)
        region.push_back(span_of(axes[static_cast<size_t>(k)], shape[k], rule, cuts));
    return region;
}

// The number that changes nothing when it is merged.
Value neutral(Merge merge, DType dtype) {
    switch (merge) {
        case Merge::prod:
            return Value(int64_t{1});
        case Merge::all:
            return Value(true);
        case Merge::max:
        case Merge::min:
            break;
        default:
            return Value(int64_t{0});
    }
    const bool lowest = merge == Merge::max;
    if (is_float(dtype)) {
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        return Value(lowest ? -kInfinity : kInfinity);
    }
    Value extreme(int64_t{0});
    visit_dtype(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_integral_v<T>) {
            const auto most = static_cast<uint64_t>(std::numeric_limits<T>::max());
            const auto cap = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
            extreme = Value(lowest ? static_cast<int64_t>(std::numeric_limits<T>::min())
                                   : static_cast<int64_t>(std::min(most, cap)));
        }
    });
    return extreme;
}

}  // namespace

bool has_no_elements(const Region& region) { return elements(region) == 0; }

void align(Operand& operand, const std::vector<AxisFactors>& axes, const Shape& shape) {
    const int from = shape.rank() - operand.shape.rank();
    for (int k = std::max(0, -from); k < operand.shape.rank(); ++k)
        if (operand.shape[k] == shape[k + from])
            operand.axes[static_cast<size_t>(k)] = axes[static_cast<size_t>(k + from)];
}

Rule::Rule(const Call& call, const Types& types)
    : op_(&call.op), args_(call.args.begin(), call.args.end()), dtype_(call.dtype) {
    auto add = [&](size_t i, int item, const Value& v) {
        const Shape shape = type_of(v).shape;
        operands.push_back({i, item, shape, std::vector<AxisFactors>(static_cast<size_t>(shape.rank())), false});
    };
    for (size_t i = 0; i < args_.size(); ++i) {
        if (is_operand(args_[i])) add(i, -1, args_[i]);
        if (!args_[i].is_list()) continue;
        for (size_t k = 0; k < args_[i].items().size(); ++k)
            if (is_operand(args_[i].items()[k])) add(i, static_cast<int>(k), args_[i].items()[k]);
    }
    for (const TensorType& type : types)
        results.push_back({type, std::vector<AxisFactors>(static_cast<size_t>(type.shape.rank()))});
}

int Rule::find(std::string_view letter) const {
    for (size_t f = 0; f < factors.size(); ++f)
        if (factors[f].letter == letter) return static_cast<int>(f);
    return -1;
}

int Rule::add(Kind kind, int64_t size, Merge merge, int64_t grain) {
    const int n = count();
    std::string letter(1, static_cast<char>('a' + n % 26));
    if (n >= 26) letter += std::to_string(n / 26);
    factors.push_back({std::move(letter), size, kind, merge, grain});
    return n;
}

Operand* Rule::operand(size_t argument) {
    const auto found = std::ranges::find(operands, argument, &Operand::argument);
    return found == operands.end() ? nullptr : &*found;
}

bool Rule::occurs(int factor, const std::vector<AxisFactors>& axes) const {
    return std::ranges::any_of(axes, [&](const AxisFactors& axis) { return std::ranges::count(axis, factor) > 0; });
}

Merge Rule::merge(int factor, size_t result) const {
    return occurs(factor, results[result].axes) ? Merge::none : factors[static_cast<size_t>(factor)].merge;
}

std::vector<Interval> Rule::whole() const {
    std::vector<Interval> cuts;
    for (const Factor& f : factors) cuts.push_back({0, f.size});
    return cuts;
}

Work Rule::work(std::vector<Interval> cuts) const {
    Work work{std::move(cuts), {}, {}};
    place(work);
    return work;
}

void Rule::place(Work& work) const {
    for (const Operand& o : operands) work.operands.push_back(region_of(o.axes, o.shape, *this, work.cuts));
    for (const Result& r : results) work.results.push_back(region_of(r.axes, r.type.shape, *this, work.cuts));
}

bool Rule::gives_pieces(int factor, int64_t parts) const {
    const Factor& f = factors[static_cast<size_t>(factor)];
    std::vector<Interval> cuts = whole();
    for (int64_t part = 0; part < parts; ++part) {
        cuts[static_cast<size_t>(factor)] = piece_of(f.size, part, parts);
        for (const Result& r : results)
            for (size_t k = 0; k < r.axes.size(); ++k) {
                if (std::ranges::count(r.axes[k], factor) == 0) continue;
                const int64_t size = r.type.shape[static_cast<int>(k)];
                const Interval own = span_of(r.axes[k], size, *this, cuts), wanted = piece_of(size, part, parts);
                if (own != wanted && !(own.empty() && wanted.empty())) return false;
            }
    }
    return true;
}

Value Rule::run(Builder& b, std::span<const Value> local, const Work& work) const {
    // How a result is merged along factors of which this piece has nothing.
    auto merge_of_nothing = [&](size_t j) {
        Merge merge = Merge::none;
        for (int f = 0; f < count(); ++f)
            if (work.cuts[static_cast<size_t>(f)].empty()) merge = std::max(merge, this->merge(f, j));
        return merge;
    };
    bool gives_something = results.empty();
    for (size_t j = 0; j < results.size(); ++j)
        gives_something |= !has_no_elements(work.results[j]) && merge_of_nothing(j) == Merge::none;
    if (gives_something) return compute(b, local, work);
    std::vector<Value> made;
    for (size_t j = 0; j < results.size(); ++j) {
        const DType dtype = results[j].type.dtype;
        made.push_back(b.call("full", {shape_of(work.results[j]), neutral(merge_of_nothing(j), dtype), dtype}).value());
    }
    return made.size() == 1 ? made[0] : Value::list(std::move(made));
}

Value Rule::compute(Builder& b, std::span<const Value> local, const Work&) const { return b.emit(*op_, local); }

Value Rule::expanded(Builder& b, std::span<const Value> global) const { return spread_expansion(*this, b, global); }

std::unique_ptr<const Rule> rule_of(const Op& op, std::span<const Value> args) {
    return rule_of(Call(op, args, promoted_dtype(op, args)));
}

std::string describe(const Rule& rule) {
    auto axes_text = [&](const std::vector<AxisFactors>& axes) {
        std::string text;
        for (const AxisFactors& axis : axes) {
            if (axis.empty()) text += '.';
            if (axis.size() > 1) text += '(';
            for (int f : axis) text += rule.factors[static_cast<size_t>(f)].letter;
            if (axis.size() > 1) text += ')';
        }
        return text;
    };
    std::string text;
    for (size_t i = 0; i < rule.operands.size(); ++i) text += (i ? "," : "") + axes_text(rule.operands[i].axes);
    text += "->";
    for (size_t j = 0; j < rule.results.size(); ++j) text += (j ? "," : "") + axes_text(rule.results[j].axes);
    for (const Factor& f : rule.factors) {
        if (f.kind == Kind::pass && f.merge == Merge::none) continue;
        text += str(' ', f.letter, ':',
                    f.merge == Merge::none || f.kind == Kind::spread ? name_of(f.kind) : name_of(f.merge));
    }
    return text;
}

}  // namespace lunaria::parallel
