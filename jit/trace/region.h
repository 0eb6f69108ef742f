// Operators of a trace as compiled graphs. A region is a stretch of a block with nothing in it but operators and steps
// that do not depend on their results (guards, arithmetic on numbers): those are done first, then all operators without
// effect at once, then the others: those that write into tensors which no operator of the region reads after them.
// Should one of the steps fail, the operators before it are done one by one.
#pragma once

#include <unordered_map>

#include "jit/graph/executable.h"
#include "jit/trace/guards.h"
#include "jit/trace/trace.h"

namespace lunaria::trace {

struct Region {
    size_t begin = 0, end = 0;  // steps of the block
    size_t operators = 0;
    std::vector<size_t> first;  // the steps that are no operators
    Guards guards;              // of those, what is asked as one
    std::vector<size_t> last;   // operators that write
    std::vector<int32_t> inputs, outputs, drops;
    std::vector<int32_t> numbers;      // that follow from sizes, for which it is compiled
    std::vector<int32_t> inner_drops;  // of what only the graph itself has when it is run as one
    std::vector<size_t> borrowed;      // outputs that only the last operators need
    // Writers into lists of tensors that are done item by item, as soon as each may be: an optimizer with large
    // gradients, none of which has to wait for all.
    struct Early {
        size_t step = 0, item = 0;
        graph::EarlyUse use;
    };
    std::vector<Early> early;
    std::vector<TensorType> types;  // of the inputs
    bool draws = false;             // random numbers
    bool failed = false;            // it cannot be compiled: its operators run one by one
    std::string problem;
    double seconds = 0;  // to compile it
    std::unique_ptr<graph::Executable> executable;
    std::unique_ptr<graph::Executable> elsewhere;  // the same for another device, where inputs have been on two
    // Where the sizes of inputs differ from run to run: what was compiled for which.
    struct Sized {
        std::vector<Shape> shapes;
        std::vector<Value> numbers;
        int runs = 0;
        std::unique_ptr<graph::Executable> executable;
    };
    bool open = false;
    std::vector<Sized> sized;  // the latest first

    template <class F>
    void for_each_executable(F&& f) const {
        if (executable) f(*executable);
        if (elsewhere) f(*elsewhere);
        for (const Sized& one : sized)
            if (one.executable) f(*one.executable);
    }
};

// The types of a path's slots that hold tensors.
struct SlotType {
    TensorType type;
    bool open = false;
    bool number = false;  // none, but a number that follows from sizes
};
using SlotTypes = std::unordered_map<int32_t, SlotType>;

// Finds the regions of a block; those that are as before keep what was compiled. `types` has those of the slots that
// the blocks before it filled, and gets those of this one.
void find_regions(Block& block, SlotTypes& types);
// Puts questions together, in the regions and between them. To be called whenever the block has changed.
void find_guard_groups(Block& block);
// False: the regions of the tree have to be found anew, for an operator that does not fit into one.
bool compile(Block& block, Region& region);
// Has the region's executable be one for the device that the inputs are on.
void place(Block& block, Region& region, std::span<const Tensor> inputs);
// The region's operators as a graph, as text: as they were recorded, or after the passes.
std::string graph_text(Block& block, const Region& region, bool optimized);
// Of an open region: what is compiled for these inputs; null while they are too new.
const graph::Executable* executable_of(Block& block, Region& region, std::span<const Tensor> inputs,
                                       std::span<const Value> numbers);

}  // namespace lunaria::trace
