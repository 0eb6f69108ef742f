-- Random programs, differentiated and checked against plain execution and finite differences:
--   lunaria tests/lua/random_programs_test.lua [SEED [COUNT [ONLY]]] [--graph] [--trace]
-- ONLY is the number of one program, which is printed. The value through ms.value_and_grad must be that of a plain call, with
-- what the program logs (integers, strings) equal to the letter, and the gradient along random directions that of central
-- differences at two step sizes; where these disagree, or where the slope to the right is another than that to the left (at
-- a kink central differences agree on the mean of the two), the point lies at a branch or a kink, and the program is left
-- out.
-- --graph compares compiled functions with plain ones instead: values, logs, errors and gradients at several points, which
-- lead through different branches of a program.
-- --trace names each program before it runs, for those that crash.
-- A quarter of the programs a day (support/today.lua).
-- Eager mode only: what it compares is compiled here as well.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local ops = ms.ops
local Maker = require "programs.program"
local today = require "support.today"

local numbers, trace, graph = {}, false, false
for _, word in ipairs(arg) do
  if word == "--trace" then
    trace = true
  elseif word == "--graph" then
    graph = true
  else
    numbers[#numbers + 1] = math.tointeger(tonumber(word)) or error("not a number: " .. word, 0)
  end
end
local seed, count, only = numbers[1] or 1, numbers[2] or 2500, numbers[3]

local STEP, DIRECTIONS = 1e-4, 2

local function number(value) return type(value) == "number" and value or value:item() end

-- The inputs at start + step * direction, in the form that the program takes.
local function inputs_at(case, direction, step)
  local parts = {}
  for k = 1, 2 do
    local values = {}
    for i, value in ipairs(case.start[k]) do values[i] = value + (direction and step * direction[k][i] or 0) end
    parts[k] = case.tensors and ms.tensor(values, ms.float64) or values[1]
  end
  if case.takes_table then return { x = parts[1], list = { parts[2] } } end
  return parts[1], parts[2]
end

-- A plain call. A program from which the shrinker took a statement need not end.
local function call(f, case, direction, step)
  debug.sethook(function() error("too long", 0) end, "", 2000000)
  local ran, value, log = pcall(f, inputs_at(case, direction, step))
  debug.sethook()
  if not ran then error(value, 0) end
  return number(value), log
end

-- The derivative along a direction; nil when it does not exist or is too uncertain. `middle` is the value at the point.
local function difference(f, case, direction, log, middle)
  local slopes, bends = {}, {}
  for k, step in ipairs { STEP, STEP / 2 } do
    local high, log_high = call(f, case, direction, step)
    local low, log_low = call(f, case, direction, -step)
    if log_high ~= log or log_low ~= log then return nil end
    slopes[k] = (high - low) / (2 * step)
    bends[k] = ((high - middle) - (middle - low)) / step
  end
  local scale = math.max(1, math.abs(slopes[2]))
  if not (math.abs(slopes[1] - slopes[2]) <= 2e-5 * scale) then return nil end
  -- The slopes to both sides differ by the step times the second derivative, half as much at half the step; what is left
  -- of the difference when the step goes to zero is a kink.
  if not (math.abs(2 * bends[2] - bends[1]) <= 1e-6 * math.max(scale, math.abs(middle))) then return nil end
  -- The next order cancels.
  return (4 * slopes[2] - slopes[1]) / 3, 2e-6 * scale + 0.02 * math.abs(slopes[1] - slopes[2])
end

local function elements(value)
  if type(value) == "number" then return { value } end
  return value:tolist()
end

local function along(gradient, direction)
  local sum = 0
  for k = 1, 2 do
    for i, slope in ipairs(elements(gradient[k])) do sum = sum + slope * direction[k][i] end
  end
  return sum
end

-- A program from which the shrinker took a declaration assigns globals, which the next must not see.
local known = {}
for key in pairs(_G) do known[key] = true end
local function forget_globals()
  for key in pairs(_G) do
    if not known[key] then _G[key] = nil end
  end
end

-- "pass", "skip" (with the reason), "waiting", or what failed ("error", "value", "gradient") with details.
local judge
function judge(program, case)
  local source = Maker.render(program)
  forget_globals()
  local chunk, message = load(source, "=program")
  if not chunk then return "invalid", message end
  local loaded, f = pcall(chunk)
  if not loaded then return "invalid", f end
  local ran, value, log = pcall(call, f, case)
  if not ran then return "skip", "plain execution: " .. tostring(value) end
  if not (math.abs(value) < 1e3) then return "skip", "too large" end
  local slopes, directions, tolerances = {}, case.directions, {}
  for k, direction in ipairs(directions) do
    local fine, slope, tolerance = pcall(difference, f, case, direction, log, value)
    if not fine or not slope then return "skip", "no derivative " .. tostring(slope) end
    slopes[k], tolerances[k] = slope, tolerance
  end
  if not ms.value_and_grad then return "waiting" end
  local differentiated, out, gradient = pcall(function()
    return ms.value_and_grad(f, case.takes_table and 0 or { 0, 1 }, nil, true)(inputs_at(case))
  end)
  if not differentiated then return "error", tostring(out) end
  if case.takes_table then gradient = { gradient.x, gradient.list[1] } end
  local got = number(out[1])
  if not (math.abs(got - value) <= 1e-12 * math.max(1, math.abs(value))) then
    return "value", ("value %.17g, plain execution gives %.17g"):format(got, value)
  end
  if out[2] ~= log then return "value", ("logged %q, plain execution logs %q"):format(tostring(out[2]), log) end
  for k, direction in ipairs(directions) do
    local slope = along(gradient, direction)
    if not (math.abs(slope - slopes[k]) <= tolerances[k]) then
      return "gradient", ("slope %.12g, finite differences give %.12g"):format(slope, slopes[k])
    end
  end
  local again = call(f, case)
  if again ~= value then return "value", ("a plain call afterwards gives %.17g, before %.17g"):format(again, value) end
  return "pass"
end

-- "pass" when the compiled function does what the plain one does wherever it is called.
local left_to_lua, why_left, short = 0, {}, 0
-- Compiled operators may round otherwise; what is an integer or a word is the same to the letter.
local function same_text(found, expected)
  if found == expected then return true end
  local words = expected:gmatch "%S+"
  for word in found:gmatch "%S+" do
    local other = words()
    if word ~= other then
      local a, b = tonumber(word), tonumber(other)
      if math.type(a) ~= "float" or math.type(b) == nil then return false end
      if not (math.abs(a - b) <= 1e-9 * math.max(1, math.abs(b))) then return false end
    end
  end
  return words() == nil
end

local function judge_graph(program, case)
  local source = Maker.render(program)
  local function build()
    forget_globals()
    local chunk = load(source, "=program")
    return chunk and chunk()
  end
  local function show(ran, value, log)
    if not ran then return "error " .. tostring(value) end
    return ("%.17g %s"):format(number(value), tostring(log))
  end
  local function gradient_of(f)
    local g = ms.value_and_grad(f, case.takes_table and 0 or { 0, 1 }, nil, true)
    return function(...)
      local out, gradient = g(...)
      local parts = case.takes_table and { gradient.x, gradient.list[1] } or gradient
      local text = {}
      for k = 1, 2 do
        for _, slope in ipairs(elements(parts[k])) do text[#text + 1] = ("%.17g"):format(slope) end
      end
      return out[1], tostring(out[2]) .. " " .. table.concat(text, " ")
    end
  end
  local ran, plain = pcall(build)
  if not ran or not plain then return "invalid", plain end
  local fine, value = pcall(call, plain, case)
  if not fine or not (math.abs(value) < 1e3) then return "skip", tostring(value) end
  -- A record that ends early ends anywhere: within an operator, with tables half filled.
  short = short % 251 + 37
  for way, wrap in ipairs { function(f) return f end, gradient_of, function(f) return f end, gradient_of } do
    local eager, compiled = wrap(build()), ms.jit(wrap(build()), way > 2 and { max_steps = short } or {})
    for round = 1, 2 do
      for k, step in ipairs { 0, 0.7, -0.9, 2.1, 0 } do
        local direction = step ~= 0 and case.directions[k % 2 + 1] or nil
        local expected = show(pcall(eager, inputs_at(case, direction, step)))
        local found = show(pcall(compiled, inputs_at(case, direction, step)))
        if not same_text(found, expected) then
          return "value", ("call %d of round %d: %s, plainly %s"):format(k, round, found, expected)
        end
      end
    end
    compiled:ir() -- which raises an error where the record is no sound graph
    local reason = ms.jit_report(compiled).eager
    if reason and way <= 2 then
      left_to_lua = left_to_lua + 1
      reason = reason:gsub("^program:%d+: ", "")
      why_left[reason] = (why_left[reason] or 0) + 1
    end
  end
  return "pass"
end
if graph then judge = judge_graph end

-- Constructs whose gradients a transform may not know yet: each has the least program that uses it, and its slope at 2.
-- Programs are written without those that are missing.
local probes = {
  ["to-be-closed variables"] = { "close", 2, function(x)
    local y = x
    do
      local _ <close> = setmetatable({}, { __close = function() y = y + x end })
    end
    return y
  end },
  ["index assignment"] = { "index_assign", 2, function(x)
    local y = ops.stack({ x * ms.tensor(1.0, ms.float64), x * ms.tensor(1.0, ms.float64) })
    y[0] = y[1] * 2
    return (y[0]):item()
  end },
  ["writes in place"] = { "in_place", 3, function(x)
    local y = x * ms.tensor(1.0, ms.float64)
    local z = y
    y:add_(x):mul_(0.75)
    return z:item() * 2
  end },
  ["values that error carries"] = { "raised", 1, function(x)
    local _, e = pcall(function() error({ value = x }) end)
    return e.value
  end },
}
local missing = {}
local function find_missing()
  local names = {}
  for name, probe in pairs(probes) do
    local ran, slope = pcall(function() return ms.grad(probe[3])(2.0) end)
    if not ran or slope ~= probe[2] then
      missing[probe[1]] = true
      names[#names + 1] = name
    end
  end
  table.sort(names)
  if #names > 0 then print("waiting for gradients of: " .. table.concat(names, ", ")) end
end
if ms.grad then find_missing() end

local function make_case(index)
  local maker = Maker.new(seed * 1000003 + index, { tensors = index % 3 == 0, nested = index % 8 == 1, without = missing })
  local case = { tensors = maker.tensors, takes_table = index % 5 == 2, start = {}, directions = {} }
  local function draw() return (maker:between(-1500, 1500) + 0.37) / 1000 end
  local size = maker.tensors and 3 or 1
  for k = 1, 2 do
    case.start[k] = {}
    for i = 1, size do case.start[k][i] = draw() end
  end
  for d = 1, DIRECTIONS do
    case.directions[d] = { {}, {} }
    for k = 1, 2 do
      for i = 1, size do case.directions[d][k][i] = draw() end
    end
  end
  return maker:program(case.takes_table), case
end

-- Shorter forms of a line: a call or a group in parentheses becomes what is inside, one of its operands, or a number.
local simpler
function simpler(line)
  local list = {}
  for start, name, group, finish in line:gmatch("()([%w_.:]*)(%b())()") do
    local inner = group:sub(2, -2)
    local candidates = { inner, "(" .. inner .. ")", "0.5" }
    for left, right in inner:gmatch("^(.-) [-+*/%%] (.+)$") do
      candidates[#candidates + 1] = "(" .. left .. ")"
      candidates[#candidates + 1] = "(" .. right .. ")"
    end
    for _, text in ipairs(candidates) do list[#list + 1] = line:sub(1, start - 1) .. text .. line:sub(finish) end
    -- What is inside the group, too.
    for _, text in ipairs(simpler(inner)) do
      list[#list + 1] = line:sub(1, start - 1) .. name .. "(" .. text .. ")" .. line:sub(finish)
    end
  end
  local left, right = line:match("^(.-return .-) %+ (.+)$")
  if left then
    list[#list + 1] = left .. ", table.concat(log, \" \")"
    list[#list + 1] = "return " .. right
  end
  return list
end

-- Leaves out statements, opens blocks and shortens expressions as long as the program fails in the same way.
local function shrink(program, case, verdict)
  local tries, most = 0, 3000
  local function still_fails()
    tries = tries + 1
    return tries < most and judge(program, case) == verdict
  end
  local function shorten(node, at)
    for _, line in ipairs(simpler(node[at])) do
      local before = node[at]
      if #line < #before then
        node[at] = line
        if still_fails() then return true end
        node[at] = before
      end
    end
  end
  local function visit(block)
    local changed, at = false, 1
    while at <= #block do
      local node = table.remove(block, at)
      if still_fails() then
        changed = true
      else
        table.insert(block, at, node)
        for k, part in ipairs(node) do
          if type(part) == "table" then
            changed = visit(part) or changed
          else
            while shorten(node, k) do changed = true end
          end
        end
        at = at + 1
      end
    end
    return changed
  end
  while visit(program) and tries < most do end
  return program
end

local tally, shown, reasons = { pass = 0, skip = 0, waiting = 0, failed = 0 }, 0, {}
local done = 0
for index in today.numbers(only or 1, only or count, only and 1 or 4) do
  done = done + 1
  if trace then io.stderr:write("program ", index, "\n") end
  local program, case = make_case(index)
  local source = Maker.render(program)
  if only then print(source) end
  local verdict, detail = judge(program, case)
  if tally[verdict] then
    tally[verdict] = tally[verdict] + 1
    if verdict == "skip" then reasons[#reasons + 1] = ("%d: %s"):format(index, detail) end
  else
    tally.failed = tally.failed + 1
    print(("FAIL seed %d, program %d: %s: %s"):format(seed, index, verdict, (tostring(detail):match("^[^\n]*"))))
    shown = shown + 1
    if shown <= 3 or only then
      local small = verdict == "invalid" and source or Maker.render(shrink(program, case, verdict))
      print(("  inputs %s\n%s"):format(ms.json.encode(case.start), small))
      print("  " .. tostring(select(2, judge(program, case))))
    end
  end
end
if only or trace then print(table.concat(reasons, "\n")) end
if tally.waiting > 0 then print(tally.waiting .. " waiting for: ms.value_and_grad") end
print(("%d programs left out: at a branch or a kink, or not runnable"):format(tally.skip))
-- A generator that writes little that can be judged proves nothing.
if graph then
  print(("%d functions were left to Lua"):format(left_to_lua))
  local list = {}
  for reason, n in pairs(why_left) do list[#list + 1] = ("%6d  %s"):format(n, reason) end
  table.sort(list, function(a, b) return a > b end)
  for i = 1, math.min(#list, 12) do print(list[i]) end
end
if not only and tally.skip > done * (today.whole and 0.12 or 0.2) then
  tally.failed = tally.failed + 1
  print("FAIL too many programs are left out")
end
print(("%d passed, %d failed"):format(tally.pass, tally.failed))
os.exit(tally.failed == 0 and 0 or 1, true)
