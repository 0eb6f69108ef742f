// Operators: assignment, ordering, printing. They keep the order of the program.
#include <atomic>
#include <iostream>
#include <sstream>

#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/lay_out.h"
#include "core/ops/layout.h"
#include "core/tensor/usable_device.h"

namespace lunaria {

namespace {

// Writes into the tensor body that the caller's handle refers to.
Value assigned(const Call& call, const Tensor& value) {
    Tensor variable = call.args[0].tensor();
    variable.assign(call.name(), value);
    return Value(std::move(variable));
}

template <class F>
Op& writes(Op& op, F) {
    return op.infer([](const Call& c) -> Types { return {c.type(0)}; })
        .view([](const Call& c) { return assigned(c, F{}(c)); })
        .strided()
        .half_native()
        .effect(Effect::state)
        .gives_operand()
        .no_grad("it changes a variable; the gradient of the new value is the front end's matter");
}

Tensor combined(const Call& c, std::string_view op) {
    return eager_builder().call(op, {c.args[0], c.args[1]}).value().tensor();
}

// Every line of the output begins with the kind of the value, since numbers alone would leave it open.
void print_tensor(std::ostream& out, const Tensor& t) {
    constexpr int64_t kMost = 1000;
    out << "Tensor(shape=" << t.shape() << ", dtype=" << name_of(t.dtype()) << ", value=[";
    for (int64_t i = 0; i < std::min(t.size(), kMost); ++i) {
        if (i) out << ", ";
        if (t.dtype() == DType::boolean)
            out << (t.integer_at(i) ? "true" : "false");
        else if (t.dtype() == DType::u64)
            out << static_cast<uint64_t>(t.integer_at(i));
        else if (is_integer(t.dtype()))
            out << t.integer_at(i);
        else
            out << t.at(i);
    }
    out << (t.size() > kMost ? ", ...])" : "])");
}

Device* device_of(const Call& c) {
    Device& device = usable_device(c.string(1), c.name(), "device");
    return device.is_host() ? nullptr : &device;
}

std::atomic<LayOut>& lay_out_function() {
    static std::atomic<LayOut> function{nullptr};
    return function;
}

Tensor laid_out(const Tensor& t, int64_t layout, const Tensor* other) {
    if (const LayOut function = lay_out_function()) return function(t, layout, other);
    if (layout != 0) throw state_error("lay_out", "this program has no meshes");
    return t.to_host();
}

}  // namespace

void set_lay_out(LayOut function) { lay_out_function() = function; }

// The running statistics of a batch normalisation, moved towards those of the batch.
Value move_statistics(const Call& c) {
    const double keep = c.number(4), count = static_cast<double>(c.integer(5));
    for (size_t i = 0; i < 2; ++i) {
        Tensor running = c.args[i].tensor();
        const Tensor batch = c.args[i + 2].tensor();
        if (!(running.shape() == batch.shape()))
            throw shape_error(c.name(), str(param_name(c, i), " has shape ", running.shape(), " and ",
                                            param_name(c, i + 2), " ", batch.shape()));
        // The variance of the batch is the biased one; the running one estimates that of the data.
        const double factor = i == 1 && count > 1 ? count / (count - 1) : 1.0;
        running.own_storage();
        if (Device* place = running.device()) {
            const Expr old(eager_builder(), Value(running)), next(eager_builder(), Value(batch.to(place)));
            copy_elements((old * keep + next * ((1 - keep) * factor)).value().tensor(), running);
            continue;
        }
        for (int64_t k = 0; k < running.size(); ++k)
            running.set_at(k, keep * running.at(k) + (1 - keep) * factor * batch.at(k));
    }
    return Value::list({});
}

void add_state_ops(Registry& ops) {
    writes(ops.add("assign(variable/target/input: tensor, value: tensor)"),
           [](const Call& c) { return c.args[1].tensor(); })
        .doc(
            "Gives the variable a new value, broadcast and converted to its shape and dtype; every name of it sees it.")
        .cut("...,...->...")
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[5], 2.5");
    writes(ops.add("assign_add(variable/target/input: tensor, value: tensor)"),
           [](const Call& c) { return combined(c, "add"); })
        .doc("Adds value to the variable.")
        .cut("...,...->...")
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[5], 2.5");
    writes(ops.add("assign_sub(variable/target/input: tensor, value: tensor)"),
           [](const Call& c) { return combined(c, "sub"); })
        .doc("Subtracts value from the variable.")
        .cut("...,...->...")
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[5], 2.5");
    ops.add(
           "batch_norm_update(moving_mean: tensor, moving_variance: tensor, mean: tensor, variance: tensor, "
           "momentum: number, count: int)")
        .doc(
            "Moves the running statistics of a batch normalisation, in place: momentum times the old ones plus "
            "1 - momentum times those of a batch, whose biased variance over `count` elements is made unbiased. No "
            "gradient flows to what they are moved by.")
        .infer([](const Call&) -> Types { return {}; })
        .view(move_statistics)
        .strided()
        .half_native()
        .effect(Effect::state)
        .method(false)
        .no_grad("it changes running statistics, which are not trained")
        .cut("a,a,a,a->a")
        .sample("f32[3], f32[3], f32[3], f32[3], 0.9, 8")
        .sample("f32[5], f32[5], f32[5], f32[5], 0.5, 1");
    rearranges(ops.add("depend(value/input: tensor, expr: any)"), [](const Call&, Layout&) {})
        .doc("The value itself, computed after expr.")
        .example("depend(tensor{1, 2}, tensor{3})", "tensor{1, 2}")
        .grad([](const GradRule& g) -> Grads {
            return {g.dout, {}};
        })
        .cut("...->...")
        .sample("f32[2,3], f32[2]")
        .sample("f32[5], 1");
    // A primitive, so that the check happens when a graph runs.
    ops.add("without_overflow(finite/input: mask)")
        .doc(
            "Whether results are finite and their device met no overflow since this was asked the last time: finite as "
            "it is, or false. Devices whose overflows show as infinities and NaN give it as it is.")
        .example("without_overflow(tensor{true, false})", "tensor{true, false}")
        .infer(same_as_first)
        .batched(batch::last_axes<0>)
        .method(false)
        .no_grad("the result is a boolean")
        .cut("...->...")
        .sample("bool[2,3]")
        .sample("bool[]");
    ops.add("to_device(x/input: tensor, device: string)")
        .doc("The tensor on a device, as a copy unless it is there already; \"host\" is the one of host memory.")
        .example("to_device(tensor{1, 2}, \"host\")", "tensor{1, 2}")
        .infer(same_as_first)
        .view([](const Call& c) { return Value(c.args[0].tensor().to(device_of(c))); })
        .strided()
        .half_native()
        .effect(Effect::state)  // a step of its own in graphs, where a view would be none
        .method(false)
        .grad([](const GradRule& g) -> Grads {
            return {g.call("to_device_of", {g.dout, g.in(0)}), {}};
        })
        .sample("f32[2,3], \"host\"");
    ops.add("to_device_of(x/input: tensor, other: any)")
        .doc("The tensor on the device of another one, as a copy unless it is there already.")
        .example("to_device_of(tensor{1, 2}, tensor{0})", "tensor{1, 2}")
        .infer(same_as_first)
        .view([](const Call& c) {
            const Value& other = c.args[1];
            return Value(c.args[0].tensor().to(other.is_tensor() ? other.tensor().device() : current_place()));
        })
        .strided()
        .half_native()
        .effect(Effect::state)  // a step of its own in graphs, where a view would be none
        .method(false)
        .grad([](const GradRule& g) -> Grads {
            return {g.call("to_device_of", {g.dout, g.in(0)}), {}};
        })
        .sample("f32[2,3], f32[2]");
    ops.add("lay_out(x/input: tensor, layout: int)")
        .doc(
            "The tensor in a layout on the ranks of a mesh, by its number; 0: whole, in host memory. ms.distribute and "
            "ms.reshard call it.")
        .example("lay_out(tensor{1, 2}, 0)", "tensor{1, 2}")
        .infer(same_as_first)
        .view([](const Call& c) { return Value(laid_out(c.args[0].tensor(), c.integer(1), nullptr)); })
        .strided()
        .half_native()
        .effect(Effect::state)  // as to_device
        .method(false)
        .grad([](const GradRule& g) -> Grads {
            return {g.call("lay_out_as", {g.dout, g.in(0)}), {}};
        })
        .sample("f32[2,3], 0");
    ops.add("lay_out_as(x/input: tensor, other: any)")
        .doc("The tensor in the layout of another one, in host memory where that is.")
        .example("lay_out_as(tensor{1, 2}, tensor{0})", "tensor{1, 2}")
        .infer(same_as_first)
        .view([](const Call& c) {
            const Value& other = c.args[1];
            return Value(laid_out(c.args[0].tensor(), 0, other.is_tensor() ? &other.tensor() : nullptr));
        })
        .strided()
        .half_native()
        .effect(Effect::state)  // as to_device
        .method(false)
        .grad([](const GradRule& g) -> Grads {
            return {g.call("lay_out_as", {g.dout, g.in(0)}), {}};
        })
        .sample("f32[2,3], f32[2,3]");
    rearranges(ops.add("print_(value/input: tensor)"), [](const Call&, Layout&) {})
        .doc("Writes the tensor to the standard output and gives it back.")
        .view([](const Call& c) -> Value {
            std::ostringstream text;
            const Tensor& t = c.args[0].tensor();
            print_tensor(text, t.to_host());
            std::cout << text.str() << std::endl;
            return Value(t);
        })
        .effect(Effect::state)
        .grad([](const GradRule& g) -> Grads { return {g.dout}; })
        .sample("f32[2,3]")
        .sample("f32[]");
}

}  // namespace lunaria
