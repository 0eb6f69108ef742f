-- lunaria check FILE or FOLDER...: mistakes of scripts and notebooks that can be seen without running them.
local ms = require "lunaria"
local checker = require "lunaria.check.checker"

local usage = [==[
usage: lunaria check FILE or FOLDER...
Looks for mistakes in scripts (.lua) and notebooks (.ipynb), also those of a folder and of the folders in it, without
running them: syntax, names without a value, fields, methods and names of arguments that do not exist, == between a tensor
and a number, globals that should be local. Prints file:line: message (remedy) for each; of a notebook
file[number of the code cell]:line. The exit status is 1 where there is one.
A cell with the tag raises-exception is not looked at.]==]

local function fail(message) error("lunaria check: " .. message, 0) end

-- Commands whose argument is code, and the lines below it.
local with_code = { time = true, timeit = true, prof = true, memit = true }

-- The text of a cell as Lua: commands become empty, their code stays.
local function code_of(text)
  local lines = {}
  local first = true
  for line in (text .. "\n"):gmatch "(.-)\n" do
    local code = line
    if first then
      local name, rest = line:match "^%s*%%%%?(%w+)%s*(.*)$"
      if line:find "^%s*%%%%" and not with_code[name] then return "" end
      if with_code[name] then
        code = rest:gsub("^%-%a%s+%S+%s*", ""):gsub("^%-%a%s+%S+%s*", "")
      elseif name or line:find "^%s*[!?]" or line:find "%?%s*$" then
        code = ""
      end
      first = not name and code == ""  -- further commands may follow
    end
    local assigned = code:match "^(%s*[%a_][%w_]*%s*=%s*)!"
    lines[#lines + 1] = assigned and assigned .. "{}" or code
  end
  return table.concat(lines, "\n")
end

-- The texts of a file, and the globals that they find.
local function read(path)
  if path:find "%.ipynb$" then
    local chunks = {}
    for i, cell in ipairs(require "lunaria.notebook.cells"(path, fail)) do
      chunks[i] = { text = code_of(cell.text), name = ("%s[%d]"):format(path, i), is_cell = true, may_fail = cell.may_fail }
    end
    local environment = { ms = ms, help = ms.help, _ = false, In = {}, Out = {} }
    for _, name in ipairs { "display", "update_display", "clear_output" } do environment[name] = ms[name] end
    return chunks, environment
  end
  local file <close> = io.open(path, "rb") or fail(path .. " cannot be read")
  local text = file:read "a" or fail(path .. " cannot be read")
  text = text:gsub("^\xEF\xBB\xBF", ""):gsub("^#[^\n]*", "")
  return { { text = text, name = path } }, { arg = {}, help = ms.help }
end

-- Adds a file, or the scripts and notebooks of a folder, to a list; what begins with a dot is left out.
local function add(list, path)
  if ms.io.kind(path) ~= "folder" then
    list[#list + 1] = path
    return
  end
  local names = ms.io.list_folder(path)
  table.sort(names)
  for _, name in ipairs(names) do
    local inner = path:gsub("/$", "") .. "/" .. name
    local is_source = name:find "%.lua$" or name:find "%.ipynb$"
    if not name:find "^%." and (is_source or ms.io.kind(inner) == "folder") then add(list, inner) end
  end
end

return function(...)
  local given = { ... }
  if #given == 0 then fail "a file is expected\n  hint: lunaria check --help" end
  if given[1] == "--help" or given[1] == "-h" then return print(usage) end
  local count, paths = 0, {}
  for _, path in ipairs(given) do
    local before = #paths
    add(paths, path)
    if #paths == before then fail(path .. " has no script (.lua) and no notebook (.ipynb)") end
  end
  for _, path in ipairs(paths) do
    local chunks, environment = read(path)
    for name, value in pairs(_G) do environment[name] = environment[name] or value end
    for _, found in ipairs(checker(chunks, environment)) do
      count = count + 1
      print(("%s:%d: %s%s"):format(found.chunk.name, found.line, found.message, found.hint and (" (%s)"):format(found.hint) or ""))
    end
  end
  if count > 0 then os.exit(1) end
end
