-- Graph mode: ms.jit and what shows what it did. A compiled function records what it does when it is called and from then
-- on goes through its records (jit/trace/); what they do not know is run by Lua.
local core = require "lunaria.jit"
local ms = require "lunaria"
local counted = require "lunaria.rich.counted"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
require "lunaria.transforms" -- what stands for functions written in C

local try, take, target = core.try, core.take, core.target

local G = {}
local methods = {}

-- The function itself is called in place of this one, so that its errors name the lines that they name without ms.jit.
core.metatable.__call = function(f, ...)
  if try(f, ...) then return take(f) end
  return target(f)(...)
end
-- Where it is asked as a metamethod __index Lua does not call it, and would find nothing.
core.metatable.__index = function(_, key)
  local method = methods[key]
  if method ~= nil then return method end
  error(("a compiled function has no field '%s'; there are: ir, kernels, lower, report\n  hint: as __index of a "
    .. "metatable it needs a function around it: function(...) return f(...) end"):format(tostring(key)), 2)
end
core.metatable.__function = function(f)
  return function(...) return f(...) end
end
core.metatable.__name = "compiled function"
core.metatable.__tostring = function(f) return "compiled " .. tostring(target(f)) end

local known_options = { fullgraph = "boolean", limit = arguments.positive,
  max_steps = arguments.positive, jit_level = arguments.one_of("O0", "O1", "auto"),
  backend = arguments.one_of("ms_backend"),
  jit_config = function(value)
    return class.is_a(value, require "lunaria.nn.jit_config".JitConfig), "a ms.JitConfig"
  end }

local function options_for(where, options)
  local given = arguments.options(where, options, known_options, "{ fullgraph = true }")
  if not given.jit_config then return given end
  local merged = given.jit_config:options()
  for name, value in pairs(given) do merged[name] = value end
  merged.jit_config = nil
  return merged
end

local function jit(where, f, options)
  if not arguments.is_callable(f) then
    arguments.fail(where, "a function or another callable is expected, got " .. arguments.describe(f))
  end
  options = options_for(where, options)
  return core.make(f, { fullgraph = options.fullgraph, ways = math.tointeger(options.limit),
    steps = math.tointeger(options.max_steps), level = options.jit_level })
end

--- The function, compiled: it gives what f gives, faster. f is run and what it does is recorded; later calls that find
--- everything as it was do the same without Lua. options: fullgraph (true: that f cannot be compiled as a whole is an error), limit
--- (how many cases of one place are kept, 64: beyond them those that came the longest time ago make room), max_steps (of all records,
--- 100000: what takes more is left to Lua), jit_level ("O0": operators run one by one; "O1", which it is unless said otherwise: they are
--- compiled together when they first run; "auto": code is generated only for what runs long enough that it is likely to pay),
--- jit_config (a ms.JitConfig).
---     > ms.jit(function(x) return x * 2 end)(ms.tensor{1.0, 2.0}):tolist()[2] --> 4.0
function G.jit(f, options)
  if type(f) == "table" and getmetatable(f) == nil and options == nil then
    local given = options_for("jit", f)
    return function(g) return jit("jit", g, given) end
  end
  return jit("jit", f, options)
end

-- cell:compile(options): what calls the cell, compiled.
function G._compile(f, options) return jit("compile", f, options) end

-- What stands for f where graph mode compiled it without being asked. The question leaves a call that is recorded to Lua, or where
-- that is too late, f has no calls yet.
local function compiled_for(f)
  if core.is_jit(f) then return f end
  local compiled = f ~= nil and core.compiled(f) or nil
  if not compiled and type(f) == "function" and core.inside() then
    compiled = core.make(f)
    return core.is_jit(compiled) and compiled or nil
  end
  return compiled
end

local function overview()
  local list = {}
  for _, pair in ipairs(core.all_compiled()) do
    local f, report = pair[1], core.report(pair[2])
    report.name = report.name or core.name(f)
    list[#list + 1] = report
  end
  table.sort(list, function(a, b)
    if a.name ~= b.name then return a.name < b.name end
    return a.calls > b.calls
  end)
  return setmetatable(list, { __tostring = G._overview_text })
end

--- What a compiled function did so far, as a table that prints as text: of what ms.jit gave, and in graph mode of functions that
--- are called often, of cells and of what ms.grad and its kin give. Without an argument: a list of those that graph mode compiled
--- by itself, each with its name.
--- In the text "compiled" counts calls that a record did, "run by Lua" those that were recorded or left to Lua, "taken up in the
--- middle" those that began in Lua and went on in a record. A step is one thing that a record does, a branch one of its paths.
--- Each recording tells what made it necessary (another value of an argument or of something outside) and its milliseconds: what
--- the fallback to Lua cost. "left to Lua" tells why no record can be made. Effects are what outlives a call, by line.
---     > #ms.jit_report(ms.jit(function(x) return x + 1 end)).recordings --> 0
function G.jit_report(...)
  if select("#", ...) == 0 then return overview() end
  local f = ...
  local compiled = compiled_for(f)
  if not compiled then
    arguments.fail("jit_report", ("%s was not compiled"):format(type(f) == "function" and core.name(f) or arguments.describe(f)),
      "ms.jit(f) compiles a function; graph mode compiles functions that work with tensors and are called repeatedly")
  end
  return setmetatable(core.report(compiled), { __tostring = G._report_text })
end

function G._overview_text(list)
  local lines = {}
  for i, r in ipairs(list) do
    lines[i] = ("%s: %s, %d compiled%s"):format(r.name, counted(r.calls, "call"), r.compiled_calls,
      r.eager and ", left to Lua: " .. r.eager or "")
  end
  return #lines > 0 and table.concat(lines, "\n") or "nothing was compiled"
end

function G._report_text(r)
  local lines = {}
  local function line(...) lines[#lines + 1] = string.format(...) end
  line("%s: %d compiled, %d run by Lua, %d taken up in the middle", counted(r.calls, "call"), r.compiled_calls,
    r.interpreted_calls, r.resumed_calls)
  if r.eager then line("left to Lua: %s", r.eager) end
  if r.refused then line("some calls are left to Lua: %s", r.refused) end
  line("%s in %s", counted(r.steps, "step"), counted(r.branches, "branch", "branches"))
  line("%s compiled together in %s, in %.3f ms", counted(r.graph_operators, "operator"), counted(r.graphs, "graph"),
    r.compile_seconds * 1e3)
  local kinds = {}
  for name, n in pairs(r.kinds) do kinds[#kinds + 1] = ("%s %d"):format(name, n) end
  table.sort(kinds)
  if #kinds > 0 then line("  %s", table.concat(kinds, ", ")) end
  local on_host = {}
  for name, n in pairs(r.on_host) do on_host[#on_host + 1] = ("%s %d"):format(name, n) end
  table.sort(on_host)
  if #on_host > 0 then line("run on the host, for want of a kernel: %s", table.concat(on_host, ", ")) end
  -- Of many recordings the first ones and the last ones tell what changes from call to call.
  local left_out = #r.recordings > 13 and #r.recordings - 12 or 0
  for i, recording in ipairs(r.recordings) do
    if left_out == 0 or i <= 8 or i > 8 + left_out then
      line("recording %d: %.3f ms%s%s", i, recording.seconds * 1e3,
        recording.because and ", because of another value: " .. recording.because or "",
        recording.error and ", ended by the error: " .. recording.error or "")
    elseif i == 9 then
      line("... %d further recordings ...", left_out)
    end
  end
  for i, effect in ipairs(r.effects) do
    if i > 20 then
      line("... and %s", counted(#r.effects - 20, "further effect"))
      break
    end
    line("effect: %s", effect)
  end
  return table.concat(lines, "\n")
end

-- f:name(), and what is said where it was f.name().
local function of_compiled(f, name)
  if core.is_jit(f) then return f end
  arguments.fail(name, "a function that ms.jit gave is expected, got " .. arguments.describe(f), ("call it as f:%s(...)"):format(name))
end

function methods.kernels(f) return core.kernels(of_compiled(f, "kernels")) end
function methods.ir(f) return core.text(of_compiled(f, "ir")) end
function methods.report(f) return G.jit_report(of_compiled(f, "report")) end
--- Compiles for arguments like these, ahead of the first call: tensors as examples, or { shape = ..., dtype = ... } for
--- tensors of zeros; a name in a shape, as in { "batch", 16 }, is an open size. The function runs with them, but tensors, fields
--- and variables that it writes get back what they were; what other functions do for it (a print, a file) stays done. The result
--- has ir(stage), kernels(), cost(), memory_plan() and compile(), the compiled function.
---     > type(ms.jit(function(x) return x * 2 end):lower(ms.ones { 2 })) --> table
function methods.lower(f, ...) return require "lunaria.lowered" (of_compiled(f, "lower"), ...) end

for name, f in pairs(G) do
  if name:sub(1, 1) ~= "_" then rawset(ms, name, f) end
end
return G
