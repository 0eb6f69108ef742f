#include "jit/graph/loop.h"

#include <algorithm>
#include <array>
#include <bit>
#include <sstream>
#include <unordered_map>

#include "core/ops/formula_lists.h"

namespace lunaria::graph {

namespace {

constexpr std::array<std::string_view, 8> kKinds{"load",    "store", "add",    "const",
                                                 "formula", "cast",  "reduce", "product"};

// Which element types a formula can be generated for, and what it costs.
struct Known {
    bool floats = false, integers = false, bools = false;
    int cost = 1;
};

using Table = std::unordered_map<std::string_view, Known>;

template <class... F>
void add_floats(Table& table, int cost, formula::Formulas<F...>) {
    ((table[F::name].floats = true, table[F::name].cost = F::domain == formula::Domain::number ? 1 : cost), ...);
}
template <class... F>
void add_integers(Table& table, formula::Formulas<F...>) {
    ((table[F::name].integers = true), ...);
}

// All formulas, but for divisions and powers of integers: they raise errors.
const Table& known_formulas() {
    static const Table table = [] {
        Table t;
        add_floats(t, 2, formula::FloatFormulas{});
        add_floats(t, 8, formula::Exponentials{});
        add_floats(t, 8, formula::Hyperbolics{});
        add_floats(t, 8, formula::SmoothActivations{});
        add_floats(t, 8, formula::SmoothActivationGradients{});
        add_floats(t, 12, formula::Trigonometry{});
        add_floats(t, 20, formula::SpecialFunctions{});
        add_floats(t, 12, formula::Formulas<formula::Erf, formula::Erfc, formula::Gelu, formula::GeluGrad>{});
        add_integers(t, formula::IntegerFormulas{});
        for (std::string_view name : {"where", "masked_fill"}) t[name] = {true, true, true};
        for (std::string_view name :
             {"logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor",
              "invert",      "add",        "mul",         "maximum",     "minimum",     "fmax",       "fmin",
              "clamp",       "equal",      "not_equal",   "less",        "less_equal",  "greater",    "greater_equal"})
            t[name].bools = true;
        return t;
    }();
    return table;
}

}  // namespace

int formula_cost(std::string_view op, DType operand) {
    auto found = known_formulas().find(op);
    if (found == known_formulas().end()) return 0;
    const Known& known = found->second;
    const bool fits = is_float(operand)           ? known.floats
                      : is_integer(operand)       ? known.integers
                      : operand == DType::boolean ? known.bools
                                                  : false;
    if (!fits) return 0;
    return operand == DType::f64 ? known.cost * 2 : known.cost;
}

std::string LoopProgram::text() const {
    std::ostringstream out;
    out << "loop outer " << outer_rank << (streams ? " streams" : "") << (has_rows ? " rows" : "")
        << (has_sums ? " sums" : "") << '\n';
    for (const LoopOperand& o : operands)
        out << (o.written ? "out " : "in ") << static_cast<int>(o.dtype) << ' ' << static_cast<int>(o.step) << '\n';
    for (const LoopInstruction& i : code) {
        out << kKinds[static_cast<size_t>(i.kind)] << ' ' << i.name << ' ' << static_cast<int>(i.dtype) << ' '
            << static_cast<int>(i.operand) << (i.row ? " row " : " each ") << i.index << ' '
            << std::bit_cast<uint64_t>(i.number) << ' ' << i.integer;
        if (i.kind == LoopInstruction::Kind::product) out << ' ' << i.matrix << ' ' << i.depth << ' ' << i.stride;
        for (uint16_t a : i.args) out << " %" << a;
        out << '\n';
    }
    return out.str();
}

std::vector<int> passes_of(const LoopProgram& program) {
    std::vector<int> pass(program.code.size(), 0);
    for (size_t i = 0; i < program.code.size(); ++i) {
        const LoopInstruction& at = program.code[i];
        for (uint16_t a : at.args) {
            // A value of a row is complete after the pass of its reduction; the count of what follows starts there.
            pass[i] = std::max(pass[i], pass[a]);
        }
        if (at.kind == LoopInstruction::Kind::reduce) ++pass[i];
    }
    return pass;
}

std::vector<uint16_t> scratch_values(const LoopProgram& program) {
    std::vector<uint16_t> kept;
    if (!program.has_rows) return kept;
    const std::vector<int> pass = passes_of(program);
    // Of what is expensive, everything that a later pass than its own reads, directly or through cheap values.
    std::vector<int> last_use(program.code.size(), -1);
    for (size_t i = program.code.size(); i-- > 0;) {
        const LoopInstruction& at = program.code[i];
        int used_in = pass[i];
        if (at.kind == LoopInstruction::Kind::reduce) used_in = pass[i] - 1;
        if (at.row && at.kind != LoopInstruction::Kind::reduce) continue;
        used_in = std::max(used_in, at.kind == LoopInstruction::Kind::reduce ? -1 : last_use[i]);
        bool expensive = at.kind == LoopInstruction::Kind::product ||
                         (at.kind == LoopInstruction::Kind::formula && formula_cost(at.name, at.operand) >= 8);
        if (expensive && !at.row && last_use[i] > pass[i]) {
            kept.push_back(static_cast<uint16_t>(i));
            used_in = pass[i];
        }
        for (uint16_t a : at.args) last_use[a] = std::max(last_use[a], used_in);
    }
    std::reverse(kept.begin(), kept.end());
    return kept;
}

int loop_cost(const LoopProgram& program) {
    int cost = 0;
    for (const LoopInstruction& i : program.code) {
        if (i.row) continue;
        cost += i.kind == LoopInstruction::Kind::formula   ? formula_cost(i.name, i.operand)
                : i.kind == LoopInstruction::Kind::product ? static_cast<int>(i.depth)
                                                           : 1;
    }
    return std::max(cost, 1);
}

}  // namespace lunaria::graph
