#include "core/lite/format/check.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/lite/format/sizes.h"
#include "core/loops/loop_check.h"
#include "core/tensor/shape.h"

namespace lunaria::lite {

namespace {

class FormCheck {
  public:
    explicit FormCheck(const Model& model) : m_(model) {}

    ModelFault run() {
        const std::vector<int64_t> sizes = lite::sizes_of(m_);
        for (const Dimension& d : m_.dimensions)
            demand(d.size >= 0 && d.least >= 0 && d.most >= 0 && d.step >= 1, "a dimension has a wrong size");
        for (size_t f = 0; f < m_.formulas.size(); ++f)
            demand(evaluate(m_, {0, static_cast<uint32_t>(f)}, sizes).has_value(), "a formula has no result");
        for (const Quantization& q : m_.quantizations) check(q);
        for (uint32_t v = 0; v < m_.values.size() && fault_.text.empty(); ++v) {
            fault_.value = v;
            check(m_.values[v]);
        }
        if (!fault_.text.empty()) return fault_;
        fault_.value = kNone;
        made_.resize(m_.values.size());
        for (size_t v = 0; v < m_.values.size(); ++v) {
            const Value::Home home = m_.values[v].home;
            made_[v] = home != Value::Home::arena && home != Value::Home::output;
        }
        check_ends();
        for (uint32_t s = 0; s < m_.steps.size() && fault_.text.empty(); ++s) {
            fault_.step = s;
            check(m_.steps[s]);
        }
        if (!fault_.text.empty()) return fault_;
        fault_.step = kNone;
        for (const uint32_t v : m_.outputs) demand(made_[v], "no step makes an output");
        return fault_;
    }

  private:
    void demand(bool holds, std::string_view otherwise) {
        if (!holds && fault_.text.empty()) fault_.text = otherwise;
    }
    bool is_value(uint32_t v) const { return v < m_.values.size(); }

    // With the sizes that the model was converted for, a formula gives the number beside it.
    void check(const Number& n) {
        if (n.formula == kNone) return;
        demand(n.formula < m_.formulas.size(), "there is no such formula");
        demand(evaluate(m_, n, sizes_of(m_)) == n.value, "a formula gives another number");
    }
    void check(std::span<const Number> numbers) {
        for (const Number& n : numbers) check(n);
    }

    void check(const Quantization& q) {
        demand(q.bits >= 1 && q.bits <= 16 && q.axis >= -1 && q.axis < kMaxRank, "a quantization is malformed");
        auto is_constant = [&](uint32_t v, DType dtype) {
            return is_value(v) && m_.values[v].home == Value::Home::constant && m_.values[v].dtype == dtype &&
                   m_.values[v].form == Form::plain && m_.values[v].shape.size() == 1 &&
                   m_.values[v].shape[0].formula == kNone;
        };
        demand(is_constant(q.scales, DType::f32) && (q.zeros == kNone || is_constant(q.zeros, DType::i32)),
               "a quantization has no scales");
    }

    void check(const Value& v) {
        demand(v.shape.size() <= kMaxRank, "it has too many axes");
        check(v.shape);
        if (!fault_.text.empty()) return;
        demand(v.quantization == kNone || v.quantization < m_.quantizations.size(), "there is no such quantization");
        demand(v.shares == kNone || is_value(v.shares), "there is no such value");
        const bool is_stored = v.is_stored();
        demand(v.form == Form::plain || v.home == Value::Home::constant, "only constants are stored in blocks");
        demand(v.form == Form::plain || v.dtype == DType::f32 || v.dtype == DType::f16,
               "blocks hold no elements of this dtype");
        demand(is_stored || v.bytes == 0, "it has elements, but is no constant");
        if (!fault_.text.empty() || !is_stored) return;
        std::vector<int64_t> shape;
        for (const Number& n : v.shape) {
            demand(n.formula == kNone, "the size of a constant is open");
            shape.push_back(n.value);
        }
        const auto bytes = bytes_of(v.dtype, v.form, shape);
        demand(bytes.has_value(), "it is too large");
        if (bytes)
            demand(v.bytes == *bytes || (v.home == Value::Home::variable && v.bytes == 0),
                   str("it has ", v.bytes, " bytes instead of ", *bytes));
        if (v.quantization == kNone || !fault_.text.empty()) return;
        const Quantization& q = m_.quantizations[v.quantization];
        demand(q.axis < static_cast<int32_t>(v.shape.size()), "its scales are of an axis that it does not have");
        if (!fault_.text.empty()) return;
        const int64_t scales = q.axis < 0 ? 1 : v.shape[static_cast<size_t>(q.axis)].value;
        demand(m_.values[q.scales].shape[0].value == scales, "it has too many or too few scales");
        demand(q.zeros == kNone || m_.values[q.zeros].shape[0].value == scales, "it has too many or too few zeros");
    }

    void check_ends() {
        std::vector<bool> seen(m_.values.size());
        for (const uint32_t v : m_.inputs) {
            demand(is_value(v) && m_.values[v].home == Value::Home::input && !seen[v], "an input is none");
            if (!fault_.text.empty()) return;
            seen[v] = true;
        }
        for (const uint32_t v : m_.outputs) {
            demand(is_value(v) && m_.values[v].home == Value::Home::output && !seen[v], "an output is none");
            if (!fault_.text.empty()) return;
            seen[v] = true;
        }
        for (size_t v = 0; v < m_.values.size(); ++v)
            demand(m_.values[v].home != Value::Home::input || seen[v], "a value is an input that nothing gives");
    }

    void check(const View& view, bool may_be_absent) {
        if (view.value == kNone) return demand(may_be_absent, "a view has no value");
        demand(is_value(view.value), "there is no such value");
        demand(!view.whole || view.offset == Number(0), "a whole value has an offset");
        demand(view.shape.size() == view.strides.size() && view.shape.size() <= kMaxRank, "a view has too many axes");
        check(view.shape);
        check(view.strides);
        check(view.offset);
        if (fault_.text.empty() && !view.whole)
            demand(m_.values[view.value].form == Form::plain, "blocks have no views");
    }

    void check(const Attribute& a) {
        demand(!a.name.empty(), "an attribute has no name");
        check(a.integers);
    }

    void check(const Step& step) {
        for (const View& v : step.operands) check(v, true);
        for (const View& v : step.results) check(v, true);
        for (const Attribute& a : step.attributes) check(a);
        if (!fault_.text.empty()) return;
        auto read = [&](const View& v) {
            demand(v.value == kNone || made_[v.value], "a value is used before it is made");
        };
        for (const View& v : step.operands) read(v);
        for (const View& v : step.results) {
            if (v.value == kNone) continue;
            const Value& value = m_.values[v.value];
            demand(value.home != Value::Home::input && value.home != Value::Home::constant,
                   "an input or a constant is written");
            made_[v.value] = true;
            if (value.shares == kNone) continue;
            demand(m_.values[value.shares].home == Value::Home::arena && value.home == Value::Home::arena &&
                       made_[value.shares],
                   "memory is shared that is not of the arena");
        }
        const bool is_loop = step.kind == "loop";
        demand(is_loop == (step.loop != kNone), "a step without a loop has a program, or one with a loop has none");
        demand(!step.kind.empty(), "a step is of no kind");
        check(step.sizes);
        if (is_loop && fault_.text.empty()) check_loop(step);
    }

    void check_loop(const Step& step) {
        demand(step.loop < m_.loops.size(), "there is no such loop");
        if (!fault_.text.empty()) return;
        const graph::LoopProgram& program = m_.loops[step.loop].program;
        size_t written = 0;
        for (const graph::LoopOperand& o : program.operands) written += o.written;
        demand(step.results.size() == written && step.operands.size() == program.operands.size() - written,
               "a loop has too many or too few operands");
        for (const View& v : step.operands) demand(v.value != kNone, "a loop lacks an operand");
        for (const View& v : step.results) demand(v.value != kNone, "a loop lacks a result");
        for (const Patch& p : step.patches) {
            demand(p.instruction < program.code.size(), "there is no such instruction");
            check(p.value);
        }
    }

    const Model& m_;
    ModelFault fault_;
    std::vector<bool> made_;
};

class SizeCheck {
  public:
    SizeCheck(const Model& model, std::span<const int64_t> dimensions) : m_(model), dimensions_(dimensions) {}

    ModelFault run() {
        if (dimensions_.size() != m_.dimensions.size()) return {"the number of sizes is wrong"};
        for (uint32_t v = 0; v < m_.values.size() && fault_.text.empty(); ++v) {
            fault_.value = v;
            std::vector<int64_t> shape;
            const bool is_known = evaluate(m_, m_.values[v].shape, dimensions_, shape);
            const auto bytes = is_known ? bytes_of(m_.values[v].dtype, m_.values[v].form, shape) : std::nullopt;
            demand(bytes.has_value(), "its shape is none, or too large");
            bytes_.push_back(bytes.value_or(0));
        }
        if (!fault_.text.empty()) return fault_;
        fault_.value = kNone;
        for (uint32_t s = 0; s < m_.steps.size() && fault_.text.empty(); ++s) {
            fault_.step = s;
            const Step& step = m_.steps[s];
            const bool is_loop = step.loop != kNone;
            for (const View& v : step.operands) check(v, is_loop);
            for (const View& v : step.results) check(v, is_loop);
            for (const Attribute& a : step.attributes)
                for (const Number& n : a.integers) demand(number(n).has_value(), "an attribute has no value");
            if (is_loop && fault_.text.empty()) check_loop(step);
        }
        if (fault_.text.empty()) fault_.step = kNone;
        return fault_;
    }

  private:
    void demand(bool holds, std::string_view otherwise) {
        if (!holds && fault_.text.empty()) fault_.text = otherwise;
    }
    std::optional<int64_t> number(const Number& n) const { return evaluate(m_, n, dimensions_); }

    void check(const View& view, bool is_of_loop) {
        if (view.value == kNone || view.whole || is_of_loop || !fault_.text.empty()) return;
        std::vector<int64_t> shape, strides;
        const auto offset = number(view.offset);
        const bool are_known =
            evaluate(m_, view.shape, dimensions_, shape) && evaluate(m_, view.strides, dimensions_, strides) && offset;
        demand(are_known, "a view has no size");
        if (!are_known) return;
        __int128 least = *offset, most = *offset;
        bool is_empty = false;
        for (size_t i = 0; i < shape.size(); ++i) {
            demand(shape[i] >= 0 && shape[i] <= kMostElements, "a view has no size");
            is_empty |= shape[i] == 0;
            const __int128 far = static_cast<__int128>(strides[i]) * std::max<int64_t>(shape[i] - 1, 0);
            (far < 0 ? least : most) += far;
        }
        const Value& v = m_.values[view.value];
        const auto size = static_cast<__int128>(size_of(v.dtype));
        demand(is_empty || (least >= 0 && (most + 1) * size <= static_cast<__int128>(bytes_[view.value])),
               "a view ends behind its value");
    }

    void check_loop(const Step& step) {
        graph::LoopProgram program = m_.loops[step.loop].program;
        graph::LoopTask task{&program, {}, 1, 1, {}};
        demand(evaluate(m_, step.sizes, dimensions_, task.sizes), "a loop has no sizes");
        for (const Patch& p : step.patches) {
            const auto value = number(p.value);
            demand(value.has_value(), "a loop has no numbers");
            if (!value) return;
            apply(p, *value, program.code[p.instruction]);
        }
        const auto outer = static_cast<size_t>(std::max(program.outer_rank, 0));
        demand(program.outer_rank >= 0 && program.outer_rank <= kMaxRank && task.sizes.size() > outer,
               "a loop has no sizes");
        if (!fault_.text.empty()) return;
        for (size_t i = 0; i < outer; ++i)
            demand(task.sizes[i] >= 0 && !__builtin_mul_overflow(task.rows, task.sizes[i], &task.rows),
                   "a loop has too many rows");
        task.inner = task.sizes[outer];
        std::vector<size_t> bytes;
        size_t read = 0, written = 0;
        for (size_t k = 0; k < program.operands.size(); ++k) {
            const View& view = program.operands[k].written ? step.results[written++] : step.operands[read++];
            const auto offset = number(view.offset);
            const Value& value = m_.values[view.value];
            demand(offset && *offset >= 0 && *offset <= kMostElements, "an operand of a loop has no place");
            demand(value.form == Form::plain && value.dtype == graph::dtype_in_memory(program, k),
                   "an operand of a loop has another dtype");
            if (!fault_.text.empty()) return;
            task.offsets.push_back(static_cast<size_t>(*offset) * size_of(value.dtype));
            bytes.push_back(bytes_[view.value]);
        }
        if (const std::string fault = graph::loop_fault(task, bytes); !fault.empty()) demand(false, fault);
    }

    const Model& m_;
    const std::span<const int64_t> dimensions_;
    std::vector<uint64_t> bytes_;
    ModelFault fault_;
};

}  // namespace

void apply(const Patch& patch, int64_t value, graph::LoopInstruction& instruction) {
    switch (patch.field) {
        case Patch::Field::number:
            instruction.number = static_cast<double>(value);
            instruction.integer = value;
            return;
        case Patch::Field::inverse:
            instruction.number = 1.0 / static_cast<double>(value);
            return;
        case Patch::Field::integer:
            instruction.integer = value;
            return;
        case Patch::Field::depth:
            instruction.depth = value;
            return;
        case Patch::Field::stride:
            instruction.stride = value;
            return;
    }
}

ModelFault check_form(const Model& model) { return FormCheck(model).run(); }

ModelFault check_sizes(const Model& model, std::span<const int64_t> dimensions) {
    return SizeCheck(model, dimensions).run();
}

}  // namespace lunaria::lite
