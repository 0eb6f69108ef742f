// The computation of a generated kernel, independent of any device: a short program over the elements of an index space
// of rows, each a run of `inner` elements. The graph runtime (jit/graph/) writes it, the code generator (jit/codegen/)
// turns it into machine code, and devices run that. They share only this header, so that none needs the libraries of
// another.
//
// Values live on one of two levels: one per element, or one per row. Reductions lead from elements to rows; an element
// may use values of its row. Softmax is: m = max(x); e = exp(x - m); s = sum(e); y = e / s.
//
// A program with a depth has no values of whole rows. It has a third level below the elements instead: each element is
// computed from the points of the axes of the depth, and reductions lead from points to elements. A product of matrices
// is: p = a * b, per point; y = sum(p), per element; neighbours along the row stay in registers meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"

namespace lunaria::graph {

struct LoopOperand {
    enum class Step : uint8_t {
        none,   // one value per row (stride 0 along the row)
        dense,  // neighbours along the row
        wide,   // a stride that is known only when the kernel runs
    };
    DType dtype = DType::f32;
    Step step = Step::dense;
    bool written = false;
    friend bool operator==(const LoopOperand&, const LoopOperand&) = default;
};

struct LoopInstruction {
    enum class Kind : uint8_t {
        load,   // operand `index`
        store,  // args[0] to operand `index`
        add,    // args[0], of dtype `operand`, onto operand `index`, which is seen by several rows; the first of them
                // sets it
        constant,  // `number` (exactly `integer` where dtype is one of integers)
        formula,   // core/ops/formulas.h by name, on operands of `dtype`
        cast,      // args[0] to `dtype`
        reduce,    // args[0] along the row, or over the points of an element: sum, squares (their sum), max, min
        product,   // the `depth` neighbours of the row of operand `index` times a matrix, operand `matrix`
    };
    Kind kind = Kind::constant;
    DType dtype = DType::f32;    // of the result
    DType operand = DType::f32;  // of a formula: the dtype of its computation; halves are computed in f32
    bool row = false;            // level of the result (of a store: of what is stored)
    bool point = false;          // one value per point of the depth
    uint16_t index = 0;
    uint16_t matrix = 0;  // of a product; its rows lie `stride` elements apart, and columns are elements of the row
    std::string name{};
    std::vector<uint16_t> args{};
    double number = 0;
    int64_t integer = 0;
    int64_t depth = 0, stride = 0;
};

struct LoopProgram {
    int outer_rank = 0;  // axes along which rows are counted
    // The axes of the points: sizes that the code is written for, 0 where they are known when it runs. With a depth
    // there are neither has_rows nor has_sums.
    std::vector<int64_t> depth{};
    int tile = 1;           // with a depth: number of vectors of elements that are computed side by side
    bool streams = false;   // results are too large for caches: stores go past them
    bool has_rows = false;  // there are values per row, so that a row must not be split
    bool has_sums = false;  // rows are summed up: row 0 sets the sums and the others add to them
    bool in_order = false;  // all sums are made in the order of core/loops/sum_order.h
    std::vector<LoopOperand> operands;
    std::vector<LoopInstruction> code;

    // Among the numbers in LoopTask::sizes (core/loops/graph_backend.h): the position of the first stride, and the
    // number of strides of an operand.
    size_t first_stride() const { return static_cast<size_t>(outer_rank) + 1 + depth.size(); }
    size_t count_of_strides(size_t operand) const {
        const bool is_wide = operands[operand].step == LoopOperand::Step::wide;
        return static_cast<size_t>(outer_rank) + (is_wide ? 1 : 0) + depth.size();
    }

    // One line per instruction. Equal texts mean equal machine code: the key of the kernel caches.
    std::string text() const;
};

// Whether computing a value again costs more than writing it and reading it.
bool is_expensive(const LoopInstruction& i);
// The values per element that are kept in the scratch memory from one pass over a row to the next, because computing
// them again costs more than reading them: positions in the code, ascending.
std::vector<uint16_t> scratch_values(const LoopProgram& program);
// Bytes that hold any of these values.
size_t scratch_width(const LoopProgram& program);
// The pass over the row in which each value is computed first: reductions of pass k are complete before pass k + 1.
std::vector<int> passes_of(const LoopProgram& program);

// The cost of one element, in additions of floats. `sizes`: those of LoopTask.
int64_t loop_cost(const LoopProgram& program, std::span<const int64_t> sizes);

// The cost of a formula in generated code, in additions of floats; 0: generated code cannot contain it, so that the
// operator stays a kernel of its own. `operand`: the dtype of the operator's computation.
int formula_cost(std::string_view op, DType operand);
// Whether generated code calls the operator's own loop, by the name loop_<dtype>_<operator>; its form is that of
// ElementLoop (backends/cpu/simd/loops.h). Only on the processor that runs the program.
bool is_done_by_loop(std::string_view op, DType operand);
// Whether the formula gives bools, in whatever dtype it computes.
bool gives_bools(std::string_view op);
inline constexpr std::string_view kLoopPrefix = "loop_";

}  // namespace lunaria::graph
