#include "jit/codegen/loops.h"

#include <algorithm>

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
        at->addIncoming(column_begin_, before);
        llvm::Value* next = b_.CreateAdd(at, lanes);
        b_.CreateCondBr(b_.CreateICmpSLE(next, column_end_), body, rest);
        b_.SetInsertPoint(body);
        if (!write_elements(pass, wanted, at, nullptr)) return false;
        at->addIncoming(next, b_.GetInsertBlock());
        b_.CreateBr(head);

        b_.SetInsertPoint(rest);
        b_.CreateCondBr(b_.CreateICmpSLT(at, column_end_), rest_body, done);
        b_.SetInsertPoint(rest_body);
        llvm::Value* count = e_.spread(b_.CreateTrunc(b_.CreateSub(column_end_, at), b_.getInt32Ty()));
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

    llvm::Value *row_begin_ = nullptr, *row_end_ = nullptr, *column_begin_ = nullptr, *column_end_ = nullptr,
                *scratch_ = nullptr;
};

}  // namespace

bool write_loop(llvm::Module& module, const graph::LoopProgram& program, const char* symbol, int register_bytes) {
    return LoopWriter(module, program, register_bytes).run(symbol);
}

}  // namespace lunaria::codegen
