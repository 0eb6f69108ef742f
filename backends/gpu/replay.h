// Work of the stream, piece by piece, and runs of graphs: what a run asks for is gathered and handed over as a graph of
// the driver's, which costs the host one call. A run that asks for the same as the last one, but for numbers that are
// passed to kernels (addresses of results, seeds, learning rates), only has these changed in it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backends/gpu/driver.h"

namespace lunaria::gpu {

// A function of a module. Modules stay; after a loss they are loaded again.
struct ModuleFunction {
    std::string image;
    FunctionHandle* function = nullptr;
    uint64_t context = 0;  // the one that `function` is of
};

struct LaunchShape {
    unsigned blocks = 1, threads = 1, near_bytes = 0;
    bool operator==(const LaunchShape&) const = default;
};

struct Work {
    static constexpr size_t kMostWords = 512;

    const ModuleFunction* kernel = nullptr;  // null: `run` is what is done
    LaunchShape shape{};
    std::vector<uint64_t> words{};  // the kernel's only argument, or what tells the work from other
    size_t operands = 0;            // of the words, from the first one on, are addresses
    std::function<Result(StreamHandle*)> run{};

    Result give(const Driver& driver, StreamHandle* stream) const;
    // Whether a graph that has one of them can have the other by changed words.
    bool is_like(const Work& other) const;
};

// What runs ask for between two points at which the host waits, or something is done that no graph can hold.
class Segment {
  public:
    explicit Segment(const Driver& driver) : driver_(driver) {}
    ~Segment() { forget(); }
    // Handles of a context that is lost are nobody's any more.
    void leave_all_but(uint64_t context);
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

    // Gives the work to the stream: as a graph where it is like that of the last time. `context`: the number of the
    // context that stream is of.
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
