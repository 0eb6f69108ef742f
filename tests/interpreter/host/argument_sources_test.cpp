// The sources of a call's arguments: the same tensor, or equal numbers, in several places of an operator's call
// have the gradients that separate equal tensors by position have, however the call is written.
#include <gtest/gtest.h>

#include "backends/cpu/device.h"
#include "core/ops/sample.h"
#include "interpreter/loader/loader.h"
#include "interpreter/program/program_state.h"
#include "interpreter/values/operators.h"
#include "interpreter/values/values.h"

namespace lunaria {
namespace {

// check(operator, parameters, arguments) gives how many calls were compared, and raises an error where one differs.
constexpr char kCheck[] = R"(
local ms = require "lunaria"
local ops = ms.ops

-- Calls the operator; `ways[i]` is how parameter i is given: by "position", by "name", "spelled" out or not at all.
local function call(op, params, args, ways)
  local list, options, count = {}, {}, 0
  for i, way in pairs(ways) do
    if way == "position" then
      list[i], count = args[i], math.max(count, i)
    elseif way == "spelled" then
      for m, item in ipairs(args[i]) do list[m], count = item, m end
    else
      options[params[i].name] = args[i]
    end
  end
  if next(options) then
    count = count + 1
    list[count] = options
  end
  return op(table.unpack(list, 1, count))
end

-- A number that each element of each result has an influence of its own on.
local function total(...)
  local sum = nil
  for i = 1, select("#", ...) do
    local y = select(i, ...)
    if type(y) == "number" then y = ms.tensor(y) end
    if type(y) == "userdata" and tostring(y.dtype):find "Float" then
      local part = (ops.sin(y * 0.7) * ops.cos(y + i)):sum()
      sum = sum and sum + part or part
    end
  end
  return sum
end

-- Gradients by all leaves of the call; `places[k]`: parameter and item of leaf k.
local function gradients(op, params, args, ways, places, leaves)
  local positions = {}
  for k = 1, #leaves do positions[k] = k - 1 end
  local f = ms.grad(function(...)
    local given = {}
    for i = 1, #params do
      given[i] = args[i]
      if params[i].kind == "tensors" and args[i] then
        local items = {}
        for m, item in ipairs(args[i]) do items[m] = item end
        given[i] = items
      end
    end
    for k, place in ipairs(places) do
      local leaf = select(k, ...)
      if place.item then given[place.param][place.item] = leaf else given[place.param] = leaf end
    end
    return total(call(op, params, given, ways))
  end, positions)
  ms.set_seed(5)
  return { f(table.unpack(leaves)) }
end

local function elements(g)
  if type(g) == "table" and #g == 1 then g = g[1] end
  if type(g) == "number" then return { g } end
  return g:reshape({ -1 }):tolist()
end

local function compare(got, want, words)
  if #got == 1 and type(got[1]) == "table" then got = got[1] end
  if #want == 1 and type(want[1]) == "table" then want = want[1] end
  assert(#got == #want, words)
  for k = 1, #want do
    local a, b = elements(got[k]), elements(want[k])
    assert(#a == #b, words)
    for i = 1, #b do
      local near = a[i] == b[i] or math.abs(a[i] - b[i]) <= 1e-5 * (1 + math.abs(b[i])) or (a[i] ~= a[i] and b[i] ~= b[i])
      if not near then
        error(("%s: the gradient by leaf %d is %g, and %g with separate tensors"):format(words, k, a[i], b[i]), 0)
      end
    end
  end
end

return function(op, params, args)
  local places, originals, groups = {}, {}, {}
  local function leaf(value, place)
    if type(value) ~= "userdata" or not tostring(value.dtype):find "Float" then return end
    local form = tostring(value.dtype) .. table.concat(value.shape, ",")
    groups[form] = groups[form] or value
    places[#places + 1], originals[#originals + 1] = place, groups[form]
  end
  for i, param in ipairs(params) do
    if param.kind == "tensor" then leaf(args[i], { param = i }) end
    if param.kind == "tensors" then
      for m, item in ipairs(args[i]) do leaf(item, { param = i, item = m }) end
    end
  end
  if #places < 2 then return 0 end
  local position, name, mixed = {}, {}, {}
  for i, param in ipairs(params) do
    if args[i] ~= nil then
      position[i] = param.by_name and "name" or "position"
      name[i] = "name"
      mixed[i] = i > 1 and "name" or param.kind == "tensors" and "spelled" or position[i]
    end
  end
  -- A hole in the positions would be a nil.
  local hole = false
  for i, param in ipairs(params) do
    if args[i] == nil then hole = true elseif hole then position[i] = "name" end
  end
  local separate, numbers, scalars = {}, {}, {}
  for k, value in ipairs(originals) do
    separate[k] = value:copy()
    numbers[k], scalars[k] = 0.5, ms.tensor(0.5)
  end
  local count = 0
  local function check(leaves, reference)
    ms.set_seed(5)
    local fine, want = pcall(gradients, op, params, args, position, places, reference)
    if not fine then return end
    for words, ways in pairs { ["by position"] = position, ["by names"] = name, mixed = mixed } do
      compare(gradients(op, params, args, ways, places, leaves), want, words)
      count = count + 1
    end
  end
  check(originals, separate)
  local takes_numbers = true
  for _, place in ipairs(places) do takes_numbers = takes_numbers and params[place.param].real end
  if takes_numbers then check(numbers, scalars) end
  return count
end
)";

TEST(ArgumentSources, the_same_value_in_several_places_has_the_gradients_of_separate_ones) {
    set_current_device(&cpu::device());
    ProgramState state;
    lua_State* L = state.lua();
    state.loader().compile(L, kCheck, "@check.lua");
    lua_call(L, 0, 1);
    lua_Integer compared = 0;
    size_t operators = 0;
    for (const auto& op : registry().all()) {
        const auto& params = op->signature.params;
        const bool several = std::ranges::count_if(params, [](const Param& p) { return is_tensor_type(p.type); }) > 1;
        const bool lists = std::ranges::any_of(params, [](const Param& p) { return p.type == ArgType::tensors; });
        if ((!several && !lists) || op->host_fn || op->writes()) continue;
        const lua_Integer before = compared;
        for (const char* sample : op->samples) {
            const std::vector<Value> args = sample_args(*op, sample, 3);
            lua_pushvalue(L, 1);
            push_operator(L, *op);
            lua_createtable(L, 0, 0);
            for (size_t i = 0; i < params.size(); ++i) {
                const ArgType type = params[i].type;
                lua_createtable(L, 0, 4);
                push(L, params[i].name);
                lua_setfield(L, -2, "name");
                push(L, std::string_view(type == ArgType::tensors ? "tensors" : is_tensor_type(type) ? "tensor" : ""));
                lua_setfield(L, -2, "kind");
                lua_pushboolean(L, params[i].by_name_only);
                lua_setfield(L, -2, "by_name");
                lua_pushboolean(L, type == ArgType::same || type == ArgType::real);
                lua_setfield(L, -2, "real");
                lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
            }
            lua_createtable(L, 0, 0);
            for (size_t i = 0; i < args.size(); ++i) {
                push(L, args[i]);
                lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
            }
            if (lua_pcall(L, 3, 1, 0) == LUA_OK)
                compared += lua_tointeger(L, -1);
            else
                ADD_FAILURE() << op->name() << "(" << sample << "): " << lua_tostring(L, -1);
            lua_settop(L, 1);
        }
        operators += compared > before;
    }
    // So many have a gradient and two float operands in a sample.
    EXPECT_GT(operators, 80u);
    EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace lunaria
