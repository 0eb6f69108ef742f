-- Channels of a network that stand or fall together: those that a layer makes, those of the layers that its result is added to, the
-- normalisations between, and the weights that read them. What is not understood, such as the result of the network, keeps its channels.
local ms = require "lunaria"
local graph = require "lunaria.lite.quantise_graph"
local layers_of = require "lunaria.lite.quantise_layers"

local ops = ms.ops
local M = {}

local pointwise, pools = {}, {}
for name in ([[relu relu6 leaky_relu silu gelu gelu_erf gelu_tanh sigmoid tanh hardswish hardsigmoid elu mish identity stop_gradient
  softplus square abs clamp]]):gmatch "%S+" do
  pointwise[name] = true
end
for name in ("max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d"):gmatch "%S+" do pools[name] = true end
local joining = { add = true, sub = true, mul = true, maximum = true, minimum = true }

-- Sets of channels; joined ones lead to the one that has all members.
local function root(set)
  while set.joined do set = set.joined end
  return set
end

local Sets = {}
Sets.__index = Sets

function Sets:new(size)
  local set = { size = size, producers = {}, normalisations = {}, consumers = {} }
  self.list[#self.list + 1] = set
  return set
end

function Sets:join(a, b)
  a, b = root(a), root(b)
  if a == b then return a end
  if a.size ~= b.size then
    a.fixed, b.fixed = true, true
    return a
  end
  for _, kind in ipairs { "producers", "normalisations", "consumers" } do
    for _, member in ipairs(b[kind]) do table.insert(a[kind], member) end
  end
  a.fixed, b.joined = a.fixed or b.fixed, a
  return a
end

local function is_value(v) return type(v) == "table" and v.id ~= nil end

-- Where the channels of a value lie: { set, axis, repeats }: so many elements next to one another belong to a channel.
function Sets:of(v) return is_value(v) and v.item == 1 and self.places[v.id] or nil end

local function fix(place)
  if place then root(place.set).fixed = true end
end

function Sets:fix_all(v)
  if type(v) ~= "table" then return end
  if v.id then return fix(self.places[v.id]) end
  if v.constant == nil then
    for _, item in ipairs(v) do self:fix_all(item) end
  end
end

function Sets:convolution(node, cell)
  local from = self:of(node.args.input)
  if cell.group == 1 then
    if from and from.axis == 1 and from.repeats == 1 then
      table.insert(root(from.set).consumers, { cell = cell, repeats = 1 })
    else
      fix(from)
    end
  elseif from and cell.group == cell.in_channels and cell.out_channels == cell.in_channels and from.axis == 1 and from.repeats == 1 then
    table.insert(root(from.set).producers, { cell = cell, is_depthwise = true })
    return from
  else
    fix(from)
    return nil
  end
  local set = self:new(cell.out_channels)
  table.insert(set.producers, { cell = cell })
  return { set = set, axis = 1, repeats = 1 }
end

function Sets:dense(node, cell)
  local from, rank = self:of(node.args.input), #node.args.input.shape
  if from and from.axis == rank - 1 then
    table.insert(root(from.set).consumers, { cell = cell, repeats = from.repeats })
  else
    fix(from)
  end
  local set = self:new(cell.out_channels)
  table.insert(set.producers, { cell = cell })
  return { set = set, axis = #node.shape - 1, repeats = 1 }
end

-- A mean over other axes than that of the channels.
local function mean_place(node, from)
  local axes, axis = node.args.axis, from.axis
  if type(axes) ~= "table" or #axes == 0 then return nil end
  local rank = #graph.operand(node).shape
  local keeps = #node.shape == rank
  for _, a in ipairs(axes) do
    a = a < 0 and a + rank or a
    if a == from.axis then return nil end
    if a < from.axis and not keeps then axis = axis - 1 end
  end
  return { set = from.set, axis = axis, repeats = from.repeats }
end

-- The axes behind the channels joined with theirs.
local function flat_place(node, from)
  local shape = graph.operand(node).shape
  if from.axis ~= 1 or #node.shape ~= 2 or node.shape[1] ~= shape[1] then return nil end
  local repeats = from.repeats
  for i = 3, #shape do repeats = repeats * shape[i] end
  return { set = from.set, axis = 1, repeats = repeats }
end

-- The place of a sum or product of two values.
function Sets:joined(node)
  local a, b = node.args.input or node.args.x, node.args.other or node.args.y
  local p, q = self:of(a), self:of(b)
  local function is_number(v) return type(v) ~= "table" or v.constant ~= nil and (not v.shape or #v.shape == 0) end
  if p and is_number(b) then return p end
  if q and is_number(a) then return q end
  if not p or not q or #a.shape ~= #b.shape or p.axis ~= q.axis or p.repeats ~= q.repeats then return nil end
  return { set = self:join(p.set, q.set), axis = p.axis, repeats = p.repeats }
end

function Sets:place(node)
  local cell = self.layer_of[node]
  if cell then
    if node.op == "dense" then return self:dense(node, cell) end
    return self:convolution(node, cell)
  end
  if joining[node.op] then return self:joined(node) end
  local from = self:of(graph.operand(node))
  if not from then return nil end
  if pointwise[node.op] or pools[node.op] and from.axis == 1 then return from end
  if node.op == "mean" then return mean_place(node, from) end
  if node.op == "flatten" or node.op == "reshape" then return flat_place(node, from) end
  local owner = node.op == "batch_norm" and from.axis == 1 and from.repeats == 1 and self.trace:owner(node.args.running_mean)
  if owner and self.trace:call_of(owner.cell) == node then
    table.insert(root(from.set).normalisations, { cell = owner.cell })
    return from
  end
end

--- The sets of channels of a network whose number may change, for inputs of these sizes: { size, producers, normalisations,
--- consumers }. Nil where the network decides by its tensors' elements.
function M.channel_sets(network, inputs)
  local trace = graph.trace(network, inputs)
  if not trace then return nil end
  local self = setmetatable({ trace = trace, list = {}, places = {}, layer_of = {} }, Sets)
  for _, cell in network:cells_and_names() do
    local kind = layers_of.kind_of(cell)
    local node = kind and not kind.is_transposed and not kind.is_table and not cell.is_quantised and trace:call_of(cell)
    if node then self.layer_of[node] = cell end
  end
  for _, node in ipairs(trace.nodes) do
    local place = self:place(node)
    if place then
      self.places[node.id] = place
    elseif not self.layer_of[node] then
      for _, v in pairs(node.args) do self:fix_all(v) end
    end
  end
  for _, v in ipairs(trace.results) do self:fix_all(v) end
  local found = {}
  for _, set in ipairs(self.list) do
    if not set.joined and not set.fixed and #set.consumers > 0 and set.size > 1 then found[#found + 1] = set end
  end
  return found
end

--- The sum over producers of the importance of each channel; measure(weight) gives that of a weight's rows.
function M.importance(set, measure)
  local sum
  for _, member in ipairs(set.producers) do
    local score = measure(member.cell.weight)
    local mean = ops.mean(score):item()
    if mean > 0 then score = score / mean end
    sum = sum and sum + score or score
  end
  return sum
end

--- Numbers for each row of a weight: the length of its row, by absolute values or squares.
function M.row_norm(weight, criterion)
  local rows = ops.reshape(weight, { weight.shape[1], -1 })
  if criterion == "l1" then return ops.sum(ops.abs(rows), 1) end
  return ops.sqrt(ops.sum(rows * rows, 1))
end

--- The numbers of the `count` most important channels, in order.
function M.most_important(score, count)
  local order = ops.argsort(score, { descending = true }):tolist()
  local list = table.move(order, 1, count, 1, {})
  table.sort(list)
  return list
end

local function cut(cell, key, axis, places)
  local old = rawget(cell, key)
  if not ms.is_parameter(old) then return end
  cell[key] = ms.Parameter(ops.gather(old, places, axis), old.name, old.requires_grad)
end

--- Leaves these channels of a set alone in the network; all others go.
function M.keep_channels(set, channels)
  local places = ms.tensor(channels, ms.int64)
  for _, member in ipairs(set.producers) do
    local cell = member.cell
    cut(cell, "weight", 0, places)
    cut(cell, "bias", 0, places)
    cell.out_channels = #channels
    if member.is_depthwise then cell.in_channels, cell.group = #channels, #channels end
  end
  for _, member in ipairs(set.normalisations) do
    for _, key in ipairs { "gamma", "beta", "moving_mean", "moving_variance" } do cut(member.cell, key, 0, places) end
    member.cell.num_features = #channels
  end
  for _, member in ipairs(set.consumers) do
    local spread = places
    if member.repeats > 1 then
      spread = ops.reshape(ops.reshape(places, { -1, 1 }) * member.repeats + ops.arange(0, member.repeats, 1, ms.int64), { -1 })
    end
    cut(member.cell, "weight", 1, spread)
    member.cell.in_channels = spread.size
  end
end

return M
