-- Streams of the device "Ascend": what a stream is given runs in order, and streams run beside one another where they need different
-- parts of the chip: its cores, its AI CPUs, the link to the host. Events make one wait for another. The device's numbers do not
-- depend on them, since it computes in the order of the program; the times of ms.ascend.ran do, and what a chip could do in another
-- order is told.
local core = require "lunaria.ascend_core"
local arguments = require "lunaria.nn.arguments"

local M = {}

--- Numbers of streams by their names and back. 0 is what work belongs to that is given to no stream, -1 the queue of batches.
-- -2 and -3 are those of planned steps: what operators ask of other chips, and what gradients and weights do.
local numbers, names = {}, { [0] = "device", [-1] = "data", [-2] = "communication", [-3] = "gradients" }
local events, count_of_events = {}, 0

function M.name_of(number) return names[number] end

local Stream = {}
Stream.__index = Stream
Stream.__name = "stream of the device Ascend"

local function event_of(where, name)
  if type(name) ~= "string" then arguments.fail(where, "an event is told by its name, got " .. arguments.describe(name)) end
  if not events[name] then
    count_of_events = count_of_events + 1
    events[name] = count_of_events
  end
  return events[name]
end

--- Calls f: what it gives to the device belongs to the stream.
function Stream:__call(f, ...)
  if type(f) ~= "function" then arguments.fail("ascend.stream", "a function is expected, got " .. arguments.describe(f)) end
  local before = core.set_stream(self.number)
  local back <close> = setmetatable({}, { __close = function() core.set_stream(before) end }) -- luacheck: ignore 211
  return f(...)
end

--- The event stands behind what the stream was given so far.
function Stream:record(event) core.mark_event(self.number, event_of("ascend.stream", event), false) end

--- What the stream is given from now on comes after the event.
function Stream:wait(event) core.mark_event(self.number, event_of("ascend.stream", event), true) end

function Stream:__tostring() return ("stream %s of the device Ascend"):format(self.name) end

--- A stream of the device "Ascend", by its name: s = ms.ascend.stream "copies". s(f, ...) calls f, and what f gives to the device belongs
--- to the stream; s:record "there" and s:wait "there" make one stream wait for another. "device" is the stream of everything else.
--- ms.ascend.ran tells how long it takes, and where a stream reads what another one writes without waiting for it.
---     > s = ms.ascend.stream "other"
---     > s(function(x) return x + 1 end, 2) --> 3
function M.stream(name)
  if type(name) ~= "string" then arguments.fail("ascend.stream", "the name must be a string, got " .. arguments.describe(name)) end
  if name == "data" then arguments.fail("ascend.stream", "\"data\" is the queue of batches of ms.ascend.ran") end
  if name == "device" then numbers[name] = 0 end
  if not numbers[name] then
    names[#names + 1] = name
    numbers[name] = #names
  end
  return setmetatable({ name = name, number = numbers[name] }, Stream)
end

--- Reads of what another stream writes, without an event between: rows of the record as { write =, read = }.
function M.races(rows)
  local known, counts, recorded, writers, found = {}, {}, {}, {}, {}
  local function merge(into, from)
    for stream, n in pairs(from) do into[stream] = math.max(into[stream] or 0, n) end
  end
  for _, row in ipairs(rows) do
    local s = row.stream
    known[s], counts[s] = known[s] or {}, counts[s] or 0
    if row.kind == "record" then
      recorded[row.event] = { [s] = counts[s] }
      merge(recorded[row.event], known[s])
    elseif row.kind == "wait" then
      merge(known[s], recorded[row.event] or {})
    else
      counts[s] = counts[s] + 1
      for _, t in ipairs(row.inputs) do
        local w = writers[t.id]
        if w and w.stream ~= s and (known[s][w.stream] or 0) < w.count and not (w.told or {})[s] then
          w.told = w.told or {}
          w.told[s] = true
          found[#found + 1] = { write = w.row, read = row }
        end
      end
      for _, t in ipairs(row.outputs) do writers[t.id] = { stream = s, count = counts[s], row = row } end
    end
  end
  return found
end

local function resource_of(task)
  return task.cpu and "AI CPU" or task.transfer and "link" or task.collective and "network" or "cores"
end

-- The host's part of a schedule: when it gives which task to the device.
local Host = {}
Host.__index = Host

-- The time at which the host would have given the next task, or nothing where it waits for one.
function Host:next_time()
  if self.given == #self.list then return nil end
  if not self.launches then return 0.0 end
  if self.waits_for then
    if not self.waits_for.ended then return nil end
    self.now = math.max(self.now, self.waits_for.ended)
    self.waits_for = nil
  end
  local oldest = self.list[self.given + 1 - self.queue]
  if oldest then
    if not oldest.ended then return nil end
    self.now = math.max(self.now, oldest.ended)
  end
  return self.now + self.seconds
end

function Host:give(time)
  self.given = self.given + 1
  local task = self.list[self.given]
  if self.launches then
    task.launched, task.launch, self.now = self.now, self.seconds, time
    if self.synchronous or task.transfer and task.stream ~= -1 then self.waits_for = task end
  end
  task.given = self.launches and time or 0.0
  return task
end

-- When a task could start, or nothing where it waits for one that has not run.
local function ready_time(task, stream_free, free)
  local time = math.max(stream_free[task.stream] or 0.0, free[resource_of(task)] or 0.0)
  for _, other in ipairs(task.after or {}) do
    if not other.ended then return nil end
    time = math.max(time, other.ended)
  end
  return time
end

--- Starts of tasks on the device and, with host launching, what the host does meanwhile: it gives one task after the other, and waits
--- for copies between its memory and the device's. list: tasks with seconds, stream, after (tasks that end before). The end of the last
--- one, and for how long the device waited for the host. What a host that waits needs for an operator was measured with a task that has
--- nothing to do, so that the time of such a task is in it.
function M.schedule(list, o, chip, c, jitter)
  local host = setmetatable({ list = list, given = 0, now = 0.0, launches = o.sink == "host", synchronous = o.synchronous,
    queue = c.launch_queue, seconds = o.host_launch - (o.synchronous and chip.task_seconds + chip.operator_head / chip.hertz or 0) }, Host)
  local queues, first, stream_free, free = {}, {}, {}, {}
  local finish, waited, left = 0.0, 0.0, #list
  for _, task in ipairs(list) do task.ended = nil end
  while left > 0 do
    local best, best_start, best_ready
    for stream, queue in pairs(queues) do
      local task = queue[first[stream]]
      local ready = task and ready_time(task, stream_free, free)
      if ready then
        local start = math.max(ready, task.given)
        if not best or start < best_start or start == best_start and task.number < best.number then
          best, best_start, best_ready = task, start, ready
        end
      end
    end
    local time = host:next_time()
    if time and (not best or time <= best_start) then
      local task = host:give(time)
      task.number = host.given
      queues[task.stream] = queues[task.stream] or {}
      first[task.stream] = first[task.stream] or 1
      table.insert(queues[task.stream], task)
    else
      best.start, best.ended = best_start, best_start + best.seconds * jitter
      waited = waited + math.max(0.0, best.given - best_ready)
      stream_free[best.stream], free[resource_of(best)] = best.ended, best.ended
      first[best.stream] = first[best.stream] + 1
      finish, left = math.max(finish, best.ended), left - 1
    end
  end
  return finish, waited
end

return M
