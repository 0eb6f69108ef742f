-- Random networks (programs/network.lua): outputs, losses, gradients and some steps of training are the same eagerly, compiled,
-- in graph mode, saved and loaded, and on the device Separate.
--   lunaria tests/lua/random_networks_test.lua [SEED [COUNT [ONLY]]] [--write FOLDER]
-- Values are the same to the bit; but for rounding on Separate, whose convolutions are not oneDNN's, and where a compiled program
-- joins the products of the steps of a recurrent layer.
-- --write leaves what each network is and gives in FOLDER, for tests/peers/networks_test.py, which asks PyTorch.
-- Eager mode only: what it compares is compiled here as well.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local Network = require "programs.network"
local nn, ops = ms.nn, ms.ops

local numbers, folder = {}, nil
local at = 1
while arg[at] do
  if arg[at] == "--write" then
    at = at + 1
    folder = arg[at]
  else
    numbers[#numbers + 1] = math.tointeger(tonumber(arg[at])) or error("not a number: " .. arg[at], 0)
  end
  at = at + 1
end
local seed, count, only = numbers[1] or 1, numbers[2] or 20, numbers[3]
local STEPS = 4

-- Beside the largest element; single precision through some ten layers, a few steps, and norms of few samples.
local ROUNDING, LEAST = 1e-3, 1e-4

local function same(a, b, rounding)
  if a.dtype ~= b.dtype or tostring(a.shape) ~= tostring(b.shape) then return false end
  local x, y = a:to("CPU"):reshape(-1):tolist(), b:to("CPU"):reshape(-1):tolist()
  local largest = LEAST / ROUNDING
  for i = 1, #y do largest = math.max(largest, math.abs(y[i])) end
  for i = 1, #y do
    local near = rounding and math.abs(x[i] - y[i]) <= ROUNDING * largest
    if not near and x[i] ~= y[i] and (x[i] == x[i] or y[i] == y[i]) then
      return false, ("element %d is %.9g, eagerly %.9g"):format(i - 1, x[i], y[i])
    end
  end
  return true
end

-- Outputs, loss and gradients by input and parameters, in each of some steps of plain descent.
local function train(spec, wrap, place)
  local net = Network.cell(spec)
  if place then net:to(place) end
  local parameters = net:trainable_params()
  local x, y = Network.inputs(spec)
  if place then x, y = x:to(place), y:to(place) end
  local step = wrap(ms.value_and_grad(function(a)
    local out = net(a)
    return Network.loss(spec, out, y), out
  end, spec.kind ~= "tokens" and 0 or nil, parameters, true))
  local results = {}
  for n = 1, STEPS do
    local values, by_input, by_weights = step(x)
    if spec.kind == "tokens" then by_input, by_weights = nil, by_input end
    results[#results + 1] = { name = "loss", values[1]:copy() }
    results[#results + 1] = { name = "out", values[2]:copy() }
    if by_input then results[#results + 1] = { name = "gradient of x", by_input:copy() } end
    for k, p in ipairs(parameters) do
      results[#results + 1] = { name = ("gradient of parameter %d (%s)"):format(k, p.name), by_weights[k]:copy() }
    end
    for k, p in ipairs(parameters) do ops.assign(p, p - by_weights[k] * 0.05) end
    for _, r in ipairs(results) do r.step = r.step or n end
  end
  for k, p in ipairs(net:get_parameters()) do
    results[#results + 1] = { name = ("parameter %d (%s) at the end"):format(k, p.name), step = STEPS, p:copy() }
  end
  return results, net
end

local function in_graph_mode(f)
  return function(...)
    ms.set_context { mode = ms.GRAPH_MODE }
    local r = table.pack(pcall(f, ...))
    ms.set_context { mode = ms.PYNATIVE_MODE }
    if not r[1] then error(r[2], 0) end
    return table.unpack(r, 2, r.n)
  end
end

local function is_recurrent(layers)
  for _, l in ipairs(layers) do
    if l.op == "gru" or l.op == "lstm" or type(l.layers) == "table" and is_recurrent(l.layers) then return true end
  end
  return false
end

-- Where products round otherwise the first step is compared, since what later steps make of it may be anything.
local function difference(found, expected, rounding)
  for k, r in ipairs(expected) do
    if rounding and r.step > 1 then return end
    local alike, why = same(found[k][1], r[1], rounding)
    if not alike then return ("step %d, %s: %s"):format(r.step, r.name, why or "another dtype or shape") end
  end
end

local file = os.tmpname()
os.remove(file)

-- Nil, or in what a form differs.
local function judge(spec)
  local expected, net = train(spec, function(f) return f end)
  for _, form in ipairs {
    { "jit", function() return train(spec, ms.jit) end },
    { "graph mode", function() return train(spec, in_graph_mode) end },
    { "Separate", function() return train(spec, function(f) return f end, "Separate") end },
  } do
    local ran, found = pcall(form[2])
    if not ran then return form[1] .. ": " .. tostring(found) end
    local why = difference(found, expected, form[1] == "Separate" or is_recurrent(spec.layers))
    if why then return form[1] .. ": " .. why end
  end
  -- The trained network as a file, where its running values stand still.
  local x = Network.inputs(spec)
  net:set_train(false)
  ms.export(net, x, { file_name = file, file_format = "MINDIR" })
  local loaded = nn.GraphCell((ms.load(file .. ".mindir")))
  os.remove(file .. ".mindir")
  for _, shift in ipairs { 0, 0.4, 0 } do
    local other = Network.inputs(spec, shift)
    local alike, why = same(loaded(other), net(other), is_recurrent(spec.layers))
    if not alike then return "saved and loaded: " .. tostring(why) end
  end
  return nil, expected
end

local passed, failed = 0, 0
for index = only or 1, only or count do
  math.randomseed(seed, index)
  local spec = Network.new(math.random)
  if only then print(ms.json.encode(spec)) end
  local ran, why, results = pcall(judge, spec)
  if not ran or why then
    failed = failed + 1
    print(("FAIL seed %d, network %d: %s\n  %s"):format(seed, index, tostring(why), ms.json.encode(spec)))
  else
    passed = passed + 1
  end
  results = results or folder and train(spec, function(f) return f end)
  if folder and results then
    local tensors = {}
    for k, r in ipairs(results) do
      if r.step == 1 then tensors[("%03d %s"):format(k, r.name)] = r[1] end
    end
    local net = Network.cell(spec)
    for k, p in ipairs(net:get_parameters()) do tensors[("p%03d"):format(k)] = ops.identity(p) end
    tensors.x, tensors.y = Network.inputs(spec)
    ms.save_safetensors(("%s/%d.safetensors"):format(folder, index), tensors)
    local out = assert(io.open(("%s/%d.json"):format(folder, index), "w"))
    out:write(ms.json.encode(spec))
    out:close()
  end
end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and 0 or 1, true)
