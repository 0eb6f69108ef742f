#include "core/loops/kernels.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/base/address_space.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/own_library.h"
#include "core/loops/generator.h"
#include "core/loops/kernel_files.h"

namespace lunaria::graph {

namespace {

std::vector<std::filesystem::path> library_paths() { return own_library_paths("liblunaria_codegen.so"); }

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
    // Whether there is memory for a kernel. LLVM's constructors and some of its functions end the process where there
    // is none, so that it is not even opened then.
    bool has_room() const {
        constexpr size_t kLibrary = size_t{64} << 20;  // with all libraries that it opens
        constexpr size_t kWork = size_t{64} << 20;
        return address_space_has(kWork + (function_ ? 0 : kLibrary));
    }
    std::string run(const KernelRequest& request, const std::string& target) {
        std::string code;
        if (!load() || !threads_ || !programs_) return code;
        if (request.threads)
            programs_(request.threads, kLoopSymbol, target.c_str(), &code, &keep);
        else if (request.shape)
            threads_(request.program, &*request.shape, kLoopSymbol, target.c_str(), &code, &keep);
        else
            function_(request.program, kLoopSymbol, target.c_str(), &code, &keep);
        return code;
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
            programs_ = reinterpret_cast<GenerateProgramFunction>(dlsym(library, kGenerateProgramSymbol));
            auto version = reinterpret_cast<VersionFunction>(dlsym(library, kVersionSymbol));
            if (!version || version() != kGeneratorVersion) function_ = nullptr;
            return function_;
        }
        return false;
    }
    GenerateFunction function_ = nullptr;
    GenerateThreadsFunction threads_ = nullptr;
    GenerateProgramFunction programs_ = nullptr;
    bool tried_ = false;
};

struct Store {
    std::mutex mutex;
    std::unordered_map<std::string, void*> known;
    Generator generator;
    KernelCacheStats stats;
    KernelOrigin origin = KernelOrigin::generator;
    std::unordered_map<std::string, WantedCode> wanted;  // by the keys of `known`
    double generating = 0;                               // seconds, for stats.generated kernels
    // Another build of the generator has other kernels, even where its version was not counted up.
    const std::string& build() {
        if (!build_) build_ = origin == KernelOrigin::cache ? read_kernel_file(kLastBuild) : library_build();
        return *build_;
    }
    void keep(const std::string& key, const std::string& code) {
        if (stats.generated++ == 0) write_kernel_file(kLastBuild, build());
        write_kernel_file(key, code);
    }

  private:
    // An entry of the cache: the build whose kernels are there, for programs that have none of their own.
    static constexpr std::string_view kLastBuild = "the last build of the code generator";
    static std::string library_build() {
        for (const auto& path : library_paths()) {
            struct stat info;
            if (stat(path.c_str(), &info) != 0) continue;
            return std::to_string(info.st_size) + ' ' + std::to_string(info.st_mtim.tv_sec) + '.' +
                   std::to_string(info.st_mtim.tv_nsec);
        }
        return {};
    }
    std::optional<std::string> build_;
};
Store& store() {
    // Never destroyed: loaded code stays to the end of the process.
    static auto* s = new Store;
    return *s;
}

thread_local KnownCodeOnly* only_known = nullptr;

std::string generate(Store& store, const KernelRequest& request, const std::string& target) {
    if (logs(LogTopic::cache)) log(LogTopic::cache, "a kernel is generated: no cache has it");
    const auto start = std::chrono::steady_clock::now();
    std::string code = store.generator.run(request, target);
    store.generating += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return code;
}

std::string key_of(Store& store, const KernelRequest& request, const std::string& target) {
    std::string key = str("kernel ", kGeneratorVersion, ' ', store.build(), ' ', target, '\n');
    if (request.threads) return key + request.threads->text();
    if (request.shape) key += request.shape->text() + '\n';
    return key + request.program->text();
}

}  // namespace

void set_kernel_origin(KernelOrigin origin) {
    std::lock_guard lock(store().mutex);
    store().origin = origin;
}

bool can_generate() {
    static const bool there = [] {
        std::lock_guard lock(store().mutex);
        return store().origin == KernelOrigin::generator ? store().generator.is_there()
                                                         : store().origin == KernelOrigin::cache;
    }();
    return there;
}

std::vector<void*> find_kernels(const CodeTarget& target, std::span<const KernelRequest> requests) {
    std::vector<void*> kernels;
    Store& s = store();
    std::lock_guard lock(s.mutex);
    for (const KernelRequest& request : requests) {
        const std::string key = key_of(s, request, target.name);
        // Code that one device has loaded is of no use to another.
        std::string place = str(reinterpret_cast<uintptr_t>(target.load), ' ') + key;
        if (auto found = s.known.find(place); found != s.known.end()) {
            ++s.stats.shared;
            kernels.push_back(found->second);
            continue;
        }
        void* kernel = nullptr;
        if (std::string code = read_kernel_file(key); !code.empty()) {
            kernel = target.load(code);
            if (kernel) ++s.stats.read;
        }
        if (!kernel && s.origin == KernelOrigin::generator && only_known) {
            WantedCode* const wanted = &s.wanted[std::move(place)];
            auto& list = only_known->wanted;
            if (std::ranges::find(list, wanted) == list.end()) list.push_back(wanted);
            kernels.push_back(nullptr);
            continue;
        }
        if (!kernel && s.origin == KernelOrigin::generator) {
            if (!s.generator.has_room()) {
                kernels.push_back(nullptr);  // this time: there may be room for the next graph
                continue;
            }
            const std::string code = generate(s, request, target.name);
            if (!code.empty()) kernel = target.load(code);
            if (kernel) s.keep(key, code);
        }
        if (auto wanted = s.wanted.find(place); wanted != s.wanted.end()) wanted->second.known = true;
        s.known.emplace(std::move(place), kernel);
        kernels.push_back(kernel);
    }
    return kernels;
}

std::string find_code(const KernelRequest& request, const std::string& target) {
    Store& s = store();
    std::lock_guard lock(s.mutex);
    const std::string key = key_of(s, request, target);
    std::string code = read_kernel_file(key);
    if (!code.empty()) {
        ++s.stats.read;
        return code;
    }
    if (s.origin != KernelOrigin::generator || !s.generator.has_room()) return code;
    code = generate(s, request, target);
    if (!code.empty()) s.keep(key, code);
    return code;
}

KnownCodeOnly::KnownCodeOnly() : outer_(std::exchange(only_known, this)) {}
KnownCodeOnly::~KnownCodeOnly() { only_known = outer_; }

double generation_seconds(size_t kernels) {
    // Before the first one: LLVM is loaded, and a usual kernel.
    constexpr double kLoad = 0.06, kUsual = 0.02;
    Store& s = store();
    std::lock_guard lock(s.mutex);
    const auto made = static_cast<double>(s.stats.generated), asked = static_cast<double>(kernels);
    return made == 0 ? kLoad + asked * kUsual : asked * s.generating / made;
}

KernelCacheStats kernel_cache_stats() {
    std::lock_guard lock(store().mutex);
    return store().stats;
}

void forget_kernels() {
    std::lock_guard lock(store().mutex);
    store().known.clear();
    for (auto& [place, wanted] : store().wanted) wanted.known = false, wanted.seconds = 0;
}

}  // namespace lunaria::graph
