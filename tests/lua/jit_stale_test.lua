-- Each kind of state that a compiled function may depend on is changed between calls: it follows, as without ms.jit.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local nn, ops = ms.nn, ms.ops

local function vector(...) return ms.tensor({ ... }, ms.float32) end

-- name = a function that gives f, what changes the state for the nth time, and the arguments (nil: one tensor)
local kinds = {
  ["upvalue"] = function()
    local k = 1
    return function(x) return x * k end, function(n) k = n end
  end,
  ["upvalue of another kind"] = function()
    local k = 1
    return function(x) return x * k end, function(n) k = n % 2 == 0 and n + 0.5 or vector(n, n) end
  end,
  ["upvalue that it writes"] = function()
    local k = 1
    return function(x)
      k = k + 1
      return x * k
    end, function(n) if n % 2 == 0 then k = n end end
  end,
  ["variable of a function that a derivative made"] = function()
    local made
    ms.grad(function(x)
      local n = 0
      made = function(y)
        n = n + 1
        return y * n
      end
      return x
    end)(1.0)
    return made, function() end
  end,
  ["variable of a callee that a derivative made"] = function()
    local made
    ms.grad(function(x)
      local n = 0
      local function count() n = n + 1 return n end
      made = { count = function() return count() end }
      return x
    end)(1.0)
    return function(y) return y * made.count() end, function() end
  end,
  ["upvalue of a callee"] = function()
    local k = 1
    local function inner(x) return x + k end
    return function(x) return inner(x) * 2 end, function(n) k = n end
  end,
  ["global"] = function()
    _G.stale_test_value = 1
    return function(x) return x * _G.stale_test_value end, function(n) _G.stale_test_value = n end
  end,
  ["field of a table"] = function()
    local settings = { inner = { scale = 1 } }
    return function(x) return x * settings.inner.scale end, function(n)
      if n % 2 == 0 then settings.inner.scale = n else settings.inner = { scale = -n } end
    end
  end,
  ["field that appears and goes"] = function()
    local q = {}
    return function(x) return q.extra and x * q.extra or x end, function(n) q.extra = n % 2 == 0 and n or nil end
  end,
  ["length and order of a table"] = function()
    local q = { 1 }
    return function(x)
      local s = x * #q
      for k, v in pairs(q) do s = s * v + k end
      return s
    end, function(n) if n % 3 == 0 then q[#q] = nil else q[#q + 1] = n end end
  end,
  ["one field of a table after the other"] = function()
    local q = { text = ("a"):rep(60), zero = 0.0, count = 1, flag = false, list = { 1, 2 } }
    local changes = {
      function() q.text = ("a"):rep(59) .. "b" end, function() q.zero = -0.0 end, function() q.count = 1.0 end,
      function() q.flag = nil end, function() q.list = { 1, 2 } end, function() q.list[2] = 3 end,
      function() q.text, q.zero, q.flag = "short", 0.0, true end
    }
    local lists = { [q.list] = 100 }
    return function(x)
      local s = x * (q.text == ("a"):rep(60) and 2 or #q.text)
      s = (s + (1 / q.zero > 0 and 3 or 4)) * (math.type(q.count) == "float" and 5 or 6)
      s = s + (q.flag == nil and 7 or q.flag and 8 or 9) + (lists[q.list] or 10)
      for k, v in pairs(q.list) do s = s + k * v end
      return s + #q.list
    end, function(n) changes[n]() end
  end,
  ["key from which a table is gone through"] = function()
    local asks, q = true, { a = 1 }
    return function(x)
      local y = x + 1
      if asks then return y * (next(q, "a") == nil and 2 or 3) end
      return y * 5
    end, function(n)
      if n < 3 then return end
      asks, q.a = false, nil
      for i = 1, 8 * n do q["b" .. i] = i end
    end
  end,
  ["attribute of a Cell"] = function()
    local net = nn.Dense(2, 2)
    net.scale = 1
    return function(x) return net(x:reshape { 1, 2 }) * net.scale end, function(n) net.scale = n end
  end,
  ["parameter written in place"] = function()
    local p = ms.Parameter(vector(1, 2), { name = "p" })
    return function(x) return x * p end, function(n) ops.assign(p, vector(n, -n)) end
  end,
  ["parameter replaced"] = function()
    local net = { p = ms.Parameter(vector(1, 2), { name = "p" }) }
    return function(x) return x * net.p end, function(n) net.p = ms.Parameter(vector(n, n), { name = "q" }) end
  end,
  ["weights after a step"] = function()
    ms.set_seed(1)
    local net = nn.Dense(2, 1)
    return function(x) return net(x:reshape { 1, 2 }) end, function(n) ops.assign_add(net.weight, ops.ones { 1, 2 } * n) end
  end,
  ["tensor written in place"] = function()
    local buffer = vector(1, 2)
    return function(x) return x + buffer end, function(n) buffer[n % 2] = n end
  end,
  ["random seed"] = function()
    return function(x) return x + ops.randn { 2 } end, function(n) ms.set_seed(n % 3) end
  end,
  ["random seed of Lua"] = function()
    return function(x) return x * math.random(1, 1000) end, function(n) math.randomseed(n % 3) end
  end,
  ["train flag"] = function()
    local layer = nn.Dropout { p = 0.5 }
    return function(x)
      ms.set_seed(5)
      return layer(x)
    end, function(n) layer:set_train(n % 2 == 0) end
  end,
  ["train flag of statistics"] = function()
    local layer = nn.BatchNorm1d(2)
    return function(x) return layer(ops.stack({ x, x * 2 }, 0)) end, function(n) layer:set_train(n % 2 == 0) end
  end,
  ["mode"] = function()
    return function(x) return ms.get_context "mode" == ms.GRAPH_MODE and x * 2 or x end, function(n)
      ms.set_context { mode = n % 2 == 0 and ms.GRAPH_MODE or ms.PYNATIVE_MODE }
    end
  end,
  ["metatable"] = function()
    local object = setmetatable({}, { __index = { k = 1 } })
    return function(x) return x * object.k end, function(n)
      setmetatable(object, { __index = n % 2 == 0 and { k = n } or function() return n end })
    end
  end,
  ["metamethod"] = function()
    local class = { __add = function(a, b) return a.v + b end }
    local object = setmetatable({ v = 2 }, class)
    return function(x) return object + x end, function(n) class.__add = function(a, b) return a.v * b * n end end
  end,
  ["text as a key"] = function()
    local name = "relu"
    return function(x) return ops[name](x - 2) end, function(n) name = n % 2 == 0 and "tanh" or "relu" end
  end,
  ["function replaced"] = function()
    local f = function(x) return x + 1 end
    return function(x) return f(x) end, function(n) f = n % 2 == 0 and ops.tanh or function(x) return x * n end end
  end,
  ["function of a library replaced"] = function()
    local before = math.floor
    return function(x) return x * math.floor(2.5) end, function(n)
      rawset(math, "floor", n % 2 == 0 and function(v) return v * 10 end or before)
    end
  end,
  ["method of a class replaced"] = function()
    local Class = {}
    Class.__index = Class
    function Class.apply(_, x) return x + 1 end
    local object = setmetatable({}, Class)
    return function(x) return object:apply(x) end, function(n) function Class.apply(_, x) return x * n end end
  end,
  ["environment variable of a module"] = function()
    package.loaded.stale_test_module = { k = 1 }
    return function(x) return x * package.loaded.stale_test_module.k end, function(n)
      package.loaded.stale_test_module = { k = n }
    end
  end,
}

local names = {}
for name in pairs(kinds) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  t.test(name, function()
    local function results(wrap)
      ms.set_seed(9)
      math.randomseed(9)
      local f, change = kinds[name]()
      local g, list = wrap(f), {}
      for n = 1, 7 do
        for k = 1, 3 do list[#list + 1] = g(vector(k, n)) end
        change(n)
      end
      ms.set_context { mode = ms.PYNATIVE_MODE }
      return list
    end
    local floor = math.floor
    local expected = results(function(f) return f end)
    rawset(math, "floor", floor)
    local found = results(ms.jit)
    rawset(math, "floor", floor)
    for i = 1, #expected do t.near(found[i], expected[i], 1e-5) end
  end)
end
_G.stale_test_value, package.loaded.stale_test_module = nil, nil

-- Metatables of types: what a program reaches through each event, for values of each basic type.
local uses = {
  __index = function(v) return v.stale end,
  __newindex = function(v)
    v.stale = 1
    return _G.stale_test_value
  end,
  __call = function(v) return v(1) end,
  __idiv = function(v) return v // 2 end,
  __add = function(v) return v + true end,
  __sub = function(v) return true - v end,
  __unm = function(v) return -v end,
  __band = function(v) return v & 5 end,
  __bnot = function(v) return ~v end,
  __lt = function(v) return v < true and 3 or 4 end,
  __le = function(v) return v <= v and 3 or 4 end,
  __eq = function(v) return v == print and 3 or 4 end,
  __len = function(v) return #v end,
  __concat = function(v) return tonumber(v .. "1") end,
  __tostring = function(v) return #tostring(v) end,
  __metatable = function(v)
    local found = getmetatable(v)
    return type(found) == "number" and found or 7
  end,
}
local values = { string = "7", number = 7, boolean = true, ["function"] = function() return 7 end, thread = coroutine.create(print) }
-- Without a metamethod these are no errors, and so are compiled at first.
local compiled = {
  string = { "__idiv", "__unm", "__eq", "__le", "__len", "__concat", "__tostring", "__metatable", "__index" },
  number = { "__idiv", "__unm", "__band", "__eq", "__le", "__tostring", "__metatable" },
  boolean = { "__eq", "__tostring", "__metatable" },
  ["function"] = { "__eq", "__call", "__metatable" },
  thread = { "__eq", "__metatable" },
}

local function meaning(event, n)
  if event == "__index" then return n % 2 == 0 and { stale = n } or function() return n end end
  if event == "__newindex" then return function() _G.stale_test_value = n end end
  if event == "__lt" or event == "__le" or event == "__eq" then return function() return n % 2 == 0 end end
  if event == "__tostring" then return function() return ("x"):rep(n) end end
  if event == "__concat" then return function() return tostring(n) end end
  if event == "__metatable" then return n end
  return function() return n end
end

for kind, v in pairs(values) do
  for event, use in pairs(uses) do
    t.test(("%s of %ss"):format(event, kind), function()
      local original = debug.getmetatable(v)
      local fields = {}
      for key, field in pairs(original or {}) do fields[key] = field end
      local function restore()
        for key in pairs(original or {}) do original[key] = fields[key] end
        debug.setmetatable(v, original)
        _G.stale_test_value = 0
      end
      local function results(wrap)
        local direct = wrap(function(x) return x * (use(v) or 2) end)
        local caught = wrap(function(x)
          local fine, got = pcall(use, v)
          return x * (fine and type(got) == "number" and got or 11)
        end)
        local list = {}
        local function call()
          for k = 1, 3 do
            local fine, got = pcall(direct, vector(k))
            list[#list + 1] = fine and got or vector(-1)
            list[#list + 1] = caught(vector(k))
          end
        end
        call()
        if wrap == ms.jit then
          for _, name in ipairs(compiled[kind]) do
            if name == event then assert(ms.jit_report(direct).compiled_calls > 0, ms.jit_report(direct).eager) end
          end
        end
        for n = 3, 6 do
          -- A field of the same metatable, and another metatable.
          local another = original and n % 4 < 2 and original or {}
          if another ~= original then
            for key, field in pairs(fields) do another[key] = field end
          end
          another[event] = meaning(event, n)
          debug.setmetatable(v, another)
          call()
        end
        restore()
        call()
        return list
      end
      local expected = results(function(f) return f end)
      local fine, found = pcall(results, ms.jit)
      restore()
      assert(fine, found)
      for i = 1, #expected do t.near(found[i], expected[i], 1e-5) end
    end)
  end
end
_G.stale_test_value = nil

t.finish()
