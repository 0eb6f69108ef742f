// Steps that are formulas of elementwise operators: loops that are written here. The converter makes loops of most of
// them itself.
#include <limits>
#include <optional>

#include "core/lite/runtime/elements.h"
#include "core/lite/runtime/loop_code.h"
#include "core/loops/loop_check.h"

namespace lunaria::lite {

namespace {

using graph::LoopInstruction;
using graph::LoopOperand;

// Numbers that may be missing, with what stands for them.
struct Missing {
    std::string_view formula, name;
    double number = 0;
};
constexpr double kMost = std::numeric_limits<float>::max(), kInfinity = std::numeric_limits<double>::infinity();
constexpr Missing kMissing[] = {{"nan_to_num", "nan", 0},
                                {"nan_to_num", "posinf", kMost},
                                {"nan_to_num", "neginf", -kMost},
                                {"clamp", "min", -kInfinity},
                                {"clamp", "max", kInfinity}};

class ElementLoop {
  public:
    explicit ElementLoop(const StepForm& form) : form_(form), y_(form.out[0]) {}

    std::unique_ptr<LoopCode> make(std::string& fault) {
        const uint32_t masks = graph::formula_form(form_.step.kind).masks;
        const DType computed = dtype_of(masks);
        std::vector<uint16_t> args;
        for (size_t i = 0; i < form_.in.size(); ++i) {
            if (!form_.in[i].is_there()) continue;
            if (!add_operand(form_.in[i])) return refuse(fault);
            args.push_back(
                converted(load(form_.in[i].dtype), form_.in[i].dtype, masks >> i & 1 ? DType::boolean : computed));
        }
        // Numbers stand behind the tensors.
        const size_t wanted = graph::formula_form(form_.step.kind).operands;
        bool has_names = false;
        for (const Missing& m : kMissing) {
            if (m.formula != form_.step.kind || form_.in.size() != 1) continue;
            has_names = true;
            args.push_back(constant(form_.number(m.name, m.number), form_.integer(m.name), computed));
        }
        for (const Attribute& a : form_.step.attributes)
            if (!has_names && args.size() < wanted && a.kind != Attribute::Kind::text)
                args.push_back(constant(form_.number(a.name), form_.integer(a.name), computed));
        if (args.size() != wanted) return refuse(fault);
        LoopInstruction formula;
        formula.kind = LoopInstruction::Kind::formula;
        formula.name = form_.step.kind;
        formula.operand = computed;
        const DType given = graph::gives_bools(formula.name) ? DType::boolean : computed;
        formula.dtype = given;
        formula.args = args;
        formula.row = std::ranges::all_of(args, [&](uint16_t a) { return program_.code[a].row; });
        const uint16_t result = converted(put(formula), given, y_.dtype);
        LoopOperand out;
        out.dtype = y_.dtype;
        out.written = true;
        program_.operands.push_back(out);
        strides_.push_back(std::vector<int64_t>(y_.strides.begin(), y_.strides.end() - (y_.rank() > 0 ? 1 : 0)));
        LoopInstruction store;
        store.kind = LoopInstruction::Kind::store;
        store.dtype = y_.dtype;
        store.index = static_cast<uint16_t>(program_.operands.size() - 1);
        store.args = {result};
        put(store);
        return make_loop(program_, sizes(), fault);
    }

  private:
    static std::unique_ptr<LoopCode> refuse(std::string& fault) {
        fault = "its operands do not fit";
        return nullptr;
    }
    uint16_t put(LoopInstruction i) {
        program_.code.push_back(std::move(i));
        return static_cast<uint16_t>(program_.code.size() - 1);
    }
    // By numpy's rules: axes of size 1, and those in front that an operand lacks, stand still.
    bool add_operand(const Operand& x) {
        if (!x.is_there() || x.form != Form::plain || x.rank() > y_.rank() || !loader_of(x.dtype)) return false;
        const size_t missing = y_.shape.size() - x.shape.size();
        std::vector<int64_t> steps(y_.shape.size(), 0);
        for (size_t i = 0; i < x.shape.size(); ++i) {
            if (x.shape[i] != 1 && x.shape[i] != y_.shape[missing + i]) return false;
            if (x.shape[i] != 1) steps[missing + i] = x.strides[i];
        }
        LoopOperand operand;
        operand.dtype = x.dtype;
        const int64_t last = steps.empty() ? 0 : steps.back();
        operand.step = last == 0   ? LoopOperand::Step::none
                       : last == 1 ? LoopOperand::Step::dense
                                   : LoopOperand::Step::wide;
        // The step along the row stands behind those of the outer axes.
        if (!steps.empty() && operand.step != LoopOperand::Step::wide) steps.pop_back();
        program_.operands.push_back(operand);
        strides_.push_back(std::move(steps));
        return true;
    }
    // The dtype of the computation: that of the operands together, or one for which there is the formula.
    DType dtype_of(uint32_t masks) const {
        std::optional<DType> joint;
        for (size_t i = 0; i < form_.in.size(); ++i)
            if (form_.in[i].is_there() && !(masks >> i & 1))
                joint = joint ? promote(*joint, form_.in[i].dtype) : form_.in[i].dtype;
        const DType operand = joint.value_or(DType::f32), computed = is_half(operand) ? DType::f32 : operand;
        for (const DType t : {computed, DType::boolean, DType::f32})
            if (find_formula(form_.step.kind, t)) return t;
        return computed;
    }
    // Of the operand that was added last.
    uint16_t load(DType t) {
        LoopInstruction load;
        load.dtype = t;
        load.kind = LoopInstruction::Kind::load;
        load.index = static_cast<uint16_t>(program_.operands.size() - 1);
        return put(load);
    }
    uint16_t converted(uint16_t value, DType from, DType to) {
        if (from == to) return value;
        LoopInstruction cast;
        cast.kind = LoopInstruction::Kind::cast;
        cast.operand = from;
        cast.dtype = to;
        cast.args = {value};
        cast.row = program_.code[value].row;
        return put(cast);
    }
    uint16_t constant(double number, int64_t integer, DType t) {
        LoopInstruction c;
        c.dtype = t;
        c.row = true;
        c.number = number;
        c.integer = integer;
        return put(c);
    }
    std::vector<int64_t> sizes() {
        std::vector<int64_t> list(y_.shape.begin(), y_.shape.end());
        if (list.empty()) list.push_back(1);
        program_.outer_rank = static_cast<int>(list.size()) - 1;
        for (const std::vector<int64_t>& s : strides_) list.insert(list.end(), s.begin(), s.end());
        return list;
    }

    const StepForm& form_;
    const Operand& y_;
    graph::LoopProgram program_;
    std::vector<std::vector<int64_t>> strides_;
};

}  // namespace

std::unique_ptr<Work> prepare_elements(const StepForm& form, std::string& fault) {
    if (!fits(form.out.size() == 1 && form.out[0].is_dense() && storer_of(form.out[0].dtype), fault)) return nullptr;
    std::shared_ptr<LoopCode> code = ElementLoop(form).make(fault);  // owned by the work alone, which may be copied
    if (!code) return nullptr;
    const int parts = parts_of(*code, form.workers);
    const auto room = static_cast<int64_t>((code->scratch + 63) / 64 * 64);
    std::vector<size_t> read;
    for (size_t i = 0; i < form.in.size(); ++i)
        if (form.in[i].is_there()) read.push_back(i);
    auto pointers = std::make_shared<std::vector<void*>>(read.size() + 1);  // likewise
    return work(
        [=](const Call& call) {
            for (size_t i = 0; i < read.size(); ++i) (*pointers)[i] = call.in[read[i]];
            pointers->back() = call.out[0];
            share(call.workers, parts, 1, [&](int64_t begin, int64_t end, int worker) {
                for (int64_t part = begin; part < end; ++part)
                    run_loop(*code, pointers->data(), part_of(*code, parts, static_cast<int>(part)),
                             call.scratch + worker * room);
            });
        },
        room * form.workers);
}

}  // namespace lunaria::lite
