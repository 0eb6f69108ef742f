// The device's part of the graph runtime (jit/graph/). All devices share one part: passes, the plan of memory in bytes,
// and the list of steps, which are kernels of operators, copies and loops. The other part is the device's own: code for
// loops, and running it, beside the memory, copies, kernels and order of work that operators need too
// (core/tensor/device.h).
//
// A loop is a program over the elements of some operands (core/loops/loop.h) together with all its sizes. A device
//  - gets all loops of a graph at once, when the graph is compiled, and makes of each a LoopCode: machine code and the
//    division of its work among threads, blocks or cores. The device decides what it takes from the program and what
//    from the sizes. core/loops/kernels.h finds code that a generator wrote, in the process, on disk, or by the
//    generator; core/loops/thread_loop.h divides work among blocks of threads;
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

// A loop, complete except for the addresses of its operands.
struct LoopTask {
    const LoopProgram* program = nullptr;
    // The outer sizes, then `inner`, then the sizes of the depth, then for each operand its strides along the outer
    // axes (in elements), if its step is wide along the row, and along the axes of the depth.
    std::vector<int64_t> sizes;
    int64_t rows = 1, inner = 1;  // number of rows, and of elements in a row
    // For each operand the distance in bytes from the start of a tensor's memory to its first element. A tensor that is
    // given to a run may be a view anywhere in its storage, so that only the addresses at launch tell its alignment.
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
// Shared by the graph and by launches that are still to run when the graph is destroyed.
using LoopRef = std::shared_ptr<const LoopCode>;

// Runs of one graph over the same temporaries, one after the other. A device may collect the work of a run and submit
// it as a whole.
class Replay {
  public:
    virtual ~Replay() = default;
    // Work that this thread asks for between begin and end belongs to a run.
    virtual void begin() = 0;
    virtual void end() = 0;
    // The run ended in an error; the work that it had asked for is done.
    virtual void give_up() noexcept = 0;
};

class Backend {
  public:
    virtual ~Backend() = default;
    // Whether cutting a graph into loops is of any use on this device.
    virtual bool can_compile() const = 0;
    // Whether its loops add up as the host's kernels do (core/loops/sum_order.h); otherwise in the dtype of the
    // elements.
    virtual bool adds_as_host() const { return true; }
    // The code for each loop, null where the device makes none. The programs are valid during the call only.
    virtual std::vector<LoopRef> compile(std::span<const LoopTask> loops) = 0;
    // Runs a loop of compile(), after all work that the device was asked for before. `pointers`: the first elements of
    // the operands, addresses of the device.
    virtual void launch(const LoopRef& loop, std::span<void* const> pointers) = 0;
    // For a graph that will run over some temporaries. Null: the device starts all work at once.
    virtual std::unique_ptr<Replay> replay() { return nullptr; }
};

}  // namespace lunaria::graph
