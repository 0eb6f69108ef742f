-- The data sets that Model takes: anything that gives batches, once through for each epoch.
--   a table            a list of batches: { { x, y }, { x, y } }
--   a function         gives the next batch on each call and nil at the end of an epoch; the call after that begins anew.
--                      A function that gives a function when it is called makes an iterator for each epoch.
--   an object          with create_tuple_iterator(), iter() or __call; get_dataset_size() tells the number of batches.
-- A batch is a list of inputs, several values, or one tensor.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local fail, describe = arguments.fail, arguments.describe

local function unpack_batch(where, first, ...)
  if type(first) ~= "table" or getmetatable(first) ~= nil then return first, ... end
  if first[1] == nil then
    if next(first) == nil then fail(where, "a batch is an empty table") end
    fail(where, ("a batch must be a list of inputs, got a table with the name '%s'"):format(tostring((next(first)))),
      "give the inputs in order: { images, labels }")
  end
  return table.unpack(first, 1, first.n or #first)
end

-- A list: its batches one after the other, from any of them on.
local function list_source(where, list)
  if #list == 0 then fail(where, "the data set is an empty table") end
  return { size = #list, epoch = function(skip)
    local i = skip or 0
    return function()
      i = i + 1
      local batch = list[i]
      if batch == nil then return nil end
      return unpack_batch(where, batch)
    end
  end }
end

-- Batches that are left out are drawn and thrown away, so that what comes after them is the same.
local function skipping(next_batch, skip)
  for _ = 1, skip or 0 do
    if next_batch() == nil then break end
  end
  return next_batch
end

local function drained(where, step, state, control)
  return function()
    return (function(first, ...)
      control = first
      if first == nil then return nil end
      return unpack_batch(where, first, ...)
    end)(step(state, control))
  end
end

local function object_source(where, object)
  local iterate = object.create_tuple_iterator or object.iter
  local sized = object.get_dataset_size or object.size
  local size = type(sized) == "function" and sized(object) or math.tointeger(sized)
  return { size = size, object = object, epoch = function(skip, ahead)
    local step, state, control = iterate(object)
    -- Data sets know the order of the rows of every epoch.
    if ahead and type(step) == "table" and step.restore and step.state then
      step:restore { epoch = step:state().epoch + ahead, row = skip }
      return drained(where, step)
    end
    return skipping(drained(where, step, state, control), skip)
  end }
end

local function callable_source(where, f)
  local waiting
  return { epoch = function(skip)
    local first = waiting or table.pack(f())
    waiting = nil
    if type(first[1]) == "function" then return skipping(drained(where, table.unpack(first, 1, 3)), skip) end
    local begun, over = false, false
    return skipping(function()
      if over then return nil end
      if not begun then
        begun = true
        over = first[1] == nil
        if over then return nil end
        return unpack_batch(where, table.unpack(first, 1, first.n))
      end
      return (function(value, ...)
        over = value == nil
        if over then return nil end
        return unpack_batch(where, value, ...)
      end)(f())
    end, skip)
  end }
end

--- { epoch = function(skip, ahead) that gives a function for the batches of an epoch, size = how many there are or nil }. ahead: how
--- many epochs an earlier training has gone through, where one is gone on with.
local function source(where, dataset)
  local kind = type(dataset)
  if kind == "function" then return callable_source(where, dataset) end
  if (kind == "table" or kind == "userdata") and not ms.is_tensor(dataset) then
    if kind == "table" and getmetatable(dataset) == nil and not (dataset.create_tuple_iterator or dataset.iter) then
      return list_source(where, dataset)
    end
    if dataset.create_tuple_iterator or dataset.iter then return object_source(where, dataset) end
    if arguments.is_callable(dataset) then return callable_source(where, function() return dataset() end) end
  end
  return fail(where, "the data set must be a list of batches, an iterator or a function that gives batches, got " .. describe(dataset))
end

return source
