-- ms.insight.landscape: the loss on a plane through the weights of a network. The plane is spanned by two directions, the first two
-- principal components of saved weights or random ones, through the last of the saved weights; a point of it is the weights there.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local predicting = require "lunaria.nn.predicting"
local source = require "lunaria.train.batches"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local where = "landscape"

local Landscape = {}
Landscape.__index = Landscape
Landscape.__name = "landscape"

function Landscape:__tostring()
  return ("landscape of %d x %d points (%s), loss %.6g to %.6g, %.6g in the end"):format(self.x.size, self.y.size, self.decomposition,
    ops.min(self.z):item(), ops.max(self.z):item(), self.convergence.z:tolist()[1])
end

-- The weights of a checkpoint by name: of a file, or a table of tensors.
local function weights_of(checkpoint, i)
  if type(checkpoint) == "string" then return ms.load_checkpoint(checkpoint) end
  if type(checkpoint) ~= "table" or getmetatable(checkpoint) ~= nil then
    fail(where, ("checkpoints[%d] must be the path of a checkpoint or a table of tensors by name, got %s"):format(i, describe(checkpoint)))
  end
  return checkpoint
end

-- The parameters that span the plane, and what they are in each checkpoint, as vectors.
local function vectors_of(network, checkpoints)
  local parameters, rows = {}, {}
  for name, parameter in network:parameters_and_names() do
    if ops.is_floating_point(parameter) and parameter.requires_grad ~= false then parameters[#parameters + 1] = { name, parameter } end
  end
  if #parameters == 0 then fail(where, "the network has no parameters that are trained") end
  for i, checkpoint in ipairs(checkpoints) do
    local weights, parts = weights_of(checkpoint, i), {}
    for k, entry in ipairs(parameters) do
      local saved = weights[entry[1]] or weights[entry[2].name]
      if not ms.is_tensor(saved) or tostring(saved.shape) ~= tostring(entry[2].shape) then
        fail(where, ("checkpoint %d has no %s of shape %s"):format(i, entry[1], tostring(entry[2].shape)))
      end
      parts[k] = saved:astype(ms.float64)
    end
    rows[i] = ms.boost.flat(parts)
  end
  return parameters, rows
end

-- A vector as one tensor for each parameter.
local function parts_of(parameters, vector)
  local parts, at = {}, 0
  for i, entry in ipairs(parameters) do
    local size = entry[2].size
    parts[i] = vector[{ ms.slice(at, at + size) }]:reshape(entry[2].shape)
    at = at + size
  end
  return parts
end

-- A random direction in which each parameter is as long as it is in the network, so that equal steps mean as much in each.
local function random_direction(parameters, final)
  local parts = {}
  for i, weights in ipairs(parts_of(parameters, final)) do
    local drawn = ms.randn(weights.shape):astype(ms.float64)
    local length = ops.norm(drawn)
    parts[i] = drawn * (ops.norm(weights) / ops.maximum(length, 1e-30))
  end
  return ms.boost.flat(parts)
end

local function dot(a, b) return ops.sum(a * b) end

-- The two directions of most variance among the differences from the last weights. A path that does not leave a line gets a second
-- direction at random, orthogonal to the first.
local function principal_directions(rows)
  local final, differences = rows[#rows], {}
  for i = 1, #rows do differences[i] = rows[i] - final end
  local ok, found, shares = pcall(ms.boost.pca, differences, 2)
  if ok then return found[0], found[1], shares:tolist() end
  ok, found = pcall(ms.boost.pca, differences, 1)
  if not ok then fail(where, "all checkpoints have the same weights") end
  local other = ms.randn({ final.size }):astype(ms.float64)
  other = other - found[0] * dot(other, found[0])
  return found[0], other / ops.norm(other), { 1.0, 0.0 }
end

local function grid_between(least, most, size)
  local list = {}
  for i = 0, size - 1 do list[i + 1] = least + (most - least) * i / (size - 1) end
  return list
end

-- The bounds of an axis: those of the path and a fifth of its width on each side.
local function bounds_of(list, least_width)
  local least, most = math.huge, -math.huge
  for _, value in ipairs(list) do least, most = math.min(least, value), math.max(most, value) end
  local margin = math.max(0.2 * (most - least), (least_width - (most - least)) / 2)
  return least - margin, most + margin
end

-- The batches of a data set, at most so many samples, as a list.
local function batches_of(dataset, num_samples)
  local list, samples = {}, 0
  local next_batch = source(where, dataset).epoch()
  while samples < num_samples do
    local batch = table.pack(next_batch())
    if batch[1] == nil then break end
    list[#list + 1] = batch
    samples = samples + (ms.is_tensor(batch[1]) and batch[1].ndim > 0 and batch[1].shape[1] or 1)
  end
  if #list == 0 then fail(where, "the data set gives no batch") end
  return list
end

-- A function that gives the mean loss over the batches, with the network as it predicts.
local function mean_loss(network, loss_fn, batches)
  local step = loss_fn ~= nil and ms.nn.WithLossCell(network, loss_fn) or network
  return function()
    local sum, count = 0.0, 0
    for _, batch in ipairs(batches) do
      local samples = ms.is_tensor(batch[1]) and batch[1].ndim > 0 and batch[1].shape[1] or 1
      sum, count = sum + ops.mean(step(table.unpack(batch, 1, batch.n))):item() * samples, count + samples
    end
    return sum / count
  end
end

local signature = arguments.signature("network, loss_fn, dataset, checkpoints, size=40, directions=\"pca\", num_samples=2048, "
  .. "intervals=nil, unit=\"step\", steps_per_epoch=1, progress=nil")

local function checked(...)
  local a = arguments.bind(where, signature, ...)
  if not cells.is_cell(a.network) then fail(where, "network must be a cell, got " .. describe(a.network)) end
  if a.loss_fn ~= nil and not arguments.is_callable(a.loss_fn) then
    fail(where, "loss_fn must be a cell or a function, got " .. describe(a.loss_fn))
  end
  if type(a.checkpoints) ~= "table" or getmetatable(a.checkpoints) ~= nil then
    fail(where, "checkpoints must be a list of paths or of tables, got " .. describe(a.checkpoints))
  end
  check.choice(where, "directions", a.directions, { "pca", "random" })
  check.choice(where, "unit", a.unit, { "step", "epoch" })
  check.positive(where, "num_samples", a.num_samples)
  check.positive(where, "steps_per_epoch", a.steps_per_epoch)
  local size = check.integer(where, "size", a.size)
  if size < 3 or size > 256 then fail(where, ("size must be between 3 and 256, got %d"):format(size)) end
  local least = a.directions == "pca" and 3 or 1
  if #a.checkpoints < least then
    fail(where, ("%d checkpoints are needed at least, got %d"):format(least, #a.checkpoints))
  end
  if a.intervals == nil then
    a.intervals = {}
    for i = 1, #a.checkpoints do a.intervals[i] = i end
  elseif type(a.intervals) ~= "table" or #a.intervals ~= #a.checkpoints then
    fail(where, "intervals must be a list with a number for each checkpoint, got " .. describe(a.intervals))
  end
  return a
end

local function computed(a, parameters, rows)
  local final = rows[#rows]
  local v, w, explained
  local path_x, path_y = {}, {}
  local x, y
  if a.directions == "random" then
    v, w = random_direction(parameters, final), random_direction(parameters, final)
    x, y = grid_between(-1, 1, a.size), grid_between(-1, 1, a.size)
  else
    v, w, explained = principal_directions(rows)
    for i, row in ipairs(rows) do
      path_x[i], path_y[i] = dot(row - final, v):item(), dot(row - final, w):item()
    end
    local least_x, most_x = bounds_of(path_x, 0)
    local least_y, most_y = bounds_of(path_y, 0.1 * (most_x - least_x))
    x, y = grid_between(least_x, most_x, a.size), grid_between(least_y, most_y, a.size)
  end
  local loss = mean_loss(a.network, a.loss_fn, batches_of(a.dataset, a.num_samples))
  local function at(px, py)
    for i, part in ipairs(parts_of(parameters, final + v * px + w * py)) do
      local parameter = parameters[i][2]
      parameter:assign(part:astype(parameter.dtype))
    end
    return loss()
  end
  local z, path_z = {}, {}
  for i = 1, #path_x do path_z[i] = at(path_x[i], path_y[i]) end
  local last = at(0.0, 0.0)
  for _, j in a.progress(a.size) do
    local row = {}
    for i = 1, a.size do row[i] = at(x[i], y[j]) end
    z[j] = row
  end
  local function tensor(list) return ms.tensor(list, ms.float64) end
  return setmetatable({ x = tensor(x), y = tensor(y), z = tensor(z), decomposition = a.directions == "pca" and "PCA" or "Random",
    unit = a.unit, steps_per_epoch = a.steps_per_epoch, explained = explained,
    path = explained and { intervals = a.intervals, x = tensor(path_x), y = tensor(path_y), z = tensor(path_z) } or nil,
    convergence = { x = tensor { 0.0 }, y = tensor { 0.0 }, z = tensor { last } } }, Landscape)
end

--- The loss of a network on a plane through its weights: a table of x and y (the places of the grid along the two directions), z (the
--- losses, a row for each y), path (intervals, x, y, z of each checkpoint in the plane), convergence (the last one), explained (the
--- shares of the variance that the two directions have), decomposition, unit, steps_per_epoch; record:add_value("landscape", tag, it)
--- writes it. loss_fn(outputs, label) gives the loss; nil: the network gives it. dataset: batches as Model takes them, of which
--- num_samples=2048 samples count. checkpoints: a list of paths of checkpoints or of tables of tensors by name, in the order of the
--- training. Further arguments: size=40 (points along an axis, 3 to 256), directions="pca" (the two of most variance of the path) or
--- "random", intervals (the step of each checkpoint), unit="step", steps_per_epoch=1, progress (a bar). The network is as before.
---     > net = ms.nn.Dense(2, 1)
---     > saved = {}
---     > for i = 1, 3 do saved[i] = { weight = ms.randn { 1, 2 }, bias = ms.zeros { 1 } } end
---     > plane = ms.insight.landscape(net, ms.nn.MSELoss(), { { ms.ones { 4, 2 }, ms.ones { 4, 1 } } }, saved, { size = 3 })
---     > plane.z.shape, #plane.path.intervals --> (3, 3)	3
local function landscape(...)
  local a = checked(...)
  local wants_bar = a.progress
  if wants_bar == nil then wants_bar = ms.is_terminal(io.stderr) end
  check.boolean(where, "progress", wants_bar)
  function a.progress(count)
    local list = {}
    for i = 1, count do list[i] = i end
    if wants_bar then return ms.progress(list, { desc = where }) end
    return ipairs(list)
  end
  local parameters, rows = vectors_of(a.network, a.checkpoints)
  local before = {}
  for i, entry in ipairs(parameters) do before[i] = entry[2]:copy() end
  local restore_modes = predicting(a.network)
  local function restore()
    for i, entry in ipairs(parameters) do entry[2]:assign(before[i]) end
    restore_modes()
  end
  local guard <close> = setmetatable({}, { __close = restore }) -- luacheck: ignore 211
  return computed(a, parameters, rows)
end

return { landscape = landscape }
