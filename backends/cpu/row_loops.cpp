#include "backends/cpu/row_loops.h"

#include <array>

#include "backends/cpu/elementwise.h"

namespace lunaria::cpu {

namespace {

// A table is filled by code of its instruction set, which processors without it must not run.
std::array<RowLoops, 3> all_loops() {
    std::array<RowLoops, 3> all;
    v2::fill_reduce_loops(all[0]);
    v2::fill_integer_loops(all[0]);
    v2::fill_softmax_loops(all[0]);
    v2::fill_norm_loops(all[0]);
    v2::fill_loss_loops(all[0]);
    if (isa_available(Isa::avx2)) {
        avx2::fill_reduce_loops(all[1]);
        avx2::fill_integer_loops(all[1]);
        avx2::fill_softmax_loops(all[1]);
        avx2::fill_norm_loops(all[1]);
        avx2::fill_loss_loops(all[1]);
    }
    if (isa_available(Isa::avx512)) {
        avx512::fill_reduce_loops(all[2]);
        avx512::fill_integer_loops(all[2]);
        avx512::fill_softmax_loops(all[2]);
        avx512::fill_norm_loops(all[2]);
        avx512::fill_loss_loops(all[2]);
    }
    return all;
}

}  // namespace

const RowLoops& row_loops() {
    static const std::array<RowLoops, 3> all = all_loops();
    return all[static_cast<size_t>(current_isa())];
}

}  // namespace lunaria::cpu
