// The parts of a loop program's code that do not depend on the way through its index space: addresses of rows, loads,
// stores, formulas, values that are kept. The two writers (loops.cpp, thread_loops.cpp) put loops around it.
#pragma once

#include <llvm/IR/Module.h>

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "core/loops/loop.h"
#include "core/loops/sum_order.h"
#include "jit/codegen/emission.h"

namespace lunaria::codegen {

// The size of the largest element in the program's computations, at least 4.
uint64_t widest_bytes(const graph::LoopProgram& program);

// An operand of eager mode's loops: its first element, and 1 where all elements are read, 0 where only that one is.
struct LoopArgument {
    llvm::Value* from = nullptr;
    int64_t step = 1;
};

inline bool adds_along_row(const graph::LoopInstruction& i) {
    return i.kind == graph::LoopInstruction::Kind::reduce && (i.name == "sum" || i.name == "squares");
}

class LoopBody {
  public:
    LoopBody(const LoopBody&) = delete;
    virtual ~LoopBody() = default;

  protected:
    using Kind = graph::LoopInstruction::Kind;

    LoopBody(llvm::Module& module, const graph::LoopProgram& program, int lanes, int register_bytes);

    llvm::BasicBlock* block(const char* name);
    // for (i = from; i < to; i += step) body(i), with numbers of 64 bits; `body` writes the code. Returns the branch to
    // the next iteration.
    template <class Body>
    llvm::Instruction* count_up(llvm::Value* from, llvm::Value* to, llvm::Value* step, Body body) {
        auto* head = block("count");
        auto* inside = block("count.body");
        auto* done = block("count.done");
        llvm::BasicBlock* before = b_.GetInsertBlock();
        b_.CreateBr(head);
        b_.SetInsertPoint(head);
        llvm::PHINode* at = b_.CreatePHI(b_.getInt64Ty(), 2);
        at->addIncoming(from, before);
        b_.CreateCondBr(b_.CreateICmpSLT(at, to), inside, done);
        b_.SetInsertPoint(inside);
        body(at);
        at->addIncoming(b_.CreateAdd(at, step, "", false, true), b_.GetInsertBlock());
        llvm::Instruction* turn = b_.CreateBr(head);
        b_.SetInsertPoint(done);
        return turn;
    }

    // Makes memory for the values of reductions; to be called in the function's first block.
    void make_accumulators();

    // Number i of the array of sizes.
    llvm::Value* size_at(size_t i);
    // Reads pointers, sizes and strides; returns the position of the first number after them.
    size_t load_sizes();
    // Computes the addresses of the operands' first elements in a row.
    void find_row(llvm::Value* row);
    // The quotient of counts that are not negative.
    virtual llvm::Value* quotient(llvm::Value* a, llvm::Value* b) { return b_.CreateUDiv(a, b); }
    llvm::Value* element(llvm::Value* base, llvm::Value* index, DType t);

    // Writes the code for a whole row; false where some instruction has no code.
    bool write_row(llvm::Value* row);
    // The loop over the columns of a row for one pass: `wanted` are the instructions for which it runs, as positions in
    // the program.
    virtual bool write_columns(int pass, const std::vector<size_t>& wanted) = 0;
    // Elements from `column` on, as many as there are lanes, but only those in `mask` unless that is null.
    bool write_elements(int pass, const std::vector<size_t>& wanted, llvm::Value* column, llvm::Value* mask);
    // Stores a value per row.
    virtual void store_row_value(llvm::Value* value, llvm::Value* to, llvm::Align align) {
        b_.CreateAlignedStore(value, to, align);
    }
    // The address at `column` of value number `which` among those that are kept from pass to pass.
    virtual llvm::Value* scratch_at(size_t which, llvm::Value* column) = 0;
    // The address from which a value of this pass is read, null where it is computed; kept_at: the address of a kept
    // value that is not a result.
    virtual llvm::Value* place_of(size_t i, int pass, llvm::Value* column) {
        return is_from_earlier(i, pass) ? kept_at(i, column) : nullptr;
    }
    virtual llvm::Value* place_to_keep(size_t i, llvm::Value* column) { return kept_at(i, column); }
    // Whether an earlier pass has kept a value.
    bool is_from_earlier(size_t i, int pass) const { return is_kept(i) && passes_[i] < pass; }
    // The value for which an instruction of a pass runs: the one that it stores, adds or reduces, or its own.
    size_t source_of(size_t i) const {
        const Kind kind = program_.code[i].kind;
        const bool ends = kind == Kind::store || kind == Kind::add || kind == Kind::reduce;
        return ends ? size_t{program_.code[i].args[0]} : i;
    }
    // Calls the loop of eager mode for a formula, which gives the same bits.
    void call_loop(const graph::LoopInstruction& at, std::span<const LoopArgument> args, llvm::Value* result,
                   llvm::Value* count);
    // A constant, or the value of an instruction for the values of others.
    llvm::Value* compute(size_t i, const std::vector<llvm::Value*>& values);
    // Memory of the function's frame.
    llvm::Value* frame(llvm::Type* type, int64_t count = 1);
    // Whether this row is the first that adds to an operand; `first`: whether it is, by its indices along the axes.
    virtual llvm::Value* starts_sum(llvm::Value* first) { return first; }
    // The known alignment of neighbouring elements.
    virtual llvm::Align vector_align(DType t) const { return llvm::Align(size_of(t)); }
    // A store of neighbouring elements without a mask.
    virtual void store_all(llvm::Value* v, llvm::Value* to, DType t) { b_.CreateAlignedStore(v, to, vector_align(t)); }
    // The accumulator of a reduction with all its lanes (and threads) combined, in a fixed order, and spread to all
    // lanes.
    virtual llvm::Value* across(size_t i) { return e_.spread(lane_total(i)); }
    llvm::Value* lane_total(size_t i);
    // Whether a reduction is a sum in the order of the host's kernels (core/loops/sum_order.h).
    bool adds_in_lanes(const graph::LoopInstruction& at) const { return program_.in_order && adds_along_row(at); }
    // The lanes of such a sum along a row, and a row that is added to others: for the neighbours from `column` on.
    virtual void add_step(size_t, llvm::Value*, llvm::Value*) {}
    llvm::Value* load(const graph::LoopInstruction& at, llvm::Value* column, llvm::Value* mask);
    void store(llvm::Value* v, const graph::LoopInstruction& at, llvm::Value* column, llvm::Value* mask);
    // The sum of up to kSumLeaf numbers of a lane.
    llvm::Value* leaf(std::span<llvm::Value* const> steps);
    virtual void add_row(const graph::LoopInstruction& at, llvm::Value* v, llvm::Value* column, llvm::Value* mask);
    llvm::Value* zero_of(llvm::Value* v) { return llvm::Constant::getNullValue(v->getType()); }
    llvm::Value* combine(const graph::LoopInstruction& at, llvm::Value* a, llvm::Value* b);
    llvm::Value* identity(const graph::LoopInstruction& at);
    llvm::Value* reduced(const graph::LoopInstruction& at, llvm::Value* v);
    llvm::Value* lane_numbers(llvm::Type* type);

    const graph::LoopProgram& program_;
    Emission e_;
    llvm::IRBuilder<>& b_;
    const std::vector<int> passes_;
    const std::vector<uint16_t> kept_;
    std::vector<llvm::Value*> row_values_, accumulators_;  // by instruction; null: not computed yet, or never
    llvm::Function* function_ = nullptr;
    llvm::Value *pointers_ = nullptr, *sizes_ = nullptr, *inner_ = nullptr;
    std::vector<llvm::Value*> outer_, bases_, wide_, at_row_, is_first_;
    std::vector<std::vector<llvm::Value*>> strides_;
    std::vector<llvm::Value*> depth_;                   // sizes of the axes of the points
    std::vector<std::vector<llvm::Value*>> distances_;  // by operand: bytes from one point to the next along these axes

  private:
    // The partial sums of a sum over points, by lanes: whole leaves, a pair, a single number.
    class PointLanes {
      public:
        PointLanes(LoopBody& body, const graph::LoopInstruction& at) : body_(body), at_(at) {}
        void make();
        void add(llvm::Value* v);
        llvm::Value* total();

      private:
        llvm::Value* place(llvm::Value* memory, DType t, llvm::Value* lane);
        llvm::Value* widened(llvm::Value* v);

        LoopBody& body_;
        const graph::LoopInstruction& at_;
        std::array<std::vector<llvm::Value*>, kSumLanes> steps_{};  // where points are written one by one
        size_t points_ = 0;
        llvm::Value *sums_ = nullptr, *pairs_ = nullptr, *singles_ = nullptr, *count_ = nullptr;
    };
    friend class PointLanes;

    bool write_row_values(int pass);
    std::vector<size_t> targets(int pass) const;
    bool is_kept(size_t i) const;
    llvm::Value* kept_at(size_t i, llvm::Value* column);
    bool element_value(size_t i, int pass, std::vector<llvm::Value*>& values, llvm::Value* column, llvm::Value* mask);
    std::vector<size_t> read_at_points(size_t reduction) const;
    bool over_points(size_t reduction, int pass, std::vector<llvm::Value*>& values, llvm::Value* column,
                     llvm::Value* mask);
    bool write_points(size_t axis, const std::function<bool()>& at_point);
    void step_to_points(size_t axis, llvm::Value* number, const std::vector<llvm::Value*>& from);
    llvm::Value* by_loop(const graph::LoopInstruction& at, std::span<llvm::Value* const> args);
    llvm::Value* product(const graph::LoopInstruction& at, llvm::Value* column, llvm::Value* mask);
    llvm::Value* to_memory(llvm::Value* v, DType t);
    llvm::Type* memory_lane(DType t) { return t == DType::boolean ? b_.getInt8Ty() : e_.lane_type(t); }
    llvm::Value* load_one(const graph::LoopInstruction& at);
    llvm::Value* load_neighbours(llvm::Value* from, llvm::Type* type, DType t, llvm::Value* mask);
    llvm::Value* lane_addresses(const graph::LoopInstruction& at, llvm::Value* column);
};

}  // namespace lunaria::codegen
