#include "jit/codegen/loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "jit/codegen/code.h"
#include "jit/codegen/loop_body.h"

namespace lunaria::codegen {

namespace {

using graph::LoopProgram;

class LoopWriter : public LoopBody {
  public:
    LoopWriter(llvm::Module& module, const LoopProgram& program, int register_bytes)
        : LoopBody(module, program, program.tile * register_bytes / static_cast<int>(widest_bytes(program)),
                   register_bytes) {}

    bool run(const char* symbol) {
        const Writing writing(e_);
        begin_function(symbol);
        load_sizes();
        make_accumulators();
        bool good = true;
        count_up(row_begin_, row_end_, b_.getInt64(1), [&](llvm::Value* row) { good = write_row(row); });
        // Stores past the caches are not ordered with later ones by themselves.
        if (program_.streams) b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
        b_.CreateRetVoid();
        return good;
    }

  private:
    void begin_function(const char* symbol) {
        llvm::Type* pointer = b_.getPtrTy();
        llvm::Type* word = b_.getInt64Ty();
        auto* type =
            llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, word, word, word, word, pointer}, false);
        function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, e_.module);
        function_->addFnAttr(llvm::Attribute::NoUnwind);
        // No loop may become a call of memset or memcpy: those have no address here.
        function_->addFnAttr("no-builtins");
        function_->addFnAttr("prefer-vector-width", "512");
        function_->addFnAttr("min-legal-vector-width", "512");
        b_.SetInsertPoint(block("entry"));
        pointers_ = function_->getArg(0);
        sizes_ = function_->getArg(1);
        row_begin_ = function_->getArg(2);
        row_end_ = function_->getArg(3);
        column_begin_ = function_->getArg(4);
        column_end_ = function_->getArg(5);
        scratch_ = function_->getArg(6);
    }

    bool write_columns(int pass, const std::vector<size_t>& wanted) override {
        const std::vector<LoopStage> stages = stages_of(pass, wanted);
        if (stages.empty()) return write_range(pass, wanted, column_begin_, column_end_);
        bool good = true;
        llvm::Value* size = b_.getInt64(kBlock);
        count_up(column_begin_, column_end_, size, [&](llvm::Value* begin) {
            block_begin_ = begin;
            llvm::Value* count = b_.CreateSub(column_end_, begin);
            count = b_.CreateSelect(b_.CreateICmpSLT(count, size), count, size);
            llvm::Value* end = b_.CreateAdd(begin, count);
            for (const LoopStage& stage : stages) {
                fills_buffers_ = true;
                for (size_t i : stage.kept) make_buffer(i);
                good = good && (stage.kept.empty() || write_range(pass, stage.kept, begin, end));
                fills_buffers_ = false;
                is_full_.insert(stage.kept.begin(), stage.kept.end());
                for (size_t i : stage.loops) write_call(i, begin, count);
                is_full_.insert(stage.loops.begin(), stage.loops.end());
            }
            good = good && write_range(pass, wanted, begin, end);
        });
        is_full_.clear();
        return good;
    }

    bool write_range(int pass, const std::vector<size_t>& wanted, llvm::Value* begin, llvm::Value* end) {
        llvm::Value* lanes = b_.getInt64(static_cast<uint64_t>(e_.lanes));
        auto* head = block("whole");
        auto* body = block("whole.body");
        auto* rest = block("rest");
        auto* rest_body = block("rest.body");
        auto* done = block("pass.done");
        llvm::BasicBlock* before = b_.GetInsertBlock();
        b_.CreateBr(head);
        b_.SetInsertPoint(head);
        llvm::PHINode* at = b_.CreatePHI(b_.getInt64Ty(), 2);
        at->addIncoming(begin, before);
        llvm::Value* next = b_.CreateAdd(at, lanes);
        b_.CreateCondBr(b_.CreateICmpSLE(next, end), body, rest);
        b_.SetInsertPoint(body);
        if (!write_elements(pass, wanted, at, nullptr)) return false;
        at->addIncoming(next, b_.GetInsertBlock());
        b_.CreateBr(head);

        b_.SetInsertPoint(rest);
        b_.CreateCondBr(b_.CreateICmpSLT(at, end), rest_body, done);
        b_.SetInsertPoint(rest_body);
        llvm::Value* count = e_.spread(b_.CreateTrunc(b_.CreateSub(end, at), b_.getInt32Ty()));
        llvm::Value* mask = b_.CreateICmpULT(lane_numbers(b_.getInt32Ty()), count);
        if (!write_elements(pass, wanted, at, mask)) return false;
        b_.CreateBr(done);
        b_.SetInsertPoint(done);
        return true;
    }

    // Rows of the scratch memory are longer than those of the operands: whole vectors are stored.
    llvm::Value* scratch_at(size_t which, llvm::Value* column) override {
        llvm::Value* length = b_.CreateAdd(inner_, b_.getInt64(64));
        llvm::Value* start = b_.CreateMul(length, b_.getInt64(which));
        return b_.CreateGEP(b_.getInt64Ty(), scratch_, b_.CreateAdd(start, column));
    }

    void store_all(llvm::Value* v, llvm::Value* to, DType t) override {
        if (!program_.streams) {
            LoopBody::store_all(v, to, t);
            return;
        }
        // Results start at a multiple of 64 bytes, and parts of a row at a multiple of 64 elements.
        const uint64_t bytes = std::min<uint64_t>(64, size_of(t) * static_cast<uint64_t>(e_.lanes));
        llvm::StoreInst* streamed = b_.CreateAlignedStore(v, to, llvm::Align(bytes));
        llvm::Metadata* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
        streamed->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(e_.module.getContext(), {one}));
    }

    // What a pass does to a block of a row in stages: values are kept for the loops that take them, and these are
    // called.
    struct LoopStage {
        std::vector<size_t> kept, loops;
    };
    // The stages that make what a pass is run for, without the last one, which has nothing to keep and no calls.
    std::vector<LoopStage> stages_of(int pass, const std::vector<size_t>& wanted) const;
    bool is_by_loop(size_t i) const {
        const graph::LoopInstruction& at = program_.code[i];
        return at.kind == Kind::formula && !at.row && graph::is_done_by_loop(at.name, at.operand);
    }
    // Whether the loops read a value where an operand has it.
    bool is_read_in_place(size_t i) const {
        const graph::LoopInstruction& at = program_.code[i];
        return at.kind == Kind::load && program_.operands[at.index].step == graph::LoopOperand::Step::dense;
    }
    llvm::Value* place_of(size_t i, int pass, llvm::Value* column) override {
        return is_full_.contains(i) ? buffer_at(i, column) : LoopBody::place_of(i, pass, column);
    }
    llvm::Value* place_to_keep(size_t i, llvm::Value* column) override {
        return fills_buffers_ ? buffer_at(i, column) : LoopBody::place_to_keep(i, column);
    }
    // Whole vectors are stored behind the end of a block as well.
    void make_buffer(size_t i) {
        const DType t = program_.code[i].dtype;
        if (!buffers_.contains(i))
            buffers_[i] = frame(b_.getInt8Ty(), (kBlock + 64) * static_cast<int64_t>(size_of(t)));
    }
    llvm::Value* buffer_at(size_t i, llvm::Value* column) {
        return element(buffers_.at(i), b_.CreateSub(column, block_begin_), program_.code[i].dtype);
    }
    void write_call(size_t i, llvm::Value* begin, llvm::Value* count) {
        const graph::LoopInstruction& at = program_.code[i];
        std::vector<LoopArgument> args;
        for (uint16_t a : at.args) {
            const graph::LoopInstruction& arg = program_.code[a];
            if (is_one_value(a)) {
                llvm::Value* spread = row_values_[a] ? row_values_[a] : compute(a, row_values_);
                llvm::Value* one = frame(e_.lane_type(arg.dtype));
                b_.CreateStore(b_.CreateExtractElement(spread, uint64_t{0}), one);
                args.push_back({one, 0});
            } else if (is_read_in_place(a)) {
                args.push_back({element(at_row_[arg.index], begin, arg.dtype)});
            } else {
                args.push_back({buffers_.at(a)});
            }
        }
        make_buffer(i);
        call_loop(at, args, buffers_.at(i), count);
    }
    bool is_one_value(size_t i) const { return program_.code[i].row || program_.code[i].kind == Kind::constant; }

    // Elements that the loops are called for at a time: a call costs little beside them, and what they read and write
    // stays in the first cache.
    static constexpr int64_t kBlock = 256;

    std::map<size_t, llvm::Value*> buffers_;  // of a block, by instruction
    std::set<size_t> is_full_;                // the buffers that hold values of the current block
    bool fills_buffers_ = false;
    llvm::Value* block_begin_ = nullptr;
    llvm::Value *row_begin_ = nullptr, *row_end_ = nullptr, *column_begin_ = nullptr, *column_end_ = nullptr,
                *scratch_ = nullptr;
};

// From the last instruction to the first, as each knows then in which stages it is read.
std::vector<LoopWriter::LoopStage> LoopWriter::stages_of(int pass, const std::vector<size_t>& wanted) const {
    if (!program_.depth.empty()) return {};
    const size_t size = program_.code.size();
    std::vector<size_t> ready(size, 0);  // the first stage in which the values can be computed
    auto is_called = [&](size_t i) { return is_by_loop(i) && !is_from_earlier(i, pass); };
    auto complete = [&](size_t i) { return ready[i] + (is_called(i) ? 1 : 0); };
    for (size_t i = 0; i < size; ++i)
        if (!is_one_value(i) && !is_from_earlier(i, pass))
            for (uint16_t a : program_.code[i].args) ready[i] = std::max(ready[i], complete(a));
    size_t last = 0;
    for (size_t i : wanted) last = std::max(last, complete(source_of(i)));
    std::vector<LoopStage> stages(last);
    std::vector<std::set<size_t>> uses(size);
    std::vector<bool> is_passed(size, false);  // to a loop
    for (size_t i : wanted) uses[source_of(i)].insert(last);
    for (size_t i = size; i-- > 0;) {
        const graph::LoopInstruction& at = program_.code[i];
        if (uses[i].empty() || is_one_value(i)) continue;
        const size_t first = *uses[i].begin();
        if (is_called(i)) {
            stages[ready[i]].loops.push_back(i);
            for (uint16_t a : at.args) {
                is_passed[a] = !is_called(a) && !is_read_in_place(a);
                uses[a].insert(ready[i]);
            }
            continue;
        }
        const bool keeps = is_passed[i] || (uses[i].size() > 1 && graph::is_expensive(at));
        if (keeps) stages[first].kept.push_back(i);
        if (is_from_earlier(i, pass)) continue;
        for (uint16_t a : at.args) {
            if (keeps)
                uses[a].insert(first);
            else
                uses[a].insert(uses[i].begin(), uses[i].end());
        }
    }
    return stages;
}

}  // namespace

bool write_loop(llvm::Module& module, const graph::LoopProgram& program, const char* symbol, int register_bytes) {
    return LoopWriter(module, program, register_bytes).run(symbol);
}

}  // namespace lunaria::codegen
