// The two surroundings that thread kernels are written for.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cstddef>
#include <memory>

#include "jit/codegen/thread_loops.h"

namespace lunaria::codegen {

namespace {

using graph::EmulatedThread;
using graph::kWarp;

constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

class PtxThreads : public ThreadModel {
  public:
    explicit PtxThreads(llvm::Module& module) : module_(module) {}

    llvm::Value* begin(llvm::IRBuilder<>& b, const char* symbol, size_t words) override {
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
        llvm::Metadata* facts[] = {llvm::ValueAsMetadata::get(function), llvm::MDString::get(context, "kernel"),
                                   llvm::ConstantAsMetadata::get(b.getInt32(1))};
        module_.getOrInsertNamedMetadata("nvvm.annotations")->addOperand(llvm::MDNode::get(context, facts));
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
    llvm::Value* reduction_memory() override {
        if (!reduction_) reduction_ = shared("reduction", kWarp, llvm::GlobalValue::InternalLinkage);
        return b_->CreateAddrSpaceCast(reduction_, b_->getPtrTy());
    }
    // Its size is told with the launch.
    llvm::Value* near_memory() override {
        if (!near_) near_ = shared("near", 0, llvm::GlobalValue::ExternalLinkage);
        return b_->CreateAddrSpaceCast(near_, b_->getPtrTy());
    }
    unsigned tensor_space() const override { return kGlobalSpace; }

  private:
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

    llvm::Value* begin(llvm::IRBuilder<>& b, const char* symbol, size_t) override {
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
    llvm::Value* reduction_memory() override { return field(b_->getPtrTy(), offsetof(EmulatedThread, reduction)); }
    llvm::Value* near_memory() override { return field(b_->getPtrTy(), offsetof(EmulatedThread, near)); }
    unsigned tensor_space() const override { return 0; }

  private:
    llvm::Value* field(llvm::Type* type, size_t offset) {
        return b_->CreateLoad(type, b_->CreateConstInBoundsGEP1_64(b_->getInt8Ty(), thread_, offset));
    }

    llvm::Module& module_;
    llvm::IRBuilder<>* b_ = nullptr;
    llvm::Value* thread_ = nullptr;
};

}  // namespace

std::unique_ptr<ThreadModel> ptx_threads(llvm::Module& module) { return std::make_unique<PtxThreads>(module); }
std::unique_ptr<ThreadModel> emulated_threads(llvm::Module& module) {
    return std::make_unique<EmulatedThreads>(module);
}

}  // namespace lunaria::codegen
