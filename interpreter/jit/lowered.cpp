// Stages of a compiled function's operators, as tables for lunaria/lowered.lua.
#include "core/ir/text.h"
#include "interpreter/jit/function.h"
#include "interpreter/values/values.h"
#include "jit/trace/region.h"

namespace lunaria::jit {

namespace {

void set_text(lua_State* L, const char* name, std::string_view text) {
    push(L, text);
    lua_setfield(L, -2, name);
}
void set_integer(lua_State* L, const char* name, size_t n) {
    lua_pushinteger(L, static_cast<lua_Integer>(n));
    lua_setfield(L, -2, name);
}

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
        if (!region->executable && !region->failed && !compile(block, *region)) tree.dirty = block.changed = true;
        lua_createtable(L, 0, 8);
        set_text(L, "graph", graph_text(block, *region, false));
        set_text(L, "optimized", graph_text(block, *region, true));
        set_integer(L, "operators", region->operators);
        if (region->executable) {
            set_text(L, "kernels", region->executable->describe());
            set_integer(L, "arena", region->executable->stats().arena_bytes);
            push_steps(L, *region->executable);
            lua_setfield(L, -2, "steps");
            push_memory(L, *region->executable);
            lua_setfield(L, -2, "memory");
        } else {
            set_text(L, "problem", region->problem);
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

}  // namespace lunaria::jit
