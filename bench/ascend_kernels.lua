-- Tile programs on the simulated cores: how busy the units are in kernels whose answer is known, and how many instructions a second
-- the simulator writes, carries out with all checks, and times: lunaria bench/ascend_kernels.lua [--json]
local core = require "lunaria.ascend_core"
local ms = require "lunaria"
local columns = require "lunaria.rich.columns"
local parameters = require "lunaria.ascend.parameters"
local ops, f16 = ms.ops, ms.float16
local library = require "lunaria.ascend.kernels"

-- Seconds by the clock on the wall: that of the process counts threads that wait.
local function now() return ms.clock() * 1e-9 end

local function fractals(...) return ops.zeros({ ... }, f16) end

-- Loads, arithmetic on 1,024 elements and stores with two sets of buffers: of 14 instructions 4 are arithmetic and 8 flags.
local turns = 2000
local function program(t, x, y)
  local a, b, c = {}, {}, {}
  for s = 0, 1 do
    a[s], b[s], c[s] = t:ub(f16, 1024), t:ub(f16, 1024), t:ub(f16, 1024)
    t:set_flag("V", "MTE2", s)
    t:set_flag("MTE3", "V", s)
  end
  for i = 0, turns - 1 do
    local s = i % 2
    t:wait_flag("V", "MTE2", s)
    t:load(a[s], x:at(i * 1024), { count = 1024 })
    t:sync("MTE2", "V", s)
    t:wait_flag("MTE3", "V", s)
    t:vadd(b[s], a[s], a[s])
    t:vmul(c[s], b[s], a[s])
    t:vrelu(c[s], c[s])
    t:vadds(c[s], c[s], 1.0)
    t:set_flag("V", "MTE2", s)
    t:sync("V", "MTE3", s)
    t:store(y:at(i * 1024), c[s], { count = 1024 })
    t:set_flag("MTE3", "V", s)
  end
  for s = 0, 1 do
    t:wait_flag("V", "MTE2", s)
    t:wait_flag("MTE3", "V", s)
  end
end

local kernel, x = ms.ascend.kernel("speed", program), fractals(turns * 1024)
-- Seconds of a whole call and of its part in the core, the best of some.
local function seconds(method)
  local run, inside = core.run, 0
  core.run = function(...)
    local start = now()
    local results = table.pack(run(...))
    inside = now() - start
    return table.unpack(results, 1, results.n)
  end
  local whole, part, instructions = math.huge, math.huge, 0
  for _ = 1, 15 do
    local start = now()
    local result = kernel[method](kernel, x)
    whole, part = math.min(whole, now() - start), math.min(part, inside)
    instructions = 0
    for _, n in pairs(result.instructions) do instructions = instructions + n end
  end
  core.run = run
  return whole, part, instructions
end
local checked, _, count = seconds "check"
local timed, timing = seconds "time"
local speeds = { checked = count / checked, written = count / (timed - timing), timed = count / timing }

-- Large programs come last, since what they leave behind costs the others time.
local large = library.matmul_kernel:time(fractals(256, 4096, 16), fractals(256, 256, 16, 16))
local thin = library.matmul_kernel:time(fractals(4, 4096, 16), fractals(4, 256, 16, 16))
local sum = library.add:time(fractals(16 * 1024 * 1024), fractals(16 * 1024 * 1024))

local rows = {
  { "product of 4096 x 4096 by 4096 x 4096", "cube busy", 0.9, large.utilisation.M, large.utilisation.M >= 0.9 },
  { "product of 4096 x 64 by 64 x 4096", "cube busy", -0.5, thin.utilisation.M, thin.utilisation.M < 0.5 },
  { "sum of 16 M elements", "HBM's bandwidth", 0.7, sum.hbm_utilisation, sum.hbm_utilisation >= 0.7 },
  { "written, carried out and checked", "M instructions/s", 1, speeds.checked / 1e6, speeds.checked >= 1e6 },
  { "written", "M instructions/s", 1, speeds.written / 1e6, speeds.written >= 1e6 },
  { "timed", "M instructions/s", 1, speeds.timed / 1e6, speeds.timed >= 1e6 },
}
if arg and arg[1] == "--json" then
  local report = {}
  for i, r in ipairs(rows) do report[i] = { case = r[1], unit = r[2], bar = r[3], measured = r[4], holds = r[5] } end
  print(ms.json.encode { model = parameters.version, cases = ms.json.array(report) })
else
  local lines = {}
  for i, r in ipairs(rows) do
    local percent = r[2]:match "^M" == nil
    local function text(v) return percent and ("%.1f %%"):format(100 * v) or ("%.2f"):format(v) end
    lines[i] = { r[1], r[2], (r[3] < 0 and "below " or "at least ") .. text(math.abs(r[3])), text(r[4]), r[5] and "yes" or "NO" }
  end
  print(columns(lines, { "kernel", "", "bar", "measured", "holds" }, { "left", "left", "left", "right", "left" }))
end
for _, r in ipairs(rows) do
  if not r[5] then os.exit(1) end
end
