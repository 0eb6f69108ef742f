// The instructions of an AI core, and programs of them. A program is a straight line: the loops around the instructions
// are in the code that wrote it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"

namespace lunaria::ascend {

// The queues of a core, each of which carries out its instructions in order and beside the others: scalar, vector,
// matrix (cube), and the three engines that move data: L1 to L0, global memory to the buffers, buffers to global
// memory.
enum class Pipe : uint8_t { s, v, m, mte1, mte2, mte3 };
inline constexpr int kPipes = 6;

// Global memory and the buffers of a core.
enum class Space : uint8_t { gm, l1, l0a, l0b, l0c, ub };
inline constexpr int kSpaces = 6;

enum class Opcode : uint8_t {
    // Bursts of bytes: n = {bursts, bytes of a burst, stride of the source, of the destination (bytes), and, with a
    // register, the number of bytes by which each unit of it moves the place in global memory}.
    move,
    load2d,  // fractals L1 -> L0A, L0B: n = {fractals, stride of the source, of the destination (fractals), transpose}
    load3d,  // windows of a picture L1 -> L0A, L0B: n = {number in Program::windows}
    mmad,    // L0C = or += L0A * L0B: n = {m, k, n, 1: starts from zero}; f16 adds in f32, i8 in i32
    drain,   // L0C -> UB with conversion: n = {fractals, stride of the source (fractals), 1: negative becomes 0}
    binary,  // elements: n = {repeats, lanes, strides of dst, a, b between repeats (blocks of 32 bytes)}
    unary,   // the same without b
    with_scalar,  // the same with a number in place of b
    convert,      // the same as unary, from `type` to `to`
    compare,      // a bit for each element, dense
    select,       // where the bit of b is set the element of a, else that of the instruction's third operand c
    duplicate,    // a number everywhere
    reduce,       // of each repeat (whole), each block of 32 bytes (group) or each pair: dense results
    transpose,    // 16 x 16 elements of 16 bits: n = {repeats}
    scalar_load,  // an element of UB into a scalar register
    scalar_op,    // scalar registers: n = {register, register}
    set_flag,     // n = {the pipe that sets, the pipe that waits, number}
    wait_flag,
    barrier,  // n = {pipe, or -1 for all}
};

// The kinds of arithmetic of instructions.
enum class Arithmetic : uint8_t {
    add,
    sub,
    mul,
    max,
    min,
    div,
    mla,  // of two; mla adds to what is there
    abs,
    relu,
    exp,
    ln,
    rec,
    rsqrt,
    sqrt,
    copy,  // of one
    adds,
    muls,
    maxs,
    mins,
    axpy,  // with a number; axpy adds to what is there
    lt,
    le,
    gt,
    ge,
    eq,
    ne,  // comparisons
    sum,
    highest,
    lowest,
    group_sum,
    group_max,
    group_min,
    pair  // reductions
};

// Packed into eight bytes, since programs have millions of instructions.
struct Operand {
    Space space : 8 = Space::ub;
    int64_t tensor : 16 = 0;   // number of the tensor in global memory
    int64_t address : 40 = 0;  // in bytes
};
inline constexpr int64_t kMostTensors = int64_t{1} << 15, kMostAddress = int64_t{1} << 39;

// The numbers of load3d, by position.
enum WindowNumber : uint8_t {
    kHeight,
    kWidth,
    kChannels,
    kKernelH,
    kKernelW,
    kStrideH,
    kStrideW,
    kPadTop,
    kPadLeft,
    kPadBottom,
    kPadRight,
    kDilationH,
    kDilationW,
    kFirstRow,
    kRowFractals,
    kFirstStep,
    kStepFractals,
    kWindowNumbers
};

using Window = std::array<int32_t, kWindowNumbers>;

// The numbers of windows down and across; none where the picture is too small for one.
struct WindowCount {
    int64_t rows, columns;
};
WindowCount windows_of(const Window& n);

struct Instruction {
    Opcode op = Opcode::barrier;
    Pipe pipe = Pipe::s;
    Arithmetic kind = Arithmetic::copy;
    DType type = DType::f16, to = DType::f16;
    int8_t reg = -1;    // number in Program::places of the line that wrote it
    int32_t place = 0;  // of the line that wrote it, in Program::places
    float number = 0;
    std::array<int32_t, 5> n{};
    Operand dst, a, b, c;
};

struct Program {
    std::string name;
    std::vector<std::string> places;  // "file:line"
    std::vector<Window> windows;      // of load3d
    std::vector<Instruction> code;
};

const char* name_of(Pipe pipe);
const char* name_of(Space space);
const char* name_of(Opcode op);
const char* name_of(Arithmetic kind);
// The name by which programs call it: moves to and from global memory are "load" and "store".
const char* name_of(const Instruction& i);

}  // namespace lunaria::ascend
