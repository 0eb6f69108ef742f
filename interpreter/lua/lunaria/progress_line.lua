-- The progress bar that stands on the last line of a terminal, if there is one: what callbacks print goes in its place, and the bar is
-- drawn again below.
local line = { bar = nil }

--- Takes the bar away until it is drawn next.
function line.clear()
  local bar = line.bar
  if not bar then return end
  bar._out:write("\r", (" "):rep(bar._width), "\r")
  bar._out:flush()
  bar._width, bar._drawn, line.bar = 0, 0, nil
end

--- Prints a line above the bar.
function line.print(...)
  line.clear()
  print(...)
end

return line
