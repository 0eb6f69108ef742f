-- Runs a conformance set and compares forward values, with --grads gradients too:
--   lunaria tests/conformance/ops.lua DIR [--prio P0,P1] [--api ops,mint] [--op NAME,...] [--grads] [--mode eager]
--     [--device CPU] [--rules FILE.lua] [--out FILE.safetensors] [--parts N] [--verbose]
-- In graph mode an operator and its gradient are compiled; a case fails when they never are. Layers and optimizers run as they
-- do in that mode. Cases of what does not exist yet are counted as waiting, by name. --out writes every output (and gradient)
-- under its key of the manifest, for an independent judge. --parts: one of so many parts of the cases, another each day.
-- --rules: what a device does otherwise, see ascend.lua. Prints failures by operator; the last line is "N passed, N failed".
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. here .. "../lua/?.lua;" .. package.path
local ms = require "lunaria"
local layers = require "layers"
local Cases = require "cases"
local support = require "support"
local today = require "support.today"

local usage = "usage: lunaria ops.lua DIR [--prio P0,P1,P2] [--api ops,mint] [--op NAMES] [--grads] [--mode eager] "
  .. "[--device CPU] [--left N] [--rules FILE] [--out FILE] [--parts N] [--verbose]"
local folder, options = support.options(usage, {
  prio = "", api = "", op = "", grads = true, mode = "eager", device = "CPU", left = "", rules = "", out = "", parts = "1",
  verbose = true,
})
if options.mode ~= "graph" and options.mode ~= "eager" then
  error("--mode must be eager or graph, got " .. options.mode, 0)
end
ms.set_context { device_target = options.device }
local rules = options.rules ~= "" and dofile(options.rules) or { of_largest = {} }

local cases = Cases.open(folder)

-- A call in the mode that was asked for.
local function call(f, ...)
  if options.mode == "graph" then return support.compiled(f, ...) end
  return f(...)
end
local function call_layer(f, ...)
  if options.mode == "graph" then return support.in_graph_mode(f, ...) end
  return f(...)
end

local function positions_of(keys)
  local positions = {}
  for i, key in ipairs(keys) do
    if key ~= ms.json.null then positions[#positions + 1] = i end
  end
  return positions
end

-- d(sum of <output, its cotangent>)/d(input), by position; a list of inputs has a list of gradients.
local function gradients_of(case, inputs)
  if layers.covers(case) then
    local cotangents, differentiated = {}, {}
    for _, i in ipairs(positions_of(case.cotangents)) do
      cotangents[i] = cases:stored(case, case.cotangents[i]):astype(case.out_dtypes[i])
    end
    for _, i in ipairs(positions_of(case.grads)) do differentiated[i] = true end
    return call_layer(layers.gradients, case, Cases.attributes(case), inputs, cotangents, differentiated)
  end
  local run, wanted, differentiated = Cases.caller(case), positions_of(case.cotangents), positions_of(case.grads)
  local function forward(...)
    local values = {}
    for i = 1, #case.inputs do values[i] = inputs[i] end
    for k, position in ipairs(differentiated) do values[position] = (select(k, ...)) end
    local results = Cases.collect(case, run(table.unpack(values, 1, #case.inputs)))
    local chosen = {}
    for k, position in ipairs(wanted) do chosen[k] = results[position] end
    return table.unpack(chosen, 1, #wanted)
  end
  local start, cotangents = {}, {}
  for k, position in ipairs(differentiated) do start[k] = inputs[position] end
  for k, position in ipairs(wanted) do
    cotangents[k] = cases:stored(case, case.cotangents[position]):cast(ms[case.out_dtypes[position]])
  end
  local function gradients(...)
    local _, pull = ms.vjp(forward, ...)
    return pull(table.unpack(cotangents, 1, #cotangents))
  end
  local found, by_position = table.pack(call(gradients, table.unpack(start, 1, #start))), {}
  for k, position in ipairs(differentiated) do by_position[position] = found[k] end
  return by_position
end

-- Whether a result is what is expected, by the tolerances of the case and of the device.
local function difference(case, got, expected, dtype, rtol, atol)
  local part = rules.of_largest[case.op]
  if part and expected.size > 0 and dtype:find("float", 1, true) then
    atol = math.max(atol, part * ms.ops.amax(ms.ops.abs(expected:to "CPU"):astype(ms.float64)):item())
  end
  return support.difference(got, expected, dtype, rtol, atol, rules.saturates)
end

-- What is wrong with the factors of a decomposition, which are not unique.
local properties = {}
local function near(a, b, tolerance, what)
  local x, y = support.elements(a), support.elements(b)
  if #x ~= #y then return what .. " has " .. #x .. " elements, expected " .. #y end
  for i = 1, #x do
    if not (math.abs(x[i] - y[i]) <= tolerance) then return what .. " is off by " .. math.abs(x[i] - y[i]) end
  end
end
function properties.qr(x, q, r)
  local o = ms.ops
  return near(o.matmul(q, r), x, 1e-4, "q r") or near(o.matmul(q.T, q), o.eye(q.shape[2]), 1e-4, "q^T q")
    or near(o.tril(r, -1), o.zeros_like(r), 1e-5, "the lower half of r")
end
function properties.svd(x, s, u, v)
  local o = ms.ops
  return near(o.matmul(u * s, v.T), x, 1e-4, "u s v^T") or near(o.matmul(u.T, u), o.eye(u.shape[2]), 1e-4, "u^T u")
    or near(o.matmul(v.T, v), o.eye(v.shape[2]), 1e-4, "v^T v")
end

local outputs = {}
local function judge_values(case, inputs)
  local results
  if layers.covers(case) then
    results = call_layer(layers.values, case, Cases.attributes(case), inputs)
  else
    results = Cases.collect(case, call(Cases.caller(case), table.unpack(inputs, 1, #case.inputs)))
  end
  for i, key in ipairs(case.outputs) do
    local value = results[i]
    if value == nil then return "result " .. i .. " is missing" end
    if type(value) == "table" then value = ms.tensor(value) end
    if not ms.is_tensor(value) then value = ms.tensor(value) end
    -- Complex numbers are stored as pairs of real ones.
    if value.dtype == ms.complex64 then value = ms.ops.view_as_real(value) end
    outputs[key] = value
  end
  local property = case.property and properties[case.op]
  if property then
    -- Judged by products of the host.
    for i = 1, #case.outputs do results[i] = results[i]:to "CPU" end
    return property(inputs[1]:to "CPU", table.unpack(results, 1, #case.outputs))
  end
  for i, key in ipairs(case.outputs) do
    local dtype = case.out_dtypes[i] == "complex64" and "float32" or case.out_dtypes[i]
    local wrong = difference(case, outputs[key], cases:stored(case, key), dtype, case.rtol, case.atol)
    if wrong then return "output " .. i .. ": " .. wrong end
  end
end

-- A gradient has the dtype of its input, and no more digits.
local digits = { float16 = 2 ^ -11, bfloat16 = 2 ^ -8 }
local function judge_gradient(case, key, gradient, input)
  if not ms.is_tensor(gradient) then return "is " .. tostring(gradient) end
  outputs[key] = gradient
  local dtype = tostring(input.dtype):lower()
  local rtol = math.max(case.grad_rtol, digits[dtype] or 0)
  return difference(case, gradient, cases:stored(case, key), dtype, rtol, case.grad_atol)
end

local function judge_gradients(case, inputs)
  local gradients = gradients_of(case, inputs)
  for i, key in ipairs(case.grads) do
    if type(key) == "table" then
      for k, item in ipairs(key) do
        local wrong = judge_gradient(case, item, gradients[i] and gradients[i][k], inputs[i][k])
        if wrong then return ("gradient %d[%d]: %s"):format(i, k, wrong) end
      end
    elseif key ~= ms.json.null then
      local wrong = judge_gradient(case, key, gradients[i], inputs[i])
      if wrong then return ("gradient %d: %s"):format(i, wrong) end
    end
  end
end

local function judge(case)
  local inputs = {}
  for i = 1, #case.inputs do inputs[i] = cases:input(case, i) end
  local wrong = judge_values(case, inputs)
  if wrong or not options.grads or not ms.vjp or case.grads == ms.json.null or case.property then return wrong end
  return judge_gradients(case, inputs)
end

local has_prio, has_api, has_op = support.filter(options.prio), support.filter(options.api), support.filter(options.op)
local passed, failed, waiting = 0, 0, support.waiting_list()
local by_op, order = {}, {}
for number, case in ipairs(cases.list) do
  if today.has(number, tonumber(options.parts)) and has_prio(case.priority) and has_api(case.api) and has_op(case.op) then
    local missing = layers.covers(case) and layers.missing(case)
    local ran, wrong = true, nil
    if not missing then ran, wrong = pcall(judge, case) end
    local op = case.api .. "." .. case.op
    local entry = by_op[op]
    if not entry then
      entry = { passed = 0, failures = {} }
      by_op[op] = entry
      order[#order + 1] = op
    end
    if missing then
      waiting:add(missing)
    elseif ran and not wrong and options.grads and case.grads ~= ms.json.null and not ms.vjp then
      waiting:add("ms.vjp")
    elseif ran and not wrong then
      passed = passed + 1
      entry.passed = entry.passed + 1
    else
      failed = failed + 1
      entry.failures[#entry.failures + 1] = case.id .. ": " .. support.headline(wrong)
    end
  end
end

table.sort(order)
for _, op in ipairs(order) do
  local entry = by_op[op]
  if #entry.failures > 0 then
    print(("%s: %d of %d failed"):format(op, #entry.failures, #entry.failures + entry.passed))
    for i, failure in ipairs(entry.failures) do
      if i <= 3 or options.verbose then print("  " .. failure) end
    end
  end
end
if options.out ~= "" then ms.save(options.out, outputs) end
waiting:print()
-- How many operators the device leaves to the host may be limited, so that it cannot rise.
if options.left ~= "" then
  local names = {}
  for _, entry in ipairs(ms.runtime.fallbacks()) do names[#names + 1] = entry.operator end
  table.sort(names)
  print(("%d operators were left to the host: %s"):format(#names, table.concat(names, " ")))
  if #names > tonumber(options.left) then
    failed = failed + 1
    print(("at most %s may be"):format(options.left))
  end
end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and 0 or 1, true)
