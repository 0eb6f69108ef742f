#include "interpreter/bindings/field_calls.h"

#include "core/io/embedded.h"
#include "interpreter/loader/loader.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"

namespace lunaria {

void bind_field_calls(lua_State* L) {
    const std::string file = "lunaria/field_calls.lua";
    State::of(L).loader().compile(L, embedded_text(file), std::string(kLibraryChunks) + file);
    lua_getfield(L, -2, "is_tensor");
    lua_call(L, 1, 1);
    push(L, Shape());
    push(L, DType::f32);
    for (int i = 0; i < 2; ++i) {
        lua_getmetatable(L, -1);
        lua_pushvalue(L, -4 + i);
        lua_setfield(L, -2, "__call");
        lua_pop(L, 2);
    }
    lua_pop(L, 1);
}

}  // namespace lunaria
