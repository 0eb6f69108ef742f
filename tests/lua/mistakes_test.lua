-- Mistakes of beginners are answered by what and where in the first line and by what to write in a hint: as a script, at the
-- prompt, in a notebook, in graph mode and inside ms.grad.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local mistakes = require "mistakes"

local program = arg[-1]

local prelude = [[
ms = require "lunaria" nn, ops = ms.nn, ms.ops
x = ms.tensor{{1.0, 2.0}, {3.0, 4.0}} net = nn.SequentialCell(nn.Dense(2, 3), nn.ReLU())
do
  local Block = nn.Cell:extend("Block")
  function Block:init(n) self.fc1 = nn.Dense(n, 4) self.fc2 = nn.Dense(4, 2) end
  function Block:construct(a) return self.fc2(self.fc1(a)) end
  local Deep = nn.Cell:extend("Deep")
  function Deep:init() self.blocks = nn.CellList{ Block(2), Block(2), Block(5) } end
  function Deep:construct(a) for _, b in ipairs(self.blocks) do a = b(a) end return a end
  deep = Deep()
end
]]

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

local function output_of(command)
  local pipe = assert(io.popen(command .. " 2>&1", "r"))
  local text = pipe:read("a")
  pipe:close()
  return text
end

local base = os.tmpname()

local function check(row, text, first, hint)
  local line = text:match "^%s*([^\n]*)"
  if not line:find(first, 1, true) then error(("the first line is %q, not %q"):format(line, first), 0) end
  if not line:find "^[^\n]*:%d+: " then error("the first line has no place: " .. line, 0) end
  local rest = text:match "\n(.*)$" or ""
  local second = rest:match "^%s*hint: ([^\n]*)" or rest:match "\n%s*hint: ([^\n]*)" or "none"
  if not second:find(hint, 1, true) then error(("the hint is %q, not %q"):format(second, hint), 0) end
  return row
end

t.test("there are more than a hundred", function() assert(#mistakes > 100, #mistakes) end)

-- A row costs a tenth of a second as a program of its own, of which a quarter runs a day, and some milliseconds in each session below.
t.each_day(4)
for _, row in ipairs(mistakes) do
  t.test("script: " .. row.name, function()
    local path = base .. ".lua"
    write(path, prelude .. row[1] .. "\n")
    check(row, output_of(("timeout 60 %s %s"):format(program, path)):gsub("^lunaria: ", ""), row.first, row.hint)
  end)
end

t.each_day(1)

-- All of them in one session; what stands between two marks is what one of them printed.
local function in_session(name, command, texts, key, wrap)
  local text = output_of(command)
  for i, row in ipairs(mistakes) do
    t.test(name .. ": " .. row.name, function()
      local part = text:match(("#%d#([^#].-)#%d#"):format(i, i + 1)) or error("no output: " .. text:sub(-300), 0)
      part = part:gsub("^[%s>.]*", ""):gsub("^Error: ", "")
      check(row, part, key and row[key] or row.first, key and row[key .. "_hint"] or row.hint)
    end)
  end
  return texts, wrap
end

local function notebook(wrap)
  local cells = { { cell_type = "code", source = prelude, metadata = {} } }
  for i, row in ipairs(mistakes) do
    local source = wrap and "ms.grad(function(argument)\n" .. row[1] .. "\nreturn argument * 1.0 end)(2.0)" or row[1]
    cells[#cells + 1] = { cell_type = "code", source = ("local _ = io.stderr:write('#%d#')"):format(i), metadata = {} }
    cells[#cells + 1] = { cell_type = "code", source = source, metadata = { tags = ms.json.array { "raises-exception" } } }
  end
  cells[#cells + 1] = { cell_type = "code", source = ("local _ = io.stderr:write('#%d#')"):format(#mistakes + 1), metadata = {} }
  for _, cell in ipairs(cells) do cell.outputs = ms.json.array {} end
  return ms.json.encode { cells = cells, nbformat = 4, nbformat_minor = 5, metadata = { language_info = { name = "lua" } } }
end

local path = base .. ".ipynb"
local graph = "LUA_INIT=\"require('lunaria').set_context{ mode = 0 }\" "
write(path, notebook())
in_session("notebook", ("timeout 120 %s %s"):format(program, path))
in_session("graph mode", (graph .. "timeout 120 %s %s"):format(program, path))
write(path, notebook(true))
in_session("inside grad", ("timeout 120 %s %s"):format(program, path), nil, "grad")

local lines = { prelude }
for i, row in ipairs(mistakes) do
  -- What takes several lines is one cell at the prompt.
  local text = row[1]:find "\n" and "do\n" .. row[1] .. "\nend" or row[1]
  lines[#lines + 1] = ("local _ = io.stderr:write('#%d#')\n%s"):format(i, text)
end
write(base .. ".txt", table.concat(lines, "\n") .. ("\nlocal _ = io.stderr:write('#%d#')\n"):format(#mistakes + 1))
in_session("prompt", ("timeout 120 %s -i < %s.txt"):format(program, base))
for _, ending in ipairs { "", ".lua", ".ipynb", ".txt" } do os.remove(base .. ending) end
t.finish()
