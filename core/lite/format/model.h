// A light model in memory: a program of a network that is ready to run, as the converter (jit/lite/) writes it and the
// runtime (core/lite/runtime/) runs it. Its steps are kernels of operators, copies and loop programs over values; each
// value has a place: given by the caller, part of the file, or in the arena, whose layout follows from the steps
// (arena.h).
//
// Sizes of inputs may be left open. Each number that depends on them (a shape, a stride, an attribute) is kept with its
// formula, so that a model is resized by computing the numbers again; the steps stay the same.
//
// Elements of constants and machine code are not copied: `data` points into the bytes that the model was read from,
// which have to live longer. Everything here is plain data; sizes.h computes numbers, check.h checks a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/loops/loop.h"
#include "core/tensor/dtype_list.h"

namespace lunaria::lite {

inline constexpr uint32_t kNone = UINT32_MAX;  // instead of an index: there is none

// A whole number. With a formula it depends on the sizes of inputs; `value` is then the number for the sizes that the
// model was converted for.
struct Number {
    int64_t value = 0;
    uint32_t formula = kNone;  // of Model::formulas
    Number() = default;
    Number(int64_t v, uint32_t f = kNone) : value(v), formula(f) {}
    friend bool operator==(const Number&, const Number&) = default;
};

// An expression in postfix form over Model::dimensions.
struct Formula {
    enum class Kind : uint8_t { constant, dimension, add, subtract, multiply, divide, least, most };  // divide: floor
    struct Term {
        Kind kind = Kind::constant;
        int64_t value = 0;  // of a constant; of a dimension its index
        friend bool operator==(const Term&, const Term&) = default;
    };
    std::vector<Term> terms{};
    friend bool operator==(const Formula&, const Formula&) = default;
};

// An open size of inputs. The shape of at least one input holds it as it is: a formula of one term.
struct Dimension {
    std::string name{};
    int64_t size = 0;             // that the model was converted for
    int64_t least = 1, most = 0;  // most 0: no limit
    int64_t step = 1;             // other sizes differ from it by multiples of this
};

// The stored form of elements. Blocks hold 32 neighbours along the last axis: q8_0 an f16 scale and 32 int8 (34 bytes);
// q4_0 an f16 scale and 16 bytes, element i in the low four bits of byte i and element i + 16 in the high ones, minus 8
// (18 bytes). The dtype of a value in blocks is that of its elements when they are unpacked.
enum class Form : uint8_t { plain, q8_0, q4_0 };
inline constexpr int64_t kBlock = 32;

// The real number of an integer q is scale * (q - zero).
struct Quantization {
    uint8_t bits = 8;
    int32_t axis = -1;        // of the scales; -1: one scale for the whole value
    uint32_t scales = kNone;  // a constant of f32, [1] or [size of the axis]
    uint32_t zeros = kNone;   // a constant of i32 of the same shape; kNone: all are 0
};

struct Value {
    enum class Home : uint8_t {
        input,     // memory of the caller
        constant,  // of the file
        variable,  // the runtime's memory from run to run: a weight that is trained, a state; it begins with the bytes
                   // of the file, or with zeros where there are none
        arena,     // a temporary
        output,    // memory that outlives the run
    };
    std::string name{};  // of an input, an output, a weight; otherwise empty
    DType dtype = DType::f32;
    Form form = Form::plain;
    Home home = Home::arena;
    std::vector<Number> shape{};  // the elements are dense
    uint32_t quantization = kNone;
    // In the arena or an output: the value of the arena whose memory the step that makes this one may write into, since
    // it reads each element before it writes it and no later step needs the old ones.
    uint32_t shares = kNone;
    const std::byte* data = nullptr;  // constant, variable; aligned to 64 bytes
    uint64_t bytes = 0;               // at `data`

    bool is_stored() const { return home == Home::constant || home == Home::variable; }  // in the file
};

// A value as a step reads or writes it.
struct View {
    uint32_t value = kNone;                  // kNone: the operand is absent
    bool whole = true;                       // the value as it is; otherwise:
    std::vector<Number> shape{}, strides{};  // strides in elements
    Number offset{};                         // of the first element, in elements
};

struct Attribute {
    enum class Kind : uint8_t { integers, numbers, text };  // bools are 0 and 1; dtypes are DType as an integer
    std::string name{};
    Kind kind = Kind::integers;
    std::vector<Number> integers{};
    std::vector<double> numbers{};
    std::string text{};
};

// A number of a loop program that depends on the sizes of inputs.
struct Patch {
    enum class Field : uint8_t { number, inverse, integer, depth, stride };  // inverse: the number is 1 / value
    uint32_t instruction = 0;
    Field field = Field::number;
    Number value{};
};

struct Step {
    std::string kind{};  // "loop", "copy", or a kernel of those listed in jit/lite/README.md
    std::vector<View> operands{}, results{};
    std::vector<Attribute> attributes{};
    // Of a loop. Its k-th operand is the next of `results` where the program writes it, otherwise the next of
    // `operands`; of these views only value and offset count, since `sizes` holds the strides.
    uint32_t loop = kNone;
    std::vector<Number> sizes{};  // as LoopTask has them; rows is the product of the outer ones
    std::vector<Patch> patches{};

    std::string label{};   // the operators that it computes
    std::string node{};    // the name of the first of them in the model that was converted; often empty
    std::string source{};  // where it was written: file:line
    uint32_t nodes = 1;    // number of operators in it
    double flops = 0;      // for the sizes that the model was converted for
};

// Machine code of a loop, position-independent, its entry at the first byte.
struct Code {
    std::string target{};
    const std::byte* data = nullptr;
    uint64_t bytes = 0;
};

struct Loop {
    graph::LoopProgram program{};
    std::vector<Code> codes{};
};

struct Model {
    std::vector<Dimension> dimensions{};
    std::vector<Formula> formulas{};
    std::vector<Quantization> quantizations{};
    std::vector<Value> values{};
    std::vector<uint32_t> inputs{}, outputs{};  // values, in the order of the caller
    std::vector<Loop> loops{};
    std::vector<Step> steps{};
    std::vector<Attribute> properties{};  // name, what it was made from, options of the conversion ...
};

inline const Attribute* find(std::span<const Attribute> attributes, std::string_view name) {
    for (const Attribute& a : attributes)
        if (a.name == name) return &a;
    return nullptr;
}

}  // namespace lunaria::lite
