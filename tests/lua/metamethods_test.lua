-- A program can call the metamethods of whatever it can get hold of, with anything and as often as it likes: each looks at what it
-- gets. All metatables that can be reached from the library, from values of all kinds and from Lua's registry are walked.
local ms = require "lunaria"
local t = require "tests.lua.harness"
package.path = "tests/attack/?.lua;" .. package.path
local given = require "arguments".given

local function values()
  local dataset = given.rows()
  return {
    ms.tensor { 1.0, 2.0 }, ms.Parameter(ms.ones { 2 }, "w"), ms.float32, ms.tensor({ 1 }).shape, ms.slice(0, 1), ms.newaxis,
    ms.json.array { 1 }, ms.json.null, ms.tensor({ 1.0 }):to_dlpack(), ms.jit(function(x) return x end), dataset, dataset._node,
    dataset:map(function(x) return x end), dataset:create_tuple_iterator(), ms.dataset.vision.HWC2CHW(), ms.dataset.SequentialSampler(),
    ms.dataset.DatasetCache(), ms.dataset.text.Vocab.from_list { "a" }, ms.dataset.transforms.Compose { ms.dataset.transforms.Fill(1) },
    ms.nn.Dense(2, 2), ms.train.Accuracy(), given.model(), given.optimizer(), ms.plot.line { 1, 2 }, ms.profile(function() end),
    ms.probability.distribution.Normal(0.0, 1.0), ms.io.read_later {}, ms.progress { 1 }, ms.grad(function(x) return x * x end),
    io.tmpfile(), "text", 1, true, print, coroutine.create(print), given.network(), ms.nn.CellList {},
  }
end

local held = values()
local tables, seen = {}, {}
local function reach(value)
  local metatable = debug.getmetatable(value)
  if type(metatable) == "table" and not seen[metatable] then
    seen[metatable] = true
    tables[#tables + 1] = metatable
    -- What a program gets by getmetatable may be another table.
    if type(metatable.__metatable) == "table" then
      tables[#tables + 1] = metatable.__metatable
    end
  end
end
local walked = {}
local function walk(value, depth)
  reach(value)
  if type(value) == "userdata" then
    local inner = debug.getuservalue(value, 1)
    if inner ~= nil and depth > 0 then walk(inner, depth - 1) end
  end
  if type(value) ~= "table" or walked[value] or depth == 0 then return end
  walked[value] = true
  for key, inner in next, value do
    walk(key, depth - 1)
    walk(inner, depth - 1)
  end
end
walk(held, 6)
walk(package.loaded, 5)
for name, value in pairs(debug.getregistry()) do
  if type(name) == "string" and type(value) == "table" and (value.__gc or value.__tostring) and not seen[value] then
    seen[value] = true
    tables[#tables + 1] = value
  end
end

local strange = { 0, -1, 1 << 62, 0 / 0, "x", "", true, {}, print, io.stdout, coroutine.create(print), table.unpack(held) }

t.test("metamethods look at what they get", function()
  local calls, finalizers = 0, 0
  local function try(f, ...)
    calls = calls + 1
    pcall(f, ...)
  end
  for _, metatable in ipairs(tables) do
    for event, f in pairs(metatable) do
      if type(event) == "string" and event:sub(1, 2) == "__" and type(f) == "function" and event ~= "__gc" and event ~= "__close" then
        try(f)
        try(f, nil, nil)
        for i, value in ipairs(strange) do
          -- A call of a function with functions and coroutines is a program of its own.
          if event ~= "__call" or type(value) ~= "function" then
            try(f, value)
            try(f, nil, value)
            try(f, value, strange[i % #strange + 1])
            try(f, value, "x", strange[i % #strange + 1])
          end
        end
      end
    end
  end
  -- Last: they end what is still held.
  for _, metatable in ipairs(tables) do
    for _, event in ipairs { "__gc", "__close" } do
      local f = rawget(metatable, event)
      if type(f) == "function" and metatable ~= debug.getmetatable(io.stdout) then
        finalizers = finalizers + 1
        try(f)
        try(f, nil)
        for _, value in ipairs { 0, "x", true, {}, print, coroutine.create(print), io.tmpfile() } do try(f, value, value) end
        for _, value in ipairs(values()) do
          for _ = 1, 2 do try(f, value, value) end
          pcall(tostring, value)
          -- A table may take the place of userdata.
          if type(value) == "userdata" then try(f, setmetatable({}, metatable)) end
        end
      end
    end
  end
  collectgarbage()
  collectgarbage()
  assert(#tables > 60 and calls > 10000 and finalizers >= 13, ("%d tables, %d calls, %d finalizers"):format(#tables, calls, finalizers))
  assert(ms.ones({ 2 }):sum():item() == 2.0)
end)

t.test("a metatable of userdata on a table makes no userdata of it", function()
  for _, value in ipairs(values()) do
    local metatable = debug.getmetatable(value)
    if type(value) == "userdata" and type(metatable) == "table" and io.type(value) == nil then
      local copy = {}
      for key, inner in pairs(metatable) do
        if key ~= "__metatable" and key ~= "__gc" then copy[key] = inner end
      end
      for _, other in ipairs { setmetatable({}, copy), debug.setmetatable({}, metatable) } do
        for _, use in ipairs {
          function(o) return tostring(o) end, function(o) return o(1) end, function(o) return o.x end, function(o) o.x = 1 end,
          function(o) return o + 1 end, function(o) return #o end, function(o) return o == value end, function(o) return o .. "x" end,
          function(o) return ms.ops.add(o, 1) end, function(o) return ms.tensor(o) end, function(o) return ms.from_dlpack(o) end,
        } do pcall(use, other) end
      end
    end
  end
  assert(ms.ones({ 2 }):sum():item() == 2.0)
end)

t.finish()
