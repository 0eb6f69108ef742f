-- Changes of a floating network after which quantisation loses less: normalisations go into the convolutions before them, and
-- channels of very different ranges are brought closer together. Both need to know which layer's result goes where; a trace of
-- the network's operators tells.
local ms = require "lunaria"
local files = require "lunaria.onnx_files"
local handlers = require "lunaria.onnx.export_operators"
local activation = require("lunaria.nn.activation").classes
local along = require("lunaria.lite.quantise_weights").along
local predicting = require "lunaria.nn.predicting"

local ops = ms.ops
local M = {}

-- Where each parameter of a network is, by its name; a name that two have is left out.
local function owners(network)
  local found, twice = {}, {}
  for _, cell in network:cells_and_names() do
    for _, key in ipairs(rawget(cell, "_order")) do
      local value = rawget(cell, key)
      if ms.is_parameter(value) then
        local known = found[value.name]
        if known and known.cell ~= cell then twice[value.name] = true end
        found[value.name] = { cell = cell, key = key }
      end
    end
  end
  for name in pairs(twice) do found[name] = nil end
  return found
end

local Trace = {}
Trace.__index = Trace

--- The operators of a network for these inputs, as it predicts: batch statistics and dropout are not in the way. Nil where it decides
--- by its tensors' elements.
function M.trace(network, inputs)
  local restore = predicting(network)
  local fine, traced = pcall(files.graph, network, handlers, table.unpack(inputs))
  restore()
  if not fine or not traced then return nil end
  local self = setmetatable({ nodes = traced.nodes, results = traced.results, users = {}, calls = {}, owners = owners(network) }, Trace)
  local function use(value, node, name)
    if type(value) ~= "table" then return end
    if value.id then
      self.users[value.id] = self.users[value.id] or {}
      table.insert(self.users[value.id], { node = node, name = name })
    elseif value.constant == nil then
      for _, item in ipairs(value) do use(item, node, name) end
    end
  end
  for _, node in ipairs(traced.nodes) do
    for name, value in pairs(node.args) do
      use(value, node, name)
      local owner = type(value) == "table" and value.name and self.owners[value.name]
      if owner then
        self.calls[owner.cell] = self.calls[owner.cell] or {}
        self.calls[owner.cell][node] = true
      end
    end
  end
  for _, value in ipairs(traced.results) do use(value, nil, "result") end
  return self
end

--- The only call of a cell whose parameters are operands; nil where there are several or none.
function Trace:call_of(cell)
  local calls = self.calls[cell] or {}
  local node = next(calls)
  if node and next(calls, node) == nil then return node end
end

-- The only use of a node's result.
function Trace:only_use(node)
  local users = self.users[node.id] or {}
  return #users == 1 and users[1].node and users[1] or nil
end

function Trace:owner(value) return type(value) == "table" and value.name and self.owners[value.name] or nil end

local function set_bias(layer, bias)
  if layer.bias then
    layer.bias:set_data(bias)
  else
    layer.bias = ms.Parameter(bias, (layer.weight.name:gsub("weight$", "bias")))
    layer.has_bias = true
  end
end
M.set_bias = set_bias

--- Puts a cell in another one's place, wherever that is.
function M.replace(network, old, new)
  for _, cell in network:cells_and_names() do
    for _, key in ipairs(rawget(cell, "_order")) do
      if rawget(cell, key) == old then cell[key] = new end
    end
  end
end

--- The normalisations with fixed statistics that alone get a convolution's or dense layer's result, by layer.
function M.normalisations(network, layers, inputs)
  local trace, found = M.trace(network, inputs), {}
  for _, layer in ipairs(trace and layers or {}) do
    local node = trace:call_of(layer.cell)
    local use = node and not layer.cell.activation and trace:only_use(node)
    local norm = use and use.node.op == "batch_norm" and use.name == "input_x" and use.node.args or nil
    local owner = norm and not norm.training and trace:owner(norm.running_mean)
    if owner and trace:call_of(owner.cell) == use.node and layer.kind.outputs == 0 then found[layer] = owner.cell end
  end
  return found
end

--- Puts such normalisations into the layers before them. Gives their number.
function M.fold_normalisations(network, layers, inputs)
  local count = 0
  for layer, norm in pairs(M.normalisations(network, layers, inputs)) do
    local cell = layer.cell
    local factor = norm.gamma / ops.sqrt(norm.moving_variance + norm.eps)
    local w = cell.weight
    w:set_data(w * along(factor, 0, w.ndim))
    local bias = cell.bias and cell.bias - norm.moving_mean or ops.neg(norm.moving_mean)
    set_bias(cell, bias * factor + norm.beta)
    M.replace(network, norm, activation.Identity())
    count = count + 1
  end
  return count
end

-- Operators that give c f(x) for c x with c > 0, channel by channel.
local homogeneous = {
  relu = true, leaky_relu = true, identity = true, max_pool2d = true, avg_pool2d = true, max_pool1d = true, avg_pool1d = true,
  flatten = true, stop_gradient = true,
}

--- The first operand of a node, which operators call by several names.
function M.operand(node) return node.args.input or node.args.x or node.args.input_x end

-- Means over a picture alone.
local function is_picture_mean(node)
  local axes, x = node.args.axis, M.operand(node)
  if node.op ~= "mean" or type(axes) ~= "table" then return false end
  local rank = #x.shape
  for _, axis in ipairs(axes) do
    if (axis < 0 and axis + rank or axis) < 2 then return false end
  end
  return #axes > 0
end

-- The layer that gets a layer's result through such operators alone.
local function next_layer(trace, node, of_node)
  local use = trace:only_use(node)
  while use and (homogeneous[use.node.op] or is_picture_mean(use.node)) do
    node = use.node
    use = trace:only_use(node)
  end
  local layer = use and of_node[use.node]
  if layer and (use.name == "input" or use.name == "x") then return layer end
end

-- A layer's weight as (input channels, all else); nil where groups mix them.
local function by_input(layer, channels)
  local cell, w = layer.cell, layer.cell.weight
  if layer.kind.is_convolution then
    if cell.group == 1 then return ops.reshape(ops.swapaxes(w, 0, 1), { channels, -1 }) end
    if cell.group == cell.in_channels and cell.out_channels == cell.in_channels then return ops.reshape(w, { channels, -1 }) end
    return nil
  end
  if not layer.kind.is_transposed and w.shape[2] % channels == 0 then
    return ops.reshape(ops.transpose(w, { 1, 0 }), { channels, -1 })
  end
end

local function scale_inputs(layer, factor)
  local cell, w = layer.cell, layer.cell.weight
  if layer.kind.is_convolution then
    w:set_data(w * along(factor, cell.group == 1 and 1 or 0, w.ndim))
  else
    local repeated = ops.repeat_interleave(factor, w.shape[2] // factor.size)
    w:set_data(w * ops.reshape(repeated, { 1, -1 }))
  end
end

local function pairs_of(network, layers, inputs)
  local trace = M.trace(network, inputs)
  local list, of_node = {}, {}
  if not trace then return list end
  for _, layer in ipairs(layers) do
    local node = not layer.kind.is_table and trace:call_of(layer.cell)
    if node then of_node[node] = layer end
  end
  for _, layer in ipairs(layers) do
    local node = trace:call_of(layer.cell)
    local simple = node and of_node[node] and layer.kind.outputs == 0 and not layer.cell.activation
    local follower = simple and next_layer(trace, node, of_node)
    if follower and follower ~= layer then list[#list + 1] = { layer, follower } end
  end
  return list
end

--- Brings the ranges of channels between two layers together (Nagel et al. 2019): what one channel of the first layer is divided by,
--- the second one's weights for it are multiplied with. Gives the number of pairs.
function M.equalise(network, layers, inputs)
  local list = pairs_of(network, layers, inputs)
  for _ = 1, #list > 0 and 4 or 0 do
    for _, pair in ipairs(list) do
      local first, second = pair[1].cell, pair[2]
      local w = first.weight
      local channels = w.shape[1]
      local rows = by_input(second, channels)
      if rows then
        local r1 = ops.amax(ops.abs(ops.reshape(w, { channels, -1 })), 1)
        local r2 = ops.amax(ops.abs(rows), 1)
        local fine = ops.logical_and(ops.greater(r1, 0), ops.greater(r2, 0))
        local s = ops.where(fine, ops.sqrt(r1 / ops.where(fine, r2, 1.0)), 1.0)
        s = ops.where(ops.greater(s, 0), s, 1.0)
        w:set_data(w / along(s, 0, w.ndim))
        if first.bias then first.bias:set_data(first.bias / s) end
        scale_inputs(second, s)
      end
    end
  end
  return #list
end

-- The dense layers that alone get the result of a normalisation.
local function followers_of(trace, node, owner, of_node, largest)
  local followers, is_fit = {}, trace:call_of(owner.cell) == node
  for _, use in ipairs(is_fit and trace.users[node.id] or {}) do
    local layer = use.node and of_node[use.node]
    if not layer or use.name ~= "input" or not largest[layer.cell] then return nil end
    followers[#followers + 1] = layer
  end
  return #followers > 0 and followers or nil
end

-- Divides the normalisation's results by the factors of its channels, and multiplies the weights that use them.
local function move_spread(norm, followers, x, alpha)
  local w
  for _, layer in ipairs(followers) do
    local m = ops.amax(ops.abs(layer.cell.weight), 0)
    w = w and ops.maximum(w, m) or m
  end
  local fine = ops.logical_and(ops.greater(x, 0), ops.greater(w, 0))
  local s = ops.where(fine, ops.pow(ops.where(fine, x, 1.0), alpha) / ops.pow(ops.where(fine, w, 1.0), 1 - alpha), 1.0)
  for _, key in ipairs { "gamma", "beta", "weight", "bias" } do
    local p = rawget(norm, key)
    if ms.is_parameter(p) then p:set_data(p / s) end
  end
  for _, layer in ipairs(followers) do scale_inputs(layer, s) end
end

--- Moves the spread of a normalisation's channels into the weights of the dense layers behind it (SmoothQuant, Xiao et al. 2022):
--- the channel's factor is (largest input)^alpha / (largest weight)^(1 - alpha). largest: by layer, the largest magnitude of each
--- input channel. Gives the number of normalisations.
function M.smooth(network, layers, inputs, alpha, largest)
  local trace = M.trace(network, inputs)
  local of_node, count = {}, 0
  for _, layer in ipairs(trace and layers or {}) do
    local node = trace:call_of(layer.cell)
    if node and node.op == "dense" then of_node[node] = layer end
  end
  for _, node in ipairs(trace and trace.nodes or {}) do
    local is_norm = node.op == "layer_norm" or node.op == "rms_norm"
    local owner = is_norm and trace:owner(node.args.weight or node.args.gamma)
    local followers = owner and followers_of(trace, node, owner, of_node, largest)
    if followers then
      move_spread(owner.cell, followers, largest[followers[1].cell], alpha)
      count = count + 1
    end
  end
  return count
end

return M
