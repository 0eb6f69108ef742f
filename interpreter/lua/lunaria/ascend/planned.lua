-- A step of a plan on the simulated chips: the operators of a rank of each stage with the shapes of its pieces (jit/parallel/rank_step),
-- what they ask of other ranks, the pipeline, the sums of gradients and the optimizer. The ranks of a stage do the same.
local ascend_core = require "lunaria.ascend_core"
local core = require "lunaria.plans"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cluster = require "lunaria.ascend.cluster"
local parameters = require "lunaria.ascend.parameters"
local streams = require "lunaria.ascend.streams"
local tasks = require "lunaria.ascend.tasks"
local columns = require "lunaria.rich.columns"

local M = {}

local Planned = {}
Planned.__index = Planned
Planned.__name = "planned step"

local graph_sink = { sink = "graph", host_launch = 0 }

-- When a list of tasks is done that begins now, and when its operators are. Tasks of other lists are done already.
local function timed(list, self)
  for _, task in ipairs(list) do
    for _, other in ipairs(task.after or {}) do other.ended = 0.0 end
  end
  local finish = streams.schedule(list, graph_sink, self.chip, self.cluster, self.jitter)
  local computed = 0.0
  for _, task in ipairs(list) do
    if task.stream ~= -3 then computed = math.max(computed, task.ended) end
  end
  return computed, finish
end

-- The rows on which the gradients that go back to the part before depend; the others make gradients of parameters alone.
local function on_the_way(rows, wanted)
  local needed = {}
  for _, id in ipairs(wanted) do needed[id] = true end
  for i = #rows, 1, -1 do
    local row, here = rows[i], false
    for _, t in ipairs(row.outputs) do here = here or needed[t.id] end
    row.is_on_the_way = here
    for _, t in ipairs(here and row.inputs or {}) do needed[t.id] = true end
  end
end

local function key_of(groups)
  local key = {}
  for i, group in ipairs(groups) do key[i] = ("%d:%d"):format(group.stride, group.size) end
  return table.concat(key, ",")
end

-- Gradients in buckets, in the order in which the backward pass gives them, as tasks. Those of one bucket go along the same axes of the
-- mesh. The nearest ranks sum first, and the far ones what those share out.
local function buckets_of(self, gradients, scatters)
  local by_groups, order = {}, {}
  local list = {}
  for i, g in ipairs(gradients) do
    if g.task and #g.groups > 0 then list[#list + 1] = { g = g, task = g.task, number = i } end
  end
  local place = {}
  for i, task in ipairs(self.order) do place[task] = i end
  table.sort(list, function(a, b)
    local x, y = place[a.task] or 0, place[b.task] or 0
    if x ~= y then return x < y end
    return a.number < b.number
  end)
  for _, row in ipairs(list) do
    local key = key_of(row.g.groups)
    if not by_groups[key] then
      by_groups[key] = {}
      order[#order + 1] = key
    end
    table.insert(by_groups[key], { bytes = row.g.elements * self.gradient_bytes, task = row.task, groups = row.g.groups, at = 0 })
  end
  local result = {}
  for _, key in ipairs(order) do
    local some, from = by_groups[key], 1
    local ends = cluster.default_splits(self.cluster, some)
    ends[#ends + 1] = #some
    for _, stop in ipairs(ends) do
      local bytes, after = 0, {}
      for i = from, stop do bytes, after[#after + 1] = bytes + some[i].bytes, some[i].task end
      local before = nil
      for _, group in ipairs(stop >= from and some[stop].groups or {}) do
        local row = { op = scatters and "reduce_scatter" or "all_reduce", axis = group.axis, stride = group.stride, size = group.size,
          bytes = bytes }
        before = { name = row.op, op = row.op, stream = -3, collective = row, after = before and { before } or after, place = "",
          seconds = cluster.seconds(self.cluster, row), bound = "network", phase = "gradients" }
        result[#result + 1] = before
        if scatters then bytes = bytes / group.size end
      end
      from = math.max(from, stop + 1)
    end
  end
  return result
end

-- Weights that lie in pieces (level 3) come together before they are used: rows in front of the others, in their order of use, for
-- neighbours that fit into the buffer of a collective together.
local function gathers_of(self, part)
  local rows, i = {}, 1
  while i <= #part.gradients do
    local first = part.gradients[i]
    local key, bytes, outputs = key_of(first.groups), 0, {}
    while part.gradients[i] and key_of(part.gradients[i].groups) == key and part.gradients[i].layer == first.layer
      and (bytes == 0 or bytes + part.gradients[i].elements * self.weight_bytes <= self.cluster.collective_buffer) do
      bytes, outputs[#outputs + 1] = bytes + part.gradients[i].elements * self.weight_bytes, { id = part.gradients[i].weight }
      i = i + 1
    end
    -- The farthest ranks first, each with the least.
    local shares = 1
    for _, group in ipairs(first.groups) do shares = shares * group.size end
    for k = #first.groups, 1, -1 do
      local group = first.groups[k]
      shares = shares // group.size
      rows[#rows + 1] = { kind = "collective", gradients = true, op = "all_gather", axis = group.axis, stride = group.stride,
        size = group.size, bytes = bytes / shares, place = "", inputs = {}, outputs = outputs, stream = 0,
        layer = first.layer >= 0 and first.layer or nil }
    end
  end
  return rows
end

local function append(to, from, phase)
  for _, row in ipairs(from) do
    row.phase = phase
    to[#to + 1] = row
  end
end

-- A list of tasks with those of layers that stand for several as often as they do. copies[task]: the list of its copies.
local function repeated(list, repeats, copies)
  local result, i = {}, 1
  while i <= #list do
    local n, last = repeats[list[i].layer], i
    while n and list[last + 1] and list[last + 1].layer == list[i].layer do last = last + 1 end
    table.move(list, i, last, #result + 1, result)
    for k = 2, n or 1 do
      for j = i, last do
        local copy = {}
        for key, value in pairs(list[j]) do copy[key] = value end
        copies[list[j]] = copies[list[j]] or {}
        copies[list[j]][k - 1] = copy
        result[#result + 1] = copy
      end
      for j = i, last do
        local copy = copies[list[j]][k - 1]
        local after = {}
        for a, other in ipairs(copy.after or {}) do after[a] = copies[other] and copies[other][k - 1] or other end
        copy.after = copy.after and after
      end
    end
    i = last + 1
  end
  return result
end

-- The gradients of all layers, each with the task that gives it.
local function gradients_of(part, producer, copies)
  local list = {}
  for _, g in ipairs(part.gradients) do
    local task = g.id and producer[g.id]
    list[#list + 1] = { elements = g.elements, groups = g.groups, weight = g.weight, task = task }
    for k = 2, part.repeats[g.layer] or 1 do
      list[#list + 1] = { elements = g.elements, groups = g.groups, weight = g.weight, task = task and copies[task] and copies[task][k - 1]
        or task }
    end
  end
  return list
end

-- Bytes of a rank that the backward pass of a micro-batch needs of the forward one, and those of parameters with all that belongs to them.
local function memory_of(self, part)
  local made, kept, seen = {}, 0, {}
  for _, row in ipairs(part.forward) do
    for _, t in ipairs(row.outputs) do made[t.id] = row.layer or -1 end
  end
  for _, id in ipairs(part.received) do made[id] = -1 end
  for _, row in ipairs(part.backward or {}) do
    for _, t in ipairs(row.inputs) do
      if made[t.id] and not t.parameter and not seen[t.id] then
        local bytes = t.dtype == "bool" and 1 / 8 or t.dtype:match "float" and self.weight_bytes or t.width
        for _, d in ipairs(t) do bytes = bytes * d end
        seen[t.id], kept = true, kept + bytes * (part.repeats[made[t.id]] or 1)
      end
    end
  end
  local states, level = 0, self.trains and self.plan.level or 0
  for _, g in ipairs(part.gradients) do
    local ranks = 1
    for _, group in ipairs(g.groups) do ranks = ranks * group.size end
    local function share(from) return level >= from and 1 / ranks or 1 end
    states = states + g.elements * (part.repeats[g.layer] or 1) * (self.weight_bytes * share(3)
      + (self.trains and self.gradient_bytes * share(2) + self.state_bytes * share(1) or 0))
  end
  return kept, states
end

-- Tasks and times of one part of the network for a micro-batch.
local function part_of(self, part)
  local p, rows, copies = {}, {}, {}
  p.kept, p.states = memory_of(self, part)
  local level = self.trains and self.plan.level or 0
  local elements = {}
  for i, g in ipairs(part.gradients) do elements[i] = g.elements end
  if level == 3 then append(rows, gathers_of(self, part), "forward") end
  append(rows, part.forward, "forward")
  if self.trains then
    on_the_way(part.backward, part.handed_back)
    if level == 3 then append(rows, gathers_of(self, part), "backward") end
    append(rows, part.backward, "backward")
  end
  local list, producer = tasks.build(self.chip, self.cluster, rows, elements, { dtype = self.dtype, optimizer = "none" })
  p.forward, p.backward = {}, {}
  local way = {}
  for _, row in ipairs(rows) do
    if row.is_on_the_way then
      for _, t in ipairs(row.outputs) do
        if producer[t.id] then way[producer[t.id]] = true end
      end
    end
  end
  p.weight_seconds = 0.0
  list = repeated(list, part.repeats, copies)
  p.gradients = gradients_of(part, producer, copies)
  for task, others in pairs(copies) do
    for _, copy in ipairs(others) do way[copy] = way[task] end
  end
  for _, task in ipairs(list) do
    table.insert(task.phase == "forward" and p.forward or p.backward, task)
    if task.phase == "backward" and task.stream == 0 and not way[task] then
      p.weight_seconds = p.weight_seconds + task.seconds * self.jitter
    end
  end
  self.order = list
  p.forward_seconds, p.backward_seconds, p.last_seconds, p.tail = timed(p.forward, self), 0.0, 0.0, 0.0
  if self.trains then
    local sums = buckets_of(self, p.gradients, level >= 1)
    if level >= 2 then table.move(sums, 1, #sums, #p.backward + 1, p.backward) end
    local computed, finish = timed(p.backward, self)
    -- From level 2 on nothing else of a micro-batch begins before its gradients have gone.
    p.backward_seconds = level >= 2 and finish or computed
    p.last = p.backward
    if level < 2 then
      p.last = table.move(p.backward, 1, #p.backward, 1, {})
      table.move(sums, 1, #sums, #p.last + 1, p.last)
      computed, finish = timed(p.last, self)
      p.tail = finish - computed
    end
    p.sums = sums
    p.weight_seconds = math.min(p.weight_seconds, p.backward_seconds * 0.999)
  end
  return p
end

-- The optimizer's tasks on one rank, and what brings weights together that were updated in pieces.
local function update_of(self, stage_parts)
  local elements, gathers, seconds = {}, {}, 0.0
  local level = self.plan.level
  for _, p in ipairs(stage_parts) do
    for _, g in ipairs(p.gradients) do
      local shares = 1
      for _, group in ipairs(level >= 1 and g.groups or {}) do shares = shares * group.size end
      elements[#elements + 1] = math.ceil(g.elements / shares)
      local bytes = g.elements * self.weight_bytes
      for i = 1, level >= 1 and level < 3 and #g.groups or 0 do
        local group = g.groups[i]
        local key = group.stride .. ":" .. group.size
        gathers[key] = gathers[key] or { op = "all_gather", axis = group.axis, stride = group.stride, size = group.size, bytes = 0 }
        gathers[key].bytes = gathers[key].bytes + bytes
        bytes = bytes / group.size
      end
    end
  end
  local list = tasks.build(self.chip, self.cluster, {}, elements, { dtype = self.dtype, optimizer = self.optimizer })
  for _, task in ipairs(list) do seconds = seconds + task.seconds * self.jitter end
  local keys = {}
  for key in pairs(gathers) do keys[#keys + 1] = key end
  table.sort(keys)
  local after = {}
  for _, key in ipairs(keys) do
    after[#after + 1] = gathers[key]
    gathers[key].seconds = cluster.seconds(self.cluster, gathers[key])
  end
  return { tasks = list, seconds = seconds, gathers = after }
end

-- The stages: when they work on what, then sums that are left, updates, weights that come together.
local function run_pipeline(self)
  local plan, times = self.plan, {}
  local ranks = 1
  for _, axis in ipairs(plan.mesh) do ranks = ranks * axis[2] end
  for i, p in ipairs(self.parts) do
    times[i] = { forward = p.forward_seconds, backward = p.backward_seconds - p.weight_seconds, weight_gradient = p.weight_seconds,
      send = cluster.send(self.cluster, ranks, plan.parts[i].send_bytes) }
  end
  local chunks = #self.parts // plan.stages
  if self.trains then
    self.pipeline = core.schedule { schedule = plan.schedule, stages = plan.stages, micro_batches = plan.micro_batches, chunks = chunks,
      parts = times }
  else
    -- Micro-batches follow one another, one stage behind the other.
    local free, line = {}, {}
    for s = 1, plan.stages do free[s], line[s] = 0.0, {} end
    for m = 0, plan.micro_batches - 1 do
      local ready = 0.0
      for part, t in ipairs(times) do
        local s = (part - 1) % plan.stages + 1
        local start = math.max(ready, free[s])
        free[s] = start + t.forward
        ready = free[s] + t.send
        table.insert(line[s], { phase = "forward", part = part - 1, micro_batch = m, start = start, stop = free[s] })
      end
    end
    self.pipeline = { timeline = line, bubble = 0.0 }
  end
  self.stages, self.step = {}, 0.0
  for s = 1, plan.stages do
    local line = self.pipeline.timeline[s]
    local stage = { slots = line, computed = line[#line].stop, parts = {}, tail = 0.0, memory = 0.0 }
    for _, slot in ipairs(line) do stage.parts[slot.part + 1] = true end
    local list = {}
    for number = 1, #self.parts do
      if stage.parts[number] then
        list[#list + 1] = self.parts[number]
        stage.tail = math.max(stage.tail, self.parts[number].tail)
        -- Several chunks of a stage are live equally often.
        local live = self.trains and self.pipeline.kept[s] / chunks or 1
        stage.memory = stage.memory + self.parts[number].states + self.parts[number].kept * live
      end
    end
    stage.finish = stage.computed + stage.tail
    if self.trains then
      stage.update = update_of(self, list)
      stage.finish = stage.finish + stage.update.seconds
      for _, gather in ipairs(stage.update.gathers) do stage.finish = stage.finish + gather.seconds end
    end
    self.stages[s] = stage
    self.step = math.max(self.step, stage.finish)
  end
  self.step = self.step + self.cluster.host_step
end

--- The step of plan number `number` of the plans that lunaria.parallel.plan found. o: chip, cluster, dtype, optimizer, train, devices,
--- batch, gradient_bytes, weight_bytes and state_bytes (of an element of a parameter).
function M.simulate(plans, number, o)
  local self = setmetatable({ plan = plans[number], chip = o.chip, cluster = o.cluster, dtype = o.dtype, optimizer = o.optimizer,
    trains = o.train, jitter = cluster.jitter(o.cluster, o.devices), gradient_bytes = o.gradient_bytes, weight_bytes = o.weight_bytes,
    state_bytes = o.state_bytes, devices = o.devices, batch = o.batch, network = plans.name, parts = {} }, Planned)
  for i, part in ipairs(ascend_core.rank_step(plans.handle, number)) do
    self.parts[i] = part.same_as and self.parts[part.same_as] or part_of(self, part)
  end
  self.order = nil
  run_pipeline(self)
  self.samples_per_second = o.batch / self.step
  return self
end

--- What the ranks of each stage ask of others in a step, by kind and axis: how often, MB of a rank, milliseconds.
function Planned:communication()
  local rows, by_key, list = {}, {}, {}
  local function add(s, row, times, seconds)
    local key = ("%d|%s|%s"):format(s, row.op, row.axis)
    if not by_key[key] then
      by_key[key] = { s, row.op, row.axis, row.size, 0, 0.0, 0.0 }
      list[#list + 1] = by_key[key]
    end
    local entry = by_key[key]
    entry[5], entry[6], entry[7] = entry[5] + times, entry[6] + times * row.bytes, entry[7] + times * seconds
  end
  for s, stage in ipairs(self.stages) do
    for number in pairs(stage.parts) do
      local p = self.parts[number]
      for _, tasks_of in ipairs { p.forward, p.backward } do
        for _, task in ipairs(tasks_of) do
          if task.collective then add(s, task.collective, self.plan.micro_batches, task.seconds) end
        end
      end
      if self.plan.level < 2 then
        for _, task in ipairs(p.sums or {}) do add(s, task.collective, 1, task.seconds) end
      end
    end
    for _, gather in ipairs(stage.update and stage.update.gathers or {}) do add(s, gather, 1, gather.seconds) end
  end
  table.sort(list, function(a, b)
    if a[1] ~= b[1] then return a[1] < b[1] end
    if a[7] ~= b[7] then return a[7] > b[7] end
    return a[2] .. a[3] < b[2] .. b[3]
  end)
  for i, e in ipairs(list) do
    rows[i] = { stage = e[1] - 1, op = e[2], axis = e[3], size = e[4], times = e[5], bytes = e[6], seconds = e[7] }
  end
  return setmetatable(rows, { __tostring = function()
    local lines = {}
    for i = 1, math.min(#rows, 16) do
      local r = rows[i]
      lines[i] = { tostring(r.stage), r.op, ("%s (%d)"):format(r.axis, r.size), tostring(r.times), ("%.1f"):format(r.bytes / 1e6),
        ("%.3f"):format(r.seconds * 1e3) }
    end
    return columns(lines, { "stage", "asked", "axis", "times", "MB", "ms" }, { "right", "left", "left", "right", "right", "right" })
  end })
end

function Planned:__tostring()
  local lines = { ("simulated step %.3f ms, %.0f samples/s"):format(self.step * 1e3, self.samples_per_second) }
  local most = 0
  for _, stage in ipairs(self.stages) do most = math.max(most, stage.tail) end
  if self.trains and most > 0 then
    lines[#lines + 1] = ("%.3f ms of sums of gradients come after the backward pass"):format(most * 1e3)
  end
  local bytes = 0
  for _, stage in ipairs(self.stages) do bytes = math.max(bytes, stage.memory) end
  lines[#lines + 1] = ("parameters, their states and activations take %.2f GB of a rank"):format(bytes / 1e9)
  local rows = self:communication()
  if #rows > 0 then lines[#lines + 1] = tostring(rows) end
  if #self.stages > 1 and #self.stages <= 32 then lines[#lines + 1] = self:picture() end
  return table.concat(lines, "\n")
end

local letters = { forward = "F", backward = "B", ["input gradient"] = "b", ["weight gradient"] = "w" }

--- The stages along the step, as text: a line for each stage, F forward, B backward (b and w: of inputs and of weights), s sums of
--- gradients after it, u updates. width: of the lines, 96.
function Planned:picture(width)
  width = width or 96
  if math.type(width) ~= "integer" or width < 8 then
    arguments.fail("ascend.estimate", "the width of a picture is an integer of at least 8, got " .. arguments.describe(width))
  end
  local lines, unit = {}, self.step / width
  for s, stage in ipairs(self.stages) do
    local cells = {}
    for i = 1, width do cells[i] = "." end
    local function fill(letter, start, stop)
      for i = start // unit + 1 | 0, math.min(width, math.ceil(stop / unit - 1e-9)) do cells[i] = letter end
    end
    for _, slot in ipairs(stage.slots) do fill(letters[slot.phase], slot.start, slot.stop) end
    if stage.tail > 0 then fill("s", stage.computed, stage.computed + stage.tail) end
    if stage.finish > stage.computed + stage.tail then fill("u", stage.computed + stage.tail, stage.finish) end
    lines[s] = ("stage %-3d %s"):format(s - 1, table.concat(cells))
  end
  return table.concat(lines, "\n")
end

local colours = { forward = "#4c78a8", backward = "#f58518", ["input gradient"] = "#f58518", ["weight gradient"] = "#e8b04a",
  gradients = "#54a24b", update = "#8a6fb0", communication = "#54a24b" }

-- What every stage does, as a list of { stage, lane, name, start, seconds, args, colour }, the tasks of all micro-batches where `whole`.
local function events_of(self, whole)
  local events = {}
  local function add(...) events[#events + 1] = { ... } end
  for s, stage in ipairs(self.stages) do
    local ended = {}
    for i, slot in ipairs(stage.slots) do ended[slot.part] = slot.phase ~= "forward" and i or ended[slot.part] end
    for i, slot in ipairs(stage.slots) do
      local p = self.parts[slot.part + 1]
      add(s, 1, ("%s %d"):format(slot.phase, slot.micro_batch), slot.start, slot.stop - slot.start, { part = slot.part }, slot.phase)
      local list = slot.phase == "forward" and p.forward or ended[slot.part] == i and p.last or p.backward
      if whole and slot.phase ~= "weight gradient" then
        timed(list, self)
        for _, task in ipairs(list) do
          add(s, task.stream == 0 and 2 or task.stream == -2 and 3 or 4, task.name .. (task.joined or ""), slot.start + task.start,
            task.ended - task.start, { place = task.place, bound = task.bound, bytes = task.collective and task.collective.bytes,
              axis = task.collective and task.collective.axis }, task.collective and "communication")
        end
      end
    end
    local now = stage.computed
    if stage.tail > 0 then add(s, 1, "sums of gradients", now, stage.tail, {}, "gradients") end
    now = now + stage.tail
    if stage.update then
      add(s, 1, "updates", now, stage.update.seconds, {}, "update")
      now = now + stage.update.seconds
      for _, gather in ipairs(stage.update.gathers) do
        add(s, 4, gather.op, now, gather.seconds, { bytes = gather.bytes, axis = gather.axis }, "communication")
        now = now + gather.seconds
      end
    end
  end
  return events
end

local most_events = 200000

--- Events for Chrome's and Perfetto's viewers, as JSON text: a process for a rank of each stage, with its pieces of work, its operators,
--- what it asks of others, its gradients. Where these would be more than 200,000 events, the pieces of work alone.
function Planned:timeline()
  local count, events = 0, {}
  local ranks = self.devices // #self.stages
  for _, p in ipairs(self.parts) do count = count + (#p.forward + #p.backward) * self.plan.micro_batches end
  for s = 1, #self.stages do
    local pid = (s - 1) * ranks
    events[#events + 1] = { name = "process_name", ph = "M", pid = pid, tid = 0, args = {
      name = ("rank %d of %d, stage %d"):format(pid, self.devices, s - 1) } }
    for lane, name in ipairs { "pipeline", "device", "communication", "gradients" } do
      events[#events + 1] = { name = "thread_name", ph = "M", pid = pid, tid = lane, args = { name = name } }
    end
  end
  for _, e in ipairs(events_of(self, count <= most_events)) do
    events[#events + 1] = { name = e[3], ph = "X", pid = (e[1] - 1) * ranks, tid = e[2], ts = e[4] * 1e6, dur = e[5] * 1e6, args = e[6] }
  end
  return ms.json.encode { traceEvents = ms.json.array(events), displayTimeUnit = "ms", otherData = { model = parameters.version,
    chip = self.chip.name } }
end

--- The stages along the step as SVG: the pieces of work of each, and below them what the rank sends and receives.
function Planned:svg()
  local width, height, left = 1000, 28, 70
  local lines = {}
  local function rect(x, y, w, h, colour, title)
    lines[#lines + 1] = ('<rect x="%.2f" y="%.1f" width="%.2f" height="%.1f" fill="%s"><title>%s</title></rect>'):format(x, y,
      math.max(w, 0.3), h, colour, title)
  end
  local one = {}
  for _, p in ipairs(self.parts) do one[#one + 1] = #p.forward + #p.backward end
  local total = 0
  for _, n in ipairs(one) do total = total + n * self.plan.micro_batches end
  for _, e in ipairs(events_of(self, total <= 20000)) do
    local x, w = left + e[4] / self.step * width, e[5] / self.step * width
    local title = ("%s: %.3f ms"):format(e[3], e[5] * 1e3)
    if e[2] == 1 then
      rect(x, (e[1] - 1) * height + 4, w, 14, colours[e[7]], title)
    elseif e[2] > 2 then
      rect(x, (e[1] - 1) * height + 19, w, 5, colours.communication, title)
    end
  end
  for s = 1, #self.stages do
    lines[#lines + 1] = ('<text x="4" y="%d" font-size="12" font-family="sans-serif">stage %d</text>'):format((s - 1) * height + 16, s - 1)
  end
  return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d">\n%s\n</svg>\n'):format(left + width + 10,
    #self.stages * height + 8, table.concat(lines, "\n"))
end

return M
