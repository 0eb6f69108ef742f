-- Per-sample gradients, layer by layer. A rule knows, of a layer's input a and the gradient b of the losses by its result, each with
-- the samples in front: the squares of the norms of every sample's gradient, and the sum of these gradients with a weight for each.
--
-- A dense layer's gradient for one sample is b^T a. Its norm does not need the product: |b^T a|^2 = sum(a a^T * b b^T), two small
-- matrices over the positions within the sample ("ghost norm": Goodfellow 2015, Li and others 2022), and the weighted sum over the
-- samples is one product of all positions. Where there are many positions, the product itself is smaller than the two matrices:
-- 2 T^2 >= p d. What a rule gives for each parameter is a part:
--
--     { parameter =, norm2 = (n), sum = function(weights) the weighted sum, each = function() (n, ...), one gradient a sample }
local ms = require "lunaria"

local ops = ms.ops
local rules = {}

-- One weight for each sample, to be multiplied with a tensor of so many axes.
local function over(weights, rank)
  if rank == 1 then return weights end
  local shape = { -1 }
  for axis = 2, rank do shape[axis] = 1 end
  return ops.reshape(weights, shape)
end

local function product(sizes, first)
  local count = 1
  for i = first, #sizes do count = count * sizes[i] end
  return count
end

-- The sum of all squares in each sample.
local function squares(x)
  if x.ndim == 1 then return x * x end
  local flat = x.ndim == 2 and x or ops.reshape(x, { x.shape[1], product(x.shape, 2) })
  return ops.sum(flat * flat, 1)
end

--- The part of a parameter whose gradients are there one by one: (n, shape of the parameter...).
local function materialised(parameter, each)
  return {
    parameter = parameter, norm2 = squares(each),
    sum = function(weights)
      local n = each.shape[1]
      local flat = ops.matmul(ops.reshape(weights, { 1, n }), ops.reshape(each, { n, each.size // n }))
      return ops.reshape(flat, parameter.shape)
    end,
    each = function() return each end,
  }
end

-- The part of a product: a (n, T, p), b (n, T, q). sum(weights): of the gradients, where they are not there one by one.
local function product_part(parameter, a, b, sum)
  local T, p, q = a.shape[2], a.shape[3], b.shape[3]
  local function each() return ops.matmul(ops.swapaxes(b, 1, 2), a) end
  if T > 1 and 2 * T * T >= p * q then return materialised(parameter, each()) end
  local norm2
  if T == 1 then
    norm2 = squares(a) * squares(b)
  else
    local gram = ops.matmul(a, ops.swapaxes(a, 1, 2)) * ops.matmul(b, ops.swapaxes(b, 1, 2))
    -- Of no negative rounding error is a root taken.
    norm2 = ops.maximum(ops.sum(gram, { 1, 2 }), 0.0)
  end
  return { parameter = parameter, norm2 = norm2, sum = sum, each = each }
end

local function add(parts, part)
  if part.parameter and part.parameter.requires_grad then parts[#parts + 1] = part end
end

-- (n, positions, size).
local function as_positions(x)
  local sizes = x.shape
  return ops.reshape(x, { sizes[1], product(sizes, 2) // sizes[#sizes], sizes[#sizes] })
end

rules.Dense = {}
function rules.Dense.run(cell, tapped, x)
  local y = tapped(ops.dense(x, cell.weight, cell.bias))
  local f = cell.activation
  if f then return f(y) end
  return y
end
function rules.Dense.parts(cell, a, b)
  local parts = {}
  local rows = b.ndim == 2
  if cell.weight.requires_grad then
    local shape = cell.weight.shape
    add(parts, product_part(cell.weight, as_positions(a), as_positions(b), function(weights)
      local weighted = b * over(weights, b.ndim)
      if rows then return ops.matmul(ops.swapaxes(weighted, 0, 1), a) end
      return ops.matmul(ops.swapaxes(ops.reshape(weighted, { -1, shape[1] }), 0, 1), ops.reshape(a, { -1, shape[2] }))
    end))
  end
  if cell.bias and cell.bias.requires_grad then
    add(parts, materialised(cell.bias, rows and b or ops.sum(as_positions(b), 1)))
  end
  return parts
end

-- Padding of a convolution as { before, after } of each axis; kernel: sizes of the window.
local function padding_of(cell, sizes, kernel)
  local list = {}
  for i = 1, #kernel do
    local before, after
    if cell.pad_mode == "same" then
      local out = (sizes[i + 2] + cell.stride[i] - 1) // cell.stride[i]
      local total = math.max(0, (out - 1) * cell.stride[i] + (kernel[i] - 1) * cell.dilation[i] + 1 - sizes[i + 2])
      before, after = total // 2, total - total // 2
    elseif #cell.padding == #kernel then
      before, after = cell.padding[i], cell.padding[i]
    else
      before, after = cell.padding[2 * i - 1], cell.padding[2 * i]
    end
    list[2 * i - 1], list[2 * i] = before, after
  end
  return list
end

-- The patches that a convolution over one or two axes sees: (n, channels * window, T).
local function patches(cell, a, padding)
  local kernel, stride, dilation = cell.kernel_size, cell.stride, cell.dilation
  if #kernel == 1 then
    a, padding = ops.expand_dims(a, 2), { 0, 0, padding[1], padding[2] }
    kernel, stride, dilation = { 1, kernel[1] }, { 1, stride[1] }, { 1, dilation[1] }
  end
  if math.max(table.unpack(padding)) > 0 then a = ops.pad(a, { padding[3], padding[4], padding[1], padding[2] }) end
  return ops.unfold(a, kernel, dilation, 0, stride)
end

-- Gradients of so few weights are made one by one: a library does so faster than it tells the patches.
local FEW = 1 << 14

local function conv_parts(cell, a, b)
  local parts, weight = {}, cell.weight
  local n, shape = b.shape[1], weight.shape
  local padding = padding_of(cell, a.shape, cell.kernel_size)
  local positions = product(b.shape, 3)
  local rows = ops.reshape(b, { n, shape[1], positions })
  if weight.requires_grad then
    local function gradient(input, cotangent)
      return ops.conv_weight_grad(input, cotangent, shape, cell.stride, padding, cell.dilation, cell.group)
    end
    -- One convolution with a group of channels for each sample.
    local function each()
      return ms.vmap(function(x, d) return gradient(ops.expand_dims(x, 0), ops.expand_dims(d, 0)) end)(a, b)
    end
    local weights_count = product(shape, 1)
    if cell.group == 1 and #cell.kernel_size <= 2 and weights_count > FEW and 2 * positions * positions < weights_count then
      local columns = patches(cell, a, padding)
      local gram = ops.matmul(ops.swapaxes(columns, 1, 2), columns) * ops.matmul(ops.swapaxes(rows, 1, 2), rows)
      add(parts, { parameter = weight, norm2 = ops.maximum(ops.sum(gram, { 1, 2 }), 0.0), each = each,
        sum = function(weights) return gradient(a, b * over(weights, b.ndim)) end })
    else
      add(parts, materialised(weight, each()))
    end
  end
  if cell.bias and cell.bias.requires_grad then add(parts, materialised(cell.bias, ops.sum(rows, 2))) end
  return parts
end

for name, operator in pairs { Conv1d = ops.conv1d, Conv2d = ops.conv2d, Conv3d = ops.conv3d } do
  rules[name] = {
    run = function(cell, tapped, x)
      return tapped(operator(x, cell.weight, cell.bias, cell.stride, cell.pad_mode, cell.padding, cell.dilation, cell.group))
    end,
    parts = conv_parts,
  }
end

rules.Embedding = {}
function rules.Embedding.run(cell, tapped, indices)
  return tapped(ops.embedding(indices, cell.embedding_table, cell.padding_idx))
end
function rules.Embedding.parts(cell, a, b)
  local weight = cell.embedding_table
  if not weight.requires_grad then return {} end
  local n = a.shape[1]
  local index = ops.reshape(a, { n, a.size // n })
  local rows = ops.reshape(b, { n, index.shape[2], weight.shape[2] })
  if cell.padding_idx then
    local kept = ops.not_equal(index, cell.padding_idx):astype(b.dtype)
    rows = rows * ops.expand_dims(kept, 2)
  end
  local function gradient(at, d)
    return ms.grad(function(w) return ops.sum(ops.embedding(at, w) * d) end)(weight)
  end
  local norm2
  if index.shape[2] == 1 then
    norm2 = squares(rows)
  else
    local same = ops.equal(ops.expand_dims(index, 1), ops.expand_dims(index, 2)):astype(b.dtype)
    norm2 = ops.maximum(ops.sum(same * ops.matmul(rows, ops.swapaxes(rows, 1, 2)), { 1, 2 }), 0.0)
  end
  return { {
    parameter = weight, norm2 = norm2,
    sum = function(weights) return gradient(index, rows * over(weights, 3)) end,
    each = function() return ms.vmap(gradient)(index, rows) end,
  } }
end

-- The sum over all axes but the first one and those of the parameter, which begin at `first` (from 0) and are `count`.
local function to_parameter(x, first, count)
  local axes = {}
  for axis = 1, x.ndim - 1 do
    if axis < first or axis >= first + count then axes[#axes + 1] = axis end
  end
  return #axes > 0 and ops.sum(x, axes) or x
end

-- A normalisation: a's elements normalised, and from which axis on its parameters lie.
local function norm_rule(run, normalised, first_axis)
  return {
    run = run,
    parts = function(cell, a, b)
      local parts, first, count = {}, first_axis(cell, a), cell.gamma.ndim
      if cell.gamma.requires_grad then
        add(parts, materialised(cell.gamma, to_parameter(b * normalised(cell, a), first, count)))
      end
      if cell.beta.requires_grad then add(parts, materialised(cell.beta, to_parameter(b, first, count))) end
      return parts
    end,
  }
end

local function channel_axis() return 1 end

rules.LayerNorm = norm_rule(function(cell, tapped, x)
  return tapped(ops.layer_norm(x, cell.normalized_shape, cell.gamma, cell.beta, cell.epsilon))
end, function(cell, a)
  return ops.layer_norm(a, cell.normalized_shape, nil, nil, cell.epsilon)
end, function(cell, a) return a.ndim - #cell.normalized_shape end)
-- With other axes than those of the weights a layer is computed as any other one.
function rules.LayerNorm.applies(cell) return cell.plain end

rules.GroupNorm = norm_rule(function(cell, tapped, x)
  return tapped(ops.group_norm(x, cell.num_groups, cell.gamma, cell.beta, cell.eps))
end, function(cell, a)
  return ops.group_norm(a, cell.num_groups, nil, nil, cell.eps)
end, channel_axis)

--- The rule of a cell, by its class; nil where there is none, as for classes of the user's that compute otherwise.
local function rule_of(cell)
  local name = getmetatable(cell)._name
  local rule = rules[name]
  if rule == nil or getmetatable(cell).construct ~= ms.nn[name].construct or rawget(cell, "construct") then return nil end
  if rule.applies and not rule.applies(cell) then return nil end
  return rule
end

return { of = rule_of, materialised = materialised, over = over }
