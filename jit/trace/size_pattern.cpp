#include "jit/trace/size_pattern.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "core/ir/builder.h"

namespace lunaria::trace {

namespace {

// Sizes of 1 are a case of their own: they broadcast.
constexpr int64_t kLeastSize = 2;

}  // namespace

Value SizePattern::value(const Term& term, const Sizes& sizes) {
    int64_t product = 1, n = 0;
    for (const int v : term.variables)
        if (__builtin_mul_overflow(product, sizes[static_cast<size_t>(v)], &product)) return {};
    if (term.form == Term::Form::reciprocal) return Value(term.scale / static_cast<double>(product));
    if (__builtin_mul_overflow(product, term.factor, &n) || __builtin_add_overflow(n, term.offset, &n)) return {};
    if (n % term.divisor != 0) return {};
    n /= term.divisor;
    if (n < 0 && !term.may_be_negative) return {};
    return term.form == Term::Form::integer ? Value(n) : Value(static_cast<double>(n));
}

std::optional<SizePattern::Sizes> SizePattern::sizes_in(std::span<const Value> slots) const {
    Sizes sizes(variables);
    for (const Source& source : sources) {
        const Value& v = slots[static_cast<size_t>(source.slot)];
        if (!v.is_tensor() || v.tensor().rank() != source.sizes.rank()) return {};
        for (int axis = 0; axis < source.sizes.rank(); ++axis) {
            const int64_t size = v.tensor().shape()[axis];
            const int variable = source.variables[static_cast<size_t>(axis)];
            if (variable < 0) {
                if (size != source.sizes[axis]) return {};
                continue;
            }
            int64_t& known = sizes[static_cast<size_t>(variable)];
            if (size < kLeastSize || (known != 0 && known != size)) return {};
            known = size;
        }
    }
    if (std::ranges::any_of(terms, [&](const Term& term) { return value(term, sizes).is_nil(); })) return {};
    return sizes;
}

void SizePattern::append_numbers(std::span<const Value> slots, vm::Values& results) const {
    const std::optional<Sizes> sizes = sizes_in(slots);
    for (const Term& term : terms) results.push_back(sizes ? value(term, *sizes) : Value());
}

namespace {

constexpr size_t kWays = 3;
using Term = SizePattern::Term;
using Sample = std::array<int64_t, kWays>;

bool differs(const Sample& s) { return s[0] != s[1] || s[0] != s[2]; }

// Finds numbers as formulas of the variables, from their values in the ways. Simple formulas come first; if two are
// equally simple, it is unknown which of them holds.
class Solver {
  public:
    // The variable that has these sizes.
    int variable(const Sample& sizes) {
        const auto known = static_cast<size_t>(std::ranges::find(samples_, sizes) - samples_.begin());
        if (known == samples_.size()) samples_.push_back(sizes);
        return static_cast<int>(known);
    }
    const std::vector<Sample>& samples() const { return samples_; }

    std::optional<Term> integer(const Sample& t) const {
        constexpr size_t kMostVariables = 6, kMostFactors = 3;
        if (samples_.size() > kMostVariables) return {};
        for (size_t degree = 1; degree <= kMostFactors; ++degree)
            if (Found found = search(degree, [&](const Sample& p) { return multiple(t, p); }); found.any)
                return signed_as(t, found.term);
        for (size_t degree = 1; degree < kMostFactors; ++degree)
            if (Found found = search(degree, [&](const Sample& p) { return affine(t, p); }); found.any)
                return signed_as(t, found.term);
        return {};
    }
    std::optional<Term> number(const std::array<double, kWays>& t) const {
        constexpr size_t kMostFactors = 3;
        constexpr double kMost = 1e15;
        const auto is_whole = [](double x) { return x == std::nearbyint(x) && std::abs(x) < kMost; };
        if (std::ranges::all_of(t, is_whole)) {
            Sample whole;
            std::ranges::transform(t, whole.begin(), [](double x) { return static_cast<int64_t>(x); });
            std::optional<Term> term = integer(whole);
            if (term) term->form = Term::Form::number;
            return term;
        }
        for (size_t degree = 1; degree <= kMostFactors; ++degree)
            if (Found found = search(degree, [&](const Sample& p) { return reciprocal(t, p); }); found.any)
                return found.term;
        return {};
    }

  private:
    struct Found {
        bool any = false;
        std::optional<Term> term;  // none: there are several
    };

    template <class Fit>
    Found search(size_t degree, Fit&& fit) const {
        Found found;
        std::vector<int> chosen;
        const auto visit = [&](const auto& self, size_t from, const Sample& product) -> void {
            if (chosen.size() == degree) {
                std::optional<Term> term = fit(product);
                if (!term) return;
                term->variables = chosen;
                found.term = found.any ? std::nullopt : std::move(term);
                found.any = true;
                return;
            }
            for (size_t v = from; v < samples_.size(); ++v) {
                Sample next = product;
                for (size_t k = 0; k < kWays; ++k) next[k] *= samples_[v][k];
                chosen.push_back(static_cast<int>(v));
                self(self, v, next);
                chosen.pop_back();
            }
        };
        visit(visit, 0, {1, 1, 1});
        return found;
    }

    static std::optional<Term> signed_as(const Sample& t, std::optional<Term> term) {
        if (term) term->may_be_negative = std::ranges::min(t) < 0;
        return term;
    }
    static std::optional<Term> multiple(const Sample& t, const Sample& p) {
        for (size_t k = 1; k < kWays; ++k)
            if (t[0] == 0 || t[k] * p[0] != t[0] * p[k]) return {};
        const int64_t common = std::gcd(t[0], p[0]);
        Term term;
        term.factor = t[0] / common;
        term.divisor = p[0] / common;
        return term;
    }
    static std::optional<Term> affine(const Sample& t, const Sample& p) {
        constexpr int64_t kMostParts = 64;
        int64_t up = t[1] - t[0], along = p[1] - p[0];
        if (along == 0 || up == 0 || (t[2] - t[0]) * along != up * (p[2] - p[0])) return {};
        if (along < 0) {
            up = -up;
            along = -along;
        }
        const int64_t common = std::gcd(up, along);
        Term term;
        term.factor = up / common;
        term.divisor = along / common;
        term.offset = t[0] * term.divisor - term.factor * p[0];
        if (term.divisor > kMostParts) return {};
        return term;
    }
    static std::optional<Term> reciprocal(const std::array<double, kWays>& t, const Sample& p) {
        const double scale = t[0] * static_cast<double>(p[0]);
        for (const double c : {std::nearbyint(scale), scale}) {
            bool holds = c != 0;
            for (size_t k = 0; k < kWays; ++k) holds &= c / static_cast<double>(p[k]) == t[k];
            if (!holds) continue;
            Term term;
            term.form = Term::Form::reciprocal;
            term.scale = c;
            return term;
        }
        return {};
    }

    std::vector<Sample> samples_;  // by variable
};

// Thrown where the ways differ in something that is not a formula of sizes.
struct Different {};

class Joiner {
  public:
    Joiner(Tree& tree, Block& block, const std::array<const Block*, kWays>& ways)
        : tree_(tree), block_(block), ways_(ways) {}

    bool run() {
        for (const Block* way : ways_)
            if (!way->next.empty() || way->steps.size() != ways_[0]->steps.size() ||
                way->steps.back().kind != Step::Kind::finish)
                return false;
        try {
            find_sources();
            for (size_t i = 0; i < ways_[0]->steps.size(); ++i) compare(i);
            if (solver_.samples().empty() || !is_confirmed()) return false;
        } catch (const Different&) {
            return false;
        }
        write();
        return true;
    }

  private:
    const Step& step(size_t way, size_t i) const { return ways_[way]->steps[i]; }
    const Step& last(size_t i) const { return step(kWays - 1, i); }

    static void require(bool holds) {
        if (!holds) throw Different();
    }

    // The tensors whose types are decided at the start of the ways.
    void find_sources() {
        for (size_t i = 0; i < ways_[0]->steps.size(); ++i) {
            if (last(i).kind != Step::Kind::is || !last(i).expected[0].typed) break;
            SizePattern::Source source{last(i).expected[0].slot, last(i).expected[0].type.shape, {}};
            for (int axis = 0; axis < source.sizes.rank(); ++axis) {
                Sample sizes;
                for (size_t way = 0; way < kWays; ++way) {
                    const Step& s = step(way, i);
                    require(s.kind == Step::Kind::is && s.expected[0].typed && !s.sizes &&
                            s.expected[0].slot == source.slot &&
                            s.expected[0].type.shape.rank() == source.sizes.rank());
                    sizes[way] = s.expected[0].type.shape[axis];
                }
                source.variables.push_back(differs(sizes) ? solver_.variable(sizes) : -1);
                require(!differs(sizes) || std::ranges::all_of(sizes, [](int64_t n) { return n >= kLeastSize; }));
            }
            pattern_.sources.push_back(std::move(source));
        }
        pattern_.variables = solver_.samples().size();
    }

    void compare(size_t i) {
        const Step& s = last(i);
        for (size_t way = 0; way < kWays; ++way) {
            const Step& other = step(way, i);
            require(s.kind == other.kind && s.node->op == other.node->op && s.opens == other.opens &&
                    s.table == other.table && s.list == other.list && s.effect == other.effect && !other.fails &&
                    !other.looked && s.args().size() == other.args().size() &&
                    s.expected.size() == other.expected.size());
            require(s.kind != Step::Kind::loop && s.kind != Step::Kind::again);
        }
        for (size_t k = 0; k < s.args().size(); ++k)
            operand({&step(0, i).args()[k], &step(1, i).args()[k], &s.args()[k]});
        for (size_t k = 0; k < s.expected.size(); ++k) result(i, k);
    }

    void result(size_t i, size_t k) {
        const Expected& e = last(i).expected[k];
        for (size_t way = 0; way < kWays; ++way) {
            const Expected& other = step(way, i).expected[k];
            require(e.what == other.what && e.slot == other.slot && e.typed == other.typed);
            require(e.what != Expected::What::number || e.constant.kind() == other.constant.kind());
            if (e.what != Expected::What::tensor && !e.typed) continue;
            require(e.type.dtype == other.type.dtype && e.parameter == other.parameter && e.open == other.open &&
                    e.type.shape.rank() == other.type.shape.rank());
        }
        highest_ = std::max(highest_, e.slot);
        if (e.what != Expected::What::constant) return;
        const std::array<const Value*, kWays> values{&step(0, i).expected[k].constant, &step(1, i).expected[k].constant,
                                                     &e.constant};
        if (identical(*values[0], e.constant) && identical(*values[1], e.constant)) return;
        // A number that was decided must be the one that follows from the sizes.
        require(last(i).kind == Step::Kind::is);
        for (const Value* v : values) require(v->is_number() && v->kind() == e.constant.kind());
        term_of(values);
    }

    // A value that is the same in all ways, or its value in the joined one; 0 for terms before there are any nodes.
    Value operand(const std::array<const Value*, kWays>& v) {
        const Value& x = *v[kWays - 1];
        for (const Value* other : v) require(other->kind() == x.kind());
        if (x.is_list()) {
            for (const Value* other : v) require(other->items().size() == x.items().size());
            std::vector<Value> items;
            for (size_t k = 0; k < x.items().size(); ++k)
                items.push_back(operand({&v[0]->items()[k], &v[1]->items()[k], &x.items()[k]}));
            return Value::list(std::move(items));
        }
        if (x.is_node()) {
            for (const Value* other : v) require(other->node()->slot == x.node()->slot);
            highest_ = std::max(highest_, x.node()->slot);
            const auto found = nodes_.find(x.node()->slot);
            return found == nodes_.end() ? x : Value(found->second);
        }
        if (same_operand(*v[0], x) && same_operand(*v[1], x)) return x;
        require(x.is_number());
        return Value(term_of(v));
    }

    // The term that equals the number, or its node.
    Value term_of(const std::array<const Value*, kWays>& v) {
        const auto is_this = [&](const Used& used) {
            for (size_t way = 0; way < kWays; ++way)
                if (!identical(used.values[way], *v[way])) return false;
            return true;
        };
        const auto found = std::ranges::find_if(used_, is_this);
        if (found != used_.end()) return found->node ? Value(found->node) : Value(0);
        std::optional<Term> term;
        if (v[0]->kind() == Value::Kind::integer)
            term = solver_.integer({v[0]->integer(), v[1]->integer(), v[2]->integer()});
        else
            term = solver_.number({v[0]->number(), v[1]->number(), v[2]->number()});
        require(term.has_value());
        pattern_.terms.push_back(*term);
        used_.push_back({{*v[0], *v[1], *v[2]}, nullptr});
        return Value(0);
    }

    // The result of an operator in each way, as a formula.
    Shape shape_at(size_t i, size_t k, const SizePattern::Sizes& sizes) const {
        Shape shape = last(i).expected[k].type.shape;
        for (int axis = 0; axis < shape.rank(); ++axis) {
            Sample sample;
            for (size_t way = 0; way < kWays; ++way) sample[way] = step(way, i).expected[k].type.shape[axis];
            if (!differs(sample)) continue;
            const std::optional<Term> term = solver_.integer(sample);
            require(term.has_value());
            const Value size = SizePattern::value(*term, sizes);
            require(!size.is_nil());
            shape[axis] = size.integer();
        }
        return shape;
    }

    // Whether the operators confirm the formulas for quite different sizes.
    bool is_confirmed() const {
        static constexpr int64_t kTried[] = {2, 3, 4, 6, 11, 16, 17, 37, 64, 100, 1000, 1001};
        constexpr size_t kCount = std::size(kTried), kApart = 5;
        int confirmed = 0;
        for (size_t k = 0; k < kCount; ++k) {
            SizePattern::Sizes sizes;
            bool small = false;
            for (size_t v = 0; v < pattern_.variables; ++v) {
                sizes.push_back(kTried[(k + kApart * v) % kCount]);
                small |= sizes.back() < std::ranges::min(solver_.samples()[v]);
            }
            const auto has_value = [&](const Term& t) { return !SizePattern::value(t, sizes).is_nil(); };
            if (!std::ranges::all_of(pattern_.terms, has_value)) continue;
            try {
                try_with(sizes);
                ++confirmed;
            } catch (const Error&) {
                // With fewer elements than there ever were, an operator may have no valid result.
                if (!small) return false;
            }
        }
        constexpr int kEnough = 4;
        return confirmed >= kEnough;
    }

    // The blocks from the root to this one.
    bool find_path(const Block& from, std::vector<const Block*>& path) const {
        path.push_back(&from);
        if (&from == &block_) return true;
        for (const auto& next : from.next)
            if (find_path(*next, path)) return true;
        path.pop_back();
        return false;
    }

    struct Trial {
        ir::Graph graph{"trial"};
        ir::GraphBuilder builder{graph};
        std::unordered_map<int32_t, Value> values;
        std::unordered_set<int32_t> sized;  // slots whose values depend on the sizes

        void put(int32_t slot, const TensorType& type) {
            values[slot] = Value(graph.add_parameter("", ir::NodeType::of(type)));
        }
    };

    void try_with(const SizePattern::Sizes& sizes) const {
        Trial trial;
        std::vector<const Block*> path;
        require(find_path(tree_.root, path));
        for (const Block* block : path)
            for (const Step& s : block->steps) {
                try_step(
                    trial, s, s.args(), [&](const Expected& e, size_t) { return e.type.shape; }, false);
                for (const Expected& e : s.expected)
                    if (e.what == Expected::What::tensor) put_source(trial, e, sizes);
            }
        for (size_t i = 0; i < ways_[0]->steps.size(); ++i) {
            std::vector<Value> args;
            for (size_t k = 0; k < last(i).args().size(); ++k)
                args.push_back(
                    operand_at({&step(0, i).args()[k], &step(1, i).args()[k], &last(i).args()[k]}, sizes, trial));
            const auto shape = [&](const Expected&, size_t k) { return shape_at(i, k, sizes); };
            if (last(i).kind != Step::Kind::is) try_step(trial, last(i), args, shape, true);
        }
    }

    void put_source(Trial& trial, const Expected& e, const SizePattern::Sizes& sizes) const {
        const auto source = std::ranges::find(pattern_.sources, e.slot, &SizePattern::Source::slot);
        if (source == pattern_.sources.end()) return;
        TensorType type{e.type.dtype, source->sizes};
        for (int axis = 0; axis < type.shape.rank(); ++axis)
            if (const int v = source->variables[static_cast<size_t>(axis)]; v >= 0)
                type.shape[axis] = sizes[static_cast<size_t>(v)];
        trial.put(e.slot, type);
        trial.sized.insert(e.slot);
    }

    // An operand in the joined way for these sizes.
    Value operand_at(const std::array<const Value*, kWays>& v, const SizePattern::Sizes& sizes, Trial& trial) const {
        const Value& x = *v[kWays - 1];
        if (x.is_list()) {
            std::vector<Value> items;
            for (size_t k = 0; k < x.items().size(); ++k)
                items.push_back(operand_at({&v[0]->items()[k], &v[1]->items()[k], &x.items()[k]}, sizes, trial));
            return Value::list(std::move(items));
        }
        for (size_t k = 0; k < used_.size(); ++k) {
            const auto& values = used_[k].values;
            if (identical(values[0], *v[0]) && identical(values[1], *v[1]) && identical(values[2], x))
                return SizePattern::value(pattern_.terms[k], sizes);
        }
        return x;
    }

    // An operand of the record as an operand of the trial.
    static Value value_in(Trial& trial, const Value& operand) {
        return with_leaves(operand, [&](const Value& v) {
            if (v.is_tensor()) return Value(trial.graph.add_constant(v));
            if (!v.is_node()) return v;
            const auto found = trial.values.find(v.node()->slot);
            require(found != trial.values.end());
            return found->second;
        });
    }

    // `must`: the results must be as expected.
    template <class F>
    static void try_step(Trial& trial, const Step& s, const std::vector<Value>& given, F&& shape_of, bool must) {
        bool sized = false;
        for_each_slot(s, [&](int32_t slot) { sized |= trial.sized.contains(slot); });
        const auto takes_sizes = [&](const Value& v) { return v.is_list() || v.is_number(); };
        sized |= std::ranges::any_of(given, takes_sizes);
        if (s.kind == Step::Kind::op && !s.effect && !s.expected.empty() && sized)
            return try_operator(trial, s, given, shape_of, must);
        for (size_t k = 0; k < s.expected.size(); ++k) {
            const Expected& e = s.expected[k];
            if (e.what == Expected::What::number) trial.values[e.slot] = e.constant;
            if (e.what != Expected::What::tensor) continue;
            const Shape shape = shape_of(e, k);
            require(!must || shape == e.type.shape);
            trial.put(e.slot, {e.type.dtype, shape});
        }
    }
    template <class F>
    static void try_operator(Trial& trial, const Step& s, const std::vector<Value>& given, F&& shape_of, bool must) {
        std::vector<Value> args;
        for (const Value& v : given) args.push_back(value_in(trial, v));
        const Value node = trial.builder.emit(s.op(), args);
        const bool several = s.list && node.is_node();
        require(!several || node.node()->type.items.size() == s.expected.size());
        require(!s.list || several || node.items().size() == s.expected.size());
        for (size_t k = 0; k < s.expected.size(); ++k) {
            const Expected& e = s.expected[k];
            if (e.what != Expected::What::tensor) continue;
            const Value result = s.list ? trial.builder.item(node, k) : node;
            require(result.is_node() && result.node()->type.kind == ir::NodeType::Kind::tensor);
            const TensorType& type = result.node()->type.tensor;
            require(type.dtype == e.type.dtype && type.shape.known());
            require(!must || type.shape == shape_of(e, k));
            trial.values[e.slot] = result;
            trial.sized.insert(e.slot);
        }
    }

    // Replaces the ways by the joined one.
    void write() {
        const int32_t first = std::max(highest_ + 1, tree_.slots);
        Block& way = block_.add_way();
        way.used = ways_[kWays - 1]->used;
        for (size_t i = 0; i < ways_[0]->steps.size(); ++i) {
            const Step& s = last(i);
            std::vector<Value> args;
            for (size_t k = 0; k < s.args().size(); ++k)
                args.push_back(operand({&step(0, i).args()[k], &step(1, i).args()[k], &s.args()[k]}));
            Step joined(s.kind, *s.node->op, std::move(args), s.span());
            joined.take_facts(s);
            for (size_t k = 0; k < s.expected.size(); ++k) {
                Expected& e = joined.expected[k];
                if (const auto found = nodes_.find(e.slot); found != nodes_.end()) e.node = found->second;
                for (size_t other = 0; other + 1 < kWays; ++other)
                    e.open |= !(step(other, i).expected[k].type.shape == e.type.shape);
                const std::array<const Value*, kWays> values{&step(0, i).expected[k].constant,
                                                             &step(1, i).expected[k].constant, &s.expected[k].constant};
                if (s.kind != Step::Kind::is || e.what != Expected::What::constant ||
                    (identical(*values[0], *values[2]) && identical(*values[1], *values[2])))
                    continue;
                e = Expected();
                e.what = Expected::What::same;
                e.node = term_of(values).node();
                e.slot = first + static_cast<int32_t>(std::ranges::find(used_, e.node, &Used::node) - used_.begin());
            }
            if (i == 0) {
                for (size_t k = 0; k < pattern_.terms.size(); ++k) {
                    Expected e;
                    e.what = Expected::What::number;
                    e.slot = first + static_cast<int32_t>(k);
                    e.constant = used_[k].values[kWays - 1];
                    joined.expected.push_back(std::move(e));
                }
                // Shared with the steps' copies; never changed any more.
                joined.sizes = std::make_shared<const SizePattern>(pattern_);
            }
            way.append(std::move(joined));
            const std::vector<Expected>& made = way.steps.back().expected;
            for (const Expected& e : made)
                if (e.slot >= 0 && e.what != Expected::What::same) nodes_[e.slot] = e.node;
            for (size_t k = 0; i == 0 && k < used_.size(); ++k) used_[k].node = made[s.expected.size() + k].node;
        }
        block_.erase_ways([&](const Block& old) { return std::ranges::find(ways_, &old) != ways_.end(); });
    }

    struct Used {
        std::array<Value, kWays> values;
        ir::Node* node;
    };
    Tree& tree_;
    Block& block_;
    const std::array<const Block*, kWays> ways_;
    Solver solver_;
    SizePattern pattern_;
    std::vector<Used> used_;                        // by term
    std::unordered_map<int32_t, ir::Node*> nodes_;  // of the joined way, by slot
    int32_t highest_ = -1;
};

}  // namespace

bool join_sizes(Tree& tree, Block& block) {
    std::vector<const Block*> ways;
    for (const auto& way : block.next) {
        const Step& first = way->steps[0];
        if (first.kind == Step::Kind::is && first.expected[0].typed && !first.sizes) ways.push_back(way.get());
    }
    if (ways.size() < kWays) return false;
    return Joiner(tree, block, {ways[ways.size() - 3], ways[ways.size() - 2], ways[ways.size() - 1]}).run();
}

}  // namespace lunaria::trace
