-- Profiles: what ran, where and with what sizes.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops
local test, equal, fails = t.test, t.equal, t.fails

local x = ops.ones { 8, 16 }
local w = ops.ones { 16, 4 }

local function names(p)
  local list = {}
  for i, event in ipairs(p.events) do list[i] = event.operators end
  return list
end

test("every operator of an eager call with its line, bytes and arithmetic", function()
  local line = debug.getinfo(1, "l").currentline
  local function f(a)
    local h = ops.matmul(a, w)
    return ops.relu(h)
  end
  local p = ms.profile(f, x)
  equal(names(p), { "matmul", "relu" })
  equal(p.results[1], f(x))
  local first, second = p.events[1], p.events[2]
  equal(first.flops, 2.0 * 8 * 16 * 4)
  equal(first.bytes, 4 * (8 * 16 + 16 * 4 + 8 * 4))
  equal(second.flops, 32.0)
  equal(second.bytes, 2 * 4 * 32)
  equal(first.place:match("[^/]*$"), "profile_test.lua:" .. line + 2)
  equal(second.place:match("[^/]*$"), "profile_test.lua:" .. line + 3)
  equal(first.seconds > 0 and second.start >= first.start + first.seconds, true)
  equal(p.seconds >= first.seconds + second.seconds, true)
end)

test("what an operator is made of stands for it", function()
  local p = ms.profile(function() return ops.cross_entropy(x, ops.zeros({ 8 }, ms.int64)) end)
  local seen = {}
  for _, name in ipairs(names(p)) do seen[name] = true end
  equal(seen.cross_entropy, nil)
  equal(seen.log_softmax, true)
end)

test("convolutions and their gradients have the arithmetic of the forward one", function()
  local image, kernel = ops.ones { 2, 3, 8, 8 }, ops.ones { 4, 3, 3, 3 }
  local p = ms.profile(ms.grad(function(a, k) return ops.sum(ops.conv2d(a, k)) end, { 0, 1 }), image, kernel)
  local flops = 2.0 * (2 * 4 * 6 * 6) * (3 * 3 * 3)
  local found = 0
  for _, event in ipairs(p.events) do
    if event.operators:find("^conv") then
      found = found + 1
      equal(event.flops, flops)
    end
  end
  equal(found, 3)
end)

test("steps of compiled graphs", function()
  local line = debug.getinfo(1, "l").currentline
  local f = ms.jit(function(a)
    local h = ops.matmul(a, w)
    return ops.sum(ops.exp(h) * 2 + 1)
  end)
  for _ = 1, 4 do f(x) end
  local p = ms.profile(f, x)
  equal(p.events[1].operators, "matmul")
  equal(p.events[1].compiled, true)
  equal(p.events[1].place:match("[^/]*$"), "profile_test.lua:" .. line + 2)
  equal(p.events[2].place:match("[^/]*$"), "profile_test.lua:" .. line + 3)
  -- Nothing is measured any more.
  equal(f(x), p.results[1])
  equal(#p.events <= 5, true)
end)

test("rows are sums by operator and line, in the order that is asked for", function()
  local p = ms.profile(function()
    local sum = x
    for _ = 1, 5 do sum = sum + x end
    return ops.exp(sum)
  end)
  local rows = p:rows("count")
  equal(rows[1].operators, "add")
  equal(rows[1].count, 5)
  equal(rows[1].bytes, 5 * 3 * 4 * 128)
  equal(#rows, 2)
  fails("rows can be sorted by", function() p:rows("name") end)
  local text = tostring(p)
  for _, word in ipairs { "time", "add", "exp", "profile_test.lua:", "in all" } do
    equal(text:find(word, 1, true) ~= nil, true)
  end
  equal(getmetatable(p).__mime(p)["text/html"]:find("<table", 1, true), 1)
end)

test("a Chrome trace", function()
  local p = ms.profile(function() return x * 2 + 1 end)
  local path = os.tmpname()
  p:save(path)
  local file = io.open(path)
  local trace = ms.json.decode(file:read("a"))
  file:close()
  os.remove(path)
  equal(#trace.traceEvents, 4)
  equal(trace.traceEvents[1].name, "mul")
  equal(trace.traceEvents[1].ph, "X")
  equal(trace.traceEvents[2].ph, "C")
  fails("cannot write the trace", function() p:save("/proc/nonexistent/folder/trace.json") end)
end)

test("an error in the function closes the profile", function()
  fails({ "profile_test.lua", "here" }, function() ms.profile(function() error("here") end) end)
  equal(#ms.profile(function() return x + 1 end).events, 1)
  fails("a profile is open already", function() ms.profile(function() ms.profile(print) end) end)
  fails("a function or another callable is expected", function() ms.profile(3) end)
end)

t.finish()
