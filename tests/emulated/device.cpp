#include "tests/emulated/device.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "backends/separate/device.h"
#include "core/base/error.h"
#include "core/loops/operator_loop.h"
#include "core/operator/op.h"
#include "core/tensor/device.h"
#include "tests/emulated/loops.h"

namespace lunaria::emulated {

namespace {

// A call of an operator by itself as a loop, for operands of some types and some attributes.
struct Alone {
    graph::LoopRef code;  // null: there is none
    std::vector<graph::OperatorLoop::Operand> operands;
};

struct Known {
    std::mutex mutex;
    std::map<std::string, Alone> calls;
    // How many calls a generated kernel took, and how many not.
    int64_t generated = 0, left = 0;
    ~Known() {
        if (std::getenv("LUNARIA_EMULATED"))
            std::fprintf(stderr, "emulated: %ld calls of operators by generated kernels, %ld left to others\n",
                         static_cast<long>(generated), static_cast<long>(left));
    }
};
Known& known() {
    static Known instance;
    return instance;
}

std::string key_of(const KernelCall& call) {
    std::string key = str(call.op.name(), ' ', name_of(call.dtype));
    for (const Value& v : call.args) {
        key += ' ';
        key += v.is_tensor() ? str(name_of(v.tensor().dtype()), v.tensor().shape()) : to_string(v);
    }
    return key + str(" -> ", name_of(call.out[0].dtype()), call.out[0].shape());
}

// The thread of the device has no place of its own, and loops are made for one.
class Here {
  public:
    explicit Here(Device* device) : before_(current_place()) { set_current_device(device); }
    ~Here() { detail::current_place = before_; }
    Here(const Here&) = delete;
    Here& operator=(const Here&) = delete;

  private:
    Device* const before_;
};

Alone compile(const KernelCall& call) {
    const Here here(find_device("Emulated"));
    std::optional<graph::OperatorLoop> loop = graph::operator_loop(call);
    if (!loop) return {};
    graph::LoopTask task{&loop->program, loop->sizes, loop->rows, loop->inner, {}};
    for (size_t k = 0; k < loop->operands.size(); ++k) {
        const graph::OperatorLoop::Operand& o = loop->operands[k];
        const int64_t offset = o.copied.rank() > 0 ? 0 : o.offset;
        task.offsets.push_back(static_cast<size_t>(offset) * size_of(loop->program.operands[k].dtype));
    }
    return {loops().compile({&task, 1}).at(0), std::move(loop->operands)};
}

// A call of the device's thread.
bool run_generated(const KernelCall& call) {
    bool fits = call.out.size() == 1 && call.out[0] && call.out[0].is_contiguous() && call.out[0].size() > 0;
    for (const Value& v : call.args)
        for (size_t i = 0; v.is_list() && i < v.items().size(); ++i) fits &= !v.items()[i].is_tensor();
    std::lock_guard lock(known().mutex);
    const Alone* alone = nullptr;
    if (fits) {
        auto [entry, fresh] = known().calls.try_emplace(key_of(call));
        if (fresh) entry->second = compile(call);
        alone = &entry->second;
    }
    if (!alone || !alone->code) {
        ++known().left;
        return false;
    }
    ++known().generated;
    std::vector<void*> pointers;
    std::vector<Tensor> copies;
    for (const graph::OperatorLoop::Operand& o : alone->operands) {
        if (o.is_result) {
            pointers.push_back(call.out[0].raw());
            continue;
        }
        Tensor t = call.tensor(o.argument).contiguous();
        const bool moved = o.copied.rank() > 0;
        if (moved) t = t.view(o.copied, o.copied_strides, o.offset).contiguous();
        pointers.push_back(t.data<char>() + static_cast<size_t>(moved ? 0 : o.offset) * size_of(t.dtype()));
        copies.push_back(std::move(t));
    }
    loops().launch(alone->code, pointers);
    return true;
}

// What a kernel is generated for, and behind it, for calls that it is not generated for, those of the host.
std::span<const Kernel> kernels(const Op& op) {
    static auto* lists = new std::map<const Op*, std::vector<Kernel>>;
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    auto [entry, fresh] = lists->try_emplace(&op);
    if (fresh && op.fuses_as != Fusion::none) {
        const auto others = host_device()->kernels(op);
        if (!others.empty()) entry->second.push_back(run_generated);
        entry->second.insert(entry->second.end(), others.begin(), others.end());
    }
    return entry->second;
}

}  // namespace

Device& device() {
    known();  // lives longer than the device's thread
    static Device& emulated = separate::make_device({"Emulated", &kernels, &loops()});
    return emulated;
}

}  // namespace lunaria::emulated
