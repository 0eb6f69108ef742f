-- Runs snippets that must end in a clear error:
--   lunaria tests/conformance/badinput.lua FILE.jsonl [--verbose]
-- from the repository's root (snippets name files under tests/data/samples). A case passes when it raises an error whose
-- message is not empty, not longer than 400 bytes and mentions one of the case's words, and the process computes on
-- afterwards. Cases that call functions which do not exist yet are counted as waiting, by name. Snippets run in child
-- processes with bounded memory and time, 40 at a time, so that a crash costs one case; those whose note says that a
-- SIGINT must stop them get one after three seconds.
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path
local ms = require "lunaria"
local support = require "support"

local usage = "usage: lunaria badinput.lua FILE.jsonl [--verbose]"
local path, options = support.options(usage, { verbose = true, worker = "", from = "", to = "" })

-- Files that snippets write go to the folder for temporary files; what they take for missing lies where nothing can be made.
local scratch = os.getenv "TMPDIR" or "/tmp"
local cases = {}
for line in io.lines(path) do
  line = line:gsub("\"build/", "\"" .. scratch .. "/"):gsub("\"/no/", "\"/proc/no/")
  if line:match("%S") then cases[#cases + 1] = ms.json.decode(line) end
end

-- The first name like o.relu or ms.data.load that the snippet uses and that does not exist.
local function missing_name(code)
  local body = code:gsub("^local ms = require \"lunaria\"; local o, T, nn = ms%.ops, ms%.tensor, ms%.nn;", "")
  body = body:gsub("%b\"\"", "\"\"")
  for prefix, rest in (" " .. body):gmatch("[^%w_.:](%a+)%.([%w_.]+)") do
    local value = prefix == "ms" and ms or prefix == "o" and ms.ops or prefix == "nn" and "nn"
    local full = prefix
    if value == "nn" then
      value = ms.nn
      if value == nil then return "nn." .. rest end
    end
    for name in value and rest:gmatch("[%w_]+") or function() end do
      local ok, field = pcall(function() return value[name] end)
      full = full .. "." .. name
      if not ok or field == nil then return full end
      if type(field) ~= "table" then break end
      value = field
    end
  end
end

-- Whether the message has one of the words that the case wants; with none wanted, every message does.
local function mentions(case, message)
  local lower, words = message:lower(), case.message_should_mention or {}
  for _, word in ipairs(words) do
    if lower:find(word:lower(), 1, true) then return true end
  end
  return #words == 0
end

local function judge(case)
  local chunk, message = load(case.lua, "=" .. case.id)
  local ok = false
  if chunk then ok, message = pcall(chunk) end
  -- The process must be as good as before.
  if ms.ops.sum(ms.ops.ones({ 2, 2 })):item() ~= 4 then return "FAIL", "the process computes wrongly afterwards" end
  if ok then
    if case.expect == "ok" or case.or_ok == true then return "pass", "" end
    return "FAIL", "no error"
  end
  if case.expect == "ok" then return "FAIL", "error: " .. tostring(message) end
  if type(message) ~= "string" or message == "" then return "FAIL", "the error has no message" end
  if #message > 400 then return "FAIL", ("the message has %d bytes: %s"):format(#message, message) end
  if mentions(case, message) then return "pass", message end
  return "FAIL", "the message mentions none of " .. table.concat(case.message_should_mention, ", ") .. ": " .. message
end

local function one_line(text) return (tostring(text):gsub("[\n\t]", " ")) end

if options.worker ~= "" then
  io.stdout:setvbuf("line")
  for i = tonumber(options.from), tonumber(options.to) do
    local case = cases[i]
    local missing = missing_name(case.lua)
    if missing then
      print(("%d\twaiting\t%s"):format(i, missing))
    else
      print(("%d\tstart\t"):format(i))
      local verdict, message = judge(case)
      print(("%d\t%s\t%s"):format(i, verdict, one_line(message)))
      -- What a snippet has lost is collected before the next one, so that a crash there has the right name.
      collectgarbage()
    end
  end
  os.exit(0, true)
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local seconds, batch = 60, 40
local program = arg[-1]
local verdicts = {}
-- Endless snippets run alone.
local function is_endless(case) return (case.note or ""):find("SIGINT", 1, true) ~= nil end

local first = 1
while first <= #cases do
  local last, stop = first, ""
  if is_endless(cases[first]) then
    stop = "timeout -s INT 3 "
  else
    while last < math.min(first + batch - 1, #cases) and not is_endless(cases[last + 1]) do last = last + 1 end
  end
  -- Sanitizers reserve terabytes of address space: no limit then.
  local sanitized = os.getenv("ASAN_OPTIONS") or os.getenv("TSAN_OPTIONS")
  local limit = sanitized and "" or "ulimit -v 4194304; "
  local command = ("%sulimit -c 0; timeout -s KILL %d %s%s %s %s --worker yes --from %d --to %d 2>&1"):format(
    limit, seconds, stop, quoted(program), quoted(arg[0]), quoted(path), first, last)
  local pipe = assert(io.popen("exec sh -c " .. quoted(command)))
  local started, noise = nil, {}
  for line in pipe:lines() do
    local index, verdict, message = line:match("^(%d+)\t(%a+)\t(.*)$")
    if not index then
      noise[#noise + 1] = line
    elseif verdict == "start" then
      started = tonumber(index)
    else
      started = nil
      verdicts[tonumber(index)] = { verdict, message }
    end
  end
  local ok, how, code = pipe:close()
  local text = table.concat(noise, " ")
  if ok and not started then
    first = last + 1
  elseif stop ~= "" and code == 124 and text:find("stack traceback", 1, true) and mentions(cases[first], text) then
    -- The signal ended the script with a Lua error, which no pcall keeps back.
    verdicts[first] = { "pass", text }
    first = last + 1
  else
    local dead = started or first
    while not started and verdicts[dead] and dead < last do dead = dead + 1 end
    verdicts[dead] = { "FAIL", ("the process ended (%s %s) %s"):format(tostring(how), tostring(code), text:sub(1, 200)) }
    first = dead + 1
  end
end

local passed, failed, waiting = 0, 0, support.waiting_list()
for i, case in ipairs(cases) do
  local verdict, message = table.unpack(verdicts[i] or { "FAIL", "was not run" })
  if verdict == "pass" then
    passed = passed + 1
    if options.verbose then print("pass " .. case.id .. ": " .. message) end
  elseif verdict == "waiting" then
    waiting:add(message)
  else
    failed = failed + 1
    print("FAIL " .. case.id .. ": " .. message)
  end
end
waiting:print()
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and 0 or 1, true)
