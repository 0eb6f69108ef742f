// Methods of tensors that are no operators, as far as their arguments are not those that the texts of the adjoints
// take.
#include "core/tensor/element.h"
#include "jit/runtime/natives.h"
#include "jit/vm/plain_arguments.h"

namespace lunaria::runtime {

using vm::PlainHost;
using vm::Values;

namespace {

const Tensor& self_of(const char* name, std::span<const Value> args) {
    if (args.empty() || !args[0].is_tensor())
        throw argument_error(name, str("a tensor is expected before the colon, got ",
                                       args.empty() ? "nothing" : vm::describe_plain(args[0])));
    return args[0].tensor();
}

LibraryBody refusing(const char* name, const char* what) {
    return {"tensor", name,
            [name, what](std::span<const Value> args) -> Values {
                self_of(name, args);
                throw argument_error(
                    name, str("cannot take ", args.size() > 1 ? vm::describe_plain(args[1]) : "this", ": ", what));
            },
            false};
}

LibraryBody telling(const char* name, Value (*f)(const Tensor&)) {
    return {"tensor", name, [name, f](std::span<const Value> args) { return Values{f(self_of(name, args))}; }};
}

Values item(std::span<const Value> args) {
    const Tensor& t = self_of("item", args);
    if (args.size() > 1)
        throw index_error("item",
                          str(args.size() - 1, " indices, or ones out of range, for a tensor of shape ", t.shape()));
    if (t.size() != 1) throw shape_error("item", str("a tensor of one element is expected, it has shape ", t.shape()));
    return {element(t, 0)};
}

// Rows by their index from 0; the texts have both functions.
Values rows(std::span<const Value> args) {
    static const Value kNext =
        PlainHost::function("next_row", Native::unknown, [](std::span<const Value>) { return Values{Value()}; });
    return {kNext, Value(self_of("iter", args)), Value()};
}

// The type of lists of numbers.
Values array(std::span<const Value>) { return {PlainHost::table({}, PlainHost::table({}))}; }

}  // namespace

Value in_place_function(const Op& op) {
    return PlainHost::function(str(op.name(), "_"), Native::unknown, [&op](std::span<const Value> args) -> Values {
        const std::string name = str(op.name(), "_");
        const Tensor old = self_of(name.c_str(), args);
        const Value value = run(op, vm::bind_plain(op, args).args);
        if (!value.is_tensor())
            throw argument_error(name, "the operator does not give one tensor, so that it cannot be put in place");
        throw shape_error(name, str("the result is ", vm::describe_plain(value), ", which does not fit in place of ",
                                    vm::describe_plain(Value(old))))
            .hint(str("use x = x:", op.name(), "(...)"));
    });
}

std::vector<LibraryBody> tensor_methods() {
    std::vector<LibraryBody> list{
        {"tensor", "item", item}, {"tensor", "iter", rows, false}, {"tensor", "asnumpy", array, false}};
    for (const char* name : {"copy", "clone", "contiguous", "value", "tolist", "zero_"})
        list.push_back(refusing(name, "no arguments are expected"));
    for (const char* name : {"astype", "to", "type_as"}) list.push_back(refusing(name, "a dtype is expected"));
    for (const char* name : {"half", "bfloat16", "float", "double"})
        list.push_back(refusing(name, "nothing is expected"));
    for (const char* name : {"copy_", "fill_", "set_data"})
        list.push_back(refusing(name, "it does not fit the tensor"));
    for (const char* name : {"uniform_", "normal_", "random_", "new_full"})
        list.push_back(refusing(name, "only the full program does that"));
    for (const char* name : {"where", "select"}) list.push_back(refusing(name, "other arguments are expected"));
    for (const char* name : {"dim", "ndimension"})
        list.push_back(telling(name, [](const Tensor& t) { return Value(int64_t{t.rank()}); }));
    for (const char* name : {"numel", "nelement"})
        list.push_back(telling(name, [](const Tensor& t) { return Value(t.size()); }));
    const std::pair<const char*, Value (*)(const Tensor&)> casts[] = {
        {"bool", [](const Tensor& t) { return Value(t.cast(DType::boolean)); }},
        {"byte", [](const Tensor& t) { return Value(t.cast(DType::u8)); }},
        {"short", [](const Tensor& t) { return Value(t.cast(DType::i16)); }},
        {"int", [](const Tensor& t) { return Value(t.cast(DType::i32)); }},
        {"long", [](const Tensor& t) { return Value(t.cast(DType::i64)); }}};
    for (const auto& [name, cast] : casts) list.push_back(telling(name, cast));
    list.push_back(telling("is_floating_point", [](const Tensor& t) { return Value(is_float(t.dtype())); }));
    list.push_back(telling("is_complex", [](const Tensor& t) { return Value(is_complex(t.dtype())); }));
    return list;
}

}  // namespace lunaria::runtime
