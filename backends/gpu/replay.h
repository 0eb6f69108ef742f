// Work of the stream, piece by piece, and runs of graphs: the work of a run is gathered and submitted as a graph of the
// driver's, which costs the host one call. If a run has the same work as the last one, except for numbers that are
// passed to kernels (addresses of results, seeds, learning rates), only these are changed in the graph.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backends/gpu/driver.h"

namespace lunaria::gpu {

// A function of a module. Modules stay; after a loss of the context they are loaded again.
struct ModuleFunction {
    std::string image;
    FunctionHandle* function = nullptr;
    uint64_t context = 0;  // the context of `function`
};

struct LaunchShape {
    unsigned blocks = 1, threads = 1, near_bytes = 0;
    bool operator==(const LaunchShape&) const = default;
};

struct Work {
    static constexpr size_t kMostWords = 512;

    const ModuleFunction* kernel = nullptr;  // null: `run` does the work
    LaunchShape shape{};
    std::vector<uint64_t> words{};  // the kernel's only argument, or the identity of the work
    size_t operands = 0;            // of the words, from the first one on, are addresses
    std::function<Result(StreamHandle*)> run{};

    Result give(const Driver& driver, StreamHandle* stream) const;
    // Whether a graph with one of them can be changed to the other by its words.
    bool is_like(const Work& other) const;
};

// The work of runs between two points at which the host waits, or other work comes that no graph can hold.
class Segment {
  public:
    explicit Segment(const Driver& driver) : driver_(driver) {}
    ~Segment() { forget(); }
    // Drops the handles of all contexts but this one; those of lost contexts must not be used any more.
    void leave_all_but(uint64_t context);
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

    // Submits the work to the stream: as a graph where it is like the last one. `context`: the number of the stream's
    // context.
    Result give(StreamHandle* stream, uint64_t context, std::vector<Work> work);

  private:
    void forget();
    bool build(StreamHandle* stream);
    bool update(StreamHandle* stream, const std::vector<Work>& work);
    template <class F>
    Result with_capture(StreamHandle* stream, const Work& work, F use);

    const Driver& driver_;
    std::vector<Work> last_;
    GraphHandle* graph_ = nullptr;
    GraphRunHandle* run_ = nullptr;
    std::vector<GraphNodeHandle*> nodes_;
    uint64_t context_ = 0;
    bool is_refused_ = false;  // by the driver
};

}  // namespace lunaria::gpu
