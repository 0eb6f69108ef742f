// What a generated kernel computes, without saying how: a short program over the elements of an index space of rows,
// each a run of `inner` elements. The graph runtime (jit/graph/) writes it, the code generator (jit/codegen/) turns it
// into machine code, and devices run that; this header is all that they share, so that none needs the other's
// libraries.
//
// Values live on one of two levels: one per element, or one per row. Reductions lead from elements to rows; an element
// may use values of its row. So softmax is: m = max(x); e = exp(x - m); s = sum(e); y = e / s.
//
// A program with a depth has no values that are made from whole rows. Its elements stand before a third level instead:
// each is computed from the points of the axes of the depth, and reductions lead from points to elements. So a product
// of matrices is: p = a * b, per point; y = sum(p), per element; neighbours along the row stay in registers meanwhile.
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
        wide,   // a stride that is only known when the kernel runs
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
    DType operand = DType::f32;  // of a formula: what it computes in; halves are computed in f32
    bool row = false;            // level of the result (of a store: of what is stored)
    bool point = false;          // it is one value per point of the depth
    uint16_t index = 0;
    uint16_t matrix = 0;  // of a product; its rows lie `stride` elements apart, and columns are elements of the row
    std::string name{};
    std::vector<uint16_t> args{};
    double number = 0;
    int64_t integer = 0;
    int64_t depth = 0, stride = 0;
};

struct LoopProgram {
    int outer_rank = 0;  // axes that rows are counted along
    // The axes of the points: sizes that the code is written for, 0 where they are known when it runs. With a depth
    // there are neither has_rows nor has_sums.
    std::vector<int64_t> depth{};
    int tile = 1;           // with a depth: how many vectors of elements are computed side by side
    bool streams = false;   // results are too large for caches: stores go past them
    bool has_rows = false;  // there are values per row, so that a row must not be split
    bool has_sums = false;  // rows add up: row 0 sets the sums and the others add to what is there
    bool in_order = false;  // all sums are made in the order of core/loops/sum_order.h
    std::vector<LoopOperand> operands;
    std::vector<LoopInstruction> code;

    // Of the numbers that LoopTask has (core/loops/graph_backend.h): the place of the first stride, and how many
    // strides there are of an operand.
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
// Which values per element are kept in the scratch memory from one pass over a row to the next, because they cost more
// than reading them back: positions in the code, ascending.
std::vector<uint16_t> scratch_values(const LoopProgram& program);
// Bytes that any of them fits in.
size_t scratch_width(const LoopProgram& program);
// The pass over the row in which each value is computed first: reductions of pass k are complete before pass k + 1.
std::vector<int> passes_of(const LoopProgram& program);

// What one element costs, in additions of floats. `sizes`: those of LoopTask.
int64_t loop_cost(const LoopProgram& program, std::span<const int64_t> sizes);

// What generated code may be made of. `operand`: the dtype that the operator computes in. 0: it must stay a kernel of
// its own; else its cost in additions of floats.
int formula_cost(std::string_view op, DType operand);
// Whether generated code calls the loop that the operator has alone, by the name loop_<dtype>_<operator>; its
// form is that of ElementLoop (backends/cpu/simd/loops.h). Only on the processor that runs the program.
bool is_done_by_loop(std::string_view op, DType operand);
// Whether the formula gives bools, whatever it computes in.
bool gives_bools(std::string_view op);
inline constexpr std::string_view kLoopPrefix = "loop_";

}  // namespace lunaria::graph
