#include "interpreter/session/docs.h"

#include <filesystem>

#include "core/base/error.h"

namespace lunaria {

void write_docs(State& state, const std::string& folder, bool html) {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure) throw file_error("docs", str("cannot make the folder ", folder, ": ", failure.message()));
    lua_State* L = state.lua();
    lua_getglobal(L, "require");
    lua_pushstring(L, html ? "lunaria.help.site" : "lunaria.help.markdown");
    lua_call(L, 1, 1);
    lua_pushstring(L, folder.c_str());
    lua_call(L, 1, 0);
}

}  // namespace lunaria
