// Operators: what a rank asks of others. They keep the order of the program, since all ranks make the same requests in
// the same order. A gradient is that of the sum of all ranks' results: what a rank gave to others comes back from them.
#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/operator/ranks.h"
#include "core/ops/families.h"

namespace lunaria {

namespace {

Ranks::Place place_of(const Call& c, size_t group) { return ranks().place(c.name(), c.string(group)); }

int root_of(const Call& c, size_t i, size_t group) {
    const int64_t root = c.integer(i), size = place_of(c, group).size;
    if (root < 0 || root >= size)
        throw index_error(c.name(), str(param_name(c, i), " is ", root, ": there are ranks 0 to ", size - 1));
    return static_cast<int>(root);
}

// The other side of a send or recv.
void expect_other(const Call& c, size_t i, size_t group) {
    if (root_of(c, i, group) == place_of(c, group).rank)
        throw value_error(c.name(), str(param_name(c, i), " is ", c.integer(i), ", the number of this rank"))
            .hint("a rank sends to another one; lunaria launch -n 2 starts two");
}

int axis_of(const Call& c, size_t i) {
    expect_rank_at_least(c, 0, 1);
    return c.axis(i, 0);
}

// The sizes of all ranks' pieces along the axis, where the call gives them.
std::vector<int64_t> sizes_of(const Call& c, size_t i, int size) {
    if (!c.has(i)) return {};
    std::vector<int64_t> sizes = c.ints(i);
    if (sizes.size() != static_cast<size_t>(size))
        throw argument_error(c.name(), str(param_name(c, i), " has ", sizes.size(), " numbers for ", size, " ranks"));
    for (const int64_t n : sizes) expect_not_negative(c, i, n);
    return sizes;
}

int64_t sum_of(std::span<const int64_t> sizes) {
    int64_t sum = 0;
    for (const int64_t n : sizes) sum += n;
    return sum;
}

// The type of operand 0 with another size of one axis; a tensor without axes counts as one of a single element.
Types resized(const Call& c, int axis, int64_t size) {
    TensorType type = c.type(0);
    if (type.shape.rank() == 0) type.shape = Shape{1};
    type.shape[axis] = size;
    return {type};
}

int64_t size_along(const Call& c, int axis) { return c.rank(0) == 0 ? 1 : c.shape(0)[axis]; }

int64_t divided(const Call& c, int axis, int by) {
    const int64_t size = size_along(c, axis);
    if (size % by != 0)
        throw shape_error(c.name(), str(param_name(c, 0), " has shape ", c.shape(0), ": axis ", axis, " (", size,
                                        ") cannot be divided among ", by, " ranks"));
    return size / by;
}

// The type of operand 0, where there is such a group.
template <size_t group>
Types same_in_group(const Call& c) {
    place_of(c, group);
    return {c.type(0)};
}

// all_gather(x, axis, sizes, group)
Types infer_all_gather(const Call& c) {
    const Ranks::Place here = place_of(c, 3);
    const int axis = c.rank(0) == 0 ? 0 : axis_of(c, 1);
    const std::vector<int64_t> sizes = sizes_of(c, 2, here.size);
    if (sizes.empty()) return resized(c, axis, size_along(c, axis) * here.size);
    if (size_along(c, axis) != sizes[static_cast<size_t>(here.rank)])
        throw shape_error(c.name(), str(param_name(c, 0), " has shape ", c.shape(0), ", but ", param_name(c, 2),
                                        " says ", sizes[static_cast<size_t>(here.rank)], " for rank ", here.rank));
    return resized(c, axis, sum_of(sizes));
}

// reduce_scatter(x, op, axis, sizes, group)
Types infer_reduce_scatter(const Call& c) {
    const Ranks::Place here = place_of(c, 4);
    const int axis = axis_of(c, 2);
    const std::vector<int64_t> sizes = sizes_of(c, 3, here.size);
    if (sizes.empty()) return resized(c, axis, divided(c, axis, here.size));
    if (c.shape(0)[axis] != sum_of(sizes))
        throw shape_error(c.name(), str(param_name(c, 0), " has shape ", c.shape(0), ", but ", param_name(c, 3),
                                        " has ", sum_of(sizes), " in all"));
    return resized(c, axis, sizes[static_cast<size_t>(here.rank)]);
}

// all_to_all(x, split_axis, concat_axis, group)
Types infer_all_to_all(const Call& c) {
    const int n = place_of(c, 3).size, split = axis_of(c, 1), concat = axis_of(c, 2);
    TensorType type = c.type(0);
    type.shape[split] = divided(c, split, n);
    type.shape[concat] *= n;
    return {type};
}

// all_to_all_v(x, send_sizes, receive_sizes, group)
Types infer_all_to_all_v(const Call& c) {
    const Ranks::Place here = place_of(c, 3);
    expect_rank_at_least(c, 0, 1);
    const std::vector<int64_t> sends = sizes_of(c, 1, here.size), receives = sizes_of(c, 2, here.size);
    const auto own = static_cast<size_t>(here.rank);
    if (sends.at(own) != receives.at(own))
        throw argument_error(c.name(), str("rank ", own, " sends itself ", sends[own], " rows, and expects ",
                                           receives[own], " of itself"));
    if (c.shape(0)[0] != sum_of(sends))
        throw shape_error(c.name(), str(param_name(c, 0), " has shape ", c.shape(0), ", but ", param_name(c, 1),
                                        " has ", sum_of(sends), " in all"));
    return resized(c, 0, sum_of(receives));
}

Expr with_shape_of(const GradRule& g, const Expr& d, size_t i) { return d.reshape(g.shape(i)); }

Grads grad_all_reduce(const GradRule& g) {
    const std::string& how = g.string(1);
    if (how == "prod")
        throw value_error(g.name(), "the gradient of a product over ranks is unknown")
            .hint("take the logarithm of positive numbers and sum it");
    if (how == "sum" || how == "avg") return {g.call("all_reduce", {g.dout, g.args[1], g.args[2]})};
    // The largest and smallest elements share the gradient of all ranks.
    const Expr all = g.call("all_reduce", {g.dout, "sum", g.args[2]});
    return {all * g.call("equal", {g.in(0), g.out}).cast(g.in(0).dtype())};
}

void add_to_all(Registry& ops) {
    ops.add(R"(all_reduce(x/tensor/input: tensor, op: "sum"|"prod"|"max"|"min"|"avg" = "sum", group: string = ""))")
        .doc(
            "The sum (product, maximum, minimum, mean) of the tensors of all ranks of a group, on each of them; all "
            "ranks give tensors of one shape. The order of sums is a pairwise tree by rank.")
        .example("all_reduce(tensor{1, 2})", "tensor{1, 2}")
        .infer(same_in_group<2>)
        .half_native()
        .effect(Effect::ordered)
        .raises()
        .batched(batch::last_axes<0>)
        .grad(grad_all_reduce)
        .method(false)
        .sample("f32[2,3]")
        .sample("f64[5], \"max\"")
        .sample("f16[3], \"avg\"");
    ops.add("all_gather(x/tensor/input: tensor, axis: int = 0, sizes: ints? = nil, group: string = \"\")")
        .doc(
            "The tensors of all ranks of a group, one after the other along an axis, on each of them. With `sizes`, "
            "one number for each rank, they may have different sizes along that axis.")
        .example("all_gather(tensor{1, 2})", "tensor{1, 2}")
        .infer(infer_all_gather)
        .half_native()
        .effect(Effect::ordered)
        .raises()
        .grad([](const GradRule& g) -> Grads {
            const Value axis = g.rank(0) == 0 ? Value(int64_t{0}) : g.args[1];
            return {with_shape_of(g, g.call("reduce_scatter", {g.dout, "sum", axis, g.args[2], g.args[3]}), 0)};
        })
        .method(false)
        .sample("f32[2,3]")
        .sample("f32[2,3], 1");
    ops.add(R"(reduce_scatter(x/tensor/input: tensor, op: "sum"|"prod"|"max"|"min"|"avg" = "sum", axis: int = 0, )"
            R"(sizes: ints? = nil, group: string = ""))")
        .doc(
            "The sum (product, maximum, minimum, mean) of the tensors of all ranks of a group, of which each rank gets "
            "one piece along an axis: equal ones, or as `sizes` says.")
        .example("reduce_scatter(tensor{1, 2})", "tensor{1, 2}")
        .infer(infer_reduce_scatter)
        .half_native()
        .effect(Effect::ordered)
        .raises()
        .grad([](const GradRule& g) -> Grads {
            const std::string& how = g.string(1);
            if (how != "sum" && how != "avg")
                throw value_error(g.name(), str("the gradient of a ", how, " over ranks is unknown"))
                    .hint("use all_reduce, and take a piece of its result");
            const Expr all = g.call("all_gather", {g.dout, g.args[2], g.args[3], g.args[4]});
            return {how == "sum" ? all : all / static_cast<double>(place_of(g, 4).size)};
        })
        .method(false)
        .sample("f32[2,3]")
        .sample("f32[2,3], \"avg\", 1");
    ops.add("all_to_all(x/tensor/input: tensor, split_axis: int = 0, concat_axis: int = 0, group: string = \"\")")
        .doc(
            "Divides the tensor along one axis into as many pieces as the group has ranks, sends piece i to rank i, "
            "and "
            "joins what comes from all ranks along another axis.")
        .example("all_to_all(tensor{1, 2})", "tensor{1, 2}")
        .infer(infer_all_to_all)
        .half_native()
        .effect(Effect::ordered)
        .raises()
        .grad([](const GradRule& g) -> Grads {
            return {g.call("all_to_all", {g.dout, g.args[2], g.args[1], g.args[3]})};
        })
        .method(false)
        .sample("f32[2,3]")
        .sample("f32[2,3], 0, 1");
    ops.add("all_to_all_v(x/tensor/input: tensor, send_sizes: ints, receive_sizes: ints, group: string = \"\")")
        .doc(
            "Sends rows to all ranks of a group: the first send_sizes[1] to rank 0, the next to rank 1 and so on, and "
            "joins what comes: receive_sizes[1] rows from rank 0, and so on.")
        .example("all_to_all_v(tensor{1, 2}, {2}, {2})", "tensor{1, 2}")
        .infer(infer_all_to_all_v)
        .half_native()
        .effect(Effect::ordered)
        .raises()
        .grad([](const GradRule& g) -> Grads {
            return {g.call("all_to_all_v", {g.dout, g.args[2], g.args[1], g.args[3]})};
        })
        .method(false)
        .sample("f32[2,3], {2}, {2}");
}

void add_one_sided(Registry& ops) {
    ops.add("broadcast_from(x/tensor/input: tensor, root: int = 0, group: string = \"\")")
        .doc("The tensor of the root, on all ranks of a group; the others give tensors of the same shape.")
        .example("broadcast_from(tensor{1, 2})", "tensor{1, 2}")
        .infer([](const Call& c) -> Types {
            root_of(c, 1, 2);
            return {c.type(0)};
        })
        .half_native()
        .effect(Effect::ordered)
        .raises()
        .batched(batch::last_axes<0>)
        .grad([](const GradRule& g) -> Grads {
            return {g.call("reduce_to", {g.dout, g.args[1], "sum", g.args[2]})};
        })
        .method(false)
        .sample("f32[2,3]");
    ops.add(R"(reduce_to(x/tensor/input: tensor, root: int = 0, op: "sum"|"prod"|"max"|"min"|"avg" = "sum", )"
            R"(group: string = ""))")
        .doc(
            "The sum (product, maximum, minimum, mean) of the tensors of all ranks of a group, on the root; zeros on "
            "the others.")
        .example("reduce_to(tensor{1, 2})", "tensor{1, 2}")
        .infer([](const Call& c) -> Types {
            root_of(c, 1, 3);
            return {c.type(0)};
        })
        .half_native()
        .effect(Effect::ordered)
        .raises()
        .batched(batch::last_axes<0>)
        .grad([](const GradRule& g) -> Grads {
            const std::string& how = g.string(2);
            if (how != "sum" && how != "avg")
                throw value_error(g.name(), str("the gradient of a ", how, " on one rank is unknown"))
                    .hint("use all_reduce");
            const Expr all = g.call("broadcast_from", {g.dout, g.args[1], g.args[3]});
            return {how == "sum" ? all : all / static_cast<double>(place_of(g, 3).size)};
        })
        .method(false)
        .sample("f32[2,3]")
        .sample("f32[5], 0, \"avg\"");
    ops.add("gather_to(x/tensor/input: tensor, root: int = 0, group: string = \"\")")
        .doc("The tensors of all ranks of a group, one after the other along axis 0, on the root; zeros on the others.")
        .example("gather_to(tensor{1, 2})", "tensor{1, 2}")
        .infer([](const Call& c) -> Types {
            root_of(c, 1, 2);
            return resized(c, 0, size_along(c, 0) * place_of(c, 2).size);
        })
        .half_native()
        .effect(Effect::ordered)
        .raises()
        .grad([](const GradRule& g) -> Grads {
            return {with_shape_of(g, g.call("scatter_from", {g.dout, g.args[1], g.args[2]}), 0)};
        })
        .method(false)
        .sample("f32[2,3]");
    ops.add("scatter_from(x/tensor/input: tensor, root: int = 0, group: string = \"\")")
        .doc(
            "The pieces of the root's tensor along axis 0, one for each rank of a group; the others give tensors of "
            "the same shape.")
        .example("scatter_from(tensor{1, 2})", "tensor{1, 2}")
        .infer([](const Call& c) -> Types {
            root_of(c, 1, 2);
            expect_rank_at_least(c, 0, 1);
            return resized(c, 0, divided(c, 0, place_of(c, 2).size));
        })
        .half_native()
        .effect(Effect::ordered)
        .raises()
        .grad([](const GradRule& g) -> Grads {
            return {g.call("gather_to", {g.dout, g.args[1], g.args[2]})};
        })
        .method(false)
        .sample("f32[2,3]");
}

void add_between_two(Registry& ops) {
    ops.add("send(x/tensor/input: tensor, dest/dst: int = 0, tag: int = 0, group: string = \"\")")
        .doc(
            "Sends the tensor to another rank of a group, which receives it by `recv`, and gives 0. The gradient comes "
            "back from that rank where the 0 is added to what is differentiated.")
        .infer([](const Call& c) -> Types {
            expect_other(c, 1, 3);
            return {{is_float(c.type(0).dtype) ? c.type(0).dtype : DType::f32, Shape{}}};
        })
        .half_native()
        .effect(Effect::ordered)
        .raises()
        .grad([](const GradRule& g) -> Grads {
            return {g.call("recv", {g.in(0), g.args[1], g.args[2], g.args[3]})};
        })
        .method(false);
    ops.add("recv(x/tensor/input: tensor, source/src: int = 0, tag: int = 0, group: string = \"\")")
        .doc(
            "The tensor that another rank of a group sends; x has its shape and dtype, its elements are not read. The "
            "gradient goes back to that rank.")
        .infer([](const Call& c) -> Types {
            expect_other(c, 1, 3);
            return {c.type(0)};
        })
        .half_native()
        .effect(Effect::ordered)
        .raises()
        .grad([](const GradRule& g) -> Grads {
            const Expr sent = g.call("send", {g.dout, g.args[1], g.args[2], g.args[3]});
            return {g.call("depend", {g.builder.zeros_like(g.in(0)), sent})};
        })
        .method(false);
    ops.add("barrier(x/value/input: tensor, group: string = \"\")")
        .doc("The tensor itself, when all ranks of a group have come so far.")
        .example("barrier(tensor{1, 2})", "tensor{1, 2}")
        .infer(same_in_group<1>)
        .half_native()
        .effect(Effect::ordered)
        .raises()
        .batched(batch::last_axes<0>)
        .grad([](const GradRule& g) -> Grads { return {g.dout}; })
        .method(false)
        .sample("f32[2,3]");
}

void add_gradients(Registry& ops) {
    ops.add("give_gradient(gradient/x: tensor, exchange: int, place: int)")
        .doc(
            "Gives a gradient to an exchange of gradients among ranks, which sends it as soon as what goes with it is "
            "there, and gives 0. Steps of training use it; place counts from 0.")
        .infer([](const Call&) -> Types {
            return {{DType::f32, Shape{}}};
        })
        .half_native()
        .effect(Effect::ordered)
        .raises()
        .method(false)
        .no_grad("the gradient leaves this rank");
}

}  // namespace

void add_communication_ops(Registry& ops) {
    add_to_all(ops);
    add_gradients(ops);
    add_one_sided(ops);
    add_between_two(ops);
}

}  // namespace lunaria
