-- ms.ascend.kernel: programs of the AI cores that a user writes, run with numbers, times and checks in one go.
local core = require "lunaria.ascend_core"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local chips = require "lunaria.ascend.chip"
local parameters = require "lunaria.ascend.parameters"
local tiles = require "lunaria.ascend.tile"
local columns = require "lunaria.rich.columns"

local where = "ascend.kernel"
local function fail(...) arguments.fail(where, ...) end

local pipe_names = { "S", "V", "M", "MTE1", "MTE2", "MTE3" }

local Run = {}
Run.__name = "run of an Ascend kernel"

-- The trace is made when it is asked for.
function Run.__index(self, key)
  if key ~= "trace" then return Run[key] end
  self.trace = core.trace(self._traces, self._programs)
  return self.trace
end

--- What bounds the kernel: the pipe that is busy for the longest part, or the memory stacks.
function Run:bound()
  local best, most = "launch", 0.0
  for _, pipe in ipairs(pipe_names) do
    if self.utilisation[pipe] > most then best, most = pipe, self.utilisation[pipe] end
  end
  if (best == "MTE2" or best == "MTE3") and self.hbm_utilisation > 0.6 then return "HBM" end
  return best
end

-- By pipes, how often which instruction stands in the trace.
local function names_of(trace)
  local counts, lists = {}, {}
  for _, e in ipairs(trace) do
    counts[e.pipe] = counts[e.pipe] or {}
    counts[e.pipe][e.name] = (counts[e.pipe][e.name] or 0) + 1
  end
  for pipe, by_name in pairs(counts) do
    local names = {}
    for name in pairs(by_name) do names[#names + 1] = name end
    table.sort(names, function(a, b) return by_name[a] > by_name[b] or by_name[a] == by_name[b] and a < b end)
    for i, name in ipairs(names) do names[i] = ("%d %s"):format(by_name[name], name) end
    lists[pipe] = table.concat(names, ", ")
  end
  return lists
end

--- By pipes, the busiest first: pipe, instructions, cycles (of all blocks together), share of the time of the cores that are used, mix
--- (which instructions; of the first 10,000 of each block, and nothing where no trace was kept).
function Run:report()
  local list, names = {}, names_of(self.trace)
  for i, pipe in ipairs(pipe_names) do
    list[i] = { pipe = pipe, instructions = self.instructions[pipe] // 1 | 0, cycles = self.busy[pipe], share = self.utilisation[pipe],
      mix = names[pipe] or "" }
  end
  table.sort(list, function(a, b) return a.share > b.share or a.share == b.share and a.pipe < b.pipe end)
  return setmetatable(list, { __tostring = function()
    local rows = {}
    for i, r in ipairs(list) do
      rows[i] = { r.pipe, tostring(r.instructions), ("%.0f"):format(r.cycles), ("%.1f %%"):format(100 * r.share), r.mix }
    end
    return columns(rows, { "pipe", "instructions", "cycles", "busy", "" }, { "left", "right", "right", "right", "left" })
  end })
end

function Run:__tostring()
  local lines = { ("kernel %s: %d blocks on %d cores, %.0f cycles = %.2f us, bound by %s"):format(self.kernel, self.blocks, self.cores_used,
    self.cycles, self.seconds * 1e6, self:bound()),
    tostring(self:report()),
    ("global memory: %.0f bytes moved, %.0f from HBM (%.0f %% of its bandwidth)"):format(self.moved_bytes, self.hbm_bytes,
      100 * self.hbm_utilisation) }
  if self.overflowed then lines[#lines + 1] = "a float16 result was too large or not a number" end
  for i, f in ipairs(self.faults) do
    if i > 20 then
      lines[#lines + 1] = ("... and %d more"):format(#self.faults - 20)
      break
    end
    lines[#lines + 1] = ("%s: %s (kernel %s, block %d, instruction %d): %s"):format(f.place, f.kind, self.kernel, f.block,
      f.instruction, f.text)
  end
  lines[#lines + 1] = ("model %s of the chip %s: not validated, no cycles of a core are published"):format(parameters.version, self.chip)
  return table.concat(lines, "\n")
end

--- The run as events for Chrome's and Perfetto's viewers, as JSON text: a process for each block, a thread for each pipe.
function Run:timeline()
  local events, lanes = {}, {}
  local function describe(name, block, lane, text)
    events[#events + 1] = { name = name, ph = "M", pid = block, tid = lane, args = { name = text } }
  end
  for lane, pipe in ipairs(pipe_names) do lanes[pipe] = lane end
  local described = {}
  for _, e in ipairs(self.trace) do
    if not described[e.block] then
      described[e.block] = true
      describe("process_name", e.block, 0, ("%s, block %d"):format(self.kernel, e.block))
      for lane, pipe in ipairs(pipe_names) do describe("thread_name", e.block, lane, pipe) end
    end
    events[#events + 1] = { name = e.name, ph = "X", pid = e.block, tid = lanes[e.pipe], ts = e.start / 1000,
      dur = math.max(e.stop - e.start, 1) / 1000, args = { place = e.place } }
  end
  return ms.json.encode { traceEvents = ms.json.array(events), displayTimeUnit = "ns" }
end

local Kernel = {}
Kernel.__index = Kernel
Kernel.__name = "Ascend kernel"

local known_options = { blocks = "number", outputs = "function", chip = "any", saturate = "boolean" }

local function output_types(self, inputs)
  local specs = self.outputs(table.unpack(inputs))
  if type(specs) == "table" and specs.shape then specs = { specs } end
  if type(specs) ~= "table" or #specs == 0 then fail "outputs must give { shape =, dtype = } or a list of them" end
  return specs
end

local function is_block_count(n) return math.type(n) == "integer" and n >= 1 and n <= 65535 end

-- Runs the kernel. options: compute (false: times alone), trace_limit.
local function run(self, inputs, options)
  local list, globals, outputs = {}, {}, {}
  for i, x in ipairs(inputs) do
    if not ms.is_tensor(x) then fail(("argument %d must be a tensor, got %s"):format(i, arguments.describe(x))) end
    list[i] = { name = "input " .. i, tensor = x:to("CPU"):contiguous(), written = true }
    globals[i] = tiles.tensor(i - 1, x.dtype, x.shape, x.size)
  end
  for i, spec in ipairs(output_types(self, inputs)) do
    local y = ms.ops.zeros(spec.shape, spec.dtype or inputs[1].dtype):to "CPU"
    outputs[i] = y
    list[#list + 1] = { name = "output " .. i, tensor = y, written = false }
    globals[#globals + 1] = tiles.tensor(#globals, y.dtype, y.shape, y.size)
  end
  if options.compute == false then
    for _, row in ipairs(list) do row.bytes, row.tensor = row.tensor.nbytes or row.tensor.size * row.tensor.itemsize, nil end
  end
  local settings = {}
  for key, value in pairs(self.chip) do
    if type(value) ~= "table" and type(value) ~= "string" then settings[key] = value end
  end
  if self.saturate ~= nil then settings.saturate = self.saturate end
  settings.compute, settings.trace_limit = options.compute ~= false, options.trace_limit or 10000
  local blocks = self.blocks
  if type(blocks) == "function" then
    blocks = blocks(table.unpack(inputs))
    if not is_block_count(blocks) then
      fail("blocks must give an integer from 1 to 65535, got " .. arguments.describe(blocks))
    end
  end
  local programs, overflow = {}, nil
  for b = 0, blocks - 1 do
    local tile = tiles.tile(self.name, self.chip, b, blocks)
    self.f(tile, table.unpack(globals))
    programs[b + 1] = tile._program
    overflow = overflow or tile.overflow[1]
  end
  local result, unwritten, traces = core.run(settings, list, programs)
  result._traces, result._programs = traces, programs
  if overflow then
    table.insert(result.faults, 1, { kind = "overflow", text = overflow, block = 0, instruction = 0, place = "" })
  end
  if options.compute ~= false and #result.faults == 0 then
    for i = 1, #outputs do
      local missing = unwritten[#inputs + i]
      if missing > 0 then
        result.faults[#result.faults + 1] = { kind = "unwritten", place = "", block = 0, instruction = 0,
          text = ("%d of the %d bytes of output %d are never written"):format(missing, outputs[i].size * outputs[i].itemsize, i) }
      end
    end
  end
  -- Results are where the first input is.
  for i, y in ipairs(outputs) do outputs[i] = y:to(inputs[1].device) end
  result.kernel, result.blocks, result.outputs, result.chip = self.name, blocks, outputs, self.chip.name
  result.seconds = result.cycles / self.chip.hertz
  result.utilisation = {}
  for pipe, busy in pairs(result.busy) do result.utilisation[pipe] = busy / (result.cycles * math.max(result.cores_used, 1)) end
  result.hbm_utilisation = result.hbm_bytes / result.seconds / self.chip.hbm_bytes_per_second
  return setmetatable(result, Run)
end

--- Runs the kernel and gives the run: cycles, busy pipes, report(), faults, trace, outputs. A program with faults raises no error here.
function Kernel:check(...) return run(self, { ... }, {}) end

--- The same without numbers and checks, for large operands.
function Kernel:time(...) return run(self, { ... }, { compute = false }) end

--- The results; an error where the program has a fault.
function Kernel:__call(...)
  local done = run(self, { ... }, { trace_limit = 0 })
  local f = done.faults[1]
  if f then
    fail(("%s%s in kernel %s, block %d, instruction %d: %s%s"):format(f.place == "" and "" or f.place .. ": ", f.kind, self.name,
      f.block, f.instruction,
      f.text, #done.faults > 1 and ("; %d more"):format(#done.faults - 1) or ""), "kernel:check(...) gives all of them")
  end
  return table.unpack(done.outputs)
end

function Kernel:__tostring() return ("Ascend kernel %s for the chip %s"):format(self.name, self.chip.name) end

-- The type of the result where the options do not say it.
local function like_first(x)
  if x == nil then fail("without options.outputs the result is like the first input, and there is none") end
  return { shape = x.shape, dtype = x.dtype }
end

local M = {}

--- A kernel of the library: a function of tensors of float16 that runs as tile programs on the simulated cores: "add", "sub", "mul",
--- "div", "maximum", "minimum", "relu", "abs", "neg", "exp", "log", "sqrt", "sigmoid", "tanh", "copy", "softmax", "layer_norm",
--- "reduce_sum", "reduce_max", "reduce_min", "gelu", "relu_grad", "matmul", "matmul_kernel" (on fractals), "conv2d",
--- "conv2d_input_grad", "conv2d_weight_grad", "max_pool", "avg_pool", "batch_norm" (gamma and beta of float32), "transpose", "gather",
--- "scatter_update", "scatter_add", "momentum" and "adam" (of float32). Those that are kernels themselves also have check(...) and
--- time(...).
---     > ms.ascend.library "relu"(ms.tensor({ -1.0, 2.0 }, ms.float16)):tolist()[2] --> 2.0
function M.library(name)
  local kernels = require "lunaria.ascend.kernels"
  if kernels[name] then return kernels[name] end
  local known = {}
  for one in pairs(kernels) do known[#known + 1] = one end
  arguments.fail("ascend.library", ("there is no kernel '%s'"):format(tostring(name)), arguments.nearest(tostring(name), known))
end

--- A kernel of the AI cores: f(t, inputs ..., outputs ...) writes the program of one block, t.block of t.blocks, with the
--- instructions of t. options: outputs (a function of the inputs that gives { shape =, dtype = } or a list of them; the first
--- input's without it), blocks (a number, or a function of the inputs; 1), chip (a name, a file or a table), saturate. The result
--- is called with tensors and gives tensors; check(...) gives the run with its faults, time(...) the times alone.
--- Buffers: t:ub, t:l1, t:l0a, t:l0b and t:l0c (dtype, count); b:at(elements, count) is a part of one. Moves: t:load(buffer,
--- tensor, o), t:store(tensor, buffer, o) and t:copy(to, from, o) with o.count, or o.bursts, burst, src_stride, dst_stride;
--- t:load2d and t:load3d (L1 to L0A, L0B); t:mmad(c, a, b, m, k, n, { init = }); t:drain(ub, l0c). Vectors: t:vadd, vsub, vmul,
--- vmax, vmin, vmla (to, a, b), vabs, vrelu, vexp, vln, vrec, vrsqrt, vconv (to, a), vadds, vmuls, vmaxs, vmins, vaxpy (to, a,
--- number), vdup (to, number), vcmp (kind, mask, a, b), vsel (to, mask, a, b), vcadd, vcmax, vcmin and those of groups and pairs
--- (to, a), vtranspose; a last table has count, or repeats, lanes and strides. Scalars: t:scalar_load(register, buffer),
--- t:scalar(kind, register, a, b). Pipes are "S", "V" (vectors), "M" (mmad), "MTE1" (L1 to L0), "MTE2" (load) and "MTE3" (store):
--- t:set_flag(from, to, number) and t:wait_flag make one wait for another, t:sync does both, t:barrier(pipe) waits for one or
--- all.
---     > ms.ascend.kernel("idle", function() end) --> Ascend kernel idle for the chip 910
function M.kernel(name, options, f)
  if type(name) ~= "string" then fail("the name must be a string, got " .. arguments.describe(name)) end
  if type(options) == "function" and f == nil then options, f = {}, options end
  if type(f) ~= "function" then fail("a function that writes the program is expected, got " .. arguments.describe(f)) end
  for key in pairs(options) do
    if not known_options[key] then fail(("there is no option '%s'; there are: blocks, chip, outputs, saturate"):format(tostring(key))) end
  end
  local blocks = options.blocks or 1
  if type(blocks) ~= "function" and not is_block_count(blocks) then
    fail("blocks must be an integer from 1 to 65535 or a function, got " .. arguments.describe(blocks))
  end
  return setmetatable({ name = name, f = f, blocks = blocks, saturate = options.saturate, chip = chips.chip(where, options.chip),
    outputs = options.outputs or like_first }, Kernel)
end

return M
