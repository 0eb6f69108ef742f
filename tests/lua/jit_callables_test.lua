-- To a program what ms.jit gives is a function: whatever takes a function takes it, in both modes.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local equal, fails = t.equal, t.fails

local function vector(...) return ms.tensor({ ... }, ms.float32) end

for _, mode in ipairs { ms.PYNATIVE_MODE, ms.GRAPH_MODE } do
  local function both(name, f)
    t.test(name .. ", mode " .. mode, function()
      local before = ms.get_context("mode")
      ms.set_context { mode = mode }
      local ok, message = pcall(f)
      ms.set_context { mode = before }
      if not ok then error(message, 0) end
    end)
  end
  both("a compiled function is a function", function()
    local f = ms.jit(function(x) return x end)
    equal(type(f), "function")
    equal(pcall(type), false)
    equal(ms.jit(function(x) return type(x) end)(f), "function")
  end)
  both("a compiled function compares for table.sort", function()
    local less = ms.jit(function(a, b) return (a - b):item() < 0 end)
    for _ = 1, 3 do
      local list = { vector(3), vector(1), vector(2) }
      table.sort(list, less)
      equal(list, { vector(1), vector(2), vector(3) })
      -- What stands for it is kept beside what it needs itself.
      collectgarbage()
      for i = 1, 100 do coroutine.create(function() return i end) end
    end
    assert(ms.jit_report(less).compiled_calls > 3)
  end)
  both("a compiled function is a coroutine's body", function()
    local f = ms.jit(function(x) return coroutine.yield(x + 1) * 2 end)
    for _ = 1, 3 do
      local step = coroutine.wrap(f)
      equal(step(vector(1)), vector(2))
      equal(step(vector(5)), vector(10))
      local thread = coroutine.create(f)
      equal({ coroutine.resume(thread, vector(1)) }, { true, vector(2) })
      equal(coroutine.status(thread), "suspended")
    end
  end)
  both("a compiled function replaces in string.gsub, handles in xpcall, reads for load", function()
    local twice = ms.jit(function(s) return s .. s end)
    equal({ ("abc"):gsub("%w", twice) }, { "aabbcc", 3 })
    local handler = ms.jit(function(e) return "handled " .. tostring(e) end)
    equal({ xpcall(error, handler, "x", 0) }, { false, "handled x" })
    local parts, at = { "return ", "7" }, 0
    local reader = ms.jit(function()
      at = at + 1
      return parts[at]
    end)
    equal(load(reader)(), 7)
  end)
  both("the debug library looks at the function that was compiled", function()
    local up = 3
    local plain = function(x) return x * up end
    local f = ms.jit(plain)
    equal(debug.getinfo(f, "S").linedefined, debug.getinfo(plain, "S").linedefined)
    equal({ debug.getupvalue(f, 1) }, { "up", 3 })
    equal(debug.upvalueid(f, 1) == debug.upvalueid(plain, 1), true)
    equal(debug.setupvalue(f, 1, 4), "up")
    equal(f(vector(1)), vector(4))
    equal(debug.getlocal(f, 1), "x")
    equal(string.dump(f) == string.dump(plain), true)
  end)
  both("a compiled function as __index says that Lua does not call it", function()
    local t1 = setmetatable({}, { __index = ms.jit(function(_, key) return key end) })
    fails("as __index of a metatable it needs a function around it", function() return t1.x end)
  end)
  both("a compiled cell is a part of the cell that holds it", function()
    local nn, ops = ms.nn, ms.ops
    local Net = nn.Cell:extend("Net")
    function Net:init()
      self.body = ms.jit(nn.Dense(2, 3, { weight_init = "ones" }))
      self.row = nn.SequentialCell { ms.jit(nn.Dense(3, 2, { weight_init = "ones" })), nn.Tanh() }
    end
    function Net:construct(x) return self.row(self.body(x)) end
    local function trained()
      local net = Net()
      local optimizer = nn.SGD(net:trainable_params(), 0.1)
      local slope = ms.value_and_grad(function(x) return ops.sum(net(x)) end, nil, net:trainable_params())
      for _ = 1, 3 do optimizer((select(2, slope(ops.ones { 4, 2 } * 0.1)))) end
      local names = {}
      for i, p in ipairs(net:trainable_params()) do names[i] = p.name end
      return names, net:set_train(false)(ops.ones { 1, 2 })
    end
    local names = { "body.weight", "body.bias", "row.0.weight", "row.0.bias" }
    equal((trained()), names)
    equal((ms.jit(trained)()), names)
    local holder = nn.Cell()
    holder:insert_child_to_cell("part", ms.jit(nn.Dense(2, 2)))
    equal(#holder:trainable_params(), 2)
  end)
end

t.finish()
