-- Replacements in Lua's library for a session that has a front end in place of a terminal: io.read, io.lines and the methods
-- of io.stdin ask the user, an interrupt ends a cell that waits for a shell, and os.exit closes the session in order. Called
-- with the functions that ask, leave and run a shell; gives a function that puts Lua's own back.
local ask, leave, run_shell = ...

-- luacheck: globals io os
local methods = getmetatable(io.stdin).__index
local own = {
  read = io.read,
  lines = io.lines,
  file_read = methods.read,
  file_lines = methods.lines,
  execute = os.execute,
  exit = os.exit,
}
local pending = "" -- of the last answer

-- Makes sure that there is something to read.
local function fill()
  if pending == "" then
    local text = ask("")
    if not text then
      return false
    end
    pending = text .. "\n"
  end
  return true
end

local function take(count)
  local text = pending:sub(1, count)
  pending = pending:sub(count + 1)
  return text
end

local function read_one(format, position)
  if math.type(format) == "integer" then
    return fill() and take(format) or nil
  end
  local kind = type(format) == "string" and format:match("^%*?([nlLa])") or nil
  if not kind then
    error(("bad argument #%d to 'read' (invalid format)"):format(position), 3)
  elseif kind == "a" then
    fill()
    return take(#pending)
  elseif not fill() then
    return nil
  elseif kind == "n" then
    local number = pending:match("^%s*(%S+)")
    pending = pending:gsub("^%s*%S*", "", 1)
    if pending == "\n" then
      pending = ""
    end
    return number and tonumber(number)
  end
  local line = take(pending:find("\n", 1, true))
  return kind == "L" and line or line:sub(1, -2)
end

local function read(...)
  if select("#", ...) == 0 then
    return read_one("l", 1)
  end
  local results = table.pack(...)
  for i = 1, results.n do
    results[i] = read_one(results[i], i)
    if results[i] == nil then
      return table.unpack(results, 1, i)
    end
  end
  return table.unpack(results, 1, results.n)
end

local function lines(...)
  local formats = table.pack(...)
  return function()
    return read(table.unpack(formats, 1, formats.n))
  end
end

function methods.read(file, ...)
  if file == io.stdin then
    return read(...)
  end
  return own.file_read(file, ...)
end

function methods.lines(file, ...)
  if file == io.stdin then
    return lines(...)
  end
  return own.file_lines(file, ...)
end

function io.read(...)
  if io.input() == io.stdin then
    return read(...)
  end
  return own.read(...)
end

function io.lines(path, ...)
  if path == nil and io.input() == io.stdin then
    return lines(...)
  end
  return own.lines(path, ...)
end

function os.execute(command)
  if command == nil then
    return own.execute()
  end
  return run_shell(command)
end

-- The cell ends where it stands, as at Ctrl-C; then `leave` is called.
function os.exit(code)
  if code == nil or type(code) == "boolean" then
    code = code == false and 1 or 0
  elseif not math.tointeger(code) then
    error(("bad argument #1 to 'exit' (a number or a boolean is expected, got %s)"):format(type(code)), 2)
  end
  leave(math.tointeger(code) & 255)
end

return function()
  os.execute, os.exit = own.execute, own.exit
  io.read, io.lines, methods.read, methods.lines = own.read, own.lines, own.file_read, own.file_lines
end
