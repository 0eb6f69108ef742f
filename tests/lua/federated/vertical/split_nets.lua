-- Networks that are split between a leader and a follower, with their data: for split_test.lua and its other process.
local ms = require "lunaria"
local nn, ops, F = ms.nn, ms.ops, ms.federated
local nets = { cases = {} }

local function adam(p) return nn.Adam(p, { learning_rate = 0.01 }) end
local steps = 30

-- Halves of a case always begin with the same weights.
local function seeded(seed, make)
  return function()
    ms.set_seed(seed)
    return make()
  end
end

local function batches(seed, make)
  local list
  return function()
    if not list then
      local state = ms.get_rng_state()
      ms.set_seed(seed)
      list = {}
      for i = 1, steps do list[i] = make() end
      ms.set_rng_state(state)
    end
    return list
  end
end

local Top = nn.Cell:extend("Top")
function Top:init(own, out) self.own, self.out = own, out end
function Top:construct(x, h) return self.out(ops.concat({ ops.relu(self.own(x)), h }, 1)) end

nets.cases.mlp = {
  bottom = seeded(1, function() return nn.SequentialCell(nn.Dense(5, 16), nn.ReLU(), nn.Dense(16, 8), nn.Tanh()) end),
  top = seeded(2, function() return Top(nn.Dense(3, 8), nn.Dense(16, 1)) end),
  loss = nn.BCEWithLogitsLoss(),
  batches = batches(3, function()
    local xf, xl = ms.randn(16, 5), ms.randn(16, 3)
    return { xf = xf, xl = xl, y = ops.greater(ops.sum(xf, 1) + ops.sum(xl, 1), 0):astype(ms.float32):reshape { 16, 1 } }
  end),
  own = { "xf" }, others = { "xl" },
}

-- Wide and deep: embeddings of ids and weighted sums, on both sides.
local Wide = nn.Cell:extend("Wide")
function Wide:init(ids)
  self.table, self.first = nn.Embedding(ids, 4, { embedding_table = "normal" }), nn.Dense(12, 6)
end
function Wide:construct(ids, weights)
  local rows = self.table(ids) * ops.expand_dims(weights, 2)
  return ops.relu(self.first(rows:reshape { ids.shape[1], 12 }))
end
local WideTop = nn.Cell:extend("WideTop")
function WideTop:init() self.own, self.out = Wide(20), nn.Dense(12, 1) end
function WideTop:construct(ids, weights, h) return self.out(ops.concat({ self.own(ids, weights), h }, 1)) end

nets.cases.wide = {
  bottom = seeded(4, function() return Wide(30) end),
  top = seeded(5, function() return WideTop() end),
  loss = nn.BCEWithLogitsLoss(),
  batches = batches(6, function()
    return { idf = ops.randint(0, 30, { 16, 3 }), wf = ms.rand(16, 3), idl = ops.randint(0, 20, { 16, 3 }), wl = ms.rand(16, 3),
      y = ops.randint(0, 2, { 16, 1 }):astype(ms.float32) }
  end),
  own = { "idf", "wf" }, others = { "idl", "wl" },
}

-- A convolution with running statistics and dropout at the follower.
nets.cases.cnn = {
  bottom = seeded(7, function()
    return nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dropout { p = 0.25 })
  end),
  top = seeded(8, function()
    local Labels = nn.Cell:extend("Labels")
    function Labels:init() self.out = nn.Dense(4 * 4 * 4, 3) end
    function Labels:construct(h) return self.out(h) end
    return Labels()
  end),
  loss = nn.CrossEntropyLoss(),
  batches = batches(9, function() return { picture = ms.randn(8, 1, 8, 8), y = ops.randint(0, 3, { 8 }):astype(ms.int32) } end),
  own = { "picture" }, others = {},
}

local function inputs(names)
  local list = {}
  for i, name in ipairs(names) do list[i] = { name = name, source = "local" } end
  return list
end

--- What the halves take and give; compress_type and bits of what is sent, if any.
function nets.follower(case, bottom, more)
  local output = { name = "h", destination = "remote" }
  for key, value in pairs(more or {}) do output[key] = value end
  return F.FLModel { network = bottom, optimizers = adam(bottom:trainable_params()), yaml_data = { role = "follower",
    model = { train_net = { inputs = inputs(case.own), outputs = { output } } } } }
end

function nets.leader(case, top, more)
  local list = inputs(case.others)
  local remote = { name = "h", source = "remote" }
  for key, value in pairs(more or {}) do remote[key] = value end
  list[#list + 1] = remote
  list[#list + 1] = { name = "y" }
  return F.FLModel { network = top, loss_fn = case.loss, optimizers = adam(top:trainable_params()), yaml_data = { role = "leader",
    model = { train_net = { inputs = list, outputs = { { name = "loss" } } } } } }
end

--- The joined network, trained: its losses and both halves.
function nets.joined(case)
  local bottom, top = case.bottom(), case.top()
  local all = bottom:trainable_params()
  local count = #all
  local optimizers = { adam(bottom:trainable_params()), adam(top:trainable_params()) }
  for _, p in ipairs(top:trainable_params()) do all[#all + 1] = p end
  bottom:set_train()
  top:set_train()
  local step = ms.value_and_grad(function(y, own_count, ...)
    local values, given = { ... }, {}
    local h = bottom(table.unpack(values, 1, own_count))
    for i = own_count + 1, #values do given[#given + 1] = values[i] end
    given[#given + 1] = h
    return case.loss(top(table.unpack(given, 1, #given)), y)
  end, false, all)
  local losses = {}
  for i, batch in ipairs(case.batches()) do
    local values = {}
    for _, list in ipairs { case.own, case.others } do
      for _, name in ipairs(list) do values[#values + 1] = batch[name] end
    end
    local loss, gradients = step(batch.y, #case.own, table.unpack(values, 1, #values))
    optimizers[1](table.move(gradients, 1, count, 1, {}))
    optimizers[2](table.move(gradients, count + 1, #gradients, 1, {}))
    losses[i] = loss:item()
  end
  return losses, bottom, top
end

return nets
