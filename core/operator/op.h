// Operators: one registry entry each, read by the Lua bindings, argument checks, help, inference in both modes,
// gradients, vmap, MindIR and the standard tests. Entries are written in core/ops/<family>.cpp; the lists are written
// out in core/ops/families.cpp (no static constructors).
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
    Shape shape;  // kUnknownDim where only the kernel can tell
    const Distribution* placement = nullptr;
    friend bool operator==(const TensorType&, const TensorType&) = default;
};

// The types of an operator's results. Most have one.
using Types = std::vector<TensorType>;

// Arguments of a call as seen by inference and gradient rules: all parameters in the order of the signature, defaults
// filled in. Tensor arguments may be tensors, nodes of a graph (with an inferred type) or plain numbers; only their
// type is looked at.
class Call {
  public:
    Call(const Op& op, std::span<const Value> args, DType dtype) : op(op), args(args), dtype(dtype) {}

    const Op& op;
    std::span<const Value> args;
    DType dtype;  // of the promoted operands (`same` and `float` parameters)

    bool has(size_t i) const { return !args[i].is_nil(); }
    TensorType type(size_t i) const;  // of a tensor argument; a number has rank 0 and the promoted dtype
    Shape shape(size_t i) const { return type(i).shape; }
    int rank(size_t i) const { return type(i).shape.rank(); }
    std::vector<TensorType> types(size_t i) const;  // of a list of tensors
    int64_t integer(size_t i) const { return args[i].integer(); }
    double number(size_t i) const { return args[i].number(); }
    bool boolean(size_t i) const { return args[i].boolean(); }
    const std::string& string(size_t i) const { return args[i].string(); }
    DType dtype_or(size_t i, DType otherwise) const { return has(i) ? args[i].dtype() : otherwise; }
    std::vector<int64_t> ints(size_t i) const;  // of a list or a single integer
    // `ints` as axes of argument `of`, counted from 0, without repetition; nil or an empty list: all axes.
    Shape axes(size_t i, size_t of) const;
    int axis(size_t i, size_t of) const;  // one axis of argument `of`, counted from 0
    std::string_view name() const;        // of the operator, for messages
};

TensorType type_of(const Value& v);  // tensor, node or number

// What a composite operator is expanded from: the call, with its arguments as expressions of the builder at hand.
class ExpandCall : public Call {
  public:
    ExpandCall(const Call& call, Builder& b) : Call(call), builder(b) {}
    Builder& builder;
    Expr in(size_t i) const { return {builder, args[i]}; }
    Expr call(std::string_view op, std::initializer_list<Arg> call_args) const { return builder.call(op, call_args); }
};

// What a gradient rule sees: also the results and their cotangents.
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
using ViewFn = Value (*)(const Call&);  // arguments are tensors; gives a view of them (or a list of views)
using HostFn = Value (*)(const Call&);  // a plain value computed from types and attributes alone (shape, rank, dtype)

class BatchCall;  // core/batching/batching.h
using BatchFn = Value (*)(const BatchCall&, const Types&);
using AxesFn = Shape (*)(const Call&);  // the axes that an operator works along, counted from 0
using FlopsFn = double (*)(const Call&, std::span<const TensorType> results);
class RowPass;  // core/operator/row_pass.h
class RowValue;
using RowFn = RowValue (*)(RowPass&);

// What a call does beside giving its results. Stages do not compare it: they ask the questions of Op.
enum class Effect : uint8_t {
    none,
    random,   // it draws from the generator
    ordered,  // it exchanges something with the outside, as sending and receiving do
    state,    // it changes what other values may show: a variable, a table
};

// When a kernel refuses the values of its operands: an index out of range, a matrix that has no inverse. A call that
// may is made even where nothing reads its result.
enum class Raises : uint8_t { never, integers, always };  // integers: when it computes in integers

// What generated code makes of a call (jit/graph/fusion.h). `sum` is the reduction that only adds: it may add up whole
// rows, too.
enum class Fusion : uint8_t { none, element, cast, product, reduction, sum, row_pass };

class Registry;

class Op {
  public:
    Op(SignatureText text, Registry& registry) : signature(parse_signature(text)), registry_(&registry) {}
    Op(const Op&) = delete;
    virtual ~Op() = default;

    // The setters return the entry, for chaining.
    Op& doc(const char* sentence);  // what it does; first sentence stands alone
    Op& example(const char* lua,
                const char* result);  // both are Lua expressions with `tensor` and the operators in scope
    Op& infer(InferFn f);
    Op& grad(GradFn f);
    Op& no_grad(const char* reason);      // integer results, piecewise constant …
    Op& refuse_grad(const char* reason);  // the result depends on operands, but how is not known: an error
    Op& expand(ExpandFn f);               // made of other operators: needs neither infer nor grad nor kernel
    Op& view(ViewFn f);                   // shares storage with its operand: needs no kernel (but infer, for graphs)
    Op& host(HostFn f);
    // The rule of vmap (core/batching/rules.h); without one the samples are done one after the other.
    Op& batched(BatchFn f);
    Op& effect(Effect e);
    Op& raises(Raises when = Raises::always);
    Op& flops(FlopsFn f);  // arithmetic operations of a call, where they are not one for each element
    Op& moves();           // hands its operands on, copies of elements included, and computes nothing from them
    Op& exact();           // a number beside a tensor gives the bits that the tensor of that number would give
    Op& itemwise();        // of lists, item by item: the call may be cut into one call for each item
    // A primitive that goes on with one of two blocks: operands 1 and 3 are functions, 2 and 4 lists of their
    // arguments.
    Op& branches();
    Op& closes();     // a primitive that gives the function operand 0 with the list operand 1 as its captured values
    Op& type_only();  // reads only the type of its first operand
    // It writes into operand 0 and gives that operand itself, by the same handle. All others' results are tensors of
    // their own, whatever memory they share: run() gives another one where an operator only hands an operand on.
    Op& gives_operand();
    Op& keeps_weight();  // kernels may keep operand 1 in a layout of their own (core/run/prepared.h)
    // The gradient rule is shorter where number i is known; it is written for each value of a plain number then.
    Op& specialises(int i);
    Op& fusion(Fusion f);
    // One value per row: along the axes, written with formulas and reductions (core/operator/row_pass.h).
    Op& reduction(AxesFn axes, RowFn f, Fusion kind = Fusion::reduction);
    // One value per element of such rows.
    Op& row_pass(AxesFn axes, RowFn f);
    Op& cost(int additions);  // of floats, that an element of the result takes about as long as; 0: not known
    // Expansion for calls with numbers among the attributes that are differentiated: these are expressions then.
    Op& open(ExpandFn f);
    Op& strided();      // kernels take operands of any layout
    Op& half_native();  // kernels take f16 and bf16; without it such operands are computed in f32
    // Its expansion and its gradient rule are for numbers that can be counted, squared and added up: operands of 16
    // bits are converted to f32 before, and what comes out is rounded once (core/operator/expansion.h).
    Op& wide();
    Op& elementwise();  // arithmetic is a formula (core/ops/formulas.h): strided, half_native, batched, broadcast
    Op& alias(const char* other_name);
    Op& method(bool yes);           // also x:name(...)? default: yes when the first parameter is a tensor
    Op& source(const char* where);  // paper or standard
    // Arguments for the standard tests, see core/ops/sample.h: .sample("f32[2,3], axis=1")
    Op& sample(const char* text);

    std::string_view name() const { return signature.name; }
    bool belongs_to(const Registry& registry) const { return registry_ == &registry; }

    // Of the effect. A call that is not repeatable is never left out, merged with an equal one or made again.
    bool is_repeatable() const { return effect_ == Effect::none; }
    bool draws() const { return effect_ == Effect::random; }  // random numbers
    // Calls of ordered operators keep their order among each other; what they do shows in no value, so that everything
    // else may be moved across them.
    bool is_ordered() const { return effect_ >= Effect::ordered; }
    // What reads a variable stays before or behind a call that writes.
    bool writes() const { return effect_ == Effect::state; }
    // As the entry says it, for copies and descriptions of the entry.
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
    const char* source_text = nullptr;
    std::vector<const char*> aliases;
    std::vector<const char*> samples;
    int id = -1;  // position in the registry: tables indexed by operator

  private:
    // What a device has for this operator; one that was made stays, since other threads may be reading it.
    struct KernelList {
        const Device* device;
        std::vector<Kernel> kernels;
    };
    const KernelList& find_kernels(const Device& device) const;
    // The kernels to run it on a device.
    virtual std::span<const Kernel> kernels_on(const Device& device) const { return device.kernels(*this); }

    Registry* registry_;
    Effect effect_ = Effect::none;
    mutable std::atomic<const KernelList*> kernels_in_use_{nullptr};  // of the device that was asked last
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
    // Names that look like `name` (small edit distance), for "did you mean".
    std::vector<std::string_view> similar(std::string_view name) const;

  private:
    std::vector<std::unique_ptr<Op>> ops_;
    std::unordered_map<std::string_view, Op*> by_name_;
};

// Whether its kernels on the device of this thread's operators compute on float16 and bfloat16 themselves. Else
// operands come as float32, and the results are rounded afterwards.
inline bool takes_halves(const Op& op) {
    return op.takes_halves || (current_place() && current_place()->takes_halves(op));
}

// All operators. Built at the first use.
Registry& registry();

// Frequently used inference rules.
Types same_as_first(const Call&);      // dtype and shape of parameter 0
Types broadcast_all(const Call&);      // numpy broadcasting over all `same`/`float` parameters, promoted dtype
Types broadcast_to_bool(const Call&);  // the same with dtype bool

// Runs an operator now, on the current device. `args` in the order of the signature, complete; types of attributes have
// been checked (bind_args in interpreter/, Expr in C++). Promotes, infers, allocates, runs. Several results come as a
// list. Results are tensors of their own but for Op::gives_operand.
Value run(const Op& op, std::span<const Value> args);
Value run(const Op& op, std::initializer_list<Value> args);

// Steps of run() that graph building shares.
// The dtype that `same` and `float` operands are converted to (f32 when there are none of them).
DType promoted_dtype(const Op& op, std::span<const Value> args);
// Checks kinds of tensor arguments (and that `index` and `mask` have the right dtype); throws with the parameter's
// name.
void check_tensor_args(const Op& op, std::span<const Value> args);

// The executor's Builder: emit() runs the operator at once.
Builder& eager_builder();

}  // namespace lunaria
