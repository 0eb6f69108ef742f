-- Whole random programs (programs/whole.lua) in every form: eagerly, by ms.jit, in graph mode, as the value of a
-- differentiated function, by ms.vmap, saved and loaded, on the device Separate; and in other processes with a cold and a warm
-- cache of kernels, one and two threads. The results are the same to the bit, errors to the letter.
--   lunaria tests/lua/random_forms_test.lua [SEED [COUNT [ONLY]]] [--trace] [--form NAME]
-- ONLY is the number of one program, which is printed; a program that fails is made smaller and printed.
-- --digests writes a line for each program instead, for the comparison with other processes.
-- Eager mode only: what it compares is compiled here as well.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local Whole = require "programs.whole"
local ops = ms.ops

local numbers, trace, digests, only_form = {}, false, false, nil
local at = 1
while arg[at] do
  local word = arg[at]
  if word == "--trace" then
    trace = true
  elseif word == "--digests" then
    digests = true
  elseif word == "--form" then
    at = at + 1
    only_form = arg[at]
  else
    numbers[#numbers + 1] = math.tointeger(tonumber(word)) or error("not a number: " .. word, 0)
  end
  at = at + 1
end
local seed, count, only = numbers[1] or 1, numbers[2] or 500, numbers[3]

-- A program in which a loop goes on for too long is left out.
local STEPS = 4000000

-- In texts a tensor is a number, the same for all of its dtype, shape and bits, where every NaN is the same one: to write out
-- and to compare elements would take most of the time.
local number_of, written = {}, {}

local function bits_of(tensor)
  local x = tensor:to("CPU"):copy()
  if x:is_floating_point() then x = ops.where(ops.isnan(x), 0 / 0, x) end
  local bits = ("%s(%s) %s"):format(x.dtype, table.concat(x.shape, ","), x:get_bytes())
  if not number_of[bits] then
    written[#written + 1] = { tensor = x, bits = bits }
    number_of[bits] = #written
  end
  return ("tensor %d"):format(number_of[bits])
end

-- A text with what f says of its tensors.
local function with_tensors(text, f)
  return (text:gsub("tensor (%d+)", function(number)
    local known = written[tonumber(number)]
    return known and f(known)
  end))
end

local function elements(known)
  local list = known.tensor:reshape(-1):tolist()
  for j, value in ipairs(list) do
    list[j] = value ~= value and "nan" or math.type(value) == "float" and ("%a"):format(value) or tostring(value)
  end
  return ("%s(%s) %s"):format(known.tensor.dtype, table.concat(known.tensor.shape, ","), table.concat(list, " "))
end

local function text_of(value)
  if ms.is_tensor(value) then return bits_of(value) end
  if math.type(value) == "float" then return value ~= value and "nan" or ("%a"):format(value) end
  if type(value) == "table" then
    local parts = {}
    for key, item in pairs(value) do parts[#parts + 1] = tostring(key) .. " = " .. text_of(item) end
    table.sort(parts)
    return "{ " .. table.concat(parts, "; ") .. " }"
  end
  return tostring(value)
end

local function without_addresses(text) return (tostring(text):gsub("(%a+: )0x%x+", "%1address")) end

-- Where the values of a call hold the very tensors that it was given.
local function same_ones(values, x, y, _, list)
  local names, found = { [x] = "x", [y] = "y" }, {}
  for key, item in pairs(list) do if ms.is_tensor(item) then names[item] = names[item] or "list " .. key end end
  local function visit(value, place)
    if names[value] then found[#found + 1] = place .. " is " .. names[value] end
    if type(value) == "table" then for key, item in pairs(value) do visit(item, place .. "." .. tostring(key)) end end
  end
  visit(values, "result")
  table.sort(found)
  return table.concat(found, ", ")
end

-- What a call gives, as text; addresses differ from run to run. And which of its operands it gives back.
local function outcome(f, ...)
  local list = table.pack(pcall(f, ...))
  local same = list[1] and select("#", ...) == 4 and same_ones(table.pack(table.unpack(list, 2, list.n)), ...)
  for j = 2, list.n do list[j] = text_of(list[j]) end
  return (list[1] and "" or "error: ") .. without_addresses(table.concat(list, "\n", 2, list.n)), same
end

-- Inputs of a program; `which` changes elements ("other"), the integer ("turns") or the number of rows ("rows").
local function inputs_of(case, which)
  local rows, columns = case.rows + (which == "rows" and 2 or 0), case.columns
  local shift = which == "other" and 0.7 or 0
  local function make(n, phase)
    return ops.sin(ops.arange(n):astype(ms.float64) * 1.7 + (phase + shift)) * (1.3 + shift)
  end
  return make(rows * columns, case.phase):reshape(rows, columns):astype(case.dtype), make(columns, case.phase + 1):astype(case.dtype),
    case.n + (which == "turns" and 2 or 0),
    { make(columns, case.phase + 2):astype(case.dtype), make(columns, case.phase + 3):astype(case.dtype) }
end

local function make_case(index)
  math.randomseed(seed, index)
  local straight = index % 3 == 0
  local program = Whole.new(math.random, { straight = straight, errors = index % 4 == 1 })
  local size = ({ { 3, 4 }, { 5, 3 }, { 2, 17 }, { 17, 65 } })[math.random(4)]
  if index % 25 == 7 then size = { 33, 515 } end
  return program, {
    straight = straight, rows = size[1], columns = size[2], phase = math.random(), n = math.random(0, 4),
    dtype = ({ ms.float32, ms.float32, ms.float32, ms.float64, ms.float16 })[math.random(5)],
  }
end

local KINDS = { "same", "same", "same", "same", "other", "turns", "rows", "same" }

-- The calls of a form, each beside what the plain function gives; nil, or the first difference.
local function compare(plain, f, case, kinds, what, keeps)
  for round, kind in ipairs(kinds) do
    local x, y, n, list = inputs_of(case, kind)
    local found, same = outcome(f, x, y, n, list)
    local after = text_of { x, y, list }
    local expected = plain[kind]
    if found ~= expected.result then return ("%s, call %d (%s)"):format(what, round, kind), found, expected.result end
    if after ~= expected.after then return ("%s, call %d (%s): the inputs afterwards"):format(what, round, kind), after, expected.after end
    if keeps and same ~= expected.same then return ("%s, call %d (%s): its operands"):format(what, round, kind), same, expected.same end
  end
end

local function flat(r)
  local list = {}
  for j = 1, r.n do
    if ms.is_tensor(r[j]) then list[#list + 1] = r[j] end
    if type(r[j]) == "table" and not ms.is_tensor(r[j]) then
      list[#list + 1] = r[j].a
      for _, item in ipairs(r[j].list) do list[#list + 1] = item end
    end
  end
  return list
end

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))

local function in_graph_mode(make)
  local before = ms.get_context "mode"
  ms.set_context { mode = ms.GRAPH_MODE }
  local f = make()
  return function(...)
    ms.set_context { mode = ms.GRAPH_MODE }
    local list = table.pack(pcall(f, ...))
    ms.set_context { mode = before }
    if not list[1] then error(list[2], 0) end
    return table.unpack(list, 2, list.n)
  end
end

local compiled_calls, not_compiled = 0, {}
local forms = {
  { "jit", function(make, case, plain)
    local f = ms.jit(make())
    local what, found, expected = compare(plain, f, case, KINDS, "jit", true)
    local report = ms.jit_report(f)
    compiled_calls = compiled_calls + report.compiled_calls
    if report.eager then not_compiled[#not_compiled + 1] = report.eager end
    return what, found, expected
  end },
  { "graph mode", function(make, case, plain)
    return compare(plain, in_graph_mode(make), case, KINDS, "graph mode", true)
  end },
  -- The value beside a derivative, and the derivative eagerly and compiled.
  { "grad", function(make, case, plain)
    local function differentiated()
      local f = make()
      local g = ms.value_and_grad(function(x, y, n, list)
        local r = table.pack(f(x, y, n, list))
        return ops.sum(r[1]), r
      end, { 0, 1 }, nil, true)
      return g
    end
    local g, slopes = differentiated(), {}
    for _, kind in ipairs { "same", "other" } do
      local x, y, n, list = inputs_of(case, kind)
      local result = table.pack(pcall(g, x, y, n, list))
      if result[1] then
        local r = result[2][2]
        local found = outcome(function() return table.unpack(r, 1, r.n) end)
        if found ~= plain[kind].result then return "value of a differentiated function (" .. kind .. ")", found, plain[kind].result end
      elseif plain[kind].result ~= "error: " .. without_addresses(result[2]) then
        return "error of a differentiated function (" .. kind .. ")", tostring(result[2]), plain[kind].result
      end
      slopes[kind] = { result = result[1] and text_of(result[3]) or "error: " .. without_addresses(result[2]) }
      slopes[kind].after = text_of { x, y, list }
      if slopes[kind].after ~= plain[kind].after then return "inputs after a derivative", slopes[kind].after, plain[kind].after end
    end
    local compiled = ms.jit(differentiated())
    return compare(slopes, function(...)
      local _, slope = compiled(...)
      return slope
    end, case, { "same", "same", "same", "same", "other", "same" }, "jit of a derivative")
  end },
  { "vmap", function(make, case)
    if not case.straight then return end
    local f = make()
    local _, y, n, list = inputs_of(case, "same")
    local function one(x) return table.unpack(flat(table.pack(f(x, y, n, list)))) end
    local samples = {}
    for j = 0, 2 do samples[j + 1] = (inputs_of(case, "same")) * (1 + 0.25 * j) end
    local each, width = {}, 0
    for j, x in ipairs(samples) do
      local results = table.pack(pcall(one, x))
      if not results[1] then return end
      each[j], width = results, results.n
    end
    local expected = {}
    for j = 2, width do
      local list_of = {}
      for k = 1, #samples do list_of[k] = each[k][j] end
      expected[j - 1] = bits_of(ops.stack(list_of, 0))
    end
    expected = table.concat(expected, "\n")
    local mapped = ms.vmap(one)
    local x = ops.stack(samples, 0)
    for _, way in ipairs { mapped, mapped } do
      local found = outcome(way, x)
      if found ~= expected then return "vmap", found, expected end
    end
  end },
  { "saved", function(make, case, plain)
    if not case.straight then return end
    local f = make()
    local x, y, n = inputs_of(case, "same")
    local file = folder .. "/program"
    local fine, e = pcall(ms.export, f, x, y, n, { file_name = file, file_format = "MINDIR" })
    if not fine then
      -- A file has no tables of the program around the function; what is refused is refused by name.
      if plain.same.result:find "^error" or tostring(e):find("a file has a copy only", 1, true) then return end
      return "export", tostring(e), "a file"
    end
    local loaded = ms.load(file .. ".mindir")
    return compare(plain, function(a, b, c) return loaded(a, b, c) end, case, { "same", "other", "turns", "same" }, "saved and loaded")
  end },
  { "Separate", function(make, case, plain)
    local f = make()
    local function elsewhere(g)
      return function(x, y, n, list)
        local a, b, c = x:to "Separate", y:to "Separate", { list[1]:to "Separate", list[2]:to "Separate" }
        local r = table.pack(pcall(g, a, b, n, c))
        -- What the function has written comes back into the inputs.
        x:copy_(a:to "CPU")
        y:copy_(b:to "CPU")
        for j in pairs(list) do list[j] = nil end
        for j, item in pairs(c) do list[j] = item:to "CPU" end
        if not r[1] then error(r[2], 0) end
        return table.unpack(r, 2, r.n)
      end
    end
    local what, found, expected = compare(plain, elsewhere(f), case, { "same", "other" }, "Separate")
    if what then return what, found, expected end
    return compare(plain, elsewhere(ms.jit(make())), case, { "same", "same", "same", "same", "other" }, "Separate, jit")
  end },
}

local known = {}
for key in pairs(_G) do known[key] = true end

-- What every form has to give, by kind of inputs; nil and the reason where the program cannot be judged.
local function plain_of(make, case)
  local plain = {}
  for _, kind in ipairs { "same", "other", "turns", "rows" } do
    local x, y, n, list = inputs_of(case, kind)
    debug.sethook(function() error("too long", 0) end, "", STEPS)
    local result, same = outcome(make(), x, y, n, list)
    debug.sethook()
    if result:find("too long", 1, true) then return nil, "too long" end
    plain[kind] = { result = result, after = text_of { x, y, list }, same = same }
  end
  return plain
end

local function maker_of(program)
  local source = Whole.render(program)
  local chunk, message = load(source, "=program")
  if not chunk then return nil, message end
  return function()
    for key in pairs(_G) do
      if not known[key] then _G[key] = nil end
    end
    return load(source, "=program")()
  end
end

-- "same", "skip", "invalid", or the name of the form that differs, with details.
local function judge(program, case, form)
  number_of, written = {}, {}
  local make, message = maker_of(program)
  if not make then return "invalid", message end
  local plain, why = plain_of(make, case)
  if not plain then return "skip", why end
  for _, row in ipairs(forms) do
    if not form or form == row[1] then
      local ran, what, found, expected = pcall(row[2], make, case, plain)
      if not ran then return row[1], "the test itself: " .. tostring(what) end
      if what then return row[1], what, found, expected end
    end
  end
  return "same"
end

local function digest(text)
  text = with_tensors(text, function(tensor) return tensor.bits end)
  text = text .. ("\0"):rep(-#text % 8)
  local h = 0xcbf29ce484222325
  for j = 1, #text, 8 do h = (h ~ ("<i8"):unpack(text, j)) * 0x100000001b3 end
  return ("%016x"):format(h)
end

if digests then
  for index = only or 1, only or count do
    local program, case = make_case(index)
    local make = maker_of(program)
    local words = { index }
    for _, way in ipairs { make, function() return ms.jit(make()) end, function() return in_graph_mode(make) end } do
      local f, lines = way(), {}
      for round, kind in ipairs(KINDS) do
        local x, y, n, list = inputs_of(case, kind)
        lines[round] = outcome(f, x, y, n, list) .. text_of { x, y, list }
        if not (way ~= make or round < 5) then break end
      end
      words[#words + 1] = digest(table.concat(lines, "\n"))
    end
    print(table.concat(words, " "))
  end
  os.exit(0, true)
end

-- The first element in which two texts differ.
local function difference(found, expected)
  found, expected = with_tensors(found or "nothing", elements), with_tensors(expected or "nothing", elements)
  local a, b, position = found:gmatch "[^ \n]+", expected:gmatch "[^ \n]+", 0
  for word in a do
    local other = b()
    position = position + 1
    if word ~= other then
      if #found > 300 or #expected > 300 then
        return ("word %d: %s, eagerly %s"):format(position, word, other)
      end
      break
    end
  end
  return ("%s\n  eagerly %s"):format(found:sub(1, 400), expected:sub(1, 400))
end

local tally, failed, skipped = 0, 0, 0
for index = only or 1, only or count do
  if trace then io.stderr:write("program ", index, "\n") end
  local program, case = make_case(index)
  if only then print(Whole.render(program)) end
  local verdict, what, found, expected = judge(program, case, only_form)
  if verdict == "same" then
    tally = tally + 1
  elseif verdict == "skip" then
    skipped = skipped + 1
  else
    failed = failed + 1
    print(("FAIL seed %d, program %d: %s: %s"):format(seed, index, verdict, tostring(what)))
    if found then print("  " .. difference(found, expected)) end
    if (failed <= 3 or only) and verdict ~= "invalid" then
      local first = tostring(what):sub(1, 16)
      Whole.shrink(program, function(smaller)
        local other, why = judge(smaller, case, verdict)
        return other == verdict and tostring(why):sub(1, 16) == first
      end)
      local _, again, f2, e2 = judge(program, case, verdict)
      local text = Whole.render(program):match "(return function.*)$"
      print(("  %s, (%d, %d), n = %d\n%s"):format(case.dtype, case.rows, case.columns, case.n, text))
      print(("  %s: %s"):format(again, f2 and difference(f2, e2) or ""))
    end
  end
end
print(("%d calls ran compiled; %d functions were left to Lua; %d programs left out"):format(compiled_calls, #not_compiled, skipped))
if not only and not only_form and compiled_calls < count then
  failed = failed + 1
  print("FAIL hardly anything is compiled")
end

-- Other processes: what they give is what this machine gives with a warm cache and all threads.
if not only and not only_form then
  local script, program = arg[0], arg[-1]
  local function run(settings, cache)
    local command = ("env XDG_CACHE_HOME=%s %s %s %s %d %d --digests"):format(cache, settings, program, script, seed,
      math.min(count, 100))
    local pipe = assert(io.popen(command))
    local text = pipe:read "a"
    local fine = pipe:close()
    return fine and text or "failed: " .. text
  end
  local cache = folder .. "/cache"
  local first = run("LUNARIA_NUM_THREADS=2", cache)
  for _, other in ipairs { { "a warm cache, one thread", "LUNARIA_NUM_THREADS=1", cache } } do
    local text = run(other[2], other[3])
    local a, b = first:gmatch "[^\n]+", text:gmatch "[^\n]+"
    local wrong = 0
    for line in a do
      local second = b()
      if line ~= second then
        wrong = wrong + 1
        if wrong <= 5 then print(("FAIL %s: %s, not %s"):format(other[1], second, line)) end
      end
    end
    failed, tally = failed + (wrong > 0 and 1 or 0), tally + (wrong > 0 and 0 or 1)
    if wrong > 0 then print(("FAIL %s: %d programs differ"):format(other[1], wrong)) end
  end
end
os.execute("rm -r " .. folder)
print(("%d passed, %d failed"):format(tally, failed))
os.exit(failed == 0 and 0 or 1, true)
