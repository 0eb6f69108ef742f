-- Samplers: which rows of a source an epoch takes, and in which order. core/data/sampler.h has what they do.
local ms = require "lunaria"
local data = require "lunaria.data"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local config = require "lunaria.dataset.config"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check
local samplers = {}

local Sampler = class.Object:extend("Sampler")
Sampler._called = "sampler"
Sampler._parameters = ""
Sampler._doc = [[What the samplers have in common.
  > tostring(ms.dataset.RandomSampler()) --> RandomSampler<>]]

--- Lets this sampler choose among what the other one takes. Gives the sampler back.
---     > s = ms.dataset.SequentialSampler(1):add_child(ms.dataset.SubsetSampler { 4, 3, 2 })
---     > ms.dataset.NumpySlicesDataset({ 0, 10, 20, 30, 40 }, { sampler = s }):create_tuple_iterator()():item() --> 30
function Sampler:add_child(sampler)
  if not class.is_a(sampler, Sampler) then fail("add_child", "a sampler is expected, got " .. describe(sampler)) end
  local other = sampler
  while other do
    if other == self then fail("add_child", "a sampler cannot be its own child") end
    other = other._child
  end
  self._child = sampler
  return self
end

-- The sampler for these records.
function Sampler:_resolve(records)
  local own = self:_make(records)
  if not self._child then return own end
  return data.chain(self._child:_resolve(records), own)
end

local function samples_of(where, a)
  return a.num_samples ~= nil and check.positive(where, "num_samples", a.num_samples) or nil
end

local function define(name, signature, doc, setup)
  local sampler = class.define(Sampler, name, signature, doc)
  function sampler:setup(a)
    local samples = samples_of(name, a)
    local seed = config.get_seed()
    local make = setup(a, name)
    self._arguments = a
    self._make = function(_, records) return make(seed, samples, records) end
  end
  samplers[name] = sampler
end

define("SequentialSampler", "start_index=0, num_samples=nil", [[
The rows in their order, from start_index on, num_samples of them.

    > ms.dataset.NumpySlicesDataset({ 5, 6, 7 }, { sampler = ms.dataset.SequentialSampler(1) }):create_tuple_iterator()():item()
    6]], function(a, name)
  local start = check.not_negative(name, "start_index", a.start_index or 0)
  return function(seed, samples) return data.sampler("sequential", seed, samples, start) end
end)

define("RandomSampler", "replacement=false, num_samples=nil", [[
The rows in random order, another one in every epoch. replacement: a row may come again; num_samples: how many rows.

    > ms.dataset.NumpySlicesDataset({ 5, 6, 7 }, { sampler = ms.dataset.RandomSampler(false, 2) }):get_dataset_size()
    2]], function(a, name)
  local replacement = check.boolean(name, "replacement", a.replacement)
  return function(seed, samples) return data.sampler("random", seed, samples, replacement) end
end)

local function indices_of(name, indices)
  if ms.is_tensor(indices) then indices = indices:tolist() end
  if type(indices) ~= "table" or getmetatable(indices) ~= nil then
    fail(name, "indices must be a list of row numbers, which count from 0, got " .. describe(indices))
  end
  local list = {}
  for i = 1, #indices do list[i] = check.not_negative(name, ("indices[%d]"):format(i), indices[i]) end
  return list
end

define("SubsetSampler", "indices, num_samples=nil", [[
The rows with these numbers, which count from 0, in this order.

    > ms.dataset.NumpySlicesDataset({ 5, 6, 7 }, { sampler = ms.dataset.SubsetSampler { 2, 0 } }):create_tuple_iterator()():item()
    7]], function(a, name)
  local indices = indices_of(name, a.indices)
  return function(seed, samples) return data.sampler("subset", seed, samples, indices, false) end
end)

define("SubsetRandomSampler", "indices, num_samples=nil", [[
The rows with these numbers, which count from 0, in random order.

    > ms.dataset.NumpySlicesDataset({ 5, 6, 7 }, { sampler = ms.dataset.SubsetRandomSampler { 2, 0 } }):get_dataset_size()
    2]], function(a, name)
  local indices = indices_of(name, a.indices)
  return function(seed, samples) return data.sampler("subset", seed, samples, indices, true) end
end)

define("WeightedRandomSampler", "weights, num_samples=nil, replacement=true", [[
Rows by chance, each as often as its weight says. weights: one number for each row; num_samples: how many rows;
replacement: a row may come again.

    > s = ms.dataset.WeightedRandomSampler({ 0.0, 1.0, 0.0 }, 2)
    > ms.dataset.NumpySlicesDataset({ 5, 6, 7 }, { sampler = s }):create_tuple_iterator()():item()
    6]], function(a, name)
  local weights = a.weights
  if ms.is_tensor(weights) then weights = weights:tolist() end
  if type(weights) ~= "table" or #weights == 0 then fail(name, "weights must be a list of numbers, got " .. describe(weights)) end
  local list = {}
  for i, w in ipairs(weights) do
    list[i] = check.number_not_negative(name, ("weights[%d]"):format(i), w)
    if list[i] == math.huge then fail(name, ("weights[%d] must be finite"):format(i)) end
  end
  local replacement = check.boolean(name, "replacement", a.replacement)
  -- What cannot be drawn is refused here and not where the sampler is used.
  data.sampler("weighted", 0, samples_of(name, a), list, replacement)
  return function(seed, samples) return data.sampler("weighted", seed, samples, list, replacement) end
end)

define("DistributedSampler", "num_shards, shard_id, shuffle=true, num_samples=nil", [[
Every num_shards-th row from number shard_id on: the share of one of several programs. All get the same number of
rows; the last ones begin at the start again. shuffle: of the rows in random order.

    > s = ms.dataset.DistributedSampler(2, 1, false)
    > ms.dataset.NumpySlicesDataset({ 5, 6, 7, 8 }, { sampler = s }):create_tuple_iterator()():item()
    6]], function(a, name)
  local shards = check.positive(name, "num_shards", a.num_shards)
  local shard = check.not_negative(name, "shard_id", a.shard_id)
  if shard >= shards then fail(name, ("shard_id must be less than num_shards, got %d and %d"):format(shard, shards)) end
  local shuffle = check.boolean(name, "shuffle", a.shuffle)
  return function(seed, samples) return data.sampler("distributed", seed, samples, shards, shard, shuffle) end
end)

define("PKSampler", "num_val, num_class=nil, shuffle=false, class_column='label', num_samples=nil", [[
num_val rows of each of num_class classes, or of all classes that have so many. shuffle: rows and classes by chance.
class_column: where the classes are.

    > ds = ms.dataset.NumpySlicesDataset({ label = { 0, 1, 0, 1 } }, { sampler = ms.dataset.PKSampler(1) })
    > ds:get_dataset_size()
    2]], function(a, name)
  local each = check.positive(name, "num_val", a.num_val)
  local classes = a.num_class ~= nil and check.positive(name, "num_class", a.num_class) or nil
  local shuffle = check.boolean(name, "shuffle", a.shuffle)
  return function(seed, samples, records)
    local names = data.columns(records)
    for i, column in ipairs(names) do
      if column == a.class_column then
        local labels = data.column(records, i - 1)
        if not ms.is_tensor(labels) or labels.ndim ~= 1 then
          fail(name, ("column '%s' must have one integer in each row"):format(column))
        end
        return data.sampler("classes", seed, samples, labels:astype(ms.int64), each, classes, shuffle)
      end
    end
    return fail(name, ("there is no column '%s'; there are: %s"):format(tostring(a.class_column), table.concat(names, ", ")),
      "class_column names the column of the classes")
  end
end)

-- The sampler that the common arguments of sources ask for; see sources.lua.
local function choose(where, records, a, shuffled)
  local samples = samples_of(where, a)
  local sampler = a.sampler
  if type(sampler) == "table" and getmetatable(sampler) == nil then sampler = samplers.SubsetSampler(sampler) end
  if sampler ~= nil then
    if not class.is_a(sampler, Sampler) then
      fail(where, "sampler must be a sampler or a list of row numbers, got " .. describe(sampler))
    end
    if a.shuffle ~= nil then fail(where, "sampler and shuffle are both given: the sampler decides the order") end
    if a.num_shards ~= nil then fail(where, "sampler and num_shards are both given", "use ms.dataset.DistributedSampler") end
    sampler = sampler:_resolve(records)
    return samples and data.chain(sampler, data.sampler("sequential", 0, samples, 0)) or sampler
  end
  if a.shuffle ~= nil then shuffled = check.boolean(where, "shuffle", a.shuffle) end
  if a.num_shards ~= nil or a.shard_id ~= nil then
    if a.num_shards == nil or a.shard_id == nil then fail(where, "num_shards and shard_id must be given together") end
    return samplers.DistributedSampler(a.num_shards, a.shard_id, shuffled, samples):_resolve(records)
  end
  if shuffled then return samplers.RandomSampler(false, samples):_resolve(records) end
  return data.sampler("sequential", 0, samples, 0)
end

samplers.Sampler = Sampler
return { classes = samplers, choose = choose }
