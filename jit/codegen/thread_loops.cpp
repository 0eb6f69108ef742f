#include "jit/codegen/thread_loops.h"

#include <algorithm>
#include <bit>

#include "jit/codegen/code.h"
#include "jit/codegen/far_angles.h"
#include "jit/codegen/loop_body.h"

namespace lunaria::codegen {

namespace {

using graph::kWarp;
using graph::LoopInstruction;
using graph::LoopProgram;
using graph::ThreadShape;

class ThreadLoopWriter : public LoopBody {
  public:
    ThreadLoopWriter(llvm::Module& module, const LoopProgram& program, const ThreadShape& shape, ThreadModel& model)
        : LoopBody(module, program, shape.lanes, 0), shape_(shape), model_(model) {
        e_.outside = far_angle;
    }

    bool run(const char* symbol) {
        const Writing writing(e_);
        read_words(symbol);
        make_accumulators();
        find_group();
        llvm::Value* items = b_.CreateMul(places_, chunks_);
        if (shape_.row == ThreadShape::Row::spread) items = b_.CreateMul(items, tiles_);
        bool good = true;
        count_up(group_, items, groups_, [&](llvm::Value* item) {
            if (shape_.row == ThreadShape::Row::spread) {
                llvm::Value* rest = shape_.single_row && !program_.has_sums ? b_.getInt64(0) : quotient(item, tiles_);
                column_ = b_.CreateMul(remainder(item, rest, tiles_), b_.getInt64(lanes()));
                item = rest;
            }
            good = good && write_item(item);
        });
        b_.CreateRetVoid();
        return good;
    }

  private:
    uint64_t lanes() const { return static_cast<uint64_t>(e_.lanes); }
    llvm::Value* word(llvm::Value* v) { return b_.CreateSExt(v, b_.getInt64Ty()); }
    llvm::Value* remainder(llvm::Value* a, llvm::Value* whole, llvm::Value* b) {
        return b_.CreateSub(a, b_.CreateMul(whole, b));
    }

    // A division of 64 bits takes a hundred instructions.
    llvm::Value* quotient(llvm::Value* a, llvm::Value* b) override {
        if (!shape_.narrow) return b_.CreateUDiv(a, b);
        llvm::Type* narrow = b_.getInt32Ty();
        return b_.CreateZExt(b_.CreateUDiv(b_.CreateTrunc(a, narrow), b_.CreateTrunc(b, narrow)), b_.getInt64Ty());
    }

    // Addresses, sizes, counts of items, the scratch memory, distances of chunks.
    void read_words(const char* symbol) {
        size_t sums = 0;
        for (const LoopInstruction& i : program_.code) sums += i.kind == Kind::add;
        size_t count = program_.operands.size() * (1 + static_cast<size_t>(program_.outer_rank)) +
                       static_cast<size_t>(program_.outer_rank) + 1 + 5 + 1 + sums;
        for (const graph::LoopOperand& o : program_.operands) count += o.step == graph::LoopOperand::Step::wide;
        count += program_.depth.size() * (1 + program_.operands.size());
        llvm::Value* words = model_.begin(b_, symbol, count, shape_.threads ? shape_.threads : graph::kRowThreads);
        function_ = b_.GetInsertBlock()->getParent();
        pointers_ = words;
        sizes_ = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), words, program_.operands.size());
        size_t next = load_sizes();
        for (llvm::Value** number : {&places_, &repeats_, &chunks_, &chunk_, &tiles_}) *number = size_at(next++);
        llvm::Value* address = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), sizes_, next++);
        scratch_ = b_.CreateLoad(b_.getPtrTy(), address);
        chunk_distances_.assign(program_.operands.size(), nullptr);
        for (const LoopInstruction& i : program_.code)
            if (i.kind == Kind::add) chunk_distances_[i.index] = size_at(next++);
    }

    // Finds the group of threads that shares a row, this group's number, and the thread's number in it.
    void find_group() {
        llvm::Value *thread = model_.thread(), *threads = model_.threads();
        llvm::Value *here = model_.block(), *all = model_.blocks();
        llvm::Value* zero = b_.getInt32(0);
        llvm::Value *in_block = thread, *per_block = threads;  // groups
        member_ = zero, members_ = b_.getInt32(1);
        if (shape_.row == ThreadShape::Row::warp) {
            in_block = b_.CreateUDiv(thread, b_.getInt32(kWarp));
            per_block = b_.CreateUDiv(threads, b_.getInt32(kWarp));
            member_ = b_.CreateURem(thread, b_.getInt32(kWarp));
            members_ = b_.getInt32(kWarp);
        } else if (shape_.row == ThreadShape::Row::block) {
            in_block = zero, per_block = b_.getInt32(1);
            member_ = thread, members_ = b_.getInt32(static_cast<uint32_t>(shape_.threads));
        }
        llvm::Value* first = b_.CreateMul(word(here), word(per_block));
        group_ = b_.CreateAdd(first, word(in_block));
        groups_ = b_.CreateMul(word(all), word(per_block));
        scratch_group_ = group_;
        if (shape_.near_scratch) {
            scratch_ = model_.near_memory();
            scratch_group_ = word(in_block);
        }
    }

    // An item: the rows of one place, or of a chunk of them.
    bool write_item(llvm::Value* item) {
        llvm::Value* place = item;
        llvm::Value *from = b_.getInt64(0), *to = repeats_;
        std::vector<llvm::Value*> whole = bases_;
        if (shape_.in_chunks) {
            place = quotient(item, chunks_);
            llvm::Value* chunk = remainder(item, place, chunks_);
            from = b_.CreateMul(chunk, chunk_);
            to = b_.CreateAdd(from, chunk_);
            to = b_.CreateSelect(b_.CreateICmpSLT(to, repeats_), to, repeats_);
            for (size_t k = 0; k < bases_.size(); ++k)
                if (chunk_distances_[k])
                    bases_[k] = b_.CreateGEP(b_.getInt8Ty(), bases_[k], b_.CreateMul(chunk, chunk_distances_[k]));
        }
        bool good = true;
        if (!program_.has_sums) {
            good = write_row(place);
        } else {
            count_up(from, to, b_.getInt64(1), [&](llvm::Value* turn) {
                chunk_starts_ = shape_.in_chunks ? b_.CreateICmpEQ(turn, from) : nullptr;
                good = write_row(b_.CreateAdd(b_.CreateMul(place, repeats_), turn));
            });
        }
        bases_ = whole;
        return good;
    }

    llvm::Value* starts_sum(llvm::Value* first) override { return chunk_starts_ ? chunk_starts_ : first; }

    bool write_columns(int pass, const std::vector<size_t>& wanted) override {
        if (shape_.row == ThreadShape::Row::spread) return write_elements(pass, wanted, column_, nullptr);
        bool good = true;
        llvm::Value* from = b_.CreateMul(word(member_), b_.getInt64(lanes()));
        llvm::Value* step = b_.CreateMul(word(members_), b_.getInt64(lanes()));
        // Loads without stores between them are done side by side.
        constexpr int kTogether = 4;
        const bool stores = std::ranges::any_of(wanted, [&](size_t i) {
            return program_.code[i].kind == Kind::store || program_.code[i].kind == Kind::add;
        });
        llvm::Instruction* turn = count_up(
            from, inner_, step, [&](llvm::Value* column) { good = write_elements(pass, wanted, column, nullptr); });
        if (!stores) do_together(turn, kTogether);
        return good;
    }

    void store_row_value(llvm::Value* value, llvm::Value* to, llvm::Align align) override {
        auto* store = block("row.store");
        auto* done = block("row.stored");
        b_.CreateCondBr(b_.CreateICmpEQ(member_, b_.getInt32(0)), store, done);
        b_.SetInsertPoint(store);
        b_.CreateAlignedStore(value, to, align);
        b_.CreateBr(done);
        b_.SetInsertPoint(done);
    }

    llvm::Value* scratch_at(size_t which, llvm::Value* column) override {
        llvm::Value* row = b_.CreateMul(scratch_group_, b_.getInt64(kept_.size()));
        llvm::Value* start = b_.CreateMul(b_.CreateAdd(row, b_.getInt64(which)), inner_);
        llvm::Type* place = b_.getIntNTy(8 * static_cast<unsigned>(graph::scratch_width(program_)));
        return b_.CreateGEP(place, scratch_, b_.CreateAdd(start, column));
    }

    llvm::Align vector_align(DType t) const override { return llvm::Align(size_of(t) * lanes()); }

    // Combines first the lanes of a thread, then the threads of a warp, then the warps of a block.
    llvm::Value* across(size_t i) override {
        const LoopInstruction& at = program_.code[i];
        llvm::Value* total = warp_total(at, lane_total(i));
        return e_.spread(shape_.row == ThreadShape::Row::block ? block_total(at, total) : total);
    }

    llvm::Value* combine_one(const LoopInstruction& at, llvm::Value* a, llvm::Value* b) {
        return b_.CreateExtractElement(combine(at, e_.spread(a), e_.spread(b)), uint64_t{0});
    }

    llvm::Value* warp_total(const LoopInstruction& at, llvm::Value* v) {
        llvm::Type* type = v->getType();
        llvm::Type* bits = b_.getIntNTy(static_cast<unsigned>(type->getPrimitiveSizeInBits()));
        for (int difference = kWarp / 2; difference >= 1; difference /= 2) {
            llvm::Value* other = model_.exchange(b_.CreateBitCast(v, bits), difference);
            v = combine_one(at, v, b_.CreateBitCast(other, type));
        }
        return v;
    }

    llvm::Value* block_total(const LoopInstruction& at, llvm::Value* v) {
        llvm::Value* thread = model_.thread();
        llvm::Value* lane = b_.CreateURem(thread, b_.getInt32(kWarp));
        llvm::Value* memory = model_.reduction_memory();
        auto place = [&](llvm::Value* index) { return b_.CreateGEP(b_.getInt64Ty(), memory, index); };
        auto* store = block("warp.store");
        auto* stored = block("warp.stored");
        b_.CreateCondBr(b_.CreateICmpEQ(lane, b_.getInt32(0)), store, stored);
        b_.SetInsertPoint(store);
        b_.CreateStore(v, place(b_.CreateUDiv(thread, b_.getInt32(kWarp))));
        b_.CreateBr(stored);
        b_.SetInsertPoint(stored);
        model_.barrier();
        // Every warp adds up the values of all warps: lanes beyond the number of warps add nothing.
        llvm::Value* warps = b_.CreateUDiv(model_.threads(), b_.getInt32(kWarp));
        llvm::Value* nothing = b_.CreateExtractElement(identity(at), uint64_t{0});
        auto* before = b_.GetInsertBlock();
        auto* load = block("warp.load");
        auto* loaded = block("warp.loaded");
        b_.CreateCondBr(b_.CreateICmpULT(lane, warps), load, loaded);
        b_.SetInsertPoint(load);
        llvm::Value* part = b_.CreateLoad(v->getType(), place(lane));
        b_.CreateBr(loaded);
        b_.SetInsertPoint(loaded);
        llvm::PHINode* mine = b_.CreatePHI(v->getType(), 2);
        mine->addIncoming(nothing, before);
        mine->addIncoming(part, load);
        // The memory is free for the next reduction once all threads have read it.
        model_.barrier();
        return warp_total(at, mine);
    }

    const ThreadShape shape_;
    ThreadModel& model_;
    llvm::Value *places_ = nullptr, *repeats_ = nullptr, *chunks_ = nullptr, *chunk_ = nullptr, *tiles_ = nullptr,
                *scratch_ = nullptr, *scratch_group_ = nullptr, *group_ = nullptr, *groups_ = nullptr,
                *member_ = nullptr, *members_ = nullptr, *column_ = nullptr, *chunk_starts_ = nullptr;
    std::vector<llvm::Value*> chunk_distances_;  // by operand; null: rows do not add to it
};

}  // namespace

bool write_thread_loop(llvm::Module& module, const LoopProgram& program, const ThreadShape& shape, const char* symbol,
                       ThreadModel& model) {
    return ThreadLoopWriter(module, program, shape, model).run(symbol);
}

}  // namespace lunaria::codegen
