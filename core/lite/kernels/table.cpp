// The table of an instruction set. Compiled once for each.
#include "core/lite/kernels/table.h"

#include "core/lite/kernels/float_products.h"
#include "core/lite/kernels/integer_products.h"
#include "core/lite/kernels/rows.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

const Table& table() {
#if defined(__AVX512VNNI__)
    // Floats are computed as with AVX-512 alone.
    static const Table kTable = [] {
        Table t = avx512::table();
        t.integer_product = integer_product;
        t.integer_direct = integer_direct;
        t.integer_depthwise = integer_depthwise;
        t.quantize = quantize;
        t.dequantize = dequantize;
        t.integer_sum = integer_sum;
        t.block_product = block_product;
        return t;
    }();
#else
    static constexpr Table kTable{
        .product = product,
        .batched_product = batched_product,
        .direct = direct,
        .winograd = winograd,
        .depthwise = depthwise,
        .epilogue = apply,
        .integer_product = integer_product,
        .integer_direct = integer_direct,
        .integer_depthwise = integer_depthwise,
        .quantize = quantize,
        .dequantize = dequantize,
        .integer_sum = integer_sum,
        .block_product = block_product,
    };
#endif
    return kTable;
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
