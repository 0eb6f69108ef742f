// The module "lunaria.rounds" behind lunaria/federated/rounds.lua: the state machine of a federated job, and draws of
// devices.
#include "core/federated/draws.h"
#include "core/federated/rounds.h"
#include "interpreter/bindings/federated_values.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

using namespace federated;

namespace {

using RoundsHandle = std::unique_ptr<Rounds>;
constexpr const char* kRounds = "lunaria.rounds";
constexpr const char* kEncryptions[] = {"none", "pairwise", "stable", nullptr};

Rounds& rounds_at(lua_State* L) { return *handle_at<RoundsHandle>(L, 1, kRounds); }
Time time_at(lua_State* L, int index) { return luaL_checkinteger(L, index); }
DeviceId device_at(lua_State* L, int index) { return static_cast<DeviceId>(luaL_checkinteger(L, index)); }

// make(settings [, bytes])
int make_rounds(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    JobSettings s;
    read_field(L, "name", s.name);
    read_field(L, "iterations", s.iterations);
    read_field(L, "start_threshold", s.start_threshold);
    read_field(L, "start_window", s.start_window);
    read_field(L, "update_ratio", s.update_ratio);
    read_field(L, "update_window", s.update_window);
    read_field(L, "global_window", s.global_window);
    if (lua_getfield(L, 1, "encryption") != LUA_TNIL)
        s.encryption = static_cast<Encryption>(luaL_checkoption(L, -1, nullptr, kEncryptions));
    lua_pop(L, 1);
    read_field(L, "share_ratio", s.share_ratio);
    read_field(L, "cipher_window", s.cipher_window);
    read_field(L, "reconstruct_threshold", s.reconstruct_threshold);
    read_field(L, "signed_lists", s.signed_lists);
    read_field(L, "selection", s.selection);
    read_field(L, "seed", s.seed);
    read_field(L, "poll", s.poll);
    read_field(L, "spread", s.spread);
    read_field(L, "asynchronous", s.asynchronous);
    read_field(L, "buffer", s.buffer);
    read_field(L, "concurrency", s.concurrency);
    read_field(L, "max_staleness", s.max_staleness);
    push_handle<RoundsHandle>(L,
                              lua_isnoneornil(L, 2) ? std::make_unique<Rounds>(std::move(s))
                                                    : std::make_unique<Rounds>(std::move(s), text_at(L, 2)),
                              kRounds);
    return 1;
}

void set_integer(lua_State* L, const char* name, int64_t value) {
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}
void set_boolean(lua_State* L, const char* name, bool value) {
    lua_pushboolean(L, value);
    lua_setfield(L, -2, name);
}

int push_answer(lua_State* L, const Answer& a) {
    lua_createtable(L, 0, 7);
    set_integer(L, "code", static_cast<int>(a.code));
    set_integer(L, "iteration", a.iteration);
    set_integer(L, "staleness", a.staleness);
    set_boolean(L, "repeated", a.repeated);
    set_boolean(L, "changed", a.changed);
    if (a.next_request != 0) set_integer(L, "next_request", a.next_request);
    if (!a.reason.empty()) {
        push(L, a.reason);
        lua_setfield(L, -2, "reason");
    }
    return 1;
}

Phase phase_at(lua_State* L, int index) {
    const std::string name = text_at(L, index);
    for (int i = 0; i < kPhases; ++i)
        if (name_of(static_cast<Phase>(i)) == name) return static_cast<Phase>(i);
    throw argument_error("Rounds", str("there is no phase '", name, "'"))
        .hint(
            "starting, exchanging keys, sharing secrets, updating, signing lists, reconstructing, aggregating, "
            "finished");
}

int start(lua_State* L) { return push_answer(L, rounds_at(L).start(time_at(L, 2), device_at(L, 3))); }
int update(lua_State* L) {
    const auto digest = static_cast<uint64_t>(luaL_checkinteger(L, 5));
    return push_answer(L, rounds_at(L).update(time_at(L, 2), device_at(L, 3), luaL_checkinteger(L, 4), digest));
}
int cipher(lua_State* L) {
    return push_answer(L, rounds_at(L).cipher(time_at(L, 2), device_at(L, 3), luaL_checkinteger(L, 4), phase_at(L, 5)));
}
int look(lua_State* L) {
    return push_answer(L, rounds_at(L).look(time_at(L, 2), device_at(L, 3), luaL_checkinteger(L, 4), phase_at(L, 5)));
}
int rounds_model(lua_State* L) { return push_answer(L, rounds_at(L).model(time_at(L, 2), luaL_checkinteger(L, 3))); }
int tick(lua_State* L) {
    lua_pushboolean(L, rounds_at(L).tick(time_at(L, 2)));
    return 1;
}
int close_rounds(lua_State* L) {
    Rounds& rounds = rounds_at(L);
    lua_pushboolean(L, rounds.close(time_at(L, 2), rounds.phase()));
    return 1;
}
// finish(rounds, now, valid, reason)
int finish(lua_State* L) {
    rounds_at(L).finish(time_at(L, 2), lua_toboolean(L, 3), lua_isnoneornil(L, 4) ? std::string() : text_at(L, 4));
    return 0;
}
int stop(lua_State* L) {
    rounds_at(L).stop(time_at(L, 2), text_at(L, 3));
    return 0;
}

// state(rounds) -> { iteration, phase, taken, needed, deadline, training, last = { iteration, valid, reason, at } }
int state(lua_State* L) {
    const Rounds& rounds = rounds_at(L);
    lua_createtable(L, 0, 7);
    set_integer(L, "iteration", rounds.iteration());
    set_integer(L, "taken", rounds.taken(rounds.phase()));
    set_integer(L, "needed", rounds.needed(rounds.phase()));
    set_integer(L, "training", rounds.training());
    if (const auto end = rounds.deadline()) set_integer(L, "deadline", *end);
    push(L, name_of(rounds.phase()));
    lua_setfield(L, -2, "phase");
    if (rounds.last().iteration > 0) {
        lua_createtable(L, 0, 4);
        set_integer(L, "iteration", rounds.last().iteration);
        set_integer(L, "at", rounds.last().at);
        set_boolean(L, "valid", rounds.last().valid);
        push(L, std::string_view(rounds.last().reason));
        lua_setfield(L, -2, "reason");
        lua_setfield(L, -2, "last");
    }
    return 1;
}

int bytes(lua_State* L) {
    push(L, std::string_view(rounds_at(L).bytes()));
    return 1;
}

// chosen(seed, round, population, count) -> a list of numbers, from 0
int chosen_devices(lua_State* L) {
    const auto list = chosen(seed_at(L, 1), seed_at(L, 2), seed_at(L, 3), seed_at(L, 4));
    lua_createtable(L, static_cast<int>(list.size()), 0);
    lua_Integer i = 0;
    for (const uint64_t device : list) {
        lua_pushinteger(L, static_cast<lua_Integer>(device));
        lua_rawseti(L, -2, ++i);
    }
    return 1;
}

}  // namespace

int open_rounds(lua_State* L) {
    make_handle_type(L, kRounds, protect<release_handle<RoundsHandle>>);
    constexpr luaL_Reg functions[] = {{"make", protect<make_rounds>},
                                      {"start", protect<start>},
                                      {"update", protect<update>},
                                      {"cipher", protect<cipher>},
                                      {"look", protect<look>},
                                      {"model", protect<rounds_model>},
                                      {"tick", protect<tick>},
                                      {"close", protect<close_rounds>},
                                      {"finish", protect<finish>},
                                      {"stop", protect<stop>},
                                      {"state", protect<state>},
                                      {"bytes", protect<bytes>},
                                      {"chosen", protect<chosen_devices>},
                                      {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}

}  // namespace lunaria
