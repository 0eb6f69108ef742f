// The two environments of thread kernels: PTX, and emulation on the host.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "jit/codegen/thread_loops.h"

namespace lunaria::codegen {

namespace {

using graph::EmulatedThread;
using graph::kWarp;

constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

class PtxThreads : public ThreadModel {
  public:
    explicit PtxThreads(llvm::Module& module) : module_(module) {}

    llvm::Value* begin(llvm::IRBuilder<>& b, const char* symbol, size_t words, int threads) override {
        b_ = &b;
        llvm::LLVMContext& context = module_.getContext();
        auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false);
        auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module_);
        function->setCallingConv(llvm::CallingConv::PTX_Kernel);
        function->addFnAttr(llvm::Attribute::NoUnwind);
        function->addFnAttr(llvm::Attribute::Convergent);
        // The words are the kernel's only argument, by value.
        llvm::Type* list = llvm::ArrayType::get(b.getInt64Ty(), words);
        function->addParamAttr(0, llvm::Attribute::getWithByValType(context, list));
        function->addParamAttr(0, llvm::Attribute::getWithAlignment(context, llvm::Align(8)));
        auto tell = [&](const char* name, int value) {
            llvm::Metadata* fact[] = {llvm::ValueAsMetadata::get(function), llvm::MDString::get(context, name),
                                      llvm::ConstantAsMetadata::get(b.getInt32(static_cast<uint32_t>(value)))};
            module_.getOrInsertNamedMetadata("nvvm.annotations")->addOperand(llvm::MDNode::get(context, fact));
        };
        tell("kernel", 1);
        // Threads of larger blocks have fewer registers each than a thread can have.
        constexpr int kFull = 256;
        if (threads > kFull) tell("maxntidx", threads);
        b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
        return function->getArg(0);
    }
    llvm::Value* thread() override { return number(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x); }
    llvm::Value* threads() override { return number(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x); }
    llvm::Value* block() override { return number(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x); }
    llvm::Value* blocks() override { return number(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x); }
    void barrier() override { b_->CreateIntrinsic(b_->getVoidTy(), llvm::Intrinsic::nvvm_barrier0, {}); }

    llvm::Value* exchange(llvm::Value* bits, int difference) override {
        if (bits->getType()->isIntegerTy(32)) return exchange_word(bits, difference);
        llvm::Type* word = b_->getInt32Ty();
        llvm::Type* both = bits->getType();
        llvm::Value* low = exchange_word(b_->CreateTrunc(bits, word), difference);
        llvm::Value* high = exchange_word(b_->CreateTrunc(b_->CreateLShr(bits, 32), word), difference);
        return b_->CreateOr(b_->CreateZExt(low, both), b_->CreateShl(b_->CreateZExt(high, both), 32));
    }
    Four fragment(llvm::Value* start, int pitch, bool turned) override {
        near_memory();
        // Each lane gives the address of a row of a quarter.
        llvm::Value* lane = b_->CreateURem(thread(), b_->getInt32(kWarp));
        llvm::Value* row = b_->CreateURem(lane, b_->getInt32(16));
        llvm::Value* right = b_->CreateUDiv(lane, b_->getInt32(16));
        llvm::Value* offset = b_->CreateAdd(b_->CreateMul(row, b_->getInt32(2 * static_cast<uint32_t>(pitch))),
                                            b_->CreateMul(right, b_->getInt32(16)));
        llvm::Value* from =
            b_->CreateGEP(b_->getInt8Ty(), near_, b_->CreateAdd(start, b_->CreateZExt(offset, b_->getInt64Ty())));
        return four(b_->CreateIntrinsic(turned ? llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16
                                               : llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16,
                                        {from->getType()}, {from}));
    }
    Four product(std::span<llvm::Value* const> factors, const Four& sums, bool is_bfloat) override {
        std::vector<llvm::Value*> args;
        llvm::Type* halves = llvm::FixedVectorType::get(b_->getHalfTy(), 2);
        for (llvm::Value* f : factors) args.push_back(is_bfloat ? f : b_->CreateBitCast(f, halves));
        args.insert(args.end(), sums.begin(), sums.end());
        return four(b_->CreateIntrinsic(is_bfloat ? llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16
                                                  : llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32,
                                        {}, args));
    }
    llvm::Value* pair(llvm::Value* low, llvm::Value* high, bool is_bfloat) override {
        llvm::Value* both = b_->CreateIntrinsic(
            is_bfloat ? llvm::Intrinsic::nvvm_ff2bf16x2_rn : llvm::Intrinsic::nvvm_ff2f16x2_rn, {}, {high, low});
        return b_->CreateBitCast(both, b_->getInt32Ty());
    }
    llvm::Value* power_of_2(llvm::Value* v) override {
        return b_->CreateIntrinsic(b_->getFloatTy(), llvm::Intrinsic::nvvm_ex2_approx_ftz_f, {v});
    }
    llvm::Value* reduction_memory() override {
        if (!reduction_) reduction_ = shared("reduction", kWarp, llvm::GlobalValue::InternalLinkage);
        return b_->CreateAddrSpaceCast(reduction_, b_->getPtrTy());
    }
    // Its size is given at launch.
    llvm::Value* near_memory() override {
        if (!near_) near_ = shared("near", 0, llvm::GlobalValue::ExternalLinkage);
        return b_->CreateAddrSpaceCast(near_, b_->getPtrTy());
    }
    unsigned tensor_space() const override { return kGlobalSpace; }

  private:
    Four four(llvm::Value* together) {
        Four list;
        for (unsigned i = 0; i < list.size(); ++i) list[i] = b_->CreateExtractValue(together, i);
        return list;
    }
    llvm::Value* number(llvm::Intrinsic::ID id) { return b_->CreateIntrinsic(b_->getInt32Ty(), id, {}); }
    llvm::Value* exchange_word(llvm::Value* word, int difference) {
        constexpr uint32_t all = 0xffffffff, whole_warp = 0x1f;
        return b_->CreateIntrinsic(
            b_->getInt32Ty(), llvm::Intrinsic::nvvm_shfl_sync_bfly_i32,
            {b_->getInt32(all), word, b_->getInt32(static_cast<uint32_t>(difference)), b_->getInt32(whole_warp)});
    }
    llvm::GlobalVariable* shared(const char* name, uint64_t words, llvm::GlobalValue::LinkageTypes linkage) {
        llvm::Type* type = llvm::ArrayType::get(b_->getInt64Ty(), words);
        llvm::Constant* start = linkage == llvm::GlobalValue::ExternalLinkage ? nullptr : llvm::UndefValue::get(type);
        auto* memory = new llvm::GlobalVariable(module_, type, false, linkage, start, name, nullptr,
                                                llvm::GlobalValue::NotThreadLocal, kSharedSpace);
        memory->setAlignment(llvm::Align(16));
        return memory;
    }

    llvm::Module& module_;
    llvm::IRBuilder<>* b_ = nullptr;
    llvm::GlobalVariable *reduction_ = nullptr, *near_ = nullptr;
};

class EmulatedThreads : public ThreadModel {
  public:
    explicit EmulatedThreads(llvm::Module& module) : module_(module) {}

    llvm::Value* begin(llvm::IRBuilder<>& b, const char* symbol, size_t, int) override {
        b_ = &b;
        auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false);
        auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module_);
        function->addFnAttr(llvm::Attribute::NoUnwind);
        function->addFnAttr("no-builtins");
        thread_ = function->getArg(1);
        b.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function));
        return function->getArg(0);
    }
    llvm::Value* thread() override { return field(b_->getInt32Ty(), offsetof(EmulatedThread, thread)); }
    llvm::Value* threads() override { return field(b_->getInt32Ty(), offsetof(EmulatedThread, threads)); }
    llvm::Value* block() override { return field(b_->getInt32Ty(), offsetof(EmulatedThread, block)); }
    llvm::Value* blocks() override { return field(b_->getInt32Ty(), offsetof(EmulatedThread, blocks)); }
    void barrier() override {
        auto* type = llvm::FunctionType::get(b_->getVoidTy(), {b_->getPtrTy()}, false);
        b_->CreateCall(type, field(b_->getPtrTy(), offsetof(EmulatedThread, barrier)), {thread_});
    }
    llvm::Value* exchange(llvm::Value* bits, int difference) override {
        llvm::Type* word = b_->getInt64Ty();
        auto* type = llvm::FunctionType::get(word, {b_->getPtrTy(), word, b_->getInt32Ty()}, false);
        llvm::Value* other =
            b_->CreateCall(type, field(b_->getPtrTy(), offsetof(EmulatedThread, exchange)),
                           {thread_, b_->CreateZExt(bits, word), b_->getInt32(static_cast<uint32_t>(difference))});
        return b_->CreateTrunc(other, bits->getType());
    }
    Four fragment(llvm::Value* start, int pitch, bool turned) override {
        llvm::Value* lane = b_->CreateURem(thread(), b_->getInt32(kWarp));
        llvm::Value* row = b_->CreateUDiv(lane, b_->getInt32(4));
        llvm::Value* column = b_->CreateMul(b_->CreateURem(lane, b_->getInt32(4)), b_->getInt32(2));
        if (turned) std::swap(row, column);
        llvm::Value* block = b_->CreateGEP(b_->getInt8Ty(), near_memory(), start);
        llvm::Type* element = b_->getInt16Ty();
        const auto apart = static_cast<uint32_t>(pitch);
        Four list;
        for (uint32_t quarter = 0; quarter < list.size(); ++quarter) {
            llvm::Value* place = b_->CreateAdd(b_->CreateAdd(b_->CreateMul(row, b_->getInt32(apart)), column),
                                               b_->getInt32(quarter % 2 * 8 * apart + quarter / 2 * 8));
            llvm::Value* next = b_->CreateAdd(place, b_->getInt32(turned ? apart : 1));
            llvm::Value* low = b_->CreateLoad(element, b_->CreateGEP(element, block, place));
            llvm::Value* high = b_->CreateLoad(element, b_->CreateGEP(element, block, next));
            list[quarter] = joined(low, high);
        }
        return list;
    }
    Four product(std::span<llvm::Value* const> factors, const Four& sums, bool is_bfloat) override {
        auto fill = [&](llvm::Type* type, std::span<llvm::Value* const> values) {
            llvm::Value* memory = frame(type, values.size());
            for (size_t i = 0; i < values.size(); ++i)
                b_->CreateStore(values[i], b_->CreateConstInBoundsGEP1_64(type, memory, i));
            return memory;
        };
        llvm::Value* given = fill(b_->getInt32Ty(), factors);
        llvm::Value* result = fill(b_->getFloatTy(), sums);
        auto* type = llvm::FunctionType::get(b_->getVoidTy(),
                                             {b_->getPtrTy(), b_->getPtrTy(), b_->getPtrTy(), b_->getInt32Ty()}, false);
        b_->CreateCall(type, field(b_->getPtrTy(), offsetof(EmulatedThread, product)),
                       {thread_, given, result, b_->getInt32(is_bfloat)});
        Four list;
        for (size_t i = 0; i < list.size(); ++i)
            list[i] = b_->CreateLoad(b_->getFloatTy(), b_->CreateConstInBoundsGEP1_64(b_->getFloatTy(), result, i));
        return list;
    }
    // Rounds to nearest, ties to even.
    llvm::Value* pair(llvm::Value* low, llvm::Value* high, bool is_bfloat) override {
        auto rounded = [&](llvm::Value* v) -> llvm::Value* {
            if (!is_bfloat) return b_->CreateBitCast(b_->CreateFPTrunc(v, b_->getHalfTy()), b_->getInt16Ty());
            llvm::Value* bits = b_->CreateBitCast(v, b_->getInt32Ty());
            llvm::Value* odd = b_->CreateAnd(b_->CreateLShr(bits, 16), 1);
            llvm::Value* nearest = b_->CreateAdd(bits, b_->CreateAdd(odd, b_->getInt32(0x7fff)));
            llvm::Value* nan = b_->CreateFCmpUNO(v, v);
            return b_->CreateTrunc(b_->CreateLShr(b_->CreateSelect(nan, b_->getInt32(0x7fffffff), nearest), 16),
                                   b_->getInt16Ty());
        };
        return joined(rounded(low), rounded(high));
    }
    llvm::Value* reduction_memory() override { return field(b_->getPtrTy(), offsetof(EmulatedThread, reduction)); }
    llvm::Value* near_memory() override { return field(b_->getPtrTy(), offsetof(EmulatedThread, near)); }
    unsigned tensor_space() const override { return 0; }

  private:
    llvm::Value* joined(llvm::Value* low, llvm::Value* high) {
        llvm::Type* word = b_->getInt32Ty();
        return b_->CreateOr(b_->CreateZExt(low, word), b_->CreateShl(b_->CreateZExt(high, word), 16));
    }
    // Memory in the function's frame, the same for each use.
    llvm::Value* frame(llvm::Type* type, size_t count) {
        llvm::Value*& memory = frames_[type];
        if (!memory) {
            const llvm::IRBuilder<>::InsertPointGuard guard(*b_);
            llvm::BasicBlock& entry = b_->GetInsertBlock()->getParent()->getEntryBlock();
            b_->SetInsertPoint(&entry, entry.begin());
            memory = b_->CreateAlloca(type, b_->getInt32(static_cast<uint32_t>(count)));
        }
        return memory;
    }
    llvm::Value* field(llvm::Type* type, size_t offset) {
        return b_->CreateLoad(type, b_->CreateConstInBoundsGEP1_64(b_->getInt8Ty(), thread_, offset));
    }

    llvm::Module& module_;
    llvm::IRBuilder<>* b_ = nullptr;
    llvm::Value* thread_ = nullptr;
    std::map<llvm::Type*, llvm::Value*> frames_;
};

}  // namespace

void do_together(llvm::Instruction* turn, int64_t turns) {
    if (turns < 2) return;
    llvm::LLVMContext& context = turn->getContext();
    llvm::Metadata* wish[] = {llvm::MDString::get(context, "llvm.loop.unroll.count"),
                              llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context),
                                                                                   static_cast<uint64_t>(turns)))};
    llvm::MDNode* loop = llvm::MDNode::getDistinct(context, {nullptr, llvm::MDNode::get(context, wish)});
    loop->replaceOperandWith(0, loop);
    turn->setMetadata(llvm::LLVMContext::MD_loop, loop);
}

std::unique_ptr<ThreadModel> ptx_threads(llvm::Module& module) { return std::make_unique<PtxThreads>(module); }
std::unique_ptr<ThreadModel> emulated_threads(llvm::Module& module) {
    return std::make_unique<EmulatedThreads>(module);
}

}  // namespace lunaria::codegen
