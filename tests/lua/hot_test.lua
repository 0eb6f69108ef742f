-- Functions that are compiled without a request: in graph mode those that work with tensors and are called again and again are, as soon
-- as the mode is on and until it is off, wherever they were defined; nothing else tells.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local nn, ops = ms.nn, ms.ops
local equal, fails = t.equal, t.fails

local function graph() ms.set_context { mode = ms.GRAPH_MODE } end
local function eager() ms.set_context { mode = ms.PYNATIVE_MODE } end

local level = ms.get_context "jit_level"

local function test(name, body)
  t.test(name, function()
    graph()
    local ok, message = xpcall(body, function(e) return debug.traceback(tostring(e), 2) end)
    eager()
    ms.set_context { jit_level = level }
    if not ok then error(message, 0) end
  end)
end

local function vector(...) return ms.tensor({ ... }, ms.float32) end
local function calls(f) return ms.jit_report(f).compiled_calls end
local function is_compiled(f) return (pcall(ms.jit_report, f)) end

local function early(x, y) return x * 2 + y end

test("a function that is called in a loop is compiled", function()
  local function step(x, y) return ops.tanh(x) * y end
  for i = 1, 10 do equal(step(vector(0, 0), vector(i, i)), vector(0, 0)) end
  if calls(step) < 5 then error(tostring(ms.jit_report(step))) end
  local listed = tostring(ms.jit_report())
  if not listed:find("step %(.*hot_test.lua:%d+%)") then error(listed) end
end)

test("a function that was defined before the mode was switched on is compiled", function()
  for i = 1, 10 do equal(early(vector(i), vector(1)), vector(2 * i + 1)) end
  if calls(early) < 5 then error(tostring(ms.jit_report(early))) end
end)

test("what stands for the user's functions has their names", function()
  local function loss(x) return ops.sum(x * x) end
  local gradient, net = ms.grad(loss), ms.nn.Dense(2, 2)
  for _ = 1, 4 do
    gradient(vector(1, 2))
    net(ops.ones { 1, 2 })
  end
  local listed = tostring(ms.jit_report())
  equal(listed:find("grad of loss %(.*hot_test.lua:%d+%): 4 calls") ~= nil, true)
  equal(listed:find("cell Dense: 4 calls", 1, true) ~= nil, true)
end)

test("the way back acts on every call, and the way there again", function()
  local function f(x) return x + 1 end
  for _ = 1, 8 do f(vector(1)) end
  local before = ms.jit_report(f).calls
  eager()
  for _ = 1, 8 do equal(f(vector(1)), vector(2)) end
  equal(ms.jit_report(f).calls, before)
  graph()
  for _ = 1, 8 do equal(f(vector(1)), vector(2)) end
  equal(ms.jit_report(f).calls, before + 8)
end)

test("arguments and results of any number", function()
  local function none() return vector(1) * 2 end
  local function many(x, ...) return x + 1, select("#", ...), ... end
  local function nothing(x) x:add(1) end
  local method = {}
  function method:scaled(x) return x * self.scale end
  local object = setmetatable({ scale = 3 }, { __index = method })
  for i = 1, 10 do
    equal({ none() }, { vector(2) })
    equal({ many(vector(i), nil, 2) }, { vector(i + 1), 2, nil, 2 })
    equal(select("#", many(vector(i), nil, nil)), 4)
    equal(select("#", nothing(vector(i))), 0)
    equal(object:scaled(vector(i)), vector(3 * i))
  end
  for _, f in ipairs { none, many, method.scaled } do
    if calls(f) < 3 then error(tostring(ms.jit_report(f))) end
  end
end)

test("what a function depends on may change", function()
  local factor, settings = 1, { shift = 0 }
  local function f(x) return x * factor + settings.shift end
  for i = 1, 20 do
    factor, settings.shift = i, -i
    equal(f(vector(1, 2)), vector(0, i))
  end
end)

test("functions within functions, made anew for each call", function()
  local function outer(x)
    local sum = x * 0
    local function add(y) sum = sum + y end
    for i = 1, 3 do add(x * i) end
    return sum
  end
  for i = 1, 10 do equal(outer(vector(i)), vector(6 * i)) end
  if calls(outer) < 3 then error(tostring(ms.jit_report(outer))) end
end)

test("recursion, and functions that call each other", function()
  local even
  local function odd(x, n) if n == 0 then return x * 0 end return even(x, n - 1) end
  function even(x, n) if n == 0 then return x + 1 end return odd(x, n - 1) end
  for n = 0, 20 do equal(even(vector(1), n), vector(n % 2 == 0 and 2 or 0)) end
end)

test("a function without tensors is left alone", function()
  local function plain(a, b) return a * b + 1 end
  for i = 1, 300 do equal(plain(i, 2), 2 * i + 1) end
  equal(is_compiled(plain), false)
end)

test("a function that runs no operators is not even asked about; those in it are", function()
  local box = {}
  function box:put(x) self.x = x end
  function box:get() return self.x end
  local function pass(...) return ... end
  local function first(a, b) if a.n < b.n then return a end return b end
  local function scaled(n) return function(x) return x * n end end
  local double = scaled(2)
  for i = 1, 20 do
    box:put(vector(i))
    equal(pass(box:get()), vector(i))
    equal(first({ n = i, x = vector(i) }, { n = 5 }).n, math.min(i, 5))
    equal(double(vector(i)), vector(2 * i))
  end
  for _, f in ipairs { box.put, box.get, pass, first, scaled } do equal(is_compiled(f), false) end
  if calls(double) < 5 then error(tostring(ms.jit_report(double))) end
end)

test("a function that uses tensors only by the way is left to Lua", function()
  local function count(x)
    local n = 0
    for i = 1, 2000 do n = n + #tostring(i) end
    return n, x.shape[1]
  end
  for _ = 1, 8 do
    vector(1, 2)
    equal({ count(vector(1, 2)) }, { 6893, 2 })
  end
  local report = ms.jit_report(count)
  if not report.eager then error(tostring(report)) end
end)

test("there is a bound on the cases that a function is compiled for, and the report names what changed", function()
  local function f(x, key) return x * #key end
  for i = 1, 6000 do equal(f(vector(1), ("k"):rep(i % 100)), vector(i % 100)) end
  local report = ms.jit_report(f)
  if report.eager or report.branches > 66 then error(tostring(report)) end
  local because = report.recordings[#report.recordings].because or ""
  if not because:find("argument 2 is .* and was .* before") then error(because) end
end)

test("errors name the lines that they name in eager mode", function()
  local function check(x, n)
    local y = x * n
    if n == 9 then error("nine", 2) end
    if n == 10 then error("ten") end
    return y + ops.ones { n }
  end
  local function outcomes()
    local list = {}
    for n = 1, 12 do
      local _, e = pcall(function()
        local y = check(vector(1, 2), n)
        return y
      end)
      list[n] = e
    end
    return list
  end
  local found = outcomes()
  eager()
  equal(found, outcomes())
end)

test("a traceback has each function once", function()
  local function deep(x) return x + ops.ones { 7 } end
  local function f(x, n) if n > 6 then return deep(x) end return x * n end
  for n = 1, 6 do f(vector(1, 2), n) end
  fails("shapes (2) and (7) do not broadcast", f, vector(1, 2), 7)
end)

test("the debug library shows no other upvalues, lines and locals than in eager mode", function()
  local function describe()
    local up = 1
    local function f(a, ...)
      local b = a
      return up, b, ...
    end
    local info, list = debug.getinfo(f, "uSL"), {}
    list.nups, list.nparams, list.isvararg = info.nups, info.nparams, info.isvararg
    list.lines = {}
    for line in pairs(info.activelines) do list.lines[line - info.linedefined] = true end
    for i = 1, 3 do list[i] = { debug.getupvalue(f, i) } end
    list.set = { debug.setupvalue(f, 2, 5), (pcall(debug.upvaluejoin, f, 1, f, 2)) }
    list.id = debug.upvalueid(f, 2) == nil
    local seen = {}
    debug.sethook(function(event, line) seen[#seen + 1] = event .. (line and line - info.linedefined or "") end, "cl")
    f(1, 2)
    debug.sethook()
    list.events = table.concat(seen, " "):match("^.-line2 line%d+")
    return list
  end
  local there = describe()
  equal(there.nups, 1)
  equal(there[1], { "up", 1 })
  equal(there[2], {})
  equal(there.id, true)
  eager()
  equal(describe(), there)
end)

test("tracebacks, levels and hooks are those of eager mode while compiled code runs", function()
  local seen
  local shown = setmetatable({}, { __tostring = function()
    local caller = debug.getinfo(3, "Sl")
    seen = { debug.traceback("here"), debug.traceback("level", 3), caller.what, caller.currentline,
      debug.getinfo(200, "S") == nil, (pcall(debug.getlocal, 200, 1)), (debug.getlocal(3, 1)) }
    return "shown"
  end })
  local function f(x)
    local y = x * 2
    tostring(shown)
    return y + 1
  end
  -- Chunks are not compiled, so that only f is.
  local deep = load("local deep, n, f, x = ... if n == 0 then return (f(x)) end return (deep(deep, n - 1, f, x))", "=deep")
  local function run(depth)
    for i = 1, 6 do deep(deep, depth, f, vector(1, i)) end
    return seen
  end
  local found = {}
  for i, mode in ipairs { graph, eager } do
    mode()
    found[i] = { run(0), run(40) }
  end
  if calls(f) < 3 then error(tostring(ms.jit_report(f))) end
  equal(found[1], found[2])
  equal(found[1][1][1]:find("in local 'f'", 1, true) ~= nil, true)
  equal(found[1][2][1]:find("skipping", 1, true) ~= nil, true)
end)

test("a hook sees the calls and lines of eager mode and is given back as it was set", function()
  local function f(x)
    local y = x * 2
    return y + 1
  end
  local function watched()
    local seen = {}
    local function hook(event, line)
      local info = debug.getinfo(2, "nS")
      seen[#seen + 1] = event .. " " .. (line or info.what .. " " .. tostring(info.name))
    end
    debug.sethook(hook, "crl")
    local set, mask, count = debug.gethook()
    f(vector(1))
    debug.sethook()
    equal({ set == hook, mask, count, debug.gethook() }, { true, "crl", 0 })
    return seen
  end
  for _ = 1, 6 do f(vector(1)) end
  local before, there = calls(f), watched()
  equal(calls(f), before)
  eager()
  equal(watched(), there)
end)

test("coroutines, comparisons of table.sort and other callers in C", function()
  local function f(x) return x + 1 end
  for _ = 1, 8 do f(vector(1)) end
  equal(coroutine.wrap(function() coroutine.yield(f(vector(1))) end)(), vector(2))
  local list = { vector(3), vector(1), vector(2) }
  local function less(a, b) return (a - b):item() < 0 end
  for _ = 1, 5 do table.sort(list, less) end
  equal(list[1], vector(1))
  equal(list[3], vector(3))
end)

test("cells and derivatives have reports", function()
  local net = nn.Dense(2, 1)
  local gradient = ms.grad(function(x) return ops.sum(x * x) end)
  local jacobian = ms.jacrev(function(x) return x * x end)
  for _ = 1, 6 do
    net(ops.ones { 1, 2 })
    equal(gradient(vector(1, 2)), vector(2, 4))
    equal(jacobian(vector(1, 2)), ms.tensor { { 2.0, 0.0 }, { 0.0, 4.0 } })
  end
  for _, f in ipairs { net, gradient, jacobian } do
    if calls(f) < 3 then error(tostring(ms.jit_report(f))) end
  end
  fails("was not compiled", ms.jit_report, function() end)
  fails("jit_report: 1 was not compiled", ms.jit_report, 1)
end)

test("a function that asks what a function of its own has done is told as without graph mode", function()
  local function asks(f, x, tells)
    local compiled = ms.jit(f)
    local sum = ops.sum(compiled(x))
    if tells then tells[#tells + 1] = "an effect" end
    compiled(x)
    return sum, ms.jit_report(compiled).calls, ms.jit_report(compiled).name
  end
  for k = 1, 20 do
    local sum, calls_of = asks(function(x) return x * k end, vector(1, 2))
    equal(sum, ms.tensor(3.0 * k))
    equal(calls_of, 2)
  end
  -- Behind an effect a recorded call cannot begin anew.
  local told = {}
  local function tell(f, x)
    told[#told + 1] = "called"
    return asks(f, x, told)
  end
  for k = 1, 20 do equal((tell(function(x) return x * k end, vector(1, 2))), ms.tensor(3.0 * k)) end
  equal(#told, 40)
end)

test("a training loop in plain functions learns as in eager mode", function()
  local function train(count)
    ms.set_seed(3)
    local weight, bias = ms.Parameter(ops.zeros { 2, 1 }, "w"), ms.Parameter(ops.zeros { 1 }, "b")
    local optimizer = nn.SGD({ weight, bias }, 0.1)
    local x = ops.randn { 16, 2 }
    local y = ops.matmul(x, ms.tensor { { 1.0 }, { -2.0 } }) + 0.5
    local function loss() return ops.mean((ops.matmul(x, weight) + bias - y) ^ 2) end
    local gradient = ms.value_and_grad(loss, false, { weight, bias })
    local function step()
      local value, grads = gradient()
      optimizer(grads)
      return value
    end
    local last
    for _ = 1, count do last = step() end
    return last:item(), weight, step
  end
  local loss, weight, step = train(40)
  if calls(step) < 20 then error(tostring(ms.jit_report(step))) end
  eager()
  local expected, plain = train(40)
  t.near(loss, expected, 1e-6)
  t.near(weight, plain, 1e-5)
end)

test("finalizers call what is collected with them", function()
  local called, wrong = 0, 0
  for k = 1, 60 do
    do
      local object, count = {}, 0
      local function f(x)
        count = count + 1
        return ops.sum(x * 2) + count
      end
      local twice, net = ms.jit(function(x) return x * 2 end), nn.Dense(2, 2)
      local function all(x) return f(x):item(), ms.grad(f)(x):tolist(), twice(x):tolist(), net(x:reshape { 1, 2 }).shape[2] end
      -- What compiles comes later than the object, and so is finalized before.
      setmetatable(object, { __gc = function()
        called = called + 1
        local y, g, z, n = all(vector(1, 2))
        if y ~= 6 + count - 1 or g[1] ~= 2 or z[2] ~= 4 or n ~= 2 then wrong = wrong + 1 end
      end })
      for _ = 1, 4 do all(vector(3, 4)) end
    end
    if k % 7 == 0 then collectgarbage() end
    equal(#tostring(ms.jit_report()) > 0, true)
  end
  collectgarbage()
  collectgarbage()
  if called < 50 or wrong > 0 then error(("%d calls, %d wrong"):format(called, wrong)) end
end)

test("a function is not taken for one that was made in its place before", function()
  local x, kept = vector(1, 2), {}
  for k = 1, 200 do
    do
      local function before(v) return v + k end
      before(x)
      before(x)
    end
    collectgarbage()
    local function once(v) return v * k end
    kept[k] = once
    once(x)
    equal(is_compiled(kept[k]), false)
  end
end)

test("what an unfinished record made is taken up where it stopped", function()
  -- The shape and the list are tables that the call makes and hands to functions of the library.
  local function make()
    local log = {}
    return log, function(n, x)
      local kind, list = tostring(n), x:tolist()
      log[#log + 1] = kind
      local text = table.concat(x.shape, "x") .. " " .. ("%.3g"):format(list[1])
      log[#log + 1] = text
      return text .. table.concat(list, " "), x * 2
    end
  end
  local expected, plain = make()
  local log, step = make()
  for _, n in ipairs { 1, true, 1, 2.5, true, "a", 1, 1, true } do
    for _, x in ipairs { vector(1, 2), vector(3.5, -1, 2), vector(1, 2) } do
      eager()
      local text, y = plain(n, x)
      graph()
      equal({ step(n, x) }, { text, y })
    end
  end
  equal(log, expected)
  equal(ms.jit_report(step).eager, nil)
end)

test("a record that becomes too long is left at any operator", function()
  local x, y = ms.tensor { { 1.0, 2.0 }, { 0.5, -1.0 } }, ms.tensor { 0, 1 }
  local gradient = ms.value_and_grad(function(a) return ops.cross_entropy(a, y) end)
  eager()
  local value, slope = gradient(x)
  graph()
  for more = 0, 16 do
    -- What asks the clock cannot be begun again.
    local function many(outer, count)
      local last, d
      for _ = 1, more do ops.neg(x) end
      for _ = 1, outer do
        local _ = os.clock()
        for _ = 1, count do last, d = gradient(x) end
      end
      return last, d
    end
    for _ = 1, 6 do many(2, 2) end
    local last, d = many(7, 250)
    t.near(last, value, 1e-6)
    t.near(d, slope, 1e-6)
    local report = ms.jit_report(many)
    equal((report.eager or report.refused) ~= nil, true)
  end
end)

test("a loop around what is compiled is left to Lua, but for jit_level O1", function()
  ms.set_context { jit_level = "auto" }
  local function step(v) return v * 2 + 1 end
  local function loop(v)
    for _ = 1, 40 do v = step(v) * 0.1 end
    return v
  end
  for i = 1, 12 do loop(vector(i)) end
  equal(is_compiled(loop), false)
  if calls(step) < 100 then error(tostring(ms.jit_report(step))) end
  ms.set_context { jit_level = "O1" }
  for i = 1, 4 do loop(vector(i)) end
  equal(is_compiled(loop), true)
end)

test("a function whose calls do something new each time is left to Lua for longer and longer", function()
  ms.set_context { jit_level = "auto" }
  local function strange(v, name) return v * #name end
  for i = 1, 100 do equal(strange(vector(i), ("n"):rep(i)), vector(i * i)) end
  local report = ms.jit_report(strange)
  if #report.recordings > 16 then error(tostring(report)) end
  equal(report.refused:find("something new", 1, true) ~= nil, true)
end)

test("code is generated at once with jit_level O1, and not at all with O0", function()
  local x = vector(1, 2)
  for name, graphs in pairs { O0 = 0, O1 = 1 } do
    ms.set_context { jit_level = name }
    local function step(v) return ops.tanh(v * 2) + 1 end
    for _ = 1, 6 do step(x) end
    equal(ms.jit_report(step).graphs, graphs)
    equal(calls(step) >= 2, true)
  end
end)

test("hundreds of functions that take turns are compiled", function()
  local x, list, compiled = vector(1, 2), {}, 0
  for k = 1, 300 do list[k] = function(v) return v * k + 1 end end
  for _ = 1, 20 do
    for k, f in ipairs(list) do equal(f(x):tolist(), { k + 1, 2 * k + 1 }) end
  end
  for _, f in ipairs(list) do compiled = compiled + (pcall(ms.jit_report, f) and 1 or 0) end
  if compiled < 290 then error(compiled .. " of 300") end
end)

test("finalizers make tensors and differentiate while others are made and functions compile", function()
  local x, going, called, wrong = vector(1, 2), true, 0, 0
  local square = ms.grad(function(v) return ops.sum(v * v) end)
  local function again()
    setmetatable({}, { __gc = function()
      if not going then return end
      local g = square(x):tolist()
      called, wrong = called + 1, wrong + (g[1] == 2 and g[2] == 4 and 0 or 1)
      again()
    end })
  end
  collectgarbage("incremental", 1, 10000, 0)
  for _ = 1, 20 do again() end
  local rounds = 0
  while called < 2000 and rounds < 5000 do
    rounds = rounds + 1
    local f = ms.jit(function(v)
      local list = {}
      for i = 1, 10 do list[i] = v * i end
      return list[1] + list[10], tostring(v.shape[1]), ("%s"):format(list[2]), #list
    end)
    for _ = 1, 4 do
      local y, text, shown, n = f(x)
      equal({ y:tolist(), text, #shown > 0, n }, { { 11, 22 }, "2", true, 10 })
    end
  end
  going = false
  collectgarbage("generational", 20, 100)
  if called < 2000 or wrong > 0 then error(("%d calls, %d wrong"):format(called, wrong)) end
end)

t.finish()
