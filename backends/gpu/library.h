// NVIDIA's libraries, opened at their first use. If one is missing or incomplete, a text says so, and kernels of our
// own do the work.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/gpu/driver.h"

namespace lunaria::gpu {

// "cuBLASLt 13.1.0 (libcublasLt.so.13)", or the missing file or function.
struct LibraryState {
    std::string name, missing;
};
// The states of all libraries in use; opens them.
std::vector<LibraryState> library_states();
// LUNARIA_GPU_LIBRARIES=0 leaves everything to kernels of our own.
bool uses_libraries();

// Opens one file, for the life of the process.
class LibraryOpener {
  public:
    // Opens the first of these files that exists.
    LibraryOpener(std::string_view what, std::initializer_list<const char*> files);

    template <class F>
    void find(F*& function, const char* name) {
        function = library_ ? reinterpret_cast<F*>(dlsym(library_, name)) : nullptr;
        if (library_ && !function && state_.missing.empty()) lacks(name);
    }
    bool is_there() const { return state_.missing.empty(); }
    // Sets the version of an open library; refuses one that is older.
    void set_version(int version, int oldest, const std::string& text, const std::string& oldest_text);
    const LibraryState& state() const { return state_; }

  private:
    void lacks(std::string_view function);
    void* library_ = nullptr;
    std::string file_, what_;
    LibraryState state_;
};

// A library's plans for the cases so far, for one context: the handle of a lost context went with it.
template <class Handle, class Plan>
class Plans {
  public:
    // The plan of a case, which make(handle) returns the first time; null where the library does not support it.
    template <class Create, class Make>
    std::shared_ptr<Plan> find(uint64_t context, const std::string& key, Create create, Make make) {
        const std::lock_guard lock(mutex_);
        if (context_ != context) {
            handle_ = nullptr;
            context_ = context;
            known_.clear();
            if (create(&handle_) != 0) handle_ = nullptr;
        }
        if (!handle_) return nullptr;
        if (known_.size() > kMost) known_.clear();
        auto& plan = known_[key];
        if (!plan) plan = make(handle_);
        return plan->is_possible ? plan : nullptr;
    }

  private:
    static constexpr size_t kMost = 4096;
    std::mutex mutex_;
    uint64_t context_ = 0;
    Handle* handle_ = nullptr;
    std::unordered_map<std::string, std::shared_ptr<Plan>> known_;
};

// The factors of the new and of the old result: numbers of the computation's dtype.
class Factors {
  public:
    explicit Factors(bool in_double) : in_double_(in_double) {}
    const void* one() const { return in_double_ ? static_cast<const void*>(&kWideOne) : &kOne; }
    const void* zero() const { return in_double_ ? static_cast<const void*>(&kWideZero) : &kZero; }

  private:
    static constexpr float kOne = 1, kZero = 0;
    static constexpr double kWideOne = 1, kWideZero = 0;
    const bool in_double_;
};

inline void* pointer_to(Address address) { return reinterpret_cast<void*>(address); }

const LibraryState& product_library();
const LibraryState& convolution_library();
const LibraryState& communication_library();

}  // namespace lunaria::gpu
