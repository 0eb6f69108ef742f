-- Gradients of single samples: norms, weighted sums and the gradients themselves against a loop of one, in float64, for the layers that
-- have rules and for those that are computed again. Two seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, nn = ms.ops, ms.nn
local PerSampleGradients = ms.armour.privacy.diff_privacy.PerSampleGradients

local f64 = ms.float64
local double = { dtype = f64 }
local labels = ms.tensor({ 0, 2, 1, 1, 0 }, ms.int32)
local function one(x, i) return x[{ ms.slice(i, i + 1) }] end

-- The largest difference to what a loop over samples gives.
local function difference(each, net, x, y)
  local n, params = x.shape[1], net:trainable_params()
  local weights = ms.rand({ n }, { dtype = f64 })
  local norms, sums = each:norms(x, y), each:weighted_sum(weights, x, y)
  local gradients, losses = each:gradients(x, y)
  local worst, whole = 0, {}
  local function look(a, b) worst = math.max(worst, ops.max(ops.abs(a - b)):item()) end
  for i = 0, n - 1 do
    local loss, own = ms.value_and_grad(function()
      return ops.cross_entropy(net(one(x, i)), one(y, i))
    end, nil, params)()
    local square = 0
    for k, g in ipairs(own) do
      square = square + ops.sum(g * g):item()
      look(gradients[k][i], g)
      whole[k] = whole[k] and whole[k] + g * weights[i] or g * weights[i]
    end
    look(norms[i], ms.tensor(math.sqrt(square), f64))
    look(losses[i], loss)
  end
  for k, g in ipairs(whole) do look(sums[k], g) end
  return worst
end

local function same(name, mode, net, x, options)
  t.test(name .. ": as a loop of one", function()
    for _, p in ipairs(net:get_parameters()) do p:assign(ms.randn(p.shape, { dtype = f64 }) * 0.3) end
    local each = PerSampleGradients(net, nn.CrossEntropyLoss(), options)
    -- The later runs are compiled in graph mode.
    for _ = 1, 3 do assert(difference(each, net, x, labels) < 1e-12, name) end
    t.equal(each.mode, mode)
  end)
end

local function pictures(...) return ms.randn({ 5, ... }, { dtype = f64 }) end
local function seq(...) return nn.SequentialCell(...) end
local function with(options)
  options.dtype = f64
  return options
end

same("dense layers", "ghost", seq(nn.Dense(6, 5, double), nn.Tanh(), nn.Dense(5, 3, with { activation = "relu" })), pictures(6))
same("dense layers by vmap", "vmap", seq(nn.Dense(6, 5, double), nn.Tanh(), nn.Dense(5, 3, double)), pictures(6), { mode = "vmap" })
-- Few weights and many positions in the first layer (the gradients themselves), many and few in the last (ghost norms).
same("convolutions and group norm", "ghost", seq(
  nn.Conv2d(2, 4, 3, with { has_bias = true }), nn.Tanh(), nn.GroupNorm(2, 4, double),
  nn.Conv2d(4, 60, { 3, 2 }, with { stride = 3, pad_mode = "pad", padding = { 1, 0, 2, 1 }, dilation = { 1, 2 }, has_bias = true }),
  nn.Tanh(), nn.Conv2d(60, 64, 3, with { stride = 2, has_bias = true }), nn.Flatten(), nn.Dense(64 * 2 * 2, 3, double)), pictures(2, 9, 8))
same("groups of channels", "ghost", seq(nn.Conv2d(2, 4, 2, with { group = 2, has_bias = true }), nn.Flatten(), nn.Dense(64, 3, double)),
  pictures(2, 4, 4))
same("convolutions over one axis", "ghost", seq(nn.Conv1d(2, 4, 3, with { has_bias = true }),
  nn.Conv1d(4, 70, 2, with { stride = 2, pad_mode = "valid" }), nn.Conv1d(70, 130, 2, with { stride = 2, pad_mode = "valid" }),
  nn.Flatten(), nn.Dense(260, 3, double)), pictures(2, 8))
same("convolutions over three axes", "ghost", seq(nn.Conv3d(1, 2, 2, double), nn.Flatten(), nn.Dense(54, 3, double)), pictures(1, 3, 3, 3))
same("a layer without a rule", "ghost", seq(nn.Conv2dTranspose(1, 2, 2, with { stride = 2, has_bias = true }), nn.Flatten(),
  nn.Dense(72, 3, double)), pictures(1, 3, 3))
same("embedding and layer norm", "ghost", seq(nn.Embedding(7, 4, with { padding_idx = 1 }), nn.LayerNorm({ 4 }, double),
  nn.Dense(4, 4, double), nn.Flatten(), nn.Dense(24, 3, double)), ms.random.randint(0, 7, { 5, 6 }))

local Recurrent = nn.Cell:extend("Recurrent")
function Recurrent:init(first)
  self.lstm = nn.LSTM(3, 4, { batch_first = first, dtype = f64, bidirectional = true })
  self.last, self.first = nn.Dense(8, 3, double), first
end
function Recurrent:construct(x)
  if self.first then return self.last((self.lstm(x))[{ ms.slice(), -1 }]) end
  return self.last((self.lstm(ops.swapaxes(x, 0, 1)))[-1])
end
same("an LSTM", "ghost", Recurrent(true), pictures(4, 3))
same("an LSTM with the steps in front", "ghost", Recurrent(false), pictures(5, 3))

local Encoder = nn.Cell:extend("Encoder")
function Encoder:init(first)
  self.layer = nn.TransformerEncoderLayer(8, 2, { dim_feedforward = 6, dropout = 0.0, batch_first = first, dtype = f64 })
  self.last, self.first = nn.Dense(8, 3, double), first
end
function Encoder:construct(x)
  if not self.first then x = ops.swapaxes(x, 0, 1) end
  return self.last(ops.mean(self.layer(x), self.first and 1 or 0))
end
same("attention", "ghost", Encoder(true), pictures(4, 8))
-- As many steps as samples: the axis of the samples is not told by its size.
same("attention with the steps in front", "ghost", Encoder(false), pictures(5, 8))

local Twice = nn.Cell:extend("Twice")
function Twice:init() self.inner, self.last = nn.Dense(4, 4, double), nn.Dense(4, 3, double) end
function Twice:construct(x) return self.last(ops.tanh(self.inner(ops.tanh(self.inner(x))))) end
same("a layer that is called twice", "ghost", Twice(), pictures(4))

local Elsewhere = Twice:extend("Elsewhere")
function Elsewhere:construct(x) return self.last(ops.matmul(ops.tanh(self.inner(x)), self.inner.weight)) end
same("a weight used outside of its layer", "vmap", Elsewhere(), pictures(4))

local Own = nn.Cell:extend("Own")
function Own:init() self.scale, self.dense = ms.Parameter(ms.ones({ 4 }, f64), "scale"), nn.Dense(4, 3, double) end
function Own:construct(x) return self.dense(x * self.scale) end
same("a cell with parameters and parts", "ghost", Own(), pictures(4))

t.test("parameters that are not trained have no gradient", function()
  local net = seq(nn.Dense(4, 4, double), nn.Tanh(), nn.Dense(4, 3, double))
  net[1].weight.requires_grad = false
  local each = PerSampleGradients(net, nn.CrossEntropyLoss())
  t.equal(#each:gradients(pictures(4), labels), 3)
  assert(difference(each, net, pictures(4), labels) < 1e-12)
end)

t.test("the network is as before beside private passes, also after an error in one", function()
  local net = seq(nn.Dense(4, 3, double))
  local x = pictures(4)
  local before = net(x):tolist()
  local each = PerSampleGradients(net, nn.CrossEntropyLoss())
  each:norms(x, labels)
  t.fails({ "cross_entropy" }, each.norms, each, x, labels + 7)
  t.equal(net(x):tolist(), before)
  t.equal(each:norms(x, labels).shape[1], 5)
end)

t.test("losses: of cells with any reduction, of functions for each sample, or for the batch where that is said", function()
  local net, x = seq(nn.Dense(4, 3, double)), pictures(4)
  local plain = PerSampleGradients(net, nn.CrossEntropyLoss()):norms(x, labels)
  for _, loss in ipairs { nn.CrossEntropyLoss { reduction = "sum" }, nn.CrossEntropyLoss { reduction = "none" },
    function(z, y) return ops.cross_entropy(z, y, nil, -100, "none") end } do
    t.near(PerSampleGradients(net, loss):norms(x, labels), plain, 1e-12)
  end
  local function mean(z, y) return ops.cross_entropy(z, y) end
  t.near(PerSampleGradients(net, mean, { loss_reduction = "mean" }):norms(x, labels), plain, 1e-12)
  local ghost = PerSampleGradients(net, mean, { mode = "ghost" })
  t.fails({ "PerSampleGradients: the loss is one number for the whole batch", "loss_reduction" }, ghost.norms, ghost, x, labels)
  t.near(PerSampleGradients(net, mean):norms(x, labels), plain, 1e-12)
  -- A mean over classes with weights divides by what all samples weigh: a loss that is not one of samples.
  local weights = ms.tensor({ 1.0, 5.0, 1.0 }, f64)
  local function weighted(z, y) return ops.cross_entropy(z, y, weights) end
  t.equal((function()
    local each = PerSampleGradients(net, weighted, { loss_reduction = "mean" })
    each:norms(x, ops.flip(labels, { 0 }))
    return each.mode
  end)(), "vmap")
end)

t.test("layers that mix samples are refused", function()
  local net = seq(nn.Dense(4, 4), nn.BatchNorm1d(4), nn.Dense(4, 3)):set_train()
  t.fails({ "PerSampleGradients: the layer 1 is an nn.BatchNorm1d", "nn.GroupNorm" }, PerSampleGradients, net, nn.CrossEntropyLoss())
  local Mixing = Twice:extend("Mixing")
  function Mixing:construct(x) return self.last(self.inner(x - ops.mean(x, 0, true))) end
  local each = PerSampleGradients(Mixing(), nn.CrossEntropyLoss(), { mode = "ghost" })
  t.fails({ "the gradient of ", "within a batch" }, each.norms, each, pictures(4), labels)
end)

t.test("mistakes", function()
  local net = nn.Dense(2, 3)
  t.fails({ "PerSampleGradients: network must be a cell, got 1" }, PerSampleGradients, 1)
  t.fails({ "mode must be one of" }, PerSampleGradients, net, nn.CrossEntropyLoss(), { mode = "fast" })
  t.fails({ "has no parameters that are trained" }, PerSampleGradients, nn.ReLU(), nn.CrossEntropyLoss())
  t.fails({ "loss_reduction is 'sum', and the reduction of loss_fn is 'mean'" }, PerSampleGradients, net, nn.CrossEntropyLoss(),
    { loss_reduction = "sum" })
  local each = PerSampleGradients(net, nn.CrossEntropyLoss())
  t.fails({ "the batch is empty" }, each.norms, each, ms.zeros { 0, 2 }, ms.zeros({ 0 }, ms.int64))
  t.fails({ "the first input must be a tensor with the samples on its first axis" }, each.norms, each, 1.0, labels)
end)

t.finish()
