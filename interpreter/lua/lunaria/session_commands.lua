-- Commands that change how a session goes on, and %memit. Called with the tools of commands.lua.
local ms = require "lunaria"

return function(tools)
  local session, add, fail, help, hooks = tools.session, tools.add, tools.fail, tools.help, tools.hooks

  -- The switch that a word sets; nothing turns it over.
  local function switched(name, word, now)
    local words = { on = true, off = false, ["1"] = true, ["0"] = false, ["2"] = true, [""] = not now }
    if words[word] == nil then
      fail("usage: " .. help[name].usage)
    end
    return words[word]
  end

  -- The text of a module of the user's, or nil: the library's are in the program.
  local function text_of(name)
    local path = type(name) == "string" and package.searchpath(name, package.path)
    local file <close> = path and io.open(path, "rb") or nil
    return file and file:read "a"
  end

  local seen = {}

  local function reload_changed()
    for name in pairs(package.loaded) do
      local text = text_of(name)
      local old = seen[name]
      seen[name] = text
      if text and old and text ~= old then
        tools.reload(name)
      end
    end
  end

  add("autoreload", "%autoreload [on|off]", "Loads modules again before each cell when their files have changed, as %reload does.",
    function(word)
      local on = switched("autoreload", word, hooks.before_cell ~= nil)
      hooks.before_cell, seen = on and reload_changed or nil, {}
      if on then reload_changed() end
      print("autoreload: " .. (on and "on" or "off"))
    end)

  add("pdb", "%pdb [on|off]", "Starts the debugger, as %debug does, after each error.", function(word)
    hooks.debugs_errors = switched("pdb", word, hooks.debugs_errors) or nil
    print("pdb: " .. (hooks.debugs_errors and "on" or "off"))
  end)

  local function bytes(n)
    local units = { "B", "KiB", "MiB", "GiB" }
    local i = 1
    while n >= 1024 and i < #units do
      n, i = n / 1024, i + 1
    end
    return (i == 1 and "%d %s" or "%.1f %s"):format(n, units[i])
  end

  add("memit", "%memit CODE", "Runs the code once and prints the most memory that its tensors had, and what they keep.", function(code)
    collectgarbage()
    collectgarbage()
    ms.reset_peak_memory_stats()
    local before = ms.memory_stats().live_bytes
    session.execute(code)
    local peak = ms.memory_stats().peak_bytes
    collectgarbage()
    local kept = ms.memory_stats().live_bytes - before
    print(("peak: %s above the %s before; kept: %s"):format(bytes(peak - before), bytes(before), bytes(math.max(kept, 0))))
  end)
end
