// NVIDIA's libraries, which are opened when they are first of use: what they lack, or that there is none, is a text,
// and kernels of our own do the work then.
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

// "cuBLASLt 13.1.0 (libcublasLt.so.13)", or which file or function is missing.
struct LibraryState {
    std::string name, missing;
};
// Of all libraries that there is a use for; opens them.
std::vector<LibraryState> library_states();
// LUNARIA_GPU_LIBRARIES=0 leaves everything to kernels of our own.
bool uses_libraries();

// Opens one file, for the life of the process.
class LibraryOpener {
  public:
    // By the first of these names that there is.
    LibraryOpener(std::string_view what, std::initializer_list<const char*> files);

    template <class F>
    void find(F*& function, const char* name) {
        function = library_ ? reinterpret_cast<F*>(dlsym(library_, name)) : nullptr;
        if (library_ && !function && state_.missing.empty()) lacks(name);
    }
    bool is_there() const { return state_.missing.empty(); }
    // The version of an open library; refuses one that is older.
    void set_version(int version, int oldest, const std::string& text, const std::string& oldest_text);
    const LibraryState& state() const { return state_; }

  private:
    void lacks(std::string_view function);
    void* library_ = nullptr;
    std::string file_, what_;
    LibraryState state_;
};

// What a library was told of the cases that were met, for a context at a time: the handle of a lost one went with it.
template <class Handle, class Plan>
class Plans {
  public:
    // The plan of a case, which make(handle) gives the first time; null where the library does not do it.
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

// Factors of a result and of what was there before it: numbers of the dtype that is computed in.
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

}  // namespace lunaria::gpu
