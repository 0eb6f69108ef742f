#include "backends/gpu/library.h"

#include <cstdlib>
#include <string_view>

#include "core/base/error.h"

namespace lunaria::gpu {

bool uses_libraries() {
    static const bool uses = [] {
        const char* wish = std::getenv("LUNARIA_GPU_LIBRARIES");
        return !wish || std::string_view(wish) != "0";
    }();
    return uses;
}

LibraryOpener::LibraryOpener(std::string_view what, std::initializer_list<const char*> files) : what_(what) {
    state_.name = what_;
    if (!uses_libraries()) {
        state_.missing = str(what_, " is not to be used: LUNARIA_GPU_LIBRARIES is 0");
        return;
    }
    std::string tried;
    for (const char* file : files) {
        tried += str(tried.empty() ? "" : ", ", file);
        library_ = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
        if (!library_) continue;
        file_ = file;
        return;
    }
    state_.missing = str(what_, " was not found: ", tried, "; the folder that it is in has to be in LD_LIBRARY_PATH");
}

void LibraryOpener::lacks(std::string_view function) {
    state_.missing = str(what_, " is too old: ", file_, " lacks ", function);
}

void LibraryOpener::set_version(int version, int oldest, const std::string& text, const std::string& oldest_text) {
    if (!is_there()) return;
    state_.name = str(what_, ' ', text, " (", file_, ')');
    if (version < oldest) state_.missing = str(what_, " is too old: ", file_, " is ", text, "; it takes ", oldest_text);
}

std::vector<LibraryState> library_states() {
    return {product_library(), convolution_library(), communication_library()};
}

}  // namespace lunaria::gpu
