// Stages of a compiled function's operators, as tables for lunaria/lowered.lua.
#include "core/ir/printer.h"
#include "core/ir/text.h"
#include "core/ir/verifier.h"
#include "interpreter/jit/compiled.h"
#include "interpreter/jit/function.h"
#include "interpreter/values/fields.h"
#include "jit/trace/region.h"
#include "jit/trace/whole.h"

namespace lunaria::jit {

namespace {

void push_steps(lua_State* L, const graph::Executable& executable) {
    lua_newtable(L);
    lua_Integer i = 0;
    for (const graph::PlannedStep& step : executable.steps()) {
        lua_createtable(L, 0, 5);
        set_text(L, "operators", step.operators);
        set_text(L, "place", ir::place_text(step.span));
        lua_pushboolean(L, step.generated);
        lua_setfield(L, -2, "generated");
        set_integer(L, "bytes", static_cast<size_t>(step.bytes));
        lua_pushnumber(L, step.flops);
        lua_setfield(L, -2, "flops");
        lua_rawseti(L, -2, ++i);
    }
}

void push_memory(lua_State* L, const graph::Executable& executable) {
    lua_newtable(L);
    lua_Integer i = 0;
    for (const graph::PlannedMemory& m : executable.memory()) {
        lua_createtable(L, 0, 5);
        set_text(L, "name", m.name);
        set_integer(L, "offset", m.offset);
        set_integer(L, "bytes", m.bytes);
        set_integer(L, "first", m.first);
        set_integer(L, "last", m.last);
        lua_rawseti(L, -2, ++i);
    }
}

void push_regions(lua_State* L, trace::Tree& tree, trace::Block& block) {
    for (auto& region : block.regions) {
        const bool compiles = !region->open && !region->executable && !region->failed;
        if (compiles && !compile(block, *region)) tree.dirty = block.changed = true;
        lua_createtable(L, 0, 8);
        set_integer(L, "operators", region->operators);
        if (!region->open) {
            set_text(L, "graph", graph_text(block, *region, false));
            set_text(L, "optimized", graph_text(block, *region, true));
        }
        if (region->executable) {
            set_text(L, "kernels", region->executable->describe());
            set_integer(L, "arena", region->executable->stats().arena_bytes);
            push_steps(L, *region->executable);
            lua_setfield(L, -2, "steps");
            push_memory(L, *region->executable);
            lua_setfield(L, -2, "memory");
        } else {
            set_text(L, "problem",
                     region->open ? "its sizes are open: it is compiled for the sizes of a call" : region->problem);
        }
        lua_rawseti(L, -2, static_cast<lua_Integer>(lua_rawlen(L, -2)) + 1);
    }
    for (auto& next : block.next) push_regions(L, tree, *next);
}

}  // namespace

int lowered(lua_State* L) {
    trace::Tree& tree = tree_at(L, 1);
    lua_newtable(L);
    push_regions(L, tree, tree.root);
    if (tree.dirty) settle(tree);
    return 1;
}

std::unique_ptr<ir::Graph> whole_graph(lua_State* L, int function, int namer) {
    Function& f = function_at(L, function);
    luaL_checktype(L, namer, LUA_TFUNCTION);
    const auto name = [&](const trace::Step& step) {
        luaL_checkstack(L, 8, "names");
        const int top = lua_gettop(L);
        lua_pushvalue(L, namer);
        push(L, trace::name_of(step.kind));
        for (size_t i = 0; i < 2; ++i) {
            const bool is_known = i < step.args().size() && !step.args()[i].is_node();
            f.host.push(L, is_known ? step.args()[i] : Value());
        }
        lua_call(L, 3, 2);
        trace::Found found{lua_tostring(L, -2), {}};
        if (const Tensor* example = tensor_at(L, -1)) found.type = type_of(*example);
        lua_settop(L, top);
        return found;
    };
    auto graph = trace::whole_call(f.host, f.tree, name);
    ir::verify(*graph);
    return graph;
}

int whole(lua_State* L) {
    push(L, std::string_view(ir::print(*whole_graph(L, 1, 2))));
    return 1;
}

}  // namespace lunaria::jit
