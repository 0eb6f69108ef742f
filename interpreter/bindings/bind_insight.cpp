// The module behind lunaria/insight/: equal parts of graphs.
#include "core/insight/description.h"
#include "interpreter/bindings/insight_graph.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

using insight::Description;
using insight::OperatorGraph;
using insight::Substructure;

constexpr std::string_view kInsightWhere = "substructures";

template <class List, class Push>
void push_list(lua_State* L, const List& list, const Push& push_one) {
    lua_createtable(L, static_cast<int>(list.size()), 0);
    for (size_t i = 0; i < list.size(); ++i) {
        push_one(list[i]);
        lua_rawseti(L, -2, static_cast<lua_Integer>(i + 1));
    }
}

void push_numbers(lua_State* L, std::initializer_list<int64_t> numbers) {
    push_list(L, std::vector<int64_t>(numbers), [&](int64_t n) { lua_pushinteger(L, n); });
}

// {nodes, edges}, by name.
void push_instance(lua_State* L, const OperatorGraph& graph, const Substructure& s, const std::vector<int32_t>& nodes) {
    const auto push_name = [&](int32_t place) { push(L, std::string_view(graph.nodes[nodes[place]].name)); };
    lua_createtable(L, 2, 0);
    push_list(L, nodes, [&](int32_t v) { push(L, std::string_view(graph.nodes[v].name)); });
    lua_rawseti(L, -2, 1);
    push_list(L, s.edges, [&](const std::pair<int32_t, int32_t>& edge) {
        lua_createtable(L, 2, 0);
        push_name(edge.first);
        lua_rawseti(L, -2, 1);
        push_name(edge.second);
        lua_rawseti(L, -2, 2);
    });
    lua_rawseti(L, -2, 2);
}

void push_substructure(lua_State* L, const OperatorGraph& graph, const Substructure& s, const Description& about) {
    luaL_checkstack(L, 12, "substructures");
    lua_createtable(L, 0, 8);
    push_list(L, s.instances, [&](const std::vector<int32_t>& nodes) { push_instance(L, graph, s, nodes); });
    lua_setfield(L, -2, "instances");
    lua_pushinteger(L, s.gain());
    lua_setfield(L, -2, "gain");
    push(L, std::string_view(about.label));
    lua_setfield(L, -2, "label");
    push_list(L, s.inside, [&](int32_t key) { lua_pushinteger(L, key + 1); });
    lua_setfield(L, -2, "inside");
    push_list(L, s.instances[0], [&](int32_t v) { push(L, std::string_view(graph.nodes[v].type)); });
    lua_setfield(L, -2, "types");
    push_list(L, about.inputs, [&](const std::pair<int32_t, int32_t>& input) {
        push_numbers(L, {input.first + 1, input.second + 1});
    });
    lua_setfield(L, -2, "inputs");
    push_list(L, about.outputs, [&](int32_t place) { lua_pushinteger(L, place + 1); });
    lua_setfield(L, -2, "outputs");
    push_list(L, about.differences, [&](const Description::Difference& d) {
        lua_createtable(L, 0, 3);
        lua_pushinteger(L, d.place + 1);
        lua_setfield(L, -2, "place");
        push(L, std::string_view(d.attribute));
        lua_setfield(L, -2, "attribute");
        push_list(L, d.values, [&](const std::string& value) { push(L, std::string_view(value)); });
        lua_setfield(L, -2, "values");
    });
    lua_setfield(L, -2, "differences");
}

// substructures(path or text, exact, is_text) -> the list of substructures, their JSON text, how many nodes there are
int substructures(lua_State* L) {
    const OperatorGraph graph = graph_at(L, lua_toboolean(L, 3), kInsightWhere);
    const auto equality = lua_toboolean(L, 2) ? insight::Equality::exact : insight::Equality::operators;
    const std::vector<Substructure> found = insight::find_substructures(graph, equality);
    const std::vector<Description> about = insight::describe(graph, found);
    lua_createtable(L, static_cast<int>(found.size()), 0);
    for (size_t k = 0; k < found.size(); ++k) {
        push_substructure(L, graph, found[k], about[k]);
        lua_rawseti(L, -2, static_cast<lua_Integer>(k + 1));
    }
    push(L, std::string_view(insight::json_of(graph, found)));
    lua_pushinteger(L, static_cast<lua_Integer>(graph.nodes.size()));
    return 3;
}

}  // namespace

int open_insight(lua_State* L) {
    lua_newtable(L);
    lua_pushcfunction(L, protect<substructures>);
    lua_setfield(L, -2, "substructures");
    bind_insight_server(L);
    return 1;
}

}  // namespace lunaria
