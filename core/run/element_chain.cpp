#include "core/run/element_chain.h"

#include "core/run/observer.h"
#include "core/tensor/device.h"

namespace lunaria {

namespace {
struct Compiler {
    const Device* device = nullptr;
    ChainCompiler compile = nullptr;
};
Compiler& compiler() {
    static constinit Compiler instance;
    return instance;
}
}  // namespace

void set_chain_compiler(const Device* device, ChainCompiler compile) { compiler() = {device, compile}; }

bool has_chain_kernels() { return compiler().device && current_device() == compiler().device; }

bool runs_chain_kernels() { return has_chain_kernels() && !Observer::current(); }

std::unique_ptr<const ChainKernel> compile_chain(const ElementChain& chain) {
    return has_chain_kernels() ? compiler().compile(chain) : nullptr;
}

}  // namespace lunaria
