-- Faults injected into weights or activations, and what they do to a network's accuracy.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local activations = require "lunaria.armour.activations"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

-- The bits of a number of a dtype as an integer, and the number of such bits.
local layouts = {
  [tostring(ms.float64)] = { "<d", "<I8", 64 }, [tostring(ms.float32)] = { "<f", "<I4", 32 },
  [tostring(ms.int64)] = { "<i8", "<I8", 64 }, [tostring(ms.int32)] = { "<i4", "<I4", 32 },
  [tostring(ms.int16)] = { "<i2", "<I2", 16 }, [tostring(ms.int8)] = { "<i1", "<I1", 8 }, [tostring(ms.uint8)] = { "<I1", "<I1", 8 },
}

-- float16 as bits: sign, five bits of exponent, ten of fraction; x is one of its values.
local function bits_of_half(x)
  local sign = (x < 0 or 1 / x < 0) and 0x8000 or 0
  if x ~= x then return 0x7e00 end
  local size = math.abs(x)
  if size == math.huge then return sign | 0x7c00 end
  if size < 2.0 ^ -14 then return sign | math.tointeger(size * 2.0 ^ 24) end
  local exponent = math.floor(math.log(size, 2))
  if 2.0 ^ exponent > size then exponent = exponent - 1 end
  return sign | (exponent + 15) << 10 | math.tointeger((size / 2.0 ^ exponent - 1) * 1024)
end

local function half_of_bits(bits)
  local sign = bits & 0x8000 ~= 0 and -1.0 or 1.0
  local exponent, fraction = bits >> 10 & 31, bits & 1023
  if exponent == 31 then return fraction == 0 and sign * math.huge or 0 / 0 end
  if exponent == 0 then return sign * fraction * 2.0 ^ -24 end
  return sign * (1 + fraction / 1024) * 2.0 ^ (exponent - 15)
end

-- x with some of its bits flipped; choose(count) gives their numbers, from 0, the lowest.
local function with_flipped(x, dtype, choose)
  if dtype == ms.float16 then
    local bits = bits_of_half(x)
    for _, position in ipairs(choose(16)) do bits = bits ~ 1 << position end
    return half_of_bits(bits)
  end
  -- bfloat16 is the upper half of float32.
  local is_upper_half = dtype == ms.bfloat16
  local layout = layouts[is_upper_half and tostring(ms.float32) or tostring(dtype)]
  local bits = string.unpack(layout[2], string.pack(layout[1], x))
  for _, position in ipairs(choose(is_upper_half and 16 or layout[3])) do
    bits = bits ~ 1 << position + (is_upper_half and 16 or 0)
  end
  return (string.unpack(layout[1], string.pack(layout[2], bits)))
end

-- The given values, a list of numbers, after a fault.
local faults = {}

function faults.bitflips_random(values, dtype, draws)
  for i, x in ipairs(values) do
    -- One bit, or less often two: as often as the reference has it.
    local count = draws:number() < 0.618 and 1 or 2
    values[i] = with_flipped(x, dtype, function(bits)
      local order = draws:permutation(bits):tolist()
      return { table.unpack(order, 1, count) }
    end)
  end
end

-- The highest bit of the exponent, or of an integer's magnitude.
function faults.bitflips_designated(values, dtype)
  local is_unsigned = dtype == ms.uint8
  for i, x in ipairs(values) do
    values[i] = with_flipped(x, dtype, function(bits) return { bits - (is_unsigned and 1 or 2) } end)
  end
end

local function each(f)
  return function(values, _, draws)
    for i, x in ipairs(values) do values[i] = f(x, draws) end
  end
end

faults.random = each(function(_, draws) return 2 * draws:number() - 1 end)
faults.zeros = each(function() return 0.0 end)
faults.nan = each(function() return 0 / 0 end)
faults.inf = each(function() return math.huge end)
faults.anti_activation = each(function(x) return -x end)
faults.precision_loss = each(function(x)
  local tenths = 10 * x
  local whole = math.floor(tenths)
  local rest = tenths - whole
  -- To the nearest tenth, to the even one from halfway.
  if rest > 0.5 or rest == 0.5 and whole % 2 == 1 then whole = whole + 1 end
  return whole / 10
end)

local types = { "bitflips_random", "bitflips_designated", "random", "zeros", "nan", "inf", "anti_activation", "precision_loss" }
local by_share = { zeros = true, anti_activation = true, precision_loss = true }
local modes = { "single_layer", "all_layer" }

-- So many different numbers below n, as a list.
local function some_of(draws, n, count)
  if 20 * count > n then return { table.unpack(draws:permutation(n):tolist(), 1, count) } end
  local seen, list = {}, {}
  while #list < count do
    local i = draws:integers({ 1 }, 0, n):item()
    if not seen[i] then
      seen[i] = true
      list[#list + 1] = i
    end
  end
  return list
end

-- A tensor after faults of a type in `size` of its elements, or in that many in a hundred.
local function with_faults(x, kind, size, draws)
  local count = by_share[kind] and x.size * size // 100 or math.min(size, x.size)
  if count == 0 then return x end
  local flat = x:reshape { -1 }
  local places = ms.tensor(some_of(draws, x.size, count), ms.int64)
  local values = ops.gather(flat, places, 0):tolist()
  faults[kind](values, x.dtype, draws)
  return ops.tensor_scatter_update(flat, places:reshape { -1, 1 }, ms.tensor(values, x.dtype)):reshape(x.shape)
end

local function list_of(name, value, choices)
  if type(value) == "string" then value = { value } end
  if type(value) ~= "table" or getmetatable(value) ~= nil or #value == 0 then
    fail("FaultInjector", ("%s must be a list of %s, got %s"):format(name, table.concat(choices, ", "), describe(value)))
  end
  for _, one in ipairs(value) do check.choice("FaultInjector", name, one, choices) end
  return value
end

local FaultInjector = class.define(nil, "FaultInjector",
  "model, fi_type=nil, fi_mode=nil, fi_size=nil, target=\"weights\", layers=nil, seed=nil",
  [[What faults of memory do to a network. model: a cell or a ms.train.Model that gives logits (N, classes). fi_type: the faults, of
"bitflips_random" (one or two bits), "bitflips_designated" (the highest bit of the exponent), "random" (a number from -1 to 1), "zeros",
"nan",
"inf", "anti_activation" (the sign) and "precision_loss" (to a tenth); all by default. fi_mode: of "single_layer" (one tensor, drawn at
random)
and "all_layer" (each). fi_size: how many elements, a list, { 1, 2, 3 } by default; percents for zeros, anti_activation and precision_loss.
target: "weights", or "activations" for what the cells of `layers` give, by default the innermost ones with weights. seed: of what is drawn.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 8), ms.nn.ReLU(), ms.nn.Dense(8, 3))
  > injector = ms.armour.reliability.FaultInjector(net, { fi_type = { "zeros" }, fi_mode = { "all_layer" }, fi_size = { 50 }, seed = 1 })
  > results = injector:kick_off(ms.ops.rand(20, 4), ms.ops.zeros({ 20 }, ms.int32), 2)
  > results[2].type --> zeros]])
FaultInjector._called = "injector"

function FaultInjector:setup(a)
  local name = "FaultInjector"
  self._network = activations.network(name, a.model)
  self._model = common.classifier(name, self._network)
  self._types = list_of("fi_type", a.fi_type or types, types)
  self._modes = list_of("fi_mode", a.fi_mode or modes, modes)
  local sizes = a.fi_size or { 1, 2, 3 }
  if math.type(sizes) then sizes = { sizes } end
  if type(sizes) ~= "table" or getmetatable(sizes) ~= nil or #sizes == 0 then
    fail(name, "fi_size must be a list of positive integers, got " .. describe(sizes))
  end
  for _, size in ipairs(sizes) do check.positive(name, "fi_size", size) end
  for _, kind in ipairs(self._types) do
    local most = math.max(table.unpack(sizes))
    if by_share[kind] and most > 100 then fail(name, ("fi_size is percents for %s, at most 100, got %d"):format(kind, most)) end
  end
  self._sizes = sizes
  self._target = check.choice(name, "target", a.target, { "weights", "activations" })
  if self._target == "activations" then
    self._cells = activations.cells(name, self._network, a.layers)
  elseif a.layers ~= nil then
    fail(name, "layers are those whose activations get faults: target must be \"activations\"")
  end
  self._draws = common.generator(a.seed, name)
end

-- f() with faults, which are gone afterwards, also after an error.
local function with_injected(self, kind, mode, size, f)
  local targets = self._cells or self._network:trainable_params()
  local hit = mode == "all_layer" and targets or { targets[self._draws:integers({ 1 }, 0, #targets):item() + 1] }
  local undo = {}
  local guard <close> = setmetatable({}, { __close = function() -- luacheck: ignore 211
    for _, step in ipairs(undo) do step() end
  end })
  for _, target in ipairs(hit) do
    if self._cells then
      local handle = target:register_forward_hook(function(_, y) return with_faults(y, kind, size, self._draws) end)
      undo[#undo + 1] = function() handle:remove() end
    else
      local before = target:copy()
      undo[#undo + 1] = function() target:set_data(before) end
      target:set_data(with_faults(before, kind, size, self._draws))
    end
  end
  return f()
end

--- Injects each kind of fault iter_times times: gives a list whose first entry has original_acc, the accuracy without faults, and the
--- others type, mode, size, acc, the mean accuracy with them, and SDC, what it lost. data: inputs (N, ...). label: class numbers (N,) or
--- one-hot rows.
function FaultInjector:kick_off(data, label, iter_times)
  local where = "kick_off"
  data, label, iter_times = arguments.named(where, { "data", "label", "iter_times" }, data, label, iter_times)
  common.images(where, data)
  iter_times = check.positive(where, "iter_times", iter_times or 100)
  label = common.labels(where, label, data.shape[1], self._model:classes(data))
  local function accuracy()
    local right = common.in_batches(function(x, y)
      return ops.equal(self._model:predicted(x), y):astype(ms.float64)
    end, data, label, 1000)
    return ops.mean(right):item()
  end
  local original = accuracy()
  local results = { { original_acc = original } }
  for _, kind in ipairs(self._types) do
    for _, mode in ipairs(self._modes) do
      for _, size in ipairs(self._sizes) do
        local sum = 0.0
        for _ = 1, iter_times do sum = sum + with_injected(self, kind, mode, size, accuracy) end
        local acc = sum / iter_times
        results[#results + 1] = { type = kind, mode = mode, size = size, acc = acc, SDC = original - acc }
      end
    end
  end
  self._results = results
  return results
end

--- The last results by mode: a table with single_layer and all_layer, each with the means, maxima and minima of acc and SDC, as acc_mean.
function FaultInjector:metrics()
  if not self._results then fail("metrics", "there are no results before kick_off") end
  local summary = {}
  for _, result in ipairs(self._results) do
    if result.mode then
      local row = summary[result.mode] or { count = 0 }
      summary[result.mode] = row
      row.count = row.count + 1
      for _, name in ipairs { "acc", "SDC" } do
        local value = result[name]
        row[name .. "_mean"] = ((row[name .. "_mean"] or 0) * (row.count - 1) + value) / row.count
        row[name .. "_max"] = math.max(row[name .. "_max"] or -math.huge, value)
        row[name .. "_min"] = math.min(row[name .. "_min"] or math.huge, value)
      end
    end
  end
  return summary
end

return { FaultInjector = FaultInjector }
