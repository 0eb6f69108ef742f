-- A function ahead of time: what f:lower gives, with every stage between the source and the kernels.
local core = require "lunaria.jit"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local columns = require "lunaria.rich.columns"
local counted = require "lunaria.rich.counted"
local report = require "lunaria.rich.report"
local escaped = require "lunaria.plot.svg_text"
local namer = require "lunaria.found_names"

local ops = ms.ops
local Lowered = {}
Lowered.__index = Lowered
Lowered.__name = "lowered function"

local stages = { "source", "trace", "step", "graph", "optimized", "kernels" }

local describe = arguments.describe
local function fail(message, ...) arguments.fail("lower", message:format(...)) end

--- The text of a stage: "source" (the graph of the Lua function), "trace" (what a call does, guards included), "step" (the whole
--- call as one graph: what it computes and what it changes, with the parameters and states that it finds outside as parameters of
--- the graph; its types are those of the last example), "graph" (the operators of each stretch), "optimized" (after the passes),
--- "kernels" (what is launched).
---     > type(ms.jit(function(x) return x * 2 end):lower(ms.ones { 2 }):ir("optimized")) --> string
function Lowered:ir(stage)
  stage = arguments.named("ir", { "stage" }, stage)
  stage = stage or "optimized"
  if stage == "source" then return tostring(ms.ir(self.target)) end
  if stage == "trace" then return core.text(self.compiled) end
  if stage == "step" then return core.whole(self.compiled, namer(self.target, self.examples)) end
  local parts = {}
  for i, name in ipairs(stages) do
    if name == stage and i > 3 then
      for k, region in ipairs(self.regions) do
        parts[k] = region[stage] or ("not compiled: " .. tostring(region.problem) .. "\n")
      end
      return table.concat(parts, "\n")
    end
  end
  fail("there is no stage '%s'; there are: %s", type(stage) == "string" and stage or describe(stage), table.concat(stages, ", "))
end

--- The launch list: one line for each step.
---     > type(ms.jit(function(x) return x * 2 end):lower(ms.ones { 2 }):kernels()) --> string
function Lowered:kernels() return self:ir("kernels") end

--- The compiled function. It takes whatever the function takes; for other types or shapes it is compiled once more.
---     > ms.jit(function(x) return x * 2 end):lower(ms.ones { 2 }):compile()(ms.ones { 2 }):sum():item() --> 4.0
function Lowered:compile() return self.compiled end

-- What this machine reaches: floating point operations and bytes per second, measured once.
local speed
local function machine()
  if speed then return speed end
  local function best(work, f)
    local least = math.huge
    for _ = 1, 4 do
      local start = ms.clock()
      f()
      least = math.min(least, ms.clock() - start)
    end
    return work / least * 1e9
  end
  local a, v = ops.ones { 384, 384 }, ops.ones { 4 * 1024 * 1024 }
  local random = ms.get_rng_state()
  speed = { flops = best(2 * 384 ^ 3, function() return ops.matmul(a, a) end),
    bytes = best(2 * 4 * v.size, function() return v + 1 end) }
  ms.set_rng_state(random)
  return speed
end

local Cost = {}
Cost.__index = Cost
Cost.__name = "cost"

local scaled, times, sizes = report.scaled, report.times, report.sizes
local counts = { { 1e9, "GFLOP" }, { 1e6, "MFLOP" }, { 1e3, "kFLOP" }, { 1, "FLOP" } }

function Cost:_table()
  local rows = {}
  for i, node in ipairs(self.nodes) do
    rows[i] = { scaled(node.seconds, times), scaled(node.flops, counts), scaled(node.bytes, sizes),
      node.operators .. (node.generated and " (generated)" or ""), node.place }
  end
  return rows, { "time", "arithmetic", "memory", "operators", "line" }, { "right", "right", "right", "left", "left" }
end

function Cost:_totals()
  return ("%s, %s, %s, by the speed of this machine"):format(scaled(self.seconds, times), scaled(self.flops, counts),
    scaled(self.bytes, sizes))
end

report.shows(Cost)

--- What it should cost: flops, bytes and estimated seconds in all and for each node (nodes), as a table. A node takes the
--- longer of its arithmetic and its memory at the speed that this machine reaches (flops_per_second, bytes_per_second).
---     > type(ms.jit(function(x) return x * 2 end):lower(ms.ones { 2 }):cost()) --> table
function Lowered:cost()
  local rate = machine()
  local cost = setmetatable({ flops = 0, bytes = 0, seconds = 0, nodes = {}, flops_per_second = rate.flops,
    bytes_per_second = rate.bytes }, Cost)
  for _, region in ipairs(self.regions) do
    for _, step in ipairs(region.steps or {}) do
      local seconds = math.max(step.flops / rate.flops, step.bytes / rate.bytes)
      cost.nodes[#cost.nodes + 1] = { operators = step.operators, place = step.place, generated = step.generated,
        flops = step.flops, bytes = step.bytes, seconds = seconds }
      cost.flops, cost.bytes, cost.seconds = cost.flops + step.flops, cost.bytes + step.bytes, cost.seconds + seconds
    end
  end
  return cost
end

local Plan = {}
Plan.__index = Plan
Plan.__name = "memory plan"

function Plan:__tostring()
  local parts = {}
  for r, region in ipairs(self.regions) do
    local rows = {}
    for i, m in ipairs(region.memory) do
      rows[i] = { tostring(m.offset), tostring(m.bytes), tostring(m.first), tostring(m.last), m.name }
    end
    parts[#parts + 1] = ("graph %d: %d bytes, %d without the plan"):format(r, region.arena, region.sum)
    if #rows > 0 then
      parts[#parts + 1] = columns(rows, { "offset", "bytes", "from step", "to step", "made by" },
        { "right", "right", "right", "right", "left" })
    end
  end
  return table.concat(parts, "\n")
end

--- A drawing: time from left to right, addresses from bottom to top, a box for each temporary.
function Plan:svg()
  local width, height, gap, top = 640, 240, 34, 18
  local parts = {}
  for r, region in ipairs(self.regions) do
    local y0, steps = (r - 1) * (height + gap) + top, math.max(region.steps, 1)
    parts[#parts + 1] = ("<text x=\"0\" y=\"%d\" font-size=\"12\">graph %d: %s in %d steps</text>"):format(y0 - 5, r,
      escaped(scaled(region.arena, sizes)), region.steps)
    for i, m in ipairs(region.memory) do
      if m.bytes > 0 and region.arena > 0 then
        local x = m.first / steps * width
        local w = math.max((math.min(m.last, steps - 1) + 1 - m.first) / steps * width, 1)
        local h = math.max(m.bytes / region.arena * height, 0.5)
        local y = y0 + height - m.offset / region.arena * height - h
        parts[#parts + 1] = ("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"hsl(%d,55%%,65%%)\" "
          .. "stroke=\"#fff\" stroke-width=\"0.5\"><title>%s: %s, steps %d to %d</title></rect>"):format(x, y, w, h,
          i * 47 % 360, escaped(m.name), escaped(scaled(m.bytes, sizes)), m.first, m.last)
      end
    end
    parts[#parts + 1] = ("<rect x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/>"):format(y0, width, height)
  end
  local all = #self.regions * (height + gap) + top
  return ("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-4 0 %d %d\" width=\"%d\" font-family=\"sans-serif\">%s</svg>")
    :format(width + 8, all, width + 8, table.concat(parts))
end

function Plan:__mime() return { ["image/svg+xml"] = self:svg(), ["text/plain"] = tostring(self) } end

--- Where temporaries live: a text, and in notebooks a drawing (svg()). bytes is the size of all arenas.
---     > type(ms.jit(function(x) return x * 2 end):lower(ms.ones { 2 }):memory_plan()) --> table
function Lowered:memory_plan()
  local plan = setmetatable({ bytes = 0, regions = {} }, Plan)
  for _, region in ipairs(self.regions) do
    if region.memory then
      local sum = 0
      for _, m in ipairs(region.memory) do sum = sum + m.bytes end
      plan.regions[#plan.regions + 1] = { memory = region.memory, arena = region.arena, steps = #region.steps, sum = sum }
      plan.bytes = plan.bytes + region.arena
    end
  end
  return plan
end

function Lowered:__tostring()
  local operators = 0
  for _, region in ipairs(self.regions) do operators = operators + region.operators end
  return ("lowered function: %s in %s, %d bytes of temporaries"):format(counted(operators, "operator"),
    counted(#self.regions, "graph"), self:memory_plan().bytes)
end

-- Sizes of an open axis in the examples: so many of them make one way for any size.
local tries = { 5, 7, 11, 13 }

-- A tensor for a specification { shape = ..., dtype = ... }; anything else is an example itself. Names in a shape are open sizes:
-- `open` gets them, in a list and with their places there, `try` picks their value.
local function example(spec, position, open, try)
  if type(spec) ~= "table" or getmetatable(spec) ~= nil or spec.shape == nil then return spec end
  for key in pairs(spec) do
    if key ~= "shape" and key ~= "dtype" then
      fail("the specification of argument %d has no '%s'; there are: shape, dtype", position, tostring(key))
    end
  end
  if type(spec.shape) ~= "table" then return ops.zeros(spec.shape, spec.dtype or ms.float32) end
  local shape = {}
  for axis, size in ipairs(spec.shape) do
    if type(size) == "string" then
      if not open[size] then
        open[#open + 1] = size
        open[size] = #open
      end
      size = tries[try] + 12 * (open[size] - 1)
    end
    shape[axis] = size
  end
  return ops.zeros(shape, spec.dtype or ms.float32)
end

-- f, compiled for arguments like these.
return function(f, ...)
  local specs = table.pack(...)
  local target = core.target(f)
  local compiled = ms.jit(target)
  core.trial(compiled, true)
  local random = ms.get_rng_state()
  local _ <close> = setmetatable({}, { __close = function() ms.set_rng_state(random) end })
  local open, given = {}, {}
  for try = 1, #tries do
    if try > 1 and #open == 0 then break end
    for i = 1, specs.n do given[i] = example(specs[i], i, open, try) end
    local done = core.try(compiled, table.unpack(given, 1, specs.n))
    if done then
      core.take(compiled)
    else
      local said = core.report(compiled)
      fail("the function is left to Lua: %s", said.eager or said.refused or "it is called within another one")
    end
  end
  core.trial(compiled, false)
  return setmetatable({ compiled = compiled, target = target, examples = given, regions = core.lowered(compiled) }, Lowered)
end
