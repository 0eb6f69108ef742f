#include "jit/lite/lower.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/ir/text.h"
#include "jit/lite/operators.h"

namespace lunaria::lite {

namespace {

std::vector<Number> numbers_of(std::span<const int64_t> values) { return {values.begin(), values.end()}; }

class Lowering {
  public:
    Lowering(const graph::Plan& plan, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs)
        : plan_(plan), inputs_(inputs), outputs_(outputs), value_of_(plan.roots.size(), kNone) {}

    Converted run() {
        if (!plan_.variables.empty() || !plan_.donated.empty())
            throw state_error("lite.convert", "the program writes into tensors that outlive a call");
        for (size_t i = 0; i < plan_.inputs.size(); ++i) add_input(i);
        for (const graph::Step& step : plan_.steps) add(step);
        for (size_t i = 0; i < plan_.results.size(); ++i) add_output(i);
        share_memory();
        return std::move(made_);
    }

  private:
    Model& model() { return made_.model; }

    [[noreturn]] static void refuse(const graph::Step& step, const std::string& why) {
        const std::string place = ir::place_text(step.span);
        throw state_error("lite.convert", str(step.label, place.empty() ? "" : " (" + place + ")", ": ", why));
    }

    uint32_t add_value(Value value) {
        model().values.push_back(std::move(value));
        return static_cast<uint32_t>(model().values.size() - 1);
    }

    void add_input(size_t i) {
        const graph::Root& root = plan_.roots[plan_.inputs[i]];
        Value value;
        value.name = i < inputs_.size() ? inputs_[i] : str("input", i);
        value.dtype = root.type.tensor.dtype;
        value.home = Value::Home::input;
        value.shape = numbers_of(root.type.tensor.shape.dims());
        value_of_[plan_.inputs[i]] = add_value(std::move(value));
        model().inputs.push_back(value_of_[plan_.inputs[i]]);
    }

    uint32_t constant(const Tensor& given) {
        const Tensor tensor = given.contiguous();
        const auto key = std::pair(tensor.raw(), tensor.nbytes());
        if (const auto found = constants_.find(key); found != constants_.end()) {
            const Value& known = model().values[found->second];
            if (known.dtype == tensor.dtype() && known.shape == numbers_of(tensor.shape().dims())) return found->second;
        }
        Value value;
        value.home = Value::Home::constant;
        value.dtype = tensor.dtype();
        value.shape = numbers_of(tensor.shape().dims());
        value.data = static_cast<const std::byte*>(tensor.raw());
        value.bytes = static_cast<uint64_t>(tensor.nbytes());
        made_.constants.push_back(tensor);
        return constants_[key] = add_value(std::move(value));
    }

    uint32_t value_of(size_t r, const graph::Step* step) {
        uint32_t& known = value_of_[r];
        if (known != kNone) return known;
        const graph::Root& root = plan_.roots[r];
        if (root.home == graph::Root::Home::constant) return known = constant(root.constant);
        if (root.type.kind != ir::NodeType::Kind::tensor || !root.type.tensor.shape.known()) {
            const std::string why = "the size of its result depends on the elements of its operands";
            if (step) refuse(*step, why);
            throw state_error("lite.convert", why);
        }
        Value value;
        value.dtype = root.type.tensor.dtype;
        value.shape = numbers_of(root.type.tensor.shape.dims());
        return known = add_value(std::move(value));
    }

    View view_of(const graph::Handle& handle, const graph::Step* step) {
        View view{value_of(handle.root, step), true, {}, {}, 0};
        if (handle.whole) return view;
        view.whole = false;
        view.shape = numbers_of(handle.shape.dims());
        view.strides = numbers_of(handle.strides.dims());
        view.offset = handle.offset;
        if (handle.offset == 0 && view.shape == model().values[view.value].shape && is_dense(view))
            view = {view.value, true, {}, {}, 0};
        return view;
    }
    void add(const graph::Step& from) {
        Step step;
        step.label = from.label;
        step.flops = from.flops;
        step.nodes = static_cast<uint32_t>(from.nodes);
        step.source = ir::place_text(from.span);
        if (from.kind == graph::Step::Kind::loop)
            add_loop(from, step);
        else if (from.kind == graph::Step::Kind::copy)
            add_copy(from, step);
        else
            add_operator(from, step);
        model().steps.push_back(std::move(step));
    }

    void add_copy(const graph::Step& from, Step& step) {
        step.kind = "copy";
        step.operands.push_back(view_of(plan_.handles[from.uses[0].handle], &from));
        step.results.push_back({value_of(from.results[0], &from)});
    }

    void add_loop(const graph::Step& from, Step& step) {
        graph::LoopSource source = plan_.sources[from.source];
        // Advice for generated code, which depends on sizes.
        source.program.streams = false;
        source.program.tile = 1;
        step.kind = "loop";
        const auto [found, is_new] =
            loops_.try_emplace(source.program.text(), static_cast<uint32_t>(model().loops.size()));
        if (is_new) model().loops.push_back({source.program, {}});
        step.loop = found->second;
        step.sizes = numbers_of(source.sizes);
        for (size_t k = 0; k < from.loop_roots.size(); ++k) {
            View view{value_of(from.loop_roots[k], &from), true, {}, {}, 0};
            const auto size = static_cast<int64_t>(size_of(model().values[view.value].dtype));
            view.offset = from.loop_offsets[k] / size;
            view.whole = from.loop_offsets[k] == 0;
            (source.program.operands[k].written ? step.results : step.operands).push_back(std::move(view));
        }
    }

    // The operators of a kernel with an epilogue: "convolution + bias + relu".
    static std::string label_of(const graph::Step& from) {
        std::string label(from.op->name());
        if (from.op != &light().product && from.op != &light().convolution) return label;
        auto has = [&](size_t arg) {
            return std::ranges::any_of(from.uses, [&](const graph::Use& use) { return use.arg == arg; });
        };
        const std::string& activation = from.args[kActivation].string();
        if (has(kBias)) label += " + bias";
        if (has(kResidual) && !from.args[kResidualLast].boolean()) label += " + residual";
        if (activation != "none") label += " + " + activation;
        if (has(kResidual) && from.args[kResidualLast].boolean()) label += " + residual";
        return label;
    }

    void add_operator(const graph::Step& from, Step& step) {
        step.kind = from.op->name();
        step.label = label_of(from);
        for (size_t a = 0; a < from.args.size(); ++a) add_argument(from, a, step);
        if (from.op != &light().batched_product)
            for (View& view : step.operands) make_dense(view);
        for (const size_t r : from.results)
            step.results.push_back(r == SIZE_MAX ? View{} : View{value_of(r, &from), true, {}, {}, 0});
    }

    // Kernels but that of batched products need dense operands.
    void make_dense(View& view) {
        if (view.value == kNone || view.whole || is_dense(view)) return;
        Value copy;
        copy.dtype = model().values[view.value].dtype;
        copy.shape = view.shape;
        Step step;
        step.kind = step.label = "copy";
        step.nodes = 0;
        step.operands.push_back(std::move(view));
        view = {add_value(std::move(copy)), true, {}, {}, 0};
        step.results.push_back(view);
        model().steps.push_back(std::move(step));
    }
    static bool is_dense(const View& view) {
        int64_t stride = 1;
        for (size_t i = view.shape.size(); i-- > 0;) {
            if (view.shape[i].value != 1 && view.strides[i].value != stride) return false;
            stride *= view.shape[i].value;
        }
        return true;
    }

    void add_argument(const graph::Step& from, size_t a, Step& step) {
        const Param& param = from.op->signature.params[a];
        const lunaria::Value& arg = from.args[a];
        auto use_of = [&](size_t item) -> const graph::Use* {
            for (const graph::Use& use : from.uses)
                if (use.arg == a && use.item == item) return &use;
            return nullptr;
        };
        const graph::Use* const single = use_of(SIZE_MAX);
        if (param.type == ArgType::tensors || (arg.is_list() && use_of(0))) {
            step.attributes.push_back(
                {str(param.name, "#"), Attribute::Kind::integers, {static_cast<int64_t>(arg.items().size())}});
            for (size_t i = 0; i < arg.items().size(); ++i) {
                const graph::Use* const use = use_of(i);
                if (!use) refuse(from, str("argument ", param.name, " holds more than tensors"));
                step.operands.push_back(view_of(plan_.handles[use->handle], &from));
            }
        } else if (single) {
            step.operands.push_back(view_of(plan_.handles[single->handle], &from));
        } else if (is_tensor_type(param.type)) {
            // A number among tensors has their dtype.
            if (arg.is_nil())
                step.operands.emplace_back();
            else if (arg.is_number() || arg.kind() == lunaria::Value::Kind::boolean)
                step.operands.push_back({constant(
                    Tensor::scalar(from.dtype, arg.is_number() ? arg.number() : static_cast<double>(arg.boolean())))});
            else
                refuse(from, str("argument ", param.name, " is no tensor"));
        } else if (param.name != kSize || from.op->belongs_to(registry())) {
            add_attribute(from, std::string(param.name), arg, step);
        }
    }
    static constexpr std::string_view kSize = "size";  // of light operators: that of the result

    static void add_attribute(const graph::Step& from, std::string name, const lunaria::Value& arg, Step& step) {
        using Kind = lunaria::Value::Kind;
        Attribute a;
        a.name = std::move(name);
        auto add = [&](const lunaria::Value& v) {
            if (v.kind() == Kind::number) {
                a.numbers.push_back(v.number());
                a.kind = Attribute::Kind::numbers;
            } else if (v.kind() == Kind::integer) {
                a.integers.emplace_back(v.integer());
                a.numbers.push_back(v.number());
            } else if (v.kind() == Kind::boolean) {
                a.integers.emplace_back(v.boolean());
                a.numbers.push_back(v.boolean());
            } else if (v.kind() == Kind::dtype) {
                a.integers.emplace_back(static_cast<int64_t>(v.dtype()));
            } else if (v.kind() == Kind::string) {
                a.kind = Attribute::Kind::text;
                a.text = v.string();
            } else {
                refuse(from, str("attribute ", a.name, " is none that a file can hold"));
            }
        };
        if (arg.is_nil()) return;
        if (!arg.is_list())
            add(arg);
        else
            for (const lunaria::Value& item : arg.items()) add(item);
        if (a.kind == Attribute::Kind::integers) a.numbers.clear();
        if (a.kind == Attribute::Kind::numbers) a.integers.clear();
        step.attributes.push_back(std::move(a));
    }

    // An output is a value of its own: the result of a step, if no other output is, or a copy.
    void add_output(size_t i) {
        const graph::Handle& handle = plan_.handles[plan_.results[i].handle];
        View view = view_of(handle, nullptr);
        Value& value = model().values[view.value];
        const std::string name = i < outputs_.size() ? outputs_[i] : str("output", i);
        if (view.whole && value.home == Value::Home::arena) {
            value.home = Value::Home::output;
            value.name = name;
            model().outputs.push_back(view.value);
            return;
        }
        Value copy;
        copy.name = name;
        copy.home = Value::Home::output;
        copy.dtype = value.dtype;
        copy.shape = view.whole ? value.shape : view.shape;
        Step step;
        step.kind = step.label = "copy";
        step.nodes = 0;
        step.operands.push_back(std::move(view));
        step.results.push_back({add_value(std::move(copy))});
        model().outputs.push_back(step.results[0].value);
        model().steps.push_back(std::move(step));
    }

    // Temporaries that the plan has put into the memory of another one while that was still read.
    void share_memory() {
        for (size_t r = 0; r < plan_.roots.size(); ++r) {
            const graph::Root& root = plan_.roots[r];
            if (root.home != graph::Root::Home::arena || value_of_[r] == kNone) continue;
            Value& value = model().values[value_of_[r]];
            if (value.home != Value::Home::arena) continue;
            for (size_t before = 0; before < plan_.roots.size() && value.shares == kNone; ++before) {
                const graph::Root& other = plan_.roots[before];
                if (other.home == graph::Root::Home::arena && before != r && other.offset == root.offset &&
                    other.last == root.first && other.first < root.first && value_of_[before] != kNone &&
                    other.bytes == root.bytes && model().values[value_of_[before]].home == Value::Home::arena)
                    value.shares = value_of_[before];
            }
        }
    }

    const graph::Plan& plan_;
    const std::vector<std::string>&inputs_, &outputs_;
    Converted made_;
    std::vector<uint32_t> value_of_;  // by root
    std::map<std::pair<const void*, int64_t>, uint32_t> constants_;
    std::map<std::string, uint32_t> loops_;
};

}  // namespace

Converted lower(const graph::Plan& plan, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs) {
    return Lowering(plan, inputs, outputs).run();
}

}  // namespace lunaria::lite
