-- Loop sink: many steps and the feeding of them within one call, instead of one call for each step.
local core = require "lunaria.jit"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local describe, is_callable = arguments.describe, arguments.is_callable
local function fail(message, ...) arguments.fail("data_sink", message:format(...)) end

local known_options = { steps = arguments.positive, collect = "boolean" }

-- The arguments of a step: a plain list is one of them, anything else is the only one.
local function arguments_of(batch)
  if type(batch) == "table" and getmetatable(batch) == nil and batch[1] ~= nil then
    return table.pack(table.unpack(batch, 1, batch.n or #batch))
  end
  return { n = 1, batch }
end

-- A list of arguments for each step, or a function that gives them.
local function source(dataset, steps)
  if type(dataset) == "table" and dataset.create_tuple_iterator then
    local batches = dataset:create_tuple_iterator()
    local chosen = dataset.get_input_indexs and dataset:get_input_indexs()
    -- A batch is several values, or a plain list of them.
    local function inputs_of(first, ...)
      if not chosen or first == nil then
        if first == nil or select("#", ...) > 0 then return first, ... end
        return table.unpack(arguments_of(first))
      end
      local columns, inputs = { first, ... }, {}
      for i, at in ipairs(chosen) do inputs[i] = columns[at + 1] end
      return table.unpack(inputs, 1, #chosen)
    end
    local function next_batch() return inputs_of(batches()) end
    return function()
      local results = table.pack(next_batch())
      if results[1] == nil then
        batches = dataset:create_tuple_iterator()
        results = table.pack(next_batch())
      end
      return table.unpack(results, 1, results.n)
    end
  end
  if type(dataset) == "table" and not is_callable(dataset) then
    local list = {}
    for i = 1, #dataset do list[i] = arguments_of(dataset[i]) end
    if #list == 0 then fail("the dataset is an empty table") end
    return list, steps or #list
  end
  if type(dataset) == "function" then return dataset end
  return function() return dataset() end
end

-- What core.sink does, step by step: where a call is recorded or differentiated the steps are a part of it, and step is itself.
local function run_steps(step, steps, batches, each)
  local listed, done, results = type(batches) == "table", 0, { n = 0 }
  while done < steps do
    local batch = listed and batches[done % #batches + 1] or table.pack(batches())
    if batch[1] == nil and not listed then break end
    results = table.pack(step(table.unpack(batch, 1, batch.n)))
    done = done + 1
    if each then each[done] = results[1] end
  end
  return done, table.unpack(results, 1, results.n)
end

--- Runs step n times with the batches of dataset, in one call: what a step looked up once is not looked up again, and
--- nothing else runs between two steps. step is compiled if it is not yet. dataset: a table of batches ({x, y} is
--- step(x, y)), which is begun anew at its end; a function that gives the arguments of the next step, or nil at the end;
--- or an object with create_tuple_iterator. options: steps (the default is once through a table, or until a function's
--- end), collect (true: the first result of every step, as a table). Gives the results of the last step.
--- @example ms.data_sink(function(x) return x * 2 end, {ms.tensor{1.0}, ms.tensor{3.0}}) --> ms.tensor{6.0}
local function data_sink(step, dataset, options)
  if not is_callable(step) then fail("step must be a function, got %s", describe(step)) end
  if not is_callable(dataset) and type(dataset) ~= "table" then
    fail("dataset must be a table of batches, a function or an iterator, got %s", describe(dataset))
  end
  if math.type(options) then options = { steps = options } end
  options = arguments.options("data_sink", options, known_options, "{ steps = 100 }")
  local steps = math.tointeger(options.steps)
  local batches, count = source(dataset, steps)
  local each = options.collect and {} or nil
  local compiled = core.is_jit(step) and step or ms.jit(step)
  steps = count or steps or math.maxinteger
  local sink = core.is_jit(compiled) and core.sink or run_steps
  local results = table.pack(sink(compiled, steps, batches, each))
  if results[1] == 0 then fail("the dataset gives nothing") end
  if options.steps and results[1] < steps then
    fail("the dataset ended after %d of %d steps; leave out steps, or begin it anew at its end", results[1], steps)
  end
  if each then return each end
  return table.unpack(results, 2, results.n)
end

return data_sink
