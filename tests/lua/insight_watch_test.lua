-- ms.insight.watch: each condition of a watchpoint finds a fault that is planted in a training, at its first step, its node and its line;
-- steps, nodes and stops; where the first NaN comes from; dumps.
-- Eager mode only: every training runs as a compiled function, too.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
local insight = ms.insight


-- The line behind which a mark stands in this file.
local lines = {}
do
  local number = 0
  for text in io.lines "tests/lua/insight_watch_test.lua" do
    number = number + 1
    local mark = text:match "%-%- mark: (%w+)$"
    if mark then lines[mark] = number end
  end
end

local function is_line(place, mark) return place:match ":(%d+)$" == tostring(lines[mark]) end

-- A training with two layers. fault(step) gives numbers that plant a fault: `input` scales what comes in, `middle` is added to what
-- relu gets, `last` scales the last result, `log` turns on a logarithm, `seed` scales the loss (its gradients), `rate` is the rate.
local function training(fault, compiled)
  ms.set_seed(3)
  local first, second = nn.Dense(4, 8), nn.Dense(8, 2)
  local params = { first.weight, first.bias, second.weight, second.bias }
  for i, name in ipairs { "first.weight", "first.bias", "second.weight", "second.bias" } do params[i].name = name end
  local optimizer = nn.Momentum(params, 0.01, 0.0)
  local x = ops.randn { 6, 4 }
  local plants = {}
  for name, value in pairs { input = 1.0, middle = 0.0, last = 1.0, negative = 0.0, seed = 1.0 } do plants[name] = ms.tensor(value) end
  local function forward(given)
    local hidden = first(given * plants.input) -- mark: first
    local active = ops.relu(hidden + plants.middle) -- mark: relu
    local out = second(active) * plants.last -- mark: last
    local safe = ops.log(ops.square(out) + 1.0 - plants.negative) -- mark: log
    return (safe * plants.seed):sum() -- mark: loss
  end
  local gradient = ms.value_and_grad(forward, nil, params)
  local function step(given)
    local loss, grads = gradient(given)
    optimizer(grads) -- mark: update
    return loss
  end
  if compiled then step = ms.jit(step) end
  local number = 0
  return {
    params = params,
    optimizer = optimizer,
    prepare = function()
      number = number + 1
      for name, value in pairs { input = 1.0, middle = 0.0, last = 1.0, negative = 0.0, seed = 1.0 } do plants[name]:fill_(value) end
      for name, value in pairs(fault and fault(number) or {}) do
        if plants[name] then plants[name]:fill_(value) elseif name == "rate" then optimizer:set_lr(value) end
      end
    end,
    step = function() return step(x) end,
  }
end

local function hits_of(points, fault, compiled, steps, before)
  local train = training(fault, compiled)
  if before then before(train) end
  -- The function is compiled by the time of the watch.
  local watch = insight.watch(train.step, { points = points, on_hit = function() end })
  for _ = 1, steps or 4 do
    train.prepare()
    watch()
  end
  return watch.hits
end

local function at(step, plants) return function(now) return now >= step and plants or nil end end

-- Condition, watchpoint, what is planted in step 3, the hit's step, its node, its line, its tensor.
local faults = {
  { "weight_overflow", { "WO" }, at(3, { seed = 1 / 0 }), 3, "apply_momentum%-0", "update", "parameter" },
  { "gradient_exploding", { "GE" }, at(3, { seed = 1 / 0 }), 3, nil, nil, "gradient of" },
  { "tensor_overflow", { "TO" }, at(3, { negative = 1e6 }), 3, "log%-0", "log", "result 0" },
  { "weight_too_large", { "WL", abs_mean_gt = 50 }, at(3, { seed = 1e6 }), 3, "apply_momentum%-0", "update", "parameter" },
  { "tensor_too_large", { "tensor_too_large", max_gt = 1e5, mean_gt = 1e9 }, at(3, { last = 1e8 }), 3, "mul%-1", "last", "result 0" },
  { "gradient_too_large", { "GL", abs_mean_gt = 1e5 }, at(3, { seed = 1e9 }), 3, nil, nil, "gradient of" },
  { "weight_too_small", { "WS", min_lt = -50 }, at(3, { seed = 1e6 }), 3, "apply_momentum%-0", "update", "parameter" },
  { "tensor_too_small", { "TS", abs_mean_lt = 1e-8, nodes = { "mul" } }, at(3, { last = 1e-12 }), 3, "mul%-1", "last", "result 0" },
  { "gradient_vanishing", { "GV", abs_mean_lt = 1e-9 }, at(3, { seed = 1e-15 }), 3, nil, nil, "gradient of" },
  { "tensor_all_zero", { "TZ" }, at(3, { middle = -1e6 }), 3, "relu%-0", "relu", "result 0" },
  { "weight_not_changed", { "WNC" }, at(3, { rate = 1e-30 }), 3, "apply_momentum%-0", "update", "parameter" },
  { "weight_change_too_large", { "WCL" }, at(3, { rate = 1e3 }), 3, "apply_momentum%-0", "update", "parameter" },
  { "weight_change_too_small", { "WCS" }, at(3, { rate = 1e-12 }), 3, "apply_momentum%-0", "update", "parameter" },
  { "activation_range", { "AR", range_percentage_lt = 1, range_start_inclusive = 1e-30 }, at(3, { middle = -1e6 }), 3, "relu%-0", "relu",
    "result 0" },
  { "tensor_range", { "TR", max_min_gt = 1e5 }, at(3, { last = 1e8 }), 3, "mul%-1", "last", "result 0" },
}

for _, compiled in ipairs { false, true } do
  local how = compiled and " in a compiled step" or ""
  t.test("planted faults are found at their step, node and line" .. how, function()
    for _, fault in ipairs(faults) do
      local name, point, plant, step, node, mark, tensor = table.unpack(fault)
      local hits = hits_of({ point }, plant, compiled)
      local hit = hits[1]
      if not hit then error(name .. ": nothing was found") end
      local found = ("%s: step %d, node %s, %s, %s"):format(name, hit.step, hit.node and hit.node.name, hit.place, hit.tensor.name)
      if hit.condition ~= name or hit.step ~= step then error(found) end
      if node and not hit.node.name:find(node .. "$") then error(found) end
      if mark and not is_line(hit.place, mark) then error(found) end
      if not hit.tensor.name:find(tensor, 1, true) then error(found) end
      if not hit.place:find("insight_watch_test.lua:", 1, true) then error(found) end
    end
  end)

  t.test("weights that begin as zeros" .. how, function()
    local hits = hits_of({ "weight_initialization" }, nil, compiled, 2, function(train) train.params[3]:fill_(0.0) end)
    t.equal({ #hits, hits[1].step, hits[1].tensor.name, is_line(hits[1].place, "last") }, { 1, 1, "parameter second.weight", true })
    hits = hits_of({ { "WI", max_gt = 5 } }, nil, compiled, 2, function(train) train.params[1]:fill_(6.0) end)
    t.equal({ #hits, hits[1].tensor.name, is_line(hits[1].place, "first") }, { 1, "parameter first.weight", true })
  end)

  t.test("a hundred healthy steps have no hit of the recommended watchpoints" .. how, function()
    t.equal(#hits_of(nil, nil, compiled, 100), 0)
  end)

  t.test("watching changes no result" .. how, function()
    local plain, watched = training(nil, compiled), training(nil, compiled)
    local watch = insight.watch(watched.step, { on_hit = function() end })
    for _ = 1, 6 do
      plain.prepare()
      watched.prepare()
      t.near(watch():item(), plain.step():item(), 1e-5)
    end
  end)

  t.test("the first NaN of a forward value, a gradient and an update" .. how, function()
    local function origin_of(plant)
      local train = training(plant, compiled)
      local function steps()
        for _ = 1, 4 do
          train.prepare()
          train.step()
        end
      end
      return insight.first_nan(steps)
    end
    local forward = origin_of(at(3, { negative = 1e6 }))
    t.equal({ forward.node.operator, is_line(forward.place, "log"), forward.kind }, { "log", true, "result" })
    t.equal(forward.operands[1].value < 0, true)
    t.equal(forward.upstream[1].operator, "sub")
    local update = origin_of(at(3, { rate = 1e39 }))
    t.equal({ update.node.operator, is_line(update.place, "update"), update.kind }, { "apply_momentum", true, "update" })
    t.equal(update.operands[1].nan + update.operands[1].positive_infinity, 0)
    t.equal(origin_of(nil), nil)
    -- The logarithm of the smallest numbers is finite, its derivative is not.
    local g = ms.grad(function(x) return ops.log(x):sum() end)
    if compiled then g = ms.jit(g) end
    local gradient = insight.first_nan(function() return g(ms.tensor { 4.0, 1e-39 }) end)
    t.equal({ gradient.element, gradient.place:find "insight_watch_test" ~= nil }, { 1, true })
    local outside = insight.first_nan(function(x) return ops.exp(x) end, ms.tensor { 0 / 0, 1.0 })
    t.equal({ outside.kind, outside.node.name }, { "outside", "exp-0" })
    t.equal(tostring(outside):find("came in with", 1, true) ~= nil, true)
  end)
end

t.test("the overflow flag of the simulated Ascend", function()
  ms.ascend.configure { overflow = "saturation" }
  for _, compiled in ipairs { false, true } do
    ms.ascend.overflowed()
    local x = ops.full({ 4 }, 60000.0):astype(ms.float16):to "Ascend"
    local scale = ops.full({ 4 }, 1.0):astype(ms.float16):to "Ascend"
    local function step()
      local y = x * scale
      return y + y * 0.0
    end
    if compiled then step = ms.jit(step) end
    local watch = insight.watch(step, { points = { "operator_overflow" }, on_hit = function() end })
    for i = 1, 3 do
      if i == 3 then scale:fill_(4.0) end
      watch()
    end
    t.equal({ #watch.hits >= 1, watch.hits[1].step, watch.hits[1].node.name, watch.hits[1].id }, { true, 3, "mul-0", "OO" })
  end
  ms.ascend.overflowed()
end)

t.test("stops, steps and nodes", function()
  local train = training(at(2, { negative = 1e6 }))
  train.prepare()
  local watch = insight.watch(train.step, { points = { "tensor_overflow" }, action = "stop" })
  watch()
  train.prepare()
  t.fails({ "watch: step 2: tensor_overflow at log-0", "insight_watch_test.lua:" .. lines.log, "NaN" }, watch)
  t.fails({ "it has ended" }, watch)
  local seen = {}
  train = training()
  local commands = { "node", "node", "step", "terminate" }
  watch = insight.watch(train.step, {
    begin = "node",
    control = function(w, stopped)
      seen[#seen + 1] = ("%s %d %s"):format(stopped.reason, stopped.step, stopped.node.name)
      if #seen == 2 then
        t.equal({ #w:tensors(), w:node().results[1].count, #w:upstream(stopped.node.name) }, { 1, 48, 1 })
        t.equal(w:node().inputs[1].node, "mul-0")
      end
      return table.remove(commands, 1), 1
    end,
  })
  train.prepare()
  t.fails({ "ended by the user in step 1" }, function() for _ = 1, 3 do watch() end end)
  t.equal({ seen[1], seen[2], #seen }, { "node 1 mul-0", "node 1 first/dense-0", 4 })
end)

t.test("the terminal as front end", function()
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "w"))
  file:write [[
    local ms = require "lunaria"
    local w = ms.Parameter(ms.tensor { 4.0, 0.0 }, "w")
    local function f(x) return ms.ops.log(w * x):sum() end
    local step = ms.insight.watch(f, { points = { "tensor_overflow" }, control = "terminal", keep = { "mul" } })
    step(1.0)
    step(2.0)
    print "not reached"
  ]]
  file:close()
  local answers = "i\\nu\\nl\\nk mul-0\\nh\\ns 1\\nn\\nk mul-0\\nq\\n"
  local pipe = assert(io.popen(("printf '%s' | '%s' '%s' 2>&1"):format(answers, arg[-1], path)))
  local said = pipe:read "a"
  pipe:close()
  os.remove(path)
  for _, part in ipairs { "step 1: tensor_overflow at log-0 (", ":3)", "1 -Inf", "watch> log-0", "from mul-0", "has no step before",
    "to the next hit", "step 2", "1 of 2 elements differ, by 4 at most", "ended by the user in step 2" } do
    if not said:find(part, 1, true) then error(("%q is not in: %s"):format(part, said)) end
  end
  t.equal(said:find("not reached", 1, true), nil)
end)

t.test("a tensor against the step before", function()
  local train = training()
  local watch = insight.watch(train.step, { points = {}, keep = { "first/dense-0" } })
  train.prepare()
  watch()
  t.fails({ "has no step before" }, function() watch:compare("first/dense-0") end)
  train.prepare()
  watch()
  local change = watch:compare("first/dense-0", { rtol = 0, atol = 0 })
  t.equal({ change.count, change.unequal > 0, change.largest > 0, change.now.count }, { 48, true, true, 48 })
  t.equal(watch:compare("first/dense-0", 1e3).unequal, 0)
  t.equal(watch:compare("second.weight", { rtol = 0, atol = 0 }).unequal > 0, true)
  t.fails({ "the string 'nothing' is not kept; there are:" }, function() watch:compare "nothing" end)
end)

t.test("a callback of Model", function()
  local net = nn.Dense(2, 1)
  local batches = { { ms.ones { 4, 2 }, ms.zeros { 4, 1 } }, { ms.full({ 4, 2 }, 0 / 0), ms.zeros { 4, 1 } } }
  local model = ms.Model(net, nn.MSELoss(), nn.SGD(net:trainable_params(), 0.1))
  local watch = insight.watch { points = { "tensor_overflow" }, on_hit = function() end }
  t.fails({ "the loss is" }, function() model:train(1, batches, watch) end)
  t.equal({ watch.hits[1].step, watch.hits[1].node.operator }, { 2, "dense" })
  t.equal(tostring(watch):find "2 steps" ~= nil, true)
  watch:close()
  local other = ms.Model(net, nn.MSELoss(), nn.SGD(net:trainable_params(), 0.1))
  local stops = insight.watch { points = { "tensor_overflow" }, action = "stop" }
  t.fails({ "watch: step 2: tensor_overflow at dense-0" }, function() other:train(1, batches, stops) end)
  t.equal(ops.exp(ms.zeros { 2 }):sum():item(), 2.0)
end)

t.test("statistics", function()
  for _, dtype in ipairs { ms.float32, ms.float64, ms.float16, ms.bfloat16 } do
    local s = insight.statistics(ms.tensor({ { 0, 2, -4 }, { 1 / 0, -1 / 0, 0 / 0 } }, dtype))
    t.equal({ s.count, s.zeros, s.nan, s.positive_infinity, s.negative_infinity, s.min, s.max, s.abs_mean },
      { 6, 1, 1, 1, 1, -4.0, 2.0, 2.0 })
  end
  t.equal(insight.statistics(ms.tensor({ 3, 5 }, ms.int32)).mean, 4.0)
  t.equal(insight.statistics(ms.ones({ 3, 2 }):t()).mean, 1.0)
  t.equal(insight.statistics(ms.zeros { 0 }).count, 0)
end)

t.test("dumps are looked at later", function()
  local folder = os.tmpname()
  os.remove(folder)
  local train = training(at(3, { negative = 1e6, seed = 1 / 0 }))
  local dump = insight.dump(train.step, folder, { network = "two" })
  for _ = 1, 3 do
    train.prepare()
    dump()
  end
  local analyzer = insight.DumpAnalyzer(folder)
  t.equal({ #analyzer:get_iterations(), #analyzer:get_ranks() }, { 3, 1 })
  t.equal({ #analyzer:select_nodes("^log%-%d$", { use_regex = true }), #analyzer:select_nodes "LOG",
    #analyzer:select_nodes("LOG-", { case_sensitive = false }) }, { 1, 0, 1 })
  t.equal(#analyzer:select_nodes(":" .. lines.relu, { select_by = "code_stack" }) >= 2, true)
  local logs = analyzer:select_tensors "log-0"
  t.equal({ #logs, logs[3].iteration, logs[1]:value().size, logs[3]:statistics().nan }, { 3, 3, 12, 12 })
  local inputs, outputs = analyzer:get_input_nodes(logs[1].node), analyzer:get_output_nodes(logs[1].node)
  t.equal({ inputs[1].name, outputs[1].operator }, { "sub-0", "mul" })
  local affected = analyzer:list_affected_nodes(logs[1])
  t.equal(affected[1].operator, "mul")
  local hits = analyzer:check_watchpoints { "tensor_overflow", "weight_not_changed", { "GE" } }
  local found = {}
  for _, hit in ipairs(hits) do found[hit.condition] = found[hit.condition] or hit end
  t.equal({ found.tensor_overflow.iteration, found.tensor_overflow.node.name, is_line(found.tensor_overflow.place, "log") },
    { 3, "log-0", true })
  t.equal({ found.gradient_exploding.iteration, found.weight_not_changed == nil }, { 3, true })
  -- A line is named by the end of its file's path, as for watchpoints of a training.
  local short = found.tensor_overflow.place:match "[^/]*$"
  t.equal(#analyzer:check_watchpoints { { "tensor_overflow", nodes = { short } } } >= 1, true)
  local csv = folder .. "/figures.csv"
  t.equal(#analyzer:summary_statistics(logs, csv), 3)
  local file = assert(io.open(csv))
  t.equal(file:read "l", "name,iteration,slot,count,min,max,mean,abs_mean,zeros,nan,positive_infinity,negative_infinity")
  file:close()
  os.execute(("rm -r '%s'"):format(folder))
  t.fails({ "DumpAnalyzer" }, function() insight.DumpAnalyzer(folder) end)
end)

t.test("what is done about a hit may differentiate within a gradient", function()
  local square = ms.grad(function(v) return (v * v):sum() end)
  local gradient = ms.grad(function(x) return (ops.log(x) * x * ops.exp(x)):sum() end)
  local x, calls = ms.tensor { 1.0, 2.0 }, 0
  local step = insight.watch(gradient, { points = { { "tensor_too_large", max_gt = -1e30 } }, on_hit = function()
    calls = calls + 1
    t.equal(square(ms.ones(2)):tolist(), { 2.0, 2.0 })
  end })
  for _ = 1, 3 do t.equal(step(x):tolist(), gradient(x):tolist()) end
  t.equal(calls, #step:nodes())
end)

t.test("hits stand in the files of a training", function()
  local folder = os.tmpname()
  os.remove(folder)
  local record = ms.train.SummaryRecord(folder)
  record:add_value("scalar", "loss", 0.5)
  local options = { points = { "tensor_overflow" }, on_hit = function() end, record = record }
  local step = insight.watch(function(x) return ms.ops.log(x) end, options)
  step(ms.ones(2))
  step(ms.zeros(2))
  record:record(7)
  record:close()
  local found = insight.read(folder)
  local text = found.texts["watch/tensor_overflow"][1]
  t.equal(text.step, step.hits[1].step)
  t.equal(text.value:find("tensor_overflow at log-0", 1, true) ~= nil and text.value:find("2 -Inf", 1, true) ~= nil, true)
  t.equal(found.scalars.loss.step[0]:item(), 7)
  os.execute(("rm -r '%s'"):format(folder))
end)

t.test("mistakes say what is wrong", function()
  t.fails({ "record must be a SummaryRecord" }, function() insight.watch(function() end, { record = "runs" }) end)
  local f = function() end
  t.fails({ "there is no condition 'tensor_overflo'", "did you mean 'tensor_overflow'?" },
    function() insight.watch(f, { points = { "tensor_overflo" } }) end)
  t.fails({ "tensor_too_large needs a bound: one of abs_mean_gt, max_gt, min_gt, mean_gt" },
    function() insight.watch(f, { points = { "TL" } }) end)
  t.fails({ "gradient_too_large has no parameter 'max_lt'" }, function() insight.watch(f, { points = { { "GL", max_lt = 1 } } }) end)
  t.fails({ "max_gt must be a number, got the string '1'" }, function() insight.watch(f, { points = { { "GL", max_gt = "1" } } }) end)
  t.fails({ "needs range_start_inclusive" }, function() insight.watch(f, { points = { { "TR", range_percentage_lt = 1 } } }) end)
  t.fails({ "a watchpoint is the name of a condition" }, function() insight.watch(f, { points = { 3 } }) end)
  t.fails({ "there is no option 'actions'" }, function() insight.watch(f, { actions = "stop" }) end)
  t.fails({ "action must be \"stop\" or \"log\"" }, function() insight.watch(f, { action = "halt" }) end)
  t.fails({ "watch: a function is expected, got 3" }, function() insight.watch(3) end)
  t.fails({ "first_nan: a function is expected" }, function() insight.first_nan(3) end)
  t.fails({ "a step is under way already" }, function()
    local watch = insight.watch { points = {} }
    watch:begin_step()
    watch:begin_step()
  end)
  t.equal(#insight.conditions(), 17)
end)

t.finish()
