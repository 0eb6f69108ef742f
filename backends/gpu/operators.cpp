#include "backends/gpu/operators.h"

#include <memory>
#include <mutex>
#include <unordered_map>

#include "backends/gpu/launcher.h"
#include "backends/gpu/loops.h"
#include "core/error.h"
#include "core/loops/kernels.h"
#include "core/loops/operator_loop.h"
#include "core/op.h"

namespace lunaria::gpu {

namespace {

// A call as a loop, for operands of some types and some attributes.
struct Compiled {
    std::vector<graph::OperatorLoop::Operand> operands;
    graph::LoopRef code;  // null: there is none
};

// All that have been met: more than this many are attributes that change with every call, which begins anew.
constexpr size_t kMost = 4096;

struct Known {
    std::mutex mutex;
    std::unordered_map<std::string, std::shared_ptr<const Compiled>> calls;
};
Known& known() {
    static auto* instance = new Known;
    return *instance;
}

std::string key_of(const KernelCall& call) {
    std::string key = str(call.op.id, ' ', name_of(call.dtype));
    for (const Value& v : call.args)
        key += v.is_tensor() ? str(' ', name_of(v.tensor().dtype()), v.tensor().shape()) : ' ' + to_string(v);
    return key + str(' ', name_of(call.out[0].dtype()), call.out[0].shape());
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
    compiled->code = compile_loops(target, {&task, 1}, true).at(0);
    return compiled;
}

// False where the call is no loop that there is code for.
bool run_as_loop(Queue& queue, const std::string& target, const KernelCall& call) {
    if (call.out.size() != 1 || !call.out[0] || call.out[0].size() == 0) return false;
    if (!call.out[0].is_contiguous()) return false;
    for (const Value& v : call.args) {
        if (v.is_tensor() && v.tensor().device() != call.out[0].device()) return false;
        for (size_t i = 0; v.is_list() && i < v.items().size(); ++i)
            if (v.items()[i].is_tensor()) return false;
    }
    std::shared_ptr<const Compiled> compiled;
    {
        Known& all = known();
        const std::string key = key_of(call);
        const std::lock_guard lock(all.mutex);
        if (all.calls.size() > kMost) all.calls.clear();
        auto& entry = all.calls[key];
        if (!entry) entry = compile(target, call);
        compiled = entry;
    }
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
        add_sort_kernels(*made);
        add_scan_kernels(*made);
        add_softmax_kernels(*made);
        return made;
    }();
    return *table;
}

bool run_loop_of(const KernelCall& call, const Launcher& launcher) {
    return run_as_loop(launcher.queue(), launcher.target(), call);
}

bool run_operator(Queue& queue, const std::string& target, const KernelCall& call) {
    if (!graph::can_generate()) return false;
    const KernelTable::Entry own = kernel_table().find(call.op);
    const bool may_be_loop = call.op.fuses_as != Fusion::none;
    if (may_be_loop && (!own.kernel || own.is_last) && run_as_loop(queue, target, call)) return true;
    if (!own.kernel) return false;
    bool is_empty = !call.out.empty();
    for (const Tensor& t : call.out) is_empty &= t && t.size() == 0;
    // Nothing to do, but for what may be refused.
    if (is_empty) return !call.op.may_raise(call.dtype);
    Launcher launcher(queue, target, call.op.name());
    return own.kernel(launcher, call);
}

}  // namespace lunaria::gpu
