#include "jit/vm/elementwise.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>

#include "core/base/interrupt.h"
#include "jit/vm/machine.h"
#include "jit/vm/watcher.h"

namespace lunaria::vm {

namespace {

constexpr size_t kMostOperands = 3, kMostParameters = 8;

std::unique_ptr<const ChainKernel> make_kernel(const Op& op, size_t operands, DType dtype) {
    ElementChain chain;
    chain.dtype = dtype;
    chain.inputs = static_cast<int>(operands);
    chain.steps.push_back({&op, {}});
    for (int k = 0; k < chain.inputs; ++k) chain.steps[0].operands.push_back(k);
    chain.outputs = {0};
    const auto& params = op.signature.params;
    bool plain = op.is_elementwise && op.infer_fn == broadcast_all && op.is_repeatable();
    for (size_t k = 0; k < params.size(); ++k)
        plain &= k < operands ? params[k].type == ArgType::same || params[k].type == ArgType::real
                              : params[k].has_default && params[k].default_value.is_nil();
    return plain && is_differentiable(op) ? compile_chain(chain) : nullptr;
}

// The kernel of the operator alone for operands of the dtype (f32 or f64), null if there is none. Kernels live as long
// as the process, since machines of all threads remember them.
const ChainKernel* kernel_of(const Op& op, size_t operands, DType dtype) {
    struct Single {
        std::atomic<bool> known = false;
        std::unique_ptr<const ChainKernel> kernel;
    };
    using OfOp = std::array<std::array<Single, 2>, kMostOperands>;
    static std::vector<OfOp> singles(registry().all().size());
    Single& single = singles[static_cast<size_t>(op.id)][operands - 1][dtype == DType::f64];
    if (!single.known.load(std::memory_order_acquire)) {
        static std::mutex mutex;
        std::lock_guard lock(mutex);
        if (!single.known.load(std::memory_order_relaxed)) {
            single.kernel = make_kernel(op, operands, dtype);
            single.known.store(true, std::memory_order_release);
        }
    }
    return single.kernel.get();
}

bool is_dense(const Tensor& t) { return t.is_contiguous() && !t.device(); }

// Whether all elements are one value in memory, as in a sum's cotangent.
bool is_spread(const Tensor& t) {
    if (t.device()) return false;
    for (int axis = 0; axis < t.rank(); ++axis)
        if (t.strides()[axis] != 0 && t.dim(axis) != 1) return false;
    return true;
}

bool computes_in(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

// Whether a result of the tensor's type may reuse its memory.
bool is_free(const Tensor& t) { return t.is_sole_owner() && !t.parameter(); }

void store(double number, DType dtype, char* place) {
    if (dtype == DType::f32)
        *reinterpret_cast<float*>(place) = static_cast<float>(number);
    else
        *reinterpret_cast<double*>(place) = number;
}

}  // namespace

Value sum_of_dense(Value& a, Value& b) {
    if (!a.is_tensor() || !b.is_tensor() || watcher() || !runs_chain_kernels()) return {};
    const Tensor &x = a.tensor(), &y = b.tensor();
    const DType dtype = x.dtype();
    if (!computes_in(dtype) || y.dtype() != dtype || !(x.shape() == y.shape()) || !is_dense(x) || !is_dense(y))
        return {};
    static const Op& add = registry().get("add");
    const ChainKernel* kernel = kernel_of(add, 2, dtype);
    if (!kernel) return {};
    poll_interrupt();
    const void* in[] = {x.raw(), y.raw()};
    static constexpr int64_t kStep[] = {1, 1};
    Value sum = is_free(x) ? std::move(a) : is_free(y) ? std::move(b) : Value(Tensor::like(x));
    void* out[] = {sum.tensor().raw()};
    if (sum.tensor().size()) kernel->run(in, kStep, out, sum.tensor().size());
    return sum;
}

namespace {

// The operands of a call, all dense tensors.
struct Operands {
    const void* in[kMostOperands];
    const Tensor* tensors[kMostOperands];
    uint16_t marks = 0;
    uint64_t active = 0;  // a bit for each operand

    // False: an operand is something else.
    bool take(const Machine& m, std::span<const Slot> slots, const Context& context) {
        for (size_t k = 0; k < slots.size(); ++k) {
            if (slots[k].items >= 0) return false;
            const Value& v = m.get(slots[k]);
            if (!v.is_tensor() || !is_dense(v.tensor())) return false;
            tensors[k] = &v.tensor();
            in[k] = v.tensor().raw();
            marks |= v.marks();
            if (v.marks() & context.mark) active |= uint64_t{1} << k;
            if (context.box(v)) return false;
        }
        return true;
    }
};

}  // namespace

bool ElementwiseCalls::follow(Machine& m, const Op& op, const Instr& i, std::span<const Slot> operands,
                              const Context& context) {
    if (!op.is_elementwise || operands.size() > kMostOperands || i.tail || i.results < 0 || i.order != 1) return false;
    Operands given;
    if (!given.take(m, operands, context)) return false;
    if (!runs_chain_kernels()) return false;
    // The instruction's address is only a hint: the facts in the site are compared.
    Site& site = sites_[(reinterpret_cast<uintptr_t>(&i) >> 4) % sites_.size()];
    const std::span<const Tensor* const> all(given.tensors, operands.size());
    const uint64_t active = given.active;
    if (!fits(site, op, active, all) && !set_up(site, op, active, all)) return false;
    poll_interrupt();
    Value result;
    if (const int k = spare_operand(site, m, operands); k >= 0)
        result = std::move(m.reg(operands[static_cast<size_t>(k)].at));
    else
        result = Value(Tensor::like(*given.tensors[site.widest]));
    const int64_t count = result.tensor().size();
    void* to[] = {result.tensor().raw()};
    static constexpr int64_t kStep[kMostOperands] = {1, 1, 1};
    if (count) site.kernel->run(given.in, kStep, to, count);
    result.set_marks(given.marks);

    Value back;
    if (active) {
        if (!site.rule) find_rule(site, m, operands, result);
        auto* closure = new Closure(*site.function, site.rule);
        back = Value::adopt(closure);
        const auto parameters = static_cast<int>(op.signature.params.size());
        for (const int k : site.rule->saved) {
            closure->captures.push_back(k < parameters ? m.take(operands[static_cast<size_t>(k)]) : result);
            const Value& kept = closure->captures.back();
            if (kept.is_tensor()) closure->versions += kept.tensor().version();
        }
        closure->clock = write_clock();
    }
    if (i.r_out >= 0) m.reg(i.r_out) = std::move(back);
    for (int32_t k = i.results; k-- > 1;) m.reg(i.out + k) = Value();
    if (i.results > 0 && i.out >= 0) m.reg(i.out) = std::move(result);
    return true;
}

// Whether the site belongs to the operator, with operands like these.
bool ElementwiseCalls::fits(const Site& site, const Op& op, uint64_t active, std::span<const Tensor* const> operands) {
    if (site.op != &op || site.operands != operands.size() || site.active != active) return false;
    for (size_t k = 0; k < operands.size(); ++k) {
        const Tensor& t = *operands[k];
        if (t.dtype() != site.dtype || t.rank() != site.ranks[k]) return false;
        for (int axis = t.rank(), last = site.shape.rank(); axis-- > 0;)
            if (t.dim(axis) != site.shape[--last]) return false;
    }
    return true;
}

// Sets the site up; false: the operands differ in dtype or shape, or there is no kernel.
bool ElementwiseCalls::set_up(Site& site, const Op& op, uint64_t active, std::span<const Tensor* const> operands) {
    const DType dtype = operands[0]->dtype();
    const auto widest = static_cast<size_t>(
        std::ranges::max_element(operands, {}, [](const Tensor* t) { return t->rank(); }) - operands.begin());
    const Shape& shape = operands[widest]->shape();
    std::array<uint8_t, kMostOperands> ranks{};
    for (size_t k = 0; k < operands.size(); ++k) {
        const Tensor& t = *operands[k];
        const int lacking = shape.rank() - t.rank();
        if (t.dtype() != dtype || !std::equal(t.shape().begin(), t.shape().end(), shape.begin() + lacking) ||
            !std::all_of(shape.begin(), shape.begin() + lacking, [](int64_t size) { return size == 1; }))
            return false;
        ranks[k] = static_cast<uint8_t>(t.rank());
    }
    const ChainKernel* kernel = computes_in(dtype) ? kernel_of(op, operands.size(), dtype) : nullptr;
    if (!kernel) return false;
    site = {&op, kernel, active, operands.size(), dtype, shape, ranks, static_cast<uint8_t>(widest), {}, nullptr, 0};
    return true;
}

// Finds the backpropagators of the site, after its first result.
void ElementwiseCalls::find_rule(Site& site, const Machine& m, std::span<const Slot> operands, const Value& result) {
    const size_t parameters = site.op->signature.params.size();
    Values args;
    for (const Slot& s : operands) args.push_back(m.get(s));
    args.resize(parameters);
    auto [rule, function] = rule_of(*site.op, args, result, site.active);
    site.rule = std::move(rule);
    site.function = function;
    site.saved = 0;
    for (const int k : site.rule->saved)
        if (static_cast<size_t>(k) < parameters) site.saved |= 1u << k;
}

// The operand whose memory the result may take, since it has no later use. -1: there is none.
int ElementwiseCalls::spare_operand(const Site& site, const Machine& m, std::span<const Slot> operands) {
    if (site.active && !site.rule) return -1;
    for (size_t k = 0; k < operands.size(); ++k) {
        if (!operands[k].last || site.ranks[k] != site.shape.rank() || !is_free(m.get(operands[k]).tensor())) continue;
        // The operand may occur twice.
        bool saved = false;
        for (size_t j = 0; j < operands.size(); ++j) saved |= operands[j].at == operands[k].at && (site.saved >> j & 1);
        if (!saved) return static_cast<int>(k);
    }
    return -1;
}

namespace {

using Result = RuleChain::Result;

// One pull of a chain: the arguments of its rule, the captures first, and the kernel's operands.
class ChainPull {
  public:
    ChainPull(Machine& m, const Closure& closure, std::span<const Slot> given)
        : machine_(m), chain_(*closure.function->chain), given_(given), captures_(closure.captures.size()) {}

    // Reads the arguments; false: the chain does not accept them.
    bool take_arguments(const Closure& closure) {
        parameters_ = captures_ + given_.size();
        if (parameters_ > kMostParameters) return false;
        for (size_t p = 0; p < captures_; ++p) argument_[p] = &closure.captures[p];
        for (size_t k = 0; k < given_.size(); ++k) {
            if (given_[k].items >= 0) return false;
            argument_[captures_ + k] = &machine_.get(given_[k]);
        }
        for (const RuleChain::Input& input : chain_.inputs)
            if (input.parameter >= parameters_ || !take_input(input)) return false;
        for (uint32_t given_back = chain_.given_back; given_back; given_back &= given_back - 1) {
            const auto p = static_cast<size_t>(std::countr_zero(given_back));
            if (p >= parameters_ || !argument_[p]->is_tensor()) return false;
        }
        for (double number : chain_.numbers) take_number(number);
        return true;
    }

    // Places the results and computes them. `sole`: there is no other reference to the rule.
    void run(const Instr& i, bool sole) {
        uint16_t marks = 0;
        for (size_t p = 0; p < parameters_; ++p) marks |= argument_[p]->marks();
        const size_t count = std::min(chain_.results.size(), static_cast<size_t>(i.results));
        for (size_t k = 0; k < count; ++k)
            give(chain_.results[k], machine_.reg(i.out + static_cast<int32_t>(k)), sole, marks);
        if (chain_.kernel && chain_.count) chain_.kernel->run(in_, step_, out_, chain_.count);
        if (i.out < 0) return;
        for (size_t k = chain_.results.size(); k < static_cast<size_t>(i.results); ++k)
            machine_.reg(i.out + static_cast<int32_t>(k)) = Value();
    }

  private:
    bool take_input(const RuleChain::Input& input) {
        const Value& v = *argument_[input.parameter];
        if (v.is_tensor()) {
            const Tensor& t = v.tensor();
            if (t.dtype() != input.dtype || (input.whole ? !(t.shape() == chain_.shape) : t.size() != 1)) return false;
            const bool dense = is_dense(t);
            if (!dense && !is_spread(t)) return false;
            if (dense && !whole_ && input.whole) whole_ = &t;
            in_[count_] = t.raw();
            step_[count_++] = dense && input.whole;
            return true;
        }
        // A number among the captures; a number that is a cotangent is first spread over all elements.
        if (!v.is_number() || input.dtype != chain_.dtype || input.parameter >= captures_) return false;
        if (input.whole && chain_.count != 1) return false;
        take_number(v.number());
        return true;
    }
    void take_number(double number) {
        store(number, chain_.dtype, numbers_[count_]);
        in_[count_] = numbers_[count_];
        step_[count_++] = 0;
    }

    void give(const Result& result, Value& place, bool sole, uint16_t marks) {
        if (result.kind == Result::Kind::none) {
            place = Value();
            return;
        }
        if (result.kind == Result::Kind::parameter) {
            place = *argument_[result.index];
            return;
        }
        TensorBody*& output = outputs_[result.index];
        if (output) {
            Tensor::retain(output);
            place = Value(Tensor::adopt(output));
        } else {
            Tensor made = room_for(result, sole);
            output = made.body();
            out_[result.index] = made.raw();
            place = Value(std::move(made));
        }
        if (!marks) return;
        uint16_t own = 0;
        for (uint32_t from = result.depends; from; from &= from - 1) own |= argument_[std::countr_zero(from)]->marks();
        place.set_marks(own);
    }
    // The memory of an argument without a later use, or a new tensor.
    Tensor room_for(const Result& result, bool sole) {
        for (uint32_t free = result.may_hold & ~taken_; free; free &= free - 1) {
            const auto j = static_cast<size_t>(std::countr_zero(free));
            const size_t p = chain_.inputs[j].parameter;
            if (!(p < captures_ ? sole : given_[p - captures_].last) || !step_[j] || !is_free(argument_[p]->tensor()))
                continue;
            taken_ |= uint32_t{1} << j;
            return argument_[p]->tensor();
        }
        return whole_ && whole_->dtype() == chain_.dtype ? Tensor::like(*whole_)
                                                         : Tensor::empty(chain_.dtype, chain_.shape);
    }

    Machine& machine_;
    const RuleChain& chain_;
    const std::span<const Slot> given_;
    const size_t captures_;
    size_t parameters_ = 0, count_ = 0;
    const Value* argument_[kMostParameters];
    const void* in_[kMostRuleInputs];
    int64_t step_[kMostRuleInputs];
    alignas(8) char numbers_[kMostRuleInputs][8];
    const Tensor* whole_ = nullptr;  // a dense operand of the rule's shape
    TensorBody* outputs_[kMostRuleResults] = {};
    void* out_[kMostRuleResults];
    uint32_t taken_ = 0;
};

}  // namespace

bool pull_chain(Machine& m, const Instr& i, Closure& closure, std::span<const Slot> given) {
    if (i.results < 0 || !runs_chain_kernels()) return false;
    if (closure.function->chain->wanted > (i.out < 0 ? 0 : static_cast<size_t>(i.results))) return false;
    ChainPull pull(m, closure, given);
    if (!pull.take_arguments(closure)) return false;
    poll_interrupt();
    // Keeps the rule while it runs.
    const Value r = m.take(m.slot(i, 0));
    pull.run(i, closure.refs.load(std::memory_order_acquire) == 1);
    return true;
}

}  // namespace lunaria::vm
