// Elementwise operators on dense operands, forwards and backwards, without the detour through the executor: most of
// what programs of small tensors do.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>

#include "core/interrupt.h"
#include "jit/vm/machine.h"
#include "jit/vm/recorder.h"

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
    bool plain = op.is_elementwise && op.infer_fn == broadcast_all && op.side_effect == Effect::none;
    for (size_t k = 0; k < params.size(); ++k)
        plain &= k < operands ? params[k].type == ArgType::same || params[k].type == ArgType::real
                              : params[k].has_default && params[k].default_value.is_nil();
    return plain && is_differentiable(op) ? compile_chain(chain) : nullptr;
}

// The operator alone as a kernel for operands of the dtype (f32 or f64), null when there is none. Kernels are kept as
// long as the process lives: machines of all threads remember them.
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

// Whether all elements are one value in memory, as a sum's cotangent.
bool is_spread(const Tensor& t) {
    if (t.device()) return false;
    for (int axis = 0; axis < t.rank(); ++axis)
        if (t.strides()[axis] != 0 && t.dim(axis) != 1) return false;
    return true;
}

bool computes_in(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

// Whether a result of the tensor's type may take its memory.
bool is_free(const Tensor& t) { return t.is_sole_owner() && !t.parameter(); }

void store(double number, DType dtype, char* place) {
    if (dtype == DType::f32)
        *reinterpret_cast<float*>(place) = static_cast<float>(number);
    else
        *reinterpret_cast<double*>(place) = number;
}

}  // namespace

Value sum_of_dense(Value& a, Value& b) {
    if (!a.is_tensor() || !b.is_tensor() || recorder() || !has_chain_kernels()) return {};
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

bool Machine::follow_elementwise(const Op& op, const Instr& i, std::span<const Slot> operands, const Context& context) {
    if (!op.is_elementwise || operands.size() > kMostOperands || i.tail || i.results < 0 || i.order != 1) return false;
    const void* in[kMostOperands];
    static constexpr int64_t kStep[kMostOperands] = {1, 1, 1};
    const Tensor* tensors[kMostOperands];
    uint16_t bits = 0;
    uint64_t active = 0;
    for (size_t k = 0; k < operands.size(); ++k) {
        if (operands[k].items >= 0) return false;
        const Value& v = get(operands[k]);
        if (!v.is_tensor()) return false;
        const Tensor& t = v.tensor();
        if (!is_dense(t)) return false;
        tensors[k] = &t;
        in[k] = t.raw();
        bits |= v.marks();
        if (v.marks() & context.mark) active |= uint64_t{1} << k;
        if (context.box(v)) return false;
    }
    if (!has_chain_kernels()) return false;
    // The instruction's address is only a hint: what the site says is compared.
    Site& site = sites_[(reinterpret_cast<uintptr_t>(&i) >> 4) % sites_.size()];
    const std::span<const Tensor* const> all(tensors, operands.size());
    if (!fits(site, op, active, all) && !set_up(site, op, active, all)) return false;
    poll_interrupt();
    Value result;
    if (const int k = spare_operand(site, operands); k >= 0)
        result = std::move(registers_[operands[static_cast<size_t>(k)].at]);
    else
        result = Value(Tensor::like(*tensors[site.widest]));
    const int64_t count = result.tensor().size();
    void* to[] = {result.tensor().raw()};
    if (count) site.kernel->run(in, kStep, to, count);
    result.set_marks(bits);

    Value back;
    if (active) {
        if (!site.rule) find_rule(site, operands, result);
        auto* closure = new Closure(*site.function, site.rule);
        back = Value::adopt(closure);
        const auto parameters = static_cast<int>(op.signature.params.size());
        for (const int k : site.rule->saved) {
            closure->captures.push_back(k < parameters ? take(operands[static_cast<size_t>(k)]) : result);
            const Value& kept = closure->captures.back();
            if (kept.is_tensor()) closure->versions += kept.tensor().version();
        }
        closure->clock = write_clock();
    }
    if (i.r_out >= 0) registers_[i.r_out] = std::move(back);
    for (int32_t k = i.results; k-- > 1;) registers_[i.out + k] = Value();
    if (i.results > 0 && i.out >= 0) registers_[i.out] = std::move(result);
    return true;
}

// Whether the site is one of the operator with operands like these.
bool Machine::fits(const Site& site, const Op& op, uint64_t active, std::span<const Tensor* const> operands) {
    if (site.op != &op || site.operands != operands.size() || site.active != active) return false;
    for (size_t k = 0; k < operands.size(); ++k) {
        const Tensor& t = *operands[k];
        if (t.dtype() != site.dtype || t.rank() != site.ranks[k]) return false;
        for (int axis = t.rank(), last = site.shape.rank(); axis-- > 0;)
            if (t.dim(axis) != site.shape[--last]) return false;
    }
    return true;
}

// Makes it one; false: the operands are not of one dtype and shape, or there is no kernel.
bool Machine::set_up(Site& site, const Op& op, uint64_t active, std::span<const Tensor* const> operands) {
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

// What the backpropagators of the site are, once it has given a result.
void Machine::find_rule(Site& site, std::span<const Slot> operands, const Value& result) {
    const size_t parameters = site.op->signature.params.size();
    Values args;
    for (const Slot& s : operands) args.push_back(get(s));
    args.resize(parameters);
    auto [rule, function] = rule_of(*site.op, args, result, site.active);
    site.rule = std::move(rule);
    site.function = function;
    site.saved = 0;
    for (const int k : site.rule->saved)
        if (static_cast<size_t>(k) < parameters) site.saved |= 1u << k;
}

// The operand whose memory the result may take: nobody needs it any more. -1: there is none.
int Machine::spare_operand(const Site& site, std::span<const Slot> operands) const {
    if (site.active && !site.rule) return -1;
    for (size_t k = 0; k < operands.size(); ++k) {
        if (!operands[k].last || site.ranks[k] != site.shape.rank() || !is_free(get(operands[k]).tensor())) continue;
        // It may be an operand twice.
        bool saved = false;
        for (size_t j = 0; j < operands.size(); ++j) saved |= operands[j].at == operands[k].at && (site.saved >> j & 1);
        if (!saved) return static_cast<int>(k);
    }
    return -1;
}

bool Machine::pull_chain(const Instr& i, Closure& closure, std::span<const Slot> given) {
    const RuleChain& chain = *closure.function->chain;
    const size_t captures = closure.captures.size(), parameters = captures + given.size();
    if (i.results < 0 || parameters > kMostParameters || !has_chain_kernels()) return false;
    const Value* argument[kMostParameters];
    for (size_t p = 0; p < captures; ++p) argument[p] = &closure.captures[p];
    for (size_t k = 0; k < given.size(); ++k) {
        if (given[k].items >= 0) return false;
        argument[captures + k] = &get(given[k]);
    }
    const void* in[kMostRuleInputs];
    int64_t step[kMostRuleInputs];
    alignas(8) char numbers[kMostRuleInputs][8];
    const Tensor* whole = nullptr;  // a dense one of the rule's shape
    size_t n = 0;
    for (const RuleChain::Input& input : chain.inputs) {
        if (input.parameter >= parameters) return false;
        const Value* v = argument[input.parameter];
        if (v->is_tensor()) {
            const Tensor& t = v->tensor();
            if (t.dtype() != input.dtype || (input.whole ? !(t.shape() == chain.shape) : t.size() != 1)) return false;
            const bool dense = is_dense(t);
            if (!dense && !is_spread(t)) return false;
            if (dense && !whole && input.whole) whole = &t;
            in[n] = t.raw();
            step[n] = dense && input.whole;
        } else {
            // A number among the captures; as a cotangent it is spread over all elements first.
            if (!v->is_number() || input.dtype != chain.dtype || input.parameter >= captures) return false;
            if (input.whole && chain.count != 1) return false;
            store(v->number(), chain.dtype, numbers[n]);
            in[n] = numbers[n];
            step[n] = 0;
        }
        ++n;
    }
    if (chain.wanted > (i.out < 0 ? 0 : static_cast<size_t>(i.results))) return false;
    for (uint32_t given_back = chain.given_back; given_back; given_back &= given_back - 1) {
        const auto p = static_cast<size_t>(std::countr_zero(given_back));
        if (p >= parameters || !argument[p]->is_tensor()) return false;
    }
    uint16_t marks = 0;
    for (size_t p = 0; p < parameters; ++p) marks |= argument[p]->marks();
    for (double number : chain.numbers) {
        store(number, chain.dtype, numbers[n]);
        in[n] = numbers[n];
        step[n++] = 0;
    }

    poll_interrupt();
    // Keeps the rule while it runs.
    const Value r = take(slot(i, 0));
    const bool sole = closure.refs.load(std::memory_order_acquire) == 1;
    TensorBody* outputs[kMostRuleResults] = {};
    void* out[kMostRuleResults];
    uint32_t taken = 0;
    for (size_t k = 0; k < chain.results.size(); ++k) {
        const RuleChain::Result& result = chain.results[k];
        if (k >= static_cast<size_t>(i.results)) break;
        Value& place = registers_[static_cast<size_t>(i.out) + k];
        if (result.kind == RuleChain::Result::Kind::none) {
            place = Value();
            continue;
        }
        if (result.kind == RuleChain::Result::Kind::parameter) {
            place = *argument[result.index];
            continue;
        }
        TensorBody*& output = outputs[result.index];
        if (output) {
            Tensor::retain(output);
            place = Value(Tensor::adopt(output));
        } else {
            Tensor made;
            for (uint32_t free = result.may_hold & ~taken; free && !made; free &= free - 1) {
                const auto j = static_cast<size_t>(std::countr_zero(free));
                const size_t p = chain.inputs[j].parameter;
                if ((p < captures ? sole : given[p - captures].last) && step[j] && is_free(argument[p]->tensor())) {
                    made = argument[p]->tensor();
                    taken |= uint32_t{1} << j;
                }
            }
            if (!made)
                made = whole && whole->dtype() == chain.dtype ? Tensor::like(*whole)
                                                              : Tensor::empty(chain.dtype, chain.shape);
            output = made.body();
            out[result.index] = made.raw();
            place = Value(std::move(made));
        }
        if (!marks) continue;
        uint16_t own = 0;
        for (uint32_t from = result.depends; from; from &= from - 1) own |= argument[std::countr_zero(from)]->marks();
        place.set_marks(own);
    }
    if (chain.kernel && chain.count) chain.kernel->run(in, step, out, chain.count);
    if (i.out >= 0)
        for (size_t k = chain.results.size(); k < static_cast<size_t>(i.results); ++k)
            registers_[static_cast<size_t>(i.out) + k] = Value();
    return true;
}

}  // namespace lunaria::vm
