// The module behind lunaria/insight/watch.lua: figures of tensors, watchpoints, programs under watch.
#include <array>
#include <limits>
#include <utility>

#include "core/base/interrupt.h"
#include "core/watch/watch.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/protect.h"
#include "interpreter/state.h"
#include "interpreter/values/fields.h"

namespace lunaria {

namespace {

using watch::Figures;
using watch::Question;
using watch::Statistics;
using watch::Watch;
using watch::Watchpoint;

constexpr const char* kMetatable = "lunaria.watch";

template <class List, class Push>
void push_list(lua_State* L, const List& list, Push&& push_one) {
    lua_createtable(L, static_cast<int>(std::size(list)), 0);
    lua_Integer i = 0;
    for (const auto& one : list) {
        push_one(one);
        lua_rawseti(L, -2, ++i);
    }
}

void set_statistics(lua_State* L, const Statistics& s) {
    set_integer(L, "count", s.count);
    set_integer(L, "zeros", s.zeros);
    set_integer(L, "nan", s.nan);
    set_integer(L, "positive_infinity", s.positive_infinity);
    set_integer(L, "negative_infinity", s.negative_infinity);
    set_number(L, "min", s.min);
    set_number(L, "max", s.max);
    set_number(L, "mean", s.mean());
    set_number(L, "abs_mean", s.absolute_mean());
}

// statistics(tensor)
int statistics(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "statistics", "tensor");
    if (!watch::has_statistics(t))
        throw dtype_error("statistics", str("a tensor of dtype ", name_of(t.dtype()), " has none"));
    const Statistics s = watch::statistics_of(t);
    lua_createtable(L, 0, 12);
    set_statistics(L, s);
    return 1;
}

watch::Tolerance tolerance_at(lua_State* L, int rtol, int atol, int equal_nan) {
    watch::Tolerance t;
    t.rtol = luaL_optnumber(L, rtol, t.rtol);
    t.atol = luaL_optnumber(L, atol, t.atol);
    t.equal_nan = lua_toboolean(L, equal_nan);
    return t;
}

// change(now, before, rtol, atol, equal_nan)
int change(lua_State* L) {
    const Tensor &now = check_tensor(L, 1, "compare", "now"), &before = check_tensor(L, 2, "compare", "before");
    const watch::Change c = watch::change_of(now, before, tolerance_at(L, 3, 4, 5));
    lua_createtable(L, 0, 4);
    set_integer(L, "count", c.count);
    set_integer(L, "unequal", c.unequal);
    set_number(L, "largest", c.largest);
    set_number(L, "mean", c.count ? c.absolute_sum / static_cast<double>(c.count) : 0);
    return 1;
}

std::vector<std::string> texts_at(lua_State* L, int table, const char* name) {
    std::vector<std::string> texts;
    if (push_option(L, table, name)) {
        const int list = lua_gettop(L);
        for (lua_Integer i = 1, n = static_cast<lua_Integer>(lua_rawlen(L, list)); i <= n; ++i) {
            lua_rawgeti(L, list, i);
            texts.emplace_back(luaL_checkstring(L, -1));
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    return texts;
}

double number_in(lua_State* L, int table, const char* name, double otherwise) {
    if (!push_option(L, table, name)) return otherwise;
    const double value = luaL_checknumber(L, -1);
    lua_pop(L, 1);
    return value;
}

bool flag_in(lua_State* L, int table, const char* name) {
    if (!push_option(L, table, name)) return false;
    const bool value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

// {quantity, "greater" | "less" | "at_least", bound}
Question question_at(lua_State* L, int table) {
    lua_rawgeti(L, table, 1);
    lua_rawgeti(L, table, 2);
    lua_rawgeti(L, table, 3);
    Question q;
    const auto found = std::ranges::find(watch::kQuantities, std::string_view(luaL_checkstring(L, -3)));
    if (found == watch::kQuantities.end()) throw argument_error("watch", "a question is about another quantity");
    q.quantity = static_cast<watch::Quantity>(found - watch::kQuantities.begin());
    const std::string_view compare = luaL_optstring(L, -2, "greater");
    q.compare = compare == "less"       ? Question::Compare::less
                : compare == "at_least" ? Question::Compare::at_least
                                        : Question::Compare::greater;
    q.bound = luaL_optnumber(L, -1, 0);
    lua_pop(L, 3);
    return q;
}

Watchpoint point_at(lua_State* L, int table) {
    Watchpoint p;
    push_option(L, table, "target");
    const std::string_view target = luaL_checkstring(L, -1);
    p.target = target == "weight"       ? watch::Target::weight
               : target == "gradient"   ? watch::Target::gradient
               : target == "activation" ? watch::Target::activation
                                        : watch::Target::tensor;
    lua_pop(L, 1);
    p.at_start = flag_in(L, table, "at_start");
    p.only_matrices = flag_in(L, table, "only_matrices");
    for (const std::string& name : texts_at(L, table, "operators")) p.operators.push_back(&registry().get(name));
    for (const std::string& name : texts_at(L, table, "preserving")) p.preserving.push_back(&registry().get(name));
    p.nodes = texts_at(L, table, "nodes");
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    p.low = number_in(L, table, "low", -kInfinity);
    p.high = number_in(L, table, "high", kInfinity);
    p.tolerance = {number_in(L, table, "rtol", 1e-5), number_in(L, table, "atol", 1e-8),
                   flag_in(L, table, "equal_nan")};
    p.epsilon = number_in(L, table, "epsilon", p.epsilon);
    push_option(L, table, "questions");
    const int list = lua_gettop(L);
    luaL_checktype(L, list, LUA_TTABLE);
    for (lua_Integer i = 1, n = static_cast<lua_Integer>(lua_rawlen(L, list)); i <= n; ++i) {
        lua_rawgeti(L, list, i);
        p.questions.push_back(question_at(L, lua_gettop(L)));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return p;
}

// ask(point, tensor, before or nil) -> the question's number and the value, or nil
int ask(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    const Watchpoint point = point_at(L, 1);
    const Tensor& t = check_tensor(L, 2, "watch", "tensor");
    const Tensor* before = lua_isnoneornil(L, 3) ? nullptr : &check_tensor(L, 3, "watch", "before");
    watch::Subject subject(t, before, false);
    const auto answer = subject.ask(point);
    if (!answer) return 0;
    lua_pushinteger(L, static_cast<lua_Integer>(answer->question) + 1);
    lua_pushnumber(L, answer->value);
    return 2;
}

Watch& watch_at(lua_State* L) { return *static_cast<Watch*>(luaL_checkudata(L, 1, kMetatable)); }

// Lua's side is called with "hit", "node" or "step". Its error ends the program.
void report(lua_State* main, int function, Watch::Event event) {
    static constexpr std::array<std::string_view, 3> kNames = {"hit", "node", "step"};
    lua_State* L = State::of(main).running();
    luaL_checkstack(L, 8, "watch");
    lua_rawgeti(L, LUA_REGISTRYINDEX, function);
    push(L, kNames[static_cast<size_t>(event)]);
    if (lua_pcall(L, 1, 0, 0) == LUA_OK) return;
    const char* text = lua_tostring(L, -1);
    const std::string message = text ? text : "ended";
    lua_pop(L, 1);
    poll_interrupt();
    throw state_error("watch", message);
}

// The same as running_place, in less time where a compiled function or the machine is what runs.
std::string place_of_operator(lua_State* L) {
    lua_Debug frame;
    LuaHost* const host = LuaHost::existing(L);
    if (host && lua_getstack(L, 0, &frame) && frame.i_ci == host->innermost_call())
        if (std::string place = host->innermost_place(); !place.empty()) return place;
    return running_place(L);
}

// new(points, {kept, reports_nodes, seeks_origin}, report)
int make(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 3);
    Watch::Options options;
    bool overflow = false;
    for (lua_Integer i = 1, n = static_cast<lua_Integer>(lua_rawlen(L, 1)); i <= n; ++i) {
        lua_rawgeti(L, 1, i);
        options.points.push_back(point_at(L, lua_gettop(L)));
        for (const Question& q : options.points.back().questions) overflow |= q.quantity == watch::Quantity::overflow;
        lua_pop(L, 1);
    }
    options.kept = texts_at(L, 2, "kept");
    options.reports_nodes = flag_in(L, 2, "reports_nodes");
    options.seeks_origin = flag_in(L, 2, "seeks_origin");
    lua_State* const main = State::of(L).lua();
    options.place = [main] { return place_of_operator(State::of(main).running()); };
    // Only the simulated Ascend has such a flag.
    if (overflow) options.overflow = ascend_overflowed;
    void* memory = lua_newuserdatauv(L, sizeof(Watch), 1);
    if (!lua_isnil(L, 3)) {
        lua_pushvalue(L, 3);
        const int function = luaL_ref(L, LUA_REGISTRYINDEX);
        options.report = [main, function](Watch::Event event) { report(main, function, event); };
        lua_pushinteger(L, function);
        lua_setiuservalue(L, -2, 1);
    }
    new (memory) Watch(std::move(options));
    luaL_setmetatable(L, kMetatable);
    return 1;
}

int destroy(lua_State* L) {
    watch_at(L).~Watch();
    if (lua_getiuservalue(L, 1, 1) == LUA_TNUMBER)
        luaL_unref(L, LUA_REGISTRYINDEX, static_cast<int>(lua_tointeger(L, -1)));
    lua_pushnil(L);
    lua_setmetatable(L, 1);
    return 0;
}

// run(f, ...): a call of f as a step; its results.
int run_step(lua_State* L) {
    Watch& w = watch_at(L);
    w.begin_step(true);
    struct Leave {
        explicit Leave(Watch& w) : w(w) {}
        ~Leave() {
            if (w.is_in_step()) w.leave_step();
        }
        Watch& w;
    } const leave(w);
    lua_call(L, lua_gettop(L) - 2, LUA_MULTRET);
    w.end_step();
    return lua_gettop(L) - 1;
}
int begin_step(lua_State* L) { return watch_at(L).begin_step(), 0; }
int end_step(lua_State* L) { return watch_at(L).end_step(), 0; }
int leave_step(lua_State* L) { return watch_at(L).leave_step(), 0; }
int report_nodes(lua_State* L) { return watch_at(L).set_reports_nodes(lua_toboolean(L, 2)), 0; }

// Nodes are counted from 1 in Lua; 0: none.
void push_node(lua_State* L, const watch::Node& node, size_t index) {
    lua_createtable(L, 0, 6);
    set_integer(L, "index", static_cast<int64_t>(index) + 1);
    set_text(L, "name", node.name());
    set_text(L, "operator", node.op->name());
    set_text(L, "layer", node.layer);
    set_text(L, "place", node.place);
    push_list(L, node.operands, [&](const watch::Origin& o) {
        lua_createtable(L, 0, 3);
        set_integer(L, "node", o.node + 1);
        set_integer(L, "result", o.result);
        if (!o.parameter.empty()) set_text(L, "parameter", o.parameter);
    });
    lua_setfield(L, -2, "operands");
}

// nodes() or nodes(index): of the present or latest step; -1 is the latest.
int nodes(lua_State* L) {
    const auto all = watch_at(L).nodes();
    if (lua_isnoneornil(L, 2)) {
        size_t i = 0;
        push_list(L, all, [&](const watch::Node& node) { push_node(L, node, i++); });
        return 1;
    }
    lua_Integer index = luaL_checkinteger(L, 2);
    if (index < 0) index += static_cast<lua_Integer>(all.size()) + 1;
    if (index < 1 || index > static_cast<lua_Integer>(all.size())) return 0;
    push_node(L, all[static_cast<size_t>(index) - 1], static_cast<size_t>(index) - 1);
    return 1;
}

void push_figures(lua_State* L, const Figures& f) {
    lua_createtable(L, 0, 14);
    set_text(L, "name", f.name);
    set_integer(L, "node", f.node + 1);
    push(L, f.shape);
    lua_setfield(L, -2, "shape");
    push(L, f.dtype);
    lua_setfield(L, -2, "dtype");
    set_statistics(L, f.statistics);
    if (f.value) set_number(L, "value", *f.value);
}

int hits(lua_State* L) {
    push_list(L, watch_at(L).take_hits(), [&](const watch::Hit& hit) {
        luaL_checkstack(L, 12, "watch");
        lua_createtable(L, 0, 8);
        set_integer(L, "point", static_cast<int64_t>(hit.point) + 1);
        set_integer(L, "question", static_cast<int64_t>(hit.question) + 1);
        set_number(L, "value", hit.value);
        set_integer(L, "step", hit.step);
        set_integer(L, "node", hit.node + 1);
        push_figures(L, hit.tensor);
        lua_setfield(L, -2, "tensor");
        push_list(L, hit.operands, [&](const Figures& f) { push_figures(L, f); });
        lua_setfield(L, -2, "operands");
        if (hit.element >= 0) set_integer(L, "element", hit.element);
        lua_createtable(L, 0, static_cast<int>(hit.numbers.size()));
        for (const auto& [name, value] : hit.numbers) set_number(L, name.c_str(), value);
        lua_setfield(L, -2, "numbers");
    });
    return 1;
}

int figures(lua_State* L) {
    const Watch& w = watch_at(L);
    push_list(L, w.result_figures(), [&](const Figures& f) { push_figures(L, f); });
    push_list(L, w.operand_figures(), [&](const Figures& f) { push_figures(L, f); });
    return 2;
}

// tensors(): the results of the reported node.
int tensors(lua_State* L) {
    push_list(L, watch_at(L).results(), [&](const Tensor& t) { push(L, t.copy()); });
    return 1;
}

// kept(name) -> now, before; kept() -> the names
int kept(lua_State* L) {
    const Watch& w = watch_at(L);
    if (lua_isnoneornil(L, 2)) {
        push_list(L, w.kept_names(), [&](const std::string& name) { push(L, std::string_view(name)); });
        return 1;
    }
    const auto found = w.kept(luaL_checkstring(L, 2));
    if (!found) return 0;
    for (const Tensor& t : {found->now, found->before})
        if (t)
            push(L, t.copy());
        else
            lua_pushnil(L);
    return 2;
}

int step(lua_State* L) {
    lua_pushinteger(L, watch_at(L).step());
    return 1;
}
int is_in_step(lua_State* L) {
    lua_pushboolean(L, watch_at(L).is_in_step());
    return 1;
}

}  // namespace

int open_watch(lua_State* L) {
    static constexpr luaL_Reg kMethods[] = {{"run", protect<run_step>},
                                            {"begin_step", protect<begin_step>},
                                            {"end_step", protect<end_step>},
                                            {"leave_step", protect<leave_step>},
                                            {"report_nodes", protect<report_nodes>},
                                            {"nodes", protect<nodes>},
                                            {"hits", protect<hits>},
                                            {"figures", protect<figures>},
                                            {"tensors", protect<tensors>},
                                            {"kept", protect<kept>},
                                            {"step", protect<step>},
                                            {"is_in_step", protect<is_in_step>},
                                            {nullptr, nullptr}};
    static constexpr luaL_Reg kFunctions[] = {{"new", protect<make>},
                                              {"statistics", protect<statistics>},
                                              {"change", protect<change>},
                                              {"ask", protect<ask>},
                                              {nullptr, nullptr}};
    luaL_newmetatable(L, kMetatable);
    luaL_newlib(L, kMethods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, protect<destroy>);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    luaL_newlib(L, kFunctions);
    return 1;
}

}  // namespace lunaria
