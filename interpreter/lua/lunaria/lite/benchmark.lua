-- lunaria lite benchmark: how fast a light model is, what each of its steps costs, and whether its results are right.
local ms = require "lunaria"

local M = {}

local function clock() return ms.clock() / 1e9 end

M.usage = [==[
usage: lunaria lite benchmark MODEL [options]           run a light model: time, memory, accuracy
  --modelFile FILE        the light file, instead of MODEL
  --inDataFile F,...      inputs: .npy files in their order, or .safetensors (by names) (default: random)
  --inputShapes S         "name:1,3,32,32;other:1,8": other sizes for open dimensions
  --loopCount N           runs that are measured (10); --warmUpLoopCount N: runs before (3)
  --numThreads N          threads (2); --cpuBindMode M: 0 any core, 1 the fastest, 2 slower ones (1); --cpuCoreList 0,1
  --timeProfiling         time of each step, which add up to the whole
  --benchmarkDataFile F   outputs to compare with, likewise
  --accuracyThreshold P   most percent of mean relative error (0.5); --cosineDistanceThreshold C: least cosine (-1.1: any)
  --decryptKey K          of an encrypted model, in hexadecimal digits; --decryptMode AES-GCM
  --device D              CPU]==]

local function fail(message, ...) error("lunaria lite benchmark: " .. message:format(...) .. "\n  hint: lunaria lite --help", 0) end

local flags = { timeProfiling = true }
local defaults = {
  loopCount = 10, warmUpLoopCount = 3, numThreads = 2, cpuBindMode = 1, accuracyThreshold = 0.5, cosineDistanceThreshold = -1.1,
  device = "CPU",
}
local texts = { modelFile = true, inDataFile = true, inputShapes = true, cpuCoreList = true, benchmarkDataFile = true,
  decryptKey = true, decryptMode = true }
-- Flags of MindSpore Lite's benchmark that this one lacks.
local refused = {
  enableFp16 = "light models compute in float32", enableParallel = "steps run one after the other",
  perfProfiling = "counters of the processor are not read", perfEvent = "counters of the processor are not read",
}

-- The options of a command. spec: flags, which need no value; texts; defaults of the others, by which numbers are known; refused, with
-- the reason; fail(message ...).
function M.parse(words, spec)
  local o, wrong = {}, spec.fail
  for name, value in pairs(spec.defaults) do o[name] = value end
  local i = 1
  while i <= #words do
    local word = words[i]
    local name, value = word:match "^%-%-([%w]+)=(.*)$"
    name = name or word:match "^%-%-([%w]+)$"
    if not name then
      if word:find "^%-" or o.modelFile then wrong("'%s' is not understood", word) end
      o.modelFile = word
    elseif spec.refused[name] then
      wrong("--%s is not supported: %s", name, spec.refused[name])
    elseif spec.flags[name] then
      o[name] = value == nil or value == "true"
    else
      if not spec.texts[name] and spec.defaults[name] == nil then wrong("there is no option --%s", name) end
      if not value then
        i = i + 1
        value = words[i] or wrong("option --%s needs an argument", name)
      end
      if type(spec.defaults[name]) == "number" then
        value = tonumber(value) or wrong("--%s needs a number", name)
      end
      o[name] = value
    end
    i = i + 1
  end
  if not o.modelFile then wrong "the model is missing" end
  return o
end

local function parse(words)
  local o = M.parse(words, { flags = flags, texts = texts, defaults = defaults, refused = refused, fail = fail })
  if o.device ~= "CPU" then fail("--device %s is not supported", o.device) end
  if o.decryptMode and o.decryptMode ~= "AES-GCM" then fail("--decryptMode %s is not supported", o.decryptMode) end
  if o.loopCount < 1 then fail "--loopCount is at least 1" end
  return o
end

-- Tensors of a list of files, for values in their order.
function M.read(files, values, what)
  local found, list = {}, {}
  for path in files:gmatch "[^,]+" do
    if path:find "%.safetensors$" then
      for name, t in pairs(ms.load(path)) do found[name] = t end
    else
      list[#list + 1] = path
    end
  end
  local tensors, next_file = {}, 1
  for i, v in ipairs(values) do
    local t = found[v.name]
    if not t then
      local path = list[next_file] or fail("%s %d (%s) has no data", what, i - 1, v.name)
      next_file = next_file + 1
      if path:find "%.npy$" then
        t = ms.load(path)
      else
        fail("%s is neither a .npy nor a .safetensors file", path)
      end
    end
    tensors[i] = t
  end
  return tensors
end

-- Numbers for an input that has no file.
function M.random(v)
  if tostring(v.dtype):find "Float" or tostring(v.dtype):find "float" then return ms.ops.randn(v.shape):astype(v.dtype) end
  return ms.ops.zeros(v.shape):astype(v.dtype)
end

local function resized(model, text)
  local shapes = require "lunaria.lite.convert".shapes_of(text)
  local list = {}
  for i, v in ipairs(model:inputs()) do list[i] = shapes[v.name] or { table.unpack(v.shape) } end
  return model:resize(table.unpack(list))
end

-- The mean relative error in percent, and the cosine of two tensors.
local function compare(got, wanted)
  local a, b = got:astype(ms.float64):reshape { -1 }, wanted:astype(ms.float64):reshape { -1 }
  local scale = b:abs():mean():item()
  local off = (a - b):abs():mean():item()
  local norms = ((a * a):sum() * (b * b):sum()):sqrt():item()
  return scale > 0 and off / scale * 100 or off * 100, norms > 0 and (a * b):sum():item() / norms or 1
end

local function profile(model, inputs, count, say)
  model:measure(true)
  local sums, whole = {}, 0
  for _ = 1, count do
    model:predict(table.unpack(inputs))
    local steps, seconds = model:steps()
    whole = whole + seconds
    for i, step in ipairs(steps) do sums[i] = (sums[i] or 0) + step.seconds end
  end
  model:measure(false)
  local total = 0
  for _, s in ipairs(sums) do total = total + s end
  say(("%-20s %10s %6s %10s  %s"):format("step", "ms", "%", "GFLOP/s", "operators"))
  for i, step in ipairs((model:steps())) do
    local mean = sums[i] / count
    say(("%-20s %10.4f %6.2f %10.2f  %s"):format(step.kind, mean * 1e3, sums[i] / whole * 100,
      mean > 0 and step.flops / mean / 1e9 or 0, step.label))
  end
  say(("steps add up to %.2f %% of %.4f ms"):format(total / whole * 100, whole / count * 1e3))
end

--- Runs the command; `say` prints a line.
function M.run(words, say)
  say = say or print
  local o = parse(words)
  local cores = {}
  for core in (o.cpuCoreList or ""):gmatch "[^,]+" do
    cores[#cores + 1] = math.tointeger(tonumber(core)) or fail "--cpuCoreList is numbers"
  end
  local start = clock()
  local model = ms.lite.Model(o.modelFile, {
    threads = math.tointeger(o.numThreads), cores = cores, decrypt_key = o.decryptKey,
    affinity = ({ [0] = "none", "big", "middle" })[o.cpuBindMode] or fail "--cpuBindMode is 0, 1 or 2",
  })
  if o.inputShapes then resized(model, o.inputShapes) end
  local built = clock() - start
  local inputs = {}
  if o.inDataFile then
    inputs = M.read(o.inDataFile, model:inputs(), "input")
  else
    for i, v in ipairs(model:inputs()) do inputs[i] = M.random(v) end
  end
  local results
  for _ = 1, o.warmUpLoopCount do results = { model:predict(table.unpack(inputs)) } end
  local least, most, sum = math.huge, 0, 0
  for _ = 1, o.loopCount do
    start = clock()
    results = { model:predict(table.unpack(inputs)) }
    local seconds = clock() - start
    least, most, sum = math.min(least, seconds), math.max(most, seconds), sum + seconds
  end
  local memory = model:memory()
  say(tostring(model))
  say(("built in %.3f ms; %d runs by %d threads: min %.4f ms, mean %.4f ms, max %.4f ms"):format(built * 1e3, o.loopCount,
    o.numThreads, least * 1e3, sum / o.loopCount * 1e3, most * 1e3))
  say(("memory: arena %d, scratch %d, own %d bytes"):format(memory.arena, memory.scratch, memory.own))
  if o.timeProfiling then profile(model, inputs, o.loopCount, say) end
  if not o.benchmarkDataFile then return end
  local wanted, bad = M.read(o.benchmarkDataFile, model:outputs(), "output"), false
  for i, v in ipairs(model:outputs()) do
    local percent, cosine = compare(results[i], wanted[i])
    local good = percent <= o.accuracyThreshold and cosine >= o.cosineDistanceThreshold
    bad = bad or not good
    say(("output %s: mean relative error %.5f %%, cosine %.6f: %s"):format(v.name, percent, cosine, good and "good" or "wrong"))
  end
  if bad then error("lunaria lite benchmark: the results are wrong", 0) end
end

return M
