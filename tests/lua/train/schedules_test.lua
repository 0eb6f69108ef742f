-- Learning-rate schedules: cells and lists against their formulas, schedulers against what PyTorch gives (reference.json), and
-- optimizers that take them.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn = ms.nn
local schedulers = ms.experimental.optim.lr_scheduler

local file <close> = assert(io.open("tests/lua/train/reference.json"))
local reference = ms.json.decode(file:read("a"))

local steps = { 0, 1, 2, 3, 4, 5, 7, 8, 9, 100 }

-- The schedule and its formula, at numbers and at tensors.
local function compare(schedule, formula)
  for _, step in ipairs(steps) do
    t.near(schedule(step), formula(step), 1e-12)
    t.near(schedule(ms.tensor(step)), formula(step), 1e-5)
  end
end

t.test("schedules follow their formulas", function()
  compare(nn.CosineDecayLR(0.01, 0.1, 5), function(i) return 0.01 + 0.045 * (1 + math.cos(math.pi * math.min(i, 5) / 5)) end)
  compare(nn.ExponentialDecayLR(0.1, 0.9, 4), function(i) return 0.1 * 0.9 ^ (i / 4) end)
  compare(nn.ExponentialDecayLR(0.1, 0.9, 4, true), function(i) return 0.1 * 0.9 ^ (i // 4) end)
  compare(nn.NaturalExpDecayLR(0.1, 0.9, 4), function(i) return 0.1 * math.exp(-0.9 * i) end)
  compare(nn.NaturalExpDecayLR(0.1, 0.9, 4, true), function(i) return 0.1 * math.exp(-0.9 * (i // 4 * 4)) end)
  compare(nn.InverseDecayLR(0.1, 0.5, 4), function(i) return 0.1 / (1 + 0.5 * i / 4) end)
  compare(nn.InverseDecayLR(0.1, 0.5, 4, true), function(i) return 0.1 / (1 + 0.5 * (i // 4)) end)
  compare(nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5), function(i) return 0.09 * (1 - math.min(i, 4) / 4) ^ 0.5 + 0.01 end)
  compare(nn.PolynomialDecayLR(0.1, 0.01, 4, 2, true), function(i)
    local whole = 4 * math.max(1, math.ceil(i / 4))
    return 0.09 * (1 - i / whole) ^ 2 + 0.01
  end)
  compare(nn.WarmUpLR(0.1, 4), function(i) return 0.1 * math.min(i, 4) / 4 end)
end)

t.test("lists follow their formulas", function()
  local function list(f)
    local values = {}
    for i = 0, 8 do values[i + 1] = f(i // 2) end
    return values
  end
  t.near(nn.piecewise_constant_lr({ 2, 5, 6 }, { 0.1, 0.05, 0.01 }), { 0.1, 0.1, 0.05, 0.05, 0.05, 0.01 }, 0)
  t.near(nn.exponential_decay_lr(0.1, 0.9, 9, 2, 3), list(function(e) return 0.1 * 0.9 ^ (e / 3) end), 1e-12)
  t.near(nn.exponential_decay_lr(0.1, 0.9, 9, 2, 3, true), list(function(e) return 0.1 * 0.9 ^ (e // 3) end), 1e-12)
  t.near(nn.natural_exp_decay_lr(0.1, 0.9, 9, 2, 3), list(function(e) return 0.1 * math.exp(-0.9 * e) end), 1e-12)
  t.near(nn.natural_exp_decay_lr(0.1, 0.9, 9, 2, 3, true), list(function(e) return 0.1 * math.exp(-0.9 * (e // 3 * 3)) end), 1e-12)
  t.near(nn.inverse_decay_lr(0.1, 0.5, 9, 2, 3), list(function(e) return 0.1 / (1 + 0.5 * e / 3) end), 1e-12)
  t.near(nn.inverse_decay_lr(0.1, 0.5, { total_step = 9, step_per_epoch = 2, decay_epoch = 3, is_stair = true }),
    list(function(e) return 0.1 / (1 + 0.5 * (e // 3)) end), 1e-12)
  t.near(nn.cosine_decay_lr(0.01, 0.1, 9, 2, 3), list(function(e)
    return 0.01 + 0.045 * (1 + math.cos(math.pi * math.min(e, 3) / 3))
  end), 1e-12)
  t.near(nn.polynomial_decay_lr(0.1, 0.01, 9, 2, 3, 0.5), list(function(e)
    return 0.09 * (1 - math.min(e, 3) / 3) ^ 0.5 + 0.01
  end), 1e-12)
  t.near(nn.polynomial_decay_lr(0.1, 0.01, 9, 2, 3, 2, true), list(function(e)
    return 0.09 * (1 - e / (3 * math.max(1, math.ceil(e / 3)))) ^ 2 + 0.01
  end), 1e-12)
  t.near(nn.warmup_lr(0.1, 9, 2, 3), list(function(e) return 0.1 * math.min(e, 3) / 3 end), 1e-12)
  t.near(nn.warmup_lr(0.1, 9, 2, 0), list(function() return 0.1 end), 0)
end)

local function two_groups()
  local a, b = ms.Parameter({ 0.0 }, "a"), ms.Parameter({ 0.0 }, "b")
  return nn.optim.SGD({ { params = { a }, lr = 0.5 }, { params = { b } } }, 0.1)
end

t.test("schedulers give PyTorch's rates", function()
  for _, case in ipairs(reference.schedulers) do
    local optimizer = two_groups()
    local arguments = { optimizer = optimizer }
    for key, value in pairs(case.arguments) do arguments[key] = value end
    local scheduler = schedulers[case.name](arguments)
    for i, rates in ipairs(case.rates) do
      if i > 1 then scheduler:step() end
      t.near(optimizer:get_lr(), rates, 1e-12)
      t.near(scheduler:get_last_lr(), rates, 1e-12)
    end
  end
end)

t.test("schedulers with functions", function()
  local optimizer = two_groups()
  local scheduler = schedulers.LambdaLR(optimizer, { function(e) return 0.5 ^ e end, function(e) return 1 + e end })
  scheduler:step()
  scheduler:step()
  t.near(optimizer:get_lr(), { 0.125, 0.3 }, 1e-12)
  optimizer = two_groups()
  scheduler = schedulers.MultiplicativeLR(optimizer, function(e) return 1 / e end)
  scheduler:step()
  scheduler:step()
  scheduler:step()
  t.near(optimizer:get_lr(), { 0.5 / 6, 0.1 / 6 }, 1e-12)
  optimizer = two_groups()
  scheduler = schedulers.CyclicLR(optimizer, 0.0, 1.0, { step_size_up = 2, scale_fn = function(cycle) return 1 / cycle end })
  for _ = 1, 6 do scheduler:step() end
  t.near(optimizer:get_lr(), { 0.5, 0.5 }, 1e-12)
end)

t.test("a plateau of a figure lowers the rate as PyTorch's does", function()
  for _, case in ipairs(reference.plateau) do
    local optimizer = two_groups()
    local arguments = { optimizer = optimizer }
    for key, value in pairs(case.arguments) do arguments[key] = value end
    local scheduler = schedulers.ReduceLROnPlateau(arguments)
    for i, loss in ipairs(case.losses) do
      scheduler:step(i % 2 == 0 and loss or ms.tensor(loss, ms.float64))
      t.near(optimizer:get_lr(), case.rates[i], 1e-12)
    end
  end
end)

t.test("schedulers one after the other", function()
  local optimizer = two_groups()
  local first = schedulers.ConstantLR(optimizer, { factor = 0.1, total_iters = 2 })
  local second = schedulers.ExponentialLR(optimizer, 0.9)
  local scheduler = schedulers.SequentialLR(optimizer, { first, second }, { 3 })
  for i, rates in ipairs(reference.sequential) do
    if i > 1 then scheduler:step() end
    t.near(optimizer:get_lr(), rates, 1e-12)
  end
end)

t.test("a scheduler goes on from its state", function()
  for _, make in ipairs {
    function(o) return schedulers.CosineAnnealingLR(o, 7) end,
    function(o) return schedulers.MultiStepLR(o, { 2, 4, 6 }) end,
    function(o)
      return schedulers.SequentialLR(o, { schedulers.LinearLR(o), schedulers.ExponentialLR(o, 0.5) }, { 2 })
    end,
  } do
    local optimizer, other = two_groups(), two_groups()
    local scheduler, again = make(optimizer), make(other)
    for _ = 1, 3 do scheduler:step() end
    again:load_state_dict(scheduler:state_dict())
    t.equal(other:get_lr(), optimizer:get_lr())
    for _ = 1, 3 do
      scheduler:step()
      again:step()
      t.equal(other:get_lr(), optimizer:get_lr())
    end
  end
end)

local function run(make, count)
  local p = ms.Parameter({ 0.0, 0.0 }, "p")
  local optimizer = make { p }
  local step = ms.value_and_grad(function(x) return (p * x):sum() end, nil, { p })
  for _ = 1, count do
    local _, grads = step(ms.tensor { 1.0, 2.0 })
    optimizer(grads)
  end
  return p:tolist(), optimizer
end

t.test("optimizers take schedules, lists and functions", function()
  local function near(rate, sum)
    t.near(run(function(p) return nn.SGD(p, rate) end, 4), { -sum, -2 * sum }, 1e-6)
  end
  near(nn.ExponentialDecayLR(0.1, 0.5, 1), 0.1875)
  near(nn.WarmUpLR(0.1, 2), 0.25)
  near(nn.cosine_decay_lr(0.0, 0.5, 4, 1, 2), 0.75)
  near(nn.piecewise_constant_lr({ 1, 2 }, { 0.5, 0.25 }), 1.25)
  local Mine = nn.LearningRateSchedule:extend("Mine")
  function Mine:construct(step) return ms.tensor(0.5) * ms.ops.pow(0.5, step) end -- luacheck: ignore 212
  near(Mine(), 0.9375)
  local _, optimizer = run(function(p) return nn.SGD(p, nn.WarmUpLR(0.1, 4)) end, 2)
  t.near(optimizer:get_lr(), 0.05)
end)

t.test("weight decay may change with the step", function()
  local p = ms.Parameter({ 1.0 }, "p")
  local optimizer = nn.SGD({ p }, { learning_rate = 0.5, weight_decay = nn.WarmUpLR(0.2, 2) })
  for _, expected in ipairs { 1.0, 0.95, 0.855 } do
    optimizer { ms.tensor { 0.0 } }
    t.near(p, { expected }, 1e-6)
  end
end)

t.test("groups: rate, decay, centralised gradients and the order of gradients", function()
  local a, b, c = ms.Parameter({ 1.0 }, "a"), ms.Parameter({ { 1.0, 1.0 }, { 1.0, 1.0 } }, "b"), ms.Parameter({ 1.0, 2.0 }, "c")
  local optimizer = nn.SGD({
    { params = { b, c }, lr = nn.ExponentialDecayLR(1.0, 0.5, 1), grad_centralization = true },
    { params = { a }, weight_decay = 0.5 },
    { order_params = { a, b, c } },
  }, 0.1)
  t.equal(#optimizer.parameters, 3)
  assert(rawequal(optimizer.parameters[1], a) and rawequal(optimizer.parameters[3], c))
  optimizer { ms.tensor { 1.0 }, ms.tensor { { 1.0, 3.0 }, { 0.0, 1.0 } }, ms.tensor { 1.0, 3.0 } }
  t.near(a, { 0.85 }, 1e-6)
  t.near(b, { { 2.0, 0.0 }, { 1.5, 0.5 } }, 1e-6)
  t.near(c, { 0.0, -1.0 }, 1e-6)
  t.equal(optimizer:get_lr(), { 0.5, 0.1 })
end)

t.test("what is wrong is named", function()
  local p = { ms.Parameter({ 1.0 }, "p") }
  t.fails({ "CosineDecayLR", "min_lr must be less than max_lr, got 0.2 and 0.1" }, nn.CosineDecayLR, 0.2, 0.1, 5)
  t.fails({ "ExponentialDecayLR", "decay_steps must be positive, got 0" }, nn.ExponentialDecayLR, 0.1, 0.9, 0)
  t.fails({ "WarmUpLR", "learning_rate must not be negative, got -0.1" }, nn.WarmUpLR, -0.1, 3)
  t.fails({ "WarmUpLR", "global_step must be a number or a tensor, got the string 'x'" }, function() return nn.WarmUpLR(0.1, 3)("x") end)
  t.fails({ "PolynomialDecayLR", "there is no argument 'powr'", "did you mean 'power'?" }, nn.PolynomialDecayLR, 0.1, 0.0, 3, { powr = 1 })
  t.fails({ "piecewise_constant_lr", "as many elements, got 2 and 1" }, nn.piecewise_constant_lr, { 1, 2 }, { 0.1 })
  t.fails({ "piecewise_constant_lr", "milestone[2] is 2 after 2" }, nn.piecewise_constant_lr, { 2, 2 }, { 0.1, 0.1 })
  t.fails({ "exponential_decay_lr", "missing argument 3: total_step" }, nn.exponential_decay_lr, 0.1, 0.9)
  t.fails({ "StepLR", "optimizer must be an optimizer, got 3" }, schedulers.StepLR, 3, 2)
  t.fails({ "StepLR", "changes with the step already", "hint: give the optimizer a number" }, schedulers.StepLR,
    nn.SGD(p, nn.WarmUpLR(0.1, 3)), 2)
  t.fails({ "CyclicLR", "max_lr must be a number or a list of 1" }, schedulers.CyclicLR, nn.SGD(p, 0.1), 0.1, { 1, 2 })
  t.fails({ "ReduceLROnPlateau", "factor must be less than 1" }, schedulers.ReduceLROnPlateau, nn.SGD(p, 0.1), { factor = 1.0 })
  t.fails({ "LambdaLR", "lr_lambda must be a function" }, schedulers.LambdaLR, nn.SGD(p, 0.1), 3)
  t.fails({ "SequentialLR", "milestones must be a list of 0 epochs" }, schedulers.SequentialLR, nn.SGD(p, 0.1),
    { schedulers.StepLR(nn.SGD(p, 0.1), 2) }, { 3 })
  t.fails({ "SGD", "group 1 has no option 'weigth_decay'", "did you mean 'weight_decay'?" }, nn.SGD,
    { { params = p, weigth_decay = 1 } }, 0.1)
  t.fails({ "SGD", "the parameter p is not in order_params" }, nn.SGD,
    { { params = p }, { order_params = { ms.Parameter({ 1.0 }, "q") } } }, 0.1)
  t.fails({ "SGD", "order_params stands alone" }, nn.SGD, { { params = p, order_params = p } }, 0.1)
end)

t.finish()
