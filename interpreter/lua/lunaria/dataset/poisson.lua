-- Batches by Poisson sampling: every row is in every batch by a chance of its own, as the accounting of private training supposes.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local draws = require "lunaria.common.draws"

local ops, is_tensor = ms.ops, ms.is_tensor
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local PoissonSampler = class.define(nil, "PoissonSampler", "dataset, sample_rate=nil, num_batches=nil, seed=0, secure=false",
  [[Batches for Model:train in which each row of a data set is with the probability sample_rate, whatever the other rows are: their sizes
vary about sample_rate times the number of rows, and a batch may be empty (a tensor of no rows).

dataset: a data set, a list of batches, or a list of tensors with a row for each sample; all rows are read once and kept in memory, with the
transforms that they had then. sample_rate: by default that of the data set's own batches. num_batches: in an epoch, by default
1 / sample_rate, rounded up. seed: a number of its own for the draws; 0 draws with the session. secure: draws from the operating system's
cryptographic generator, without a seed.

  > sampler = ms.dataset.PoissonSampler({ ms.arange(1000), ms.ones { 1000, 2 } }, 0.1, { seed = 3 })
  > sampler.expected_batch_size --> 100.0
  > sampler:get_dataset_size() --> 10
  > (function() local x, y = sampler:create_tuple_iterator()() return x.shape[1] == y.shape[1] end)() --> true]])
PoissonSampler._called = "sampler"

-- The columns of batches, joined.
local function joined(where, batches)
  local columns = {}
  for i, batch in ipairs(batches) do
    for k = 1, #batch do
      if not is_tensor(batch[k]) or batch[k].ndim == 0 then
        fail(where, ("batch %d has %s as value %d: rows are drawn of tensors"):format(i, describe(batch[k]), k))
      end
      columns[k] = columns[k] or {}
      columns[k][i] = batch[k]
    end
  end
  local list = {}
  for k, parts in ipairs(columns) do
    if #parts ~= #batches then fail(where, ("not all batches have a value %d"):format(k)) end
    list[k] = #parts == 1 and parts[1] or ops.concat(parts, 0)
  end
  return list
end

-- All rows as columns, and how many rows a batch of the data set has; nil where that is not said.
local function columns_of(where, dataset)
  if type(dataset) == "table" and getmetatable(dataset) == nil and #dataset > 0 then
    if is_tensor(dataset[1]) then return dataset, nil end
    if type(dataset[1]) ~= "table" then fail(where, "dataset is a list whose first value is " .. describe(dataset[1])) end
    return joined(where, dataset), is_tensor(dataset[1][1]) and dataset[1][1].ndim > 0 and dataset[1][1].shape[1] or nil
  end
  if type(dataset) ~= "table" or not (dataset.create_tuple_iterator or dataset.iter) then
    fail(where, "dataset must be a data set, a list of batches or a list of tensors, got " .. describe(dataset))
  end
  local batches = {}
  local is_batched = type(dataset.get_batch_size) ~= "function" or dataset:get_batch_size() > 1
  local next_batch = (dataset.create_tuple_iterator or dataset.iter)(dataset)
  while true do
    local values = table.pack(next_batch())
    if values[1] == nil then break end
    if type(values[1]) == "table" and not is_tensor(values[1]) then values = values[1] end
    if not is_batched then
      for k = 1, #values do values[k] = ops.expand_dims(values[k], 0) end
    end
    batches[#batches + 1] = values
  end
  if #batches == 0 then fail(where, "the data set gives no batch") end
  return joined(where, batches), is_batched and batches[1][1].shape[1] or nil
end

function PoissonSampler:setup(a)
  local name = "PoissonSampler"
  local size
  self.columns, size = columns_of(name, a.dataset)
  for k, column in ipairs(self.columns) do
    if not is_tensor(column) or column.ndim == 0 then
      fail(name, ("column %d must be a tensor with rows, got %s"):format(k, describe(column)))
    end
    if column.shape[1] ~= self.columns[1].shape[1] then
      fail(name, ("column 1 has %d rows, column %d has %d"):format(self.columns[1].shape[1], k, column.shape[1]))
    end
  end
  self.num_rows = self.columns[1].shape[1]
  if self.num_rows == 0 then fail(name, "the data set has no rows") end
  if a.sample_rate == nil then
    if not size then
      fail(name, "sample_rate is missing, and the data set has no batches that would say it", "sample_rate = 256 / number of rows")
    end
    self.sample_rate = math.min(1.0, size / self.num_rows)
  else
    self.sample_rate = check.probability(name, "sample_rate", a.sample_rate) + 0.0
    if self.sample_rate == 0 then fail(name, "sample_rate is 0: no row would ever be drawn") end
  end
  self.num_batches = a.num_batches ~= nil and check.positive(name, "num_batches", a.num_batches)
    or math.ceil(1 / self.sample_rate - 1e-9)
  self.seed, self.secure = check.not_negative(name, "seed", a.seed), check.boolean(name, "secure", a.secure)
  if self.secure and self.seed ~= 0 then fail(name, ("secure draws have no seed, got seed = %d"):format(self.seed)) end
  self.expected_batch_size = self.sample_rate * self.num_rows
  self._epoch = 0
  if self.seed ~= 0 then self._generator = ms.Generator() end
end

--- How many batches an epoch has.
---     > ms.dataset.PoissonSampler({ ms.arange(10) }, 0.5):get_dataset_size() --> 2
function PoissonSampler:get_dataset_size() return self.num_batches end

-- The draws of a seed are known by the number of the batch, so that a training that is gone on with finds its own again.
function PoissonSampler:_draw(number)
  if self.secure then return draws.secure_uniform(self.num_rows) end
  if self._generator then self._generator:set_state(ms.tensor({ self.seed, number }, ms.int64)) end
  return ops.rand({ self.num_rows }, { dtype = ms.float64, generator = self._generator })
end

-- The batches of an epoch, as the iterators of data sets are: called, and asked where they are.
local Batches = {}
Batches.__index = Batches

function Batches:state() return { epoch = self.epoch, row = self.batch } end

function Batches:restore(state)
  self.epoch, self.batch = state.epoch, state.row
  self.sampler._epoch = state.epoch + 1
end

function Batches:__call()
  local sampler = self.sampler
  if self.batch == sampler.num_batches then return nil end
  local unit = sampler:_draw(self.epoch * sampler.num_batches + self.batch)
  self.batch = self.batch + 1
  local chosen = ops.reshape(ops.nonzero(ops.less(unit, sampler.sample_rate)), { -1 })
  local rows = {}
  for k, column in ipairs(sampler.columns) do rows[k] = ops.index_select(column, 0, chosen:to(column.device)) end
  return table.unpack(rows)
end

--- The batches of an epoch: what gives the columns of the next one when it is called, and nil at the end.
---     > ms.dataset.PoissonSampler({ ms.arange(3) }, 1.0):create_tuple_iterator()():tolist()[3] --> 2
function PoissonSampler:create_tuple_iterator()
  local batches = setmetatable({ sampler = self, epoch = self._epoch, batch = 0 }, Batches)
  self._epoch = self._epoch + 1
  return batches
end

return { PoissonSampler = PoissonSampler }
