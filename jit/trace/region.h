// Operators of a trace as compiled graphs. A region is a stretch of a block that consists of operators and of steps
// that do not depend on their results (guards, arithmetic on numbers). Those steps run first, then all operators
// without effect at once, then the operators that write into tensors which no later operator of the region reads. If
// one of the steps fails, the operators before it run one by one.
#pragma once

#include <unordered_map>

#include "jit/graph/divided.h"
#include "jit/graph/executable.h"
#include "jit/trace/guards.h"
#include "jit/trace/trace.h"

namespace lunaria::trace {

struct Region {
    size_t begin = 0, end = 0;  // steps of the block
    size_t operators = 0;
    std::vector<size_t> first;  // the steps that are not operators
    Guards guards;              // the guards among these that are asked as one
    std::vector<size_t> last;   // operators that write
    std::vector<int32_t> inputs, outputs, drops;
    std::vector<int32_t> numbers;      // that follow from sizes; the graph is compiled for them
    std::vector<int32_t> inner_drops;  // dropped slots that only the graph itself has when it runs as one
    std::vector<size_t> borrowed;      // outputs that only the last operators need
    // Writers into lists of tensors that run item by item, each as soon as possible: an optimizer with large gradients,
    // none of which has to wait for all.
    struct Early {
        size_t step = 0, item = 0;
        graph::EarlyUse use;
    };
    std::vector<Early> early;
    std::vector<TensorType> types;  // of the inputs
    bool draws = false;             // draws random numbers
    bool exchanges = false;         // has ordered operators: they are not run again
    bool lays_out = false;          // lays tensors out on ranks
    bool failed = false;            // it cannot be compiled: its operators run one by one
    std::string problem;
    double seconds = 0;  // to compile it
    std::unique_ptr<graph::Executable> executable;
    std::unique_ptr<graph::Executable> elsewhere;  // the same for another device, where inputs have been on two devices
    // Where the sizes of inputs differ from run to run: the compiled forms, by sizes.
    struct Sized {
        std::vector<Shape> shapes;
        std::vector<Value> numbers;
        int runs = 0;
        std::unique_ptr<graph::Executable> executable;
    };
    bool open = false;
    std::vector<Sized> sized;                        // the latest first
    std::unique_ptr<graph::Divided> divided;         // the forms for tensors that lie on several ranks
    std::unordered_map<int32_t, int> divided_nodes;  // the slots of values, and the ids of their nodes in that graph

    template <class F>
    void for_each_executable(F&& f) const {
        if (executable) f(*executable);
        if (elsewhere) f(*elsewhere);
        for (const Sized& one : sized)
            if (one.executable) f(*one.executable);
        if (divided && divided->executable()) f(*divided->executable());
    }
};

// The types of the slots on a path that hold tensors.
struct SlotType {
    TensorType type;
    bool open = false;
    bool number = false;  // no tensor, but a number that follows from sizes
};
using SlotTypes = std::unordered_map<int32_t, SlotType>;

// Finds the regions of a block; unchanged ones keep their compiled forms. `types` holds those of the slots that the
// blocks before it filled, and gets those of this one.
void find_regions(Block& block, SlotTypes& types);
// Groups the guards, in the regions and between them. To be called whenever the block has changed.
void find_guard_groups(Block& block);
// False: the regions of the tree have to be found anew, because an operator does not fit into one. `waits`: code is
// generated when that is likely to pay.
bool compile(Block& block, Region& region, bool waits = false);
// Makes the region's executable one for the device of the inputs, and gives it; null where operators run one by one.
const graph::Executable* place(Block& block, Region& region, std::span<const Tensor> inputs, bool waits);
// Whether the region runs in pieces: it lays tensors out, or some of its inputs are on a device that runs whole
// operators.
bool is_divided(const Region& region, std::span<const Tensor> inputs);
// Runs such a region. False: its operators have to run one by one.
bool run_divided(Block& block, Region& region, std::span<const Tensor> inputs, std::span<const Value> numbers,
                 std::span<Tensor> outputs, const std::function<void()>& last);
// The types with layouts of the record's nodes, in calls whose tensors lie on ranks, as the last of them was.
std::unordered_map<const ir::Node*, std::string> layouts_of(const Tree& tree);
// The region's operators as a graph, as text: as they were recorded, or after the passes.
std::string graph_text(Block& block, const Region& region, bool optimized);
// For an open region: the compiled form for these inputs; null while there is none yet.
const graph::Executable* executable_of(Block& block, Region& region, std::span<const Tensor> inputs,
                                       std::span<const Value> numbers, bool waits);

}  // namespace lunaria::trace
