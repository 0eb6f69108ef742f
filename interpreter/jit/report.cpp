// Counters and reasons of a compiled function, for ms.jit_report and its kin.
#include <functional>
#include <map>

#include "core/ir/printer.h"
#include "core/ir/verifier.h"
#include "interpreter/jit/compiled.h"
#include "interpreter/values/values.h"
#include "jit/trace/region.h"

namespace lunaria::jit {

namespace {

void count_kinds(const trace::Block& block, std::map<std::string_view, int64_t>& counts,
                 std::vector<std::string>& effects) {
    for (const trace::Step& step : block.steps) {
        ++counts[trace::name_of(step.kind)];
        if (step.effect) effects.push_back(trace::described(step.span(), trace::name_of(step)));
    }
    for (const auto& next : block.next) count_kinds(*next, counts, effects);
}

void for_each_region(const trace::Block& block, const std::function<void(const trace::Region&)>& f) {
    for (const auto& region : block.regions) f(*region);
    for (const auto& next : block.next) for_each_region(*next, f);
}

void push_counts(lua_State* L, const std::map<std::string_view, int64_t>& counts) {
    lua_createtable(L, 0, static_cast<int>(counts.size()));
    for (auto [name, n] : counts) {
        push(L, name);
        lua_pushinteger(L, n);
        lua_rawset(L, -3);
    }
}

}  // namespace

int text(lua_State* L) {
    trace::Tree& tree = function_at(L, 1).tree;
    trace::tell_types(tree);
    tree.root.write_ways();
    ir::verify(*tree.graph);
    const auto layouts = trace::layouts_of(tree);
    const auto type_text = [&](const ir::Node& node) {
        const auto found = layouts.find(&node);
        return found == layouts.end() ? ir::to_string(node.type) : found->second;
    };
    push(L, std::string_view(ir::print(*tree.graph, {.type_text = type_text})));
    return 1;
}

int kernels(lua_State* L) {
    std::string text;
    for_each_region(function_at(L, 1).tree.root, [&](const trace::Region& region) {
        text += str("region of ", region.operators, " operators");
        bool any = false;
        region.for_each_executable([&](const graph::Executable& e) {
            text += any ? std::string("for other sizes:\n") : str(", compiled in ", region.seconds * 1e3, " ms\n");
            text += e.describe();
            any = true;
        });
        if (!any) text += str(region.failed ? ", not compiled: " + region.problem : ", not compiled yet", "\n");
    });
    push(L, std::string_view(text));
    return 1;
}

// The facts about a compiled function, as a table.
int report(lua_State* L) {
    const Function& f = function_at(L, 1);
    lua_createtable(L, 0, 12);
    const std::pair<const char*, int64_t> numbers[] = {{"calls", f.calls},
                                                       {"compiled_calls", f.runs},
                                                       {"interpreted_calls", f.interpreted},
                                                       {"resumed_calls", f.resumed},
                                                       {"branches", static_cast<int64_t>(f.tree.branches)},
                                                       {"steps", static_cast<int64_t>(f.tree.steps)}};
    for (auto [name, n] : numbers) {
        lua_pushinteger(L, n);
        lua_setfield(L, -2, name);
    }
    // The reason why nothing of it is compiled, or why some of it is not.
    const bool none = f.eager.empty() && f.tree.steps == 0;
    for (auto [name, words] : {std::pair("name", &f.label), std::pair("eager", none ? &f.refusal : &f.eager),
                               std::pair("refused", none ? &f.eager : &f.refusal)})
        if (!words->empty()) {
            push(L, std::string_view(*words));
            lua_setfield(L, -2, name);
        }
    std::map<std::string_view, int64_t> counts;
    std::vector<std::string> effects;
    count_kinds(f.tree.root, counts, effects);
    push_counts(L, counts);
    lua_setfield(L, -2, "kinds");
    lua_createtable(L, static_cast<int>(effects.size()), 0);
    for (size_t i = 0; i < effects.size(); ++i) {
        push(L, std::string_view(effects[i]));
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    lua_setfield(L, -2, "effects");
    int64_t compiled = 0, operators = 0;
    double seconds = 0;
    std::map<std::string_view, int64_t> on_host;
    for_each_region(f.tree.root, [&](const trace::Region& region) {
        region.for_each_executable([&](const graph::Executable& e) {
            for (std::string_view name : e.host_operators()) ++on_host[name];
            ++compiled;
            operators += static_cast<int64_t>(region.operators);
        });
        seconds += region.seconds;
    });
    push_counts(L, on_host);
    lua_setfield(L, -2, "on_host");
    lua_pushinteger(L, compiled);
    lua_setfield(L, -2, "graphs");
    lua_pushinteger(L, operators);
    lua_setfield(L, -2, "graph_operators");
    lua_pushnumber(L, seconds);
    lua_setfield(L, -2, "compile_seconds");
    lua_createtable(L, static_cast<int>(f.recordings.size()), 0);
    for (size_t i = 0; i < f.recordings.size(); ++i) {
        lua_createtable(L, 0, 3);
        if (!f.recordings[i].surprise.empty()) {
            push(L, std::string_view(f.recordings[i].surprise));
            lua_setfield(L, -2, "because");
        }
        if (!f.recordings[i].failure.empty()) {
            push(L, std::string_view(f.recordings[i].failure));
            lua_setfield(L, -2, "error");
        }
        lua_pushnumber(L, f.recordings[i].seconds);
        lua_setfield(L, -2, "seconds");
        lua_pushinteger(L, static_cast<lua_Integer>(f.recordings[i].steps));
        lua_setfield(L, -2, "steps");
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    lua_setfield(L, -2, "recordings");
    return 1;
}

}  // namespace lunaria::jit
