#include "backends/gpu/replay.h"

#include <algorithm>

namespace lunaria::gpu {

namespace {

// Fewer pieces cost no more one by one.
constexpr size_t kFewest = 4;
constexpr int kRelaxed = 2;  // of a capture: other threads may continue

// The driver knows how many of the words a kernel takes.
struct Arguments {
    explicit Arguments(const Work& work) { std::ranges::copy(work.words, words); }
    uint64_t words[Work::kMostWords] = {};
    void* list[1] = {words};
};

GraphKernel kernel_of(const Work& work, Arguments& arguments) {
    GraphKernel kernel;
    kernel.function = work.kernel->function;
    kernel.blocks_x = work.shape.blocks;
    kernel.threads_x = work.shape.threads;
    kernel.near_bytes = work.shape.near_bytes;
    kernel.arguments = arguments.list;
    return kernel;
}

}  // namespace

Result Work::give(const Driver& driver, StreamHandle* stream) const {
    if (!kernel) return run(stream);
    Arguments arguments(*this);
    return driver.launch(kernel->function, shape.blocks, 1, 1, shape.threads, 1, 1, shape.near_bytes, stream,
                         arguments.list, nullptr);
}

bool Work::is_like(const Work& other) const {
    if (kernel != other.kernel || !(shape == other.shape)) return false;
    if (words.size() != other.words.size() || operands != other.operands) return false;
    return kernel || std::equal(words.begin() + static_cast<ptrdiff_t>(operands), words.end(),
                                other.words.begin() + static_cast<ptrdiff_t>(operands));
}

void Segment::forget() {
    if (run_) driver_.graphs.destroy_run(run_);
    if (graph_) driver_.graphs.destroy(graph_);
    run_ = nullptr;
    graph_ = nullptr;
    nodes_.clear();
}

void Segment::leave_all_but(uint64_t context) {
    if (context == context_) return;
    graph_ = nullptr;
    run_ = nullptr;
    nodes_.clear();
    last_.clear();
}

// One piece after the other: blocks of memory are reused within a run.
bool Segment::build(StreamHandle* stream) {
    const Driver::Graphs& g = driver_.graphs;
    if (g.create(&graph_, 0) != kSuccess) return false;
    GraphNodeHandle* before = nullptr;
    for (const Work& work : last_) {
        GraphNodeHandle* node = nullptr;
        Result result = kSuccess;
        if (work.kernel) {
            Arguments arguments(work);
            const GraphKernel kernel = kernel_of(work, arguments);
            result = g.add_kernel(&node, graph_, &before, before ? 1 : 0, &kernel);
        } else {
            result = with_capture(stream, work, [&](GraphHandle* part) {
                return g.add_graph(&node, graph_, &before, before ? 1 : 0, part);
            });
        }
        if (result != kSuccess) return false;
        nodes_.push_back(node);
        before = node;
    }
    return g.instantiate(&run_, graph_, 0) == kSuccess;
}

// The work that a library submits to the stream, as a graph of its own.
template <class F>
Result Segment::with_capture(StreamHandle* stream, const Work& work, F use) {
    const Driver::Graphs& g = driver_.graphs;
    if (const Result begun = g.begin_capture(stream, kRelaxed)) return begun;
    GraphHandle* part = nullptr;
    Result result = work.run(stream);
    const Result ended = g.end_capture(stream, &part);
    if (result == kSuccess) result = ended;
    if (result == kSuccess) result = use(part);
    if (part) g.destroy(part);
    return result;
}

bool Segment::update(StreamHandle* stream, const std::vector<Work>& work) {
    for (size_t i = 0; i < work.size(); ++i) {
        if (work[i].words == last_[i].words) continue;
        if (!work[i].kernel) {
            const Result result = with_capture(
                stream, work[i], [&](GraphHandle* part) { return driver_.graphs.set_graph(run_, nodes_[i], part); });
            if (result != kSuccess) return false;
            continue;
        }
        Arguments arguments(work[i]);
        const GraphKernel kernel = kernel_of(work[i], arguments);
        if (driver_.graphs.set_kernel(run_, nodes_[i], &kernel) != kSuccess) return false;
    }
    return true;
}

Result Segment::give(StreamHandle* stream, uint64_t context, std::vector<Work> work) {
    leave_all_but(context);
    context_ = context;
    const bool is_like = driver_.graphs.create && !is_refused_ && work.size() >= kFewest &&
                         std::ranges::equal(work, last_, [](const Work& a, const Work& b) { return a.is_like(b); });
    if (is_like) {
        // Work that is requested only once is not worth a graph.
        if (!run_) {
            last_ = work;
            is_refused_ = !build(stream);
        } else if (!update(stream, work)) {
            is_refused_ = true;
        }
    }
    if (!is_like || is_refused_) forget();
    last_ = std::move(work);
    if (run_) return driver_.graphs.launch(run_, stream);
    for (const Work& piece : last_)
        if (const Result result = piece.give(driver_, stream)) return result;
    return kSuccess;
}

}  // namespace lunaria::gpu
