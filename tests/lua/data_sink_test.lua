-- Loops of steps in one call: they give what a loop of calls gives.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local nn, ops = ms.nn, ms.ops
local test, equal, fails = t.test, t.equal, t.fails

local function make_step(optimizer)
  ms.set_seed(3)
  local net = nn.SequentialCell { nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 3) }
  local loss = nn.CrossEntropyLoss()
  local opt = optimizer(net:trainable_params())
  local gradient = ms.value_and_grad(function(x, y) return loss(net(x), y) end, nil, opt.parameters)
  return function(x, y)
    local value, grads = gradient(x, y)
    opt(grads)
    return value
  end, net, opt
end

local function make_data(count)
  ms.set_seed(4)
  local data = {}
  for i = 1, count do data[i] = { ops.randn { 2, 4 }, ops.randint(0, 3, { 2 }) } end
  return data
end

-- The same bits, whenever either is compiled.
ms.set_context { deterministic = "ON" }

test("a data set gives its columns, those of input_indexs where it has such", function()
  local ds = ms.dataset.NumpySlicesDataset({ x = { 1.0, 2.0 }, y = { 3.0, 4.0 } }, { shuffle = false })
  local function step(x, y) return x * 10 + y end
  local options = { sink_size = 3, collect = true }
  local function values(list)
    for i, value in ipairs(list) do list[i] = value:item() end
    return list
  end
  equal(values(ms.data_sink(step, ds:batch(1), options)()), { 13.0, 24.0, 13.0 })
  equal(#ds.input_indexs, 0)
  ds.input_indexs = { 1, 0 }
  equal(values(ms.data_sink(step, ds, options)()), { 31.0, 42.0, 31.0 })
  local batches = ds:batch(1)
  equal(batches:get_input_indexs(), { 1, 0 })
  equal(values(ms.data_sink(step, batches, options)()), { 31.0, 42.0, 31.0 })
  batches.input_indexs = { 1, 1 }
  equal(values(ms.data_sink(step, batches, options)()), { 33.0, 44.0, 33.0 })
  -- Other columns are counted anew.
  equal(ds:project({ "y" }):get_input_indexs(), { 0 })
  local other = ms.dataset.NumpySlicesDataset({ x = { 1.0 }, y = { 3.0 } })
  fails("input_indexs: input_indexs[2] is 2, but the data set has 2 columns", function() other.input_indexs = { 0, 2 } end)
  fails("input_indexs: a list of columns, as numbers from 0, is expected, got 1", function() other.input_indexs = 1 end)
  fails("input_indexs[1]", function() other.input_indexs = { "x" } end)
  other.input_indexs = { 0 }
  other.input_indexs = { -1 }
  fails("input_indexs: input_indexs[1] must", function() ms.data_sink(step, other, -1)() end)
end)

local function adam(params) return nn.Adam(params, 0.01) end

test("losses and weights are those of the fed loop", function()
  for _, optimizer in ipairs { adam, function(p) return nn.Momentum(p, 0.1, 0.9) end,
    function(p) return nn.Adam(p, 0.01, { weight_decay = 0.1 }) end } do
    local data = make_data(7)
    local step, net = make_step(optimizer)
    local losses = {}
    local compiled = ms.jit(step)
    for i = 1, 20 do losses[i] = compiled(data[(i - 1) % 7 + 1][1], data[(i - 1) % 7 + 1][2]) end
    local sunk, other, opt = make_step(optimizer)
    equal(ms.data_sink(sunk, data, { sink_size = 20, collect = true })(), losses)
    equal(opt.global_step, 20)
    local a, b = net:trainable_params(), other:trainable_params()
    for i = 1, #a do equal(b[i], a[i]) end
  end
end)

test("what the step itself changes is followed", function()
  local state = { factor = 1, list = { 1 } }
  local function step(x)
    state.factor = state.factor + 1
    state.list[#state.list + 1] = state.factor
    return x * state.factor + #state.list
  end
  local batches = { ms.tensor { 1.0 }, ms.tensor { 10.0 } }
  local got = ms.data_sink(step, batches, { sink_size = 6, collect = true })()
  for i = 1, 6 do equal(got[i], ms.tensor { (i % 2 == 1 and 1 or 10) * (i + 1) + i + 1.0 }) end
  equal(#state.list, 7)
end)

test("a table that the step writes is looked at anew under each of its names", function()
  local counts, other, list = { a = 1, n = 0 }, { a = 5 }, { 1.0 }
  local alias = counts
  local function step(x)
    counts.n = counts.n + 1
    local total = 0
    for _, v in pairs(alias) do total = total + v end
    for _, v in pairs(other) do total = total + v end
    list[#list + 1] = 1.0
    return x * (total + #list + alias.n)
  end
  local batches, wanted = {}, {}
  for i = 1, 7 do batches[i] = { ms.tensor { i + 0.0 } } end
  for i = 1, 20 do wanted[i] = ((i - 1) % 7 + 1) * (1 + i + 5 + i + 1 + i) + 0.0 end
  local got = ms.data_sink(step, batches, { sink_size = 20, collect = true })()
  for i = 1, 20 do got[i] = got[i]:item() end
  equal(got, wanted)
end)

test("an upvalue that changes, weights that are replaced", function()
  local n, cell = 0, { w = ms.tensor { 1.0 } }
  local function step(x)
    n = n + 1
    cell.w = cell.w * 2
    return x * cell.w + n
  end
  local got = ms.data_sink(step, { ms.tensor { 1.0 } }, { sink_size = 5, collect = true })()
  for i = 1, 5 do equal(got[i], ms.tensor { 2.0 ^ i + i }) end
end)

test("between two loops everything may change", function()
  local scale = { by = 2 }
  local f = ms.jit(function(x) return x * scale.by end)
  for i = 1, 4 do
    scale.by = i
    equal(ms.data_sink(f, { ms.tensor { 3.0 } }, { sink_size = 5 })(), ms.tensor { 3.0 * i })
  end
end)

test("a function that is called in the step may change anything", function()
  local scale = { by = 1 }
  local calls = 0
  local other = load("local scale = ... return function() scale.by = scale.by + 1 end")(scale)
  local function step(x)
    calls = calls + 1
    local r = x * scale.by
    table.sort({ 2, 1 }, function(a, b)
      other()
      return a < b
    end)
    return r
  end
  local got = ms.data_sink(step, { ms.tensor { 1.0 } }, { sink_size = 4, collect = true })()
  local expected, by = {}, 1
  for i = 1, 4 do
    expected[i] = ms.tensor { by + 0.0 }
    table.sort({ 2, 1 }, function(a, b)
      by = by + 1
      return a < b
    end)
  end
  equal(got, expected)
  equal(calls, 4)
end)

test("shapes may differ from batch to batch", function()
  local got = ms.data_sink(function(x) return ops.sum(x) end,
    { ms.tensor { 1.0 }, ms.tensor { 1.0, 2.0 }, ms.tensor { 1.0 } }, { sink_size = 9, collect = true })()
  for i = 1, 9 do equal(got[i]:item(), i % 3 == 2 and 3.0 or 1.0) end
end)

test("one tensor given twice, and a weight as an argument", function()
  local w = ms.Parameter(ms.tensor { 2.0 }, "w")
  local x = ms.tensor { 3.0 }
  local got = ms.data_sink(function(a, b) return a * b + w end, { { x, x }, { x, w }, { w, w }, { x, x } },
    { sink_size = 8, collect = true })()
  for i, v in ipairs { 11.0, 8.0, 6.0, 11.0, 11.0, 8.0, 6.0, 11.0 } do equal(got[i]:item(), v) end
end)

test("random numbers follow one another as in a loop", function()
  local function step(x) return x + ops.randn { 2 } end
  ms.set_seed(5)
  local expected = {}
  for i = 1, 5 do expected[i] = step(1) end
  ms.set_seed(5)
  equal(ms.data_sink(step, { 1 }, { sink_size = 5, collect = true })(), expected)
end)

test("a function feeds the steps", function()
  local i = 0
  local function feed()
    i = i + 1
    if i <= 5 then return ms.tensor { i + 0.0 }, i end
  end
  local last, n = ms.data_sink(function(x, k) return x * 2, k end, feed, -1)()
  equal(last, ms.tensor { 10.0 })
  equal(n, 5)
  i = 0
  equal(ms.data_sink(function(x) return x end, feed, { sink_size = 3 })(), ms.tensor { 3.0 })
  equal(i, 3)
  i = 0
  fails("the dataset ended after 5 of 9 steps", function() ms.data_sink(function(x) return x end, feed, { sink_size = 9 })() end)
  local dataset = { create_tuple_iterator = function()
    local k = 0
    return function()
      k = k + 1
      if k <= 3 then return { k, k * 10 } end
    end
  end }
  equal(ms.data_sink(function(a, b) return a + b end, dataset, { sink_size = 7, collect = true })(),
    { 11, 22, 33, 11, 22, 33, 11 })
end)

test("each call goes on with the dataset where the last one stopped; a step is the default", function()
  local function feed_of(list)
    local i = 0
    return function()
      i = i + 1
      return list[i]
    end
  end
  local list = {}
  for i = 1, 5 do list[i] = ms.tensor { i + 0.0 } end
  local ds = ms.dataset.NumpySlicesDataset({ x = ms.tensor { 1.0, 2.0, 3.0, 4.0, 5.0 } }, { shuffle = false }):batch(1)
  for _, source in ipairs { list, ds } do
    local one, two = ms.data_sink(function(x) return x * 10 end, source), ms.data_sink(function(x) return x * 10 end, source, 2)
    for i = 1, 12 do
      equal(one():item(), ((i - 1) % 5 + 1) * 10.0)
      equal(two():item(), ((2 * i - 1) % 5 + 1) * 10.0)
    end
    local all = ms.data_sink(function(x) return x end, source, { sink_size = -1, collect = true })
    for _ = 1, 3 do
      local got = all()
      for i = 1, 5 do equal(got[i]:item(), i + 0.0) end
      equal(#got, 5)
    end
  end
  local fed = ms.data_sink(function(x) return x end, feed_of(list), { sink_size = 2 })
  equal({ fed():item(), fed():item() }, { 2.0, 4.0 })
  fails("the dataset ended after 1 of 2 steps", fed)
  fails("the dataset gives nothing", fed)
  fails("the function takes no arguments", function() fed(1) end)
  local compiled = ms.jit(function(n)
    local sink, sum = ms.data_sink(function(x) return x * 2 end, list, 2), 0
    for _ = 1, n do sum = sum + sink() end
    return sum
  end)
  for n = 1, 4 do
    local sum = 0
    for i = 1, n do sum = sum + ((2 * i - 1) % 5 + 1) * 2.0 end
    equal(compiled(n):item(), sum)
  end
end)

test("a table is gone through once where sink_size is -1; results may be several or none", function()
  local seen = {}
  equal(select("#", ms.data_sink(function(a) seen[#seen + 1] = a end, { 1, 2, 3 }, -1)()), 0)
  equal(seen, { 1, 2, 3 })
  equal(table.pack(ms.data_sink(function(a) return a, nil, a + 1 end, { 1, 2 }, -1)()), { 2, nil, 3, n = 3 })
end)

test("a function that runs loops of steps may be compiled, and differentiated", function()
  local function values(list)
    local numbers = {}
    for i, value in ipairs(list) do numbers[i] = value:item() end
    return numbers
  end
  local batches = { ms.tensor { 1.0 }, ms.tensor { 3.0 } }
  local calls = 0
  local function step(x) return x * 2, x end
  local function train(data, options)
    calls = calls + 1
    return ms.data_sink(step, data, options)()
  end
  local f, options = ms.jit(train), { sink_size = 3, collect = true }
  for i = 1, 6 do
    equal(values(f(batches, options)), { 2.0, 6.0, 2.0 })
    local last, given = f(batches, -1)
    equal({ last:item(), given:item() }, { 6.0, 3.0 })
    equal(calls, 2 * i)
  end
  local compiled = ms.jit(step)
  local g = ms.jit(function(data) return (ms.data_sink(compiled, data, -1)()) end)
  for i = 1, 6 do equal(g({ ms.tensor { 1.0 * i } }):item(), 2.0 * i) end
  -- A data set and a function as sources; loops that end too early.
  local ds = ms.dataset.NumpySlicesDataset({ x = ms.tensor { 1.0, 2.0 } }, { shuffle = false })
  local over = ms.jit(function(data, n) return ms.data_sink(step, data, { sink_size = n, collect = true })() end)
  for _ = 1, 6 do equal(values(over(ds, 3)), { 2.0, 4.0, 2.0 }) end
  for _ = 1, 4 do
    local k = 0
    local function feed()
      k = k + 1
      if k < 4 then return ms.tensor { 1.0 * k } end
    end
    fails({ "data_sink_test.lua", "the dataset ended after 3 of 9 steps" }, function() over(feed, 9) end)
  end
  -- The losses of the steps have a gradient.
  local slope = ms.grad(function(w)
    local sum = 0
    local sink = ms.data_sink(function(x) return x * w end, { ms.tensor { 1.0 }, ms.tensor { 3.0 } }, { sink_size = -1, collect = true })
    for _, v in ipairs(sink()) do
      sum = sum + v:sum()
    end
    return sum
  end)
  for _ = 1, 4 do equal(slope(ms.tensor(2.0)):item(), 4.0) end
end)

test("errors name the line of the step and leave the function usable", function()
  local bad = ms.jit(function(x)
    if ops.sum(x):item() > 2 then error("too large") end
    return x
  end)
  fails({ "data_sink_test.lua", "too large" }, ms.data_sink(bad, { ms.tensor { 1.0 }, ms.tensor { 3.0 } }, { sink_size = 4 }))
  equal(ms.data_sink(bad, { ms.tensor { 1.0 } }, -1)(), ms.tensor { 1.0 })
  fails("fn must be a function", function() ms.data_sink(3, {}, -1)() end)
  fails("the dataset is an empty table", function() ms.data_sink(print, {}, -1)() end)
  fails("got a tensor", function() ms.data_sink(print, ms.tensor { 1.0 }, -1)() end)
  fails("there is no option 'steps'; there are: collect, sink_size", function() ms.data_sink(print, { 1 }, { steps = 3 })() end)
  fails("sink_size must be a positive integer, or -1 for once through the dataset",
    function() ms.data_sink(print, { 1 }, { sink_size = 0 }) end)
  fails("the dataset gives nothing", function() ms.data_sink(print, function() end, -1)() end)
end)

t.finish()
