-- The values (Summary.Value) of an event file by plug-in. One file serves TensorBoard and MindSpore's own tools: where the two
-- disagree about a field both forms are written.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local events = require "lunaria.train.events"
local messages = require "lunaria.train.messages"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local text_field, integer_field, float_field = events.text_field, events.integer_field, events.float_field

-- Each gives the values (Summary.Value) of a tag.
local plugins = {}

function plugins.scalar(tag, value)
  value = check.number("add_value", tag, value)
  -- Fields 2 and 3: simple_value is TensorBoard's, scalar_value MindSpore's. In one piece, as a training writes nothing more often.
  return { text_field(1, tag) .. ("<BfBf"):pack(2 << 3 | 5, value, 3 << 3 | 5, value) }
end

-- The elements of a float32 tensor as bytes.
local function floats(x)
  local list, parts = x:reshape({ -1 }):tolist(), {}
  -- pack takes so many arguments at once.
  local most = 128
  for from = 1, #list, most do
    local count = math.min(most, #list - from + 1)
    parts[#parts + 1] = ("<" .. ("f"):rep(count)):pack(table.unpack(list, from, from + count - 1))
  end
  return table.concat(parts)
end

local function tensor_of(tag, value)
  if not ms.is_tensor(value) then fail("add_value", ("%s must be a tensor, got %s"):format(tag, describe(value))) end
  return value
end

function plugins.histogram(tag, value)
  local x = tensor_of(tag, value)
  if x.size == 0 then fail("add_value", tag .. " is an empty tensor") end
  if x.dtype ~= ms.float32 then x = x:astype(ms.float64) end
  return { ms.io.histogram_values(tag, x) }
end

function plugins.image(tag, value)
  local x = tensor_of(tag, value)
  -- Of a batch the first picture.
  if x.ndim == 4 and x.shape[1] > 0 then x = x[0] end
  local channels = x.ndim == 3 and x.shape[1]
  if channels ~= 1 and channels ~= 3 and channels ~= 4 or x.size == 0 then
    fail("add_value", ("%s must be a picture (C, H, W) or (N, C, H, W) of 1, 3 or 4 channels, got %s"):format(tag, describe(value)))
  end
  local height, width = x.shape[2], x.shape[3]
  if ops.is_floating_point(x) then x = ops.round(ops.clamp(x:astype(ms.float32), 0.0, 1.0) * 255):astype(ms.uint8) end
  local pixels = ops.transpose(x:astype(ms.uint8), { 1, 2, 0 }):contiguous()
  local png = require("lunaria.rendering").png(pixels, width, height, channels)
  return { text_field(1, tag) .. text_field(4, integer_field(1, height) .. integer_field(2, width) .. integer_field(3, channels)
    .. text_field(4, png)) }
end

function plugins.text(tag, value)
  if type(value) ~= "string" then fail("add_value", ("%s must be a string, got %s"):format(tag, describe(value))) end
  -- A tensor of one string, which the plug-in for texts shows.
  local metadata = text_field(9, text_field(1, text_field(1, "text")))
  return { text_field(1, tag) .. metadata .. text_field(8, integer_field(1, 7) .. text_field(2, text_field(2, integer_field(1, 1)))
    .. text_field(8, value)) }
end

-- MindSpore's number for float32.
local float32 = 11

function plugins.tensor(tag, value)
  local x = tensor_of(tag, value):astype(ms.float32)
  local parts = {}
  for _, size in ipairs(x.shape) do parts[#parts + 1] = integer_field(1, size) end
  parts[#parts + 1] = integer_field(2, float32) .. text_field(3, floats(x))
  return { text_field(1, tag) .. text_field(8, table.concat(parts)) }
end

local default_thresholds = 201

-- True and false positives, true and false negatives, precision and recall of answers of at least 0, 1 / (n - 1), ..., 1, as the
-- plug-in for them keeps a curve. A precision of no answers is 0.
function plugins.pr_curve(tag, value)
  if type(value) ~= "table" or not ms.is_tensor(value.labels) or not ms.is_tensor(value.predictions) then
    fail("add_value", ("%s must be { labels = tensor, predictions = tensor }, got %s"):format(tag, describe(value)))
  end
  local labels, predictions = value.labels:reshape { -1 }, value.predictions:reshape { -1 }:astype(ms.float64)
  local count = check.positive("add_value", tag .. ".num_thresholds", value.num_thresholds or default_thresholds)
  if labels.size ~= predictions.size or labels.size == 0 then
    fail("add_value", ("%s has %d labels and %d predictions"):format(tag, labels.size, predictions.size))
  end
  if count < 2 then fail("add_value", tag .. ".num_thresholds must be at least 2") end
  if not ops.equal(predictions, ops.clamp(predictions, 0, 1)):all():item() then
    fail("add_value", tag .. ".predictions must lie within 0 and 1")
  end
  local is_true = labels:astype(ms.bool)
  local place = ops.floor(predictions * (count - 1)):astype(ms.int64)
  -- How many answers are at least the threshold, by the answers at each.
  local function at_least(wanted)
    local counts = ops.scatter_add(ms.zeros({ count }, ms.float64), 0, place, wanted:astype(ms.float64))
    return ops.flip(ops.cumsum(ops.flip(counts, { 0 }), 0), { 0 })
  end
  local tp, fp = at_least(is_true), at_least(is_true:logical_not())
  local fn, tn, least = tp[0] - tp, fp[0] - fp, 1e-7
  local rows = ops.stack { tp, fp, tn, fn, tp / ops.clamp(tp + fp, least), tp / ops.clamp(tp + fn, least) }
  local shape = text_field(2, integer_field(1, 6)) .. text_field(2, integer_field(1, count))
  local metadata = text_field(9, text_field(1, text_field(1, "pr_curves") .. text_field(2, integer_field(2, count))))
  return { text_field(1, tag) .. metadata .. text_field(8, integer_field(1, 1) .. text_field(2, shape) .. text_field(4, floats(rows))) }
end

-- Samples as a file of 16 bits, which browsers play.
local function wav(samples, rate, channels)
  local numbers = ops.round(ops.clamp(samples:astype(ms.float32), -1.0, 1.0) * 32767):astype(ms.int64)
  local parts = {}
  for i, number in ipairs(numbers:reshape({ -1 }):tolist()) do parts[i] = ("<i2"):pack(number) end
  local data = table.concat(parts)
  return ("<c4I4c4c4I4I2I2I4I4I2I2c4I4"):pack("RIFF", 36 + #data, "WAVE", "fmt ", 16, 1, channels, rate, rate * channels * 2,
    channels * 2, 16, "data", #data) .. data
end

local default_rate = 44100

function plugins.audio(tag, value)
  local rate = default_rate
  if type(value) == "table" and not ms.is_tensor(value) then
    rate = check.positive("add_value", tag .. ".sample_rate", value.sample_rate or default_rate)
    value = value.data
  end
  local x = tensor_of(tag, value)
  if x.ndim == 1 then x = x:reshape { x.size, 1 } end
  if x.ndim ~= 2 or x.size == 0 or not ops.is_floating_point(x) or x.shape[2] > 8 then
    fail("add_value", ("%s must be a floating tensor (samples,) or (samples, channels) of at most 8 channels, got %s"):format(tag,
      describe(value)))
  end
  local frames, channels = x.shape[1], x.shape[2]
  return { text_field(1, tag) .. text_field(6, float_field(1, rate) .. integer_field(2, channels) .. integer_field(3, frames)
    .. text_field(4, wav(x, rate, channels)) .. text_field(5, "audio/wav")) }
end

-- A loss landscape, as ms.insight.landscape gives it.
function plugins.landscape(tag, value)
  local of_tensor = messages.of_tensor
  if type(value) ~= "table" or not (ms.is_tensor(value.x) and ms.is_tensor(value.y) and ms.is_tensor(value.z)) then
    fail("add_value", ("%s must be a landscape, as ms.insight.landscape gives it, got %s"):format(tag, describe(value)))
  end
  local function points(p) return { x = of_tensor(p.x), y = of_tensor(p.y), z = of_tensor(p.z) } end
  local message = { landscape = points(value),
    metadata = { decomposition = value.decomposition, unit = value.unit, step_per_epoch = value.steps_per_epoch } }
  if value.path then message.loss_path = { intervals = value.path.intervals, points = points(value.path) } end
  if value.convergence then message.convergence_point = points(value.convergence) end
  return { text_field(1, tag) .. text_field(10, messages.encode(messages.landscape, message)) }
end

return plugins
