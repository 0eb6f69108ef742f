// The tables of an instruction set. Compiled once for each.
#include "core/lite/kernels/table.h"

#include "core/lite/kernels/float_products.h"
#include "core/lite/kernels/integer_products.h"
#include "core/lite/kernels/rows.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

const Products& products() {
#if defined(__AVX512VNNI__)
    static const Products kProducts = [] {
        Products all = avx512::products();
        all.of_blocks = block_product;
        return all;
    }();
#else
    static constexpr Products kProducts{
        .product = product, .batched = batched_product, .of_blocks = block_product, .epilogue = apply};
#endif
    return kProducts;
}

#if !defined(__AVX512VNNI__)
const Convolutions& convolutions() {
    static constexpr Convolutions kConvolutions{.direct = direct, .winograd = winograd, .depthwise = depthwise};
    return kConvolutions;
}
#endif

const Integers& integers() {
    static constexpr Integers kIntegers{.product = integer_product,
                                        .direct = integer_direct,
                                        .depthwise = integer_depthwise,
                                        .quantize = quantize,
                                        .dequantize = dequantize,
                                        .sum = integer_sum};
    return kIntegers;
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
