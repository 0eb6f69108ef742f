#include "jit/graph/custom.h"

#include <algorithm>
#include <list>

#include "core/custom/custom_op.h"
#include "core/operator/expansion.h"
#include "jit/graph/executable.h"

namespace lunaria::graph {

namespace {

constexpr size_t kMost = 64;  // kinds of operands for which an operator's compiled form is kept

struct Compiled final : ir::Attachment {
    struct Form {
        std::vector<TensorType> types;
        // Shared by this list and by its runs, which may end after the list has dropped it.
        std::shared_ptr<const Executable> executable;
    };
    std::list<Form> forms;  // the last used one first

    bool fits(const Form& form, std::span<const Value> args) const {
        for (size_t i = 0; i < args.size(); ++i) {
            const Tensor& t = args[i].tensor();
            if (t.dtype() != form.types[i].dtype || !(t.shape() == form.types[i].shape)) return false;
        }
        return true;
    }
};

std::shared_ptr<const Executable> find(const KernelCall& call) {
    const CustomOp& op = *custom_op(call.op);
    std::lock_guard lock(op.mutex);
    if (!op.compiled) op.compiled = std::make_unique<Compiled>();
    auto& compiled = static_cast<Compiled&>(*op.compiled);
    auto found = std::ranges::find_if(compiled.forms, [&](const auto& form) { return compiled.fits(form, call.args); });
    if (found != compiled.forms.end()) {
        compiled.forms.splice(compiled.forms.begin(), compiled.forms, found);
        return found->executable;
    }
    ir::Graph graph{std::string(op.name())};
    ir::GraphBuilder builder(graph);
    Compiled::Form form;
    std::vector<Value> args;
    for (size_t i = 0; i < call.args.size(); ++i) {
        const Tensor& t = call.args[i].tensor();
        form.types.push_back({t.dtype(), t.shape()});
        args.emplace_back(
            graph.add_parameter(std::string(op.signature.params[i].name), ir::NodeType::of(form.types[i])));
    }
    const Value result = expand(ExpandCall(Call(op, args, call.dtype), builder));
    graph.result = Value::list({result});
    form.executable = compile(graph);
    compiled.forms.push_front(std::move(form));
    if (compiled.forms.size() > kMost) compiled.forms.pop_back();
    return compiled.forms.front().executable;
}

}  // namespace

bool run_custom(const KernelCall& call) {
    if (call.out[0].size() == 0) return true;
    std::vector<Tensor> inputs;
    for (const Value& arg : call.args) inputs.push_back(arg.tensor());
    find(call)->run(inputs, call.out);
    return true;
}

}  // namespace lunaria::graph
