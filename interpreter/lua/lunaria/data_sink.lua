-- Loop sink: many steps and the feeding of them within one call, instead of one call for each step.
local core = require "lunaria.jit"
local ms = require "lunaria"

local function fail(message, ...) error("data_sink: " .. message:format(...), 3) end

local known_options = { steps = "number", collect = "boolean" }

local function is_function(f)
  local meta = getmetatable(f)
  return type(f) == "function" or (type(meta) == "table" and meta.__call ~= nil and not ms.is_tensor(f))
end

-- The arguments of a step: a plain list is one of them, anything else is the only one.
local function arguments(batch)
  if type(batch) == "table" and getmetatable(batch) == nil and batch[1] ~= nil then
    return table.pack(table.unpack(batch, 1, batch.n or #batch))
  end
  return { n = 1, batch }
end

-- A list of arguments for each step, or a function that gives them.
local function source(dataset, steps)
  if type(dataset) == "table" and dataset.create_tuple_iterator then
    local batches = dataset:create_tuple_iterator()
    local function next_batch()
      local batch = batches()
      if batch ~= nil then return table.unpack(arguments(batch)) end
    end
    return function()
      local results = table.pack(next_batch())
      if results[1] == nil then
        batches = dataset:create_tuple_iterator()
        results = table.pack(next_batch())
      end
      return table.unpack(results, 1, results.n)
    end
  end
  if type(dataset) == "table" and not is_function(dataset) then
    local list = {}
    for i = 1, #dataset do list[i] = arguments(dataset[i]) end
    if #list == 0 then fail("the dataset is an empty table") end
    return list, steps or #list
  end
  return dataset
end

--- Runs step n times with the batches of dataset, in one call: what a step looked up once is not looked up again, and
--- nothing else runs between two steps. step is compiled if it is not yet. dataset: a table of batches ({x, y} is
--- step(x, y)), which is begun anew at its end; a function that gives the arguments of the next step, or nil at the end;
--- or an object with create_tuple_iterator. options: steps (the default is once through a table, or until a function's
--- end), collect (true: the first result of every step, as a table). Gives the results of the last step.
--- @example ms.data_sink(function(x) return x * 2 end, {ms.tensor{1.0}, ms.tensor{3.0}}) --> ms.tensor{6.0}
local function data_sink(step, dataset, options)
  if not (is_function(step) or core.is_jit(step)) then fail("step must be a function, got a %s", type(step)) end
  if not (type(dataset) == "table" or is_function(dataset)) then
    fail("dataset must be a table of batches, a function or an iterator, got a %s", ms.is_tensor(dataset) and "tensor" or type(dataset))
  end
  if math.type(options) then options = { steps = options } end
  if options ~= nil and type(options) ~= "table" then fail("options must be a table, got a %s", type(options)) end
  options = options or {}
  for key, value in pairs(options) do
    if not known_options[key] then
      fail("there is no option '%s'; there are: steps, collect", tostring(key))
    elseif type(value) ~= known_options[key] then
      fail("%s must be a %s, got a %s", key, known_options[key], type(value))
    end
  end
  local steps = options.steps
  if steps and (math.tointeger(steps) == nil or steps < 1) then fail("steps must be a positive integer, got %s", steps) end
  local batches, count = source(dataset, steps)
  local each = options.collect and {} or nil
  local compiled = core.is_jit(step) and step or ms.jit(step)
  steps = math.tointeger(count or steps or math.maxinteger)
  local results = table.pack(core.sink(compiled, steps, batches, each))
  if results[1] == 0 then fail("the dataset gives nothing") end
  if options.steps and results[1] < steps then
    fail("the dataset ended after %d of %d steps; leave out steps, or begin it anew at its end", results[1], steps)
  end
  if each then return each end
  return table.unpack(results, 2, results.n)
end

return data_sink
