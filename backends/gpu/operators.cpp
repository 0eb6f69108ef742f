#include "backends/gpu/operators.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "backends/gpu/launcher.h"
#include "backends/gpu/loops.h"
#include "core/base/error.h"
#include "core/loops/kernels.h"
#include "core/loops/operator_loop.h"
#include "core/operator/op.h"

namespace lunaria::gpu {

namespace {

// A call as a loop, for certain types of operands and attributes.
struct Compiled {
    std::vector<graph::OperatorLoop::Operand> operands;
    graph::LoopRef code;  // null: there is none
};

// Everything that tells calls of different loops apart.
class CallKey {
  public:
    std::vector<int64_t> words;

    // Plain numbers among operands are omitted unless `told`.
    void set(const KernelCall& call, bool told) {
        words.clear();
        words.push_back(call.op.id);
        words.push_back(static_cast<int64_t>(call.dtype));
        add(call.out[0]);
        for (size_t i = 0; i < call.args.size(); ++i)
            if (told || !is_plain_operand(call, i))
                add(call.args[i]);
            else
                words.push_back(-1);
    }
    static bool is_plain_operand(const KernelCall& call, size_t i) {
        return call.args[i].is_number() && is_tensor_type(call.op.signature.params[i].type);
    }

  private:
    void add(const Tensor& t) {
        words.push_back(static_cast<int64_t>(t.dtype()) << 8 | t.rank());
        for (int axis = 0; axis < t.rank(); ++axis) words.push_back(t.dim(axis));
    }
    void add(const Value& v) {
        words.push_back(static_cast<int64_t>(v.kind()));
        switch (v.kind()) {
            case Value::Kind::nil:
                return;
            case Value::Kind::tensor:
                return add(v.tensor());
            case Value::Kind::number:
                words.push_back(std::bit_cast<int64_t>(v.number()));
                return;
            case Value::Kind::list:
                words.push_back(static_cast<int64_t>(v.items().size()));
                for (const Value& item : v.items()) add(item);
                return;
            case Value::Kind::string: {
                const std::string& text = v.string();
                words.push_back(static_cast<int64_t>(text.size()));
                for (char c : text) words.push_back(c);
                return;
            }
            default:
                words.push_back(v.integer());
        }
    }
};

struct Hash {
    size_t operator()(const std::vector<int64_t>& words) const {
        uint64_t h = words.size();
        for (int64_t word : words) {
            h = (h ^ static_cast<uint64_t>(word)) * 0x9e3779b97f4a7c15u;
            h ^= h >> 29;
        }
        return h;
    }
};

// The limit of different calls: more means that attributes change with every call, and the table begins anew.
constexpr size_t kMost = 4096;
// An operator that is called with more different numbers gets them as tensors, since code is not made for each of them.
constexpr int kMostNumbers = 8;

struct Known {
    std::mutex mutex;
    std::unordered_map<std::vector<int64_t>, std::shared_ptr<const Compiled>, Hash> calls;
    std::unordered_map<std::vector<int64_t>, int, Hash> numbers;  // number of different ones, by the rest of the key
};
Known& known() {
    static auto* instance = new Known;
    return *instance;
}

std::shared_ptr<const Compiled> compile(const std::string& target, const KernelCall& call) {
    auto compiled = std::make_shared<Compiled>();
    std::optional<graph::OperatorLoop> loop = graph::operator_loop(call);
    if (!loop) return compiled;
    graph::LoopTask task{&loop->program, loop->sizes, loop->rows, loop->inner, {}};
    for (size_t k = 0; k < loop->operands.size(); ++k) {
        const bool moved = loop->operands[k].copied.rank() > 0;
        const int64_t offset = moved ? 0 : loop->operands[k].offset;
        task.offsets.push_back(static_cast<size_t>(offset) * size_of(loop->program.operands[k].dtype));
    }
    compiled->operands = std::move(loop->operands);
    compiled->code = compile_loops(target, {&task, 1}).at(0);
    return compiled;
}

// Null: its numbers must become tensors.
std::shared_ptr<const Compiled> find(const std::string& target, const KernelCall& call, bool has_numbers) {
    thread_local CallKey key;
    key.set(call, true);
    Known& all = known();
    const std::lock_guard lock(all.mutex);
    const auto found = all.calls.find(key.words);
    if (found != all.calls.end()) return found->second;
    if (all.calls.size() > kMost) {
        all.calls.clear();
        all.numbers.clear();
    }
    if (has_numbers) {
        thread_local CallKey rest;
        rest.set(call, false);
        if (++all.numbers[rest.words] > kMostNumbers) return nullptr;
    }
    return all.calls[key.words] = compile(target, call);
}

bool run_as_loop(Queue& queue, const std::string& target, const KernelCall& call);

bool run_with_tensors(Queue& queue, const std::string& target, const KernelCall& call) {
    std::vector<Value> args(call.args.begin(), call.args.end());
    for (size_t i = 0; i < args.size(); ++i) {
        if (!CallKey::is_plain_operand(call, i)) continue;
        const bool is_integer = args[i].kind() == Value::Kind::integer;
        const Tensor one =
            is_integer ? Tensor::scalar(args[i].integer()) : Tensor::scalar(DType::f64, args[i].number());
        args[i] = Value(one.cast(call.dtype).to(call.out[0].device()));
    }
    return run_as_loop(queue, target, {call.op, args, call.out, call.dtype, call.seed, call.counter});
}

// False where the call is not a loop with code.
bool run_as_loop(Queue& queue, const std::string& target, const KernelCall& call) {
    if (call.out.size() != 1 || !call.out[0] || call.out[0].size() == 0) return false;
    if (!call.out[0].is_contiguous()) return false;
    for (const Value& v : call.args) {
        if (v.is_tensor() && v.tensor().device() != call.out[0].device()) return false;
        for (size_t i = 0; v.is_list() && i < v.items().size(); ++i)
            if (v.items()[i].is_tensor()) return false;
    }
    bool has_numbers = false;
    for (size_t i = 0; i < call.args.size(); ++i) has_numbers |= CallKey::is_plain_operand(call, i);
    const std::shared_ptr<const Compiled> compiled = find(target, call, has_numbers);
    if (!compiled) return run_with_tensors(queue, target, call);
    if (!compiled->code) return false;
    std::vector<void*> pointers;
    std::vector<Tensor> copies;  // until the launch is queued
    for (const graph::OperatorLoop::Operand& o : compiled->operands) {
        if (o.is_result) {
            pointers.push_back(call.out[0].raw());
            continue;
        }
        Tensor t = call.tensor(o.argument).contiguous();
        const bool moved = o.copied.rank() > 0;
        if (moved) t = t.view(o.copied, o.copied_strides, o.offset).contiguous();
        const int64_t offset = moved ? 0 : o.offset;
        pointers.push_back(t.data<char>() + offset * static_cast<int64_t>(size_of(t.dtype())));
        copies.push_back(std::move(t));
    }
    launch_loop(queue, target, *compiled->code, pointers);
    return true;
}

}  // namespace

KernelTable::Entry KernelTable::find(const Op& op) const {
    const auto found = kernels_.find(op.name());
    return found == kernels_.end() ? Entry() : found->second;
}

const KernelTable& kernel_table() {
    static const KernelTable* table = [] {
        auto* made = new KernelTable;
        add_linalg_kernels(*made);
        add_index_kernels(*made);
        add_shape_kernels(*made);
        add_conv_kernels(*made);
        add_pool_kernels(*made);
        add_reduce_kernels(*made);
        add_norm_kernels(*made);
        add_optimizer_kernels(*made);
        add_random_kernels(*made);
        add_array_kernels(*made);
        add_checked_kernels(*made);
        add_sort_kernels(*made);
        add_scan_kernels(*made);
        add_softmax_kernels(*made);
        add_attention_kernels(*made);
        add_communication_kernels(*made);
        return made;
    }();
    return *table;
}

bool run_loop_of(const KernelCall& call, const Launcher& launcher) {
    return run_as_loop(launcher.queue(), launcher.target(), call);
}

// Whether an operand or a result has a type for which there are no kernels.
static bool has_foreign_type(const KernelCall& call) {
    const auto is_foreign = [](const Tensor& t) {
        return t && (is_stored_only(t.dtype()) || t.dtype() == DType::c128);
    };
    const auto holds_foreign = [&](const Value& v) { return v.is_tensor() && is_foreign(v.tensor()); };
    for (const Value& v : call.args)
        if (holds_foreign(v) || (v.is_list() && std::ranges::any_of(v.items(), holds_foreign))) return true;
    return std::ranges::any_of(call.out, is_foreign);
}

bool run_operator(Queue& queue, const std::string& target, const KernelCall& call) {
    const KernelTable::Entry own = kernel_table().find(call.op);
    if (!own.asks_ranks && (!graph::can_generate() || has_foreign_type(call))) return false;
    const bool may_be_loop = call.op.fuses_as != Fusion::none;
    if (may_be_loop && (!own.kernel || own.is_last) && run_as_loop(queue, target, call)) return true;
    if (!own.kernel) return false;
    bool is_empty = !call.out.empty();
    for (const Tensor& t : call.out) is_empty &= t && t.size() == 0;
    // There is nothing to compute, but operands may still be refused.
    if (is_empty && !own.asks_ranks) return !call.op.may_raise(call.dtype);
    Launcher launcher(queue, target, call.op.name());
    return own.kernel(launcher, call);
}

}  // namespace lunaria::gpu
