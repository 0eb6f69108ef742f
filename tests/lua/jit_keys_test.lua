-- Compiled functions that read and write Lua tables under keys which are others in each call: items of a list, layers
-- by number, fields whose names are made at run time. And tensors that are indexed by such numbers.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops, nn = ms.ops, ms.nn

local calls = 100

-- make() gives a function of a vector and the number of the call. Of its calls at most `most` (5) may not be compiled.
local function check(name, make, most)
  t.test(name, function()
    local plain, f = make(), ms.jit(make())
    for i = 1, calls do
      local w = ms.tensor { 0.5, -1.0, 2.0, 0.1 * i }
      t.near(table.pack(f(w, i)), table.pack(plain(w, i)), 1e-5)
    end
    local report = ms.jit_report(f)
    if report.compiled_calls < calls - (most or 5) then error("not compiled: " .. tostring(report)) end
  end)
end

local function check_both(name, make, most)
  check(name, make, most)
  check(name .. ", gradient", function()
    local f = make()
    return function(w, i) return ms.value_and_grad(function(v) return ops.sum(v * f(v, i)) end)(w) end
  end, most)
end

local function list(count, item)
  local made = {}
  for i = 1, count do made[i] = item(i) end
  return made
end

check_both("a list of numbers", function()
  local rates = list(calls, function(i) return i / 8 end)
  return function(w, i) return w * rates[i] end
end)
check_both("a list of integers and floats", function()
  local rates = list(calls, function(i) return i % 2 == 0 and i or i / 8 end)
  return function(w, i) return w * rates[i] + rates[calls + 1 - i] end
end)
check_both("a list of tensors", function()
  local items = list(calls, function(i) return ops.full({ 4 }, i / 8) end)
  return function(w, i) return w * items[i] end
end)
check_both("a list of tensors of some sizes", function()
  local items = list(calls, function(i) return ops.full({ 1 + i % 7, 4 }, i / 8) end)
  return function(w, i) return ops.sum(w * items[i], 0) end
end, 10)
check_both("two items of one list, at times the same", function()
  local items = list(calls, function(i) return ops.full({ 4 }, i / 8) end)
  return function(w, i) return w * items[i] + items[i % 3 + 1], rawequal(items[i], items[i % 3 + 1]) end
end)
check_both("an item and the tensor that it is at times", function()
  local items = list(calls, function(i) return ops.full({ 4 }, i / 8) end)
  local third = items[3]
  return function(w, i) return w * items[i % 5 + 1] + third, rawequal(items[i % 5 + 1], third) end
end)
check_both("an item that is not always there", function()
  local rates = list(calls, function(i) return i % 3 > 0 and i / 8 or false end)
  for i = 1, calls do rates[i] = rates[i] or nil end
  return function(w, i)
    local rate = rates[i]
    if rate == nil then return w end
    return w * rate
  end
end)
check_both("an item of the metatable's", function()
  local base = list(calls, function(i) return i / 8 end)
  local own = setmetatable({ [7] = 2.5, [40] = 3 }, { __index = base })
  return function(w, i) return w * own[i] end
end)
check_both("a function in place of what is not there", function()
  local own = setmetatable({ [7] = 2.5 }, { __index = function(_, k) return k / 4 end })
  return function(w, i) return w * own[i] end
end)
check_both("a list of records", function()
  local records = list(calls, function(i) return { rate = i / 8, bias = ops.full({ 4 }, i), deep = { i } } end)
  return function(w, i)
    local r = records[i]
    return w * r.rate + r.bias * r.deep[1]
  end
end)
check_both("a record that is also known by itself", function()
  local records = list(5, function(i) return { rate = i / 8 } end)
  local one = records[2]
  return function(w, i) return w * records[i % 5 + 1].rate + one.rate end
end)
check_both("names that are made at run time", function()
  local rates = {}
  for i = 1, calls do rates["rate" .. i] = i / 8 end
  return function(w, i) return w * rates["rate" .. i] + #("rate" .. i) end
end)
check_both("a name out of a list", function()
  local names = list(calls, function(i) return "n" .. i * 7 end)
  local rates = {}
  for i = 1, calls do rates["n" .. i * 7] = i / 8 end
  return function(w, i) return w * rates[names[i]] end
end)
check_both("a choice by name", function()
  local kinds = list(calls, function(i) return ({ "relu", "tanh", "none" })[i % 3 + 1] end)
  return function(w, i)
    local kind = kinds[i]
    if kind == "relu" then return ops.relu(w) end
    return kind == "tanh" and ops.tanh(w) or w
  end
end)
check_both("a function out of a list", function()
  local functions = { function(x) return x * 2 end, ops.tanh, function(x) return x + 1 end }
  return function(w, i) return functions[i % 3 + 1](w) end
end)
check_both("a table of tables", function()
  local grid = list(10, function(i) return list(10, function(k) return i / k end) end)
  return function(w, i) return w * grid[i % 10 + 1][i // 10 % 10 + 1] end
end)
check_both("sums over a list that grows", function()
  local rates = {}
  return function(w, i)
    rates[i] = i / 8
    local sum = w
    for k = 1, #rates do sum = sum + w * rates[k] end
    return sum
  end
end, 100)
check("a loop over a list, of so many turns", function()
  local rates = list(calls, function(i) return i / 8 end)
  return function(w, i)
    local sum = w
    for k = 1, i do sum = sum + w * rates[k] end
    return sum
  end
end)
check("a loop over a list of tensors", function()
  local items = list(calls, function(i) return ops.full({ 4 }, i / 8) end)
  return function(w, i)
    local sum = w
    for k = 1, i do sum = sum * 0.5 + items[k] end
    return sum
  end
end)
check("layers by the number of the turn", function()
  local layers = list(20, function(i)
    return nn.Dense(4, 4, { weight_init = ops.full({ 4, 4 }, 0.01 * i), bias_init = ops.full({ 4 }, 0.1) })
  end)
  return function(w, i)
    local h = w:reshape(1, 4)
    for k = 1, i % 20 + 1 do h = layers[k](h) end
    return h
  end
end)
check("a layer by the number of the call", function()
  local layers = list(20, function(i)
    return nn.Dense(4, 4, { weight_init = ops.full({ 4, 4 }, 0.01 * i), bias_init = "zeros" })
  end)
  return function(w, i) return layers[i % 20 + 1](w:reshape(1, 4)) end
end)
check("what is written under a number", function()
  local kept = {}
  return function(w, i)
    kept[i] = w * i
    kept[i + 1] = i
    return kept[i] + kept[i + 1], kept[i // 2], #kept
  end
end, 12)
check("a written item that is read by a constant key", function()
  local kept = { 1, 2, 3 }
  return function(w, i)
    local before = kept[2]
    kept[i % 3 + 1] = i
    return w * kept[2] + before, kept[i % 3 + 1]
  end
end)
check("a field that is written between two reads by number", function()
  local kept = { 1, 2, 3 }
  return function(w, i)
    local k = i % 3 + 1
    local before = kept[k]
    kept[2] = i
    return w * before + kept[k]
  end
end)
check("a table that a read finds is written", function()
  local records = list(calls, function(i) return { count = 0, rate = i } end)
  return function(w, i)
    local r = records[i % 4 + 1]
    r.count = r.count + 1
    r.last = w * r.rate
    return r.last * r.count, records[1].count
  end
end, 12)
check("handles out of a list stay what they are", function()
  local items = list(calls, function(i) return ops.full({ 4 }, i / 8) end)
  return function(w, i)
    local found = items[i]
    return w + found, rawequal(found, items[i])
  end
end)
t.test("the handle that comes out is the one that lies in the list", function()
  local items = list(calls, function(i) return ops.full({ 4 }, i / 8) end)
  local f = ms.jit(function(i) return items[i], ops.sum(items[i]) end)
  for i = 1, calls do
    if not rawequal(f(i), items[i]) then error("another handle") end
  end
  if ms.jit_report(f).compiled_calls < calls - 5 then error("not compiled") end
end)
check("rawget and next", function()
  local rates = setmetatable(list(calls, function(i) return i / 8 end), { __index = error })
  return function(w, i) return w * rawget(rates, i), next(rates, i) end
end, 100)
check("a key that is a float", function()
  local rates = { [1] = 1, [2] = 2, [1.5] = 3 }
  return function(w, i) return w * (rates[(i % 3 + 2) / 2] or 7) end
end)
check("a key that is no key", function()
  local rates = { 1, 2 }
  return function(w, i)
    local nan = (i - i) / (i - i)
    return w, rates[nan], rates[i / 0]
  end
end)
t.test("an item that cannot be computed with is told as Lua tells it", function()
  local items = list(50, function(i) return i < 45 and i / 8 or nil end)
  local function plain(w, i) return w * 2, items[i] + 1 end
  local f = ms.jit(plain)
  local w = ms.tensor { 1.0 }
  for i = 1, 44 do f(w, i) end
  local ok, message = pcall(f, w, 47)
  local plain_ok, expected = pcall(plain, w, 47)
  t.equal(ok, plain_ok)
  t.equal(message, expected)
end)

-- What is differentiated stands in the table itself.
check("a list of numbers that are differentiated", function()
  return function(w, i)
    local rates = list(5, function(k) return w * k end)
    return ms.grad(function(s) return ops.sum(s[i % 5 + 1] * s[i % 3 + 1]) end)(rates)
  end
end, 100)
check("an item of a table that a derivative has written", function()
  local kept = { 1.0, 2.0, 3.0 }
  return function(w, i)
    return ms.grad(function(v)
      kept[i % 3 + 1] = ops.sum(v * i)
      return kept[2] * kept[i % 2 + 1]
    end)(w)
  end
end, 100)
check("a gradient by the weights of a layer by number", function()
  local layers = list(4, function(i) return nn.Dense(4, 1, { weight_init = ops.full({ 1, 4 }, 0.1 * i), bias_init = "zeros" }) end)
  local weights = list(4, function(i) return layers[i].weight end)
  local step = ms.value_and_grad(function(w, i) return ops.sum(layers[i % 4 + 1](w:reshape(1, 4)) ^ 2) end, nil, weights)
  return function(w, i)
    local loss, grads = step(w, i)
    return loss, ops.sum(grads[1]), ops.sum(grads[2]), ops.sum(grads[3]), ops.sum(grads[4])
  end
end, 12)

-- Tensors.
local grid = ops.arange(4 * calls):float():reshape(calls, 4) / 100
check_both("a row of a tensor", function()
  return function(w, i) return w * grid[i - 1] end
end)
check_both("a row from the end", function()
  return function(w, i) return w * grid[-i] + grid[i - 50] end
end)
check_both("an element of a tensor", function()
  return function(w, i) return w * grid[{ i - 1, 2 }] + grid[{ i - 1, i % 4 }] + grid[{ 3, -(i % 4) - 1 }] end
end)
check_both("an element as a number", function()
  return function(w, i) return w * grid[i - 1][i % 4]:item() end
end)
check_both("a row that is differentiated", function()
  return function(w, i) return (w * grid)[i - 1] * w[i % 4] end
end)
check("a second derivative by way of a row", function()
  return function(w, i)
    local function first(v) return ops.sum(ms.grad(function(u) return ops.sum(u ^ 3 * u[i % 4]) end)(v)) end
    return ms.grad(first)(w)
  end
end, 10)
check("a loop over the rows", function()
  return function(w, i)
    local h = w
    for k = 0, i - 1 do h = ops.tanh(h * 0.5 + grid[k]) end
    return h
  end
end)
t.test("a loop over the rows of tensors of all lengths", function()
  local function plain(x)
    local h = x[0] * 0
    for k = 0, #x - 1 do h = ops.tanh(h * 0.5 + x[k]) end
    return h
  end
  local f = ms.jit(plain)
  for i = 1, calls do
    local x = grid[ms.slice(0, i)]
    t.near(f(x), plain(x), 1e-5)
  end
  local report = ms.jit_report(f)
  if report.compiled_calls < calls - 6 then error("not compiled: " .. tostring(report)) end
end)
check("a row of integers and booleans", function()
  local whole, truth = ops.cast(grid * 100, ms.int32), ops.greater(grid, 2)
  return function(_, i) return whole[i - 1] + 1, truth[i - 1] end
end)
check("a row that is written", function()
  return function(w, i)
    local y = w * 2
    y[i % 4] = i
    y[-1] = w[i % 4]
    return y, y[i % 4]
  end
end, 8)
t.test("an index beyond the tensor is told as Lua tells it", function()
  local function plain(x, i) return x[i] * 2 end
  local f = ms.jit(plain)
  for i = 0, 30 do f(grid, i) end
  for _, i in ipairs { 100, -101, 1 << 40, math.mininteger } do
    local ok, message = pcall(f, grid, i)
    local plain_ok, expected = pcall(plain, grid, i)
    t.equal(ok, plain_ok)
    t.equal(message, expected)
    t.near(f(grid, 7), plain(grid, 7))
  end
  local ok, message = pcall(f, ops.sum(grid), 1)
  local plain_ok, expected = pcall(plain, ops.sum(grid), 1)
  t.equal({ ok, message }, { plain_ok, expected })
end)

-- A table outside that is written under keys which the call itself makes, and read again. Some calls go on otherwise behind
-- their first write (`turn`): they are done again up to there, and the table has by then what comes later.
local object = { __index = function(_, k) return k end, __name = "object" }
local key_makers = {
  text = function(i) return "key " .. i end,
  formatted = function(i) return ("%03d/%s"):format(i % 4, i) end,
  integer = function(i) return i * 2 + 1 end,
  float = function(i) return i / 2 + 0.25 end,
  truth = function(i) return i % 2 == 0 end,
  table = function() return {} end,
  ["a table with fields"] = function(i) return { i, name = "n" .. i } end,
  ["an object"] = function(i) return setmetatable({ i }, object) end,
}
local key_programs = {
  ["read, written and read"] = function(out, key, w, i)
    local k = key(i)
    local before = out[k]
    out[k] = (before or 0) + 1
    return w * out[k], before, out[k]
  end,
  ["written twice and taken out"] = function(out, key, w, i)
    local k = key(i)
    out[k] = i
    out[k] = out[k] + 1
    local second = out[k]
    out[k] = nil
    return w * second, out[k]
  end,
  ["several keys"] = function(out, key, w, i)
    local sum, keys = 0, {}
    for j = 1, 3 do
      local k = key(i + j)
      keys[j] = k
      if not out[k] then out[k] = j end
      sum = sum + out[k]
    end
    out[keys[2]] = nil
    return w * sum, out[keys[1]], out[keys[2]], out[keys[3]]
  end,
  ["rawget and rawset"] = function(out, key, w, i)
    local k = key(i)
    local before = rawget(out, k)
    rawset(out, k, { w, before and 1 or 2 })
    return rawget(out, k)[1] * rawget(out, k)[2]
  end,
  ["a key that another key leads to"] = function(out, key, w, i)
    local k, other = key(i), key(i + 1)
    out[k] = other
    local before = out[out[k]]
    out[out[k]] = w * 2
    return out[other] + w, before ~= nil, out[k] == other
  end,
}
local outside = {
  plain = function() return {} end,
  weak = function() return setmetatable({}, { __mode = "k" }) end,
  ["a metatable with fields"] = function() return setmetatable({}, { __index = { ["key 3"] = 5 } }) end,
}
for key_name, key in pairs(key_makers) do
  for program_name, program in pairs(key_programs) do
    t.test(("%s under a key that is made: %s"):format(program_name, key_name), function()
      for table_name, new in pairs(outside) do
        local function make()
          local out, counts = new(), { calls = 0, turn = false }
          return function(w, i)
            counts.calls = counts.calls + 1
            local results = table.pack(program(out, key, w, i))
            if counts.turn then
              counts.seen = (counts.seen or 0) + 1
              return "turn", counts.calls, counts.seen, table.unpack(results, 1, results.n)
            end
            return counts.calls, table.unpack(results, 1, results.n)
          end, counts, out
        end
        local plain, plain_counts, plain_out = make()
        local lua, counts, out = make()
        local f = ms.jit(lua)
        for i = 1, 16 do
          local w = ms.tensor { 0.5, 0.25 * i }
          plain_counts.turn, counts.turn = i > 5 and i % 4 == 2, i > 5 and i % 4 == 2
          local wanted, found = table.pack(plain(w, i % 2)), table.pack(f(w, i % 2))
          t.equal({ table_name, i, found }, { table_name, i, wanted })
        end
        for k, v in pairs(plain_out) do
          if type(k) ~= "table" and type(v) ~= "table" then t.equal({ k, out[k] }, { k, v }) end
        end
        local size, plain_size = 0, 0
        if table_name ~= "weak" then
          for _ in pairs(out) do size = size + 1 end
          for _ in pairs(plain_out) do plain_size = plain_size + 1 end
        end
        t.equal(size, plain_size)
        local report = ms.jit_report(f)
        if report.compiled_calls < 3 or report.resumed_calls == 0 then
          error(table_name .. ": not compiled, or never done again: " .. tostring(report), 0)
        end
      end
    end)
  end
end

t.finish()
