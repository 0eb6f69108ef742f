-- Replacements for derivatives of what only a session has: the library debug.
local math, debug = math, debug
local type, error, ipairs, pcall, tonumber = type, error, ipairs, pcall, tonumber

return function(core)
  local replace = core.replace

  -- Lua's own stack knows nothing of functions that the machine runs; errors do.
  local plain_info = core.original(debug.getinfo)
  replace(debug.getinfo, function(...)
    local level = ...
    if math.type(level) ~= "integer" or level < 1 then return plain_info(...) end
    -- Two functions lie between: this one and pcall.
    local _, place = pcall(error, "", level + 2)
    local file, line = place:match "^(.*):(%d+): $"
    if not file then return plain_info(...) end
    return {
      source = "@" .. file, short_src = file, what = "Lua", namewhat = "", currentline = math.tointeger(tonumber(line)),
      istailcall = false,
    }
  end)

  -- Nor of their variables.
  local function refuse(name)
    core.fail("debug." .. name .. ": variables cannot be reached in this way where a derivative is computed\n"
      .. "  hint: use the variables themselves, or do it outside the function that is differentiated")
  end
  local plain_local = core.original(debug.getlocal)
  replace(debug.getlocal, function(where, ...)
    -- The parameters of Lua's own functions are names alone, and other threads are its own.
    local fine = type(where) == "thread" or (type(where) == "function" and plain_info(where, "S").what ~= "C")
    if fine then return plain_local(where, ...) end
    refuse "getlocal"
  end, "derivative")
  for _, name in ipairs { "setlocal", "getupvalue", "setupvalue", "upvaluejoin" } do
    replace(debug[name], function() refuse(name) end, true)
  end
end
