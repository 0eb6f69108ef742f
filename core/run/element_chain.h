// A straight line of elementwise operators on operands of one shape, which a device can run in one go: nothing is
// looked up or allocated on the way, and intermediate values stay in the cache. The results are those of the operators
// one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/tensor/dtype.h"

namespace lunaria {

class Device;
class Op;

struct ElementChain {
    struct Step {
        const Op* op = nullptr;
        std::vector<int> operands;  // values: the inputs, then the results of the steps
    };
    DType dtype = DType::f32;  // of all values but masks, which are bool
    int inputs = 0;
    std::vector<Step> steps;
    std::vector<int> outputs;  // steps whose results are wanted, in their order
};

// A chain that a device has compiled. Its users share it; it may run on several threads at once.
class ChainKernel {
  public:
    virtual ~ChainKernel() = default;
    // Input i starts at in[i] and is dense (step[i] = 1) or one value for all (0), output j is dense; they have `count`
    // elements. An output may take the place of an input that is not read by a later step than its own.
    virtual void run(const void* const* in, const int64_t* step, void* const* out, int64_t count) const = 0;
};

// Null: the device has no such kernel.
using ChainCompiler = std::unique_ptr<const ChainKernel> (*)(const ElementChain& chain);

// Sets the function that compiles chains for a device. At most one device has such a function.
void set_chain_compiler(const Device* device, ChainCompiler compiler);
// Whether the current device compiles chains.
bool has_chain_kernels();
// Whether they may run: an observer has to see the operators one by one.
bool runs_chain_kernels();
// Compiles a chain for the current device; null when the device has no kernel for it.
std::unique_ptr<const ChainKernel> compile_chain(const ElementChain& chain);

}  // namespace lunaria
