// The library's two functions: a program in, an object file out.
#include <llvm/ADT/SmallVector.h>
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

#include "jit/codegen/loops.h"
#include "jit/graph/generator.h"

namespace lunaria::codegen {

namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

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

// What is written is close to its final form: only what memory slots and repeated addresses leave behind is tidied.
void tidy(llvm::Module& module, llvm::TargetMachine& machine) {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager calls;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder builder(&machine);
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(calls);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, calls, modules);
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::PromotePass());
    passes.addPass(llvm::EarlyCSEPass());
    for (llvm::Function& f : module)
        if (!f.isDeclaration()) passes.run(f, functions);
}

bool dumps_code() {
    const char* wish = std::getenv("LUNARIA_DUMP");
    return wish && std::string_view(wish).find("llvm") != std::string_view::npos;
}

bool generate(const graph::LoopProgram& program, const char* symbol, const char* target, void* context,
              void (*sink)(void*, const char*, size_t)) {
    static const std::unique_ptr<llvm::TargetMachine> machines[] = {machine_for("x86-64-v2"), machine_for("x86-64-v3"),
                                                                    machine_for("x86-64-v4")};
    const int bytes = register_bytes(target);
    llvm::TargetMachine* machine = machines[bytes == 64 ? 2 : bytes == 32 ? 1 : 0].get();
    if (!machine) return false;
    llvm::LLVMContext llvm_context;
    llvm::Module module("kernel", llvm_context);
    module.setTargetTriple(kTriple);
    module.setDataLayout(machine->createDataLayout());
    if (!write_loop(module, program, symbol, bytes)) return false;
    if (llvm::verifyModule(module, dumps_code() ? &llvm::errs() : nullptr)) return false;
    tidy(module, *machine);
    if (dumps_code()) module.print(llvm::errs(), nullptr);
    llvm::SmallVector<char, 0> object;
    llvm::raw_svector_ostream out(object);
    llvm::legacy::PassManager emit;
    if (machine->addPassesToEmitFile(emit, out, nullptr, llvm::CodeGenFileType::ObjectFile)) return false;
    emit.run(module);
    sink(context, object.data(), object.size());
    return true;
}

}  // namespace

}  // namespace lunaria::codegen

extern "C" {
[[gnu::visibility("default")]] bool lunaria_generate(const lunaria::graph::LoopProgram* program, const char* symbol,
                                                     const char* target, void* context,
                                                     void (*sink)(void*, const char*, size_t)) {
    return lunaria::codegen::generate(*program, symbol, target, context, sink);
}
[[gnu::visibility("default")]] int lunaria_generator_version() { return lunaria::graph::kGeneratorVersion; }
}
