// Operators: one registry entry each, which the Lua bindings, argument checks, help, inference in both modes,
// gradients, vmap, MindIR and the standard tests read. The entries are in core/ops/<family>.cpp; core/ops/families.cpp
// lists the families (no static constructors).
#pragma once

#include <atomic>
#include <forward_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/operator/expr.h"
#include "core/operator/signature.h"
#include "core/tensor/device.h"

namespace lunaria {

struct TensorType {
    DType dtype = DType::f32;
    Shape shape;  // kUnknownDim where only the kernel can tell the size
    const Distribution* placement = nullptr;
    friend bool operator==(const TensorType&, const TensorType&) = default;
};

// The types of an operator's results, mostly one.
using Types = std::vector<TensorType>;

// Arguments of a call as seen by inference and gradient rules: all parameters in the order of the signature, defaults
// filled in. Tensor arguments may be tensors, nodes of a graph (with an inferred type) or plain numbers; only their
// type is looked at.
class Call {
  public:
    Call(const Op& op, std::span<const Value> args, DType dtype) : op(op), args(args), dtype(dtype) {}

    const Op& op;
    std::span<const Value> args;
    DType dtype;  // the joint dtype of the `same` and `float` parameters

    bool has(size_t i) const { return !args[i].is_nil(); }
    TensorType type(size_t i) const;  // the type of a tensor argument; a number has rank 0 and the promoted dtype
    Shape shape(size_t i) const { return type(i).shape; }
    int rank(size_t i) const { return type(i).shape.rank(); }
    std::vector<TensorType> types(size_t i) const;  // the types of a list of tensors
    int64_t integer(size_t i) const { return args[i].integer(); }
    double number(size_t i) const { return args[i].number(); }
    bool boolean(size_t i) const { return args[i].boolean(); }
    const std::string& string(size_t i) const { return args[i].string(); }
    DType dtype_or(size_t i, DType otherwise) const { return has(i) ? args[i].dtype() : otherwise; }
    std::vector<int64_t> ints(size_t i) const;  // from a list or a single integer
    // The integers as axes of argument `of`, counted from 0, without repetition; nil or an empty list: all axes.
    Shape axes(size_t i, size_t of) const;
    int axis(size_t i, size_t of) const;  // one axis of argument `of`, counted from 0
    std::string_view name() const;        // the operator's name, for messages
};

TensorType type_of(const Value& v);  // tensor, node or number

// The input of an expansion: the call, with its arguments as expressions of the current builder.
class ExpandCall : public Call {
  public:
    ExpandCall(const Call& call, Builder& b) : Call(call), builder(b) {}
    Builder& builder;
    Expr in(size_t i) const { return {builder, args[i]}; }
    Expr call(std::string_view op, std::initializer_list<Arg> call_args) const { return builder.call(op, call_args); }
};

// The input of a gradient rule: the call with its results and their cotangents.
class GradRule : public ExpandCall {
  public:
    GradRule(const Call& call, Builder& b, std::span<const Expr> outs, std::span<const Expr> douts)
        : ExpandCall(call, b), out(outs.empty() ? Expr() : outs[0]), dout(douts[0]), outs(outs), douts(douts) {}
    Expr out, dout;               // first result and its cotangent
    std::span<const Expr> outs;   // all results
    std::span<const Expr> douts;  // all cotangents; an empty Expr is a zero
    // `dx` summed over the axes along which argument i was broadcast.
    Expr unbroadcast(const Expr& dx, size_t i) const;
};
// One cotangent per parameter; an empty Expr means zero or not differentiable. For a list parameter: Expr of a list.
using Grads = std::vector<Expr>;

using InferFn = Types (*)(const Call&);
using GradFn = Grads (*)(const GradRule&);
using ExpandFn = Expr (*)(const ExpandCall&);
using ViewFn = Value (*)(const Call&);  // arguments are tensors; returns a view of them (or a list of views)
using HostFn = Value (*)(const Call&);  // a plain value computed from types and attributes alone (shape, rank, dtype)

class BatchCall;  // core/batching/batching.h
using BatchFn = Value (*)(const BatchCall&, const Types&);
using AxesFn = Shape (*)(const Call&);  // the axes that an operator works along, counted from 0
using FlopsFn = double (*)(const Call&, std::span<const TensorType> results);
class RowPass;  // core/operator/row_pass.h
class RowValue;
using RowFn = RowValue (*)(RowPass&);

// The effect of a call beside its results. Stages do not compare it: they ask the questions of Op.
enum class Effect : uint8_t {
    none,
    random,   // draws from the generator
    ordered,  // communicates with the outside, as sending and receiving do
    state,    // changes the content of other values: a variable, a table
};

// When a kernel may refuse the values of its operands: an index out of range, a singular matrix. Such a call is made
// even if nothing reads its result.
enum class Raises : uint8_t { never, integers, always };  // integers: only when computing in integers

// The role of a call in generated code (jit/graph/fusion.h). `sum` is the reduction that only adds, which may also add
// whole rows.
enum class Fusion : uint8_t { none, element, cast, product, reduction, sum, row_pass };

class Registry;

class Op {
  public:
    Op(SignatureText text, Registry& registry) : signature(parse_signature(text)), registry_(&registry) {}
    Op(const Op&) = delete;
    virtual ~Op() = default;

    // The setters return the entry, for chaining.
    Op& doc(const char* sentence);  // the first sentence stands alone
    Op& example(const char* lua,
                const char* result);  // both are Lua expressions with `tensor` and the operators in scope
    Op& infer(InferFn f);
    Op& grad(GradFn f);
    Op& no_grad(const char* reason);      // for integer results, piecewise constant functions …
    Op& refuse_grad(const char* reason);  // the result depends on the operands, but the gradient is unknown: an error
    Op& expand(ExpandFn f);               // a composition of other operators, which needs no infer, grad or kernel
    Op& view(ViewFn f);                   // shares storage with its operand: needs no kernel (but infer, for graphs)
    Op& host(HostFn f);
    // The rule of vmap (core/batching/rules.h); without one the samples are computed one after the other.
    Op& batched(BatchFn f);
    Op& effect(Effect e);
    Op& raises(Raises when = Raises::always);
    Op& flops(FlopsFn f);  // the arithmetic operations of a call, where they are not one for each element
    Op& moves();           // returns its operands or copies of their elements, and computes nothing from them
    Op& exact();           // a number beside a tensor gives the same bits as a tensor with that number
    Op& itemwise();        // works on lists item by item: a call may be split into one call for each item
    // A primitive that jumps to one of two blocks: operands 1 and 3 are functions, 2 and 4 the lists of their
    // arguments.
    Op& branches();
    Op& closes();     // a primitive that makes a closure: operand 0 is the function, operand 1 the list of captures
    Op& type_only();  // reads only the type of its first operand
    // Writes into operand 0 and returns that operand itself, by the same handle. The results of all other operators are
    // tensors of their own, whatever memory they share: run() makes another tensor where an operator only returns an
    // operand.
    Op& gives_operand();
    Op& keeps_weight();  // kernels may keep operand 1 in a layout of their own (core/run/prepared.h)
    // The gradient rule is shorter if number i is known; then it is written for each value of a plain number.
    Op& specialises(int i);
    Op& fusion(Fusion f);
    // One value for each row along the axes, given by formulas and reductions (core/operator/row_pass.h).
    Op& reduction(AxesFn axes, RowFn f, Fusion kind = Fusion::reduction);
    // One value for each element of such rows.
    Op& row_pass(AxesFn axes, RowFn f);
    Op& cost(int additions);  // the time of a result's element, in float additions; 0: unknown
    // An expansion for calls that are differentiated by numbers among their attributes, which are expressions in it.
    Op& open(ExpandFn f);
    Op& strided();      // kernels take operands of any layout
    Op& half_native();  // kernels take f16 and bf16; without it such operands are computed in f32
    // The expansion and the gradient rule need numbers that can be counted, squared and added: operands of 16 bits are
    // converted to f32 first, and the results are rounded once (core/operator/expansion.h).
    Op& wide();
    Op& elementwise();  // arithmetic given by a formula (core/ops/formulas.h): strided, half_native, batched, broadcast
    Op& alias(const char* other_name);
    Op& method(bool yes);  // whether x:name(...) exists; default: yes when the first parameter is a tensor
    // The ways in which a call can be divided among ranks: factors of the operands' and results' axes, as
    // core/parallel/rule.h reads them. Without one they are derived from what else the entry says.
    Op& cut(const char* factors);
    // The operands in which the operator is linear while the others stay: sums that are not complete pass through one
    // of them.
    Op& linear(std::initializer_list<int> operands);
    Op& source(const char* where);  // a paper or standard
    // Arguments for the standard tests, as core/ops/sample.h describes: .sample("f32[2,3], axis=1")
    Op& sample(const char* text);

    std::string_view name() const { return signature.name; }
    bool belongs_to(const Registry& registry) const { return registry_ == &registry; }

    // Questions about the effect. A call that is not repeatable is never left out, merged with an equal call or
    // repeated.
    bool is_repeatable() const { return effect_ == Effect::none; }
    bool draws() const { return effect_ == Effect::random; }  // uses random numbers
    // Calls of ordered operators keep their order among each other. Their effect shows in no value, so that all other
    // calls may be moved across them.
    bool is_ordered() const { return effect_ >= Effect::ordered; }
    // A call that reads a variable is never moved across a call that writes.
    bool writes() const { return effect_ == Effect::state; }
    // The effect in the entry, for copies and descriptions of it.
    Effect declared_effect() const { return effect_; }

    const Kernel* kernels(const Device& device, size_t& count) const;
    // `computed`: the dtype of the promoted operands.
    bool may_raise(DType computed) const {
        return raises_when == Raises::always || (raises_when == Raises::integers && is_integer(computed));
    }

    struct Example {
        const char *lua, *result;
    };
    Signature signature;
    const char* doc_text = "";
    std::vector<Example> examples;
    InferFn infer_fn = nullptr;
    GradFn grad_fn = nullptr;
    const char* no_grad_reason = nullptr;
    bool refuses_grad = false;
    ExpandFn expand_fn = nullptr;
    ViewFn view_fn = nullptr;
    HostFn host_fn = nullptr;
    ExpandFn open_fn = nullptr;
    BatchFn batch_fn = nullptr;
    FlopsFn flops_fn = nullptr;
    AxesFn axes_fn = nullptr;
    RowFn row_fn = nullptr;
    Raises raises_when = Raises::never;
    Fusion fuses_as = Fusion::none;
    int8_t special_number = -1;
    int16_t element_cost = 0;
    bool takes_strides = false, takes_halves = false, is_elementwise = false;
    bool only_moves = false, reads_type_only = false, prepares_weight = false, returns_operand = false;
    bool has_wide_rules = false, is_exact = false, is_itemwise = false, is_branch = false, is_closure = false;
    bool is_method = false;
    bool promotes = false;  // has `same` or `float` parameters
    const char* cut_text = nullptr;
    uint32_t linear_operands = 0;  // a bit for each operand
    const char* source_text = nullptr;
    std::vector<const char*> aliases;
    std::vector<const char*> samples;
    int id = -1;  // the position in the registry, for tables by operator

  private:
    // The kernels of a device for this operator. A list is never freed, since other threads may be reading it.
    struct KernelList {
        const Device* device;
        std::vector<Kernel> kernels;
    };
    const KernelList& find_kernels(const Device& device) const;
    // The kernels of this operator on a device.
    virtual std::span<const Kernel> kernels_on(const Device& device) const { return device.kernels(*this); }

    Registry* registry_;
    Effect effect_ = Effect::none;
    mutable std::atomic<const KernelList*> kernels_in_use_{nullptr};  // for the device that was asked last
    mutable std::mutex kernel_mutex_;
    mutable std::forward_list<KernelList> kernel_lists_;
};

class Registry {
  public:
    Op& add(SignatureText signature);
    const Op* find(std::string_view name) const;  // by name or alias; nullptr
    const Op& get(std::string_view name) const;   // throws argument_error with the nearest names
    const std::vector<std::unique_ptr<Op>>& all() const { return ops_; }
    void add_alias(const char* other, Op& op);
    // Names that are similar to `name` (small edit distance), for "did you mean".
    std::vector<std::string_view> similar(std::string_view name) const;

  private:
    std::vector<std::unique_ptr<Op>> ops_;
    std::unordered_map<std::string_view, Op*> by_name_;
};

// Whether the operator's kernels on the current device of this thread compute in float16 and bfloat16. Otherwise the
// operands are converted to float32 and the results rounded.
inline bool takes_halves(const Op& op) {
    return op.takes_halves || (current_place() && current_place()->takes_halves(op));
}

// All operators; built at the first use.
Registry& registry();

// Frequently used inference rules.
Types same_as_first(const Call&);      // dtype and shape of parameter 0
Types broadcast_all(const Call&);      // numpy broadcasting over all `same`/`float` parameters, promoted dtype
Types broadcast_to_bool(const Call&);  // the same with dtype bool

// Runs an operator on the current device. `args` is complete, in the order of the signature, and the types of the
// attributes have been checked (bind_args in interpreter/, Expr in C++). Promotes, infers, allocates, runs. Several
// results are returned as a list. Results are tensors of their own, except for Op::gives_operand.
Value run(const Op& op, std::span<const Value> args);
Value run(const Op& op, std::initializer_list<Value> args);

// Steps of run() that graph building shares.
// The dtype to which `same` and `float` operands are converted (f32 if there are none of them).
DType promoted_dtype(const Op& op, std::span<const Value> args);
// Checks the kinds of tensor arguments, and that `index` and `mask` have the right dtype; throws with the parameter's
// name.
void check_tensor_args(const Op& op, std::span<const Value> args);

// The executor's Builder: emit() runs the operator at once.
Builder& eager_builder();

}  // namespace lunaria
