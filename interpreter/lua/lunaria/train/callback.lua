-- Callbacks: objects whose methods Model calls while it trains and evaluates, with a RunContext. Only methods that
-- a callback has are called: a step without callbacks costs nothing.
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"

local fail, describe = arguments.fail, arguments.describe

local RunContext = class.Object:extend("RunContext")
RunContext._parameters = "original_args"
RunContext._doc = [[What callbacks get: original_args() is a table of what is going on, request_stop() ends the training after the step.

original_args(): network, train_network, loss_fn, optimizer, mode ("train" or "eval"), epoch_num, batch_num (nil when it is not
known), cur_epoch_num, cur_step_num (over all epochs), cur_step_in_epoch, net_outputs (the loss), metrics, eval_results.

  > ms.RunContext({ cur_epoch_num = 2 }):original_args().cur_epoch_num --> 2
  > ms.train.RunContext({ mode = "train" }):original_args().mode --> train]]

--- Called with the table of original_args.
function RunContext:init(original_args)
  if original_args ~= nil and type(original_args) ~= "table" then
    fail("RunContext", "original_args must be a table, got " .. describe(original_args))
  end
  self._args, self._stop = original_args or {}, false
end

--- The table of what is going on.
---     > ms.RunContext({ mode = "train" }):original_args().mode --> train
function RunContext:original_args() return self._args end
--- Ends the training after this step.
---     > run = ms.RunContext()
---     > run:request_stop()
---     > run:get_stop_requested() --> true
function RunContext:request_stop() self._stop = true end
--- Whether request_stop was called.
---     > ms.RunContext():get_stop_requested() --> false
function RunContext:get_stop_requested() return self._stop end

local Callback = class.Object:extend("Callback")
Callback._called = "callback"
Callback._parameters = ""
Callback._doc = [[What callbacks extend. Methods with a RunContext as argument, all of them optional: on_train_begin, on_train_epoch_begin,
on_train_step_begin, on_train_step_end, on_train_epoch_end, on_train_end, and the same with eval; MindSpore's older names begin,
epoch_begin, step_begin, step_end, epoch_end and stop (for end, which is a word of Lua) are for both.

  local Print = ms.train.Callback:extend("Print")
  function Print:on_train_step_end(run)
    print(run:original_args().net_outputs)
  end
  model:train(1, batches, Print())

  > tostring(ms.train.Callback:extend("Print")) --> class Print(...)
  > Count = ms.train.Callback:extend("Count")
  > function Count:on_train_epoch_end(run) self.last = run:original_args().cur_epoch_num end
  > tostring(Count) --> class Count(...)]]

-- luacheck: push ignore 212
--- Called before the training; yours replaces it. run: a RunContext.
---     > ms.train.Callback():on_train_begin(ms.RunContext())
function Callback:on_train_begin(run) end
--- Called before an epoch of the training; yours replaces it. run: a RunContext.
---     > ms.train.Callback():on_train_epoch_begin(ms.RunContext())
function Callback:on_train_epoch_begin(run) end
--- Called before a step of the training; yours replaces it. run: a RunContext.
---     > ms.train.Callback():on_train_step_begin(ms.RunContext())
function Callback:on_train_step_begin(run) end
--- Called after a step of the training; yours replaces it. run: a RunContext.
---     > ms.train.Callback():on_train_step_end(ms.RunContext())
function Callback:on_train_step_end(run) end
--- Called after an epoch of the training; yours replaces it. run: a RunContext.
---     > ms.train.Callback():on_train_epoch_end(ms.RunContext())
function Callback:on_train_epoch_end(run) end
--- Called after the training; yours replaces it. run: a RunContext.
---     > ms.train.Callback():on_train_end(ms.RunContext())
function Callback:on_train_end(run) end
--- Called before the evaluation; yours replaces it. run: a RunContext.
---     > ms.train.Callback():on_eval_begin(ms.RunContext())
function Callback:on_eval_begin(run) end
--- Called before an epoch of the evaluation; yours replaces it. run: a RunContext.
---     > ms.train.Callback():on_eval_epoch_begin(ms.RunContext())
function Callback:on_eval_epoch_begin(run) end
--- Called before a step of the evaluation; yours replaces it. run: a RunContext.
---     > ms.train.Callback():on_eval_step_begin(ms.RunContext())
function Callback:on_eval_step_begin(run) end
--- Called after a step of the evaluation; yours replaces it. run: a RunContext.
---     > ms.train.Callback():on_eval_step_end(ms.RunContext())
function Callback:on_eval_step_end(run) end
--- Called after an epoch of the evaluation; yours replaces it. run: a RunContext.
---     > ms.train.Callback():on_eval_epoch_end(ms.RunContext())
function Callback:on_eval_epoch_end(run) end
--- Called after the evaluation; yours replaces it. run: a RunContext.
---     > ms.train.Callback():on_eval_end(ms.RunContext())
function Callback:on_eval_end(run) end
--- What the callback has counted, for a checkpoint: numbers and texts by name.
---     > next(ms.train.Callback():state_dict()) == nil --> true
function Callback:state_dict() return {} end
--- Takes up what state_dict gave. state: that table.
---     > ms.train.Callback():load_state_dict({})
function Callback:load_state_dict(state) end
-- luacheck: pop

-- Event -> the older names of methods for it.
local older = { begin = "begin", epoch_begin = "epoch_begin", step_begin = "step_begin", step_end = "step_end",
  epoch_end = "epoch_end", ["end"] = "stop" }

local function method_of(callback, mode, event)
  local name = ("on_%s_%s"):format(mode, event)
  local method = callback[name]
  if method ~= nil and method ~= Callback[name] then return method end
  return callback[older[event]] or event == "end" and callback["end"] or nil
end

local events = { "begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end" }

-- Whether an object has a method for an event of a training or an evaluation.
local function hears(object)
  if class.is_a(object, Callback) then return true end
  for _, event in ipairs(events) do
    if method_of(object, "train", event) or method_of(object, "eval", event) then return true end
  end
  return false
end

--- The callbacks of a call as a list: one, a list, or nil.
local function callback_list(where, given)
  if given == nil then return {} end
  if type(given) ~= "table" then fail(where, "callbacks must be a callback or a list of them, got " .. describe(given)) end
  if class.is_a(given, Callback) then given = { given } end
  if getmetatable(given) ~= nil then given = { given } end
  local list = {}
  for i = 1, #given do
    local callback = given[i]
    if type(callback) ~= "table" then
      fail(where, ("callbacks[%d] must be a callback, got %s"):format(i, describe(callback)))
    elseif rawget(callback, "_is_class") then
      fail(where, ("callbacks[%d] is the class %s"):format(i, callback._name), ("make one: %s()"):format(callback._name))
    elseif not hears(callback) then
      fail(where, ("callbacks[%d] has no method of a callback, such as on_train_step_end, got %s"):format(i, describe(callback)),
        describe(callback):find "SummaryRecord" and "ms.train.SummaryCollector(folder) is the callback that writes records")
    end
    list[i] = callback
  end
  if #given == 0 and next(given) ~= nil then fail(where, "callbacks must be a callback or a list of them, got " .. describe(given)) end
  return list
end

--- For each event a function that calls all callbacks which have it, or nil.
local function callers(list, mode, run)
  local found = {}
  for _, event in ipairs(events) do
    local calls = {}
    -- What writes the state of the training comes after what changes it.
    for _, last in ipairs { false, true } do
      for _, callback in ipairs(list) do
        local method = method_of(callback, mode, event)
        if method and (callback._comes_last or false) == last then calls[#calls + 1] = { callback, method } end
      end
    end
    if #calls > 0 then
      found[event] = function()
        for i = 1, #calls do calls[i][2](calls[i][1], run) end
      end
    end
  end
  return found
end

return { RunContext = RunContext, Callback = Callback, callback_list = callback_list, callers = callers }
