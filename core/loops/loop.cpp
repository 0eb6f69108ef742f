#include "core/loops/loop.h"

#include <algorithm>
#include <array>
#include <bit>
#include <sstream>
#include <type_traits>
#include <unordered_map>

#include "core/loops/loop_check.h"
#include "core/ops/formulas_all.h"

namespace lunaria::graph {

namespace {

constexpr std::array<std::string_view, 8> kKinds{"load",    "store", "add",    "const",
                                                 "formula", "cast",  "reduce", "product"};

using formula::Fuses;

template <class F, class R, class... A>
constexpr FormulaForm form_of(R (F::*)(A...) const) {
    uint32_t masks = 0, bit = 1;
    ((masks |= std::is_same_v<A, bool> ? bit : 0, bit <<= 1), ...);
    return {sizeof...(A), masks};
}
// From the call operator: on elements of one type, or on these and masks.
template <class F>
constexpr FormulaForm form_of() {
    using T = std::conditional_t<F::domain == formula::Domain::integer, int, float>;
    if constexpr (requires { &F::template operator()<bool, T>; })
        return form_of<F>(decltype(&F::template operator()<bool, T>){});
    else
        return form_of<F>(decltype(&F::template operator()<T>){});
}

struct Fact {
    Fuses fuses = Fuses::never;
    int cost = 0;
    bool is_of_integers = false, gives_bools = false;
    FormulaForm form{};
};
using Facts = std::unordered_map<std::string_view, Fact>;

template <class... F>
Facts facts_of(formula::Formulas<F...>) {
    return {{F::name,
             {F::fuses, F::cost, F::domain == formula::Domain::integer, F::result == formula::Result::boolean,
              form_of<F>()}}...};
}

const Fact& fact_of(std::string_view op) {
    static const Facts facts = facts_of(formula::AllFormulas());
    static const Fact none;
    const auto found = facts.find(op);
    return found == facts.end() ? none : found->second;
}

bool fits(const Fact& fact, DType operand) {
    switch (fact.fuses) {
        case Fuses::never:
            return false;
        case Fuses::floats:
        case Fuses::single:
            return is_float(operand);
        case Fuses::numbers:
            return is_float(operand) || is_integer(operand);
        case Fuses::elements:
            return is_float(operand) || is_integer(operand) || operand == DType::boolean;
        case Fuses::bools:
            return operand == DType::boolean;
        case Fuses::by_loop:
            return fact.is_of_integers ? is_integer(operand) : is_float(operand);
    }
    return false;
}

}  // namespace

int formula_cost(std::string_view op, DType operand) {
    const Fact& fact = fact_of(op);
    if (!fits(fact, operand)) return 0;
    return operand == DType::f64 ? fact.cost * 2 : fact.cost;
}

bool is_done_by_loop(std::string_view op, DType operand) {
    const Fuses fuses = fact_of(op).fuses;
    return fuses == Fuses::by_loop || (fuses == Fuses::single && operand == DType::f64);
}

FormulaForm formula_form(std::string_view formula) { return fact_of(formula).form; }

bool gives_bools(std::string_view op) { return fact_of(op).gives_bools; }

std::string LoopProgram::text() const {
    std::ostringstream out;
    out << "loop outer " << outer_rank << (streams ? " streams" : "") << (has_rows ? " rows" : "")
        << (has_sums ? " sums" : "") << (in_order ? " in order" : "");
    if (!depth.empty()) out << " tile " << tile << " depth";
    for (int64_t size : depth) out << ' ' << size;
    out << '\n';
    for (const LoopOperand& o : operands)
        out << (o.written ? "out " : "in ") << static_cast<int>(o.dtype) << ' ' << static_cast<int>(o.step) << '\n';
    for (const LoopInstruction& i : code) {
        out << kKinds[static_cast<size_t>(i.kind)] << ' ' << i.name << ' ' << static_cast<int>(i.dtype) << ' '
            << static_cast<int>(i.operand)
            << (i.row     ? " row "
                : i.point ? " point "
                          : " each ")
            << i.index << ' ' << std::bit_cast<uint64_t>(i.number) << ' ' << i.integer;
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
            // A row's value is complete after the pass of its reduction, so that later values come one pass later.
            pass[i] = std::max(pass[i], pass[a]);
        }
        if (at.kind == LoopInstruction::Kind::reduce && program.depth.empty()) ++pass[i];
    }
    return pass;
}

bool is_expensive(const LoopInstruction& i) {
    return i.kind == LoopInstruction::Kind::product ||
           (i.kind == LoopInstruction::Kind::formula && formula_cost(i.name, i.operand) >= 8);
}

std::vector<uint16_t> scratch_values(const LoopProgram& program) {
    std::vector<uint16_t> kept;
    if (!program.has_rows) return kept;
    const std::vector<int> pass = passes_of(program);
    // Keeps the expensive values that a later pass than their own reads, directly or through cheap values.
    std::vector<int> last_use(program.code.size(), -1);
    for (size_t i = program.code.size(); i-- > 0;) {
        const LoopInstruction& at = program.code[i];
        int used_in = pass[i];
        if (at.kind == LoopInstruction::Kind::reduce) used_in = pass[i] - 1;
        if (at.row && at.kind != LoopInstruction::Kind::reduce) continue;
        used_in = std::max(used_in, at.kind == LoopInstruction::Kind::reduce ? -1 : last_use[i]);
        if (is_expensive(at) && !at.row && last_use[i] > pass[i]) {
            kept.push_back(static_cast<uint16_t>(i));
            used_in = pass[i];
        }
        for (uint16_t a : at.args) last_use[a] = std::max(last_use[a], used_in);
    }
    std::reverse(kept.begin(), kept.end());
    return kept;
}

size_t scratch_width(const LoopProgram& program) {
    size_t width = 4;
    for (uint16_t i : scratch_values(program)) width = std::max(width, size_of(program.code[i].dtype));
    return width;
}

int64_t loop_cost(const LoopProgram& program, std::span<const int64_t> sizes) {
    int64_t cost = 0, points = 1;
    for (size_t k = 0; k < program.depth.size(); ++k) points *= sizes[static_cast<size_t>(program.outer_rank) + 1 + k];
    for (const LoopInstruction& i : program.code) {
        if (i.row) continue;
        const int64_t once = i.kind == LoopInstruction::Kind::formula   ? formula_cost(i.name, i.operand)
                             : i.kind == LoopInstruction::Kind::product ? i.depth
                                                                        : 1;
        const bool often = i.point || (i.kind == LoopInstruction::Kind::reduce && !program.depth.empty());
        cost += often ? once * points : once;
    }
    return std::max<int64_t>(cost, 1);
}

}  // namespace lunaria::graph
