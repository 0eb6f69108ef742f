// The kinds of reductions that the loops over rows and columns cover.
#pragma once

#include "backends/cpu/reduce.h"

namespace lunaria::cpu {

// outer × n × inner with n reduced; or repeat × outer × n with repeat and n reduced.
struct Pattern {
    bool known = false;
    int64_t repeat = 1, outer = 1, n = 1, inner = 1;

    // One row.
    explicit Pattern(int64_t n) : known(n != 0), n(n) {}
    explicit Pattern(const ReduceLayout& l) {
        int kept = l.kept.rank(), reduced = l.reduced.rank();
        if (l.count == 0 || l.outputs == 0) return;
        if (reduced == 0) {
            // If every reduced axis has size 1, as in per-sample gradients: rows of one element.
            known = true;
            outer = l.outputs;
        } else if (reduced == 1 && kept <= 2) {
            n = l.reduced[0];
            int64_t stride = l.reduced_strides[0];
            known = true;
            inner = stride;  // the elements inside the reduced axis are dense
            outer = l.outputs / inner;
        } else if (reduced == 2 && kept == 1 && l.reduced_strides[1] == 1) {
            known = true;
            repeat = l.reduced[0];
            n = l.reduced[1];
            outer = l.kept[0];
        }
    }
};

}  // namespace lunaria::cpu
