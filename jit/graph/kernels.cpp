#include "jit/graph/kernels.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/error.h"
#include "core/log.h"
#include "jit/graph/generator.h"
#include "jit/graph/kernel_files.h"
#include "jit/graph/machine_code.h"

namespace lunaria::graph {

namespace {

// The levels of instruction sets that kernels are built for elsewhere too; LUNARIA_ISA chooses a lower one.
std::string_view instruction_set() {
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    const char* wish = std::getenv("LUNARIA_ISA");
    const std::string_view wanted = wish ? wish : "";
    if (wanted == "v2" || !avx2) return "x86-64-v2";
    if (wanted == "avx2" || !avx512) return "x86-64-v3";
    return "x86-64-v4";
}

// The library stands beside the program, or in lib/lunaria beside the folder that the program stands in.
std::vector<std::filesystem::path> library_paths() {
    constexpr const char* kName = "liblunaria_codegen.so";
    std::error_code none;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", none);
    const std::filesystem::path folder = program.parent_path();
    return {folder / kName, folder.parent_path() / kName, folder.parent_path() / "lib" / "lunaria" / kName};
}

// The code generator, loaded when the first kernel is not found in a cache.
class Generator {
  public:
    bool is_there() {
        if (function_) return true;
        for (const auto& path : library_paths()) {
            std::error_code none;
            if (std::filesystem::exists(path, none)) return true;
        }
        return false;
    }
    std::string run(const LoopProgram& program, std::string_view target) {
        if (!load()) return {};
        std::string object;
        function_(&program, kLoopSymbol, std::string(target).c_str(), &object, &keep);
        return object;
    }
    std::string run(const LoopProgram& program, const ThreadShape& shape, const std::string& target) {
        if (!load() || !threads_) return {};
        std::string text;
        threads_(&program, &shape, kLoopSymbol, target.c_str(), &text, &keep);
        return text;
    }

  private:
    static void keep(void* out, const char* bytes, size_t count) {
        static_cast<std::string*>(out)->assign(bytes, count);
    }
    bool load() {
        if (tried_) return function_;
        tried_ = true;
        for (const auto& path : library_paths()) {
            // It stays for the life of the process: LLVM is not made to be unloaded.
            void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
            if (!library) continue;
            function_ = reinterpret_cast<GenerateFunction>(dlsym(library, kGenerateSymbol));
            threads_ = reinterpret_cast<GenerateThreadsFunction>(dlsym(library, kGenerateThreadsSymbol));
            auto version = reinterpret_cast<VersionFunction>(dlsym(library, kVersionSymbol));
            if (!version || version() != kGeneratorVersion) function_ = nullptr;
            return function_;
        }
        return false;
    }
    GenerateFunction function_ = nullptr;
    GenerateThreadsFunction threads_ = nullptr;
    bool tried_ = false;
};

struct Store {
    std::mutex mutex;
    std::unordered_map<std::string, LoopFunction> known;
    Generator generator;
    KernelCacheStats stats;
    const std::string target{instruction_set()};
    // Another build of the generator has other kernels, even where nobody thought of counting up its version.
    const std::string origin = [] {
        for (const auto& path : library_paths()) {
            struct stat info;
            if (stat(path.c_str(), &info) != 0) continue;
            return std::to_string(info.st_size) + ' ' + std::to_string(info.st_mtim.tv_sec) + '.' +
                   std::to_string(info.st_mtim.tv_nsec);
        }
        return std::string();
    }();
};
Store& store() {
    static Store s;
    return s;
}

}  // namespace

bool can_generate() {
    static const bool there = [] {
        std::lock_guard lock(store().mutex);
        return store().generator.is_there();
    }();
    return there;
}

std::vector<LoopFunction> find_kernels(std::span<const LoopProgram> programs, bool generate) {
    std::vector<LoopFunction> functions;
    Store& s = store();
    std::lock_guard lock(s.mutex);
    for (const LoopProgram& program : programs) {
        std::string key = "kernel " + std::to_string(kGeneratorVersion) + ' ' + s.origin + ' ' + s.target + '\n';
        key += program.text();
        if (auto found = s.known.find(key); found != s.known.end()) {
            ++s.stats.shared;
            functions.push_back(found->second);
            continue;
        }
        LoopFunction function = nullptr;
        if (std::string object = read_kernel_file(key); !object.empty()) {
            function = load_machine_code(object);
            if (function) ++s.stats.read;
        }
        if (!function && logs(LogTopic::cache))
            log(LogTopic::cache,
                generate ? "a kernel is generated: no cache has it" : "a kernel is in no cache: it can wait");
        if (!function && !generate) return {};
        if (!function) {
            const std::string object = s.generator.run(program, s.target);
            if (!object.empty()) function = load_machine_code(object);
            if (function) {
                ++s.stats.generated;
                write_kernel_file(key, object);
            }
        }
        s.known.emplace(std::move(key), function);
        functions.push_back(function);
    }
    return functions;
}

std::string find_thread_kernel(const LoopProgram& program, const ThreadShape& shape, const std::string& target) {
    Store& s = store();
    std::lock_guard lock(s.mutex);
    std::string key = str("kernel ", kGeneratorVersion, ' ', s.origin, ' ', target, '\n', shape.text(), '\n');
    key += program.text();
    std::string kernel = read_kernel_file(key);
    if (!kernel.empty()) {
        ++s.stats.read;
        return kernel;
    }
    kernel = s.generator.run(program, shape, target);
    if (kernel.empty()) return kernel;
    ++s.stats.generated;
    write_kernel_file(key, kernel);
    return kernel;
}

KernelCacheStats kernel_cache_stats() {
    std::lock_guard lock(store().mutex);
    return store().stats;
}

void forget_kernels() {
    std::lock_guard lock(store().mutex);
    store().known.clear();
}

}  // namespace lunaria::graph
