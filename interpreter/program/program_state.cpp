#include "interpreter/program/program_state.h"

#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/program_place.h"
#include "core/parallel/operators.h"
#include "core/tensor/device.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/errors/frames.h"
#include "interpreter/host/coroutines.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/host/natives.h"
#include "interpreter/library/patterns.h"
#include "interpreter/library/table_functions.h"
#include "interpreter/loader/prologue.h"
#include "interpreter/protect.h"
#include "interpreter/values/callables.h"

namespace lunaria {

namespace {

// Finalizers run in the reverse order of their making: this one, the first, runs after all of the program's, which may
// compute and differentiate.
void finish_last(lua_State* L) {
    lua_newuserdatauv(L, 0, 0);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, [](lua_State* state) {
        end_natives(state);
        LuaHost::end(state);
        return 0;
    });
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    luaL_ref(L, LUA_REGISTRYINDEX);
}

// Lua's warnings, off at first, as luaL_newstate sets them up for its states. warn("@on") and warn("@off") switch them;
// `more`: the next piece belongs to the same message.
void keep_warning(void* state, const char* message, int more);
void write_warning(void* state, const char* message, int more);
void write_more(void* state, const char* message, int more);

bool is_switch(void* state, const char* message, int more) {
    if (more || *message != '@') return false;
    auto* L = static_cast<lua_State*>(state);
    if (std::strcmp(message, "@on") == 0) lua_setwarnf(L, write_warning, L);
    if (std::strcmp(message, "@off") == 0) lua_setwarnf(L, keep_warning, L);
    return true;
}

void keep_warning(void* state, const char* message, int more) { is_switch(state, message, more); }

void write_warning(void* state, const char* message, int more) {
    if (is_switch(state, message, more)) return;
    std::fputs("Lua warning: ", stderr);
    write_more(state, message, more);
}

void write_more(void* state, const char* message, int more) {
    auto* L = static_cast<lua_State*>(state);
    std::fputs(message, stderr);
    if (!more) std::fputs("\n", stderr);
    lua_setwarnf(L, more ? write_more : write_warning, L);
}

// os.exit, after all devices have finished their work: their threads run until the objects that they use are gone.
int exit_after_work(lua_State* L) {
    for (Device* device : devices()) device->synchronize();
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

void watch_exit(lua_State* L) {
    lua_getglobal(L, "os");
    lua_getfield(L, -1, "exit");
    lua_pushcclosure(L, protect<exit_after_work>, 1);
    lua_setfield(L, -2, "exit");
    lua_pop(L, 1);
}

void wait_for_devices() {
    for (Device* device : devices()) {
        try {
            device->synchronize();
        } catch (const Error& e) {
            std::fprintf(stderr, "%s\n", e.what());
        }
    }
}

}  // namespace

ProgramState::ProgramState(const Options& options)
    : StateParts(static_cast<State&>(*this)), State(options, own_loader, own_debugger, own_debugger) {
    lua_State* const L = lua();
    lua_setwarnf(L, keep_warning, L);
    finish_last(L);
    if (options.ignore_environment) {
        lua_pushboolean(L, true);
        lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
    }
    luaL_openlibs(L);
    watch_exit(L);
    track_coroutines(L);
    install_patterns(L);
    install_table_functions(L);
    own_debugger.install(L);
    own_loader.install(L);
    install_frames(L);
    open_libraries(L);
    replace_functions(L, {{LUA_GNAME, "collectgarbage", protect<collect_garbage>}});
    set_program_place([this] { return running_place(running()); });
    parallel::serve_operators();
    begin();
}

ProgramState::~ProgramState() {
    set_program_place({});
    end();
    if (!is_worker()) wait_for_devices();
}

std::string ProgramState::place(lua_State* L) const {
    // The line of the user's program that called the library, rather than the library's own, if there is one.
    std::string place;
    lua_Debug frame;
    const LuaHost* host = LuaHost::existing(L);
    const void* machine = host ? host->innermost_call() : nullptr;
    bool stood_for = false;
    for (int level = 0; lua_getstack(L, level, &frame); ++level) {
        lua_getinfo(L, "Sln", &frame);
        if (machine && frame.i_ci == machine) {
            // Code in the machine was called by a line of its program.
            const std::string line = host->innermost_place();
            if (!line.empty()) return line + ": ";
        }
        if (std::exchange(stood_for, is_entry_call(frame)) || frame.currentline <= 0) continue;
        const bool library = std::string_view(frame.source, frame.srclen).starts_with(kLibraryChunks);
        if (!library || place.empty()) place = str(frame.short_src, ":", frame.currentline, ": ");
        if (!library) break;
    }
    return place;
}

// collectgarbage, with a note of the mode, which the C API does not report.
int ProgramState::collect_garbage(lua_State* L) {
    const char* option = luaL_optstring(L, 1, "collect");
    const std::string_view asked = option;
    const int count = lua_gettop(L);
    if (LuaHost* host = LuaHost::existing(L); host && asked == "collect" && host->collect_cycles(L)) {
        lua_pushinteger(L, 0);
        return 1;
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, count, LUA_MULTRET);
    if (asked == "incremental" || asked == "generational")
        static_cast<ProgramState&>(of(L)).set_generational(asked == "generational");
    return lua_gettop(L);
}

bool ProgramState::collect_cycles(lua_State* L) {
    LuaHost* host = LuaHost::existing(L);
    return host && host->collect_cycles(L);
}

void ProgramState::in_thread(lua_State* thread, const std::function<void()>& body) {
    std::optional<LuaHost::Thread> home;
    if (LuaHost* host = LuaHost::existing(thread)) home.emplace(*host, thread);
    body();
}

MakeWorker ProgramState::worker_maker() const {
    return []() -> std::unique_ptr<State> { return std::make_unique<ProgramState>(Options{.is_worker = true}); };
}

}  // namespace lunaria
