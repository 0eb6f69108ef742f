// The module "lunaria.schedules" behind lunaria/parallel/pipeline.lua: the order in which the stages of a pipeline
// work.
#include "core/parallel/schedule.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

using namespace parallel;

namespace {

constexpr const char* kSchedule = "lunaria.schedule";

const Schedule& schedule_argument(lua_State* L) { return handle_at<Schedule>(L, 1, kSchedule); }

// make(kind, stages, micro_batches, chunks)
int make(lua_State* L) {
    const std::string name = text_at(L, 1);
    const auto kind = schedule_of(name);
    if (!kind) throw argument_error("schedule", str("there is no schedule '", name, "'"));
    push_handle(L,
                make_schedule(*kind, static_cast<int>(luaL_checkinteger(L, 2)),
                              static_cast<int>(luaL_checkinteger(L, 3)), static_cast<int>(luaL_checkinteger(L, 4))),
                kSchedule);
    return 1;
}

// part(schedule, stage, chunk): the number of a part of the network, in the order in which data meets them.
int part_of(lua_State* L) {
    const int stage = static_cast<int>(luaL_checkinteger(L, 2)), chunk = static_cast<int>(luaL_checkinteger(L, 3));
    lua_pushinteger(L, schedule_argument(L).part(stage, chunk));
    return 1;
}

// slots(schedule, stage): the work of a stage in its order, a list of { phase =, chunk =, micro_batch = }.
int slots(lua_State* L) {
    const Schedule& schedule = schedule_argument(L);
    const lua_Integer stage = luaL_checkinteger(L, 2);
    luaL_argcheck(L, stage >= 0 && stage < schedule.stages, 2, "no such stage");
    lua_newtable(L);
    lua_Integer i = 0;
    for (const Slot& slot : schedule.table[static_cast<size_t>(stage)]) {
        lua_createtable(L, 0, 3);
        push(L, std::string_view(name_of(slot.phase)));
        lua_setfield(L, -2, "phase");
        lua_pushinteger(L, slot.chunk);
        lua_setfield(L, -2, "chunk");
        lua_pushinteger(L, slot.micro_batch);
        lua_setfield(L, -2, "micro_batch");
        lua_rawseti(L, -2, ++i);
    }
    return 1;
}

}  // namespace

int open_schedules(lua_State* L) {
    make_handle_type(L, kSchedule, protect<release_handle<Schedule>>);
    lua_newtable(L);
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"make", protect<make>},
                                  {"part", protect<part_of>},
                                  {"slots", protect<slots>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace lunaria
