// Every operator's example is true.
#include <gtest/gtest.h>

#include <cmath>
#include <lua.hpp>

#include "backends/cpu/device.h"
#include "core/operator/op.h"
#include "interpreter/program/program_state.h"
#include "interpreter/values/values.h"

namespace lunaria {
namespace {

// Expressions see the operators and `tensor` by their names before anything else.
constexpr char kPrelude[] = R"(
local ms = require "lunaria"
names = setmetatable({tensor = ms.tensor, ms = ms}, {__index = function(_, key)
  local found, op = pcall(function() return ms.ops[key] end)
  if found and op ~= nil then return op end
  return _G[key] or ms[key]
end})
)";

class ExampleTest : public ::testing::TestWithParam<const Op*> {
  protected:
    // The values that an expression gives, as tensors; numbers count as tensors of rank 0.
    std::vector<Value> evaluate(const std::string& expression) {
        lua_State* L = state_.lua();
        lua_settop(L, 0);
        if (luaL_loadstring(L, ("return " + expression).c_str()) != LUA_OK) {
            ADD_FAILURE() << lua_tostring(L, -1);
            return {};
        }
        lua_getglobal(L, "names");
        lua_setupvalue(L, 1, 1);
        if (lua_pcall(L, 0, LUA_MULTRET, 0) != LUA_OK) {
            ADD_FAILURE() << expression << ": " << lua_tostring(L, -1);
            return {};
        }
        std::vector<Value> values;
        for (int i = 1; i <= lua_gettop(L); ++i) collect(L, i, values);
        return values;
    }
    static void collect(lua_State* L, int index, std::vector<Value>& values) {
        if (const Tensor* t = tensor_at(L, index))
            values.emplace_back(*t);
        else if (lua_isinteger(L, index))
            values.emplace_back(static_cast<int64_t>(lua_tointeger(L, index)));
        else if (lua_isnumber(L, index))
            values.emplace_back(static_cast<double>(lua_tonumber(L, index)));
        else if (lua_isboolean(L, index))
            values.emplace_back(lua_toboolean(L, index) != 0);
        else if (lua_istable(L, index))
            for (lua_Integer i = 1, n = luaL_len(L, index); i <= n; ++i) {
                lua_geti(L, index, i);
                collect(L, lua_gettop(L), values);
                lua_pop(L, 1);
            }
        else {
            values.emplace_back(std::string_view(luaL_tolstring(L, index, nullptr)));
            lua_pop(L, 1);
        }
    }
    static void expect_equal(const Value& got, const Value& want, const char* example) {
        if (want.kind() == Value::Kind::string || got.kind() == Value::Kind::string) {
            EXPECT_EQ(to_string(got), to_string(want)) << example;
            return;
        }
        Tensor a = got.is_tensor() ? got.tensor() : Tensor::scalar(DType::f64, got.number());
        Tensor b = want.is_tensor() ? want.tensor() : Tensor::scalar(DType::f64, want.number());
        ASSERT_EQ(a.shape(), b.shape()) << example;
        for (int64_t i = 0; i < a.size(); ++i) {
            if (std::isnan(a.at(i)) && std::isnan(b.at(i))) continue;
            if (a.at(i) == b.at(i)) continue;
            EXPECT_NEAR(a.at(i), b.at(i), 1e-4 * (1 + std::abs(b.at(i)))) << example << ", element " << i;
        }
    }
    void SetUp() override {
        set_current_device(&cpu::device());
        ASSERT_EQ(luaL_dostring(state_.lua(), kPrelude), LUA_OK) << lua_tostring(state_.lua(), -1);
    }
    ProgramState state_;
};

TEST_P(ExampleTest, is_true) {
    for (const Op::Example& e : GetParam()->examples) {
        std::vector<Value> got = evaluate(e.lua), want = evaluate(e.result);
        // An example may show the first of several results.
        ASSERT_LE(want.size(), got.size()) << e.lua;
        ASSERT_FALSE(want.empty()) << e.lua;
        for (size_t i = 0; i < want.size(); ++i) expect_equal(got[i], want[i], e.lua);
    }
}

std::vector<const Op*> ops_with_examples() {
    std::vector<const Op*> ops;
    for (auto& op : registry().all())
        if (!op->examples.empty()) ops.push_back(op.get());
    return ops;
}

INSTANTIATE_TEST_SUITE_P(Ops, ExampleTest, ::testing::ValuesIn(ops_with_examples()),
                         [](const ::testing::TestParamInfo<const Op*>& info) {
                             return std::string(info.param->name());
                         });

}  // namespace
}  // namespace lunaria
