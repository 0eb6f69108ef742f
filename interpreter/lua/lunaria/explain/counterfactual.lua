-- Counterfactual explanations by hierarchical occlusion: the least parts of a picture that are enough for an answer, or without which it
-- falls, as a tree of boxes: large ones first, then smaller ones within them.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local common = require "lunaria.explain.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

-- A picture smoothed by a Gaussian of that width along both axes; the border goes on beyond the edge.
local function blurred(image, sigma)
  local reach, weights, sum = 4 * sigma, {}, 0.0
  for d = -reach, reach do
    weights[d] = math.exp(-0.5 * (d / sigma) ^ 2)
    sum = sum + weights[d]
  end
  for axis = 2, 3 do
    local size, total = image.shape[axis + 1], nil
    for d = -reach, reach do
      local places = ops.clamp(ms.arange(size) + d, 0, size - 1):astype(ms.int64)
      local part = ops.gather(image, places, axis) * (weights[d] / sum)
      total = total and total + part or part
    end
    image = total
  end
  return image
end

-- What hides a part of a picture, as a picture. mask: "gaussian:R", a number, a list of one for each channel, a tensor, or nil.
local function compiled_mask(where, mask, image)
  local channels, height, width = image.shape[2], image.shape[3], image.shape[4]
  if mask == nil then
    local radius = math.floor(math.min(height, width) / 25 + 0.5)
    if radius == 0 then fail(where, "the picture is too small for a mask of its own", "give mask, as 0.0") end
    return blurred(image, radius)
  end
  if type(mask) == "string" then
    local radius = math.tointeger(tonumber(mask:match "^gaussian:(%d+)$"))
    if not radius or radius == 0 then fail(where, ("mask must be as gaussian:9, got %s"):format(describe(mask))) end
    return blurred(image, radius)
  end
  if math.type(mask) then return ops.full_like(image, mask) end
  if ms.is_tensor(mask) then
    if mask.size ~= image.size then fail(where, ("mask must be a picture as the other one, got %s"):format(describe(mask))) end
    return mask:reshape(image.shape)
  end
  if type(mask) == "table" and #mask == channels then
    return ops.broadcast_to(ms.tensor(mask, image.dtype):reshape { 1, channels, 1, 1 }, image.shape)
  end
  return fail(where, ("mask must be a text as gaussian:9, a number, %d numbers or a tensor, got %s"):format(channels, describe(mask)))
end

local EditStep = class.define(nil, "EditStep", "layer, box",
  [[A box of a picture that is shown or hidden, and the smaller ones within it. layer: -1 for the whole picture, 0 for the largest boxes.
box: { x, y, width, height } in pixels. Fields: network_output (with this box and those before it), step_change (what it changed),
children (a list).

  > ms.explain.EditStep(0, { 2, 3, 4, 4 }).box[2] --> 3]])

function EditStep:setup(a)
  self.layer = check.integer("EditStep", "layer", a.layer)
  if type(a.box) ~= "table" or #a.box ~= 4 then fail("EditStep", "box must be { x, y, width, height }, got " .. describe(a.box)) end
  self.box, self.children, self.network_output, self.step_change = a.box, {}, 0.0, 0.0
end

--- The boxes that have none within them.
---     > #ms.explain.EditStep(0, { 0, 0, 4, 4 }):leaf_steps() --> 1
function EditStep:leaf_steps()
  if #self.children == 0 then return { self } end
  local list = {}
  for _, child in ipairs(self.children) do
    for _, step in ipairs(child:leaf_steps()) do list[#list + 1] = step end
  end
  return list
end

--- The number of the deepest layer below it.
---     > ms.explain.EditStep(0, { 0, 0, 4, 4 }):max_layer() --> 0
function EditStep:max_layer()
  local most = self.layer
  for _, child in ipairs(self.children) do most = math.max(most, child:max_layer()) end
  return most
end

--- The boxes of a layer, and those above it that have none within them.
---     > #ms.explain.EditStep(-1, { 0, 0, 4, 4 }):get_layer_or_leaf_steps(0) --> 1
function EditStep:get_layer_or_leaf_steps(layer)
  local list = {}
  if self.layer > layer then return list end
  if #self.children == 0 or self.layer == layer then return { self } end
  for _, child in ipairs(self.children) do
    for _, step in ipairs(child:get_layer_or_leaf_steps(layer)) do list[#list + 1] = step end
  end
  return list
end

--- The boxes of a layer.
---     > #ms.explain.EditStep(-1, { 0, 0, 4, 4 }):get_layer_steps(0) --> 0
function EditStep:get_layer_steps(layer)
  if self.layer == layer then return { self } end
  local list = {}
  for _, child in ipairs(self.children) do
    for _, step in ipairs(child:get_layer_steps(layer)) do list[#list + 1] = step end
  end
  return list
end

-- 1 within each box, 0 elsewhere: (count, 1, H, W).
local function boxes(steps, height, width)
  local sides = { {}, {}, {}, {} }
  for i, step in ipairs(steps) do
    for k = 1, 4 do sides[k][i] = step.box[k] end
  end
  local function along(from, length, size)
    local at, first = ms.arange(size):reshape { 1, size }, ms.tensor(from, ms.int64):reshape { #from, 1 }
    local last = first + ms.tensor(length, ms.int64):reshape { #from, 1 }
    return ops.logical_and(ops.greater_equal(at, first), ops.less(at, last)):astype(ms.float32)
  end
  local down, across = along(sides[2], sides[4], height), along(sides[1], sides[3], width)
  return down:reshape { #steps, 1, height, 1 } * across:reshape { #steps, 1, 1, width }
end

-- All boxes in one picture (1, 1, H, W).
local function together(steps, height, width)
  if #steps == 0 then return ms.zeros { 1, 1, height, width } end
  return ops.amax(boxes(steps, height, width), 0, true)
end

-- The picture with what is inside hidden by the mask, or the mask with what is inside of the picture.
local function edited(image, mask, inside, by_masking)
  inside = inside:astype(image.dtype)
  if by_masking then return image * (1 - inside) + mask * inside end
  return mask * (1 - inside) + image * inside
end

-- MindSpore's settings where none are given: at most three layers, windows of half the side and more than 27 pixels, strides of a fifth.
local most_layers, least_window = 3, 28
local function automatic(where, short)
  local windows, strides, size = {}, {}, short // 2
  while #windows < most_layers and size >= least_window do
    windows[#windows + 1], strides[#strides + 1] = size, size // 5
    size = size // 2
  end
  if #windows == 0 then
    fail(where, ("the picture's shorter side is below %d pixels"):format(2 * least_window), "give win_sizes and strides")
  end
  return windows, strides
end

local Searcher = class.define(nil, "Searcher", "network, win_sizes=nil, strides=nil, threshold=0.5, by_masking=false, batch_size=64",
  [[Searches the least boxes of a picture that bring the output of a class to a threshold where the rest is hidden, or, with by_masking,
whose hiding lets it fall to it. network: gives probabilities (N, classes). win_sizes: the sides of the boxes of each layer, in pixels, each
smaller than the one before; strides: how far they are moved; without them half the side of the picture, a quarter and an eighth.
batch_size: how many pictures at once.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(64, 2), ms.nn.Softmax())
  > ms.explain.Searcher(net, { 4, 2 }, { 2, 1 }).threshold --> 0.5]])

local function side_list(where, name, list)
  if type(list) ~= "table" or #list == 0 then fail(where, ("%s must be a list of sizes, got %s"):format(name, describe(list))) end
  for i, size in ipairs(list) do
    check.positive(where, ("%s[%d]"):format(name, i), size)
    if i > 1 and size >= list[i - 1] then fail(where, name .. " must fall from layer to layer") end
  end
  return list
end

function Searcher:setup(a)
  local where = "Searcher"
  if not arguments.is_callable(a.network) then fail(where, "network must be a cell, got " .. describe(a.network)) end
  if (a.win_sizes == nil) ~= (a.strides == nil) then fail(where, "win_sizes and strides must be given together") end
  if a.win_sizes then
    self.win_sizes, self.strides = side_list(where, "win_sizes", a.win_sizes), side_list(where, "strides", a.strides)
    if #self.win_sizes ~= #self.strides then fail(where, "win_sizes and strides must be equally long") end
  end
  self.network = a.network
  self.threshold = check.number(where, "threshold", a.threshold)
  self.by_masking = check.boolean(where, "by_masking", a.by_masking)
  self.batch_size = check.positive(where, "batch_size", a.batch_size)
end

-- The places of windows along a side; the last one ends with the field.
local function places(from, length, window, stride)
  local list = {}
  for at = from, from + math.max(0, length - window), stride do list[#list + 1] = at end
  local last = from + math.max(0, length - window)
  if list[#list] ~= last then list[#list + 1] = last end
  return list
end

-- One search: in the box of a step, boxes of the next layer, each time the one that brings the output farthest, until the threshold or,
-- below the first layer, the change that the box around them made. Gives the boxes where that was reached, and searches for within them.
local function search_within(self, s, parent, before)
  local layer = parent.layer + 1
  local window, stride = s.windows[layer + 1], s.strides[layer + 1]
  local x, y, width, height = table.unpack(parent.box)
  local open = {}
  for _, v in ipairs(places(y, height, window, stride)) do
    for _, u in ipairs(places(x, width, window, stride)) do open[#open + 1] = EditStep(layer, { u, v, window, window }) end
  end
  local windows, left = boxes(open, s.height, s.width), {}
  for i = 1, #open do left[i] = i - 1 end
  local steps, jobs, own = {}, {}, {}
  for _, step in ipairs(before) do
    for _, leaf in ipairs(step:leaf_steps()) do own[#own + 1] = leaf end
  end
  local inside = together(own, s.height, s.width)
  local start = s.outputs(inside)[1]
  local last = start
  while not self:_is_met(last) do
    if #left == 0 then return nil end
    local outputs, best = s.outputs(ops.maximum(inside, ops.gather(windows, ms.tensor(left, ms.int64), 0))), 1
    for i = 2, #left do
      if self.by_masking and outputs[i] < outputs[best] or not self.by_masking and outputs[i] > outputs[best] then best = i end
    end
    local found = open[left[best] + 1]
    inside = ops.maximum(inside, windows[{ ms.slice(left[best], left[best] + 1) }])
    table.remove(left, best)
    found.network_output, found.step_change = outputs[best], outputs[best] - last
    local helps = found.step_change > 0
    if self.by_masking then helps = found.step_change < 0 end
    if layer + 1 < #s.windows and helps then
      local earlier = table.move(before, 1, #before, 1, {})
      jobs[#jobs + 1] = { found, table.move(steps, 1, #steps, #earlier + 1, earlier) }
    end
    steps[#steps + 1] = found
    last = found.network_output
    if layer > 0 then
      local change = last - start
      if self.by_masking and change <= parent.step_change or not self.by_masking and change >= parent.step_change then break end
    end
  end
  return steps, jobs
end

function Searcher:_is_met(output)
  if self.by_masking then return output <= self.threshold end
  return output >= self.threshold
end

-- The boxes and the outputs of their layers; nil and why where there are none.
local function find(self, where, image, class_idx, mask)
  if ms.is_tensor(image) and image.ndim == 3 then image = ops.expand_dims(image, 0) end
  image = common.inputs(where, image)
  if image.shape[1] ~= 1 then fail(where, ("image must be one picture, got %d"):format(image.shape[1])) end
  class_idx = check.not_negative(where, "class_idx", class_idx)
  mask = compiled_mask(where, mask, image)
  local height, width = image.shape[3], image.shape[4]
  local windows, strides = self.win_sizes, self.strides
  if not windows then windows, strides = automatic(where, math.min(height, width)) end
  if math.min(height, width) <= windows[1] then
    fail(where, ("the picture's shorter side, %d, must be larger than the first window, %d"):format(math.min(height, width), windows[1]))
  end
  local function asked(x)
    return common.predicting(self.network, function()
      local y = common.answers(where, self.network, x, self.batch_size)
      if class_idx >= y.shape[2] then fail(where, ("the network has %d classes, and class_idx is %d"):format(y.shape[2], class_idx)) end
      return y[{ ms.slice(), class_idx }]:tolist()
    end)
  end
  local own = asked(image)[1]
  if own <= self.threshold then
    return nil, ("the output for the picture is %.4g, which must be larger than the threshold, %g"):format(own, self.threshold)
  end
  local s = { windows = windows, strides = strides, height = height, width = width }
  function s.outputs(inside) return asked(edited(image, mask, inside, self.by_masking)) end
  local root = EditStep(-1, { 0, 0, width, height })
  local jobs, at = { { root, {} } }, 1
  while jobs[at] do
    local steps, more = search_within(self, s, jobs[at][1], jobs[at][2])
    if steps then
      jobs[at][1].children = steps
      table.move(more, 1, #more, #jobs + 1, jobs)
    end
    at = at + 1
  end
  local outputs = {}
  for layer = 0, root:max_layer() do outputs[layer + 1] = s.outputs(together(root:get_layer_or_leaf_steps(layer), height, width))[1] end
  -- Layers whose boxes do not reach the threshold together are left out.
  while #outputs > 0 and not self:_is_met(outputs[#outputs]) do outputs[#outputs] = nil end
  if #outputs == 0 then return nil, ("no boxes bring the output to the threshold, %g"):format(self.threshold) end
  for _, step in ipairs(root:get_layer_steps(#outputs - 1)) do step.children = {} end
  return root, outputs
end

--- The boxes for a class of a picture: the step of the whole picture, whose children are those of layer 0, and a list with the output of
--- each layer's boxes. image: a tensor (C, H, W) or (1, C, H, W). class_idx: from 0. mask: what hides: "gaussian:9" (a smooth picture of
--- that width), a number, one for each channel, or a tensor; without it a smooth one. An error where the picture itself does not reach the
--- threshold, or no boxes do.
---     > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(64, 2, { has_bias = false }), ms.nn.Softmax())
---     > weight = net[2].weight:assign(ms.tensor { { 1.0 }, { -1.0 } } * ms.ones { 2, 64 })
---     > root, outputs = ms.explain.Searcher(net, { 4, 2 }, { 2, 1 }, 0.6):search(ms.ones { 1, 8, 8 }, 0, 0.0)
---     > #root.children, outputs[1] >= 0.6 --> 1	true
function Searcher:search(image, class_idx, mask)
  local where = "search"
  image, class_idx, mask = arguments.named(where, { "image", "class_idx", "mask" }, image, class_idx, mask)
  local root, outputs = find(self, where, image, class_idx, mask)
  if not root then fail(where, outputs) end
  return root, outputs
end

local HierarchicalOcclusion = Searcher:extend("HierarchicalOcclusion")
HierarchicalOcclusion._signature = arguments.signature(
  "network, activation_fn, win_sizes=nil, strides=nil, threshold=0.5, by_masking=false, batch_size=64")
HierarchicalOcclusion._doc = [[ms.explain.Searcher for a network that gives logits: activation_fn makes probabilities of them. win_sizes,
strides, threshold, by_masking, batch_size: as there.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(64, 2))
  > ms.explain.HierarchicalOcclusion(net, ms.nn.Softmax(), { 4, 2 }, { 2, 1 }).by_masking --> false]]
function HierarchicalOcclusion:init(...)
  local a = arguments.bind("HierarchicalOcclusion", HierarchicalOcclusion._signature, ...)
  if not cells.is_cell(a.network) then fail("HierarchicalOcclusion", "network must be a cell, got " .. describe(a.network)) end
  if not arguments.is_callable(a.activation_fn) then
    fail("HierarchicalOcclusion", "activation_fn must be a cell, got " .. describe(a.activation_fn))
  end
  local network, ask = a.network, common.activated(a.network, a.activation_fn)
  function a.network(x) return common.predicting(network, ask, x) end
  Searcher.setup(self, a)
end

return { EditStep = EditStep, Searcher = Searcher, HierarchicalOcclusion = HierarchicalOcclusion, find = find }
