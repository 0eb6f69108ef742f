// A kernel for processors that run threads in blocks, instruction by instruction. Computations that are not loops over
// elements (loop.h), such as a product of matrices, are written in this form by a device and turned into code by the
// generator.
//
// A value is one number of one dtype; each instruction with a result defines one, known by its position in the code.
// Loops and conditions are pairs of instructions around others. A kernel reads 8-byte words that the launch passes;
// addresses among them are those of tensors, indices count elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"

namespace lunaria::graph {

struct ThreadInstruction {
    enum class Kind : uint8_t {
        constant,  // `number`, or `integer` where dtype is one of integers
        word,      // number `integer` of the words that the launch passes, an i64
        thread,    // the number of this thread in its block, an i32
        threads,   // the number of threads in the block
        block,     // the number of this block, an i32
        blocks,    // the number of blocks
        add,
        sub,
        mul,
        div,          // of floats
        quotient,     // of integers that are not negative
        remainder,    // of integers that are not negative
        bit_and,      // of integers or booleans
        bit_or,       // of integers or booleans
        bit_xor,      // of integers or booleans
        shift_left,   // by args[1]
        shift_right,  // by args[1], zeros come in
        less,
        equal,
        select,      // args[1] where args[0], else args[2]
        formula,     // of core/ops/formulas.h, by `name`; computes in the dtype of its last operand
        cast,        // to dtype
        widen,       // an i32 as an i64, zeros in front
        bits,        // the bits of args[0] as another dtype of the same size
        load,        // element args[1] of the tensor at the address args[0]
        store,       // args[2] to element args[1] of the tensor at args[0]
        add_to,      // adds args[2] to the element atomically
        raise_to,    // raises the integer element to args[2] if that is larger, atomically
        near_load,   // element args[0] of the block's memory from byte `integer` on
        near_store,  // args[1] to element args[0] of it
        barrier,     // the threads of the block wait for each other
        exchange,    // args[0] of the thread of the warp whose number differs by the bits `integer`
        pair,        // two f32, args[0] in the lower half of an i32, as f16 or, where `integer` is 1, bf16
        fragment,    // into variables args[1..4], i32, what this thread of a warp has of a block of 16 x 16 elements of
                     // 16 bits, which is in the block's memory from element args[0] of byte `integer` on, rows
                     // `number` elements apart: of each quarter (upper left, lower left, upper right, lower right) two
                     // neighbours of row lane / 4, or of that column where `name` is "turned"
        product,     // onto variables args[6..9], f32, fragments of a block of 16 x 16 (args[0..3]) times one of 16 x 8
                     // (args[4..5]), whose elements are of dtype
        power_of_2,  // 2 to args[0], an f32, to a few units in the last place; less than any number of full precision:
                     // 0
        variable,    // with args[0] in it
        get,         // the content of variable args[0]
        set,         // args[1] into it
        loop,        // up to its `end` for each number from args[0] below args[1] in steps of args[2], an i64 or i32;
                     // `integer` iterations side by side
        condition,   // up to its `end` where args[0]
        end,
    };
    Kind kind = Kind::constant;
    DType dtype = DType::f32;  // of the result, or of what is stored
    std::vector<uint32_t> args{};
    std::string name{};
    double number = 0;
    int64_t integer = 0;
    uint8_t align = 0;  // of a near_load: alignment of its address in bytes; 0: that of the element
};

struct ThreadProgram {
    std::vector<ThreadInstruction> code;
    int threads = 0;        // of a block
    size_t words = 0;       // that the launch passes
    size_t near_bytes = 0;  // memory of a block
    bool exact = false;     // products and sums are rounded separately

    // Equal texts mean equal machine code: the key of the kernel caches.
    std::string text() const;
};

}  // namespace lunaria::graph
