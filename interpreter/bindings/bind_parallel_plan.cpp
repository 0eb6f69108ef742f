// The module behind lunaria/parallel/plan.lua: plans of functions for clusters, strategies of programs that are given
// as tables, schedules of pipelines.
#include <algorithm>

#include "interpreter/bindings/found_plans.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/jit/function.h"
#include "interpreter/protect.h"
#include "interpreter/values/fields.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

using namespace parallel;

constexpr const char* kParallelPlanWhere = "parallel";

double number_of_field(lua_State* L, int table, const char* name, double otherwise) {
    lua_getfield(L, table, name);
    const double value = luaL_optnumber(L, -1, otherwise);
    lua_pop(L, 1);
    return value;
}
bool flag_of(lua_State* L, int table, const char* name, bool otherwise) {
    lua_getfield(L, table, name);
    const bool value = lua_isnil(L, -1) ? otherwise : lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}
std::optional<int64_t> integer_of(lua_State* L, int table, const char* name) {
    lua_getfield(L, table, name);
    std::optional<int64_t> value;
    if (!lua_isnil(L, -1)) value = luaL_checkinteger(L, -1);
    lua_pop(L, 1);
    return value;
}
std::string text_of(lua_State* L, int table, const char* name) {
    lua_getfield(L, table, name);
    const std::string value = luaL_optstring(L, -1, "");
    lua_pop(L, 1);
    return value;
}

// Calls f for each item of the list at `name`, which is on top of the stack then.
template <class F>
void for_each_item(lua_State* L, int table, const char* name, const F& f) {
    lua_getfield(L, table, name);
    const auto count = lua_istable(L, -1) ? static_cast<lua_Integer>(lua_rawlen(L, -1)) : 0;
    for (lua_Integer i = 1; i <= count; ++i) {
        luaL_checkstack(L, 8, "lists");
        lua_rawgeti(L, -1, i);
        f(lua_gettop(L));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

Cluster cluster_at(lua_State* L, int table) {
    Cluster c;
    c.name = text_of(L, table, "name");
    for_each_item(L, table, "levels", [&](int level) {
        c.levels.push_back({static_cast<int64_t>(number_of_field(L, level, "ranks", 1)),
                            number_of_field(L, level, "latency", 0), number_of_field(L, level, "bytes_per_second", 1)});
    });
    c.collective_seconds = number_of_field(L, table, "collective_seconds", 0);
    c.flops_per_second = number_of_field(L, table, "flops_per_second", 1);
    c.bytes_per_second = number_of_field(L, table, "bytes_per_second", 1);
    c.operator_seconds = number_of_field(L, table, "operator_seconds", 0);
    c.memory_bytes = number_of_field(L, table, "memory_bytes", Elimination::kUnlimited);
    c.hidden = number_of_field(L, table, "hidden", c.hidden);
    return c;
}

// { { name, size } ... }, from major to minor.
MeshAxes planned_mesh_at(lua_State* L, int table, const char* field) {
    MeshAxes mesh;
    for_each_item(L, table, field, [&](int axis) {
        luaL_checktype(L, axis, LUA_TTABLE);
        lua_rawgeti(L, axis, 1);
        lua_rawgeti(L, axis, 2);
        mesh.push_back({luaL_checkstring(L, -2), luaL_checkinteger(L, -1)});
        lua_pop(L, 2);
        if (mesh.back().size < 1)
            throw value_error(kParallelPlanWhere,
                              str("the axis ", mesh.back().name, " of the mesh needs at least one rank"));
    });
    return mesh;
}

ScheduleKind schedule_at(lua_State* L, int table, const char* field) {
    const std::string name = text_of(L, table, field);
    if (name.empty()) return ScheduleKind::one_f_one_b;
    if (const auto kind = schedule_of(name)) return *kind;
    throw value_error(kParallelPlanWhere, str("there is no schedule '", name,
                                              "'; there are: gpipe, 1f1b, interleaved, zero_bubble_h1, zero_bubble_h2, "
                                              "zero_bubble_v"));
}

// "8@dp, 4096@tp": a tensor with its cuts.
std::string planned_layout_text(const MeshAxes& mesh, const std::vector<int64_t>& shape, const Cuts& cuts) {
    std::string text;
    for (size_t d = 0; d < shape.size(); ++d) {
        text += str(d ? ", " : "", shape[d]);
        bool is_first = true;
        for (size_t a = 0; a < mesh.size(); ++a)
            if (cuts[a] == static_cast<int>(d)) text += str(is_first ? '@' : '.', mesh[a].name), is_first = false;
    }
    std::string sums;
    for (size_t a = 0; a < mesh.size(); ++a)
        if (cuts[a] == kIncomplete) sums += str(" +", mesh[a].name);
    return "[" + text + "]" + sums;
}

std::string way_text(const MeshAxes& mesh, const ProgramOperator& op, const Cuts& way) {
    std::string text;
    for (size_t a = 0; a < mesh.size(); ++a)
        if (way[a] >= 0)
            text += str(text.empty() ? "" : ", ", mesh[a].name, " cuts ", op.letters[static_cast<size_t>(way[a])].name,
                        " (", op.letters[static_cast<size_t>(way[a])].size, ")");
    return text;
}

void push_operators(lua_State* L, const Program& program, const ClusterPlan& plan) {
    const ProgramPlan& p = plan.plan;
    lua_createtable(L, static_cast<int>(program.operators.size()), 0);
    for (size_t i = 0; i < program.operators.size(); ++i) {
        const ProgramOperator& op = program.operators[i];
        lua_createtable(L, 0, 9);
        set_text(L, "op", op.name);
        set_text(L, "place", op.place);
        set_integer(L, "layer", op.layer);
        set_integer(L, "stage", plan.part_of[i] % plan.stages);
        set_text(L, "cuts", way_text(p.mesh, op, p.cuts[i]));
        if (!op.results.empty()) {
            const auto at = static_cast<size_t>(op.results[0].tensor);
            set_text(L, "layout", planned_layout_text(p.mesh, program.tensors[at].shape, p.tensors[at]));
        }
        set_number(L, "seconds", p.costs[i].forward + p.costs[i].backward + p.costs[i].communication);
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
}

void push_movements(lua_State* L, const Program& program, const ProgramPlan& plan) {
    lua_createtable(L, static_cast<int>(plan.movements.size()), 0);
    lua_Integer number = 0;
    for (const Movement& m : plan.movements) {
        const ProgramTensor& t = program.tensors[static_cast<size_t>(m.tensor)];
        const auto& op = program.operators[static_cast<size_t>(m.to >= 0 ? m.to : m.from)];
        lua_createtable(L, 0, 7);
        set_text(L, "op", op.name);
        set_text(L, "place", op.place);
        set_text(L, "from", planned_layout_text(plan.mesh, t.shape, m.before));
        set_text(L, "to", planned_layout_text(plan.mesh, t.shape, m.after));
        set_text(L, "gradient_from", planned_layout_text(plan.mesh, t.shape, m.gradient_before));
        set_text(L, "gradient_to", planned_layout_text(plan.mesh, t.shape, m.gradient_after));
        set_number(L, "bytes", m.bytes);
        set_number(L, "seconds", m.forward + m.backward);
        lua_rawseti(L, -2, ++number);
    }
}

void push_parameters(lua_State* L, const Program& program, const ProgramPlan& plan) {
    lua_newtable(L);
    for (size_t t = 0; t < program.tensors.size(); ++t) {
        const ProgramTensor& tensor = program.tensors[t];
        if (!tensor.is_parameter) continue;
        set_text(L, tensor.name.c_str(), planned_layout_text(plan.mesh, tensor.shape, plan.tensors[t]));
    }
}

// The parts of inputs that the first operators that take them need.
void push_inputs(lua_State* L, const Program& program, const ProgramPlan& plan) {
    lua_newtable(L);
    std::vector<bool> known(program.tensors.size());
    for (size_t i = 0; i < program.operators.size(); ++i) {
        const ProgramOperator& op = program.operators[i];
        for (const Use& result : op.results) known[static_cast<size_t>(result.tensor)] = true;
        for (const Use& use : op.operands) {
            const auto t = static_cast<size_t>(use.tensor);
            const ProgramTensor& tensor = program.tensors[t];
            if (tensor.is_parameter || tensor.name.empty() || known[t]) continue;
            known[t] = true;
            Cuts cuts(plan.mesh.size(), kWhole);
            for (size_t a = 0; a < cuts.size(); ++a) {
                const auto axis = std::ranges::find(use.letters, plan.cuts[i][a]);
                if (plan.cuts[i][a] >= 0 && axis != use.letters.end())
                    cuts[a] = static_cast<int>(axis - use.letters.begin());
            }
            set_text(L, tensor.name.c_str(), planned_layout_text(plan.mesh, tensor.shape, cuts));
        }
    }
}

void push_plan(lua_State* L, const ClusterPlan& plan) {
    lua_createtable(L, 0, 20);
    set_text(L, "text", plan.text());
    set_number(L, "seconds", plan.seconds);
    set_number(L, "cost", plan.cost);
    set_number(L, "bubble", plan.bubble);
    set_number(L, "bytes", plan.bytes);
    set_integer(L, "stages", plan.stages);
    set_integer(L, "micro_batches", plan.settings.micro_batches);
    set_integer(L, "level", plan.settings.level);
    set_text(L, "schedule", name_of(plan.schedule));
    lua_pushboolean(L, plan.settings.remakes);
    lua_setfield(L, -2, "remakes");
    lua_pushboolean(L, plan.plan.is_exact());
    lua_setfield(L, -2, "exact");
    lua_createtable(L, static_cast<int>(plan.plan.mesh.size()), 0);
    for (size_t a = 0; a < plan.plan.mesh.size(); ++a) {
        lua_createtable(L, 2, 0);
        push(L, std::string_view(plan.plan.mesh[a].name));
        lua_rawseti(L, -2, 1);
        lua_pushinteger(L, plan.plan.mesh[a].size);
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -2, static_cast<lua_Integer>(a) + 1);
    }
    lua_setfield(L, -2, "mesh");
    lua_createtable(L, static_cast<int>(plan.parts.size()), 0);
    for (size_t i = 0; i < plan.parts.size(); ++i) {
        const StageCost& c = plan.parts[i];
        lua_createtable(L, 0, 6);
        set_number(L, "forward", c.forward);
        set_number(L, "backward", c.backward);
        set_number(L, "weight_gradient", c.weight_gradient);
        set_number(L, "gradients", c.gradients);
        set_number(L, "send_bytes", c.send_bytes);
        set_number(L, "bytes", c.bytes);
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    lua_setfield(L, -2, "parts");
}

// details(handle, number of the plan): its operators, movements, parameters and inputs.
int details(lua_State* L) {
    const FoundPlans& plans = found_plans_at(L);
    const ClusterPlan& plan = plan_numbered(L, plans);
    push_operators(L, plans.read.program, plan);
    push_movements(L, plans.read.program, plan.plan);
    push_parameters(L, plans.read.program, plan.plan);
    push_inputs(L, plans.read.program, plan.plan);
    return 4;
}

// plan(compiled, namer, options): plans of a function that was called once, the best first, and facts of the search.
int make_plan(lua_State* L) {
    luaL_checktype(L, 3, LUA_TTABLE);
    auto found_plans = std::make_unique<FoundPlans>();
    found_plans->graph = jit::whole_graph(L, 1, 2);
    ReadSettings reads;
    reads.float_bytes = static_cast<int>(number_of_field(L, 3, "float_bytes", 0));
    for_each_item(L, 3, "trained", [&](int item) { reads.trained.emplace_back(luaL_checkstring(L, item)); });
    found_plans->read = read_program(*found_plans->graph, reads);
    const Program& program = found_plans->read.program;
    lua_getfield(L, 3, "cluster");
    const Cluster cluster = cluster_at(L, lua_gettop(L));
    PlanRequest request;
    request.devices = integer_of(L, 3, "devices").value_or(1);
    request.batch = integer_of(L, 3, "batch").value_or(1);
    request.trains = flag_of(L, 3, "train", true);
    request.state_bytes = number_of_field(L, 3, "state_bytes", request.state_bytes);
    request.gradient_bytes = number_of_field(L, 3, "gradient_bytes", request.gradient_bytes);
    request.stages = integer_of(L, 3, "stages");
    request.micro_batches = integer_of(L, 3, "micro_batches");
    if (const auto level = integer_of(L, 3, "level")) request.level = static_cast<int>(*level);
    lua_getfield(L, 3, "recompute");
    if (!lua_isnil(L, -1)) request.remakes = lua_toboolean(L, -1);
    request.schedule = schedule_at(L, 3, "schedule");
    request.chunks = static_cast<int>(integer_of(L, 3, "chunks").value_or(1));
    if (request.schedule == ScheduleKind::zero_bubble_v) request.chunks = 2;
    request.keep = static_cast<size_t>(integer_of(L, 3, "keep").value_or(20));
    if (MeshAxes mesh = planned_mesh_at(L, 3, "mesh"); !mesh.empty()) request.mesh = std::move(mesh);
    found_plans->search = plan_cluster(program, cluster, request);
    const PlanSearch& found = found_plans->search;
    lua_createtable(L, static_cast<int>(found.best.size()), 8);
    for (size_t i = 0; i < found.best.size(); ++i) {
        push_plan(L, found.best[i]);
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    set_integer(L, "tried", static_cast<int64_t>(found.tried));
    set_integer(L, "fitting", static_cast<int64_t>(found.fitting));
    set_number(L, "first_seconds", found.first_seconds);
    set_number(L, "least_bytes", found.least_bytes);
    set_integer(L, "operators", static_cast<int64_t>(program.operators.size()));
    double flops = 0;
    int layers = 0;
    for (const ProgramOperator& op : program.operators) flops += op.flops, layers = std::max(layers, op.layer + 1);
    set_number(L, "flops", flops);
    set_integer(L, "layers", layers);
    push_handle(L, std::move(*found_plans), kFoundPlans);
    lua_setfield(L, -2, "handle");
    return 1;
}

Use use_at(lua_State* L, int table) {
    Use use;
    luaL_checktype(L, table, LUA_TTABLE);
    lua_rawgeti(L, table, 1);
    use.tensor = static_cast<int>(luaL_checkinteger(L, -1));
    lua_pop(L, 1);
    for (lua_Integer i = 2; i <= static_cast<lua_Integer>(lua_rawlen(L, table)); ++i) {
        lua_rawgeti(L, table, i);
        use.letters.push_back(static_cast<int>(luaL_checkinteger(L, -1)));
        lua_pop(L, 1);
    }
    use.is_linear = flag_of(L, table, "linear", false);
    return use;
}

// { tensors = { { sizes ..., parameter = } }, operators = { { letters = { { size =, merges =, spreads = } }, operands =
// { { tensor, letter of each axis or -1 } }, results =, flops = } } }; everything counts from 0.
Program program_at(lua_State* L, int table) {
    Program program;
    for_each_item(L, table, "tensors", [&](int at) {
        ProgramTensor t;
        luaL_checktype(L, at, LUA_TTABLE);
        for (lua_Integer i = 1; i <= static_cast<lua_Integer>(lua_rawlen(L, at)); ++i) {
            lua_rawgeti(L, at, i);
            t.shape.push_back(luaL_checkinteger(L, -1));
            lua_pop(L, 1);
        }
        t.is_parameter = flag_of(L, at, "parameter", false);
        t.needs_gradient = t.is_parameter || flag_of(L, at, "gradient", true);
        program.tensors.push_back(std::move(t));
    });
    for_each_item(L, table, "operators", [&](int at) {
        ProgramOperator op;
        op.name = text_of(L, at, "name");
        op.flops = number_of_field(L, at, "flops", 0);
        op.is_jointly_linear = flag_of(L, at, "jointly_linear", false);
        for_each_item(L, at, "letters", [&](int letter) {
            Letter l;
            l.name = text_of(L, letter, "name");
            l.size = integer_of(L, letter, "size").value_or(1);
            l.merges = flag_of(L, letter, "merges", false);
            l.spreads = flag_of(L, letter, "spreads", false);
            l.can_be_cut = flag_of(L, letter, "cut", true);
            op.letters.push_back(std::move(l));
        });
        for_each_item(L, at, "operands", [&](int use) { op.operands.push_back(use_at(L, use)); });
        for_each_item(L, at, "results", [&](int use) { op.results.push_back(use_at(L, use)); });
        for (const auto* uses : {&op.operands, &op.results})
            for (const Use& use : *uses) {
                const auto count = static_cast<int>(program.tensors.size());
                const auto known = [&](int letter) { return letter < static_cast<int>(op.letters.size()); };
                if (use.tensor < 0 || use.tensor >= count || !std::ranges::all_of(use.letters, known) ||
                    use.letters.size() != program.tensors[static_cast<size_t>(use.tensor)].shape.size())
                    throw value_error(kParallelPlanWhere,
                                      str("operator ", op.name, " has a tensor or letter that is not there"));
            }
        program.operators.push_back(std::move(op));
    });
    return program;
}

// strategies(program, { mesh =, cluster =, limit =, level = }): what the search finds, and what trying everything
// finds: seconds, bytes and whether the first is proved.
int strategies(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    const Program program = program_at(L, 1);
    lua_getfield(L, 2, "cluster");
    const Cluster cluster = cluster_at(L, lua_gettop(L));
    PlanSettings settings;
    settings.level = static_cast<int>(integer_of(L, 2, "level").value_or(0));
    const ProgramIndex index(program);
    const Strategies made(index, planned_mesh_at(L, 2, "mesh"), cluster, settings);
    const double limit = number_of_field(L, 2, "limit", Elimination::kUnlimited);
    const auto add = [&](const char* name, const Cheapest& found) {
        lua_createtable(L, 0, 3);
        if (!found.values.empty()) {
            set_number(L, "seconds", found.seconds);
            set_number(L, "bytes", found.bytes);
            lua_pushboolean(L, found.is_exact());
            lua_setfield(L, -2, "exact");
        }
        lua_setfield(L, -2, name);
    };
    lua_createtable(L, 0, 3);
    add("search", made.problem().solve(limit));
    add("exhaustive", made.problem().exhaustive(limit));
    size_t ways = 0;
    for (size_t i = 0; i < program.operators.size(); ++i) ways = std::max(ways, made.ways(static_cast<int>(i)).size());
    set_integer(L, "ways", static_cast<int64_t>(ways));
    return 1;
}

PartTimes part_times_at(lua_State* L, int table) {
    return {number_of_field(L, table, "forward", 1), number_of_field(L, table, "backward", 1),
            number_of_field(L, table, "weight_gradient", 1), number_of_field(L, table, "send", 0)};
}

// Of each stage a list of { phase, part, micro_batch, start, stop }.
void push_timeline(lua_State* L, const Schedule& table, const PipelineTimes& times) {
    lua_createtable(L, static_cast<int>(times.timeline.size()), 0);
    for (size_t s = 0; s < times.timeline.size(); ++s) {
        lua_createtable(L, static_cast<int>(times.timeline[s].size()), 0);
        lua_Integer count = 0;
        for (const TimedSlot& slot : times.timeline[s]) {
            lua_createtable(L, 0, 5);
            set_text(L, "phase", name_of(slot.piece.phase));
            set_integer(L, "part", table.part(static_cast<int>(s), slot.piece.chunk));
            set_integer(L, "micro_batch", slot.piece.micro_batch);
            set_number(L, "start", slot.start);
            set_number(L, "stop", slot.stop);
            lua_rawseti(L, -2, ++count);
        }
        lua_rawseti(L, -2, static_cast<lua_Integer>(s) + 1);
    }
}

void push_counts(lua_State* L, const char* name, const std::vector<int>& counts) {
    lua_createtable(L, static_cast<int>(counts.size()), 0);
    for (size_t s = 0; s < counts.size(); ++s) {
        lua_pushinteger(L, counts[s]);
        lua_rawseti(L, -2, static_cast<lua_Integer>(s) + 1);
    }
    lua_setfield(L, -2, name);
}

// schedule({ schedule =, stages =, micro_batches =, chunks =, forward =, backward =, weight_gradient =, send =, or
// parts = a list with these four of each part }): its times.
int schedule(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    const auto count = [&](const char* name) { return static_cast<int>(integer_of(L, 1, name).value_or(1)); };
    const Schedule table =
        make_schedule(schedule_at(L, 1, "schedule"), count("stages"), count("micro_batches"), count("chunks"));
    std::vector<PartTimes> parts;
    for_each_item(L, 1, "parts", [&](int item) { parts.push_back(part_times_at(L, item)); });
    if (parts.empty()) parts.push_back(part_times_at(L, 1));
    const PipelineTimes times = simulate(table, parts);
    lua_createtable(L, 0, 7);
    set_number(L, "seconds", times.seconds);
    set_number(L, "bubble", times.bubble);
    set_number(L, "excess", times.excess);
    push_counts(L, "live", times.peak_live);
    push_counts(L, "kept", times.peak_kept);
    push_timeline(L, table, times);
    lua_setfield(L, -2, "timeline");
    set_text(L, "picture",
             picture(times, std::max(times.seconds / 100, std::min({parts[0].forward, parts[0].input_gradient}))));
    return 1;
}

}  // namespace

int open_plans(lua_State* L) {
    make_handle_type(L, kFoundPlans, protect<release_handle<FoundPlans>>);
    constexpr luaL_Reg functions[] = {{"plan", protect<make_plan>},
                                      {"details", protect<details>},
                                      {"strategies", protect<strategies>},
                                      {"schedule", protect<schedule>},
                                      {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}

}  // namespace lunaria
