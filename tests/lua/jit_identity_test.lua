-- Identities of objects that records refer to do not pass on to other objects: such objects go away, others take their
-- place in memory, and functions outlive the record in which they were made. Answers are those without ms.jit.
-- Eager mode only: what it compares is compiled here as well.
--   lunaria tests/lua/jit_identity_test.lua [SEED [SECONDS]]     0.5 s, and 4 s for the random programs at the end
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops

local x = ms.tensor({ 1.0, 2.0, 3.0 }, ms.float64)

local function collect()
  collectgarbage()
  collectgarbage()
end

-- A function that the machine made: the program has an object for it only as long as it uses it.
local function function_of(make)
  local made
  ms.grad(function(y)
    made = make()
    return y
  end)(1.0)
  return made
end

t.test("a function that a derivative made is replaced by another", function()
  local holder, places, again = {}, {}, false
  local plain = function(y) return holder.f(y) end
  local f = ms.jit(plain)
  for k = 1, 40 do
    holder.f = nil
    collect()
    holder.f = function_of(function() return function(y) return y * k end end)
    t.equal(f(x), x * k)
    t.equal(f(x), plain(x))
    again = again or places[tostring(holder.f)]
    places[tostring(holder.f)] = true
  end
  -- Those in the record stay: none of the others has its address.
  assert(not again, "a function has the address of one that the record has")
  t.equal(ms.jit_report(f).calls, 80)
end)

t.test("what ms.jit gives within a compiled function is another function than the one that it was given", function()
  local outer, is_jit = function(y) return y * 3 end, require "lunaria.jit".is_jit
  local relu = ms.nn.ReLU()
  local programs = {
    function(y) local f = function(z) return z * 2 end local g = ms.jit(f) return g(y), g == f, rawequal(g, f), g ~= g end,
    function(y) local g = ms.jit(outer) return g(y), g == outer, g == ms.jit(outer), g == g end,
    function(y) local g = ms.jit(ms.jit(outer)) return g(y), is_jit(g), is_jit(outer), g == outer end,
    function(y) local g = ms.jit(ops.sin) return g(y), g == ops.sin end,
    function(y) local g = ms.jit(relu) return g(y), g == relu end,
    function(y)
      local f = function(z) return z * 2 end
      local seen = { [f] = 1 }
      local g = ms.jit(f)
      return f(y) + g(y), seen[g], g ~= f and seen[f]
    end,
    function(y)
      local memo = {}
      local function compiled(f)
        memo[f] = memo[f] or ms.jit(f)
        return memo[f]
      end
      local f = function(z) return z * 2 end
      return compiled(f)(y), compiled(f) == compiled(f), compiled(compiled(f)) == compiled(f)
    end,
  }
  for i, plain in ipairs(programs) do
    local expected = table.pack(plain(x))
    local f = ms.jit(plain)
    for _ = 1, 3 do t.equal(table.pack(f(x)), expected) end
    assert(ms.jit_report(f).compiled_calls > 0, "program " .. i .. " was never compiled")
    local gradient = ms.grad(function(y) return ops.sum((plain(y))) end)
    local compiled = ms.jit(gradient)
    for _ = 1, 3 do t.equal(compiled(x), gradient(x)) end
  end
end)

t.test("a coroutine that a derivative made is replaced by another", function()
  local holder = {}
  local f = ms.jit(function(y)
    local _, k = coroutine.resume(holder.co)
    return y * k
  end)
  for k = 1, 40 do
    holder.co = nil
    collect()
    holder.co = function_of(function()
      return coroutine.create(function()
        for i = k, 100 do coroutine.yield(i) end
      end)
    end)
    t.equal(f(x), x * k)
    t.equal(f(x), x * (k + 1))
  end
end)

-- What a record has of the program beyond the first effect is handed to the call when that goes on to something new.
t.test("a function that outlives the record of the call that made it", function()
  local switch = {}
  local function make()
    local settings, log = { scale = 3.0, add = function(y) return y + 1 end }, {}
    return function(y)
      local here = settings
      local add = here.add
      log.last = y * here.scale
      if not switch.deep then return log.last end
      return function(z) return add(z) * here.scale end
    end
  end
  local kept = {}
  for k = 1, 8 do
    switch.deep = false
    local f = ms.jit(make())
    for _ = 1, 3 do t.equal(f(x), x * 3.0) end
    switch.deep = true
    kept[k] = f(x)
  end
  collect()
  collect()
  for _, g in ipairs(kept) do t.equal(g(x), (x + 1) * 3.0) end
end)

t.test("functions that one turn of a loop passes to the next", function()
  local function turns(y, n)
    local f = function(z) return z end
    for i = 1, n do
      local k = i % 3
      local before = y
      f = function(z) return z + before * k end
      y = f(y)
    end
    return f(y)
  end
  local f = ms.jit(turns)
  for n = 0, 9 do t.equal(f(x, n), turns(x, n)) end
end)

t.test("a table that a stopped recording asked is not what a later one finds in its place", function()
  local last
  local function plain(part, deep)
    local sum = part.w * part.k
    last = sum
    if deep then return function() return part end end
    return sum
  end
  local f = ms.jit(plain)
  for k = 1, 60 do
    local part = { w = x, k = k % 5 }
    t.equal(f(part, false), x * (k % 5))
    t.equal(last, x * (k % 5))
    if k % 4 == 0 then t.equal(f({ w = x, k = k }, true)().k, k) end
    if k % 7 == 0 then collect() end
  end
end)

-- Programs in which parties come and go. Each has a closure of one text, compiled by itself or by graph mode, over its own
-- tensors, numbers, tables and functions; garbage is collected at points that no program chooses.
local Point = {}
Point.__index = Point
function Point.new(w, k) return setmetatable({ w = w, k = k }, Point) end
function Point:moved(d) return Point.new(self.w - d * self.k, self.k) end
function Point:value() return ops.sum(self.w * self.w) * 0.5 + self.k end

local rules = {
  plain = { step = function(carry, gradient, settings)
    local loss, g = gradient(carry.w)
    return { w = carry.w - g * settings.lr, loss = loss }
  end },
  momentum = { step = function(carry, gradient, settings, turn)
    local loss, g = gradient(carry.w)
    local v = (carry.v or g * 0) * 0.9 + g
    return { w = carry.w - v * settings.lr, v = v, loss = loss + turn }
  end },
  points = { step = function(carry, gradient, settings)
    local _, g = gradient(carry.w)
    local p = Point.new(carry.w, settings.lr):moved(g)
    return { w = p.w, loss = p:value(), point = p }
  end },
  lists = { step = function(carry, gradient, settings, turn)
    local parts = {}
    for i = 1, turn % 3 + 1 do
      local loss, g = gradient(carry.w + i)
      parts[#parts + 1] = { loss, g }
    end
    local w, sum = carry.w, 0
    for _, part in ipairs(parts) do w, sum = w - part[2] * settings.lr, sum + part[1] end
    return { w = w, loss = sum, parts = #parts }
  end },
}
local names = { "plain", "momentum", "points", "lists" }

local function quadratic(curvature, centre, style)
  if style == 1 then return ms.value_and_grad(function(w) return ops.sum(curvature * (w - centre) ^ 2) * 0.5 end) end
  local function of(w)
    local d = w - centre
    return ops.sum(curvature * d * d) * 0.5, curvature * d
  end
  return style == 2 and function_of(function() return function(w) return of(w) end end) or of
end

-- Random numbers of a program of its own, the same for the compiled program and the plain one.
local function stream(state)
  return function(n)
    state = (state * 6364136223846793005 + 1442695040888963407)
    return (state >> 33) % n + 1
  end
end

-- `shared`: one compiled function for all parties, which asks each for what it does.
local function train(party, settings, turns, shared)
  if party.shares then
    party.step = function(carry, s, turn) return shared(party, carry, s, turn) end
  else
    party.step = party.step or party.compile(function(carry, s, turn) return party.rule.step(carry, party.gradient, s, turn) end)
  end
  local carry = party.carry or { w = party.start }
  for turn = 1, turns do carry = party.step(carry, settings, turn) end
  party.carry = carry
  return carry
end

-- What the program prints, so to speak; `chance` is called wherever garbage may be collected.
local function program(seed, compile, chance)
  local draw, parties, told = stream(seed), {}, {}
  local shared = compile(function(party, carry, s, turn) return party.rule.step(carry, party.gradient, s, turn) end)
  local size = draw(5) + 1
  local function vector(n) return ops.sin(ops.arange(size):astype(ms.float64) * (n + 0.5)) end
  for turn = 1, 30 do
    for i = 1, draw(4) do
      local style = draw(3)
      parties[draw(4)] = { rule = rules[names[draw(#names)]], gradient = quadratic(vector(turn) * 0.5 + 1, vector(i), style),
        start = vector(turn + i), compile = compile, shares = draw(3) > 1 }
      chance()
    end
    local settings = { lr = 0.01 * draw(3) }
    for i = 1, 4 do
      local party = parties[i]
      if party then
        local carry = train(party, settings, draw(2), shared)
        told[#told + 1] = ("%a %a"):format(ops.sum(carry.w):item(), carry.loss:item())
        chance()
        if draw(5) == 1 then parties[i] = nil end
        if draw(7) == 1 then party.rule = rules[names[draw(#names)]] end
        if draw(7) == 1 then party.step = nil end
        if draw(9) == 1 then rules.lists.step = load(("return %s"):format "...")(rules.lists.step) end
      end
    end
  end
  return table.concat(told, "\n")
end

local function plainly(f) return f end

-- The collector at one of many settings; collections at a few of the points where one may be.
local function disturbed(seed)
  local draw = stream(seed * 77 + 5)
  local mode = draw(4)
  if mode == 1 then collectgarbage("generational", 5 * draw(8), 25 * draw(8)) end
  if mode == 2 then collectgarbage("incremental", 50 * draw(6), 100 * draw(6), draw(14)) end
  local often = draw(12)
  return function()
    local what = draw(often)
    if what == 1 then collectgarbage() elseif what == 2 then collectgarbage("step", draw(200)) end
  end
end

local function calm() collectgarbage("incremental", 200, 100, 13) end

local first, seconds = math.tointeger(tonumber(arg[1] or 1)), tonumber(arg[2] or 4)

t.test("random programs of closures that come and go", function()
  local start, done = os.clock(), 0
  local seed = first * 100000
  repeat
    seed = seed + 1
    local expected = program(seed, plainly, plainly)
    for _, mode in ipairs { ms.PYNATIVE_MODE, ms.GRAPH_MODE } do
      ms.set_context { mode = mode }
      local fine, found = pcall(program, seed, ms.jit, disturbed(seed + mode))
      ms.set_context { mode = ms.PYNATIVE_MODE }
      calm()
      if not fine or found ~= expected then
        local a, b, line = tostring(found):gmatch "[^\n]+", expected:gmatch "[^\n]+", 0
        local one, two
        repeat
          one, two, line = a(), b(), line + 1
        until one ~= two or not one
        error(("program %d in mode %d, line %d: %s, eagerly %s"):format(seed, mode, line, one, two))
      end
    end
    done = done + 1
  until os.clock() - start > seconds
  print(done .. " random programs")
end)

t.finish()
