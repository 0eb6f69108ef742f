// The plan of a program: its steps in order, and the place of each value.
#pragma once

#include <optional>
#include <unordered_map>

#include "core/loops/graph_backend.h"
#include "core/loops/kernels.h"
#include "jit/graph/executable.h"
#include "jit/graph/flat.h"
#include "jit/graph/loop_builder.h"

namespace lunaria::graph {

// A value with memory of its own: a parameter, a constant, or the result of a step.
struct Root {
    enum class Home : uint8_t {
        input,     // given by the caller
        constant,  // part of the program
        arena,     // a temporary at `offset` of the arena
        output,    // fresh memory in every run, or that of a donated input
        made,      // the tensor that an operator returned: its memory is not planned
    };
    ir::NodeType type{};
    Home home = Home::arena;
    size_t index = 0;  // of an input; of an output: the donated input that it is in, or kFresh
    size_t offset = 0, bytes = 0;
    size_t first = 0, last = 0;  // in the arena: the step that computes it, and the last that reads it
    Tensor constant{};

    bool is_static() const { return home == Home::arena || home == Home::constant; }
};
inline constexpr size_t kFresh = SIZE_MAX;

// A tensor over a root, as kernels take them.
struct Handle {
    size_t root = 0;
    bool whole = true;  // the root's tensor itself; otherwise:
    Shape shape;
    Strides strides;
    int64_t offset = 0;
};

// A tensor among an operator's arguments: the number of the argument, and of the item in it if it is a list.
struct Use {
    size_t arg = 0;
    size_t item = SIZE_MAX;
    size_t handle = 0;
};

struct Step {
    enum class Kind : uint8_t { kernel, eager, copy, loop };  // copy: of its one operand, to dense memory
    Kind kind = Kind::kernel;
    // kernel, eager
    const Op* op = nullptr;
    std::vector<Value> args;  // without the tensors in `uses`
    std::vector<Use> uses;
    DType dtype = DType::f32;
    bool awaits = false;          // of an operator: it is part of a loop that has no code
    std::vector<size_t> results;  // roots; of an eager step SIZE_MAX where the result is not read
    // loop
    LoopRef loop{};
    size_t source = SIZE_MAX;           // of the plan's, where they are kept
    std::vector<size_t> loop_roots;     // of the operands
    std::vector<int64_t> loop_offsets;  // in bytes
    int64_t rows = 1, inner = 1;
    size_t nodes = 1;
    double flops = 0;  // see core/run/profile.h
    std::string label;
    ir::Span span;
};

struct Result {
    size_t handle = 0;
    bool copied = false;     // the root is overwritten by a donation
    size_t stored = kFresh;  // copied into this input at the end
    bool borrowed = false;   // stays in the arena
    bool early = false;      // until its early use only
};

// The source of a loop's code.
struct LoopSource {
    LoopProgram program;
    std::vector<int64_t> sizes;  // as LoopTask has them
};

struct Plan {
    std::vector<Root> roots;
    std::vector<Handle> handles;
    std::vector<Step> steps;
    std::vector<Result> results;
    std::vector<TensorType> parameters;  // given by the caller
    std::vector<Tensor> variables;       // further inputs that are part of the program
    std::vector<size_t> inputs;          // roots of parameters and variables
    std::vector<size_t> donated;         // inputs
    std::vector<bool> written;           // of each input: an operator assigns to it
    std::vector<EarlyUse> early;
    std::vector<std::vector<size_t>> early_after;  // by step: uses that come right after it; empty without any
    size_t arena_bytes = 0;
    std::vector<WantedCode*> wanted;  // with CompileOptions::waits
    std::vector<LoopSource> sources;  // with CompileOptions::keeps_sources
};

Plan make_plan(const FlatGraph& flat, const CompileOptions& options);
// After the passes: the first half of compile(), and the second.
Plan plan_of(const ir::Graph& graph, const CompileOptions& options);
std::unique_ptr<Executable> executable_of(Plan plan);

// Whether the operator's kernel can be called on planned memory, without the conversions and copies of eager mode.
// `is_dense` tells whether a node among the arguments has dense elements.
bool runs_by_kernel(const Op& op, std::span<const Value> args, const ir::NodeType& type,
                    const std::function<bool(const ir::Node*)>& is_dense);

}  // namespace lunaria::graph
