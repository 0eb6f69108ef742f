-- Commands of a whole cell: `%%name arguments` above the lines that they take. Called with the tools of commands.lua.
local ms = require "lunaria"

return function(tools)
  local add, fail, help = tools.add, tools.fail, tools.help

  add("writefile", "%%writefile [-a] FILE", "Writes the rest of the cell to a file; with -a at its end.", function(line, body)
    local append, path = line:match("^(%-a)%s+(.+)$")
    path = path or line
    if path == "" then
      fail("usage: " .. help.writefile.usage)
    elseif not body then
      fail("%%writefile takes the lines below it: there are none")
    end
    path = tools.expand(tools.words(path)[1])
    local known = ms.io.kind(path)
    local file <close> = tools.opened(path, append and "a" or "w")
    assert(file:write(body, "\n"))
    print((append and "Appending to " or known and "Overwriting " or "Writing ") .. path)
  end)

  for _, kind in ipairs { "html", "markdown", "latex", "svg" } do
    add(kind, "%%" .. kind, "Shows the rest of the cell as " .. kind .. ".", function(line, body)
      ms.display(ms.display[kind](body or line))
    end)
  end

  add("sh", "%%sh", "Runs the rest of the cell as a script of the system's shell.", function(line, body)
    tools.shell(body and "set -e\n" .. body or line)
  end)
end
