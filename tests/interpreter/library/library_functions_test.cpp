// The table of the library's functions is complete, and says what is so.
#include "interpreter/library/library_functions.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/operator/op.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/program/program_state.h"

namespace lunaria {
namespace {

std::string full_name(const LibraryFunction& row, std::string_view name) {
    return std::string(row.library).append(".").append(name);
}

class LibraryFunctions : public ::testing::Test {
  protected:
    LibraryFunctions() : L(state_.lua()) {
        // Derivatives are there from their first use on.
        const char* text =
            "for _, name in ipairs { 'lunaria', 'lunaria.transforms', 'lunaria.nn.cell' } do require(name) end";
        EXPECT_EQ(luaL_dostring(L, text), LUA_OK) << lua_tostring(L, -1);
    }
    ProgramState state_;
    lua_State* const L;
};

TEST_F(LibraryFunctions, has_a_row_for_each_function_of_the_standard_library_and_no_other) {
    std::set<std::string> rows, found;
    const std::set<std::string> libraries{"_G", "coroutine", "debug", "io", "math", "os", "string", "table", "utf8"};
    for_each_library_function([&](const LibraryFunction& row, std::string_view name) {
        if (!libraries.contains(row.library)) return;
        EXPECT_TRUE(rows.insert(full_name(row, name)).second) << name;
    });
    for (const std::string& library : libraries) {
        ASSERT_EQ(lua_getglobal(L, library.c_str()), LUA_TTABLE);
        for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
            if (lua_iscfunction(L, -1)) found.insert(library + "." + lua_tostring(L, -2));
        lua_pop(L, 1);
    }
    // The program's own.
    for (const char* name : {"_G.breakpoint", "_G.help"}) found.erase(name);
    EXPECT_EQ(rows, found);
}

TEST_F(LibraryFunctions, are_functions) {
    for_each_library_function([&](const LibraryFunction& row, std::string_view name) {
        push_library_function(L, row, name, true);
        EXPECT_TRUE(lua_isfunction(L, -1)) << full_name(row, name);
        lua_pop(L, 1);
    });
    EXPECT_EQ(lua_gettop(L), 0);
}

TEST_F(LibraryFunctions, have_the_derivatives_that_the_table_says) {
    LuaHost& host = LuaHost::of(L);
    for_each_library_function([&](const LibraryFunction& row, std::string_view name) {
        push_library_function(L, row, name, true);
        const bool in_lua = !lua_iscfunction(L, -1);
        const Value f = host.to_value(L, -1);
        lua_pop(L, 1);
        const vm::Callee callee = host.resolve(f);
        const bool opaque = callee.kind == vm::Callee::Kind::opaque && host.stand_in(f).is_nil();
        const Derivative found = host.is_harmless(f)          ? Derivative::harmless
                                 : callee.intrinsic || in_lua ? Derivative::machine
                                 : opaque                     ? Derivative::none
                                                              : Derivative::rule;
        EXPECT_EQ(static_cast<int>(found), static_cast<int>(row.derivative)) << full_name(row, name);
    });
}

TEST_F(LibraryFunctions, are_operators_that_exist_and_take_arguments_of_known_kinds) {
    for_each_library_function([&](const LibraryFunction& row, std::string_view name) {
        EXPECT_EQ(row.arguments.find_first_not_of("AaNnIilTtFfSX#*-"), std::string_view::npos) << name;
        if (row.op.empty()) return;
        EXPECT_NE(registry().find(row.op == "=" ? name : row.op), nullptr) << name;
    });
}

}  // namespace
}  // namespace lunaria
