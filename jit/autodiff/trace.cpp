#include "jit/autodiff/trace.h"

#include <cmath>

#include "core/ir/builder.h"
#include "core/operator/expansion.h"
#include "jit/autodiff/tidy.h"

namespace lunaria::autodiff {

namespace {

bool has_gradient(DType t) { return is_float(t) || is_complex(t); }

// A graph under construction with parameters for the arguments of one call.
class Tracer {
  public:
    Tracer(const Op& op, std::span<const Value> args, uint64_t active)
        : op_(op), args_(args), raw_(std::string(op.name())), builder_(raw_), dtype_(promoted_dtype(op, args)) {
        builder_.expands = true;
        for (size_t i = 0; i < args.size(); ++i) {
            const Param& param = op.signature.params[i];
            symbols_.push_back(symbol(i, has_bit(active, i)));
            operands_.push_back(builder_.operand(op, param, symbols_.back(), dtype_));
        }
    }

    Call call() const { return Call(op_, operands_, dtype_); }
    ir::GraphBuilder& builder() { return builder_; }
    ir::Graph& raw() { return raw_; }
    // For each parameter of the graph so far, the argument and the item in it that it represents.
    const std::vector<std::pair<int, int>>& places() const { return places_; }

    // The cotangent of argument i in the form of the graph's result, from the rule's cotangent.
    Value cotangent(size_t i, const Expr& given) {
        if (!given) return {};
        const Value& symbol = symbols_[i];
        if (!symbol.is_list()) return symbol.is_node() ? one_cotangent(given, symbol.node()->type.tensor) : Value();
        std::vector<Value> items;
        for (size_t k = 0; k < symbol.items().size(); ++k)
            items.push_back(one_cotangent(given[k], symbol.items()[k].node()->type.tensor));
        return Value::list(std::move(items));
    }

    std::unique_ptr<ir::Graph> finish(const std::vector<bool>& keep, std::vector<size_t>& kept) {
        return tidy(raw_, numbers_, keep, kept);
    }

  private:
    Value symbol(size_t i, bool active) {
        const Param& param = op_.signature.params[i];
        const Value& v = args_[i];
        switch (role(op_, args_, i, active)) {
            case Role::fixed:
                return v;
            case Role::tensor:
                return parameter(i, -1, type_of(v));
            case Role::number: {
                bool promoted = param.type == ArgType::same || param.type == ArgType::real;
                DType dtype = promoted ? dtype_ : param.type == ArgType::index ? DType::i64 : type_of(v).dtype;
                Value p = parameter(i, -1, {dtype, {}});
                numbers_[p.node()] = v.kind();
                return p;
            }
            case Role::list:
                break;
        }
        std::vector<Value> items;
        for (size_t k = 0; k < v.items().size(); ++k)
            items.push_back(parameter(i, static_cast<int>(k), type_of(v.items()[k])));
        return Value::list(std::move(items));
    }
    Value parameter(size_t i, int item, TensorType type) {
        places_.emplace_back(static_cast<int>(i), item);
        std::string name(op_.signature.params[i].name);
        if (item >= 0) name += str(item);
        return Value(raw_.add_parameter(std::move(name), ir::NodeType::of(std::move(type))));
    }

    Value one_cotangent(const Expr& given, const TensorType& type) {
        if (!given || !has_gradient(type.dtype)) return {};
        Expr g = given;
        if (g.value().is_number()) g = builder_.call("full", {type.shape, g.value(), type.dtype});
        if (g.value().is_tensor()) g = Expr(builder_, Value(raw_.add_constant(g.value())));
        if (!(g.shape() == type.shape))
            throw state_error(
                op_.name(), str("its gradient rule gives shape ", g.shape(), " for an operand of shape ", type.shape));
        return g.cast(type.dtype).value();
    }

    const Op& op_;
    std::span<const Value> args_;
    ir::Graph raw_;
    ir::GraphBuilder builder_;
    DType dtype_;
    std::vector<Value> symbols_;   // parameters in the place of arguments
    std::vector<Value> operands_;  // the same after the operator's conversions
    std::vector<std::pair<int, int>> places_;
    NumberParameters numbers_;
};

}  // namespace

Role role(const Op& op, std::span<const Value> args, size_t i, bool active) {
    const Value& v = args[i];
    if (!is_tensor_type(op.signature.params[i].type)) return Role::fixed;
    if (v.is_tensor()) return Role::tensor;
    if (v.is_list()) return Role::list;
    if (!v.is_number()) return Role::fixed;
    return specialises(op, i, active) && is_usual_exponent(v) ? Role::fixed : Role::number;
}

bool specialises(const Op& op, size_t i, bool active) { return !active && op.special_number == static_cast<int>(i); }

bool is_usual_exponent(const Value& number) {
    double n = number.number();
    return std::abs(n) <= 16 && n * 4 == std::floor(n * 4);
}

Pullback trace_pullback(const Op& op, std::span<const Value> args, const Value& result, uint64_t active,
                        uint64_t present) {
    Tracer tracer(op, args, active);
    ir::Graph& raw = tracer.raw();
    std::vector<Value> results = result.is_list() ? result.items() : std::vector<Value>{result};
    std::vector<Expr> outs, douts(results.size());
    for (const Value& r : results)
        outs.emplace_back(tracer.builder(), Value(raw.add_parameter("out", ir::NodeType::of(type_of(r)))));
    std::vector<bool> keep(raw.parameters().size());
    bool any = false;
    for (size_t j = 0; j < results.size(); ++j) {
        if (!has_bit(present, j)) continue;
        TensorType type = type_of(results[j]);
        ir::Node* dout = raw.add_parameter("dout", ir::NodeType::of(type));
        keep.push_back(true);
        if (!has_gradient(type.dtype)) continue;
        douts[j] = Expr(tracer.builder(), Value(dout));
        any = true;
    }

    Grads grads;
    if (any && op.grad_fn) grads = gradients(GradRule(tracer.call(), tracer.builder(), outs, douts));
    if (grads.size() > args.size())
        throw state_error(op.name(), "its gradient rule gives more cotangents than there are parameters");
    std::vector<Value> cotangents(args.size());
    for (size_t i = 0; i < grads.size(); ++i)
        if (has_bit(active, i)) cotangents[i] = tracer.cotangent(i, grads[i]);
    raw.result = Value::list(std::move(cotangents));

    Pullback made;
    std::vector<size_t> kept;
    made.graph = tracer.finish(keep, kept);
    const auto& places = tracer.places();
    for (size_t position : kept) {
        if (position < places.size()) {
            made.saved.push_back(places[position].first);
            made.saved_item.push_back(places[position].second);
        } else if (position < places.size() + results.size()) {
            made.saved.push_back(static_cast<int>(args.size() + position - places.size()));
            made.saved_item.push_back(-1);
        }
    }
    return made;
}

std::unique_ptr<ir::Graph> trace_expansion(const Op& op, std::span<const Value> args) {
    Tracer tracer(op, args, 0);
    tracer.raw().result = expand(ExpandCall(tracer.call(), tracer.builder()));
    std::vector<size_t> kept;
    return tracer.finish(std::vector<bool>(tracer.raw().parameters().size(), true), kept);
}

}  // namespace lunaria::autodiff
