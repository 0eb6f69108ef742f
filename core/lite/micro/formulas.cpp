#include "core/lite/micro/formulas.h"

#include <array>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/ops/formulas_all.h"

namespace lunaria::lite::micro {

namespace {

// The dtype of the formula that is being written, which literals and names of functions depend on.
thread_local DType current = DType::f32;

// A node of an expression. Owners are the expressions that contain it: an operand may occur in several.
struct Node {
    std::string head{};  // a name or literal; of a call the function; of an operation the operator
    std::vector<std::shared_ptr<const Node>> args{};
    bool is_call = false, is_mask = false;
};
using NodeRef = std::shared_ptr<const Node>;

NodeRef leaf(std::string text) { return std::make_shared<Node>(Node{std::move(text), {}, false, false}); }
NodeRef node(std::string head, std::vector<NodeRef> args, bool is_call = false, bool is_mask = false) {
    return std::make_shared<Node>(Node{std::move(head), std::move(args), is_call, is_mask});
}

struct Mask {
    NodeRef v;
    friend Mask operator&(const Mask& a, const Mask& b) { return {node("&&", {a.v, b.v}, false, true)}; }
    friend Mask operator|(const Mask& a, const Mask& b) { return {node("||", {a.v, b.v}, false, true)}; }
    friend Mask operator!=(const Mask& a, const Mask& b) { return {node("!=", {a.v, b.v}, false, true)}; }
    Mask operator!() const { return {node("!", {v}, false, true)}; }
};

struct Term {
    NodeRef v;
    explicit Term(NodeRef r) : v(std::move(r)) {}
    explicit Term(double x) : v(leaf(literal(x, is_float(current) ? 0 : static_cast<int64_t>(x), current))) {}
};

// Integers wrap, as unsigned ones do in C; smaller ones than int are promoted and have to be cut.
Term wrapped(const char* head, std::vector<NodeRef> args) {
    if (is_float(current)) return Term(node(head, std::move(args)));
    // Sums and products of bools are "or" and "and".
    if (current == DType::boolean) return Term(node(head[0] == '*' ? "&&" : "||", std::move(args)));
    const char* const type = size_of(current) == 8 ? "(uint64_t)" : "(uint32_t)";
    for (NodeRef& a : args) a = node(type, {a});
    return Term(node(str("(", type_name(current), ")"), {node(head, std::move(args))}));
}
Term operator+(const Term& a, const Term& b) { return wrapped("+", {a.v, b.v}); }
Term operator-(const Term& a, const Term& b) { return wrapped("-", {a.v, b.v}); }
Term operator*(const Term& a, const Term& b) { return wrapped("*", {a.v, b.v}); }
Term operator-(const Term& a) { return is_float(current) ? Term(node("-", {a.v})) : Term(0.0) - a; }
Term operator/(const Term& a, const Term& b) { return Term(node("/", {a.v, b.v})); }
Term bits(const char* head, std::vector<NodeRef> args) {
    return Term(node(str("(", type_name(current), ")"), {node(head, std::move(args))}));
}
Term operator&(const Term& a, const Term& b) { return bits("&", {a.v, b.v}); }
Term operator|(const Term& a, const Term& b) { return bits("|", {a.v, b.v}); }
Term operator^(const Term& a, const Term& b) { return bits("^", {a.v, b.v}); }
Term operator~(const Term& a) { return bits("~", {a.v}); }
Mask compare(const char* head, const Term& a, const Term& b) { return {node(head, {a.v, b.v}, false, true)}; }
Mask operator==(const Term& a, const Term& b) { return compare("==", a, b); }
Mask operator!=(const Term& a, const Term& b) { return compare("!=", a, b); }
Mask operator<(const Term& a, const Term& b) { return compare("<", a, b); }
Mask operator<=(const Term& a, const Term& b) { return compare("<=", a, b); }
Mask operator>(const Term& a, const Term& b) { return compare(">", a, b); }
Mask operator>=(const Term& a, const Term& b) { return compare(">=", a, b); }
Term select(const Mask& m, const Term& a, const Term& b) { return Term(node("?", {m.v, a.v, b.v})); }

Term call(const char* function, const Term& x) {
    return Term(node(current == DType::f32 ? str(function, "f") : function, {x.v}, true));
}
Term call(const char* function, const Term& x, const Term& y) {
    return Term(node(current == DType::f32 ? str(function, "f") : function, {x.v, y.v}, true));
}

// clang-format off
Term abs(const Term& x) { return is_float(current) ? call("fabs", x) : select(x < Term(0.0), -x, x); }
Term sqrt(const Term& x) { return call("sqrt", x); }
Term floor(const Term& x) { return is_float(current) ? call("floor", x) : x; }
Term ceil(const Term& x) { return is_float(current) ? call("ceil", x) : x; }
Term trunc(const Term& x) { return is_float(current) ? call("trunc", x) : x; }
Term rint(const Term& x) { return is_float(current) ? call("rint", x) : x; }
Term exp(const Term& x) { return call("exp", x); }
Term exp2(const Term& x) { return call("exp2", x); }
Term expm1(const Term& x) { return call("expm1", x); }
Term expm1_negative(const Term& x) { return call("expm1", x); }
Term log(const Term& x) { return call("log", x); }
Term log2(const Term& x) { return call("log2", x); }
Term log10(const Term& x) { return call("log10", x); }
Term log1p(const Term& x) { return call("log1p", x); }
Term sin(const Term& x) { return call("sin", x); }
Term cos(const Term& x) { return call("cos", x); }
Term tan(const Term& x) { return call("tan", x); }
Term asin(const Term& x) { return call("asin", x); }
Term acos(const Term& x) { return call("acos", x); }
Term atan(const Term& x) { return call("atan", x); }
Term sinh(const Term& x) { return call("sinh", x); }
Term cosh(const Term& x) { return call("cosh", x); }
Term tanh(const Term& x) { return call("tanh", x); }
Term asinh(const Term& x) { return call("asinh", x); }
Term acosh(const Term& x) { return call("acosh", x); }
Term atanh(const Term& x) { return call("atanh", x); }
Term erfc(const Term& x) { return call("erfc", x); }
Term normal_cdf(const Term& x) { return Term(0.5) * erfc(x * Term(-0.70710678118654752440)); }
Term pow(const Term& x, const Term& y) { return call("pow", x, y); }
Term atan2(const Term& x, const Term& y) { return call("atan2", x, y); }
Term fmod(const Term& x, const Term& y) { return call("fmod", x, y); }
Term hypot(const Term& x, const Term& y) { return call("hypot", x, y); }
Term copysign(const Term& x, const Term& y) { return call("copysign", x, y); }
// clang-format on

// The statements of an expression: a part that occurs more than once gets a variable.
class Statements {
  public:
    Statements(Lines& to, std::string variable) : to_(to), variable_(std::move(variable)) {}

    void write(const Node& root, bool is_mask) {
        count(root);
        const std::string text = expression(root);
        to_.line("const ", is_mask ? "bool" : type_name(current), " ", variable_, " = ", text, ";");
    }

  private:
    void count(const Node& n) {
        if (++uses_[&n] > 1) return;
        for (const NodeRef& a : n.args) count(*a);
    }

    std::string part(const NodeRef& r) {
        const Node& n = *r;
        if (n.args.empty()) return n.head[0] == '-' ? "(" + n.head + ")" : n.head;
        if (uses_[&n] > 1) {
            std::string& name = names_[&n];
            if (name.empty()) {
                const std::string text = expression(n);
                name = str(variable_, "_", ++made_);
                to_.line("const ", n.is_mask ? "bool" : type_name(current), " ", name, " = ", text, ";");
            }
            return name;
        }
        return n.is_call ? expression(n) : "(" + expression(n) + ")";
    }
    std::string bare(const NodeRef& r) {
        if (r->args.empty()) return r->head;
        return uses_[r.get()] > 1 ? part(r) : expression(*r);
    }
    std::string expression(const Node& n) {
        if (n.args.empty()) return n.head;
        if (n.is_call) {
            std::string text = n.head + "(" + bare(n.args[0]);
            for (size_t i = 1; i < n.args.size(); ++i) text += ", " + bare(n.args[i]);
            return text + ")";
        }
        if (n.head == "?") {
            const std::string condition = part(n.args[0]), a = part(n.args[1]), b = part(n.args[2]);
            return str(condition, " ? ", a, " : ", b);
        }
        if (n.args.size() == 1) return n.head + part(n.args[0]);
        const std::string a = part(n.args[0]), b = part(n.args[1]);
        return str(a, " ", n.head, " ", b);
    }

    Lines& to_;
    std::string variable_;
    std::map<const Node*, int> uses_;
    std::map<const Node*, std::string> names_;
    int made_ = 0;
};

template <class F, size_t... I>
NodeRef apply(std::span<const std::string> args, std::index_sequence<I...>) {
    return F{}(Term(leaf(args[I]))...).v;
}
template <class F, size_t N>
constexpr bool takes() {
    return []<size_t... I>(std::index_sequence<I...>) {
        return requires(F formula, std::array<Term, N> a) { formula(a[I]...); };
    }
    (std::make_index_sequence<N>());
}
template <class F, size_t N = 1>
NodeRef apply(std::span<const std::string> args) {
    if constexpr (takes<F, N>())
        if (args.size() == N) return apply<F>(args, std::make_index_sequence<N>());
    if constexpr (N < 5) return apply<F, N + 1>(args);
    return nullptr;
}

bool fits(formula::Domain domain) {
    if (domain == formula::Domain::real) return is_float(current);
    if (domain == formula::Domain::integer) return is_integer(current) || current == DType::boolean;
    return true;
}
template <class... F>
NodeRef find(std::string_view name, std::span<const std::string> args, formula::Formulas<F...>) {
    NodeRef result;
    (void)((name == F::name && fits(F::domain) && ((result = apply<F>(args)), true)) || ...);
    return result;
}

using Known =
    decltype(formula::CheapMath() + formula::Exponentials() + formula::Trigonometry() + formula::Hyperbolics() +
             formula::Divisions() + formula::Activations() + formula::SmoothActivations() + formula::Comparisons() +
             formula::Tests() + formula::Logic() + formula::Bits());

NodeRef expression_of(std::string_view name, std::span<const std::string> args) {
    auto term = [&](size_t i) { return Term(leaf(args[i])); };
    auto mask = [&](size_t i) { return Mask{leaf(args[i])}; };
    // These mix masks and numbers.
    if (name == formula::Where::name && args.size() == 3) return formula::Where()(mask(0), term(1), term(2)).v;
    if (name == formula::MaskedFill::name && args.size() == 3)
        return formula::MaskedFill()(term(0), mask(1), term(2)).v;
    // math.h has these, which core/ops gives as polynomials.
    const bool is_function = is_float(current) && args.size() == 1;
    if (name == formula::Erf::name && is_function) return call("erf", term(0)).v;
    if (name == formula::Erfc::name && is_function) return call("erfc", term(0)).v;
    return find(name, args, Known());
}

}  // namespace

bool write_formula(Lines& to, std::string_view formula, DType dtype, std::span<const std::string> args,
                   const std::string& variable) {
    if (type_name(dtype).empty()) return false;
    current = dtype;
    const NodeRef root = expression_of(formula, args);
    if (!root) return false;
    Statements(to, variable).write(*root, root->is_mask);
    return true;
}

}  // namespace lunaria::lite::micro
