// The interpreter's form of a loop program (core/loops/loop.h): operations on registers, each of which works on a block
// of elements, so that the choice of the next operation costs little beside it.
//
// A block is a part of one long row, or several short rows side by side, each with room for `pitch` elements. Where the
// elements of a row are kept from one pass over it to the next (rows that fit a block) each value is computed once;
// otherwise a pass computes again what it needs. Values of rows lie in registers of their own, one number for each row
// of the block, or kGroup copies of the number of a single row.
//
// An operand whose elements are the same bytes in memory and in registers is read in place. So that a result may take
// the memory of an operand, results are stored at the end of a block.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/lite/runtime/plain_blocks.h"
#include "core/loops/loop.h"

namespace lunaria::lite {

struct LoopOperation {
    enum class Kind : uint8_t {
        load,      // a block of operand `operand`
        load_row,  // one element of each row
        call,      // `run` on `args`
        spread,    // a value of rows to all elements of the rows
        product,   // operand `operand` times the matrix `matrix`
        points,    // a reduction over points: code().points[index]
        reduce,    // args[0] along the rows, to accumulator `index`
        store,     // args[0]
        store_row,
        add,  // args[0] to the sum `index` of rows
    };
    Kind kind = Kind::call;
    DType dtype = DType::f32;  // of the result, or of what is stored
    bool row = false;          // on values of rows
    bool direct = false;       // of a call: its result is written to operand `operand` where that is possible
    uint8_t arguments = 0;
    uint16_t operand = 0, matrix = 0, index = 0;
    uint16_t out = 0;  // values
    uint16_t args[kMostArguments] = {};
    int64_t step[kMostArguments] = {};
    BlockFunction run = nullptr;
    MemoryFunction memory = nullptr;
    int64_t depth = 0, stride = 0;
};

enum class Reduction : uint8_t { sum, squares, max, min };

struct LoopCode {
    struct Value {
        Lane lane = Lane::single;
        bool row = false;
        bool constant = false;
        size_t offset = 0;  // of its register in the scratch memory; of a constant: in `constants`
    };
    struct Pass {
        std::vector<LoopOperation> rows, elements, stores;
        std::vector<uint16_t> reductions;  // accumulators
    };
    struct Accumulator {
        Reduction reduction = Reduction::sum;
        DType operand = DType::f32, dtype = DType::f32;
        uint16_t out = 0;
    };
    struct Points {
        Reduction reduction = Reduction::sum;
        DType operand = DType::f32, dtype = DType::f32;
        uint16_t arg = 0, out = 0;
        bool wide = false;  // sums of f32 are made in f64
        std::vector<LoopOperation> code;
        size_t sums = 0;  // offset in the scratch memory
    };
    struct Operand {
        DType dtype = DType::f32;
        graph::LoopOperand::Step step = graph::LoopOperand::Step::dense;
        std::vector<int64_t> strides;  // along the outer axes, in bytes
        int64_t wide = 0;              // along the row, in bytes
        std::vector<int64_t> points;   // along the axes of the depth, in bytes
        bool is_flat = true;           // the rows are neighbours
    };
    struct Sum {
        uint16_t operand = 0;
        DType dtype = DType::f32;  // in memory
    };

    std::vector<int64_t> outer, depth;
    int64_t rows = 1, inner = 1;
    int64_t batch = 1;     // rows of a block
    int64_t pitch = 0;     // elements of a row of a block
    int64_t capacity = 0;  // elements of a register
    bool has_rows = false;
    std::vector<Operand> operands;
    std::vector<Value> values;
    std::vector<Pass> passes;
    std::vector<Accumulator> accumulators;
    std::vector<Points> points;
    std::vector<Sum> sums;
    std::unique_ptr<char[]> constant_memory;
    char* constants = nullptr;  // 64-byte aligned
    size_t scratch = 0;         // bytes for one thread
    size_t tables = 0;          // where the tables begin in it
    int64_t part = 1;           // number of elements that are worth a thread
};

// The code of a program with the sizes of LoopTask (core/loops/graph_backend.h), which core/loops/loop_check.h finds
// right; null and a message in `fault` where it cannot be computed.
std::unique_ptr<LoopCode> make_loop(const graph::LoopProgram& program, std::span<const int64_t> sizes,
                                    std::string& fault);

// How a loop is divided: parts of `rows` rows, or parts of columns.
struct LoopPart {
    int64_t row_begin = 0, row_end = 0, column_begin = 0, column_end = 0;
};
// The number of parts for so many threads, and one of them.
int parts_of(const LoopCode& code, int threads);
LoopPart part_of(const LoopCode& code, int parts, int number);

// `operands`: addresses of the first elements. `scratch`: 64-byte aligned memory of this thread.
void run_loop(const LoopCode& code, void* const* operands, const LoopPart& part, char* scratch);

}  // namespace lunaria::lite
