-- Converts every .onnx and .mindir file of a folder to light models, runs them by the light runtime and compares the results:
--   lunaria tests/conformance/lite.lua DIR [--only PATTERN] [--verbose] [--c]
-- Beside NAME.onnx or NAME.mindir stand NAME.in.safetensors and NAME.out.safetensors (tensors by the names of inputs and
-- outputs), NAME.calibration.safetensors (inputs with a new first axis of samples) and NAME.json: for each of fp32, fp16,
-- weight_int8 and full_int8 the largest difference, relative to the largest absolute output, or null. --c: also writes each as
-- C99, builds it by cc and compares the numbers that it prints.
--   lunaria tests/conformance/lite.lua --node DIR
-- does so, in fp32, for the float cases of the node tests of the package onnx (reference/onnx_cases.py) and counts those that
-- convert.
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path
local ms = require "lunaria"
local support = require "support"
local ops = ms.ops

local folder, options = support.options("usage: lunaria lite.lua [--node] DIR [--only PATTERN] [--verbose] [--c]",
  { only = "", verbose = true, node = true, c = true })

local modes = {
  { name = "fp32", options = {} },
  { name = "fp16", options = { fp16 = "on" } },
  { name = "weight_int8", options = { quant_type = "WEIGHT_QUANT", bit_num = 8 } },
  { name = "full_int8", options = { quant_type = "FULL_QUANT" } },
}

local function headline(message) return (tostring(message):gsub("\n.*", "")) end

-- The largest difference relative to the largest absolute element of what is wanted; nil where types differ.
local function difference(got, wanted)
  if not got or got.dtype ~= wanted.dtype or tostring(got.shape) ~= tostring(wanted.shape) then return nil end
  if wanted.size == 0 then return 0 end
  local a, b = ops.cast(got, ms.float64), ops.cast(wanted, ms.float64)
  local off = ops.abs(a - b)
  -- Infinities and NaN have to be the same.
  off = ops.where(ops.logical_or(ops.equal(a, b), ops.logical_and(ops.isnan(a), ops.isnan(b))), 0.0, off)
  local finite = ops.where(ops.isfinite(b), ops.abs(b), 0.0)
  local most, largest = off:max():item(), finite:max():item()
  if most ~= most then return math.huge end
  return largest > 0 and most / largest or most
end

local function compare(results, wanted, bound)
  for i, one in ipairs(wanted) do
    local found = difference(results[i], one)
    if not found then return ("output %d is %s, not %s"):format(i - 1, tostring(results[i]), tostring(one)) end
    if not (found <= bound) then return ("output %d differs by %.3g, more than %.3g"):format(i - 1, found, bound) end
  end
  return nil
end

-- The tensors of a file, in the order of the names in the model.
local function tensors(path, about)
  local found, list = ms.load_safetensors(path), {}
  for i, one in ipairs(about) do
    list[i] = found[one.name] or error(("%s has no tensor %s"):format(path, one.name), 0)
  end
  return list
end

-- The outputs of the C that is written for a light file, built by the system's compiler.
local function results_of_c(light, inputs, wanted)
  local program = os.tmpname()
  os.remove(program)
  ms.lite.micro(light, { inputs = inputs, outputDir = program })
  local pipe = io.popen(("make -s -C %s CFLAGS=-O1 test 2>&1"):format(program))
  local text = pipe:read "a"
  pipe:close()
  os.execute("rm -r " .. program)
  local results = {}
  for line in text:gmatch "[^\n]+" do
    local elements = line:match "^[%w_]+:(.*)$"
    local like = elements and not line:find "^passed" and not line:find "^failed" and wanted[#results + 1]
    if like then
      local numbers = {}
      for number in elements:gmatch "%S+" do numbers[#numbers + 1] = tonumber(number) end
      if #numbers ~= like.size then error("C: " .. text:sub(1, 200), 0) end
      results[#results + 1] = ops.cast(ops.reshape(ms.tensor(numbers, ms.float64), like.shape), like.dtype)
    end
  end
  if #results ~= #wanted then error("C: " .. text:sub(1, 200), 0) end
  return results
end

local passed, failed = 0, 0
local function count(name, problem)
  if problem then
    failed = failed + 1
    print(("FAILED %s: %s"):format(name, problem))
  else
    passed = passed + 1
    if options.verbose then print("passed " .. name) end
  end
end

local function run_model(path, name)
  local stem = path:gsub("%.%a+$", "")
  local bounds = support.read_json(stem .. ".json")
  local _, _, about = ms.load(path)
  local inputs, wanted = tensors(stem .. ".in.safetensors", about.inputs), tensors(stem .. ".out.safetensors", about.outputs)
  for _, mode in ipairs(modes) do
    local bound = bounds[mode.name]
    if type(bound) == "number" then
      local given = { inputs = inputs, infer = true, fixed = true }
      for key, value in pairs(mode.options) do given[key] = value end
      if mode.name == "full_int8" then given.calibration = tensors(stem .. ".calibration.safetensors", about.inputs) end
      local fine, made = pcall(ms.lite.convert, path, given)
      count(name .. " " .. mode.name, fine and compare(made.results, wanted, bound) or not fine and headline(made) or nil)
      if fine and options.c then
        local light = os.tmpname() .. ".lite"
        given.outputFile, given.infer = light, nil
        local built, results = pcall(function()
          ms.lite.convert(path, given)
          return results_of_c(light, inputs, wanted)
        end)
        os.remove(light)
        count(name .. " " .. mode.name .. " C", built and compare(results, wanted, bound) or not built and headline(results) or nil)
      end
    end
  end
end

-- Of the node tests: those whose inputs are tensors and whose results are floats.
local function run_node(name)
  local files = require "lunaria.onnx_files"
  local at = ("%s/node/%s/"):format(folder, name)
  local data = at .. "test_data_set_0/"
  local loads, f, _, about = pcall(ms.load, at .. "model.onnx")
  if not loads or type(f) ~= "function" then return "unreadable" end
  local inputs, wanted, floats = {}, {}, 0
  for i, one in ipairs(about.inputs) do
    local fine, value = pcall(files.read_value, ("%sinput_%d.pb"):format(data, i - 1), one.type)
    if not fine or not ms.is_tensor(value) then return "other" end
    inputs[i] = value
  end
  for i, one in ipairs(about.outputs) do
    local fine, value = pcall(files.read_value, ("%soutput_%d.pb"):format(data, i - 1), one.type)
    if not fine or not ms.is_tensor(value) then return "other" end
    wanted[i] = value
    if value.dtype == ms.float32 then floats = floats + 1 end
  end
  if floats == 0 or name:find "bernoulli" or name:find "training_dropout" then return "other" end
  local fine, made = pcall(ms.lite.convert, at .. "model.onnx", { inputs = inputs, fixed = true })
  if not fine then return "refused", headline(made) end
  fine, made = pcall(ms.lite.convert, at .. "model.onnx", { inputs = inputs, fixed = true, infer = true })
  if not fine then return "not run", headline(made) end
  local problem = compare(made.results, wanted, 1e-3)
  return problem and "wrong" or "right", problem
end

if options.node then
  local names, counts = {}, { right = 0, wrong = 0, refused = 0, ["not run"] = 0, other = 0, unreadable = 0 }
  for name in pairs(support.read_json(folder .. "/tolerances.json")) do
    if name:find(options.only) then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local outcome, message = run_node(name)
    counts[outcome] = counts[outcome] + 1
    if message and (outcome == "wrong" or options.verbose) then print(("%s %s: %s"):format(outcome, name, message)) end
  end
  local all = counts.right + counts.wrong + counts.refused + counts["not run"]
  print(("%d of %d float cases convert (%.1f %%); %d right, %d wrong, %d that the runtime does not run"):format(all - counts.refused,
    all, 100 * (all - counts.refused) / math.max(all, 1), counts.right, counts.wrong, counts["not run"]))
  os.exit(counts.wrong == 0 and 0 or 1, true)
end

for _, file in ipairs(ms.io.list_folder(folder) or error(folder .. " is no folder", 0)) do
  local name = file:match "^(.+)%.onnx$" or file:match "^(.+)%.mindir$"
  if name and name:find(options.only) then
    local fine, problem = pcall(run_model, folder .. "/" .. file, name)
    if not fine then count(name, headline(problem)) end
  end
end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and 0 or 1, true)
