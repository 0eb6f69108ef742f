// Graphs of the driver's: work that is handed over as a whole, in any order that what comes behind what allows.
#include <algorithm>
#include <cstring>
#include <set>

#include "tests/gpu/driver/mock.h"

using namespace lunaria::testing;

namespace {

constexpr Result kInvalid = 1, kBadHandle = 400, kCaptures = 901;

// As the driver has it.
struct KernelParameters {
    Module* function;
    unsigned blocks[3], threads[3], near_bytes;
    void** arguments;
    void** extra;
    void* kernel;
    void* context;
};

Mock& mock() { return Mock::the(); }

struct Instance {
    std::vector<GraphNode> nodes;
    std::vector<GraphNode*> origins;
};

std::set<Instance*>& instances() {
    static auto* all = new std::set<Instance*>;
    return *all;
}

bool knows(Graph* graph) {
    if (mock().graphs.contains(graph)) return true;
    mock().blame("a graph is used that there is none of");
    return false;
}
bool knows(Instance* instance) {
    if (instances().contains(instance)) return true;
    mock().blame("a graph that is ready to run is used that there is none of");
    return false;
}

Result work_of(const KernelParameters* p, std::function<void()>* work) {
    return mock().kernel_work(p->function, p->blocks[0], p->threads[0], p->near_bytes, p->arguments, work);
}

// What may run does so the later the earlier it was added: an order that only the graph forbids.
void run(const std::vector<GraphNode>& nodes) {
    std::vector<bool> done(nodes.size());
    for (size_t ran = 0; ran < nodes.size(); ++ran) {
        for (size_t i = nodes.size(); i-- > 0;) {
            const bool may = !done[i] && std::ranges::all_of(nodes[i].behind, [&](size_t k) { return done[k]; });
            if (!may) continue;
            done[i] = true;
            nodes[i].work();
            break;
        }
    }
}

Result add(GraphNode** node, Graph* graph, GraphNode* const* behind, size_t count, std::function<void()> work) {
    auto made = std::make_unique<GraphNode>();
    made->work = std::move(work);
    for (size_t i = 0; i < count; ++i) {
        const auto found = std::ranges::find(graph->nodes, behind[i], [](const auto& n) { return n.get(); });
        if (found == graph->nodes.end()) return kInvalid;
        made->behind.push_back(static_cast<size_t>(found - graph->nodes.begin()));
    }
    *node = made.get();
    graph->nodes.push_back(std::move(made));
    return 0;
}

std::vector<GraphNode> copy_of(const Graph& graph) {
    std::vector<GraphNode> nodes;
    for (const auto& node : graph.nodes) nodes.push_back(*node);
    return nodes;
}

}  // namespace

#define EXPORT [[gnu::visibility("default")]]

extern "C" {

EXPORT Result cuGraphCreate(Graph** graph, unsigned) {
    return mock().call("cuGraphCreate", [=] {
        mock().graphs.insert(*graph = new Graph);
        return 0;
    });
}
EXPORT Result cuGraphDestroy(Graph* graph) {
    return mock().call("cuGraphDestroy", [=] {
        if (!knows(graph)) return kBadHandle;
        mock().graphs.erase(graph);
        delete graph;
        return 0;
    });
}
EXPORT Result cuGraphAddKernelNode_v2(GraphNode** node, Graph* graph, GraphNode* const* behind, size_t count,
                                      const KernelParameters* kernel) {
    return mock().call("cuGraphAddKernelNode", [=] {
        if (!knows(graph)) return kBadHandle;
        std::function<void()> work;
        if (const Result result = work_of(kernel, &work)) return result;
        return add(node, graph, behind, count, std::move(work));
    });
}
EXPORT Result cuGraphAddChildGraphNode(GraphNode** node, Graph* graph, GraphNode* const* behind, size_t count,
                                       Graph* other) {
    return mock().call("cuGraphAddChildGraphNode", [=] {
        if (!knows(graph) || !knows(other)) return kBadHandle;
        return add(node, graph, behind, count, [nodes = copy_of(*other)] { run(nodes); });
    });
}
EXPORT Result cuStreamBeginCapture_v2(Stream* stream, int) {
    return mock().call("cuStreamBeginCapture", [=] {
        if (!mock().streams.contains(stream) || stream->captures) return kInvalid;
        mock().graphs.insert(stream->captures = new Graph);
        return 0;
    });
}
EXPORT Result cuStreamEndCapture(Stream* stream, Graph** graph) {
    return mock().call("cuStreamEndCapture", [=] {
        if (!mock().streams.contains(stream) || !stream->captures) return kInvalid;
        *graph = stream->captures;
        stream->captures = nullptr;
        return 0;
    });
}
EXPORT Result cuGraphInstantiateWithFlags(Instance** instance, Graph* graph, unsigned long long) {
    return mock().call("cuGraphInstantiate", [=] {
        if (!knows(graph)) return kBadHandle;
        auto* made = new Instance{copy_of(*graph), {}};
        for (const auto& node : graph->nodes) made->origins.push_back(node.get());
        instances().insert(*instance = made);
        return 0;
    });
}
EXPORT Result cuGraphExecKernelNodeSetParams_v2(Instance* instance, GraphNode* node, const KernelParameters* kernel) {
    return mock().call("cuGraphExecKernelNodeSetParams", [=] {
        if (!knows(instance)) return kBadHandle;
        const auto found = std::ranges::find(instance->origins, node);
        if (found == instance->origins.end()) return kInvalid;
        return work_of(kernel, &instance->nodes[static_cast<size_t>(found - instance->origins.begin())].work);
    });
}
EXPORT Result cuGraphExecChildGraphNodeSetParams(Instance* instance, GraphNode* node, Graph* other) {
    return mock().call("cuGraphExecChildGraphNodeSetParams", [=] {
        if (!knows(instance) || !knows(other)) return kBadHandle;
        const auto found = std::ranges::find(instance->origins, node);
        if (found == instance->origins.end()) return kInvalid;
        instance->nodes[static_cast<size_t>(found - instance->origins.begin())].work = [nodes = copy_of(*other)] {
            run(nodes);
        };
        return 0;
    });
}
EXPORT Result cuGraphLaunch(Instance* instance, Stream* stream) {
    return mock().call("cuGraphLaunch", [=] {
        if (!knows(instance) || !mock().streams.contains(stream)) return kBadHandle;
        if (stream->captures) return kCaptures;
        // What is changed later counts for later launches.
        mock().add(stream, [nodes = instance->nodes] { run(nodes); });
        return 0;
    });
}
EXPORT Result cuGraphExecDestroy(Instance* instance) {
    return mock().call("cuGraphExecDestroy", [=] {
        if (!knows(instance)) return kBadHandle;
        instances().erase(instance);
        delete instance;
        return 0;
    });
}

EXPORT int64_t mock_ready_graphs() { return static_cast<int64_t>(instances().size()); }
EXPORT void mock_forget_graphs() {
    for (Instance* instance : instances()) delete instance;
    instances().clear();
}
}
