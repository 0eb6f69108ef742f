// Numbers to blocks and back (blocks.h), row by row as core/tensor/blocks.h does it.
#include "core/lite/kernels/blocks.h"

#include "core/tensor/blocks.h"

namespace lunaria::lite::kernels {

namespace {

const BlockForm& form_of(WeightType type) { return *find_block_form(type == WeightType::q8_0 ? "q8_0" : "q4_0"); }

}  // namespace

void quantize_blocks(WeightType type, int64_t n, int64_t k, const float* from, int64_t from_row, void* to) {
    const BlockForm& form = form_of(type);
    for (int64_t j = 0; j < n; ++j)
        form.encode(from + j * from_row, k / kBlock, static_cast<uint8_t*>(to) + j * form.row_bytes(k));
}

void dequantize_blocks(WeightType type, int64_t n, int64_t k, const void* from, float* to, int64_t to_row) {
    const BlockForm& form = form_of(type);
    for (int64_t j = 0; j < n; ++j)
        form.decode(static_cast<const uint8_t*>(from) + j * form.row_bytes(k), k / kBlock, to + j * to_row);
}

}  // namespace lunaria::lite::kernels
