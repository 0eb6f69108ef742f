// Common parts of the mocks of libraries beside the driver: they work in the memory and on the streams of the mock
// of the driver (tests/gpu/driver/mock.h), and tell it what is used wrongly.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <string>

namespace lunaria::testing {

using Status = int;
inline constexpr Status kInvalid = 7;
extern const char* const kLibrary;  // its name, for what it tells

template <class F>
F* of_driver(const char* name) {
    static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    return reinterpret_cast<F*>(dlsym(driver, name));
}
inline void blame(const std::string& text) {
    of_driver<void(const char*)>("mock_blame")((std::string(kLibrary) + ": " + text).c_str());
}
inline void* inside(uint64_t address, size_t bytes) {
    return of_driver<void*(uint64_t, size_t)>("mock_inside")(address, bytes);
}
// Work that is to do nothing, as kernels then (mock_skip_kernels).
inline bool skips() { return of_driver<int()>("mock_skips")() != 0; }
inline void add(void* stream, void (*work)(void*), void* what) {
    of_driver<void(void*, void (*)(void*), void*)>("mock_add")(stream, work, what);
}

// Handles that are alive: others are used wrongly.
inline std::set<const void*>& alive() {
    static auto* all = new std::set<const void*>;
    return *all;
}
template <class T>
Status make(T** made, T value) {
    *made = new T(value);
    alive().insert(*made);
    return 0;
}
template <class T>
Status destroy(T* one) {
    if (!alive().erase(one)) {
        blame("a handle is destroyed that there is none of");
        return kInvalid;
    }
    delete one;
    return 0;
}
inline bool know(std::initializer_list<const void*> all) {
    for (const void* one : all)
        if (!alive().contains(one)) {
            blame("a handle is used that there is none of");
            return false;
        }
    return true;
}

inline size_t version_or(const char* variable, size_t otherwise) {
    const char* wish = std::getenv(variable);
    return wish ? static_cast<size_t>(std::atoi(wish)) : otherwise;
}

}  // namespace lunaria::testing
