// NVIDIA's libraries, which are opened when they are first of use: what they lack, or that there is none, is a text,
// and kernels of our own do the work then.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

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

const LibraryState& product_library();
const LibraryState& convolution_library();

}  // namespace lunaria::gpu
