-- Iterators over data sets: called for one row after the other; nil ends an epoch, the call after that begins the next.
local data = require "lunaria.data"
local arguments = require "lunaria.nn.arguments"
local config = require "lunaria.dataset.config"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check

local Iterator = { _name = "Iterator" }
Iterator.__index = Iterator

local function new(dataset, kind, epochs)
  return setmetatable({ _dataset = dataset, _kind = kind, _left = epochs, _names = data.columns(dataset._node), _row = 0 }, Iterator)
end

local function begin(self, epoch, skipped)
  self._epoch, self._row = epoch, skipped
  self._dataset._begun = epoch + 1
  local workers, prefetch, tuned, bounded = config._begin(self._dataset)
  local queue = rawget(self._dataset, "_queue")
  self._watched = queue ~= nil and not queue.fill
  self._cursor = data.open(self._dataset._node, epoch, workers, prefetch, tuned or self._watched, bounded)
  self._tuned = tuned
  local there = data.leave_out(self._cursor, skipped)
  if there < skipped then
    self:close()
    fail("restore", ("the state is after row %d, but epoch %d has %d rows"):format(skipped, epoch, there))
  end
end

local function tune(self)
  self._tuned = false
  local _, queue = data.times(self._cursor)
  config._tune(self._dataset, queue)
end

-- How full the queue of finished rows was in an epoch, from 0 to 1, for what has put a table _queue into the data set.
local function watch(self)
  local _, queue = data.times(self._cursor)
  if queue.asked * queue.places > 0 then self._dataset._queue.fill = queue.full / (queue.asked * queue.places) end
end

local function take(self, first, ...)
  if self._tuned and (first == nil or self._row + 1 == config.get_autotune_interval()) then tune(self) end
  if first == nil then
    if self._watched then watch(self) end
    data.close(self._cursor)
    self._cursor = nil
    self._left = self._left - 1
    return nil
  end
  self._row = self._row + 1
  if self._kind == "tuple" then return first, ... end
  local row, names = { [self._names[1]] = first }, self._names
  for i = 2, #names do row[names[i]] = (select(i - 1, ...)) end
  return row
end

function Iterator.__call(self)
  if self._closed then fail("iterator", "it was closed", "make another one: ds:create_dict_iterator()") end
  if not self._cursor then
    if self._left <= 0 then return nil end
    begin(self, self._dataset._begun, 0)
  end
  return take(self, data.next(self._cursor))
end

--- Where the iterator is: a table of the epoch and the number of rows that were given, which it:restore takes, in another
--- run of the program too. Rows are the same again when the seed is.
---     > it = ms.dataset.NumpySlicesDataset({ 5, 6, 7 }, { shuffle = false }):create_tuple_iterator()
---     > it():item() --> 5
---     > it:state().row --> 1
function Iterator:state()
  return { epoch = self._cursor and self._epoch or self._dataset._begun, row = self._cursor and self._row or 0 }
end

--- Goes on behind the row that a state names, as it:state() gave it.
---     > it = ms.dataset.NumpySlicesDataset({ 5, 6, 7 }, { shuffle = false }):create_tuple_iterator()
---     > it:restore({ epoch = 0, row = 2 })
---     > it():item() --> 7
function Iterator:restore(state)
  if self._closed then fail("restore", "the iterator was closed") end
  if type(state) ~= "table" then fail("restore", "a state is expected, as it:state() gives it, got " .. describe(state)) end
  local epoch, row = check.not_negative("restore", "epoch", state.epoch), check.not_negative("restore", "row", state.row)
  if self._cursor then data.close(self._cursor) end
  begin(self, epoch, row)
end

--- Ends the iterator: its threads stop and its files are closed. The end of a for loop over it does the same, and the
--- collector.
---     > it = ms.dataset.NumpySlicesDataset({ 5, 6, 7 }):create_tuple_iterator()
---     > it:close()
---     > (pcall(it)) --> false
function Iterator:close()
  self._closed = true
  if self._cursor then data.close(self._cursor) end
  self._cursor = nil
end

Iterator.__close = Iterator.close
function Iterator.__tostring(self) return ("Iterator<%s>"):format(table.concat(self._names, ", ")) end

return { new = new, class = Iterator }
