#include "core/custom/foreign_op.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

#include "core/batching/batching.h"
#include "core/batching/rules.h"
#include "core/custom/defined_ops.h"
#include "core/operator/infer.h"

namespace lunaria {

namespace {

// Guarded by the lock of defined_ops().
struct ForeignOps {
    Registry registry;  // always empty: its address tells these operators from others
    std::unordered_map<std::string, const ForeignOp*> by_content;
};

ForeignOps& foreign_ops() {
    static auto* instance = new ForeignOps;
    return *instance;
}

// The sizes of named axes, as the operands of a call give them.
class Sizes {
  public:
    explicit Sizes(const Call& call) : call_(call) {}

    void read(size_t i, const ForeignOp::Axes& axes) {
        const Shape shape = call_.shape(i);
        const int named = static_cast<int>(axes.sizes.size()), before = shape.rank() - named;
        if (before < 0 || (before > 0 && !axes.leading))
            throw shape_error(call_.name(),
                              str(param_name(call_, i), " has shape ", shape, ": it must have ",
                                  axes.leading ? "at least " : "", named, named == 1 ? " axis" : " axes"));
        if (axes.leading) {
            Shape leading;
            for (int axis = 0; axis < before; ++axis) leading.push_back(shape[axis]);
            if (has_leading_ && !(leading == leading_))
                throw shape_error(call_.name(), str(param_name(call_, i), " has the leading axes ", leading,
                                                    ", an operand before it ", leading_));
            leading_ = leading;
            has_leading_ = true;
        }
        for (int axis = 0; axis < named; ++axis) expect(i, before + axis, axes.sizes[static_cast<size_t>(axis)], shape);
    }

    Shape shape(const ForeignOp::Axes& axes) const {
        Shape shape = axes.leading ? leading_ : Shape();
        for (const std::string& size : axes.sizes) shape.push_back(number(size).value_or(0));
        return shape;
    }

    static std::optional<int64_t> plain_number(std::string_view text) {
        int64_t n = 0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
        if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
        return n;
    }

  private:
    std::optional<int64_t> number(const std::string& size) const {
        if (const auto n = plain_number(size)) return n;
        const auto found = sizes_.find(size);
        return found == sizes_.end() ? std::nullopt : std::optional(found->second);
    }
    void expect(size_t i, int axis, const std::string& size, const Shape& shape) {
        const int64_t n = shape[axis];
        const auto wanted = number(size);
        if (!wanted)
            sizes_[size] = n;
        else if (*wanted != n && n != kUnknownDim)
            throw shape_error(call_.name(), str(param_name(call_, i), " has shape ", shape, ": the size of axis ", axis,
                                                ", ", size, ", must be ", *wanted));
    }

    const Call& call_;
    std::map<std::string, int64_t> sizes_;
    Shape leading_;
    bool has_leading_ = false;
};

}  // namespace

struct ForeignRules {
    static const ForeignOp& of(const Call& c) { return static_cast<const ForeignOp&>(c.op); }

    static Types infer(const Call& c) {
        const ForeignOp& op = of(c);
        Sizes sizes(c);
        for (size_t i = 0; i < op.inputs_.size(); ++i) sizes.read(i, op.inputs_[i].axes);
        if (!op.primal_) return {{c.dtype, sizes.shape(op.output_)}};
        Types types;
        for (size_t i = 0; i + 2 < op.inputs_.size(); ++i) types.push_back({c.dtype, c.shape(i)});
        return types;
    }
    static Grads grad(const GradRule& g) {
        std::vector<Value> args(g.args.begin(), g.args.end());
        args.push_back(g.out.value());
        args.push_back(g.dout.value());
        const Value made = g.builder.emit(*of(g).derivative_, args);
        const size_t count = g.args.size();
        Grads grads(count);
        for (size_t i = 0; i < count; ++i) {
            if (!is_float(g.type(i).dtype)) continue;
            const Value item = count == 1 ? made : g.builder.item(made, i);
            grads[i] = Expr(g.builder, item).cast(g.type(i).dtype);
        }
        return grads;
    }
    static Value batched(const BatchCall& c, const Types&) {
        const auto& inputs = of(c).inputs_;
        if (!std::ranges::all_of(inputs, [](const ForeignOp::Input& input) { return input.axes.leading; })) return {};
        return batch::last_axes_of(c, 0);
    }
    static bool run(const KernelCall& call) {
        static_cast<const ForeignOp&>(call.op).run(call);
        return true;
    }
};

ForeignOp::ForeignOp(std::string name, std::string doc, std::vector<Input> inputs)
    : Op("foreign()", foreign_ops().registry),
      name_(std::move(name)),
      doc_(std::move(doc)),
      inputs_(std::move(inputs)) {
    text_ = name_ + "(";
    for (const Input& input : inputs_) {
        Param param;
        param.name = input.name;
        param.type = ArgType::same;
        signature.params.push_back(param);
        text_ += str(text_.back() == '(' ? "" : ", ", input.name, ": same");
    }
    text_ += ")";
    signature.name = name_;
    signature.text = text_;
    doc_text = doc_.c_str();
    promotes = true;
    is_method = false;
    raises_when = Raises::always;
    infer_fn = ForeignRules::infer;
    batch_fn = ForeignRules::batched;
    no_grad_reason = "its definition has no gradient";
    refuses_grad = true;
}

const ForeignOp& ForeignOp::define(std::string name, std::string doc, std::string content, std::vector<Input> inputs,
                                   Axes output, Function function, Function gradient) {
    DefinedOps& all = defined_ops();
    std::lock_guard lock(all.mutex);
    ForeignOps& k = foreign_ops();
    if (const auto found = k.by_content.find(content); found != k.by_content.end()) return *found->second;
    const std::string free = all.free_name(name);
    std::vector<Input> seen = inputs;
    std::unique_ptr<ForeignOp> made(new ForeignOp(free, std::move(doc), std::move(inputs)));
    made->output_ = output;
    made->function_ = std::move(function);
    ForeignOp& op = all.add(std::move(made));
    if (gradient) {
        seen.push_back({"out", output});
        seen.push_back({"dout", output});
        std::unique_ptr<ForeignOp> derivative(
            new ForeignOp(all.free_name(free + "_grad"), str("The derivative of ", free, "."), std::move(seen)));
        derivative->function_ = std::move(gradient);
        derivative->primal_ = &op;
        op.derivative_ = &all.add(std::move(derivative));
        op.grad_fn = ForeignRules::grad;
        op.no_grad_reason = nullptr;
        op.refuses_grad = false;
    }
    k.by_content[std::move(content)] = &op;
    return op;
}

const ForeignOp* foreign_op(const Op& op) {
    return op.belongs_to(foreign_ops().registry) ? static_cast<const ForeignOp*>(&op) : nullptr;
}

std::span<const Kernel> ForeignOp::kernels_on(const Device& device) const {
    static constexpr Kernel kRun = ForeignRules::run;
    return device.is_host() ? std::span(&kRun, 1) : device.kernels(*this);
}

}  // namespace lunaria
