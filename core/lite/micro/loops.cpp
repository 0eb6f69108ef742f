// Loop programs as nested loops of C: rows along the outer axes, and in each row one loop for each pass.
#include <algorithm>

#include "core/lite/format/check.h"
#include "core/lite/micro/formulas.h"
#include "core/lite/micro/program.h"
#include "core/loops/loop.h"

namespace lunaria::lite::micro {

namespace {

using graph::LoopInstruction;
using graph::LoopOperand;
using graph::LoopProgram;
using Kind = LoopInstruction::Kind;

enum class Reduction { sum, squares, max, min };
constexpr std::string_view kReductions[] = {"sum", "squares", "max", "min"};

// Rows that are longer are summed in double.
constexpr int64_t kLongRow = 1024;

class LoopText {
  public:
    LoopText(const StepForm& form, const LoopProgram& program)
        : form_(form), p_(program), pass_(graph::passes_of(program)), names_(program.code.size()) {
        for (const Number& n : form.step.sizes) sizes_.push_back(n.value);
        size_t next = p_.first_stride();
        for (size_t k = 0; k < p_.operands.size(); ++k) {
            strides_.push_back(next);
            next += p_.count_of_strides(k);
        }
        form.demand(sizes_.size() == next, "its loop has other operands than its program");
        inner_ = sizes_[static_cast<size_t>(p_.outer_rank)];
    }

    void write() {
        std::vector<Parameter> parameters;
        size_t in = 0, out = 0;
        for (size_t k = 0; k < p_.operands.size(); ++k) {
            const bool is_written = p_.operands[k].written;
            pointers_.push_back(is_written ? (out == 0 ? "y" : str("y", out + 1))
                                           : std::string(1, static_cast<char>('a' + in)));
            // Letters end; b, x and y are those of other things.
            if (!is_written && in > 7) pointers_.back() = str("in", in);
            parameters.push_back(is_written ? form_.written(pointers_.back(), form_.out.at(out))
                                            : form_.read(pointers_.back(), form_.in.at(in)));
            ++(is_written ? out : in);
        }
        to_.set_depth(1);
        for (int axis = 0; axis < p_.outer_rank; ++axis)
            if (sizes_[static_cast<size_t>(axis)] != 1) to_.count(str("i", axis), sizes_[static_cast<size_t>(axis)]);
        const int last = *std::max_element(pass_.begin(), pass_.end());
        for (int pass = 0; pass <= last; ++pass) write_pass(pass);
        to_.close_to(1);
        form_.call(form_.step.label.empty() ? "loop" : form_.step.label, parameters, to_.take());
    }

  private:
    const LoopInstruction& at(size_t i) const { return p_.code[i]; }
    bool is_reduction_of_row(size_t i) const { return at(i).kind == Kind::reduce && p_.depth.empty(); }
    static bool is_store(const LoopInstruction& i) { return i.kind == Kind::store || i.kind == Kind::add; }

    // Values that a pass needs per element: of its stores, and of the reductions that it completes.
    std::vector<bool> needed(int pass) const {
        std::vector<bool> need(p_.code.size(), false);
        for (size_t i = p_.code.size(); i-- > 0;) {
            if (is_store(at(i))) need[i] = !at(i).row && pass_[i] == pass;
            if (is_reduction_of_row(i)) need[i] = pass_[i] == pass + 1;
            if (!need[i]) continue;
            for (const uint16_t a : at(i).args)
                if (!at(a).row) need[a] = true;
        }
        return need;
    }

    void write_pass(int pass) {
        for (size_t i = 0; i < p_.code.size(); ++i)
            if (at(i).row && pass_[i] == pass && !is_reduction_of_row(i) && !is_store(at(i))) write_value(i);
        const std::vector<bool> need = needed(pass);
        if (std::ranges::find(need, true) != need.end()) write_elements(need);
        for (size_t i = 0; i < p_.code.size(); ++i)
            if (at(i).row && pass_[i] == pass && is_store(at(i))) write_store(i);
    }

    void write_elements(const std::vector<bool>& need) {
        for (size_t i = 0; i < need.size(); ++i)
            if (need[i] && is_reduction_of_row(i)) start(i);
        const int depth = to_.depth();
        if (inner_ != 1) to_.count("j", inner_);
        for (size_t i = 0; i < need.size(); ++i) {
            if (!need[i] || at(i).point) continue;
            if (is_store(at(i)))
                write_store(i);
            else if (is_reduction_of_row(i))
                accumulate(i);
            else if (at(i).kind == Kind::reduce)
                write_points(i);
            else
                write_value(i);
        }
        to_.close_to(depth);
        for (size_t i = 0; i < need.size(); ++i)
            if (need[i] && is_reduction_of_row(i)) end(i);
    }

    // One loop over the points for each reduction.
    void write_points(size_t i) {
        std::vector<bool> need(p_.code.size(), false);
        need[at(i).args[0]] = at(at(i).args[0]).point;
        for (size_t k = i; k-- > 0;)
            if (need[k])
                for (const uint16_t a : at(k).args)
                    if (at(a).point) need[a] = true;
        start(i);
        const int depth = to_.depth();
        for (size_t axis = 0; axis < p_.depth.size(); ++axis)
            if (points(axis) != 1) to_.count(str("p", axis), points(axis));
        for (size_t k = 0; k < i; ++k)
            if (need[k]) write_value(k);
        accumulate(i);
        to_.close_to(depth);
        end(i);
    }
    int64_t points(size_t axis) const { return sizes_[static_cast<size_t>(p_.outer_rank) + 1 + axis]; }

    Reduction reduction(size_t i) const {
        const auto* const found = std::ranges::find(kReductions, at(i).name);
        form_.demand(found != std::end(kReductions), "its loop has an unknown reduction");
        return static_cast<Reduction>(found - kReductions);
    }
    bool is_sum(size_t i) const { return reduction(i) == Reduction::sum || reduction(i) == Reduction::squares; }
    bool is_wide(size_t i) const {
        int64_t count = p_.depth.empty() ? inner_ : 1;
        for (size_t axis = 0; axis < p_.depth.size(); ++axis) count *= points(axis);
        return at(i).operand == DType::f64 || at(i).dtype == DType::f64 || (is_sum(i) && count > kLongRow);
    }
    void start(size_t i) {
        form_.demand(at(i).operand == DType::f32 || at(i).operand == DType::f64,
                     "it reduces elements that are no floats");
        const std::string_view first = is_sum(i) ? "0.0f" : reduction(i) == Reduction::max ? "-INFINITY" : "INFINITY";
        to_.line(is_wide(i) ? "double" : "float", " r", i, " = ", first, ";");
    }
    void accumulate(size_t i) {
        const std::string x = value(at(i).args[0]), r = str("r", i);
        const std::string cast = is_wide(i) && at(i).operand == DType::f32 ? "(double)" : "";
        if (reduction(i) == Reduction::sum)
            to_.line(r, " += ", cast, x, ";");
        else if (reduction(i) == Reduction::squares)
            to_.line(r, " += ", cast, x, " * ", cast, x, ";");
        else
            // A NaN stays.
            to_.line("if (", x, reduction(i) == Reduction::max ? " > " : " < ", r, " || ", x, " != ", x, ") ", r, " = ",
                     x, ";");
    }
    void end(size_t i) {
        names_[i] = str("v", i);
        const bool narrows = is_wide(i) && at(i).dtype == DType::f32;
        to_.line("const ", type_name(at(i).dtype), " v", i, " = ", narrows ? "(float)" : "", "r", i, ";");
    }

    std::string place(size_t operand, bool row, bool point) const {
        const LoopOperand& o = p_.operands[operand];
        Index index;
        size_t next = strides_[operand];
        for (int axis = 0; axis < p_.outer_rank; ++axis, ++next)
            if (sizes_[static_cast<size_t>(axis)] != 1) index.add(str("i", axis), sizes_[next]);
        const int64_t step = o.step == LoopOperand::Step::wide    ? sizes_[next++]
                             : o.step == LoopOperand::Step::dense ? 1
                                                                  : 0;
        if (!row && inner_ != 1) index.add("j", step);
        for (size_t axis = 0; axis < p_.depth.size(); ++axis, ++next)
            if (point && points(axis) != 1) index.add(str("p", axis), sizes_[next]);
        return index.text();
    }
    std::string element(size_t operand, bool row, bool point) const {
        return str(pointers_[operand], "[", place(operand, row, point), "]");
    }
    std::string value(uint16_t i) const { return names_[i]; }

    void write_store(size_t i) {
        const LoopInstruction& s = at(i);
        const std::string target = element(s.index, s.row, false), x = value(s.args[0]);
        if (s.kind == Kind::store) {
            to_.line(target, " = ", x, ";");
            return;
        }
        // The first row sets the sum.
        std::string first;
        for (int axis = 0; axis < p_.outer_rank; ++axis)
            if (sizes_[static_cast<size_t>(axis)] != 1) first += str(first.empty() ? "" : " && ", "i", axis, " == 0");
        if (first.empty())
            to_.line(target, " = ", x, ";");
        else
            to_.line(target, " = ", first, " ? ", x, " : ", target, " + ", x, ";");
    }

    void write_value(size_t i) {
        const LoopInstruction& v = at(i);
        const std::string name = str("v", i);
        names_[i] = name;
        form_.demand(!type_name(v.dtype).empty(),
                     str("its loop computes ", name_of(v.dtype), ", which C99 does not have"));
        const std::string declared = str("const ", type_name(v.dtype), " ", name, " = ");
        switch (v.kind) {
            case Kind::load:
                to_.line(declared, element(v.index, v.row, v.point), ";");
                return;
            case Kind::constant:
                names_[i] = literal(v.number, v.integer, v.dtype);
                if (v.dtype == DType::boolean) names_[i] = v.integer != 0 || v.number != 0 ? "true" : "false";
                return;
            case Kind::cast:
                write_cast(form_, to_, at(v.args[0]).dtype, value(v.args[0]), v.dtype, name);
                return;
            case Kind::product: {
                const std::string from = place(v.index, true, false), with = place(v.matrix, false, false);
                to_.line(type_name(v.dtype), " ", name, " = 0;");
                to_.line("for (int k = 0; k < ", v.depth, "; ++k) ", name, " += ", pointers_[v.index], "[", from,
                         " + k] * ", pointers_[v.matrix], "[", with, " + k * ", v.stride, "];");
                return;
            }
            case Kind::formula: {
                std::vector<std::string> args;
                for (const uint16_t a : v.args) args.push_back(value(a));
                if (!write_formula(to_, v.name, v.operand, args, name))
                    form_.refuse(str("the operator ", v.name, " on ", name_of(v.operand), " is not supported in C"));
                return;
            }
            default:
                form_.refuse("its loop has an instruction that is not supported in C");
        }
    }

    const StepForm& form_;
    const LoopProgram& p_;
    std::vector<int> pass_;
    std::vector<int64_t> sizes_;
    std::vector<size_t> strides_;  // the place in sizes_, by operand
    int64_t inner_ = 1;
    std::vector<std::string> names_, pointers_;
    Lines to_;
};

void write_loop(const StepForm& form) {
    LoopProgram program = form.program.model().loops.at(form.step.loop).program;
    for (const Patch& patch : form.step.patches) apply(patch, patch.value.value, program.code.at(patch.instruction));
    LoopText(form, program).write();
}

constexpr StepKind kLoopsKinds[] = {{"loop", write_loop}};

}  // namespace

std::span<const StepKind> loop_kinds() { return kLoopsKinds; }

}  // namespace lunaria::lite::micro
