#include "core/loops/loop.h"

#include <algorithm>
#include <array>
#include <bit>
#include <sstream>
#include <unordered_map>

namespace lunaria::graph {

namespace {

constexpr std::array<std::string_view, 8> kKinds{"load",    "store", "add",    "const",
                                                 "formula", "cast",  "reduce", "product"};

// single: f32, and f64 by the operator's own loop; by_loop: floats, and by_loop_whole: integers, always by that.
enum class Where : uint8_t { numbers, floats, single, bools, by_loop, by_loop_whole };

struct Known {
    Where where = Where::floats;
    int cost = 1;
};

// The formulas that the code generator has all functions for (jit/codegen/math.h). Integer division and powers of
// integers are left out: they raise errors.
const std::unordered_map<std::string_view, Known>& known_formulas() {
    static const std::unordered_map<std::string_view, Known> table = [] {
        std::unordered_map<std::string_view, Known> t;
        auto add = [&](Where where, int cost, std::initializer_list<std::string_view> names) {
            for (std::string_view name : names) t[name] = {where, cost};
        };
        add(Where::numbers, 1,
            {"add",  "sub",        "mul",     "maximum",       "minimum", "clamp",      "fmax",  "fmin",
             "abs",  "neg",        "square",  "sign",          "relu",    "relu6",      "equal", "not_equal",
             "less", "less_equal", "greater", "greater_equal", "where",   "masked_fill"});
        add(Where::floats, 2,
            {"div",           "sqrt",      "rsqrt",      "reciprocal",  "floor",        "ceil",         "trunc",
             "round_to_even", "frac",      "deg2rad",    "rad2deg",     "copysign",     "lerp",         "addcmul",
             "addcdiv",       "heaviside", "leaky_relu", "hardsigmoid", "hardswish",    "hardshrink",   "softshrink",
             "threshold",     "softsign",  "relu_grad",  "tanh_grad",   "sigmoid_grad", "isnan",        "isinf",
             "isposinf",      "isneginf",  "isfinite",   "signbit",     "xdivy",        "huber_element"});
        add(Where::floats, 8,
            {"exp",        "exp2",  "expm1",      "log",       "log2",          "log10", "log1p",     "logaddexp",
             "logaddexp2", "xlogy", "sinh",       "cosh",      "tanh",          "asinh", "acosh",     "atanh",
             "elu",        "celu",  "selu",       "sigmoid",   "logsigmoid",    "silu",  "gelu_tanh", "fast_gelu",
             "softplus",   "mish",  "tanhshrink", "silu_grad", "gelu_tanh_grad"});
        add(Where::single, 12,
            {"erf", "erfc", "gelu_erf", "gelu_erf_grad", "asin", "acos", "atan", "atan2", "sin", "cos", "tan"});
        add(Where::by_loop, 16,
            {"pow", "fmod", "remainder", "floor_divide", "hypot", "lgamma", "sinc", "digamma", "trigamma", "erfinv",
             "erfcx", "ndtr", "ndtri", "log_ndtr", "log_odds", "truncate_div"});
        add(Where::by_loop_whole, 4,
            {"bitwise_and", "bitwise_or", "bitwise_xor", "invert", "bitwise_left_shift", "bitwise_right_shift", "gcd",
             "lcm"});
        add(Where::bools, 1, {"logical_and", "logical_or", "logical_xor", "logical_not"});
        return t;
    }();
    return table;
}

}  // namespace

int formula_cost(std::string_view op, DType operand) {
    auto found = known_formulas().find(op);
    if (found == known_formulas().end()) return 0;
    const Known& known = found->second;
    bool fits = false;
    switch (known.where) {
        case Where::numbers:
            fits = is_float(operand) || is_integer(operand) ||
                   (operand == DType::boolean && (op == "where" || op == "equal" || op == "not_equal"));
            break;
        case Where::floats:
            fits = is_float(operand);
            break;
        case Where::single:
        case Where::by_loop:
            fits = is_float(operand);
            break;
        case Where::by_loop_whole:
            fits = is_integer(operand);
            break;
        case Where::bools:
            fits = operand == DType::boolean;
            break;
    }
    if (!fits) return 0;
    return operand == DType::f64 ? known.cost * 2 : known.cost;
}

bool is_done_by_loop(std::string_view op, DType operand) {
    const auto found = known_formulas().find(op);
    if (found == known_formulas().end()) return false;
    const Where where = found->second.where;
    return where == Where::by_loop || where == Where::by_loop_whole ||
           (where == Where::single && operand == DType::f64);
}

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
            // A value of a row is complete after the pass of its reduction; the count of what follows starts there.
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
    // Of what is expensive, everything that a later pass than its own reads, directly or through cheap values.
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
