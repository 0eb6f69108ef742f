-- The models of the reference training runs, twice: as plain functions of a table of weights, and as cells. Weights are
-- named as in the file of the runs. All sizes are those of the weights and of the data; the number of heads, which neither tells,
-- is in the text about the architecture.
local ms = require "lunaria"
local ops = ms.ops

local models = { functions = {}, cells = {} }
local functions, cells = models.functions, models.cells

function functions.mlp(p, x)
  local h = ops.relu(ops.dense(x, p["fc1.weight"], p["fc1.bias"]))
  return ops.dense(h, p["fc2.weight"], p["fc2.bias"])
end

function functions.mlp_tanh(p, x)
  local h = x
  for i = 1, 2 do h = ops.tanh(ops.matmul(h, p[("fc%d.weight"):format(i)].T) + p[("fc%d.bias"):format(i)]) end
  return ops.dense(h, p["fc3.weight"], p["fc3.bias"])
end

local convolution = { pad_mode = "pad", padding = 1 }

-- Rows of numbers as square pictures of one channel.
local function pictures(x)
  local side = math.tointeger(x.shape[2] ^ 0.5)
  return x:reshape({ -1, 1, side, side })
end

local function heads_of(run)
  return tonumber(run.architecture:match "heads=(%d+)") or error("the text about the architecture has no number of heads", 0)
end

function functions.lenet(p, x)
  local h = pictures(x)
  for i = 1, 2 do
    h = ops.relu(ops.conv2d(h, p[("conv%d.weight"):format(i)], p[("conv%d.bias"):format(i)], convolution))
    h = ops.max_pool2d(h, 2, 2)
  end
  h = ops.relu(ops.dense(ops.flatten(h), p["fc1.weight"], p["fc1.bias"]))
  return ops.dense(h, p["fc2.weight"], p["fc2.bias"])
end

function functions.bnet(p, x)
  local h = ops.conv2d(pictures(x), p["conv.weight"], nil, convolution)
  -- Batch statistics, written out: mean and biased variance over all but the channels.
  local mean = ops.mean(h, { 0, 2, 3 }, true)
  local centred = h - mean
  local spread = ops.sqrt(ops.mean(ops.square(centred), { 0, 2, 3 }, true) + 1e-5)
  h = centred / spread * p["bn.gamma"]:reshape({ 1, -1, 1, 1 }) + p["bn.beta"]:reshape({ 1, -1, 1, 1 })
  h = ops.mean(ops.gelu(h, { approximate = "none" }), { 2, 3 })
  return ops.dense(h, p["fc.weight"], p["fc.bias"])
end

local function layer_norm(h, gamma, beta)
  local centred = h - ops.mean(h, -1, true)
  return centred / ops.sqrt(ops.mean(ops.square(centred), -1, true) + 1e-5) * gamma + beta
end

-- What a token may not see gets -1e9 before the softmax.
local function causal_mask(length)
  return ops.triu(ops.ones({ length, length }), 1) * -1e9
end

-- qkv has the shape (batch, length, 3 width), split as (3, heads, width / heads).
local function attention(qkv, mask, heads)
  local batch, length, width = qkv.shape[1], qkv.shape[2], qkv.shape[3] // 3
  local parts = qkv:reshape({ batch, length, 3, heads, width // heads }):transpose({ 2, 0, 3, 1, 4 })
  local q, k, v = parts[0], parts[1], parts[2]
  local scores = ops.matmul(q, k:transpose({ 0, 1, 3, 2 })) / math.sqrt(width // heads) + mask
  local mixed = ops.matmul(ops.softmax(scores, -1), v)
  return mixed:transpose({ 0, 2, 1, 3 }):reshape({ batch, length, width })
end

function functions.gpt_mini(p, x, run)
  local mask, heads = causal_mask(x.shape[2]), heads_of(run)
  local h = ops.gather(p.wte, x, 0) + p.wpe
  local i = 0
  while p[("h%d.ln1.gamma"):format(i)] do
    local function w(name) return p[("h%d.%s"):format(i, name)] end
    local function dense(y, name) return ops.dense(y, w(name .. ".weight"), w(name .. ".bias")) end
    h = h + dense(attention(dense(layer_norm(h, w("ln1.gamma"), w("ln1.beta")), "qkv"), mask, heads), "proj")
    h = h + dense(ops.gelu(dense(layer_norm(h, w("ln2.gamma"), w("ln2.beta")), "fc"), { approximate = "tanh" }), "out")
    i = i + 1
  end
  h = layer_norm(h, p["lnf.gamma"], p["lnf.beta"])
  return ops.matmul(h, p.wte.T)
end

-- The mean cross-entropy over all labels, of which a token model has several per sample.
function models.loss(logits, labels)
  local classes = logits.shape[#logits.shape]
  return ops.cross_entropy(logits:reshape({ -1, classes }), labels:reshape({ -1 }))
end

-- The layer for weights of its shape.
local function dense(nn, p, name, options)
  local shape = p[name .. ".weight"].shape
  return nn.Dense(shape[2], shape[1], options)
end

local function conv(nn, p, name)
  local shape = p[name .. ".weight"].shape
  return nn.Conv2d(shape[2], shape[1], shape[3], { pad_mode = "pad", padding = 1, has_bias = p[name .. ".bias"] ~= nil })
end

function cells.mlp(nn, p)
  local Net = nn.Cell:extend("Mlp")
  function Net:init()
    self.fc1, self.relu, self.fc2 = dense(nn, p, "fc1"), nn.ReLU(), dense(nn, p, "fc2")
  end
  function Net:construct(x) return self.fc2(self.relu(self.fc1(x))) end
  return Net()
end

function cells.mlp_tanh(nn, p)
  local Net = nn.Cell:extend("MlpTanh")
  function Net:init()
    self.fc1 = dense(nn, p, "fc1", { activation = "tanh" })
    self.fc2 = dense(nn, p, "fc2", { activation = "tanh" })
    self.fc3 = dense(nn, p, "fc3")
  end
  function Net:construct(x) return self.fc3(self.fc2(self.fc1(x))) end
  return Net()
end

function cells.lenet(nn, p)
  local Net = nn.Cell:extend("LeNet")
  function Net:init()
    self.conv1, self.conv2 = conv(nn, p, "conv1"), conv(nn, p, "conv2")
    self.pool, self.relu, self.flatten = nn.MaxPool2d(2, 2), nn.ReLU(), nn.Flatten()
    self.fc1, self.fc2 = dense(nn, p, "fc1"), dense(nn, p, "fc2")
  end
  function Net:construct(x)
    local h = self.pool(self.relu(self.conv1(pictures(x))))
    h = self.pool(self.relu(self.conv2(h)))
    return self.fc2(self.relu(self.fc1(self.flatten(h))))
  end
  return Net()
end

function cells.bnet(nn, p)
  local Net = nn.Cell:extend("BatchNormNet")
  function Net:init()
    self.conv = conv(nn, p, "conv")
    self.bn, self.gelu, self.fc = nn.BatchNorm2d(p["bn.gamma"].size), nn.GELU(false), dense(nn, p, "fc")
  end
  function Net:construct(x)
    return self.fc(ops.mean(self.gelu(self.bn(self.conv(pictures(x)))), { 2, 3 }))
  end
  return Net()
end

function cells.gpt_mini(nn, p, run)
  local heads, length, width = heads_of(run), p.wpe.shape[1], p.wpe.shape[2]
  local Block = nn.Cell:extend("Block")
  function Block:init(name)
    self.ln1, self.ln2 = nn.LayerNorm({ width }, { epsilon = 1e-5 }), nn.LayerNorm({ width }, { epsilon = 1e-5 })
    self.qkv, self.proj = dense(nn, p, name .. ".qkv"), dense(nn, p, name .. ".proj")
    self.fc, self.out = dense(nn, p, name .. ".fc"), dense(nn, p, name .. ".out")
    self.gelu = nn.GELU()
  end
  function Block:construct(h, mask)
    h = h + self.proj(attention(self.qkv(self.ln1(h)), mask, heads))
    return h + self.out(self.gelu(self.fc(self.ln2(h))))
  end
  local Net = nn.Cell:extend("GptMini")
  function Net:init()
    self.wte = ms.Parameter(ops.zeros(p.wte.shape), "wte")
    self.wpe = ms.Parameter(ops.zeros(p.wpe.shape), "wpe")
    self.count = 0
    while p[("h%d.ln1.gamma"):format(self.count)] do
      self["h" .. self.count] = Block("h" .. self.count)
      self.count = self.count + 1
    end
    self.lnf = nn.LayerNorm({ width }, { epsilon = 1e-5 })
    self.mask = causal_mask(length)
  end
  function Net:construct(x)
    local h = ops.gather(self.wte, x, 0) + self.wpe
    for i = 0, self.count - 1 do h = self["h" .. i](h, self.mask) end
    return ops.matmul(self.lnf(h), self.wte.T)
  end
  return Net()
end

return models
