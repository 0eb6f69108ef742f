-- The terminal as front end of a watch: a line of input at each stop.
local told = require "lunaria.insight.watch_text"

local help = [[
  n [count]   on to the next node (or that many)
  s [count]   to the end of the step (or of that many)
  c           to the next hit
  i           figures of the node's results and operands
  u           the nodes that led to it
  l           the nodes of this step
  k           tensors that can be compared with the step before
  k NAME      compare one with the step before
  q           end the program
  h           this]]

local function show_node(node)
  if not node then return print "no node has run in this step" end
  print(node.name .. (node.place ~= "" and "  " .. node.place or ""))
  for _, f in ipairs(node.results or {}) do print(("  %s: %s"):format(f.name, told.figures(f))) end
  for _, f in ipairs(node.inputs or {}) do
    print(("  %s%s: %s"):format(f.name, f.node and " from " .. f.node or "", told.figures(f)))
  end
end

local function show_list(nodes)
  for _, node in ipairs(nodes) do
    print(("  %-32s %s"):format(("  "):rep((node.level or 1) - 1) .. node.name, node.place))
  end
end

local function compare(watch, name)
  local fine, change = pcall(watch.compare, watch, name)
  if not fine then return print(change) end
  print(("  now     %s\n  before  %s"):format(told.figures(change.now), told.figures(change.before)))
  print(("  %d of %d elements differ, by %.6g at most and %.6g in the mean"):format(change.unequal, change.count, change.largest,
    change.mean))
end

local ways = { n = "node", s = "step", c = "hit", q = "terminate" }

--- Asks at a stop how the program goes on.
return function(watch, stopped)
  if #stopped.hits > 0 then
    for _, hit in ipairs(stopped.hits) do print(tostring(hit)) end
  else
    print(("step %d%s"):format(stopped.step, told.at(stopped.node)))
  end
  while true do
    io.write "watch> "
    io.flush()
    local line = io.read "l"
    if not line then return "terminate" end
    local command, rest = line:match "^%s*(%S*)%s*(.-)%s*$"
    if ways[command] then return ways[command], math.tointeger(tonumber(rest)) or 1 end
    if command == "i" then
      show_node(watch:node())
    elseif command == "u" then
      show_list(stopped.node and watch:upstream(stopped.node.name) or {})
    elseif command == "l" then
      show_list(watch:nodes())
    elseif command == "k" and rest ~= "" then
      compare(watch, rest)
    elseif command == "k" then
      print("  " .. table.concat(watch:kept(), "\n  "))
    else
      print(help)
    end
  end
end
