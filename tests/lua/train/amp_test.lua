-- Mixed precision: cells that compute in another dtype, loss scales, steps that overflow, hooks.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops, amp = ms.nn, ms.ops, ms.amp

local halves = { ms.float16, ms.bfloat16 }

local Net = nn.Cell:extend("Net")
function Net:init()
  self.conv = nn.Conv2d(1, 2, 3)
  self.norm = nn.BatchNorm2d(2)
  self.flatten = nn.Flatten()
  self.fc = nn.Dense(32, 3)
  self.scale = ms.Parameter(ms.tensor { 0.5 })
end
function Net:construct(x)
  local y = ops.relu(self.norm(self.conv(x)))
  return self.fc(self.flatten(y)) * self.scale
end

local function network()
  ms.set_seed(7)
  return Net()
end

local x = (function()
  ms.set_seed(2)
  return ms.randn { 4, 1, 4, 4 }
end)()

t.test("a cell computes in the dtype that to_float says, its parameters stay", function()
  for _, dtype in ipairs(halves) do
    local dense = nn.Dense(3, 2):to_float(dtype)
    local input = ms.randn { 5, 3 }
    local y = dense(input)
    t.equal(y.dtype, dtype)
    t.equal(dense.weight.dtype, ms.float32)
    t.equal(y, ops.dense(input:astype(dtype), dense.weight:astype(dtype), dense.bias:astype(dtype)))
    local gradient = ms.grad(function(v) return dense(v):astype(ms.float32):sum() end, nil, dense:trainable_params())
    for _, g in ipairs(gradient(input)) do t.equal(g.dtype, ms.float32) end
    t.near(gradient(input)[2], { 5.0, 5.0 }, 1e-6)
  end
  local labels = ms.tensor { 1, 2 }
  local Pass = nn.Cell:extend("Pass")
  function Pass:construct(a, b, c) return a, b, c end -- luacheck: ignore 212
  local a, b, c = Pass():to_float(ms.float16)(ms.ones { 2 }, labels, "text")
  t.equal({ a.dtype, b.dtype, c }, { ms.float16, ms.int64, "text" })
  -- Tables are gone through; one without such tensors, or one that holds itself, is passed on.
  local list, empty = { ms.ones { 2 }, { h = ms.ones { 2 }, n = 3 }, labels }, { labels }
  empty.own = empty
  local cast, same = Pass():to_float(ms.float16)(list, empty)
  t.equal({ cast[1].dtype, cast[2].h.dtype, cast[2].n, cast[3].dtype }, { ms.float16, ms.float16, 3, ms.int64 })
  t.equal({ list[1].dtype, rawequal(same, empty) }, { ms.float32, true })
end)

-- A cast is no place to write to: what construct writes to is its state, which keeps its dtype. Three steps each.
t.test("a cell in another dtype writes to its parameters", function()
  local one = ms.ones { 1 }
  local ways = {
    method = function(self) self.count:assign(self.count + 1) end,
    operator = function(self) ops.assign_add(self.count, one) end,
    in_place = function(self) self.count:add_(1) end,
    elements = function(self) self.count[0] = self.count[0] + 1 end,
    variable = function(self)
      local c = self.count
      ms.ops.assign_add(c, one)
    end,
    spaces = function(self)
      self . count -- a comment: self.scale:assign(1)
        : set_data (self.count + one)
    end,
    by_name = function(self) self["co" .. "unt"]:assign(self.count + 1) end,
    replaced = function(self) self.weight:assign(self.weight * 2.0) self.count:assign_sub(-one) end,
  }
  for way, write in pairs(ways) do
    for _, dtype in ipairs(halves) do
      local Counts = nn.Cell:extend("Counts")
      function Counts:init()
        self.count = ms.Parameter(ms.tensor { 2048.0 }, "count", false)
        self.scale, self.weight = ms.Parameter(ms.tensor { 0.1 }), ms.Parameter(ms.tensor { 1.0 })
        self.fc = nn.Dense(2, 2)
      end
      Counts.write = write
      function Counts:construct(v)
        self:write()
        return self.fc(v) * self.scale * self.weight
      end
      local plain, cell = Counts(), Counts():to_float(dtype)
      local input = ms.ones { 1, 2 }
      for _ = 1, 3 do
        plain(input)
        t.equal(cell(input).dtype, dtype)
      end
      t.equal({ cell.count:tolist(), cell.weight:tolist() }, { { 2051.0 }, { way == "replaced" and 8.0 or 1.0 } })
      t.equal({ plain.count:tolist(), cell.count.dtype }, { { 2051.0 }, ms.float32 })
      t.equal(plain.weight:tolist(), cell.weight:tolist())
      local step = ms.value_and_grad(function(v) return cell(v):astype(ms.float32):sum() end, nil, cell.fc:trainable_params())
      step(input)
      t.equal(cell.count:tolist(), { 2052.0 })
    end
  end
  -- What is only read is cast as ever, and so is what a mixture of precisions gets by its level.
  local Reads = nn.Cell:extend("Reads")
  function Reads:init() self.seen, self.count = ms.Parameter(ms.ones { 2 }), ms.Parameter(ms.zeros { 1 }, "count", false) end
  function Reads:construct(v)
    ops.assign_add(self.count, one)
    self.dtype = (v * self.seen).dtype
    return v
  end
  local reads = amp.auto_mixed_precision(Reads(), "O3")
  reads(ms.ones { 2 })
  t.equal({ reads.dtype, reads.count:tolist() }, { ms.float16, { 1.0 } })
end)

t.test("a cell in another dtype keeps its own derivative, its hooks and parameters that come later", function()
  local Scaled = nn.Cell:extend("Scaled")
  function Scaled:init() self.scale = ms.Parameter(ms.tensor { 3.0 }) end
  function Scaled:construct(v) return v * self.scale end
  function Scaled:bprop(v, out, cotangent) -- luacheck: ignore 212
    t.equal({ v.dtype, self.scale.dtype }, { ms.float16, ms.float16 })
    return cotangent * 7
  end
  local cell = Scaled():to_float(ms.float16)
  t.equal(cell(ms.ones { 2 }), ms.ones({ 2 }, ms.float16) * 3)
  t.equal(ms.grad(function(v) return cell(v):sum() end)(ms.ones { 2 }):tolist(), { 7.0, 7.0 })

  local Later = nn.Cell:extend("Later")
  function Later:construct(v) return self.scale and v * self.scale or v end
  local later, count = Later():to_float(ms.float16), 0
  t.equal(later(ms.ones { 2 }).dtype, ms.float16)
  later.scale = ms.Parameter(ms.tensor { 2.0 })
  t.equal(later(ms.ones { 2 }), ms.ones({ 2 }, ms.float16) * 2)
  local handle = later:register_forward_hook(function() count = count + 1 end)
  later(ms.ones { 2 })
  handle.remove()
  t.equal({ later(ms.ones { 2 }).dtype, count }, { ms.float16, 1 })
end)

t.test("the levels lower what they say", function()
  local dtypes
  local function run(level, dtype)
    local net = amp.auto_mixed_precision(network(), level, dtype)
    dtypes = {}
    for _, name in ipairs { "conv", "norm", "flatten", "fc" } do
      net[name]:register_forward_pre_hook(function(_, input) dtypes[name] = input.dtype end)
      net[name]:register_forward_hook(function(_, output) dtypes[name .. " gives"] = output.dtype end)
    end
    return net(x)
  end
  local expected = run("O0")
  t.equal(dtypes.conv, ms.float32)
  for _, dtype in ipairs(halves) do
    local margin = dtype == ms.float16 and 5e-3 or 4e-2
    for _, level in ipairs { "O1", "O2", "O3", "auto" } do
      local y = run(level, dtype)
      t.equal(y.dtype, ms.float32)
      t.near(y, expected, margin)
      assert(tostring(y) ~= tostring(expected), level)
    end
    run("O1", dtype)
    t.equal({ dtypes["conv gives"], dtypes["norm gives"], dtypes["fc gives"] }, { dtype, ms.float32, dtype })
    run("O2", dtype)
    t.equal({ dtypes["conv gives"], dtypes["norm gives"], dtypes["fc gives"] }, { dtype, ms.float32, dtype })
  end
  local net = amp.custom_mixed_precision(network(), { nn.Dense })
  t.near(net(x), expected, 5e-3)
  net = amp.custom_mixed_precision(network(), nil, { nn.Conv2d, nn.BatchNorm2d }, ms.bfloat16)
  t.near(net(x), expected, 4e-2)
  assert(#amp.get_white_list() >= 6 and #amp.get_black_list() == 4)
end)

t.test("training in mixed precision comes near that in float32", function()
  local function train(level, dtype)
    local net = network()
    local labels = ms.tensor { 0, 1, 2, 1 }
    local model = ms.Model(net, nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.02), { amp_level = level, amp_dtype = dtype })
    local history = ms.train.History()
    model:train(30, { { x, labels } }, history)
    return history.history.loss
  end
  local plain = train("O0")
  assert(plain[30] < 0.5 * plain[1], plain[30])
  for _, dtype in ipairs(halves) do
    for _, level in ipairs { "O1", "O2", "O3" } do
      local losses = train(level, dtype)
      t.near(losses[1], plain[1], 0.02)
      t.near(losses[30], plain[30], 0.05)
    end
  end
end)

t.test("batch statistics are kept in float32", function()
  local net = amp.auto_mixed_precision(network(), "O3")
  local plain = network()
  net:set_train()
  plain:set_train()
  net(x)
  plain(x)
  t.equal(net.norm.moving_mean.dtype, ms.float32)
  t.near(net.norm.moving_mean, plain.norm.moving_mean, 1e-3)
  assert(net.norm.moving_mean:abs():sum():item() > 0)
end)

t.test("finite or not", function()
  t.equal(amp.all_finite({ ms.ones { 2 }, { ms.zeros { 3 } } }):item(), true)
  t.equal(amp.all_finite({ ms.ones { 2 }, ms.tensor { 1.0, 0 / 0 } }):item(), false)
  t.equal(amp.all_finite(ms.tensor { -1 / 0 }):item(), false)
  t.equal(amp.all_finite({}):item(), true)
end)

t.test("scalers of losses", function()
  local fixed = amp.StaticLossScaler(8.0)
  t.equal(fixed:scale(ms.tensor { 0.5 }), ms.tensor { 4.0 })
  t.equal(fixed:unscale({ ms.tensor({ 4.0 }, ms.float16) })[1], ms.tensor({ 0.5 }, ms.float16))
  fixed:adjust(ms.tensor(false))
  t.equal(fixed.scale_value:item(), 8.0)
  local scaler = amp.DynamicLossScaler(4.0, 2, 3)
  local found = {}
  for i, finite in ipairs { true, true, true, true, false, false, false, true } do
    scaler:adjust(ms.tensor(finite))
    found[i] = scaler.scale_value:item()
  end
  t.equal(found, { 4.0, 4.0, 8.0, 8.0, 4.0, 2.0, 1.0, 1.0 })
  local other = amp.DynamicLossScaler(1.0, 2, 3)
  other:load_state_dict(scaler:state_dict())
  t.equal({ other.scale_value:item(), other.counter:item() }, { 1.0, 1 })
end)

local Affine = nn.Cell:extend("Affine")
function Affine:init() self.w = ms.Parameter(ms.tensor { 1.0, 2.0 }) end
function Affine:construct(v) return (self.w * v):sum() end

t.test("steps with a scaled loss: overflow leaves the parameters, the scale adapts", function()
  local net = Affine()
  local update = nn.DynamicLossScaleUpdateCell(8.0, 2, 2)
  local step = nn.TrainOneStepWithLossScaleCell(net, nn.SGD(net:trainable_params(), 0.1), update)
  local good, bad = ms.tensor { 1.0, 2.0 }, ms.tensor { 1.0, 1 / 0 }
  local scales, flags = {}, {}
  for i, input in ipairs { good, good, bad, bad, good, good, good } do
    local loss, overflow, scale = step(input)
    flags[i], scales[i] = overflow:item(), scale:item()
    if i == 1 then t.near(loss:item(), 5.0, 1e-6) end
  end
  t.equal(flags, { false, false, true, true, false, false, false })
  t.equal(scales, { 8.0, 8.0, 16.0, 8.0, 4.0, 4.0, 8.0 })
  t.near(net.w, { 0.5, 1.0 }, 1e-6)
  local fixed = Affine()
  step = nn.TrainOneStepWithLossScaleCell(fixed, nn.SGD(fixed:trainable_params(), 0.1), nn.FixedLossScaleUpdateCell(1024.0))
  step(good)
  step(bad)
  t.near(fixed.w, { 0.9, 1.8 }, 1e-6)
  step = nn.TrainOneStepWithLossScaleCell(fixed, nn.SGD(fixed:trainable_params(), 0.1), 64.0)
  local _, _, scale = step(good)
  t.equal(scale:item(), 64.0)
  step:set_sense_scale(32.0)
  t.equal(step.scale_sense:item(), 32.0)
end)

t.test("managers of loss scales", function()
  local manager = amp.DynamicLossScaleManager(16.0, 2, 2)
  local found = {}
  for i, overflow in ipairs { false, false, true, true, false } do
    manager:update_loss_scale(overflow)
    found[i] = manager:get_loss_scale()
  end
  t.equal(found, { 16.0, 32.0, 16.0, 8.0, 8.0 })
  assert(manager:get_update_cell():construct(ms.Parameter(ms.tensor(1.0), "s"), ms.tensor(false)):item() == false)
  t.equal(amp.FixedLossScaleManager(128.0, false):get_update_cell(), nil)
  local net = Affine()
  local model = ms.Model(net, { optimizer = nn.SGD(net:trainable_params(), 0.1), loss_scale_manager = amp.FixedLossScaleManager(4.0) })
  model:train(1, { { ms.tensor { 1.0, 2.0 } } })
  t.near(net.w, { 0.9, 1.8 }, 1e-6)
  net = Affine()
  model = ms.Model(net, { optimizer = nn.SGD(net:trainable_params(), 0.1), loss_scale_manager = amp.FixedLossScaleManager(4.0, false) })
  model:train(1, { { ms.tensor { 1.0, 2.0 } } })
  -- The gradients are scaled back by the optimizer's loss_scale alone.
  t.near(net.w, { 0.6, 1.2 }, 1e-6)
end)

t.test("hooks see and replace inputs and outputs until they are removed", function()
  local dense = nn.Dense(2, 2)
  local input = ms.ones { 1, 2 }
  local plain = dense(input)
  local before = dense:register_forward_pre_hook(function(cell, value)
    assert(rawequal(cell, dense))
    return value * 2
  end)
  local after = dense:register_forward_hook(function(_, output) return output + 1 end)
  t.near(dense(input), dense:construct(input * 2) + 1, 1e-6)
  before.remove()
  t.near(dense(input), plain + 1, 1e-6)
  after.remove()
  t.near(dense(input), plain, 1e-6)
end)

t.test("what is wrong is named", function()
  t.fails({ "to_float", "dst_type must be ms.float16", "got the string 'half'" }, function() nn.Dense(2, 2):to_float("half") end)
  t.fails({ "auto_mixed_precision", "amp_level must be one of", "got the string 'O4'" }, amp.auto_mixed_precision, nn.Dense(2, 2), "O4")
  t.fails({ "auto_mixed_precision", "network must be a cell" }, amp.auto_mixed_precision, 3, "O1")
  t.fails({ "auto_mixed_precision", "dtype must be ms.float16 or ms.bfloat16" }, amp.auto_mixed_precision, nn.Dense(2, 2), "O1", ms.int8)
  t.fails({ "custom_mixed_precision", "one of white_list and black_list must be given, got none" },
    amp.custom_mixed_precision, nn.Dense(2, 2))
  t.fails({ "custom_mixed_precision", "white_list[1] must be a class of cells" }, amp.custom_mixed_precision, nn.Dense(2, 2), { 3 })
  t.fails({ "StaticLossScaler", "scale_value must be a positive number" }, amp.StaticLossScaler, 0)
  t.fails({ "DynamicLossScaleUpdateCell", "scale_factor must be more than 1" }, nn.DynamicLossScaleUpdateCell, 8.0, 1, 5)
  t.fails({ "TrainOneStepWithLossScaleCell", "scale_sense must be a number" }, nn.TrainOneStepWithLossScaleCell, Affine(),
    nn.SGD(Affine():trainable_params(), 0.1), "x")
  t.fails({ "all_finite", "a tensor or a table of tensors is expected" }, amp.all_finite, 3)
  t.fails({ "register_forward_hook", "hook_fn must be a function" }, function() nn.Dense(2, 2):register_forward_hook(3) end)
end)

-- The oracle is PyTorch's autocast (make_reference.py): lower precision changes gradients by some per cent, and what is left
-- between two that round at the same places is a small part of that.
t.test("bfloat16 rounds where PyTorch's autocast does", function()
  local file <close> = assert(io.open "tests/lua/train/reference.json")
  local reference = ms.json.decode(file:read "a").lower_precision
  local function seeded(...)
    local shape = { ... }
    return ops.sin(ops.arange(1, ms.ones(shape).size + 1, 1, { dtype = ms.float64 })):astype(ms.float32):reshape(shape)
  end
  local images, labels = seeded(4, 1, 8, 8), ms.tensor({ 0, 2, 1, 2 }, ms.int64)
  local function trained(level)
    local net = nn.SequentialCell(nn.Conv2d(1, 3, 3, { pad_mode = "valid", has_bias = true }), nn.ReLU(), nn.MaxPool2d(2, 2),
      nn.Flatten(), nn.Dense(27, 8), nn.ReLU(), nn.Dense(8, 3))
    for k, parameter in ipairs(net:trainable_params()) do
      local steps = ops.arange(1, parameter.size + 1, 1, { dtype = ms.float64 })
      parameter:assign((ops.cos(steps * k) * 0.5):astype(ms.float32):reshape(parameter.shape))
    end
    amp.auto_mixed_precision(net, level, ms.bfloat16)
    local loss_fn = nn.CrossEntropyLoss()
    local step = ms.value_and_grad(function(x_, y_) return loss_fn(net(x_), y_) end, nil, net:trainable_params())
    step(images, labels)
    return step(images, labels)
  end
  local function norm(values) return values:square():sum():sqrt():item() end
  for level, name in pairs { O0 = "float32", O2 = "bfloat16" } do
    local loss, gradients = trained(level)
    t.near(loss:item(), reference[name].loss, 1e-5)
    for k, gradient in ipairs(gradients) do
      t.equal(gradient.dtype, ms.float32)
      local exact, theirs = ms.tensor(reference.float32.gradients[k]), ms.tensor(reference[name].gradients[k])
      local lost = norm(ms.tensor(reference.bfloat16.gradients[k]) - exact)
      assert(lost > 1e-3 * norm(exact))
      local left = norm(gradient:reshape { -1 } - theirs)
      assert(left < (level == "O0" and 1e-3 or 0.25) * lost, ("%s, parameter %d: %g of %g"):format(level, k, left, lost))
    end
  end
end)

t.test("a step that is thrown away does not move the running values of normalisations", function()
  local bn = ms.nn.BatchNorm1d(2)
  local net = ms.nn.WithLossCell(ms.nn.SequentialCell { bn, ms.nn.Dense(2, 1) }, ms.nn.MSELoss())
  local step = ms.nn.TrainOneStepWithLossScaleCell(net, ms.nn.SGD(net:trainable_params(), 0.1), 8.0)
  local good, bad, y = ms.tensor { { 1.0, 2.0 }, { 3.0, 1.0 } }, ms.tensor { { 1.0, 2.0 }, { 3.0, 1 / 0 } }, ms.ones { 2, 1 }
  for round = 1, 3 do
    local mean, variance, gamma = bn.moving_mean:copy(), bn.moving_variance:copy(), bn.gamma:copy()
    t.equal(select(2, step(bad, y)):item(), true)
    t.near(bn.moving_mean, mean, 0)
    t.near(bn.moving_variance, variance, 0)
    t.near(bn.gamma, gamma, 0)
    t.equal(select(2, step(good, y)):item(), false)
    t.near(bn.moving_mean, { 2.0 * (1 - 0.9 ^ round), 1.5 * (1 - 0.9 ^ round) }, 1e-5)
  end
end)

-- As the help of all_finite and DynamicLossScaler says: the forward pass has moved them, copies bring them back.
t.test("a loop of one's own brings back the running values of a step that it throws away", function()
  local bn, dense, mse = nn.BatchNorm1d(2), nn.Dense(2, 1), nn.MSELoss()
  local net = nn.SequentialCell { bn, dense }
  local optimizer, scaler = nn.SGD(net:trainable_params(), 0.1), amp.DynamicLossScaler(8.0, 2, 10)
  local slopes = ms.value_and_grad(function(v, label) return scaler:scale(mse(net(v), label)) end, nil, optimizer.parameters)
  net:set_train()
  local y = ms.ones { 2, 1 }
  local function step(input)
    local mean, variance = bn.moving_mean:copy(), bn.moving_variance:copy()
    local _, grads = slopes(input, y)
    grads = scaler:unscale(grads)
    local finite = amp.all_finite(grads)
    scaler:adjust(finite)
    local moved = not ops.equal(bn.moving_mean, mean):all():item()
    if finite:item() then
      optimizer(grads)
    else
      bn.moving_mean:assign(mean)
      bn.moving_variance:assign(variance)
    end
    return finite:item(), moved
  end
  for round = 1, 2 do
    t.equal({ step(ms.tensor { { 1.0, 2.0 }, { 3.0, 1 / 0 } }) }, { false, true })
    t.equal({ step(ms.tensor { { 1.0, 2.0 }, { 3.0, 1.0 } }) }, { true, true })
    t.near(bn.moving_mean, { 2.0 * (1 - 0.9 ^ round), 1.5 * (1 - 0.9 ^ round) }, 1e-5)
  end
end)

t.finish()
