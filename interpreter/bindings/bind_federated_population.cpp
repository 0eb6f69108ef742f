// The module "lunaria.population" behind lunaria/federated/population.lua: populations of devices at the level of
// messages.
#include "core/federated/population.h"
#include "interpreter/bindings/federated_values.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

using namespace federated;

namespace {

using PopulationHandle = std::unique_ptr<Population>;
constexpr const char* kPopulation = "lunaria.population";

Population& population_at(lua_State* L) { return *handle_at<PopulationHandle>(L, 1, kPopulation); }

// make{ devices =, seed =, start_threshold =, ... }
int make(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    PopulationSettings p;
    read_field(L, "devices", p.devices);
    read_field(L, "seed", p.seed);
    read_field(L, "arrival", p.arrival);
    read_field(L, "availability", p.availability);
    read_field(L, "training", p.training);
    read_field(L, "training_spread", p.training_spread);
    read_field(L, "stragglers", p.stragglers);
    read_field(L, "straggler_factor", p.straggler_factor);
    read_field(L, "dropout", p.dropout);
    read_field(L, "lost", p.lost);
    read_field(L, "duplicated", p.duplicated);
    read_field(L, "replayed", p.replayed);
    read_field(L, "retry", p.retry);
    read_field(L, "restart", p.restart);
    read_field(L, "lists", p.lists);
    JobSettings job;
    job.name = "population";
    job.seed = p.seed;
    read_field(L, "iterations", job.iterations);
    read_field(L, "start_threshold", job.start_threshold);
    read_field(L, "start_window", job.start_window);
    read_field(L, "update_ratio", job.update_ratio);
    read_field(L, "update_window", job.update_window);
    read_field(L, "global_window", job.global_window);
    read_field(L, "selection", job.selection);
    read_field(L, "asynchronous", job.asynchronous);
    read_field(L, "buffer", job.buffer);
    read_field(L, "concurrency", job.concurrency);
    read_field(L, "max_staleness", job.max_staleness);
    push_handle<PopulationHandle>(L, std::make_unique<Population>(p, std::move(job)), kPopulation);
    return 1;
}

void set_field(lua_State* L, const char* name, int64_t value) {
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}

// iteration(population) -> what happened in it
int iteration(lua_State* L) {
    const IterationReport report = population_at(L).iteration();
    lua_createtable(L, 0, 16);
    set_field(L, "iteration", report.iteration);
    lua_pushboolean(L, report.valid);
    lua_setfield(L, -2, "valid");
    if (!report.valid) {
        push(L, std::string_view(report.reason));
        lua_setfield(L, -2, "reason");
    }
    set_field(L, "began", report.began);
    set_field(L, "ended", report.ended);
    set_field(L, "asked", report.asked);
    set_field(L, "started", report.started);
    set_field(L, "refused", report.refused);
    set_field(L, "updates", report.updates);
    set_field(L, "late", report.late);
    set_field(L, "lost", report.lost);
    set_field(L, "repeated", report.repeated);
    set_field(L, "replays_refused", report.replays_refused);
    set_field(L, "restarts", report.restarts);
    set_field(L, "digest", static_cast<int64_t>(report.digest));
    if (!report.taken.empty()) {
        // Device and iteration, device and iteration ...
        lua_createtable(L, static_cast<int>(2 * report.taken.size()), 0);
        lua_Integer place = 0;
        for (const Taken& taken : report.taken) {
            lua_pushinteger(L, taken.device);
            lua_rawseti(L, -2, ++place);
            lua_pushinteger(L, taken.started);
            lua_rawseti(L, -2, ++place);
        }
        lua_setfield(L, -2, "taken");
    }
    return 1;
}

// set_times(population, milliseconds): a list.
int set_times(lua_State* L) {
    population_at(L).set_times(integers_at(L, 2, "population", "times"));
    return 0;
}

// set_away(population, list): 1 for each device that does not ask, else 0; an empty list for none.
int set_away(lua_State* L) {
    const std::vector<int64_t> given = integers_at(L, 2, "population", "away");
    population_at(L).set_away({given.begin(), given.end()});
    return 0;
}

int finished(lua_State* L) {
    lua_pushboolean(L, population_at(L).finished());
    return 1;
}

}  // namespace

int open_population(lua_State* L) {
    make_handle_type(L, kPopulation, protect<release_handle<PopulationHandle>>);
    lua_newtable(L);
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"make", protect<make>},
                                  {"iteration", protect<iteration>},
                                  {"set_times", protect<set_times>},
                                  {"set_away", protect<set_away>},
                                  {"finished", protect<finished>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace lunaria
