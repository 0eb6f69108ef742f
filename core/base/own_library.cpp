#include "core/base/own_library.h"

#include <dlfcn.h>

#include "core/base/address_space.h"

namespace lunaria {

std::vector<std::filesystem::path> own_library_paths(std::string_view name) {
    std::error_code none;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
    std::vector<std::filesystem::path> paths = {program / name, program.parent_path() / name,
                                                program.parent_path() / "lib" / "lunaria" / name};
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(&own_library_paths), &info) && info.dli_fname) {
        const std::filesystem::path folder = std::filesystem::path(info.dli_fname).parent_path();
        if (!folder.empty() && folder != program)
            paths.insert(paths.end(), {folder / name, folder.parent_path() / name, folder / "lunaria" / name});
    }
    return paths;
}

void* own_library_function(std::string_view name, const char* symbol, std::string& problem) {
    constexpr size_t kRoom = size_t{32} << 20;
    problem = std::string(name) + " is not there";
    std::error_code none;
    for (const std::filesystem::path& path : own_library_paths(name)) {
        if (!std::filesystem::exists(path, none)) continue;
        void* const library = open_library(path.c_str(), RTLD_NOW | RTLD_LOCAL, kRoom, problem);
        if (!library) continue;
        if (void* function = dlsym(library, symbol)) return function;
        problem = dlerror();
    }
    return nullptr;
}

}  // namespace lunaria
