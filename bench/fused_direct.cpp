// The chain of elementwise operators that compiled programs are measured by, fused by hand.
#include "bench/direct.h"
#include "bench/fused_reference.h"

namespace {

direct::Run chain(long count, bool around_cache) {
    const float* x = direct::randn(count);
    float* y = direct::randn(count);
    return [=](long calls) {
        for (long i = 0; i < calls; ++i) fused::chain(x, y, count, 1.5f, 0.25f, around_cache);
    };
}

direct::Workload workload(const char* name, long count) {
    return {name, [count] { return direct::fastest({chain(count, false), chain(count, true)}); }};
}

}  // namespace

int main() { return direct::serve({workload("chain_4M", 4 << 20), workload("chain_16K", 16 << 10)}); }
