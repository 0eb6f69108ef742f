// Code of loop programs for devices: a cache in the process in front of one on disk in front of the code generator.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/loops/thread_loop.h"
#include "core/loops/thread_program.h"

namespace lunaria::graph {

// The target of code.
struct CodeTarget {
    // The generator's target: a level of x86-64 (v2 to v4; the code is an object file), or sm_80 and above (PTX text).
    std::string name;
    // Loads code for the rest of the process and returns the handle that launches it; null where the code is damaged.
    void* (*load)(std::string_view code) = nullptr;
};

// A program and, for processors that run threads in blocks, the distribution of its work. Without a shape the code is a
// LoopFunction (generator.h), with one for x86-64 an EmulatedKernel; its name is kLoopSymbol.
struct KernelRequest {
    const LoopProgram* program = nullptr;
    std::optional<ThreadShape> shape{};
    const ThreadProgram* threads = nullptr;  // in place of the other two
};

// The result of `load` for each request, kept for the rest of the process; null where there is no code: the code
// generator is not installed or refuses. Deterministic: equal programs give equal code on one machine. Safe from
// several threads; calls of `load` never overlap.
std::vector<void*> find_kernels(const CodeTarget& target, std::span<const KernelRequest> requests);

// Code that was asked for and would have to be generated. It lives for the rest of the process, one for equal requests.
struct WantedCode {
    std::atomic<double> seconds = 0;  // that graphs have spent on work that it would have done
    std::atomic<bool> known = false;  // it was generated, or refused, since
};

// While it lives, find_kernels() of this thread generates nothing: what neither the process nor the disk has is null,
// and among `wanted`, once.
class KnownCodeOnly {
  public:
    KnownCodeOnly();
    ~KnownCodeOnly();
    KnownCodeOnly(const KnownCodeOnly&) = delete;
    KnownCodeOnly& operator=(const KnownCodeOnly&) = delete;
    std::vector<WantedCode*> wanted;

  private:
    KnownCodeOnly* const outer_;
};

// The seconds that generating so many kernels is likely to take, by those so far.
double generation_seconds(size_t kernels);

// The code itself, from the disk cache or the code generator. Empty: there is none.
std::string find_code(const KernelRequest& request, const std::string& target);

// Where kernels come from. A program without the code generator has those that another one has left in the cache.
enum class KernelOrigin : uint8_t { generator, cache, none };
// For the rest of the process, before it asks for the first kernel; else it is the generator, behind the cache.
void set_kernel_origin(KernelOrigin origin);

// Whether there may be kernels at all; false without the code generator's library where that is the origin.
bool can_generate();

struct KernelCacheStats {
    size_t generated = 0, read = 0, shared = 0;  // by the code generator, from disk, found in the process
};
KernelCacheStats kernel_cache_stats();
// For tests and benches: forgets the kernels that the process knows (running ones stay valid).
void forget_kernels();

}  // namespace lunaria::graph
