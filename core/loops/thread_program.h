// A kernel for processors that run threads in blocks, instruction by instruction. What is no loop over elements
// (loop.h), such as a product of matrices, is written in this form by a device and turned into code by the generator.
//
// A value is one number of one dtype; there is one for each instruction that gives one, known by its position in the
// code. Loops and conditions are pairs of instructions around others. A kernel reads 8-byte words that the launch
// passes; addresses among them are those of tensors, indices count elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace lunaria::graph {

struct ThreadInstruction {
    enum class Kind : uint8_t {
        constant,  // `number`, or `integer` where dtype is one of integers
        word,      // number `integer` of the words that the launch passes, an i64
        thread,    // the number of this thread in its block, an i32
        threads,   // how many there are
        block,     // the number of this block, an i32
        blocks,    // how many there are
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
        add_to,      // args[2] onto it, which several threads may do at once
        raise_to,    // the larger one of args[2] and what is there, of integers, likewise
        near_load,   // element args[0] of the block's memory from byte `integer` on
        near_store,  // args[1] to element args[0] of it
        barrier,     // the threads of the block wait for each other
        exchange,    // args[0] of the thread of the warp whose number differs by the bits `integer`
        variable,    // with args[0] in it
        get,         // what is in variable args[0]
        set,         // args[1] into it
        loop,        // up to its `end` for each number from args[0] below args[1] in steps of args[2], an i64 or i32
        condition,   // up to its `end` where args[0]
        end,
    };
    Kind kind = Kind::constant;
    DType dtype = DType::f32;  // of the result, or of what is stored
    std::vector<uint32_t> args{};
    std::string name{};
    double number = 0;
    int64_t integer = 0;
    uint8_t align = 0;  // of a near_load: bytes that its place is a multiple of; 0: those of the element
};

struct ThreadProgram {
    std::vector<ThreadInstruction> code;
    size_t words = 0;       // that the launch passes
    size_t near_bytes = 0;  // memory of a block
    bool exact = false;     // products and sums round one after the other

    // Equal texts mean equal machine code: the key of the kernel caches.
    std::string text() const;
};

}  // namespace lunaria::graph
