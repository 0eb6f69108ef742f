-- Callbacks of pipelines: functions that are called between the rows of a ds:map.
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local base = require "lunaria.dataset.dataset"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check
local callbacks = {}

local DSCallback = class.define(nil, "DSCallback", "step_size=1", [[
What is called by ds:map(f, { callbacks = mine }) between rows: methods ds_begin, ds_epoch_begin, ds_epoch_end, ds_step_begin and
ds_step_end of a class that extends this one
get a table with cur_epoch_num, cur_step_num and cur_step_num_in_epoch, which count from 1. step_size: how many rows are a step. The
end of an epoch is seen when the next one
begins.

    > Mine = ms.dataset.DSCallback:extend("Mine")
    > function Mine:ds_step_begin(run) print("row", run.cur_step_num) end
    > ds = ms.dataset.NumpySlicesDataset({ 5, 6 }, { shuffle = false })
    > ds:map(function(x) return x end, { callbacks = Mine() }):create_tuple_iterator()():item()
    row	1
    5]])
callbacks.DSCallback = DSCallback

function DSCallback:setup(a) self.step_size = check.positive("DSCallback", "step_size", a.step_size) end

local WaitedDSCallback = class.define(DSCallback, "WaitedDSCallback", "step_size=1", [[
A DSCallback that is a callback of training as well: sync_epoch_begin and sync_step_begin of a class that extends it get the table of
the training and that of the pipeline. As
rows are made when the training asks for them, its last step is over then. step_size: how many rows are a step.

    > tostring(ms.dataset.WaitedDSCallback())
    WaitedDSCallback<>]])
callbacks.WaitedDSCallback = WaitedDSCallback

function WaitedDSCallback:setup(a) DSCallback.setup(self, a) end

-- What Model calls. The context of the training is kept for the next row.
local function keep(self, run_context) self._training = run_context end
for _, name in ipairs { "begin", "epoch_begin", "epoch_end", "step_begin", "step_end" } do
  WaitedDSCallback["on_train_" .. name] = keep
end
-- Found by name and not listed: they are for Model and for the pipeline alone.
local hidden = {
  ds_epoch_begin = function(self, run)
    if self.sync_epoch_begin and self._training then self:sync_epoch_begin(self._training, run) end
  end,
  ds_step_begin = function(self, run)
    if self.sync_step_begin and self._training then self:sync_step_begin(self._training, run) end
  end,
}

-- f, which gets the number of the epoch after its count arguments, with callbacks around it.
function base.with_callbacks(where, f, list, count)
  if class.is_a(list, DSCallback) then list = { list } end
  if type(list) ~= "table" or #list == 0 then fail(where, "callbacks must be a DSCallback or a list of them, got " .. describe(list)) end
  for i, callback in ipairs(list) do
    if not class.is_a(callback, DSCallback) then fail(where, ("callbacks[%d] must be a DSCallback, got %s"):format(i,
      describe(callback))) end
  end
  local run = { cur_epoch_num = 0, cur_step_num = 0, cur_step_num_in_epoch = 0 }
  local epoch
  local function call(name)
    for _, callback in ipairs(list) do
      local method = callback[name] or class.is_a(callback, WaitedDSCallback) and hidden[name]
      local step = run.cur_step_num_in_epoch
      if method and (not name:find "step" or (name == "ds_step_begin" and step - 1 or step) % callback.step_size == 0) then method(
        callback, run) end
    end
  end
  local function ended(...)
    call "ds_step_end"
    return ...
  end
  return function(...)
    local now = (select(count + 2, ...))
    if now ~= epoch then
      if epoch == nil then call "ds_begin" else call "ds_epoch_end" end
      epoch = now
      run.cur_epoch_num, run.cur_step_num_in_epoch = run.cur_epoch_num + 1, 0
      call "ds_epoch_begin"
    end
    run.cur_step_num, run.cur_step_num_in_epoch = run.cur_step_num + 1, run.cur_step_num_in_epoch + 1
    call "ds_step_begin"
    return ended(f(table.unpack({ ... }, 1, count)))
  end
end

return callbacks
