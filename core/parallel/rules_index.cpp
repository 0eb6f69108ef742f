// Rules of operators that read or write elements by index. Where the indexed axis is cut, each piece has its own
// elements: a reading piece gives zeros for the others, so that the sum of all pieces is the result; a writing piece
// has one more row into which everything that belongs to others goes. An index that is out of range of the whole axis
// stays out of range in each piece, and is refused there.
#include <algorithm>

#include "core/parallel/rule_families.h"

namespace lunaria::parallel {

namespace {

// Indices for a piece of an axis of `size`.
struct Local {
    Expr index;   // from the first element of the piece
    Expr inside;  // whether the element is in the piece
};

// `elsewhere`: the index of elements that other pieces have; `refused`: one that the kernel refuses.
Local localised(Builder& b, const Value& given, const Interval& part, int64_t size, int64_t elsewhere, int64_t refused,
                bool from_end = true) {
    const Expr index = Expr(b, given).cast(DType::i64);
    auto number = [&](int64_t n) { return b.constant(Value(n)); };
    const Expr negative = b.call("less", {index, int64_t{0}});
    const Expr position = from_end ? b.call("where", {negative, index + number(size), index}) : index;
    const Expr inside =
        b.call("logical_and", {b.call("greater_equal", {position, part.begin}), b.call("less", {position, part.end})});
    const Expr valid =
        b.call("logical_and", {b.call("greater_equal", {position, int64_t{0}}), b.call("less", {position, size})});
    const Expr away = b.call("where", {valid, elsewhere, refused});
    return {b.call("where", {inside, position - number(part.begin), away}), inside};
}

// A mask beside `behind` more axes.
Expr beside(const Expr& mask, int behind) {
    Shape shape = mask.shape();
    for (int k = 0; k < behind; ++k) shape.push_back(1);
    return mask.reshape(shape);
}

Merge sum_of_places(DType t) { return t == DType::boolean ? Merge::any : Merge::sum; }

bool is_cut(const Rule& rule, const Work& work, int factor) {
    return factor >= 0 &&
           work.cuts[static_cast<size_t>(factor)] != Interval{0, rule.factors[static_cast<size_t>(factor)].size};
}

// One factor for an axis of an operand and of the result.
int pass(Rule& rule, Operand& o, int axis, int of_result) {
    const int f = rule.add(Kind::pass, o.shape[axis]);
    o.axes[static_cast<size_t>(axis)] = {f};
    rule.results[0].axes[static_cast<size_t>(of_result)] = {f};
    return f;
}

class GatherRule final : public Rule {
  public:
    using Rule::Rule;

    int table = -1;     // the factor of the indexed axis
    size_t index = 1;   // the argument
    int axis = 0;       // of the table
    bool each = false;  // one index for each element instead of one for each row

  protected:
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        if (!is_cut(*this, work, table)) return b.emit(op(), local);
        const int64_t size = factors[static_cast<size_t>(table)].size;
        const Local own = localised(b, local[index], work.cuts[static_cast<size_t>(table)], size, 0, size);
        std::vector<Value> args(local.begin(), local.end());
        args[index] = own.index.value();
        const Expr y(b, b.emit(op(), args));
        const Expr mask = each ? own.inside : beside(own.inside, y.rank() - axis - own.inside.rank());
        return b.call("where", {mask, y, b.zeros_like(y)}).value();
    }
};

// Rows, elements or parts of operand 0 are combined with operand 2 at the indices in operand 1.
class WriteRule final : public Rule {
  public:
    using Rule::Rule;

    int target = -1;          // the factor of the indexed axis
    int axis = 0;             // that axis
    int updates = -1;         // a factor that is summed: only its first piece has operand 0
    bool in_columns = false;  // the last axis of the indices is one of coordinates

  protected:
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        std::vector<Value> args(local.begin(), local.end());
        Expr x(b, args[0]);
        if (updates >= 0 && work.cuts[static_cast<size_t>(updates)].begin > 0) x = b.zeros_like(x);
        args[0] = x.value();
        if (!is_cut(*this, work, target)) return b.emit(op(), args);
        const Interval part = work.cuts[static_cast<size_t>(target)];
        const int64_t size = factors[static_cast<size_t>(target)].size;
        Shape row = x.shape();
        row[axis] = 1;
        const Expr spare = b.call("full", {row, int64_t{0}, x.dtype()});
        args[0] = b.call("concat", {b.list({{x, spare}}), int64_t{axis}}).value();
        args[1] = indices(b, args[1], part, size).value();
        const Expr y(b, b.emit(op(), args));
        return b.call("narrow", {y, int64_t{axis}, int64_t{0}, part.size()}).value();
    }

  private:
    Expr indices(Builder& b, const Value& given, const Interval& part, int64_t size) const {
        auto own = [&](const Value& v) { return localised(b, v, part, size, part.size(), part.size() + 1).index; };
        if (!in_columns) return own(given);
        const Expr all(b, given);
        const int64_t last = all.rank() - 1, columns = all.shape().back();
        const Expr first = own(b.call("narrow", {all, last, int64_t{0}, int64_t{1}}).value());
        if (columns == 1) return first;
        const Expr others = b.call("narrow", {all, last, int64_t{1}, columns - 1}).cast(DType::i64);
        return b.call("concat", {b.list({{first, others}}), last});
    }
};

class SegmentsRule final : public Rule {
  public:
    using Rule::Rule;

    int segments = -1;

  protected:
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        if (!is_cut(*this, work, segments)) return b.emit(op(), local);
        const Interval part = work.cuts[static_cast<size_t>(segments)];
        const int64_t size = factors[static_cast<size_t>(segments)].size;
        std::vector<Value> args(local.begin(), local.end());
        // A negative segment takes no part; an element of another piece becomes one of it.
        const Expr ids = Expr(b, local[1]).cast(DType::i64);
        const Expr own = localised(b, local[1], part, size, -1, part.size(), false).index;
        args[1] = b.call("where", {b.call("less", {ids, int64_t{0}}), int64_t{-1}, own}).value();
        args[2] = Value(part.size());
        return b.emit(op(), args);
    }
};

class OneHotRule final : public Rule {
  public:
    using Rule::Rule;

    int depth = -1;

  protected:
    // An index outside of the piece gives off_value alone, as one outside of the whole does.
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        const Interval part = work.cuts[static_cast<size_t>(depth)];
        std::vector<Value> args(local.begin(), local.end());
        if (part.begin > 0) args[0] = (Expr(b, local[0]).cast(DType::i64) - b.constant(Value(part.begin))).value();
        args[1] = Value(part.size());
        return b.emit(op(), args);
    }
};

}  // namespace

RulePtr gather_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<GatherRule>(call, types);
    Operand *x = rule->operand(0), *index = rule->operand(1);
    if (!x || !index || x->shape.rank() == 0) return nullptr;
    rule->axis = call.axis(2, 0);
    const int places = index->shape.rank();
    for (int k = 0; k < x->shape.rank(); ++k)
        if (k != rule->axis) pass(*rule, *x, k, k < rule->axis ? k : k + places - 1);
    for (int k = 0; k < places; ++k) pass(*rule, *index, k, rule->axis + k);
    rule->table = rule->add(Kind::reduce, x->shape[rule->axis], sum_of_places(types[0].dtype));
    x->axes[static_cast<size_t>(rule->axis)] = {rule->table};
    x->is_linear = true;
    return rule;
}

RulePtr gather_elements_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<GatherRule>(call, types);
    Operand *x = rule->operand(0), *index = rule->operand(2);
    if (!x || !index || x->shape.rank() == 0) return nullptr;
    rule->axis = call.axis(1, 0);
    rule->index = 2;
    rule->each = true;
    for (int k = 0; k < x->shape.rank(); ++k) {
        if (k == rule->axis) continue;
        if (x->shape[k] == index->shape[k]) x->axes[static_cast<size_t>(k)] = {pass(*rule, *index, k, k)};
    }
    pass(*rule, *index, rule->axis, rule->axis);
    rule->table = rule->add(Kind::reduce, x->shape[rule->axis], sum_of_places(types[0].dtype));
    x->axes[static_cast<size_t>(rule->axis)] = {rule->table};
    x->is_linear = true;
    return rule;
}

// Coordinates in the last axis of the indices; the axes of x that they do not name pass.
RulePtr gather_nd_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<Rule>(call, types);
    Operand *x = rule->operand(0), *index = rule->operand(1);
    if (!x || !index) return nullptr;
    const int places = index->shape.rank() - 1, named = static_cast<int>(index->shape.back());
    for (int k = 0; k < places; ++k) pass(*rule, *index, k, k);
    for (int k = named; k < x->shape.rank(); ++k) pass(*rule, *x, k, k - named + places);
    x->is_linear = true;
    return rule;
}

RulePtr index_add_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<WriteRule>(call, types);
    Operand *x = rule->operand(0), *index = rule->operand(1), *y = rule->operand(2);
    if (!x || !index || !y || index->shape.rank() != 1 || x->shape.rank() != y->shape.rank()) return nullptr;
    rule->axis = call.axis(3, 0);
    for (int k = 0; k < x->shape.rank(); ++k) {
        const int f = pass(*rule, *x, k, k);
        if (k == rule->axis)
            rule->target = f;
        else if (y->shape[k] == x->shape[k])
            y->axes[static_cast<size_t>(k)] = {f};
    }
    rule->updates = rule->add(Kind::reduce, index->shape[0], Merge::sum);
    index->axes[0] = y->axes[static_cast<size_t>(rule->axis)] = {rule->updates};
    rule->is_jointly_linear = true;
    return rule;
}

RulePtr scatter_elements_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<WriteRule>(call, types);
    Operand *x = rule->operand(0), *index = rule->operand(1), *u = rule->operand(2);
    if (!x || !index || !u || x->shape.rank() == 0 || !(index->shape == u->shape)) return nullptr;
    rule->axis = call.axis(3, 0);
    for (int k = 0; k < x->shape.rank(); ++k) {
        if (k == rule->axis) {
            rule->target = pass(*rule, *x, k, k);
        } else if (index->shape[k] == x->shape[k]) {
            const int f = pass(*rule, *x, k, k);
            index->axes[static_cast<size_t>(k)] = u->axes[static_cast<size_t>(k)] = {f};
        }
    }
    return rule;
}

RulePtr scatter_nd_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<WriteRule>(call, types);
    Operand *x = rule->operand(0), *index = rule->operand(1), *u = rule->operand(2);
    if (!x || !index || !u || index->shape.back() == 0) return nullptr;
    const int places = index->shape.rank() - 1, named = static_cast<int>(index->shape.back());
    rule->in_columns = true;
    rule->target = pass(*rule, *x, 0, 0);
    for (int k = named; k < x->shape.rank(); ++k) {
        const int of_update = k - named + places;
        if (u->shape[of_update] == x->shape[k]) u->axes[static_cast<size_t>(of_update)] = {pass(*rule, *x, k, k)};
    }
    return rule;
}

RulePtr segments_rule(const Call& call, const Types& types, std::string_view words) {
    auto rule = std::make_unique<SegmentsRule>(call, types);
    Operand *x = rule->operand(0), *ids = rule->operand(1);
    if (!x || !ids) return nullptr;
    const Merge merge = parse_merge(words).value_or(Merge::none);
    for (int k = 0; k < ids->shape.rank(); ++k)
        x->axes[static_cast<size_t>(k)] =
            ids->axes[static_cast<size_t>(k)] = {rule->add(Kind::reduce, ids->shape[k], merge)};
    for (int k = ids->shape.rank(); k < x->shape.rank(); ++k) pass(*rule, *x, k, k - ids->shape.rank() + 1);
    rule->segments = rule->add(Kind::make, types[0].shape[0]);
    rule->results[0].axes[0] = {rule->segments};
    x->is_linear = merge == Merge::sum;
    return rule;
}

RulePtr one_hot_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<OneHotRule>(call, types);
    Operand* index = rule->operand(0);
    if (!index) return nullptr;
    const Shape& whole = types[0].shape;
    const int axis = static_cast<int>(call.integer(4) < 0 ? call.integer(4) + whole.rank() : call.integer(4));
    for (int k = 0; k < index->shape.rank(); ++k) pass(*rule, *index, k, k < axis ? k : k + 1);
    rule->depth = rule->add(Kind::make, whole[axis]);
    rule->results[0].axes[static_cast<size_t>(axis)] = {rule->depth};
    return rule;
}

}  // namespace lunaria::parallel
