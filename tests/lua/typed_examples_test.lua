-- Every command, option, variable of the environment and command of the debugger has an example, and the examples are true:
-- each is a session of its own in a fresh folder.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local entries = require "lunaria.help.entries"
local examples = require "lunaria.help.typed_examples"

local base = os.tmpname()
os.remove(base)
local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

local program = arg[-1]
local root = io.popen("pwd"):read "l"
if program:sub(1, 1) ~= "/" then program = root .. "/" .. program end

-- What a line of the shell prints in a folder with the files of the examples, where the program is found by its name.
local count = 0
local function run(line, input)
  count = count + 1
  local folder = base .. "/" .. count
  os.execute("mkdir -p " .. folder .. "/bin && ln -s " .. quoted(program) .. " " .. folder .. "/bin/lunaria")
  ms.io.make_folder(folder .. "/work")
  for name, text in pairs(examples.files) do write(folder .. "/work/" .. name, text) end
  if input then write(folder .. "/input", input) end
  local pipe = io.popen(("cd %s/work && PATH=%s/bin:$PATH && export PATH && unset LUA_INIT && %s"):format(folder, folder, line))
  local text = pipe:read "a"
  pipe:close()
  return text
end

-- Whether a text is the pattern: ... stands for anything in a line, a line of ... for any lines.
local function fits(text, pattern)
  local parts = "^" .. pattern:gsub("%p", "%%%0"):gsub("\n%%%.%%%.%%%.\n", "\n.-\n"):gsub("\n%%%.%%%.%%%.$", "\n.*")
    :gsub("%%%.%%%.%%%.", "[^\n]-") .. "%s*$"
  return text:find(parts) ~= nil
end
t.test("... stands for what varies", function()
  assert(fits("time: 3 us\n2", "time: ... us\n2") and not fits("time: 3 us\n3", "time: ... us\n2"))
  assert(fits("a\nb\nc", "a\n...") and not fits("b\nc", "a\n...") and fits("x a", "... a"))
end)

local function expected_of(rows)
  local lines = {}
  for _, row in ipairs(rows) do lines[#lines + 1] = row[2] and (row.prompt or "") .. row[2] end
  return table.concat(lines, "\n")
end

local function in_order(list)
  local names, at = {}, 0
  for name in pairs(list) do names[#names + 1] = name end
  table.sort(names)
  return function()
    at = at + 1
    return names[at], list[names[at]]
  end
end

local function expect(name, text, pattern)
  if not fits(text, pattern) then error(("%s gives\n%s\nand not\n%s"):format(name, text, pattern), 0) end
end

-- A quarter of the sessions a day.
t.each_day(4)
for name, rows in in_order(examples.prompt) do
  t.test(name, function()
    if rows[1][1]:find "^%%%%" then
      local cell = { cell_type = "code", source = rows[1][1], metadata = {}, outputs = ms.json.array {} }
      local text = ms.json.encode { cells = { cell }, nbformat = 4, nbformat_minor = 5, metadata = { language_info = { name = "lua" } } }
      return expect(name, run("mv ../input ../input.ipynb && lunaria ../input.ipynb 2>&1", text), rows[1][2])
    end
    local typed = {}
    for _, row in ipairs(rows) do typed[#typed + 1] = row[1] end
    expect(name, run("lunaria -i < ../input 2>&1", table.concat(typed, "\n") .. "\n"), expected_of(rows))
  end)
end

for name, rows in in_order(examples.shell) do
  t.test(name, function()
    if name == "lunaria kernel" and not io.open((program:gsub("[^/]*$", "liblunaria_kernel.so"))) then return end
    for _, row in ipairs(rows) do expect(row[1], run(row[1]), row[2]) end
  end)
end

t.each_day(1)

t.test("the debugger", function()
  local typed = {}
  for _, row in ipairs(examples.debugger) do typed[#typed + 1] = row[1] end
  local text = run("lunaria --debug sum.lua < ../input 2>&1", table.concat(typed, "\n") .. "\n")
  local shown = {}
  for part in (text .. "debug> "):gmatch "(.-)debug> " do shown[#shown + 1] = part end
  -- The first part stands before the first prompt.
  for i, row in ipairs(examples.debugger) do expect(row[1], shown[i + 1] or "nothing", row[2] or "") end
end)

t.test("whatever can be typed has an example", function()
  local missing, known = {}, {}
  local kinds = { command = true, option = true, ["environment variable"] = true, ["debugger command"] = true }
  for _, entry in ipairs(entries.all()) do
    if kinds[entry.kind] and not (entry.examples and #entry.examples > 0) then missing[#missing + 1] = entry.name end
    known[entry.name] = true
  end
  t.equal(missing, {})
  for _, list in ipairs { examples.prompt, examples.shell } do
    for name in pairs(list) do assert(known[name], name) end
  end
end)
os.execute("rm -rf " .. quoted(base))
t.finish()
