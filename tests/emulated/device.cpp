#include "tests/emulated/device.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "backends/separate/device.h"
#include "core/error.h"
#include "core/ir/builder.h"
#include "core/op.h"
#include "jit/graph/loop_builder.h"
#include "tests/emulated/loops.h"

namespace lunaria::emulated {

namespace {

// A call of an operator by itself as a loop, for operands of some types and some attributes.
struct Alone {
    graph::LoopRef code;  // null: there is none
    std::vector<graph::LoopBinding> operands;
    std::vector<size_t> arguments;  // which argument each operand is; that of the result is written
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

Alone compile(const KernelCall& call) {
    ir::Graph graph("alone");
    ir::GraphBuilder builder(graph);
    std::vector<Value> args;
    std::map<const ir::Node*, size_t> number;
    for (size_t i = 0; i < call.args.size(); ++i) {
        const Value& v = call.args[i];
        if (!v.is_tensor()) {
            args.push_back(v);
            continue;
        }
        ir::Node* node = graph.add_parameter("", ir::NodeType::of({v.tensor().dtype(), v.tensor().shape()}));
        number[node] = i;
        args.emplace_back(node);
    }
    const Value result = builder.emit(call.op, args);
    if (!result.is_node() || result.node()->op != &call.op) return {};
    const ir::Node& node = *result.node();
    const TensorType wanted{call.out[0].dtype(), call.out[0].shape()};
    if (node.type.kind != ir::NodeType::Kind::tensor || !(node.type.tensor == wanted)) return {};
    graph.result = result;
    const graph::Arrangements arrangements(graph);
    if (graph::part_of(node, arrangements) == graph::Part::none) return {};
    const graph::Piece piece = graph::piece_of(node, arrangements);
    auto loop = graph::build_loop(piece, arrangements, [](const ir::Node*) { return true; });
    if (!loop) return {};
    Alone alone;
    graph::LoopTask task{&loop->program, loop->sizes, loop->rows, loop->inner, {}};
    for (const graph::LoopBinding& b : loop->operands) {
        if (!b.written && !number.contains(b.root)) return {};
        alone.arguments.push_back(b.written ? 0 : number.at(b.root));
        task.offsets.push_back(static_cast<size_t>(b.offset) * size_of(b.root->type.tensor.dtype));
    }
    alone.operands = std::move(loop->operands);
    alone.code = loops().compile({&task, 1}, true).at(0);
    return alone;
}

// A call of the device's thread.
bool run_generated(const KernelCall& call) {
    bool fits = call.out.size() == 1 && call.out[0] && call.out[0].is_contiguous() && call.out[0].size() > 0;
    for (const Value& v : call.args) fits &= !v.is_list();
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
    for (size_t k = 0; k < alone->operands.size(); ++k) {
        const graph::LoopBinding& b = alone->operands[k];
        if (b.written) {
            pointers.push_back(call.out[0].raw());
            continue;
        }
        Tensor t = call.tensor(alone->arguments[k]).contiguous();
        int64_t offset = b.offset;
        if (b.copied.rank() > 0) {
            t = t.view(b.copied, b.copied_strides, b.offset).contiguous();
            offset = 0;
        }
        pointers.push_back(t.data<char>() + static_cast<size_t>(offset) * size_of(t.dtype()));
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
