-- Weak tables tell whether an object is still there. A tensor, a closure or a coroutine that compiled code or a derivative holds is there,
-- as it is while a variable of Lua holds it; and what nothing holds any more goes.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops

local function collect()
  collectgarbage()
  collectgarbage()
end
local function weak(mode) return setmetatable({}, { __mode = mode }) end

local names = weak "k"
local box = {}
-- Not compiled where this function is: that function of C calls it.
local function aside(f, ...) return select(2, coroutine.resume(coroutine.create(f), ...)) end
local function put(x)
  local w = x * 3
  names[w] = "put"
  return w
end

-- Each gives what a weak table says of a tensor, closure or coroutine, after it has used the object.
local uses = {
  ["a key"] = function(x)
    local w = x * 2
    names[w] = "w"
    collect()
    return names[w]
  end,
  ["a parameter"] = function(x)
    local w = ms.Parameter(ops.full({ 2 }, 3.0))
    names[w] = "w"
    collect()
    return names[w], x
  end,
  ["rawset and rawget"] = function(x)
    local w = x * 2
    rawset(names, w, "w")
    collect()
    return rawget(names, w)
  end,
  ["a value"] = function(x)
    local list = weak "v"
    local w = x * 2
    list[1] = w
    collect()
    return rawequal(list[1], w)
  end,
  ["a table that becomes weak"] = function(x)
    local w, list = x * 2, {}
    list[w] = "w"
    setmetatable(list, { __mode = "k" })
    collect()
    return list[w]
  end,
  ["a field that is taken out"] = function(x)
    box.w = aside(put, x)
    local w = box.w
    box.w = nil
    collect()
    return names[w], x
  end,
  ["what Lua made"] = function(x)
    local w = aside(put, x)
    collect()
    return names[w]
  end,
  ["keys of a loop"] = function(x)
    local sum = 0
    for i = 1, 3 do
      local w = x * i
      names[w] = i
      collect()
      sum = sum + (names[w] or 100)
    end
    return sum
  end,
  ["a closure"] = function(x)
    local f = function() return x end
    names[f] = "f"
    collect()
    return names[f], rawequal(f(), x)
  end,
  ["a closure that calls itself"] = function(x)
    local f
    f = function(n) return n == 0 and x or f(n - 1) end
    names[f] = "f"
    collect()
    return names[f], rawequal(f(2), x)
  end,
  ["a coroutine"] = function(x)
    local thread = coroutine.create(function() return x end)
    names[thread] = "thread"
    collect()
    return names[thread], rawequal(select(2, coroutine.resume(thread)), x)
  end,
  ["a closure that is given away"] = function(x)
    local w = x * 2
    names[w] = "w"
    return function() return names[w] end
  end,
  ["a branch that the record does not have"] = function(x, call)
    local w = box.w
    box.w = nil
    if call > 3 then
      collect()
      return names[w], x
    end
    return names[w], w * x
  end,
}

local forms = {
  ["ms.jit"] = function(f) return ms.jit(f) end,
  ["ms.grad"] = function(f)
    return function(x, call)
      local result
      ms.grad(function(z)
        result = f(z, call)
        return ops.sum(z)
      end)(x)
      return result
    end
  end,
  ["a coroutine"] = function(f)
    return function(x, call) return coroutine.wrap(ms.jit(f))(x, call) end
  end,
}

local function outcomes(f)
  local list = {}
  for call = 1, 6 do
    local x = ops.full({ 2 }, call + 0.5)
    box.w = x + 1
    names[box.w] = "w" .. call
    local result = f(x, call)
    if type(result) == "function" then
      collect()
      result = result()
    end
    list[call] = tostring(result)
  end
  return table.concat(list, " ")
end

for name, use in pairs(uses) do
  t.test(name, function()
    local expected = outcomes(use)
    t.equal(expected:find "nil", nil)
    for form, of in pairs(forms) do
      local found = outcomes(of(use))
      if found ~= expected then error(form .. ": " .. found .. " instead of " .. expected) end
    end
  end)
end

t.test("what nothing holds any more is gone", function()
  local seen = weak "k"
  local f = ms.jit(function(x)
    local w, thread = x * 2, coroutine.create(function() return x end)
    local again
    again = function(n) return n == 0 and w or again(n - 1) end
    seen[w], seen[thread], seen[again] = 1, 2, 3
    return ops.sum(again(2))
  end)
  for call = 1, 5 do
    f(ops.full({ 2 }, call + 0.5))
    ms.grad(f)(ops.full({ 2 }, call + 0.5))
  end
  collect()
  t.equal(next(seen), nil)
end)

t.test("a derivative gives the memory of its tensors back while it runs", function()
  local function grow(steps)
    return ms.grad(function(x)
      for i = 1, steps do
        local w = ms.stop_gradient(x) * i
        names[w] = i
      end
      return ops.sum(x)
    end)
  end
  local x = ops.ones { 1 << 18 }
  grow(4)(x)
  collect()
  local before = ms.memory_stats().live_bytes
  ms.reset_peak_memory_stats()
  grow(400)(x)
  if ms.memory_stats().peak_bytes - before > 150e6 then error("peak: " .. ms.memory_stats().peak_bytes - before) end
end)

t.finish()
