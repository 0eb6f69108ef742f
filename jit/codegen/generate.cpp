// The functions of the library: a program in, an object file or assembly out.
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "core/loops/generator.h"
#include "jit/codegen/loops.h"
#include "jit/codegen/thread_loops.h"
#include "jit/codegen/thread_programs.h"

namespace lunaria::codegen {

namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";
constexpr const char* kThreadTriple = "nvptx64-nvidia-cuda";

using Sink = void (*)(void* context, const char* bytes, size_t count);

int register_bytes(std::string_view target) { return target == "x86-64-v4" ? 64 : target == "x86-64-v3" ? 32 : 16; }

std::unique_ptr<llvm::TargetMachine> machine_for(const char* target) {
    [[maybe_unused]] static const bool ready = [] {
        LLVMInitializeX86TargetInfo();
        LLVMInitializeX86Target();
        LLVMInitializeX86TargetMC();
        LLVMInitializeX86AsmPrinter();
        return true;
    }();
    std::string none;
    const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kTriple, none);
    if (!found) return nullptr;
    return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(kTriple, target, "", llvm::TargetOptions(),
                                                                           llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                           llvm::CodeGenOptLevel::Default));
}

std::unique_ptr<llvm::TargetMachine> thread_machine(const char* target) {
    [[maybe_unused]] static const bool ready = [] {
        LLVMInitializeNVPTXTargetInfo();
        LLVMInitializeNVPTXTarget();
        LLVMInitializeNVPTXTargetMC();
        LLVMInitializeNVPTXAsmPrinter();
        return true;
    }();
    std::string none;
    const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kThreadTriple, none);
    if (!found) return nullptr;
    return std::unique_ptr<llvm::TargetMachine>(
        found->createTargetMachine(kThreadTriple, target, "+ptx78", llvm::TargetOptions(), llvm::Reloc::PIC_,
                                   llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive));
}

// LLVM's analyses for its passes.
struct Analyses {
    explicit Analyses(llvm::TargetMachine& machine) : builder(&machine) {
        builder.registerModuleAnalyses(modules);
        builder.registerCGSCCAnalyses(calls);
        builder.registerFunctionAnalyses(functions);
        builder.registerLoopAnalyses(loops);
        builder.crossRegisterProxies(loops, functions, calls, modules);
    }
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager calls;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder builder;
};

// The product that a value is, or is the negative of, if a sum may be fused with it. It must be in the same block and
// have no other use, which is what compilers of the same formula fuse.
llvm::Instruction* joinable(llvm::Value* v, const llvm::BasicBlock* beside) {
    auto* at = llvm::dyn_cast<llvm::Instruction>(v);
    if (at && at->getOpcode() == llvm::Instruction::FNeg && at->hasOneUse())
        at = llvm::dyn_cast<llvm::Instruction>(at->getOperand(0));
    const bool joins = at && at->getOpcode() == llvm::Instruction::FMul && at->hasAllowContract() && at->hasOneUse() &&
                       at->getParent() == beside;
    return joins ? at : nullptr;
}

// Fuses the products and sums of formulas, so that later passes have no choice: a formula gives the same bits whatever
// else is in the loop, even if the loop uses one of its products elsewhere.
void join_products(llvm::Function& function) {
    for (llvm::BasicBlock& block : function)
        for (llvm::Instruction& at : llvm::make_early_inc_range(block)) {
            const bool adds = at.getOpcode() == llvm::Instruction::FAdd;
            if ((!adds && at.getOpcode() != llvm::Instruction::FSub) || !at.hasAllowContract()) continue;
            llvm::IRBuilder<> b(&at);
            llvm::Value *first = at.getOperand(0), *second = at.getOperand(1);
            auto join = [&](llvm::Instruction* product, bool negative, llvm::Value* rest) {
                llvm::Value* factor = product->getOperand(0);
                if (negative) factor = b.CreateFNeg(factor);
                at.replaceAllUsesWith(
                    b.CreateIntrinsic(at.getType(), llvm::Intrinsic::fma, {factor, product->getOperand(1), rest}));
            };
            if (llvm::Instruction* product = joinable(first, &block))
                join(product, product != first, adds ? second : b.CreateFNeg(second));
            else if ((product = joinable(second, &block)))
                join(product, (product != second) == adds, first);
            else
                continue;
            at.eraseFromParent();
        }
    for (llvm::BasicBlock& block : function)
        for (llvm::Instruction& at : block)
            if (llvm::isa<llvm::FPMathOperator>(at)) at.setHasAllowContract(false);
}

// The written code is close to its final form: this only removes memory slots and repeated addresses.
void tidy(llvm::Module& module, llvm::TargetMachine& machine, bool fuses) {
    Analyses analyses(machine);
    llvm::FunctionPassManager slots, rest;
    slots.addPass(llvm::PromotePass());
    rest.addPass(llvm::EarlyCSEPass());
    for (llvm::Function& f : module) {
        if (f.isDeclaration()) continue;
        slots.run(f, analyses.functions);
        if (fuses) join_products(f);
        rest.run(f, analyses.functions);
    }
}

// Kernels of threads are generated once and run often, on processors whose own compilers optimise less.
void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
    Analyses analyses(machine);
    analyses.builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, analyses.modules);
}

bool dumps_code() {
    const char* wish = std::getenv("LUNARIA_DUMP");
    return wish && std::string_view(wish).find("llvm") != std::string_view::npos;
}

llvm::TargetMachine* host_machine(const char* target) {
    static const std::unique_ptr<llvm::TargetMachine> machines[] = {machine_for("x86-64-v2"), machine_for("x86-64-v3"),
                                                                    machine_for("x86-64-v4")};
    const int bytes = register_bytes(target);
    return machines[bytes == 64 ? 2 : bytes == 32 ? 1 : 0].get();
}

// Passes the machine's output for a module to the sink.
bool emit(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type, void* context, Sink sink) {
    if (dumps_code()) module.print(llvm::errs(), nullptr);
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream out(bytes);
    llvm::legacy::PassManager passes;
    if (machine.addPassesToEmitFile(passes, out, nullptr, type)) return false;
    passes.run(module);
    sink(context, bytes.data(), bytes.size());
    return true;
}

bool is_valid(llvm::Module& module) { return !llvm::verifyModule(module, dumps_code() ? &llvm::errs() : nullptr); }

bool generate(const graph::LoopProgram& program, const char* symbol, const char* target, void* context, Sink sink) {
    llvm::TargetMachine* machine = host_machine(target);
    if (!machine) return false;
    llvm::LLVMContext llvm_context;
    llvm::Module module("kernel", llvm_context);
    module.setTargetTriple(kTriple);
    module.setDataLayout(machine->createDataLayout());
    if (!write_loop(module, program, symbol, register_bytes(target)) || !is_valid(module)) return false;
    tidy(module, *machine, register_bytes(target) >= 32);
    return emit(module, *machine, llvm::CodeGenFileType::ObjectFile, context, sink);
}

// A kernel of threads, written by `write`. `target`: a processor that runs threads in blocks (sm_80 and above), for
// which the result is PTX text, or a level of x86-64, for which it is an object file with an EmulatedKernel.
template <class Write>
bool generate_threads(const char* target, void* context, Sink sink, Write write) {
    const bool emulated = std::string_view(target).starts_with("x86-64");
    std::unique_ptr<llvm::TargetMachine> own;
    if (!emulated) own = thread_machine(target);
    llvm::TargetMachine* machine = emulated ? host_machine(target) : own.get();
    if (!machine) return false;
    llvm::LLVMContext llvm_context;
    llvm::Module module("kernel", llvm_context);
    module.setTargetTriple(emulated ? kTriple : kThreadTriple);
    module.setDataLayout(machine->createDataLayout());
    const std::unique_ptr<ThreadModel> model = emulated ? emulated_threads(module) : ptx_threads(module);
    if (!write(module, *model) || !is_valid(module)) return false;
    if (emulated)
        tidy(module, *machine, false);
    else
        optimise(module, *machine);
    return emit(module, *machine, emulated ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile,
                context, sink);
}

}  // namespace

}  // namespace lunaria::codegen

extern "C" {
[[gnu::visibility("default")]] bool lunaria_generate(const lunaria::graph::LoopProgram* program, const char* symbol,
                                                     const char* target, void* context,
                                                     void (*sink)(void*, const char*, size_t)) {
    return lunaria::codegen::generate(*program, symbol, target, context, sink);
}
[[gnu::visibility("default")]] bool lunaria_generate_threads(const lunaria::graph::LoopProgram* program,
                                                             const lunaria::graph::ThreadShape* shape,
                                                             const char* symbol, const char* target, void* context,
                                                             void (*sink)(void*, const char*, size_t)) {
    using namespace lunaria::codegen;
    return generate_threads(target, context, sink, [&](llvm::Module& module, ThreadModel& model) {
        return write_thread_loop(module, *program, *shape, symbol, model);
    });
}
[[gnu::visibility("default")]] bool lunaria_generate_program(const lunaria::graph::ThreadProgram* program,
                                                             const char* symbol, const char* target, void* context,
                                                             void (*sink)(void*, const char*, size_t)) {
    using namespace lunaria::codegen;
    return generate_threads(target, context, sink, [&](llvm::Module& module, ThreadModel& model) {
        return write_thread_program(module, *program, symbol, model);
    });
}
[[gnu::visibility("default")]] int lunaria_generator_version() { return lunaria::graph::kGeneratorVersion; }
}
