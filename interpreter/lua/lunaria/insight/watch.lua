-- ms.insight.watch: a program under watch. core/watch sees the operators and asks the conditions; what is done about a hit, steps from
-- stop to stop, and how it is told are here. A front end, the terminal or a page, is a function `control` that is called at each stop.
local core = require "lunaria.watching"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local callback = require "lunaria.train.callback"
local class = require "lunaria.nn.class"
local told = require "lunaria.insight.watch_text"
local watchpoints = require "lunaria.insight.conditions"

local fail, describe, is_callable = arguments.fail, arguments.describe, arguments.is_callable

local MOST_UPSTREAM, LEVELS = 24, 3

local Hit = {}
Hit.__index = Hit
Hit.__name = "watchpoint hit"
Hit.__tostring = told.hit

local Watch = callback.Callback:extend("Watch")
Watch._called = "watch"

-- The nodes that a node's operands come from, and those before them, with their distance from it.
local function upstream(self, node)
  local list, seen, row = {}, { [node.index] = true }, { node }
  for level = 1, LEVELS do
    local next_row = {}
    for _, one in ipairs(row) do
      for _, operand in ipairs(one.operands) do
        local index = operand.node
        if index > 0 and not seen[index] and #list < MOST_UPSTREAM then
          seen[index] = true
          local before = self._core:nodes(index)
          before.level = level
          list[#list + 1], next_row[#next_row + 1] = before, before
        end
      end
    end
    row = next_row
  end
  return list
end

-- Adds to figures the names of the nodes that they come from.
local function named(self, figures)
  for _, f in ipairs(figures) do
    local node = f.node > 0 and self._core:nodes(f.node)
    f.node = node and node.name or nil
    f.place = node and node.place or nil
  end
  return figures
end

-- A hit as core/watch gives it, as users see it.
local function complete(self, hit)
  local point = self.points[hit.point]
  local node = hit.node > 0 and self._core:nodes(hit.node) or nil
  hit.condition, hit.id, hit.target, hit.parameters = point.condition, point.id, point.target, point.parameters
  hit.quantity, hit.count, hit.last_step = point.questions[hit.question][1], 1, hit.step
  hit.question = nil
  hit.node, hit.place = node, node and node.place or ""
  hit.upstream = node and upstream(self, node) or {}
  named(self, hit.operands)
  return setmetatable(hit, Hit)
end

-- Hits that are new; those of a place that is known already are counted there.
local function take_hits(self)
  local new = {}
  for _, raw in ipairs(self._core:hits()) do
    local node = raw.node > 0 and self._core:nodes(raw.node)
    local key = ("%d %s %s"):format(raw.point, node and node.name or "", raw.tensor.name)
    local known = self._known[key]
    if known then
      if known.last_step ~= raw.step then known.count, known.last_step = known.count + 1, raw.step end
    else
      local hit = complete(self, raw)
      self._known[key] = hit
      self.hits[#self.hits + 1], new[#new + 1] = hit, hit
    end
  end
  return new
end

local function go_on(self, how, count)
  self._mode, self._left = how, count
  self._core:report_nodes(how == "node")
end

-- The program stands: the front end says how it goes on.
local function stop(self, reason, hits)
  self.stopped = { reason = reason, step = self._core:step(), hits = hits, node = self:node() }
  if not self._control then
    self._ended = true
    error(told.stop(self.stopped), 0)
  end
  while true do
    local command, count = self._control(self, self.stopped)
    command, count = command or "hit", count or 1
    if command == "terminate" then
      self._ended = true
      error(("ended by the user in step %d%s"):format(self.stopped.step, told.at(self.stopped.node)), 0)
    elseif command == "hit" or command == "node" or command == "step" then
      self.stopped = nil
      return go_on(self, command, count)
    end
    fail("watch", ("control must give \"hit\", \"node\", \"step\" or \"terminate\", got %s"):format(describe(command)))
  end
end

local function report(self, event)
  local new = take_hits(self)
  if self._page and event == "step" then self._page.tell(self) end
  for _, hit in ipairs(new) do
    if self._on_hit then self._on_hit(hit) elseif not self._stops then print(tostring(hit)) end
    if self._record then self._record:add_now(hit.step, "text", "watch/" .. hit.condition, tostring(hit)) end
  end
  if self._ended then return end
  if self._stops and #new > 0 then return stop(self, "hit", new) end
  if self._page and self._page.wants_pause() then return stop(self, "pause", new) end
  if self._mode ~= "hit" and (event == self._mode or event == "hit" and self._mode == "node") then
    self._left = self._left - 1
    if self._left <= 0 then stop(self, self._mode, new) end
  end
end

-- What arguments.options asks of a value: one of the words, or something to call.
local function one_of(meaning, words, may_be_called)
  return function(value) return words[value] or may_be_called and is_callable(value), meaning end
end

local function is_server(value)
  local kind = getmetatable(value)
  return type(kind) == "table" and kind.__name == "insight server"
end

local known_options = {
  points = "table",
  keep = "table",
  action = one_of("\"stop\" or \"log\"", { stop = true, log = true }),
  on_hit = one_of("a function", {}, true),
  control = function(value)
    return value == "terminal" or is_server(value) or is_callable(value), "\"terminal\", a server of ms.insight.start or a function"
  end,
  begin = one_of("\"hit\", \"node\" or \"step\"", { hit = true, node = true, step = true }),
  record = function(value) return class.is_a(value, ms.train.SummaryRecord), "a SummaryRecord" end,
}

--- Called with the function and the options.
---     > tostring(ms.insight.watch {}) --> watch of 9 conditions: 0 steps, 0 hits
function Watch:init(f, options)
  self.points, self.hits, self._f, self._known = {}, {}, f, {}
  for i, point in ipairs(options.points or watchpoints.recommended()) do self.points[i] = watchpoints.watchpoint("watch", point) end
  self._on_hit, self._control, self._record = options.on_hit, options.control, options.record
  if self._control == "terminal" then self._control = require "lunaria.insight.watch_prompt" end
  if is_server(self._control) then
    self._page = require "lunaria.insight.watch_page"(self._control)
    self._control = self._page.control
  end
  self._stops = options.action == "stop" or options.action == nil and options.control ~= nil
  -- Held weakly, so that the core's reference does not keep the watch alive.
  local this = setmetatable({ self }, { __mode = "v" })
  self._core = core.new(self.points, { kept = options.keep }, function(event)
    if this[1] then report(this[1], event) end
  end)
  go_on(self, options.begin or "hit", 1)
  if self._page then self._page.tell(self) end
end

--- A call of the function as a step.
function Watch:__call(...)
  if not self._f then fail("watch", "it has no function: pass one to ms.insight.watch, or use begin_step and end_step") end
  if self._ended then fail("watch", "it has ended") end
  return self._core:run(self._f, ...)
end

--- Operators are watched from here to end_step.
---     > watch = ms.insight.watch {}
---     > watch:begin_step() ms.ops.exp(ms.ones(2)) watch:end_step()
---     > #watch:nodes() --> 2
function Watch:begin_step()
  if not self._ended then self._core:begin_step() end
end
--- Ends the step, with the conditions of weights.
---     > watch = ms.insight.watch {}
---     > watch:begin_step() watch:end_step()
---     > tostring(watch) --> watch of 9 conditions: 1 steps, 0 hits
function Watch:end_step()
  if self._core:is_in_step() then self._core:end_step() end
end

--- Gives up a step that has begun, as after an error between begin_step and end_step.
---     > watch = ms.insight.watch {}
---     > watch:begin_step() watch:close()
---     > watch:begin_step() watch:end_step()
---     > tostring(watch) --> watch of 9 conditions: 2 steps, 0 hits
function Watch:close()
  if self._core:is_in_step() then self._core:leave_step() end
end

--- Called by Model: gives up the step that an earlier training left open with an error.
---     > ms.insight.watch({}):on_train_begin()
function Watch:on_train_begin() self:close() end
--- Called by Model: begins a step.
---     > watch = ms.insight.watch {}
---     > watch:on_train_step_begin() watch:on_train_step_end()
---     > tostring(watch) --> watch of 9 conditions: 1 steps, 0 hits
function Watch:on_train_step_begin() self:begin_step() end
--- Called by Model: ends the step.
---     > watch = ms.insight.watch {}
---     > watch:on_train_step_begin() watch:on_train_step_end()
---     > #watch:nodes() --> 0
function Watch:on_train_step_end() self:end_step() end
--- Called by Model at the end of the training.
---     > ms.insight.watch({}):on_train_end()
function Watch:on_train_end() self:close() end

--- The nodes of the present or latest step, in the order in which they ran: name, operator, layer, place and operands of each.
---     > step = ms.insight.watch(function(x) return ms.ops.exp(x) * 2 end)
---     > step(ms.ones(2)):sum():item() > 10 --> true
---     > step:nodes()[2].name, step:nodes()[2].operands[1].node --> mul-0	1
function Watch:nodes() return self._core:nodes() end

--- A node by name or place, with figures of results and operands while the program stands at it; without a name the latest.
---     > step = ms.insight.watch(function(x) return ms.ops.exp(x) * 2 end)
---     > step(ms.ones(2)):sum():item() > 10 --> true
---     > step:node("exp-0").operator --> exp
function Watch:node(name)
  local latest = self._core:nodes(-1)
  local found = latest
  if name ~= nil then
    found = nil
    for _, node in ipairs(self._core:nodes()) do
      if node.name == name or node.place == name then
        found = node
        break
      end
    end
  end
  if found and found.index == latest.index then
    local results, operands = self._core:figures()
    found.results, found.inputs = named(self, results), named(self, operands)
  end
  return found
end

--- The nodes that led to a node, up to three before it.
---     > step = ms.insight.watch(function(x) return ms.ops.exp(x) * 2 end)
---     > step(ms.ones(2)):sum():item() > 10 --> true
---     > step:upstream("mul-0")[1].name --> exp-0
function Watch:upstream(name)
  local node = self:node(name)
  if not node then fail("upstream", ("there is no node %s in this step"):format(describe(name))) end
  return upstream(self, node)
end

--- The results of the node at which the program stands, as tensors.
---     > look = function(watch) print(watch:tensors()[1]:tolist()[1]) return "hit" end
---     > ms.insight.watch(function(x) return x * 2 end, { begin = "node", control = look })(ms.ones(2)):sum():item() --> 2.0\n4.0
function Watch:tensors() return self._core:tensors() end

--- Names of the tensors that can be compared with the step before: results of the nodes in the option keep, and weights.
---     > step = ms.insight.watch(function(x) return ms.ops.exp(x) * 2 end, { keep = { "exp" } })
---     > step(ms.ones(2)):sum():item() > 10 --> true
---     > step:kept()[1] --> exp-0
function Watch:kept() return self._core:kept() end

--- A kept tensor against the step before: figures of both (now, before), and count, unequal, largest, mean of the differences.
--- An element is unequal where |now - before| > atol + rtol |before|.
---     > step = ms.insight.watch(function(x) return ms.ops.exp(x) * 2 end, { keep = { "exp" } })
---     > step(ms.zeros(2)):sum():item(), step(ms.tensor { 0.0, 1.0 }):sum():item() > 7 --> 4.0	true
---     > step:compare("exp-0").unequal, step:compare("exp-0", 2).unequal --> 1	0
function Watch:compare(name, rtol, atol, equal_nan)
  rtol, atol, equal_nan = arguments.named("compare", { "rtol", "atol", "equal_nan" }, rtol, atol, equal_nan)
  local now, before = self._core:kept(name)
  if not now then fail("compare", ("%s is not kept; there are: %s"):format(describe(name), table.concat(self:kept(), ", "))) end
  if not before then fail("compare", ("%s has no step before"):format(describe(name))) end
  local change = core.change(now, before, rtol, atol, equal_nan)
  change.now, change.before = core.statistics(now), core.statistics(before)
  return change
end

--- Stops at the next node, step or hit: at, "node", "step" or "hit".
---     > step = ms.insight.watch(function(x) return x * 2 end, { control = function(_, stopped) print(stopped.reason) end })
---     > step:pause("step")
---     > step(ms.ones(2)):sum():item() --> step\n4.0
function Watch:pause(at)
  at = arguments.named("pause", { "at" }, at)
  self._stops = true
  go_on(self, at or "node", 1)
end

function Watch:__tostring()
  return ("watch of %d conditions: %d steps, %d hits"):format(#self.points, self._core:step(), #self.hits)
end

--- Watches a training: gives a function that calls f, and every call of it is a step, of which the watchpoints ask the operators'
--- results, the gradients that an optimizer's operator gets (SGD, Momentum, Adam, AdamWeightDecay, AdamW, Lamb), and the weights. In
--- graph mode too: f's record is run operator by operator meanwhile.
--- Options: points, the watchpoints (see ms.insight.conditions; by default ms.insight.recommended()); each is a condition's name or a
--- table such as { "gradient_too_large", abs_mean_gt = 10, nodes = { "conv1" } }, where nodes are names of parameters, layers,
--- operators, nodes or lines ("train.lua:12"). action: "log" (the default) prints each new hit, on_hit(hit) gets it instead; "stop"
--- ends the program there with an error, or calls control(watch, stop), which looks around (watch:node(), :upstream(), :compare(name),
--- :tensors()) and gives "hit", "node", "step" (and how many) or "terminate"; "terminal" is a control with a prompt, and a server of
--- ms.insight.start one in the browser: its page Debugger goes on node by node or step by step, shows and compares tensors, and pauses.
--- begin = "node" or "step" stops without a hit first. keep: nodes whose results can be compared with the step before.
--- record: a SummaryRecord that gets each new hit as a text, watch/CONDITION, which the page of texts of `lunaria insight` shows.
--- Without f the steps are between begin_step() and end_step(), and the watch is a callback for Model:train.
--- A hit has condition, id, step, node, place ("file:line"), tensor (its statistics), value, operands, numbers, upstream; hits has all.
---     > w = ms.Parameter(ms.tensor { 1.0, 0.0 }, "w")
---     > step = ms.insight.watch(function() return ms.ops.log(w):sum() end, { points = { "tensor_overflow" }, on_hit = print })
---     > step():item() --> -inf
---     > #step.hits, step.hits[1].node.name, step.hits[1].tensor.negative_infinity --> 2	log-0	1
local function watch(f, options)
  if options == nil and type(f) == "table" and getmetatable(f) == nil then f, options = nil, f end
  if f ~= nil and not is_callable(f) then fail("watch", "a function is expected, got " .. describe(f)) end
  return Watch(f, arguments.options("watch", options, known_options, "{ action = \"stop\" }"))
end

--- Figures of a tensor's elements: count, zeros, nan, positive_infinity, negative_infinity, and of the finite ones min, max, mean,
--- abs_mean.
---     > s = ms.insight.statistics(ms.tensor { 0.0, 2.0, 1 / 0 })
---     > s.zeros, s.max, s.mean, s.positive_infinity --> 1	2.0	1.0	1
local function statistics(tensor)
  if not ms.is_tensor(tensor) then fail("statistics", "a tensor is expected, got " .. describe(tensor)) end
  return core.statistics(tensor)
end

return { watch = watch, statistics = statistics, upstream = upstream, complete = complete }
