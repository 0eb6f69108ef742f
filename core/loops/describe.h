// The fields of a loop program in the order of files, once for all of them. An archive brings describe() for numbers,
// texts and vectors, one_of() for enumerators and fields(), which are found by its namespace.
#pragma once

#include "core/loops/loop.h"

namespace lunaria::graph {

template <class A>
void describe(A& a, LoopOperand& o) {
    describe(a, o.dtype);
    one_of(a, o.step, LoopOperand::Step::wide);
    describe(a, o.written);
}
template <class A>
void describe(A& a, LoopInstruction& i) {
    one_of(a, i.kind, LoopInstruction::Kind::product);
    fields(a, i.dtype, i.operand, i.row, i.point, i.index, i.matrix, i.name, i.args, i.number, i.integer, i.depth,
           i.stride);
}
template <class A>
void describe(A& a, LoopProgram& p) {
    fields(a, p.outer_rank, p.depth, p.tile, p.streams, p.has_rows, p.has_sums, p.in_order, p.operands, p.code);
}

}  // namespace lunaria::graph
