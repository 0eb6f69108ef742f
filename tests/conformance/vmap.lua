-- Runs a conformance set through ms.vmap: a call for a whole batch must give what a loop over the batch gives.
--   lunaria tests/conformance/vmap.lua DIR [--prio P0,P1] [--op NAME,...] [--grads] [--graph] [--verbose]
-- The batch has three inputs: the case's own and, where the elements are floats, two that are scaled. With --grads the
-- gradients of the sum of the first result are mapped too, and the mapped function is differentiated. Batches lie along
-- axis 0 or along the last. With --graph all of that is compiled, and fails when it never is: a quarter of the cases
-- a day (tests/lua/support/today.lua). The last line is "N passed, N failed".
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path
local ms = require "lunaria"
local Cases = require "cases"
local support = require "support"

local usage = "usage: lunaria vmap.lua DIR [--prio P0,P1,P2] [--op NAMES] [--grads] [--graph] [--verbose]"
local folder, options = support.options(usage, { prio = "", op = "", grads = true, graph = true, verbose = true })
local cases = Cases.open(folder)
local BATCH = 3

local function is_float(x) return tostring(x.dtype):find("Float", 1, true) ~= nil end

-- The inputs as a flat list of tensors, and the call as a function of these.
local function flat_call(case)
  local flat, places = {}, {}
  for i = 1, #case.inputs do
    local input = cases:input(case, i)
    if ms.is_tensor(input) then
      flat[#flat + 1] = input
      places[i] = #flat
    elseif type(input) == "table" then
      places[i] = {}
      for k, item in ipairs(input) do
        flat[#flat + 1] = item
        places[i][k] = #flat
      end
    else
      places[i] = { constant = input }
    end
  end
  local run = Cases.caller(case)
  return flat, function(...)
    local given, arguments = { ... }, {}
    for i = 1, #case.inputs do
      local place = places[i]
      if type(place) == "number" then
        arguments[i] = given[place]
      elseif #place > 0 then
        local list = {}
        for k, at in ipairs(place) do list[k] = given[at] end
        arguments[i] = list
      else
        arguments[i] = place.constant
      end
    end
    local results = Cases.collect(case, run(table.unpack(arguments, 1, #case.inputs)))
    return table.unpack(results, 1, #case.outputs)
  end
end

-- samples[b] is the list of inputs of sample b; batched has one tensor per input with the batch along axes[i].
local function make_batch(flat, at_end)
  local samples, batched, axes = {}, {}, {}
  for b = 1, BATCH do samples[b] = {} end
  for i, tensor in ipairs(flat) do
    local list = {}
    for b = 1, BATCH do
      local scaled = b > 1 and is_float(tensor) and (tensor * (1.25 - 0.25 * b)):cast(tensor.dtype) or tensor
      list[b], samples[b][i] = scaled, scaled
    end
    axes[i] = at_end and -1 or 0
    batched[i] = ms.ops.stack(list, axes[i])
  end
  return samples, batched, axes
end

-- `map(f, axes)` gives the function for the batch.
local function compare(case, f, flat, at_end, what, map)
  local samples, batched, axes = make_batch(flat, at_end)
  local whole = (map or ms.vmap)(f, axes)
  if options.graph then
    local plain = whole
    whole = function(...) return support.compiled(plain, ...) end
  end
  local mapped = table.pack(whole(table.unpack(batched)))
  for b = 1, BATCH do
    local single = table.pack(f(table.unpack(samples[b])))
    if single.n ~= mapped.n then return ("%s: %d results, a call alone gives %d"):format(what, mapped.n, single.n) end
    for k = 1, single.n do
      local got, expected = mapped[k], single[k]
      if expected ~= nil then
        if not ms.is_tensor(expected) then expected = ms.tensor(expected) end
        local dtype = tostring(expected.dtype):lower()
        local half = dtype == "float16" or dtype == "bfloat16"
        got = got[b - 1]
        if expected.dtype == ms.complex64 then
          got, expected, dtype = ms.ops.view_as_real(got), ms.ops.view_as_real(expected), "float32"
        end
        local wrong = support.difference(got, expected, dtype, half and 2e-2 or math.max(case.rtol, 1e-5),
          half and 2e-2 or math.max(case.atol, 1e-5))
        if wrong then return ("%s: sample %d, result %d: %s"):format(what, b - 1, k, wrong) end
      end
    end
  end
end

local function judge(case)
  local flat, f = flat_call(case)
  if #flat == 0 then return nil, "nothing to map" end
  local wrong = compare(case, f, flat, false, "axis 0") or compare(case, f, flat, true, "last axis")
  if wrong or not options.grads or case.grads == ms.json.null or not is_float(flat[1]) then return wrong end
  local gradient = ms.grad(function(...)
    local first = f(...)
    return ms.ops.sum(first * first)
  end)
  return compare(case, gradient, flat, false, "gradient")
    or compare(case, gradient, flat, false, "gradient of the batch", function(_, axes)
      return ms.grad(function(...)
        local first = ms.vmap(f, axes)(...)
        return ms.ops.sum(first * first)
      end)
    end)
end

local today = dofile "tests/lua/support/today.lua"
local has_prio, has_op = support.filter(options.prio), support.filter(options.op)
local passed, failed, waiting = 0, 0, support.waiting_list()
local by_op, order = {}, {}
for number, case in ipairs(cases.list) do
  local is_of_today = not options.graph or today.has(number, 4)
  if is_of_today and case.api == "ops" and has_prio(case.priority) and has_op(case.op) and not case.property then
    if not ms.vmap or not ms.grad then
      waiting:add("ms.vmap")
    else
      local ran, wrong = pcall(judge, case)
      if ran and not wrong then
        passed = passed + 1
      else
        failed = failed + 1
        if not by_op[case.op] then
          by_op[case.op] = {}
          order[#order + 1] = case.op
        end
        table.insert(by_op[case.op], case.id .. ": " .. support.headline(wrong))
      end
    end
  end
end
table.sort(order)
for _, op in ipairs(order) do
  print(("%s: %d failed"):format(op, #by_op[op]))
  for i, failure in ipairs(by_op[op]) do
    if i <= 2 or options.verbose then print("  " .. failure) end
  end
end
waiting:print()
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and 0 or 1, true)
