-- Complaints of users of other frameworks about compiled programs, one test each: here it is better.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops, nn = ms.ops, ms.nn
local test, equal, near, fails = t.test, t.equal, t.near, t.fails

local function vector(...) return ms.tensor({ ... }, ms.float32) end

local function compiled(f, at_least)
  local report = ms.jit_report(f)
  if report.eager or report.compiled_calls < at_least then error("not compiled: " .. tostring(report), 2) end
end

t.in_parts()
test("1: branches and loops on values of tensors compile, differentiated too", function()
  local function steps(x)
    local n = 0
    while x:sum():item() < 100 do
      if x[0] > 5 then x = x * 3 else x = x * 2 end
      n = n + 1
    end
    return x:sum(), n
  end
  local f, g = ms.jit(steps), ms.jit(ms.grad(function(x) return (steps(x)) end))
  local plain = ms.grad(function(x) return (steps(x)) end)
  for round = 1, 3 do
    for k = 1, 4 do
      equal({ f(vector(k, 1)) }, { steps(vector(k, 1)) })
      equal(g(vector(k, 1)), plain(vector(k, 1)))
    end
  end
  compiled(f, 8)
  compiled(g, 4)
end)

test("2: effects happen at each call, in their order, and the report names their lines", function()
  local losses, count = {}, 0
  local f = ms.jit(function(x, list)
    count = count + 1
    losses[#losses + 1] = x:sum()
    for i, v in ipairs(list) do
      if i < 5 then list[#list + 1] = v * 2 end
    end
    return #list
  end)
  for i = 1, 6 do equal(f(vector(i), { 1, 2 }), 6) end
  equal({ count, #losses, losses[6]:item() }, { 6, 6, 6.0 })
  local g = ms.jit(function(x, log)
    log.last = x
    return x * 2
  end)
  local log = {}
  for i = 1, 4 do
    g(vector(i), log)
    equal(log.last, vector(i))
  end
  local effects = ms.jit_report(g).effects
  if #effects == 0 or not effects[1]:find("pain_points_test.lua:%d+") then error(tostring(effects[1])) end
end)

test("3: a recompilation is explained, and after the second shape there is none", function()
  local f = ms.jit(function(x, k) return ops.relu(x * k):sum(1) end)
  for n = 1, 20 do equal(f(ops.ones { n, 2 }, 2.0 * n):tolist(), (ops.ones { n } * (4.0 * n)):tolist()) end
  local report = ms.jit_report(f)
  if #report.recordings > 4 or report.eager then error(tostring(report)) end
  local because = report.recordings[2].because
  if not because:find("argument %d is .* and was .* before") then error(because) end
end)

test("4: compile time is bounded: a loop of a thousand steps is no program of a thousand", function()
  local w = ops.ones { 8, 8 } * 0.1
  local f = ms.jit(function(h, n)
    for _ = 1, n do h = ops.tanh(ops.matmul(h, w) + 0.1) end
    return h:sum()
  end)
  local start = os.clock()
  for _ = 1, 3 do f(ops.ones { 1, 8 }, 100) end
  if os.clock() - start > 20 then error("it took " .. os.clock() - start .. " s") end
  -- What would grow without bounds is left to Lua, with the reason.
  local endless = ms.jit(function(n)
    local s = 0.0
    for i = 1, n do s = s + (i % 3) end
    return s
  end)
  equal(endless(400000), 400000.0)
  equal(endless(400000), 400000.0)
  local report = ms.jit_report(endless)
  if report.steps > 300000 then error(tostring(report)) end
  -- Eight times the steps, with an effect in each, are recorded in about eight times the time.
  local function recording(n)
    local best = math.huge
    for _ = 1, 3 do
      local log = {}
      local g = ms.jit(function(x)
        for i = 1, n do
          x = x + 1
          log.last = i
        end
        return x
      end)
      local before = ms.clock()
      equal(g(vector(0)), vector(n))
      equal(log.last, n)
      best = math.min(best, ms.clock() - before)
    end
    return best
  end
  local few, many = recording(4000), recording(32000)
  if many > 24 * few then error(("%g and %g s"):format(few / 1e9, many / 1e9)) end
end)

test("5: the source is found, of whatever was typed, loaded or made", function()
  local made = {
    load("return function(x) return x * 2 end")(),
    assert(load("local k = 2 return function(x) return x * k end, function(x) return x end", "=typed"))(),
    (function() return function(x) return x + x end end)(),
    ({ function(x) return x * 2 end, function(x) return x end })[1],
  }
  for i, f in ipairs(made) do
    local j = ms.jit(f)
    for k = 1, 3 do equal(j(vector(k)), vector(2 * k)) end
    compiled(j, 1)
    equal(ms.jit(ms.grad(f))(vector(i)), vector(2))
  end
end)

test("6: what cannot be compiled runs by itself, the rest stays compiled", function()
  local lines = {}
  local opaque = coroutine.wrap(function(v)
    while true do
      lines[#lines + 1] = v:sum():item()
      v = coroutine.yield(#lines)
    end
  end)
  local f = ms.jit(function(x)
    local y = ops.relu(x * 2 + 1)
    local n = opaque(y)
    return y * n
  end)
  for i = 1, 5 do equal(f(vector(i, i)), vector(2 * i + 1, 2 * i + 1) * i) end
  equal(#lines, 5)
  compiled(f, 1)
  local effects = table.concat(ms.jit_report(f).effects, " ")
  if not effects:find("pain_points_test.lua:%d+: call") then error(effects) end
end)

test("7: messages name the user's line and operands", function()
  local text = "return function(a, b)\n  local c = a * 2\n  return ms.ops.matmul(c, b)\nend"
  local f = ms.jit(assert(load(text, "=net.lua", "t", { ms = ms }))())
  for _ = 1, 3 do f(ops.ones { 2, 3 }, ops.ones { 3, 2 }) end
  local ok, message = pcall(f, ops.ones { 2, 3 }, ops.ones { 4, 2 })
  equal(ok, false)
  if not message:find("^net.lua:3: matmul: .*%(2, 3%).*%(4, 2%)") then error(message) end
end)

test("8: the switch acts on every call from then on", function()
  local net = nn.Dense(3, 2)
  local x = ops.ones { 2, 3 }
  local plain = net(x)
  for _ = 1, 2 do
    ms.set_context { mode = ms.GRAPH_MODE }
    equal(ms.get_context "mode", ms.GRAPH_MODE)
    for _ = 1, 3 do near(net(x), plain, 1e-6) end
    ms.set_context { mode = ms.PYNATIVE_MODE }
    equal(ms.get_context "mode", ms.PYNATIVE_MODE)
    near(net(x), plain, 1e-6)
  end
end)

test("9: both modes give the same numbers", function()
  local function train(wrap)
    ms.set_seed(4)
    local net = nn.SequentialCell { nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 1) }
    local optimizer = nn.Momentum(net:trainable_params(), 0.05, 0.9)
    local gradient = ms.value_and_grad(function(x, y) return ((net(x) - y) * (net(x) - y)):mean() end, nil, optimizer.parameters)
    local step = wrap(function(x, y)
      local loss, gradients = gradient(x, y)
      optimizer(gradients)
      return loss
    end)
    local losses = {}
    for i = 1, 15 do losses[i] = step(ops.randn { 6, 4 }, ops.randn { 6, 1 }):item() end
    return ms.tensor(losses)
  end
  near(train(ms.jit), train(function(f) return f end), 1e-5)
end)

test("10: breakpoint() in a compiled function stops there", function()
  local f = ms.jit(function(x, stop)
    if stop then _G.breakpoint() end
    return x * 2
  end)
  for i = 1, 3 do equal(f(vector(i)), vector(2 * i)) end
  -- It runs as it is written, line by line, so that the debugger sees its variables.
  local report = ms.jit_report(f)
  equal({ report.interpreted_calls, report.compiled_calls }, { 3, 0 })
  local g = ms.jit(function(x) return x * 2 end)
  for i = 1, 3 do equal(g(vector(i)), vector(2 * i)) end
  compiled(g, 1)
end)

test("11: fullgraph is exact", function()
  local whole = ms.jit(function(x)
    local ok, y = pcall(function() return ops.relu(x) end)
    return ok and y or x
  end, { fullgraph = true })
  for _ = 1, 3 do equal(whole(vector(-1, 2)), vector(0, 2)) end
  local parts = ms.jit(function(x)
    local co = coroutine.wrap(function() coroutine.yield(x) end)
    return co()
  end, { fullgraph = true })
  fails("cannot be compiled as a whole", parts, vector(1))
  fails("cannot be compiled as a whole", parts, vector(1))
end)

test("12: gradients at corners are numbers", function()
  for _, f in ipairs {
    function(x) return ops.abs(x):sum() end,
    function(x) return ops.norm(x) end,
    function(x) return ops.relu(x):sum() end,
    function(x) return ops.maximum(x, 0 * x):sum() end,
  } do
    local g = ms.jit(ms.grad(f))
    for _ = 1, 3 do
      local d = g(vector(0, 0))
      equal(ops.isnan(d):any():item(), false)
      equal(d, ms.grad(f)(vector(0, 0)))
    end
  end
end)

test("13: what a loop carries may change its shape, and what does not fit is named with its line", function()
  local f = ms.jit(function(y, n)
    for _ = 1, n do y = ops.concat({ y, y }, 0) end
    return y
  end)
  for n = 0, 3 do equal(f(vector(1), n).shape[1], 2 ^ n // 1 | 0) end
  local text = "return function(y, w, n)\nfor i = 1, n do\n  y = w + y:reshape { -1, 1, 1 }\n  "
    .. "y = ms.ops.matmul(y[0], w)\nend return y end"
  local g = ms.jit(assert(load(text, "=loop", "t", { ms = ms }))())
  local ok, message = pcall(g, ops.ones { 3 }, ops.ones { 2, 3 }, 2)
  equal(ok, false)
  if not message:find("^loop:4: matmul: .*%(2, 3%)") then error(message) end
end)

test("14: auto compiles as O1 does, so that results do not depend on times", function()
  local fast = ms.jit(function(x)
    for _ = 1, 20 do x = ops.tanh(x * 1.01 + 0.1) end
    return x
  end, { jit_level = "auto" })
  local x = ops.ones { 64 }
  for _ = 1, 10 do fast(x) end
  if ms.jit_report(fast).compiled_calls < 7 then error(tostring(ms.jit_report(fast))) end
end)

test("15: everything in a tensor counts from 0, in both modes", function()
  local function f(x)
    return x[ops.argmax(x)], x[0], x[-1], ops.gather(x, ms.tensor({ 0, 2 }, ms.int32), 0), ops.argmax(x)
  end
  local g = ms.jit(f)
  for i = 1, 4 do
    local x = vector(i, 9, 3)
    equal({ g(x) }, { f(x) })
    equal({ f(x) }, { ms.tensor(9.0), ms.tensor(1.0 * i), ms.tensor(3.0), vector(i, 3), ms.tensor(1, ms.int64) })
  end
end)

t.finish()
