#include "interpreter/loader/fingerprint.h"
#include "interpreter/program/program_state.h"

#include <gtest/gtest.h>

#include "interpreter/session/session.h"

namespace lunaria {
namespace {

class FingerprintTest : public testing::Test {
  protected:
    // Whether the expression's value is another one than the last time.
    bool changed(const std::string& expression) {
        EXPECT_TRUE(session.execute("__seen = table.pack(" + expression + ")").ok) << expression;
        lua_State* L = state.lua();
        lua_getglobal(L, "__seen");
        const auto count = static_cast<int>(lua_rawlen(L, -1));
        for (int i = 1; i <= count; ++i) lua_rawgeti(L, -i, i);
        const bool result = print.take(L, lua_gettop(L) - count + 1);
        lua_settop(L, 0);
        return result;
    }
    ProgramState state;
    Session session{state};
    Fingerprint print;
};

TEST_F(FingerprintTest, tells_types_and_bits_apart) {
    EXPECT_TRUE(changed("1"));
    EXPECT_FALSE(changed("1"));
    for (const char* other :
         {"1.0", "1.0000000000000002", "'1'", "'1\\0'", "true", "false", "0.0", "-0.0", "{}", "{{}}", "print", "type"})
        EXPECT_TRUE(changed(other)) << other;
    EXPECT_TRUE(changed("0/0"));
    EXPECT_FALSE(changed("0/0"));
    EXPECT_TRUE(changed("1, 2"));
    EXPECT_TRUE(changed("2, 1"));
}

TEST_F(FingerprintTest, compares_tables_by_their_fields) {
    session.execute("t = {1, a = {b = {c = 1}}} t.self = t");
    EXPECT_TRUE(changed("t"));
    EXPECT_FALSE(changed("t"));
    session.execute("t.a.b.c = 2");
    EXPECT_TRUE(changed("t"));
    session.execute("t.a = {b = {c = 2}}");
    EXPECT_FALSE(changed("t"));
    session.execute("t.a.b.d = t.a");
    EXPECT_TRUE(changed("t"));
    session.execute("t[1], t[2] = nil, 1");
    EXPECT_TRUE(changed("t"));
    session.execute("setmetatable(t.a, {})");
    EXPECT_TRUE(changed("t"));
}

TEST_F(FingerprintTest, compares_tensors_by_their_elements) {
    session.execute("x = ms.ops.zeros({300}) p = ms.Parameter(ms.tensor{1.0, 2.0})");
    EXPECT_TRUE(changed("x"));
    EXPECT_FALSE(changed("x + 0"));
    session.execute("x[150] = 1");
    EXPECT_TRUE(changed("x"));
    session.execute("x[150] = 1");
    EXPECT_FALSE(changed("x"));
    EXPECT_TRUE(changed("x:reshape({3, 100})"));
    EXPECT_TRUE(changed("x:astype(ms.float64)"));
    EXPECT_TRUE(changed("{w = p}"));
    EXPECT_FALSE(changed("{w = p}"));
    session.execute("ms.ops.assign(p, ms.tensor{1.0, 3.0})");
    EXPECT_TRUE(changed("{w = p}"));
}

}  // namespace
}  // namespace lunaria
