// Rules of convolutions and pools. A piece of the result along a spatial axis needs the part of the input under its
// windows, with the edges that the neighbours have; where these windows hang over the whole input, the piece is padded.
#include <algorithm>

#include "core/ops/conv.h"
#include "core/ops/pool.h"
#include "core/parallel/rule_families.h"

namespace lunaria::parallel {

namespace {

// The positions of arguments that name the geometry; -1 where there is none.
struct Places {
    int padding, mode = -1, groups = -1;
};

class WindowRule final : public Rule {
  public:
    WindowRule(const Call& call, const Types& types, const Window& window, Places places)
        : Rule(call, types), window_(window), places_(places) {}

    int group = -1, summed = -1;  // factors
    int sized = -1;               // the argument that is the size of the result

    // The spatial axes: those of `input` from axis `first` on, and of `output`. Windows that lie in the padding alone
    // have no part of the input: then the axis stays whole.
    void name_spatial(Operand& input, std::vector<AxisFactors>& output, int first, Kind kind, Merge merge) {
        input_ = static_cast<size_t>(&input - operands.data());
        first_ = first;
        for (int d = 0; d < window_.axes; ++d) {
            const auto at = static_cast<size_t>(window_.first() + d);
            const int64_t reach = window_.reach(window_.first() + d);
            if (window_.before[at] >= reach || window_.after[at] >= reach) {
                spatial_.push_back(-1);
                continue;
            }
            spatial_.push_back(add(kind, window_.out[at], merge));
            output[static_cast<size_t>(first + d)] = {spatial_.back()};
        }
    }

  protected:
    void place(Work& work) const override {
        Rule::place(work);
        for (size_t d = 0; d < spatial_.size(); ++d) {
            if (spatial_[d] < 0) continue;
            const Interval part = work.cuts[static_cast<size_t>(spatial_[d])];
            const Interval needed = under(d, part);
            const int64_t size = window_.in[at(d)];
            work.operands[input_][static_cast<size_t>(first_) + d] =
                part.empty() ? Interval{0, 0}
                             : Interval{std::max<int64_t>(0, needed.begin), std::min(size, needed.end)};
        }
    }

    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        std::vector<Value> args(local.begin(), local.end());
        if (is_cut(work)) set_padding(args, work);
        if (group >= 0) args[static_cast<size_t>(places_.groups)] = Value(work.cuts[static_cast<size_t>(group)].size());
        if (sized >= 0) args[static_cast<size_t>(sized)] = Value::ints(shape_of(work.results[0]));
        if (summed >= 0 && work.cuts[static_cast<size_t>(summed)].begin > 0) args[2] = Value();
        return b.emit(op(), args);
    }

    size_t at(size_t d) const { return static_cast<size_t>(window_.first()) + d; }
    // The positions of the input, counted from its first element, under the windows of some results.
    Interval under(size_t d, const Interval& part) const {
        const int64_t start = part.begin * window_.stride[at(d)] - window_.before[at(d)];
        return {start, start + (part.size() - 1) * window_.stride[at(d)] + window_.reach(static_cast<int>(at(d)))};
    }

  private:
    bool is_cut(const Work& work) const {
        return std::ranges::any_of(spatial_, [&](int f) {
            return f >= 0 && work.cuts[static_cast<size_t>(f)] != Interval{0, factors[static_cast<size_t>(f)].size};
        });
    }
    void set_padding(std::vector<Value>& args, const Work& work) const {
        Window own = window_;
        for (size_t d = 0; d < spatial_.size(); ++d) {
            if (spatial_[d] < 0) continue;
            const Interval needed = under(d, work.cuts[static_cast<size_t>(spatial_[d])]);
            own.before[at(d)] = std::max<int64_t>(0, -needed.begin);
            own.after[at(d)] = std::max<int64_t>(0, needed.end - window_.in[at(d)]);
        }
        args[static_cast<size_t>(places_.padding)] = Value::ints(own.padding());
        if (places_.mode >= 0) args[static_cast<size_t>(places_.mode)] = Value("pad");
    }

    Window window_;
    Places places_;
    size_t input_ = 0;
    int first_ = 0;
    std::vector<int> spatial_;  // factors, -1 for an axis that stays whole
};

// The gradient of a convolution by its input: a piece of the input needs all outputs whose windows reach into it, and
// is as if it were padded by what those windows reach beyond it.
class InputGradRule final : public Rule {
  public:
    InputGradRule(const Call& call, const Types& types, const Window& window) : Rule(call, types), window_(window) {}

    int group = -1;

    // Windows with gaps between them would reach less than a whole step, which no padding expresses.
    void name_spatial() {
        for (int d = 0; d < window_.axes; ++d) {
            const auto at = static_cast<size_t>(window_.first() + d);
            if (window_.stride[at] > window_.reach(window_.first() + d)) {
                spatial_.push_back(-1);
                continue;
            }
            spatial_.push_back(add(Kind::move, window_.in[at]));
            results[0].axes[static_cast<size_t>(d) + 2] = {spatial_.back()};
        }
    }

  protected:
    void place(Work& work) const override {
        Rule::place(work);
        for (size_t d = 0; d < spatial_.size(); ++d)
            if (spatial_[d] >= 0) work.operands[0][d + 2] = outputs(d, work.cuts[static_cast<size_t>(spatial_[d])]);
    }

    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        if (has_no_elements(work.operands[0])) {
            const Shape sizes = shape_of(work.results[0]);
            return b.call("full", {sizes, int64_t{0}, results[0].type.dtype}).value();
        }
        std::vector<Value> args(local.begin(), local.end());
        args[2] = Value::ints(shape_of(work.results[0]));
        if (group >= 0) args[6] = Value(work.cuts[static_cast<size_t>(group)].size());
        Window own = window_;
        for (size_t d = 0; d < spatial_.size(); ++d) {
            if (spatial_[d] < 0) continue;
            const Interval part = work.cuts[static_cast<size_t>(spatial_[d])];
            const Interval given = work.operands[0][d + 2];
            const int64_t stride = window_.stride[at(d)];
            own.before[at(d)] = part.begin + window_.before[at(d)] - given.begin * stride;
            const int64_t under = (given.size() - 1) * stride + window_.reach(static_cast<int>(at(d)));
            own.after[at(d)] = std::max<int64_t>(0, under - part.size() - own.before[at(d)]);
        }
        args[4] = Value::ints(own.padding());
        return b.emit(op(), args);
    }

  private:
    size_t at(size_t d) const { return static_cast<size_t>(window_.first()) + d; }
    // The outputs whose windows reach into a part of the input.
    Interval outputs(size_t d, const Interval& part) const {
        const int64_t stride = window_.stride[at(d)], shift = window_.before[at(d)];
        const int64_t low = part.begin + shift - window_.reach(static_cast<int>(at(d))) + 1;
        const int64_t first = low <= 0 ? 0 : (low + stride - 1) / stride;
        const int64_t last = std::min(window_.out[at(d)] - 1, (part.end - 1 + shift) / stride);
        return part.empty() || last < first ? Interval{0, 0} : Interval{first, last + 1};
    }

    Window window_;
    std::vector<int> spatial_;  // factors, -1 for an axis that stays whole
};

// The channels of the two sides of a convolution. `input` and `output` are axes with them, `weight` has those of the
// output first. Groups are cut as wholes.
struct Channels {
    AxisFactors input, output, weight_out, weight_in;
    int group = -1, in = -1, out = -1;
};

Channels channels_of(Rule& rule, const Convolution& conv, Kind in, Kind out) {
    Channels c;
    const int64_t inner = conv.in_channels / conv.groups, outer = conv.out_channels / conv.groups;
    auto merge = [](Kind k) { return k == Kind::reduce ? Merge::sum : Merge::none; };
    if (conv.groups == 1) {
        c.in = rule.add(in, inner, merge(in));
        c.out = rule.add(out, outer, merge(out));
        c.input = c.weight_in = {c.in};
        c.output = c.weight_out = {c.out};
        return c;
    }
    c.group = rule.add(Kind::pass, conv.groups);
    const int whole_in = rule.add(Kind::whole, inner), whole_out = rule.add(Kind::whole, outer);
    c.input = {c.group, whole_in};
    c.output = c.weight_out = {c.group, whole_out};
    c.weight_in = {whole_in};
    return c;
}

// The leading axes of all operands and results pass.
RulePtr leading_rule(const Call& call, const Types& types, int leading) {
    auto rule = std::make_unique<Rule>(call, types);
    if (rule->operands.empty()) return nullptr;
    for (int k = 0; k < leading; ++k) {
        const int64_t size = rule->operands[0].shape[k];
        auto fits = [&](const Shape& shape) { return shape.rank() > k && shape[k] == size; };
        if (!std::ranges::all_of(rule->operands, [&](const Operand& o) { return fits(o.shape); }) ||
            !std::ranges::all_of(rule->results, [&](const Result& r) { return fits(r.type.shape); }))
            continue;
        const int f = rule->add(Kind::pass, size);
        for (Operand& o : rule->operands) o.axes[static_cast<size_t>(k)] = {f};
        for (Result& r : rule->results) r.axes[static_cast<size_t>(k)] = {f};
    }
    return rule;
}

}  // namespace

RulePtr convolution_rule(const Call& call, const Types& types, std::string_view words) {
    const bool last = words == "last", relu = words == "relu";
    const Convolution conv = last ? convolution_of_last(call) : convolution_of(call);
    auto rule = std::make_unique<WindowRule>(call, types, conv.window, last ? Places{4, -1, 6} : Places{5, 4, 7});
    Operand *x = rule->operand(0), *weight = rule->operand(1), *bias = rule->operand(2);
    if (!x || !weight || (call.has(2) && !bias)) return nullptr;
    Result& r = rule->results[0];
    x->axes[0] = r.axes[0] = {rule->add(Kind::pass, conv.batch)};
    const Channels c = channels_of(*rule, conv, relu ? Kind::spread : Kind::reduce, Kind::pass);
    const size_t channel = last ? x->axes.size() - 1 : 1;
    x->axes[channel] = c.input;
    r.axes[channel] = c.output;
    weight->axes[0] = c.weight_out;
    weight->axes[1] = c.weight_in;
    if (bias) bias->axes[0] = c.output;
    rule->group = c.group;
    rule->summed = relu ? -1 : c.in;
    rule->name_spatial(*x, r.axes, last ? 1 : 2, Kind::move, Merge::none);
    x->is_linear = weight->is_linear = !bias && !relu;
    return rule;
}

RulePtr conv_input_grad_rule(const Call& call, const Types& types, std::string_view) {
    const Convolution conv = convolution_of_input_grad(call);
    auto rule = std::make_unique<InputGradRule>(call, types, conv.window);
    Operand *dout = rule->operand(0), *weight = rule->operand(1);
    if (!dout || !weight) return nullptr;
    Result& r = rule->results[0];
    dout->axes[0] = r.axes[0] = {rule->add(Kind::pass, conv.batch)};
    const Channels c = channels_of(*rule, conv, Kind::pass, Kind::reduce);
    r.axes[1] = c.input;
    dout->axes[1] = c.output;
    weight->axes[0] = c.weight_out;
    weight->axes[1] = c.weight_in;
    rule->group = c.group;
    rule->name_spatial();
    dout->is_linear = weight->is_linear = true;
    return rule;
}

RulePtr conv_weight_grad_rule(const Call& call, const Types& types, std::string_view) {
    const Convolution conv = convolution_of_weight_grad(call);
    auto rule = std::make_unique<WindowRule>(call, types, conv.window, Places{4, -1, 6});
    Operand *x = rule->operand(0), *dout = rule->operand(1);
    if (!x || !dout) return nullptr;
    Result& r = rule->results[0];
    x->axes[0] = dout->axes[0] = {rule->add(Kind::reduce, conv.batch, Merge::sum)};
    const Channels c = channels_of(*rule, conv, Kind::pass, Kind::pass);
    x->axes[1] = c.input;
    dout->axes[1] = c.output;
    r.axes[0] = c.weight_out;
    r.axes[1] = c.weight_in;
    rule->group = c.group;
    rule->sized = 2;
    rule->name_spatial(*x, dout->axes, 2, Kind::reduce, Merge::sum);
    x->is_linear = dout->is_linear = true;
    return rule;
}

RulePtr window_rule(const Call& call, const Types& types, std::string_view words) {
    const bool last = words == "last";
    const Window window = max_window_of(call, 0, last ? 1 : 0);
    auto rule = std::make_unique<WindowRule>(call, types, window, Places{3});
    Operand* x = rule->operand(0);
    if (!x) return nullptr;
    Result& r = rule->results[0];
    const int rank = x->shape.rank(), first = rank - window.axes - (last ? 1 : 0);
    for (int k = 0; k < rank; ++k)
        if (k < first || k >= first + window.axes)
            x->axes[static_cast<size_t>(k)] = r.axes[static_cast<size_t>(k)] = {rule->add(Kind::pass, x->shape[k])};
    // With ceil_mode the last window may hang over the end: the size of a piece does not tell how many there are.
    if (!call.boolean(5)) rule->name_spatial(*x, r.axes, first, Kind::move, Merge::none);
    return rule;
}

RulePtr planes_rule(const Call& call, const Types& types, std::string_view words) {
    const size_t space = words.find(' ');
    if (space == std::string_view::npos) return leading_rule(call, types, call.rank(0) - (words.front() - '0'));
    const auto at = static_cast<size_t>(call.op.signature.find(words.substr(space + 1)));
    const int64_t planes = words.starts_with("number") ? call.integer(at) : static_cast<int64_t>(call.ints(at).size());
    return leading_rule(call, types, call.rank(0) - static_cast<int>(planes));
}

// plane_gather(x, indices, axes): each index is looked up alone in the plane of its sample.
RulePtr plane_gather_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<Rule>(call, types);
    Operand *x = rule->operand(0), *index = rule->operand(1);
    if (!x || !index || !(index->shape == types[0].shape)) return nullptr;
    const int leading = x->shape.rank() - static_cast<int>(call.integer(2));
    for (int k = 0; k < index->shape.rank(); ++k) {
        const AxisFactors axis = {rule->add(Kind::pass, index->shape[k])};
        index->axes[static_cast<size_t>(k)] = rule->results[0].axes[static_cast<size_t>(k)] = axis;
        if (k < leading) x->axes[static_cast<size_t>(k)] = axis;
    }
    return rule;
}

}  // namespace lunaria::parallel
