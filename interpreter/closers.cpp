#include "interpreter/closers.h"

#include "core/base/interrupt.h"

namespace lunaria {

namespace {

// Variables that an error closes are near the top of the stack; reaching a level takes a walk from there.
constexpr int kMostLevels = 1000;

const void* function_of(lua_State* L, lua_Debug* frame) {
    lua_getinfo(L, "f", frame);
    const void* function = lua_topointer(L, -1);
    lua_pop(L, 1);
    return function;
}

}  // namespace

void Closers::note(lua_State* L) {
    // The error is raised anew wherever it was caught: the notes stay.
    if (!lua_checkstack(L, 6)) return;
    lua_Debug frame;
    for (int level = 0; level < kMostLevels && lua_getstack(L, level, &frame); ++level) {
        // The hidden variables of loops count as well.
        for (int i = 1; lua_getlocal(L, &frame, i); ++i) {
            if (luaL_getmetafield(L, -1, "__close") != LUA_TNIL) {
                functions_.insert(lua_topointer(L, -1));
                lua_pop(L, 1);
            }
            lua_pop(L, 1);
        }
    }
}

bool Closers::is_on_stack(lua_State* L) const {
    // The event belongs to a coroutine that the function resumes.
    if (L != thread_) return true;
    lua_Debug frame;
    for (int level = 0; level < kMostLevels && lua_getstack(L, level, &frame); ++level)
        if (frame.i_ci == call_) return function_of(L, &frame) == function_;
    return false;
}

void Closers::begin(lua_State* L, const lua_Debug* event, const void* function) {
    thread_ = L;
    call_ = event->i_ci;
    function_ = function;
    clear_interrupt();
}

bool Closers::runs(lua_State* L, lua_Debug* event) {
    if (functions_.empty() || !lua_checkstack(L, 4)) return false;
    if (call_) {
        const bool returns = event->event == LUA_HOOKRET && L == thread_ && event->i_ci == call_;
        // The function ends normally, or by a second interrupt, also one that was raised in it.
        if (!returns && !interrupt_requested() && is_on_stack(L)) return true;
        const bool again = interrupt_requested();
        settle();
        if (again) functions_.clear();
        return false;
    }
    if (!interrupt_requested() || event->event != LUA_HOOKCALL) return false;
    const void* function = function_of(L, event);
    if (!functions_.contains(function)) return false;
    begin(L, event, function);
    return true;
}

void Closers::settle() {
    if (!call_) return;
    call_ = nullptr;
    thread_ = nullptr;
    request_interrupt();
}

void Closers::clear() {
    call_ = nullptr;
    thread_ = nullptr;
    functions_.clear();
}

}  // namespace lunaria
