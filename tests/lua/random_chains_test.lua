-- Random chains of operators, run eagerly, compiled, and saved and loaded: values, gradients and errors agree.
--   lunaria tests/lua/random_chains_test.lua [SEED [COUNT [ONLY]]] [--trace] [--rounding] [--two]
-- ONLY is the number of one chain, which is printed. Each compiled function is called until it is compiled, then with other
-- values of the same shapes and dtypes, which may raise where the first ones did not, and with the first ones again.
-- A chain that fails is made smaller as long as it fails in the same way, and printed as a program.
-- Values are the same to the bit; with --rounding, for devices that add up in another order, and where an operator is one that
-- compiled programs round otherwise (lunaria/help/bits.lua), as near as rounding brings them.
-- A quarter of the chains a day (support/today.lua).
-- --trace names each chain before it runs, for those that crash; --two makes chains of at most two operators.
-- Eager mode only: what it compares is compiled here as well.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local Chain = require "programs.chain"
local today = require "support.today"
local ops = ms.ops

local numbers, trace, rounds, most_steps = {}, false, false, 7
local inexact = {}
for _, row in ipairs(require "lunaria.help.bits") do
  for _, name in ipairs(row.graph or {}) do inexact[name] = true end
end
for _, word in ipairs(arg) do
  if word == "--trace" then
    trace = true
  elseif word == "--rounding" then
    rounds = true
  elseif word == "--two" then
    most_steps = 2
  else
    numbers[#numbers + 1] = math.tointeger(tonumber(word)) or error("not a number: " .. word, 0)
  end
end
local seed, count, only = numbers[1] or 1, numbers[2] or 500, numbers[3]
local CALLS = 4

local file = os.tmpname()
os.remove(file)
file = file .. ".mindir"

-- What a call gives: true and the results, or false and the message.
local function outcome(f, arguments)
  ms.set_seed(1)
  return table.pack(pcall(f, table.unpack(arguments, 1, arguments.n)))
end

local function elements(tensor)
  if tensor.dtype == ms.complex64 or tensor.dtype == ms.complex128 then tensor = ops.view_as_real(tensor) end
  local list = tensor:reshape(-1):tolist()
  for i, x in ipairs(list) do
    if type(x) == "boolean" then list[i] = x and 1 or 0 end
  end
  return list
end

-- Units in the last place of a result, beside its largest element: operators that are computed together, and sums in another
-- order, may round otherwise.
local ROUNDING = { float16 = 2 ^ -9, bfloat16 = 2 ^ -6, float32 = 2 ^ -19, float64 = 2 ^ -46, complex64 = 2 ^ -17, complex128 = 2 ^ -44 }

-- Beyond that a difference is one of rounding where the eager result changes as much when the inputs and what each step gives
-- do by one unit in the last place.
local BESIDE = 16
local TURNS = 8 -- in few of them the unit of an input and that of what is made of it can cancel each other every time
local UNIT = { float16 = 2 ^ -10, bfloat16 = 2 ^ -7, float32 = 2 ^ -23, float64 = 2 ^ -52 }

local function nudged(value, turn)
  local unit = ms.is_tensor(value) and UNIT[tostring(value.dtype):lower()]
  if not unit then return value end
  local signs = ops.sign(ops.sin(ops.arange(value.size) * (turn + 1) + turn)):reshape(value.shape)
  return value * (signs * unit + 1):astype(value.dtype)
end

-- Whether what was found is as near to the eager result as nudged values bring it. `make` gives the function of all results,
-- with what is to be done after each step.
local function is_rounding(make, arguments, found, expected)
  if not rounds or not found[1] or not expected[1] or found.n ~= expected.n then return false end
  local reach = {}
  for turn = 1, TURNS do
    local list = { n = arguments.n }
    for i = 1, arguments.n do list[i] = nudged(arguments[i], turn) end
    local f = make(function(value) return nudged(value, turn) end)
    ms.set_seed(1)
    local moved = table.pack(pcall(f, table.unpack(list, 1, list.n)))
    if not moved[1] or moved.n ~= expected.n then return false end
    reach[turn] = moved
  end
  local function near(x, y, others)
    if not ms.is_tensor(y) then return tostring(x) == tostring(y) end
    if x.dtype ~= y.dtype or tostring(x.shape) ~= tostring(y.shape) then return false end
    local a, b, moved = elements(x), elements(y), {}
    for turn, other in ipairs(others) do
      if not ms.is_tensor(other) or tostring(other.shape) ~= tostring(y.shape) then return false end
      moved[turn] = elements(other)
    end
    for i = 1, #b do
      if a[i] ~= b[i] and not (a[i] ~= a[i] and b[i] ~= b[i]) then
        local most = 0
        for _, list in ipairs(moved) do most = math.max(most, math.abs(list[i] - b[i])) end
        if not (math.abs(a[i] - b[i]) <= BESIDE * most) then return false end
      end
    end
    return true
  end
  for i = 2, expected.n do
    local x, y, others = found[i], expected[i], {}
    for turn = 1, TURNS do others[turn] = reach[turn][i] end
    if type(y) == "table" then
      for key, item in pairs(y) do
        local of_key = {}
        for turn = 1, TURNS do of_key[turn] = others[turn][key] end
        if type(item) == "table" or not near(x[key], item, of_key) then return false end
      end
    elseif not near(x, y, others) then
      return false
    end
  end
  return true
end

-- What the largest element counts as at least: the cotangents that come into a gradient are up to one.
local least_scale = 0

local function tensors_differ(a, b)
  if a.dtype ~= b.dtype then return ("dtype %s, eagerly %s"):format(a.dtype, b.dtype) end
  if tostring(a.shape) ~= tostring(b.shape) then return ("shape %s, eagerly %s"):format(a.shape, b.shape) end
  local rounding = ROUNDING[tostring(a.dtype):lower()]
  local x, y = elements(a), elements(b)
  local largest = least_scale
  for i = 1, #y do
    if math.abs(y[i]) > largest and math.abs(y[i]) < math.huge then largest = math.abs(y[i]) end
  end
  for i = 1, #y do
    local same = x[i] == y[i] and (x[i] ~= 0 or 1 / x[i] == 1 / y[i]) or (x[i] ~= x[i] and y[i] ~= y[i])
    if not same and not (rounds and rounding and math.abs(x[i] - y[i]) <= rounding * largest) then
      return ("element %d is %.17g, eagerly %.17g"):format(i - 1, x[i], y[i])
    end
  end
end

local function differ(a, b)
  if ms.is_tensor(a) and ms.is_tensor(b) then return tensors_differ(a, b) end
  if type(a) == "table" and type(b) == "table" then
    for key, item in pairs(b) do
      local wrong = differ(a[key], item)
      if wrong then return wrong end
    end
    return #a ~= #b and "another length" or nil
  end
  if tostring(a) ~= tostring(b) then return ("%s, eagerly %s"):format(a, b) end
end

-- Nil, or how the outcomes differ.
local function outcomes_differ(found, expected)
  if found[1] ~= expected[1] then
    return ("%s, eagerly %s"):format(found[1] and "no error" or "error " .. tostring(found[2]),
      expected[1] and "none" or tostring(expected[2]))
  end
  if not found[1] then
    return tostring(found[2]) ~= tostring(expected[2]) and ("error %s, eagerly %s"):format(found[2], expected[2]) or nil
  end
  if found.n ~= expected.n then return ("%d results, eagerly %d"):format(found.n - 1, expected.n - 1) end
  for i = 2, expected.n do
    local wrong = differ(found[i], expected[i])
    if wrong then return ("result %d: %s"):format(i - 1, wrong) end
  end
end

local function arguments_of(chain, key)
  local list = { n = #chain.inputs }
  for i, input in ipairs(chain.inputs) do list[i] = input[key] end
  return list
end

-- Compares a compiled function with the plain one: nil, or what is wrong.
local function compiled_differs(make, chain, what)
  local plain = make()
  local compiled = ms.jit(plain)
  local wanted = {}
  local function call(key, round)
    wanted[key] = wanted[key] or outcome(plain, arguments_of(chain, key))
    local found = outcome(compiled, arguments_of(chain, key))
    local wrong = outcomes_differ(found, wanted[key])
    if not wrong or is_rounding(make, arguments_of(chain, key), found, wanted[key]) then return nil end
    return ("%s, %s: %s"):format(what, round, wrong)
  end
  for round = 1, CALLS do
    local wrong = call("value", "call " .. round)
    if wrong then return wrong end
  end
  local report = ms.jit_report(compiled)
  if wanted.value[1] and report.compiled_calls == 0 then
    return ("%s is not compiled: %s"):format(what, report.eager or tostring(report))
  end
  return call("other", "other values") or call("value", "the first values again")
end

-- The derivative of the weighted sum of all float results by the float inputs; nil where there are none of either.
local function gradient_of(f, chain)
  local positions = {}
  for i, input in ipairs(chain.inputs) do
    if ms.is_tensor(input.value) and tostring(input.value.dtype):find("Float", 1, true) then positions[#positions + 1] = i - 1 end
  end
  if #positions == 0 then return nil end
  return ms.grad(function(...)
    local results = table.pack(f(...))
    local sum = ops.zeros({}, ms.float64)
    for i = 1, results.n do
      local y = results[i]
      if ms.is_tensor(y) and (y.dtype == ms.float32 or y.dtype == ms.float64 or y.dtype == ms.float16 or y.dtype == ms.bfloat16) then
        local weights = ops.cos(ops.arange(y.size)):astype(ms.float64)
        sum = sum + ops.sum(y:reshape(-1):astype(ms.float64) * weights)
      end
    end
    return sum
  end, positions)
end

local saved, refused, reasons = 0, 0, {}

-- Numbers are not saved: they are constants of what is.
local function saved_differs(make, chain)
  if chain.random then return nil end
  local f = make()
  local expected = outcome(f, arguments_of(chain, "value"))
  if not expected[1] then return nil end
  local tensors = { n = 0 }
  for _, input in ipairs(chain.inputs) do
    if ms.is_tensor(input.value) then
      tensors.n = tensors.n + 1
      tensors[tensors.n] = input.value
    end
  end
  local function of_tensors(...)
    local given, at = { ... }, 0
    local list = {}
    for i, input in ipairs(chain.inputs) do
      if ms.is_tensor(input.value) then
        at = at + 1
        list[i] = given[at]
      else
        list[i] = input.value
      end
    end
    return f(table.unpack(list, 1, #chain.inputs))
  end
  local exported, message = pcall(function()
    local list = { table.unpack(tensors, 1, tensors.n) }
    list[#list + 1] = { file_name = file }
    ms.export(of_tensors, table.unpack(list))
  end)
  if not exported then
    refused = refused + 1
    local reason = tostring(message):match "^[^\n]*":gsub("%d+", "N")
    reasons[reason] = (reasons[reason] or 0) + 1
    return nil
  end
  saved = saved + 1
  local loaded = ms.load(file)
  local found = outcome(loaded, tensors)
  local wrong = outcomes_differ(found, expected)
  if not wrong or is_rounding(make, arguments_of(chain, "value"), found, expected) then return nil end
  return "saved and loaded: " .. wrong
end

-- Nil, or what is wrong: a kind ("value", "gradient", "saved") and the details.
local function judge_as(chain)
  local function make(after) return Chain.compile(chain, after) end
  local wrong = compiled_differs(make, chain, "compiled")
  if wrong then return "value", wrong end
  local function make_gradient(after) return gradient_of(make(after), chain) end
  if make_gradient() then
    least_scale = 1
    wrong = compiled_differs(make_gradient, chain, "compiled gradient")
    least_scale = 0
    if wrong then return "gradient", wrong end
  end
  wrong = saved_differs(make, chain)
  if wrong then return "saved", wrong end
end

local function judge(chain)
  local strict = not rounds
  for _, step in ipairs(chain.steps) do
    for name in step.text:gmatch "[.:]([%l_%d]+)%s*[({]" do rounds = rounds or inexact[name] end
  end
  local kind, wrong = judge_as(chain)
  rounds = not strict
  return kind, wrong
end

local function shrink(chain, kind)
  local tries, again = 0, true
  while again and tries < 300 do
    again = false
    for _, smaller in ipairs(Chain.simpler(chain)) do
      tries = tries + 1
      local fine, verdict = pcall(judge, smaller)
      if fine and verdict == kind then
        chain, again = smaller, true
        break
      end
    end
  end
  return chain
end

local passed, failed, raising = 0, 0, 0
local names = {}
local done = 0
for index in today.numbers(only or 1, only or count, only and 1 or 4) do
  done = done + 1
  if trace then io.stderr:write("chain ", index, "\n") end
  local chain = Chain.make(seed * 1000003 + index, most_steps)
  if only then print(Chain.program(chain)) end
  local kind = judge(chain)
  raising = raising + (chain.raises and 1 or 0)
  for _, step in ipairs(chain.steps) do
    for name in step.text:gmatch "[.:]([%l_%d]+)%s*[({]" do names[name] = true end
  end
  if not kind then
    passed = passed + 1
  else
    local small = shrink(chain, kind)
    failed = failed + 1
    print(("FAIL seed %d, chain %d: %s"):format(seed, index, (select(2, judge(small)))))
    print(failed <= 5 and Chain.program(small) or Chain.source(small))
  end
end
os.remove(file)

local different = 0
for _ in pairs(names) do different = different + 1 end
print(("%d chains with %d operators; %d raise, %d were saved, %d cannot be"):format(done, different, raising,
  saved, refused))
if trace then
  for reason, n in pairs(reasons) do print(n, reason) end
end
-- A generator that writes little that can be judged proves nothing.
if not only and count >= 100 and (saved < done * (today.whole and 0.3 or 0.2) or raising > done * (today.whole and 0.3 or 0.4)) then
  failed = failed + 1
  print("FAIL too few chains run or are saved")
end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and 0 or 1, true)
