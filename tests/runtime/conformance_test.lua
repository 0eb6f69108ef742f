-- Saved programs give the same bits in lunaria-run as here: those of the conformance sets that can be saved, networks of the
-- reference training runs with their gradients, and the programs of tests/lua/support.
--   lunaria tests/runtime/conformance_test.lua PATH_OF_LUNARIA_RUN [--all] [PART_OF_A_NAME]
-- Each is run four times from its record, with the kernels that this program has left in the cache. All networks and a
-- sixth of the programs a day (tests/lua/support/today.lua); --all: every program, with each of its inputs instead of the first,
-- and once more by its operators' own loops.
-- Eager mode only: both modes are compared here.
package.path = "tests/conformance/?.lua;" .. package.path
local ms = require "lunaria"
local support = require "support"
local models = require "models"
local today = dofile "tests/lua/support/today.lua"
local runner = arg[1] or error("the path of lunaria-run is missing", 0)
local all = arg[2] == "--all"
local only = arg[all and 3 or 2]

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- An input as a word of the command line.
local function word_of(value, path)
  if ms.is_tensor(value) then
    ms.save(path .. ".npy", value)
    return path .. ".npy"
  elseif type(value) == "table" then
    local fields = {}
    for key, item in pairs(value) do
      if not ms.is_tensor(item) then return nil end
      fields[tostring(key)] = item
    end
    if next(fields) == nil then return "{}" end
    ms.save(path .. ".npz", fields)
    return path .. ".npz"
  elseif type(value) == "string" then
    return ("%q"):format(value)
  elseif math.type(value) == "float" then
    return ("%.17g"):format(value):gsub("^(-?%d+)$", "%1.0")
  end
  return tostring(value)
end

local function copies(inputs)
  local list = {}
  for i = 1, inputs.n or #inputs do list[i] = ms.is_tensor(inputs[i]) and inputs[i]:copy() or inputs[i] end
  return table.unpack(list, 1, inputs.n or #inputs)
end

local function content(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local bytes = file:read "a"
  file:close()
  return bytes
end

-- Writes a result as lunaria-run does; gives what differs from the file of that name.
local function difference(value, name)
  if type(value) == "table" then
    for key, item in pairs(value) do
      local wrong = difference(item, name .. "." .. tostring(key))
      if wrong then return wrong end
    end
    return nil
  end
  if ms.is_tensor(value) or type(value) == "number" or type(value) == "boolean" then
    local wanted = folder .. "/wanted.npy"
    local t = value
    if type(value) == "number" then t = ms.tensor(value, math.type(value) == "float" and ms.float64 or ms.int64) end
    if type(value) == "boolean" then t = ms.tensor(value) end
    ms.save(wanted, t)
    local found = content(name .. ".npy")
    if not found then return name:match "[^/]*$" .. " is missing" end
    if found ~= content(wanted) then
      return ("%s is %s, not %s"):format(name:match "[^/]*$", tostring(ms.load(name .. ".npy")), tostring(t))
    end
  elseif content(name .. ".txt") ~= tostring(value) .. "\n" then
    return ("%s is %q, not %q"):format(name:match "[^/]*$", tostring(content(name .. ".txt")), tostring(value))
  end
end

local counts = { seen = 0, programs = 0, runs = 0, compiled = 0, kernels = 0 }
local failed, unsaved = {}, {}

-- Runs the file and compares; gives what is wrong.
local function compare(path, inputs)
  local words = {}
  for i = 1, inputs.n or #inputs do
    words[i] = word_of(inputs[i], folder .. "/input_" .. i)
    if not words[i] then return nil end
    words[i] = quoted(words[i])
  end
  for _, options in ipairs(all and { "--no-kernels", "--repeat 4" } or { "--repeat 4" }) do
    -- Loaded again, since a program may write its weights.
    local g, expected = ms.load(path), nil
    if options == "--no-kernels" then
      expected = table.pack(pcall(g, copies(inputs)))
    else
      local compiled = ms.jit(g)
      for _ = 1, 4 do expected = table.pack(pcall(compiled, copies(inputs))) end
    end
    local command = ("rm -f %s/got_*; exec %s %s --out %s/got %s %s 2>&1"):format(
      folder, runner, options, folder, path, table.concat(words, " "))
    local pipe = assert(io.popen(command))
    local said = pipe:read "a"
    local ended = pipe:close()
    counts.runs = counts.runs + 1
    if not expected[1] then
      if ended then return "no error, but " .. tostring(expected[2]) end
    else
      if not ended then return said end
      for i = 2, expected.n do
        local wrong = difference(expected[i], ("%s/got_%d"):format(folder, i - 2))
        if wrong then return options .. ": " .. wrong end
      end
      counts.compiled = counts.compiled + (said:find "[1-9]%d* compiled graphs" and 1 or 0)
      counts.kernels = counts.kernels + (tonumber(said:match "(%d+) kernels from the cache") or 0)
    end
  end
end

-- inputs: lists of arguments, of which the first is the example.
local function check(name, f, inputs, must)
  if only and not name:find(only, 1, true) then return end
  counts.seen = counts.seen + 1
  if not (all or only) and inputs.program and not today.has(counts.seen, 6) then return end
  local path = folder .. "/program.mindir"
  local saved, message = pcall(ms.save_mindir, f, path, copies(inputs[1]))
  if not saved then
    unsaved[#unsaved + 1] = name
    if must then failed[#failed + 1] = name .. ": " .. tostring(message) end
    return
  end
  counts.programs = counts.programs + 1
  for i, list in ipairs(all and inputs or { inputs[1] }) do
    local ran, wrong = pcall(compare, path, list)
    if not ran or wrong then failed[#failed + 1] = ("%s, input %d: %s"):format(name, i, tostring(wrong)) return end
  end
end

local function input_of(value, dtype)
  if type(value) ~= "table" or value[1] ~= nil then return ms.tensor(value, dtype) end
  local result = {}
  for key, item in pairs(value.__list__ or value) do result[key] = input_of(item, dtype) end
  return result
end

for _, set in ipairs { "grad-programs", "language-programs" } do
  for _, case in ipairs(support.read_json("tests/data/conformance/" .. set .. ".json").programs) do
    local inputs = {}
    for i, value in ipairs(case.inputs) do inputs[i] = input_of(value, ms.float64) end
    check(case.id, assert(load(case.lua, "=" .. case.name))(), { inputs, program = true })
  end
end

local runs = support.read_json "tests/data/conformance/e2e.json"
local tensors = ms.load("tests/data/conformance/" .. runs.file)
for _, run in ipairs(runs.runs) do
  if run.optimizer == "SGD" then
    local weights = {}
    for name, tensor in pairs(tensors) do
      local own = name:match("^" .. run.model:gsub("%p", "%%%0") .. "%.(.*)")
      if own then weights[own] = tensor end
    end
    local net = models.cells[run.model](ms.nn, weights, run)
    for _, p in ipairs(net:trainable_params()) do p:assign(weights[p.name]) end
    local rows = ms.slice(0, run.batch)
    local x, y = tensors[run.x][{ rows }]:copy(), tensors[run.y][{ rows }]:copy()
    check(run.model .. " (forward)", net, { { x }, { tensors[run.x][{ ms.slice(3, 8) }]:copy() } }, true)
    local step = ms.value_and_grad(function(a, b) return models.loss(net(a), b) end, nil, net:trainable_params())
    check(run.model .. " (gradient)", function(a, b) return step(a, b) end, { { x, y } }, true)
  end
end

local programs = dofile "tests/lua/support/saved_programs.lua"
for _, name in ipairs(programs.order) do
  local p = programs.programs[name]
  p.inputs.program = true
  check(name, p.f, p.inputs, true)
end

os.execute("rm -r " .. folder)
for _, line in ipairs(failed) do print("FAIL " .. line) end
print(("%d programs in %d runs, %d of them with compiled graphs, %d kernels read; %d programs cannot be saved"):format(
  counts.programs, counts.runs, counts.compiled, counts.kernels, #unsaved))
print(("%d passed, %d failed"):format(counts.programs - #failed, #failed))
local least = all and 190 or today.whole and 60 or 20
assert(only or (counts.programs > least and counts.compiled > least / 2 and counts.kernels > least), "too few programs or kernels")
os.exit(#failed == 0 and 0 or 1, true)
