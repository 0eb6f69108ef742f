-- Plans for clusters: how a step of a network would be divided among many devices, found from a recording of its forward pass. The
-- search is core/parallel/planner.
local core = require "lunaria.plans"
local jit = require "lunaria.jit"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local columns = require "lunaria.rich.columns"
local found_names = require "lunaria.found_names"

local M = {}

local Plans = {}
Plans.__index = Plans
Plans.__name = "plan for a cluster"

local function size(bytes) return bytes < 1e9 and ("%.1f MB"):format(bytes / 1e6) or ("%.2f GB"):format(bytes / 1e9) end

--- What is moved between operators, the most first: operator, line, layouts, MB that a rank receives, milliseconds.
function Plans:communication(count)
  local rows, by_key, list = {}, {}, {}
  for _, m in ipairs(self[1].movements) do
    local key = table.concat({ m.op, m.place, m.from, m.to, m.gradient_from, m.gradient_to }, "|")
    local row = by_key[key]
    if not row then
      row = { m = m, times = 0, bytes = 0.0, seconds = 0.0 }
      by_key[key], list[#list + 1] = row, row
    end
    row.times, row.bytes, row.seconds = row.times + 1, row.bytes + m.bytes, row.seconds + m.seconds
  end
  table.sort(list, function(a, b)
    if a.seconds ~= b.seconds then return a.seconds > b.seconds end
    return a.m.op < b.m.op
  end)
  for i = 1, math.min(count or #list, #list) do
    local r = list[i]
    local function change(from, to) return from == to and "-" or from .. " -> " .. to end
    rows[i] = { r.m.op, r.m.place, tostring(r.times), change(r.m.from, r.m.to), change(r.m.gradient_from, r.m.gradient_to),
      ("%.1f"):format(r.bytes / 1e6), ("%.3f"):format(r.seconds * 1e3) }
  end
  return columns(rows, { "operator", "line", "times", "forward", "gradient", "MB", "ms" },
    { "left", "left", "right", "left", "left", "right", "right" })
end

--- The stages: milliseconds of a micro-batch forward and backward, memory.
function Plans:stages()
  local rows = {}
  for i, p in ipairs(self[1].parts) do
    rows[i] = { tostring(i - 1), ("%.3f"):format(p.forward * 1e3), ("%.3f"):format((p.backward + p.weight_gradient) * 1e3),
      ("%.3f"):format(p.gradients * 1e3), size(p.send_bytes), size(p.bytes) }
  end
  return columns(rows, { "part", "forward ms", "backward ms", "gradients ms", "sends", "memory" },
    { "right", "right", "right", "right", "right", "right" })
end

--- The largest idle share of a stage in the best plan.
function Plans:bubble()
  local best = self[1]
  return best.simulated and best.simulated.pipeline.bubble or best.bubble
end

--- The simulated step of the best plan: operators, collectives and stages with their times.
function Plans:simulated() return self[1].simulated end

--- The simulated step of the best plan as JSON text for Chrome's and Perfetto's viewers, a process for a rank of each stage.
function Plans:timeline() return self[1].simulated:timeline() end

--- The stages of the best plan along the step, as text.
function Plans:picture(width) return self[1].simulated:picture(width) end

--- The same as SVG, with what is sent and received.
function Plans:svg() return self[1].simulated:svg() end

function Plans:__tostring()
  local best = self[1]
  local lines = { ("%s: batch %d on %d x %s"):format(self.name, self.batch, self.devices, self.device_name), best.text,
    ("step %.3f ms, %.0f samples/s, %.1f %% of the products' peak; %s of %s on the fullest device"):format(best.step * 1e3,
      self.batch / best.step, 100 * self.utilisation, size(best.bytes), size(self.memory_bytes)) }
  if best.stages > 1 then lines[#lines + 1] = ("a stage idles for %.1f %% of its time"):format(100 * self:bubble()) end
  lines[#lines + 1] = ("%d plans were tried, %d fit, the best %d were simulated; %d operators in %d equal layers"):format(self.tried,
    self.fitting, #self, self.operators, self.layers)
  if best.stages > 1 and best.stages <= 16 then lines[#lines + 1] = tostring(self:stages()) end
  if #best.movements > 0 then lines[#lines + 1] = tostring(self:communication(10)) end
  if best.simulated then lines[#lines + 1] = tostring(best.simulated) end
  for i = 2, math.min(#self, 4) do lines[#lines + 1] = ("%.3f ms: %s"):format(self[i].step * 1e3, self[i].text) end
  return table.concat(lines, "\n")
end

--- The numbers of the best plan and of the search, as a table.
function Plans:numbers()
  local best = self[1]
  local mesh = {}
  for i, axis in ipairs(best.mesh) do mesh[i] = ("%s=%d"):format(axis[1], axis[2]) end
  return { network = self.name, batch = self.batch, devices = self.devices, plan = best.text, mesh = table.concat(mesh, ","),
    stages = best.stages, micro_batches = best.micro_batches, level = best.level, recompute = best.remakes, schedule = best.schedule,
    step_ms = best.step * 1e3, searched_ms = best.seconds * 1e3, samples_per_second = self.batch / best.step, bubble = self:bubble(),
    memory = best.bytes,
    utilisation = self.utilisation, tried = self.tried, fitting = self.fitting, parameters = best.parameters }
end

--- { { "dp", 8 }, { "tp", 4 } } and the number of stages from "dp=8,tp=4,pp=2" or a list of pairs; nothing for "auto".
function M.mesh(where, given)
  if given == "auto" then return nil, nil end
  local axes = {}
  if type(given) == "string" then
    for part in (given .. ","):gmatch "(.-)," do
      local name, count = part:match "^%s*([%a_][%w_]*)=(%d+)%s*$"
      if not name then arguments.fail(where, ("a mesh is auto or like dp=8,tp=4,pp=2, got '%s'"):format(given)) end
      axes[#axes + 1] = { name, math.tointeger(count) }
    end
  elseif type(given) == "table" then
    for i, axis in ipairs(given) do
      if type(axis) ~= "table" or type(axis[1]) ~= "string" or math.type(axis[2]) ~= "integer" then
        arguments.fail(where, "a mesh is a list of pairs of a name and a number of ranks, got " .. arguments.describe(axis))
      end
      axes[i] = { axis[1], axis[2] }
    end
  else
    arguments.fail(where, "a mesh is a text or a list, got " .. arguments.describe(given))
  end
  local mesh, stages = {}, 1
  for _, axis in ipairs(axes) do
    if axis[2] < 1 then arguments.fail(where, ("the axis %s of a mesh needs at least one rank, got %d"):format(axis[1], axis[2])) end
    if axis[1] == "pp" then stages = axis[2] else mesh[#mesh + 1] = axis end
  end
  if #mesh == 0 then mesh[1] = { "dp", 1 } end
  return mesh, stages
end

--- The compiled form of f after one recorded call, and names for what it finds outside.
local function record(where, f, inputs)
  local compiled = ms.jit(f)
  jit.trial(compiled, true)
  local done = jit.try(compiled, table.unpack(inputs, 1, inputs.n))
  if not done then
    local said = jit.report(compiled)
    arguments.fail(where, "the forward pass cannot be read as one graph: " .. tostring(said.eager or said.refused))
  end
  jit.take(compiled)
  jit.trial(compiled, false)
  return compiled, found_names(f, inputs, true)
end

--- Plans of a forward pass, the fastest first. f: the function, called with inputs where nothing is computed (an outline); o: name,
--- devices, batch, cluster (a table for core.plan), trained (parameters), and the options of core.plan.
function M.plan(where, f, inputs, o)
  local compiled, names = record(where, f, inputs)
  o.trained, o.count = {}, 0
  for i, p in ipairs(o.parameters) do o.trained[i] = p.name end
  local found = core.plan(compiled, names, o)
  if #found == 0 then
    local least = found.least_bytes > 0 and ("; the smallest plan needs %s of %s"):format(size(found.least_bytes),
      size(o.cluster.memory_bytes)) or ""
    arguments.fail(where, ("%s with batch %d does not fit on %d devices%s"):format(o.name, o.batch, o.devices, least),
      "more devices, a smaller batch, mesh = \"auto\", recompute = true, level = 3")
  end
  found.name, found.batch, found.devices, found.device_name = o.name, o.batch, o.devices, o.cluster.name
  found.memory_bytes = o.cluster.memory_bytes
  found.flops, found.peak_flops = (o.train and 3 or 1) * found.flops, o.peak_flops
  for i, plan in ipairs(found) do plan.number, plan.step = i, plan.seconds end
  return M.ranked(setmetatable(found, Plans))
end

--- The plans in the order of their fields `step`, the seconds of a step; the best one knows its operators.
function M.ranked(found)
  table.sort(found, function(a, b)
    if a.step ~= b.step then return a.step < b.step end
    return a.number < b.number
  end)
  local best = found[1]
  if not best.operators then best.operators, best.movements, best.parameters, best.inputs = core.details(found.handle, best.number) end
  found.utilisation = found.flops / found.devices / best.step / found.peak_flops
  return found
end

return M
