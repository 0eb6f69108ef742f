-- Random networks: a list of layers with their sizes, as data that both a cell here and a peer can be built from.
-- Network.new(random) gives { kind, shape, classes, layers, loss }; Network.cell(spec) a cell whose parameters are numbered,
-- with values that follow from their number alone; Network.inputs(spec) what it is called with.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
local Network = {}

local ACTIVATIONS = {
  relu = function() return nn.ReLU() end, tanh = function() return nn.Tanh() end, sigmoid = function() return nn.Sigmoid() end,
  gelu = function() return nn.GELU(false) end, gelu_tanh = function() return nn.GELU(true) end, elu = function() return nn.ELU() end,
  silu = function() return nn.SiLU() end, leaky_relu = function() return nn.LeakyReLU(0.1) end,
  log_sigmoid = function() return nn.LogSigmoid() end,
  hardswish = function() return nn.HSwish() end, mish = function() return nn.Mish() end,
}
local NAMES = {}
for name in pairs(ACTIVATIONS) do NAMES[#NAMES + 1] = name end
table.sort(NAMES)

function Network.new(random)
  local function pick(list) return list[random(#list)] end
  local function chance(p) return random() < p end
  local function activation() return { op = pick(NAMES) } end
  local function copy(shape) return { table.unpack(shape) } end
  local layers_of

  -- One layer for values of the shape, which becomes that of what it gives.
  local function image(shape)
    local channels, height, width = shape[2], shape[3], shape[4]
    local kind = random(9)
    if kind <= 3 then
      local groups = channels % 2 == 0 and chance(0.25) and 2 or 1
      local layer = { op = "conv", inputs = channels, outputs = pick { 2, 4, 6, 8 }, kernel = { random(3), random(3) }, stride = random(2),
        padding = random(0, 1), dilation = random(2), groups = groups, bias = chance(0.7) }
      local function after(size, k) return (size + 2 * layer.padding - layer.dilation * (k - 1) - 1) // layer.stride + 1 end
      local h, w = after(height, layer.kernel[1]), after(width, layer.kernel[2])
      if h < 1 or w < 1 then return activation() end
      shape[2], shape[3], shape[4] = layer.outputs, h, w
      return layer
    elseif kind == 4 then
      return { op = "batch_norm", size = channels, axes = 2, training = chance(0.7) }
    elseif kind == 5 and channels % 2 == 0 then
      return { op = "group_norm", groups = 2, size = channels }
    elseif kind == 6 and height >= 4 and width >= 4 then
      shape[3], shape[4] = height // 2, width // 2
      return { op = pick { "max_pool", "avg_pool" }, kernel = 2, stride = 2 }
    elseif kind == 7 then
      local inner = copy(shape)
      local branch = { { op = "conv", inputs = channels, outputs = channels, kernel = { 3, 3 }, stride = 1, padding = 1,
        dilation = 1, groups = 1, bias = true } }
      if chance(0.5) then branch[2] = activation() end
      return { op = "residual", layers = branch, shape = inner }
    elseif kind == 8 then
      return { op = "dropout" }
    end
    return activation()
  end

  local function sequence(shape)
    local length, width = shape[2], shape[3]
    local kind = random(8)
    if kind == 1 then
      local both, hidden = chance(0.3), random(3, 6)
      shape[3] = hidden * (both and 2 or 1)
      return { op = pick { "lstm", "gru" }, inputs = width, hidden = hidden, layers = random(2), both = both }
    elseif kind == 2 and width % 2 == 0 then
      return { op = "attention", width = width, heads = 2 }
    elseif kind == 3 then
      return { op = "layer_norm", size = width }
    elseif kind == 4 then
      local outputs = pick { 4, 6, 8 }
      shape[3] = outputs
      return { op = "dense", inputs = width, outputs = outputs, bias = chance(0.8) }
    elseif kind == 5 and length > 2 then
      return { op = "residual", layers = { { op = "dense", inputs = width, outputs = width, bias = true }, activation() } }
    elseif kind == 6 then
      return { op = "softmax", axis = pick { 1, 2 } }
    elseif kind == 7 then
      return { op = "dropout" }
    end
    return activation()
  end

  local function rows(shape)
    local width = shape[2]
    local kind = random(7)
    if kind <= 2 then
      local outputs = random(3, 24)
      shape[2] = outputs
      return { op = "dense", inputs = width, outputs = outputs, bias = chance(0.8) }
    elseif kind == 3 then
      return { op = "batch_norm", size = width, axes = 0, training = chance(0.7) }
    elseif kind == 4 then
      return { op = "layer_norm", size = width }
    elseif kind == 5 then
      return { op = "residual", layers = { { op = "dense", inputs = width, outputs = width, bias = true }, activation() } }
    end
    return activation()
  end

  function layers_of(make, shape, count)
    local layers = {}
    for n = 1, count do layers[n] = make(shape) end
    return layers
  end

  local kind = pick { "image", "sequence", "rows", "tokens" }
  local batch, spec = random(2, 5), { kind = kind, classes = random(2, 7), loss = pick { "cross_entropy", "mse", "smooth_l1" } }
  local shape
  if kind == "image" then
    spec.shape = { batch, random(3), random(6, 13), random(6, 13) }
    shape = copy(spec.shape)
    spec.layers = layers_of(image, shape, random(3, 7))
    if chance(0.5) then
      spec.layers[#spec.layers + 1] = { op = "mean_pixels" }
      shape = { batch, shape[2] }
    else
      spec.layers[#spec.layers + 1] = { op = "flatten" }
      shape = { batch, shape[2] * shape[3] * shape[4] }
    end
  elseif kind == "rows" then
    spec.shape = { batch, random(3, 20) }
    shape = copy(spec.shape)
    spec.layers = {}
  else
    local length, width = random(3, 7), pick { 4, 6, 8 }
    spec.shape = kind == "tokens" and { batch, length } or { batch, length, width }
    spec.layers = kind == "tokens" and { { op = "embedding", rows = 11, width = width } } or {}
    shape = { batch, length, width }
    for _, layer in ipairs(layers_of(sequence, shape, random(2, 5))) do spec.layers[#spec.layers + 1] = layer end
    if chance(0.5) then
      spec.layers[#spec.layers + 1] = { op = "mean_steps" }
      shape = { batch, shape[3] }
    else
      spec.layers[#spec.layers + 1] = { op = "flatten" }
      shape = { batch, shape[2] * shape[3] }
    end
  end
  for _, layer in ipairs(layers_of(rows, shape, random(1, 4))) do spec.layers[#spec.layers + 1] = layer end
  spec.layers[#spec.layers + 1] = { op = "dense", inputs = shape[2], outputs = spec.classes, bias = true }
  return spec
end

local Residual = nn.Cell:extend "Residual"
function Residual:init(inner) self.inner = inner end
function Residual:construct(x) return x + self.inner(x) end

local Recurrent = nn.Cell:extend "Recurrent"
function Recurrent:init(inner) self.inner = inner end
function Recurrent:construct(x)
  local y = self.inner(x)
  return y
end

local Attention = nn.Cell:extend "Attention"
function Attention:init(inner) self.inner = inner end
function Attention:construct(x)
  local y = self.inner(x, x, x)
  return y
end

local Apply = nn.Cell:extend "Apply"
function Apply:init(f) self.f = f end
function Apply:construct(x) return self.f(x) end

local build
local BUILDERS = {
  conv = function(l)
    return nn.Conv2d(l.inputs, l.outputs, l.kernel, { stride = l.stride, pad_mode = "pad", padding = l.padding, dilation = l.dilation,
      group = l.groups, has_bias = l.bias })
  end,
  batch_norm = function(l)
    local make = l.axes == 2 and nn.BatchNorm2d or nn.BatchNorm1d
    return make(l.size, { use_batch_statistics = l.training })
  end,
  group_norm = function(l) return nn.GroupNorm(l.groups, l.size) end,
  layer_norm = function(l) return nn.LayerNorm({ l.size }, { epsilon = 1e-5 }) end,
  max_pool = function(l) return nn.MaxPool2d(l.kernel, l.stride) end,
  avg_pool = function(l) return nn.AvgPool2d(l.kernel, l.stride) end,
  residual = function(l) return Residual(build(l.layers)) end,
  dropout = function() return nn.Dropout { p = 0.0 } end,
  lstm = function(l) return Recurrent(nn.LSTM(l.inputs, l.hidden, l.layers, { batch_first = true, bidirectional = l.both })) end,
  gru = function(l) return Recurrent(nn.GRU(l.inputs, l.hidden, l.layers, { batch_first = true, bidirectional = l.both })) end,
  attention = function(l) return Attention(nn.MultiheadAttention(l.width, l.heads, { batch_first = true })) end,
  dense = function(l) return nn.Dense(l.inputs, l.outputs, { has_bias = l.bias }) end,
  softmax = function(l) return nn.Softmax(l.axis) end,
  embedding = function(l) return nn.Embedding(l.rows, l.width) end,
  flatten = function() return nn.Flatten() end,
  mean_pixels = function() return Apply(function(x) return ops.mean(x, { 2, 3 }) end) end,
  mean_steps = function() return Apply(function(x) return ops.mean(x, 1) end) end,
}

function build(layers)
  local cells = {}
  for n, layer in ipairs(layers) do cells[n] = (BUILDERS[layer.op] or ACTIVATIONS[layer.op])(layer) end
  return nn.SequentialCell(table.unpack(cells))
end

local function wave(size, phase) return ops.sin(ops.arange(size):astype(ms.float64) * 1.618 + phase) end

function Network.cell(spec)
  local cell = build(spec.layers)
  for n, p in ipairs(cell:get_parameters()) do
    local size = p.size
    local value = wave(size, n * 0.7) * (p.name:find "variance" and 0.3 or p.ndim > 1 and 0.5 or 0.25)
    if p.name:find "gamma" or p.name:find "variance" then value = value + 1.0 end
    p:set_data(value:reshape(p.shape):astype(p.dtype))
  end
  cell:set_train(true)
  return cell
end

-- What the network is called with, what it is compared with by its loss.
function Network.inputs(spec, shift)
  local size = 1
  for _, n in ipairs(spec.shape) do size = size * n end
  local x = wave(size, 0.3 + (shift or 0)):reshape(spec.shape)
  if spec.kind == "tokens" then x = ops.floor((x + 1) * 5.4):astype(ms.int32) else x = x:astype(ms.float32) end
  local batch = spec.shape[1]
  local y
  if spec.loss == "cross_entropy" then
    y = (ops.arange(batch) % spec.classes):astype(ms.int32)
  else
    y = wave(batch * spec.classes, 2.1):reshape(batch, spec.classes):astype(ms.float32)
  end
  return x, y
end

function Network.loss(spec, out, y)
  if spec.loss == "cross_entropy" then return ops.cross_entropy(out, y) end
  if spec.loss == "mse" then return ops.mse_loss(out, y) end
  return ops.smooth_l1_loss(out, y, { reduction = "mean" })
end

return Network
