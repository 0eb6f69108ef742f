// Operators: steps of optimizers. One call updates a whole list of parameters and their moments in place, without
// temporaries. The caller computes bias corrections and schedules, and passes plain numbers. The operators have no
// results.
#include "core/operator/infer.h"
#include "core/operator/op.h"
#include "core/ops/families.h"

namespace lunaria {

namespace {

std::string name_of_variable(const Call& c, size_t i) {
    const Value& v = c.args[0].items()[i];
    const ParameterInfo* info = v.is_tensor() ? v.tensor().parameter() : nullptr;
    return info ? str("parameter ", info->name) : str("params[", i + 1, "]");
}

// Each of the lists has a floating tensor for every parameter, of its shape; the list at `optional` may be nil. `where`
// and `decayed` are the last two parameters.
Types expect_lists(const Call& c, std::initializer_list<size_t> others, size_t optional) {
    const std::string& where = c.args.back().string();
    const Value& params = c.args[0];
    if (!params.is_list())
        throw argument_error(where, str("params must be a table of tensors, got ", to_string(params)));
    const size_t count = params.items().size();
    // Names are made only for an error: a step of a small network takes microseconds.
    auto expect_float_tensor = [&](const Value& v, std::string_view list, size_t i) {
        if (v.is_tensor() && is_float(v.tensor().dtype())) return;
        const std::string what = str(list, "[", i + 1, "]");
        if (!v.is_tensor() && !v.is_node())
            throw argument_error(where, str(what, " must be a tensor, got ", to_string(v)));
        const DType dtype = type_of(v).dtype;
        if (!is_float(dtype)) throw dtype_error(where, str(what, " must be a floating tensor, got ", name_of(dtype)));
    };
    for (size_t i = 0; i < count; ++i) expect_float_tensor(params.items()[i], "params", i);
    for (size_t which : others) {
        const Value& list = c.args[which];
        const std::string_view name = param_name(c, which);
        if (list.is_nil() && which == optional) continue;
        if (!list.is_list())
            throw argument_error(where, str(name, " must be a table of tensors, got ", to_string(list)));
        if (list.items().size() != count)
            throw argument_error(where,
                                 str(name, " has ", list.items().size(), " tensors, and there are ", count, " params"));
        for (size_t i = 0; i < count; ++i) {
            const Value &item = list.items()[i], &param = params.items()[i];
            expect_float_tensor(item, name, i);
            if (item.is_tensor() && param.is_tensor() && item.tensor().shape() == param.tensor().shape()) continue;
            const Shape got = type_of(item).shape, wanted = type_of(param).shape;
            if (!(got == wanted) && got.known() && wanted.known())
                throw shape_error(where, str(which == 1 ? "gradient " : str(name, " "), i + 1, " has shape ", got, ", ",
                                             name_of_variable(c, i), " has ", wanted));
        }
    }
    const Value& decayed = c.args[c.args.size() - 2];
    if (!decayed.is_nil() && (!decayed.is_list() || decayed.items().size() != count))
        throw argument_error(where, str("decayed must be a table of ", count, " booleans, got ", to_string(decayed)));
    return {};
}

Op& step(Op& op) {
    return op.effect(Effect::state)
        .itemwise()
        .strided()
        .half_native()
        .method(false)
        .no_grad("it changes parameters; the gradient of their new values is the front end's matter");
}

}  // namespace

void add_optimizer_ops(Registry& ops) {
    step(ops.add("apply_momentum(params: any, grads: any, accumulators: any, lr: number, momentum: number = 0.0, "
                 "dampening: number = 0.0, weight_decay: number = 0.0, nesterov: bool = false, decayed: any = nil, "
                 "where: string = \"apply_momentum\")"))
        .doc(
            "One step of gradient descent with momentum: g = grad + weight_decay p, a = momentum a + (1 - dampening) "
            "g, "
            "p -= lr a (nesterov: p -= lr (g + momentum a)). Without accumulators p -= lr g. weight_decay is for the "
            "params whose place in "
            "decayed is true, for all without that table.")
        .infer([](const Call& c) {
            if (c.args[2].is_nil() && c.number(4) != 0)
                throw argument_error(c.args.back().string(),
                                     "accumulators are missing: momentum needs one for every parameter");
            return expect_lists(c, {1, 2}, 2);
        })
        .sample("{f32[2,3], f32[300]}, {f32[2,3], f32[300]}, {f32[2,3], f32[300]}, 0.1, 0.9")
        .sample("{f32[7]}, {f32[7]}, {f32[7]}, 0.1, 0.9, 0.5, 0.01, true")
        .sample("{f32[5,3]}, {f32[5,3]}, nil, 0.1");
    step(ops.add(
             "apply_adam(params: any, grads: any, moments: any, squares: any, maxima: any, step: number, "
             "beta1: number = 0.9, beta2: number = 0.999, eps: number = 1e-8, l2: number = 0.0, decay: number = 1.0, "
             "nesterov: bool = false, decayed: any = nil, where: string = \"apply_adam\")"))
        .doc(
            "One step of Adam: g = grad + l2 p, m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g g, "
            "p = decay p - step m / (sqrt(v) + eps). With maxima the largest v so far takes the place of v; nesterov "
            "takes beta1 m + (1 - beta1) g in place of m. Bias corrections are in step and eps, the learning rate in "
            "step, decoupled weight decay in decay. l2 and decay are for the params whose place in decayed is true, "
            "for all "
            "without that table.")
        .infer([](const Call& c) {
            return expect_lists(c, {1, 2, 3, 4}, 4);
        })
        .sample(
            "{f32[2,3], f32[300]}, {f32[2,3], f32[300]}, {f32[2,3], f32[300]}, {f32[2,3]:(0.1,1), f32[300]:(0.1,1)}, "
            "nil, 0.01")
        .sample(
            "{f32[7]}, {f32[7]}, {f32[7]}, {f32[7]:(0.1,1)}, {f32[7]:(0.1,1)}, 0.01, 0.8, 0.99, 1e-6, 0.1, 0.9, true");
    step(ops.add("apply_lamb(params: any, grads: any, moments: any, squares: any, lr: number, beta1: number = 0.9, "
                 "beta2: number = 0.999, eps: number = 1e-6, correction1: number = 1.0, correction2: number = 1.0, "
                 "weight_decay: number = 0.0, decayed: any = nil, where: string = \"apply_lamb\")"))
        .doc(
            "One step of Lamb: m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g g, "
            "u = m / correction1 / (sqrt(v / correction2) + eps) + weight_decay p, p -= lr |p| / |u| u; the norms are "
            "those of whole tensors, and their ratio is 1 where one is 0. weight_decay is for the params whose place "
            "in decayed is true, for all without that table.")
        .infer([](const Call& c) {
            return expect_lists(c, {1, 2, 3}, 0);
        })
        .cut("->")
        .sample(
            "{f32[2,3], f32[300]}, {f32[2,3], f32[300]}, {f32[2,3], f32[300]}, {f32[2,3]:(0.1,1), f32[300]:(0.1,1)}, "
            "0.01")
        .sample(
            "{f32[7], f32[0]}, {f32[7], f32[0]}, {f32[7], f32[0]}, {f32[7]:(0.1,1), f32[0]}, 0.01, 0.8, 0.99, 1e-6, "
            "0.2, 0.01, 0.1");
}

}  // namespace lunaria
