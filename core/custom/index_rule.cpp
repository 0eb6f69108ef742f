#include "core/custom/index_rule.h"

#include <algorithm>

#include "core/operator/expansion.h"
#include "core/operator/infer.h"

namespace lunaria {

std::string IndexAccess::text() const {
    std::string text;
    for (const Term& term : terms) {
        text += text.empty() ? "" : " + ";
        text += term.factor == 1 ? term.index : str(term.factor, "*", term.index);
    }
    if (text.empty()) return str(offset);
    return offset == 0 ? text : str(text, offset < 0 ? " - " : " + ", std::abs(offset));
}

std::vector<std::string> IndexRule::indices() const {
    std::vector<std::string> all = output;
    for (const auto& accesses : inputs)
        for (const IndexAccess& access : accesses)
            for (const IndexAccess::Term& term : access.terms)
                if (std::ranges::find(all, term.index) == all.end()) all.push_back(term.index);
    return all;
}

bool IndexRule::is_plain(size_t input) const {
    return std::ranges::all_of(inputs[input], [](const IndexAccess& access) { return access.is_plain(); });
}

bool IndexRule::reads(size_t input, const std::string& index) const {
    return std::ranges::any_of(inputs[input], [&](const IndexAccess& access) {
        return std::ranges::any_of(access.terms, [&](const IndexAccess::Term& term) { return term.index == index; });
    });
}

std::string IndexRule::text() const {
    std::string text = reduce;
    for (const std::string& index : output) text += " " + index;
    for (const auto& accesses : inputs) {
        text += "\n";
        for (const IndexAccess& access : accesses) text += access.text() + ", ";
    }
    for (const auto& [index, size] : sizes) text += str("\n", index, " = ", size);
    return outside ? str(text, "\noutside ", *outside) : text;
}

namespace {

int64_t times(int64_t factor, int64_t count) {
    int64_t product = 0;
    return __builtin_mul_overflow(factor, count, &product) ? INT64_MAX / 4 : std::min(product, INT64_MAX / 4);
}

class RuleSizes {
  public:
    RuleSizes(const Call& c, const IndexRule& rule) : c_(c), rule_(rule) {}

    IndexSizes run() {
        for (const auto& [index, size] : rule_.sizes) {
            sizes_[index] = size;
            source_[index] = "sizes";
        }
        for (size_t i = 0; i < rule_.inputs.size(); ++i) {
            const Shape shape = c_.shape(i);
            const auto count = static_cast<int>(rule_.inputs[i].size());
            if (shape.rank() != count)
                throw shape_error(c_.name(), str(param_name(c_, i), " has shape ", shape, " and the rule gives it ",
                                                 count, count == 1 ? " index" : " indices"));
            for (int axis = 0; axis < count; ++axis) read_plain(i, axis, shape[axis]);
        }
        while (solve_one()) {
        }
        for (const std::string& index : rule_.indices())
            if (!sizes_.contains(index))
                throw shape_error(c_.name(), str("nothing tells how many values index ", index, " has"))
                    .hint(str("give it in the definition: sizes = {", index, " = 3}"));
        if (!rule_.outside) expect_inside();
        return std::move(sizes_);
    }

  private:
    const IndexAccess& access(size_t input, int axis) const { return rule_.inputs[input][static_cast<size_t>(axis)]; }

    void read_plain(size_t input, int axis, int64_t size) {
        const IndexAccess& at = access(input, axis);
        if (!at.is_plain()) return;
        const std::string& index = at.terms[0].index;
        auto [found, is_new] = sizes_.emplace(index, size);
        if (is_new)
            source_[index] = param_name(c_, input);
        else if (found->second != size)
            throw shape_error(c_.name(), str("index ", index, " has ", found->second, " values in ", source_[index],
                                             " and ", size, " in ", param_name(c_, input)));
    }

    // The index of an access that has no size yet, and the size that an axis of so many elements allows it. Nothing
    // where all indices have sizes or several have none.
    std::optional<std::pair<std::string, int64_t>> left_to(const IndexAccess& at, int64_t size) const {
        const IndexAccess::Term* open = nullptr;
        int64_t last = at.offset;
        for (const IndexAccess::Term& term : at.terms) {
            auto found = sizes_.find(term.index);
            if (found != sizes_.end()) {
                last += times(term.factor, found->second - 1);
                continue;
            }
            if (open) return {};
            open = &term;
        }
        if (!open) return {};
        const int64_t factor = open->factor;
        if (rule_.outside) return std::pair{open->index, (size + factor - 1) / factor};
        return std::pair{open->index, size - 1 >= last ? (size - 1 - last) / factor + 1 : 0};
    }

    // Finds the size of one index: the largest that all accesses with only this index left allow.
    bool solve_one() {
        std::string index;
        int64_t size = 0;
        for (size_t i = 0; i < rule_.inputs.size(); ++i)
            for (int axis = 0; axis < static_cast<int>(rule_.inputs[i].size()); ++axis) {
                auto left = left_to(access(i, axis), c_.shape(i)[axis]);
                if (!left || (!index.empty() && left->first != index)) continue;
                size = index.empty() ? left->second : std::min(size, left->second);
                index = left->first;
            }
        if (index.empty()) return false;
        sizes_[index] = size;
        return true;
    }

    void expect_inside() const {
        for (size_t i = 0; i < rule_.inputs.size(); ++i)
            for (int axis = 0; axis < static_cast<int>(rule_.inputs[i].size()); ++axis) {
                const IndexAccess& at = access(i, axis);
                if (at.is_plain()) continue;
                int64_t last = at.offset;
                for (const IndexAccess::Term& term : at.terms) last += times(term.factor, sizes_.at(term.index) - 1);
                const int64_t size = c_.shape(i)[axis];
                const bool is_short = std::ranges::any_of(
                    at.terms, [&](const IndexAccess::Term& term) { return sizes_.at(term.index) == 0; });
                if (!is_short && at.offset >= 0 && last < size) continue;
                if (is_short)
                    throw shape_error(c_.name(), str("axis ", axis, " of ", param_name(c_, i), " has ", size,
                                                     " elements: too few for [", at.text(), "]"));
                throw shape_error(c_.name(), str("[", at.text(), "] goes from element ", at.offset, " to ", last,
                                                 " of axis ", axis, " of ", param_name(c_, i), ", which has ", size))
                    .hint("give the value of elements beyond the edges in the definition: outside = 0");
            }
    }

    const Call& c_;
    const IndexRule& rule_;
    IndexSizes sizes_;
    std::unordered_map<std::string, std::string> source_;
};

}  // namespace

IndexSizes index_sizes(const Call& c, const IndexRule& rule) { return RuleSizes(c, rule).run(); }

namespace {

// The replacement of an index.
struct Shift {
    IndexAccess by;
    std::vector<std::string> reversed;  // indices that count down after the replacement
};

// Solves an axis for one of its indices: that index as a function of the position and of the other indices. All of them
// must be plain everywhere else.
std::optional<std::pair<std::string, Shift>> solved(const IndexRule& rule, size_t input, const IndexAccess& at,
                                                    const IndexSizes& sizes) {
    auto stands_alone = [&](const std::string& index) {
        for (size_t i = 0; i < rule.inputs.size(); ++i)
            for (const IndexAccess& other : rule.inputs[i])
                for (const IndexAccess::Term& term : other.terms)
                    if (&other != &at && term.index == index && (i == input || !other.is_plain())) return false;
        return true;
    };
    for (const IndexAccess::Term& own : at.terms) {
        if (own.factor != 1 || std::ranges::find(rule.output, own.index) == rule.output.end()) continue;
        Shift shift;
        shift.by = {{{own.index + "'", 1}}, -at.offset};
        bool good = stands_alone(own.index);
        for (const IndexAccess::Term& term : at.terms) {
            if (term.index == own.index) continue;
            good = good && stands_alone(term.index);
            shift.by.terms.push_back({term.index, term.factor});
            shift.by.offset -= times(term.factor, sizes.at(term.index) - 1);
            shift.reversed.push_back(term.index);
        }
        if (good) return std::pair{own.index, std::move(shift)};
    }
    return {};
}

}  // namespace

std::optional<GatherRule> gather_rule(const IndexRule& rule, size_t input, const IndexSizes& sizes) {
    GatherRule made{{{}, {}, "sum", rule.sizes, 0.0}, {}, {}};
    std::unordered_map<std::string, Shift> shifts;
    std::vector<std::string> reversed;
    for (const IndexAccess& at : rule.inputs[input]) {
        if (at.terms.empty()) return {};
        made.rule.output.push_back(at.terms[0].index);
        if (at.is_plain()) continue;
        auto shift = solved(rule, input, at, sizes);
        if (!shift) return {};
        made.rule.output.back() = shift->second.by.terms[0].index;
        made.shifted.push_back(shift->first);
        reversed.insert(reversed.end(), shift->second.reversed.begin(), shift->second.reversed.end());
        shifts.insert(std::move(*shift));
    }
    std::vector<std::vector<IndexAccess>> from = rule.inputs;
    from.emplace_back();
    for (const std::string& index : rule.output) from.back().push_back({{{index, 1}}, 0});
    from[input].clear();
    for (const std::string& index : made.rule.output) from[input].push_back({{{index, 1}}, 0});
    for (const auto& accesses : from) {
        made.rule.inputs.emplace_back();
        made.reversed.emplace_back();
        for (size_t axis = 0; axis < accesses.size(); ++axis) {
            if (!accesses[axis].is_plain()) return {};
            const std::string& index = accesses[axis].terms[0].index;
            auto shift = shifts.find(index);
            made.rule.inputs.back().push_back(shift == shifts.end() ? accesses[axis] : shift->second.by);
            if (std::ranges::find(reversed, index) != reversed.end())
                made.reversed.back().push_back(static_cast<int64_t>(axis));
        }
    }
    std::erase_if(made.rule.sizes, [&](const auto& given) { return shifts.contains(given.first); });
    const auto all = made.rule.indices();
    if (all.size() == made.rule.output.size()) made.rule.reduce.clear();
    return made;
}

AtPoints::AtPoints(const ExpandCall& c, const IndexRule& rule, const IndexSizes& sizes, size_t input)
    : builder_(c.builder), value_(c.in(input)), shape_(c.shape(input)) {
    const auto& accesses = rule.inputs[input];
    const int rank = shape_.rank();
    auto last_of = [&](const IndexAccess& at) {
        int64_t last = at.offset;
        for (const IndexAccess::Term& term : at.terms) last += times(term.factor, sizes.at(term.index) - 1);
        return last;
    };
    std::vector<std::pair<int64_t, int64_t>> padding;
    bool pads = false;
    for (int axis = 0; axis < rank; ++axis) {
        const IndexAccess& at = accesses[static_cast<size_t>(axis)];
        padding.emplace_back(std::max<int64_t>(0, -at.offset), std::max<int64_t>(0, last_of(at) + 1 - shape_[axis]));
        pads |= padding.back().first != 0 || padding.back().second != 0;
    }
    if (pads) {
        Shape amounts;  // the last axis first
        for (size_t axis = padding.size(); axis-- > 0;) {
            amounts.push_back(padding[axis].first);
            amounts.push_back(padding[axis].second);
        }
        value_ = builder_.call("pad", {value_, Arg(amounts), Arg("constant"), Arg(rule.outside.value_or(0))});
        padding_ = padding;
    }
    std::vector<std::string> labels;  // of the axes; empty: an axis that is dropped
    std::vector<std::string> windows;
    for (int axis = 0; axis < rank; ++axis) {
        const IndexAccess& at = accesses[static_cast<size_t>(axis)];
        const int64_t first = at.offset + padding[static_cast<size_t>(axis)].first;
        slice(axis, first, first + last_of(at) - at.offset + 1, 1);
        for (size_t k = 1; k < at.terms.size(); ++k) {
            const int64_t factor = at.terms[k].factor;
            const int64_t span = factor * (sizes.at(at.terms[k].index) - 1) + 1;
            apply("sliding_window", {Arg(int64_t{axis}), Arg(span)});
            slice(value_.rank() - 1, 0, span, factor);
            windows.push_back(at.terms[k].index);
        }
        labels.push_back(at.terms.empty() ? "" : at.terms[0].index);
        if (!at.terms.empty()) slice(axis, 0, value_.shape()[axis], at.terms[0].factor);
    }
    labels.insert(labels.end(), windows.begin(), windows.end());
    Shape order, shape;
    for (size_t axis = 0; axis < labels.size(); ++axis)
        if (labels[axis].empty()) order.push_back(static_cast<int64_t>(axis));
    for (const std::string& index : rule.indices()) {
        auto found = std::ranges::find(labels, index);
        shape.push_back(found == labels.end() ? 1 : sizes.at(index));
        if (found != labels.end()) order.push_back(found - labels.begin());
    }
    if (!std::ranges::is_sorted(order)) apply("transpose", {Arg(order)});
    if (!(value_.shape() == shape)) apply("reshape", {Arg(shape)});
}

void AtPoints::apply(std::string_view op, std::vector<Arg> args) {
    args.insert(args.begin(), Arg(value_));
    Step step{value_, builder_.call_args(op, args), op, {}};
    for (const Arg& arg : args) step.args.push_back(arg.value);
    value_ = step.to;
    steps_.push_back(std::move(step));
}

void AtPoints::slice(int axis, int64_t begin, int64_t stop, int64_t step) {
    const Shape shape = value_.shape();
    if (begin == 0 && stop == shape[axis] && step == 1) return;
    Shape from, to, by;
    for (int i = 0; i <= axis; ++i) {
        from.push_back(i == axis ? begin : 0);
        to.push_back(i == axis ? stop : shape[i]);
        by.push_back(i == axis ? step : 1);
    }
    apply("strided_slice", {Arg(from), Arg(to), Arg(by)});
}

Expr AtPoints::adjoint(Expr d) const {
    for (size_t k = steps_.size(); k-- > 0;) {
        const Step& step = steps_[k];
        const Op& op = registry().get(step.op);
        std::vector<Value> args = step.args;
        for (size_t i = args.size(); i < op.signature.params.size(); ++i)
            args.push_back(op.signature.params[i].default_value);
        const Expr outs[] = {step.to}, douts[] = {d};
        const Call call(op, args, promoted_dtype(op, args));
        d = gradients(GradRule(call, builder_, outs, douts))[0];
    }
    if (padding_.empty()) return d;
    Shape begin, stop;
    for (int axis = 0; axis < shape_.rank(); ++axis) {
        begin.push_back(padding_[static_cast<size_t>(axis)].first);
        stop.push_back(begin.back() + shape_[axis]);
    }
    return builder_.call("strided_slice", {d, Arg(begin), Arg(stop)});
}

}  // namespace lunaria
