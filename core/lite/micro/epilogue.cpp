#include "core/lite/micro/epilogue.h"

#include <algorithm>

#include "core/lite/micro/formulas.h"
#include "core/lite/micro/pooled.h"

namespace lunaria::lite::micro {

namespace {

// The formula of an activation; with numbers alpha and beta of them.
struct ActivationFormula {
    std::string_view name, formula;
    int numbers = 0;
};
constexpr ActivationFormula kActivations[] = {
    {"relu", "relu"},
    {"relu6", "relu6"},
    {"clip", "clamp", 2},
    {"elu", "elu", 1},
    {"leaky_relu", "leaky_relu", 1},
    {"hard_sigmoid", "hardsigmoid"},
    {"silu", "silu"},
    {"hard_swish", "hardswish"},
    {"sigmoid", "sigmoid"},
    {"gelu", "gelu_erf"},
    {"gelu_tanh", "gelu_tanh"},
    {"tanh", "tanh"},
    {"mish", "mish"},
};

constexpr std::string_view kRounded =
    "/* The nearest even integer of f within the limits, which do not count zero, plus zero. */\n"
    "static int rounded(float f, float low, float high, int zero) {\n"
    "    const float raised = f > low ? f : low;\n"
    "    const float within = raised < high ? raised : high;\n"
    "    return (int)lrintf(within) + zero;\n"
    "}\n";

// The number of a pixel that is averaged with the others is added to their sum.
void store(const StepForm& form, Lines& to, const std::string& place, const std::string& value) {
    if (form.has(kPooled))
        to.line("total += ", value, ";");
    else
        to.line("y[", place, "] = ", value, ";");
}

void demand_columns(const StepForm& form, const Operand& o, DType dtype, int64_t columns) {
    if (o.is_there())
        form.demand(o.dtype == dtype && o.size() == columns && o.is_dense(),
                    "its bias, scale or multiplier has another form");
}

}  // namespace

void write_activation(const StepForm& form, Lines& to, const std::string& x, const std::string& variable) {
    const std::string_view name = form.text("activation");
    const auto* const found = std::ranges::find(kActivations, name, &ActivationFormula::name);
    form.demand(found != std::end(kActivations), str("the activation ", name, " is not supported in C"));
    std::vector<std::string> args{x};
    if (found->numbers > 0) args.push_back(literal(form.single("alpha")));
    if (found->numbers > 1) args.push_back(literal(form.single("beta")));
    form.demand(write_formula(to, found->formula, DType::f32, args, variable),
                str("the activation ", name, " is not supported in C"));
}

FloatEnd::FloatEnd(const StepForm& form, size_t first, int64_t columns) : form_(form), first_(first) {
    for (size_t i = first; i < first + 2; ++i) demand_columns(form, form.operand(i), DType::f32, columns);
    const Operand residual = form.operand(first + 2);
    if (residual.is_there())
        form.demand(residual.dtype == DType::f32 && residual.is_dense() && residual.size() == form.out[0].size(),
                    "its residual has another form");
}

void FloatEnd::add_parameters(std::vector<Parameter>& parameters) const {
    constexpr const char* names[] = {"bias", "scale", "residual"};
    for (size_t i = 0; i < 3; ++i)
        if (const Operand o = form_.operand(first_ + i); o.is_there()) parameters.push_back(form_.read(names[i], o));
}

void FloatEnd::write(Lines& to, std::string_view sum, const std::string& column, const std::string& place) const {
    const bool has_residual = form_.operand(first_ + 2).is_there(), last = form_.integer("residual_last") != 0;
    std::string value(sum);
    auto change = [&](std::string_view name, const std::string& text) {
        to.line("const float ", name, " = ", value, " ", text, ";");
        value = name;
    };
    if (form_.operand(first_ + 1).is_there()) change("scaled", str("* scale[", column, "]"));
    if (form_.operand(first_).is_there()) change("biased", str("+ bias[", column, "]"));
    if (has_residual && !last) change("joined", str("+ residual[", place, "]"));
    if (const std::string_view name = form_.text("activation"); !name.empty() && name != "none") {
        write_activation(form_, to, value, "active");
        value = "active";
    }
    store(form_, to, place, has_residual && last ? str(value, " + residual[", place, "]") : value);
}

std::string rounded(const StepForm& form, DType type) {
    form.demand(type == DType::i8 || type == DType::u8, "its result is not of 8-bit integers");
    form.program.helper("rounded", kRounded);
    const int64_t zero = form.integer("zero"), least = type == DType::i8 ? -128 : 0;
    const auto low = static_cast<float>(form.integer("low", least) - zero),
               high = static_cast<float>(form.integer("high", least + 255) - zero);
    return str("(", type_name(type), ")rounded(f, ", literal(low), ", ", literal(high), ", ", zero, ")");
}

IntegerEnd::IntegerEnd(const StepForm& form, int64_t columns)
    : form_(form), to_float_(form.out[0].dtype == DType::f32) {
    demand_columns(form, form.operand(2), DType::i32, columns);
    form.demand(form.operand(3).is_there(), "it has no multipliers");
    demand_columns(form, form.operand(3), DType::f32, columns);
    demand_columns(form, form.operand(6), DType::f32, columns);
    const Operand residual = form.operand(4), table = form.operand(5);
    if (residual.is_there())
        form.demand(!to_float_ && residual.dtype == form.out[0].dtype && residual.is_dense() &&
                        residual.size() == form.out[0].size(),
                    "its residual has another form");
    if (table.is_there())
        form.demand(!to_float_ && table.size() == 256 && table.is_dense() && size_of(table.dtype) == 1,
                    "its table has another form");
}

void IntegerEnd::add_parameters(std::vector<Parameter>& parameters) const {
    constexpr const char* names[] = {"bias", "multiplier", "residual", "table", "float_bias"};
    for (size_t i = 0; i < 5; ++i)
        if (const Operand o = form_.operand(2 + i); o.is_there()) parameters.push_back(form_.read(names[i], o));
}

std::string IntegerEnd::start(const std::string& column) const {
    return form_.operand(2).is_there() ? str("bias[", column, "]") : "0";
}

void IntegerEnd::write(Lines& to, const std::string& column, const std::string& place) const {
    if (to_float_) {
        to.line("const float scaled = (float)sum * multiplier[", column, "];");
        std::string value = "scaled";
        if (form_.operand(6).is_there()) {
            to.line("const float biased = scaled + float_bias[", column, "];");
            value = "biased";
        }
        if (const std::string_view name = form_.text("activation"); !name.empty() && name != "none") {
            write_activation(form_, to, value, "active");
            value = "active";
        }
        store(form_, to, place, value);
        return;
    }
    if (form_.operand(4).is_there()) {
        const int64_t zero = form_.integer("residual_zero");
        to.line("const float scaled = (float)sum * multiplier[", column, "];");
        to.line("const float other = (float)(residual[", place, "]", zero < 0 ? str(" + ", -zero) : str(" - ", zero),
                ") * ", literal(form_.single("residual_multiplier")), ";");
        to.line("const float f = scaled + other;");
    } else {
        to.line("const float f = (float)sum * multiplier[", column, "];");
    }
    const DType type = form_.out[0].dtype;
    if (!form_.operand(5).is_there()) {
        to.line("y[", place, "] = ", rounded(form_, type), ";");
        return;
    }
    to.line("const ", type_name(type), " q = ", rounded(form_, type), ";");
    to.line("y[", place, "] = (", type_name(type), ")table[q", type == DType::i8 ? " + 128" : "", "];");
}

}  // namespace lunaria::lite::micro
