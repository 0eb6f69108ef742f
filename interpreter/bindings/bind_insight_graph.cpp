// The module behind lunaria/insight/graph.lua: graphs with their views.
#include "core/insight/graph/difference.h"
#include "core/insight/graph/graph_page.h"
#include "core/ir/parser.h"
#include "interpreter/bindings/insight_graph.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "jit/language.h"

namespace lunaria {

using insight::GraphPage;

insight::OperatorGraph graph_at(lua_State* L, bool is_text, std::string_view where) {
    if (!is_text) return insight::read_operator_graph(*open_source(path_at(L, 1, where)));
    size_t size = 0;
    const char* text = luaL_checklstring(L, 1, &size);
    const ir::ParsedGraph parsed = ir::parse({text, size}, {&lua::language(), nullptr, nullptr, nullptr}, "graph");
    return insight::operator_graph_of(*parsed.graph,
                                      {&lua::primitive("call"), &lua::primitive("result"), &lua::primitive("index")});
}

namespace {

constexpr std::string_view kInsightGraphWhere = "graph";
constexpr const char* kName = "lunaria.insight_graph";

GraphPage& page_at(lua_State* L, int index) { return **static_cast<GraphPage**>(luaL_checkudata(L, index, kName)); }

int collect(lua_State* L) {
    auto** place = static_cast<GraphPage**>(luaL_checkudata(L, 1, kName));
    delete std::exchange(*place, nullptr);
    return 0;
}

// graph(path or text, is_text, name) -> the graph
int read_graph(lua_State* L) {
    std::string name = luaL_checkstring(L, 3);
    auto page = std::make_unique<GraphPage>(graph_at(L, lua_toboolean(L, 2), kInsightGraphWhere), std::move(name));
    auto** place = static_cast<GraphPage**>(lua_newuserdatauv(L, sizeof(GraphPage*), 0));
    *place = nullptr;
    if (luaL_newmetatable(L, kName)) {
        lua_pushcfunction(L, protect<collect>);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    *place = page.release();
    return 1;
}

// The texts of a table, by name; nothing where there is no table.
template <class Add>
void each_field(lua_State* L, int index, const Add& add) {
    if (!lua_istable(L, index)) return;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pushvalue(L, -2);
        size_t size = 0;
        const char* name = lua_tolstring(L, -1, &size);
        add(std::string(name, size), -2);
        lua_pop(L, 2);
    }
}

Question question_at(lua_State* L, int path, int parameters) {
    Question question;
    question.method = "GET";
    std::string_view rest = luaL_checkstring(L, path);
    while (!rest.empty()) {
        const size_t end = std::min(rest.find('/'), rest.size());
        question.path.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    each_field(L, parameters,
               [&](const std::string& name, int value) { question.parameters.emplace(name, lua_tostring(L, value)); });
    return question;
}

template <class F>
auto asked(const F& f) {
    try {
        return f();
    } catch (const Refusal& refusal) {
        throw Error(ErrorKind::value, kInsightGraphWhere, refusal.sentence);
    }
}

// answer(graph, path, parameters) -> the answer's text
int answer(lua_State* L) {
    const Question question = question_at(L, 2, 3);
    GraphPage& page = page_at(L, 1);
    push(L, std::string_view(asked([&] { return page.answer(question); }).body));
    return 1;
}

// difference(before, after) -> JSON
int graph_difference(lua_State* L) {
    push(L, std::string_view(page_at(L, 1).difference(page_at(L, 2).model()).body));
    return 1;
}

// number_of(graph, name) -> the number of a node, or nothing
int number_of(lua_State* L) {
    size_t size = 0;
    const char* name = luaL_checklstring(L, 2, &size);
    const auto node = page_at(L, 1).model().find({name, size});
    if (!node) return 0;
    lua_pushinteger(L, *node);
    return 1;
}

// picture(graph, parameters, numbers by name or nil, graph before or nil) -> SVG
int picture(lua_State* L) {
    lua_pushstring(L, "svg");
    const Question question = question_at(L, lua_gettop(L), 2);
    GraphPage& page = page_at(L, 1);
    std::vector<std::pair<std::string, double>> numbers;
    each_field(L, 3, [&](const std::string& name, int value) { numbers.emplace_back(name, lua_tonumber(L, value)); });
    std::vector<uint8_t> states;
    if (!lua_isnoneornil(L, 4)) {
        constexpr uint8_t kAdded = 2, kChanged = 3;
        const auto d = insight::difference_of(page_at(L, 4).model(), page.model());
        states.assign(page.model().size(), 0);
        for (const int32_t v : d.added) states[v] = kAdded;
        for (const auto& change : d.changed) states[change.after] = kChanged;
    }
    const std::string svg = asked([&] {
        return page.with_view(question, [&](const insight::Scene& scene, const insight::View& view) {
            const insight::Overlay overlay = insight::overlay_of(page.model(), scene.tree(), numbers);
            const bool is_dark = question.parameter("dark").value_or("") == "1";
            return insight::svg_of(scene, view, {is_dark, numbers.empty() ? nullptr : &overlay, states});
        });
    });
    push(L, std::string_view(svg));
    return 1;
}

}  // namespace

int open_insight_graph(lua_State* L) {
    lua_newtable(L);
    const auto add = [&](const char* name, lua_CFunction f) {
        lua_pushcfunction(L, f);
        lua_setfield(L, -2, name);
    };
    add("graph", protect<read_graph>);
    add("answer", protect<answer>);
    add("difference", protect<graph_difference>);
    add("number_of", protect<number_of>);
    add("picture", protect<picture>);
    return 1;
}

}  // namespace lunaria
