// Any bytes are a compressed update of numbers, or an Error.
#include <cstdlib>

#include "core/base/error.h"
#include "core/federated/compression.h"
#include "core/federated/signds.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lunaria::federated;
    if (size == 0) return 0;
    const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    const auto finite = [](const std::vector<double>& values) {
        for (const double v : values)
            if (!(v - v == 0)) std::abort();
    };
    try {
        switch (data[0] % 5) {
            case 0:
                finite(from_sparse_quantised({1000, 0.1, 7, 8, 0}, rest));
                break;
            case 1:
                finite(from_sparse_quantised({1000, 0.1, 7, 3, 16}, rest));
                break;
            case 2:
                finite(from_top_k(1000, 50, rest));
                break;
            case 3: {
                SignDSPlan plan;
                plan.size = 1000;
                plan.k = 0.1;
                plan.epsilon = 5;
                plan.find("fuzz");
                (void)read_signds(plan, rest);
                break;
            }
            default:
                (void)unpacked_bits("fuzz", rest, 1 + data[0] % 32, size);
        }
    } catch (const lunaria::Error&) {
    }
    return 0;
}
