-- Loop sink: a function that does many steps, and the feeding of them, within one call.
local core = require "lunaria.jit"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local describe, is_callable = arguments.describe, arguments.is_callable
local function fail(message, ...) arguments.fail("data_sink", message:format(...)) end

local function is_sink_size(value)
  return value == -1 or arguments.positive(value), "a positive integer, or -1 for once through the dataset"
end
local known_options = { sink_size = is_sink_size, collect = "boolean" }

-- The arguments of a step: a plain list is one of them, anything else is the only one.
local function arguments_of(batch)
  if type(batch) == "table" and getmetatable(batch) == nil and batch[1] ~= nil then
    return table.pack(table.unpack(batch, 1, batch.n or #batch))
  end
  return { n = 1, batch }
end

-- A list of arguments for each step, or a function that gives them and, as its own argument, whether a dataset that is at its end
-- begins anew.
local function source(dataset)
  if type(dataset) == "table" and dataset.create_tuple_iterator then
    local batches
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
    return function(again)
      local results = batches and table.pack(inputs_of(batches())) or { n = 0 }
      if results[1] == nil and (again or not batches) then
        batches = dataset:create_tuple_iterator()
        results = table.pack(inputs_of(batches()))
      end
      if results[1] == nil then batches = nil end
      return table.unpack(results, 1, results.n)
    end
  end
  if type(dataset) == "table" and not is_callable(dataset) then
    local list = {}
    for i = 1, #dataset do list[i] = arguments_of(dataset[i]) end
    if #list == 0 then fail("the dataset is an empty table") end
    return list
  end
  return function() return dataset() end
end

-- What core.sink does, step by step: where a call is recorded or differentiated the steps are a part of it, and step is itself.
local function run_steps(step, steps, batches, each, first)
  local listed, done, results = type(batches) == "table", 0, { n = 0 }
  while done < steps do
    local batch = listed and batches[(first + done) % #batches + 1] or table.pack(batches())
    if batch[1] == nil and not listed then break end
    results = table.pack(step(table.unpack(batch, 1, batch.n)))
    done = done + 1
    if each then each[done] = results[1] end
  end
  return done, table.unpack(results, 1, results.n)
end

--- A function that runs fn with the next sink_size batches of dataset in one call and gives the results of the last: what one step looked
--- up is not looked up again by the next, and nothing else runs between two of them. fn is compiled if it is not yet. dataset: a table
--- of batches ({x, y} is fn(x, y)) or an object with create_tuple_iterator, which are begun anew at their end; or a function that gives
--- the arguments of the next step, or nil at the end. sink_size: how many steps a call makes; -1: once through the dataset.
--- options: sink_size, collect (true: a call gives the first result of every step, as a table).
---     > ms.data_sink(function(x) return x * 2 end, {ms.tensor{1.0}, ms.tensor{3.0}}, 2)():item() --> 6.0
local function data_sink(fn, dataset, sink_size, options)
  if not is_callable(fn) then fail("fn must be a function, got %s", describe(fn)) end
  if not is_callable(dataset) and type(dataset) ~= "table" then
    fail("dataset must be a table of batches, a function or an iterator, got %s", describe(dataset))
  end
  if options == nil and not math.type(sink_size) then options, sink_size = sink_size, nil end
  options = arguments.options("data_sink", options, known_options, "{ sink_size = 100 }")
  if sink_size ~= nil then
    if options.sink_size ~= nil then fail("sink_size is given twice") end
    local fits, words = is_sink_size(sink_size)
    if not fits then fail("sink_size must be %s, got %s", words, describe(sink_size)) end
  end
  local steps = math.tointeger(sink_size or options.sink_size or 1)
  local batches = source(dataset)
  local listed, whole, position = type(batches) == "table", steps == -1, 0
  if whole then steps = listed and #batches or math.maxinteger end
  local next_batch = listed and batches or function() return batches(not whole) end
  local compiled = core.is_jit(fn) and fn or ms.jit(fn)
  return function(...)
    if select("#", ...) > 0 then fail("the function takes no arguments: its batches come from the dataset") end
    local each = options.collect and {} or nil
    local sink = core.is_jit(compiled) and core.sink or run_steps
    local results = table.pack(sink(compiled, steps, next_batch, each, position))
    if listed then position = (position + results[1]) % #batches end
    if results[1] == 0 then fail("the dataset gives nothing") end
    if not whole and results[1] < steps then
      fail("the dataset ended after %d of %d steps; sink_size = -1 takes what there is, or begin it anew at its end", results[1], steps)
    end
    if each then return each end
    return table.unpack(results, 2, results.n)
  end
end

return data_sink
