// What a device does for compiled graphs (jit/graph/). The graph runtime is divided in two. What all devices share:
// passes, the plan of memory in bytes, the list of steps, which are kernels of operators, copies and loops. What is a
// device's own, beside the memory, copies, kernels and order of work that operators need of it too
// (core/tensor/device.h): it makes code for loops and runs that.
//
// A loop is a program over the elements of some operands (core/loops/loop.h) together with all its sizes. A device
//  - gets all loops of a graph at once, when the graph is compiled, and makes of each a LoopCode: machine code and how
//    its work is shared out among threads, blocks or cores. What it finds in the program and what it finds by the sizes
//    is its own business. core/loops/kernels.h finds code that a generator wrote, in the process, on disk, or by the
//    generator; core/loops/thread_loop.h shares work out among blocks of threads;
//  - launches a LoopCode with the addresses of the operands, as often as the graph runs.
// Where a device makes no code for a loop, its operators run by their own kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lunaria::graph {

struct LoopProgram;

// A loop with everything but the addresses of its operands.
struct LoopTask {
    const LoopProgram* program = nullptr;
    // The outer sizes, then `inner`, then the sizes of the depth, then for each operand its strides along the outer
    // axes (in elements), if its step is wide along the row, and along the axes of the depth.
    std::vector<int64_t> sizes;
    int64_t rows = 1, inner = 1;  // how many rows there are, and elements of a row
    // Of each operand: how many bytes its first element lies behind the start of a tensor's memory. A tensor that is
    // given to a run may be a view that lies anywhere in its storage, so that addresses tell more when the loop is
    // launched.
    std::vector<size_t> offsets;
};

// A loop that is ready to run, in whatever form its device has it. May be used by several threads at once.
class LoopCode {
  public:
    virtual ~LoopCode() = default;
    LoopCode() = default;
    LoopCode(const LoopCode&) = delete;
    LoopCode& operator=(const LoopCode&) = delete;
};
// Shared by the graph and by launches that are yet to run when the graph is given up.
using LoopRef = std::shared_ptr<const LoopCode>;

// Runs of one graph over the same temporaries, one after the other. A device may gather what a run asks for and hand it
// over as a whole.
class Replay {
  public:
    virtual ~Replay() = default;
    // What this thread asks for from now on belongs to a run, until it ends.
    virtual void begin() = 0;
    virtual void end() = 0;
    // The run has ended in an error; what it had asked for is done.
    virtual void give_up() noexcept = 0;
};

class Backend {
  public:
    virtual ~Backend() = default;
    // Whether there is any use in cutting a graph into loops.
    virtual bool can_compile() const = 0;
    // Whether its loops add up as the host's kernels do (core/loops/sum_order.h); otherwise in the dtype of the
    // elements.
    virtual bool adds_as_host() const { return true; }
    // For each loop its code, null where the device makes none. The programs end with the call.
    virtual std::vector<LoopRef> compile(std::span<const LoopTask> loops) = 0;
    // Runs a loop of compile(), behind everything that the device was asked for before. `pointers`: the first elements
    // of the operands, addresses of the device.
    virtual void launch(const LoopRef& loop, std::span<void* const> pointers) = 0;
    // For a graph that will run over some temporaries. Null: the device does everything as it is asked for.
    virtual std::unique_ptr<Replay> replay() { return nullptr; }
};

}  // namespace lunaria::graph
