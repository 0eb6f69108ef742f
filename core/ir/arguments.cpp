#include "core/ir/arguments.h"

#include <algorithm>

namespace lunaria::ir {

namespace {

bool is_integer(const Value& v) { return v.kind() == Value::Kind::integer; }
bool is_number(const Value& v) { return v.is_number(); }
bool is_tensor_like(const Value& v) {
    return v.is_tensor() || v.is_node() || v.is_number() || v.kind() == Value::Kind::boolean;
}

bool is_list_of(const Value& v, bool (*good)(const Value&)) {
    return v.is_list() && std::all_of(v.items().begin(), v.items().end(), good);
}

bool fits(const Param& param, const Value& v) {
    if (v.is_nil()) return param.optional || (param.has_default && param.default_value.is_nil());
    switch (param.type) {
        case ArgType::same:
        case ArgType::real:
        case ArgType::tensor:
        case ArgType::index:
        case ArgType::mask:
            return is_tensor_like(v);
        case ArgType::tensors:
            return is_list_of(v, is_tensor_like);
        case ArgType::boolean:
            return v.kind() == Value::Kind::boolean;
        case ArgType::integer:
            return is_integer(v);
        case ArgType::number:
            return v.is_number();
        case ArgType::string:
            return v.kind() == Value::Kind::string &&
                   (param.choices.empty() || std::ranges::find(param.choices, v.string()) != param.choices.end());
        case ArgType::dtype:
            return v.kind() == Value::Kind::dtype;
        case ArgType::ints:
            return is_integer(v) || is_list_of(v, is_integer);
        case ArgType::numbers:
            return v.is_number() || is_list_of(v, is_number);
        case ArgType::shape:
            return is_list_of(v, is_integer);
        case ArgType::scalar:
            return v.is_number() || v.kind() == Value::Kind::boolean;
        case ArgType::any:
            return v.kind() != Value::Kind::object;
    }
    return false;
}

}  // namespace

void complete_arguments(const Op& op, std::vector<Value>& args) {
    const auto& params = op.signature.params;
    const size_t given = args.size();
    while (args.size() < params.size() && params[args.size()].has_default)
        args.push_back(params[args.size()].default_value);
    if (args.size() != params.size())
        throw argument_error(op.name(), str("has ", params.size(), " arguments, got ", given));
    for (size_t i = 0; i < args.size(); ++i)
        if (!fits(params[i], args[i]))
            throw argument_error(op.name(),
                                 str(params[i].name, " cannot be ", args[i].is_node() ? "a node" : to_string(args[i]),
                                     "; the signature is ", op.signature.text));
}

}  // namespace lunaria::ir
