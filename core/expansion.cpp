#include "core/expansion.h"

#include <algorithm>
#include <unordered_set>

#include "core/infer.h"
#include "core/ir/node.h"

namespace lunaria {

namespace {

// The composite operator that is being expanded, the outermost one.
thread_local const Call* expanded = nullptr;

class Outermost {
  public:
    explicit Outermost(const Call& call) : first_(!expanded) {
        if (first_) expanded = &call;
    }
    ~Outermost() {
        if (first_) expanded = nullptr;
    }
    Outermost(const Outermost&) = delete;

  private:
    bool first_;
};

// The operands of the composite operator that a node is computed from.
class Origins {
  public:
    explicit Origins(const Value& v) { look(v); }
    bool only(const ir::Node* operand) const { return found_.size() == 1 && found_.contains(operand); }

  private:
    static bool is_operand(const ir::Node* node) {
        return std::ranges::any_of(expanded->args, [&](const Value& v) { return v.is_node() && v.node() == node; });
    }
    void look(const Value& v) {
        if (v.is_list()) {
            for (const Value& item : v.items()) look(item);
            return;
        }
        if (!v.is_node() || !seen_.insert(v.node()).second) return;
        if (is_operand(v.node())) {
            found_.insert(v.node());
            return;
        }
        for (const Value& arg : v.node()->args) look(arg);
    }
    std::unordered_set<const ir::Node*> seen_, found_;
};

bool comes_from(const Value& v, const Value& source) {
    if (v.is_node() && source.is_node()) return Origins(v).only(source.node());
    const Value& held = v.is_node() && v.node()->kind == ir::NodeKind::constant ? v.node()->constant : v;
    if (held.is_tensor() && source.is_tensor()) return held.tensor().shares_storage(source.tensor());
    return !v.is_nil() && !v.is_tensor() && !v.is_node() && same_value(v, source);
}

}  // namespace

std::string_view param_name(const Call& call, size_t i) {
    const Param& own = call.op.signature.params[i];
    if (!expanded || &expanded->op == &call.op) return own.name;
    const auto& params = expanded->op.signature.params;
    const Param *found = nullptr, *tensor = nullptr;
    int tensors = 0;
    for (size_t k = 0; k < params.size(); ++k) {
        if (is_tensor_type(params[k].type) != is_tensor_type(own.type)) continue;
        if (is_tensor_type(own.type) && !expanded->args[k].is_nil()) {
            tensor = &params[k];
            ++tensors;
        }
        if (!comes_from(call.args[i], expanded->args[k])) continue;
        // Where several have the same value, the one that is called alike.
        if (!found || params[k].name == own.name) found = &params[k];
    }
    if (!found && tensors == 1) found = tensor;
    return found ? found->name : own.name;
}

Value number_as_tensor(const Value& number, DType t) {
    // i64 numbers are exact beyond 2^53 only as integers.
    return t == DType::i64 && number.kind() == Value::Kind::integer ? Value(Tensor::scalar(number.integer()))
                                                                    : Value(Tensor::scalar(t, number.number()));
}

std::vector<Value> expansion_args(const Op& op, std::span<const Value> args, DType dtype) {
    std::vector<Value> converted(args.begin(), args.end());
    for (size_t i = 0; i < converted.size(); ++i) {
        const ArgType type = op.signature.params[i].type;
        if (!converted[i].is_number() || !is_tensor_type(type)) continue;
        const bool promoted = type == ArgType::same || type == ArgType::real;
        converted[i] = number_as_tensor(converted[i], promoted                 ? dtype
                                                      : type == ArgType::index ? DType::i64
                                                                               : type_of(converted[i]).dtype);
    }
    return converted;
}

Value expand(const ExpandCall& call) {
    return speaking_of(call.op, [&] {
        Outermost outermost(call);
        return call.op.expand_fn(call).value();
    });
}

Error named_after(const Op& op, const Error& e) {
    const bool of_another = e.place().empty() && e.where() != op.name() && registry().find(e.where());
    if (!of_another) return e;
    // With the hint, if there is one.
    std::string_view rest = e.what();
    rest.remove_prefix(e.where().size() + 2);
    return {e.kind(), op.name(), rest};
}

}  // namespace lunaria
