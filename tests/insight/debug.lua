-- A training under watch whose control is a server. usage: debug.lua FOLDER [graph]
local ms = require "lunaria"
local ops = ms.ops
if arg[2] == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end

local server = ms.insight.start { dir = arg[1], port = 0, interval = 0.2 }
print(server.url)
io.stdout:flush()

local weight = ms.Parameter(ms.tensor { 1.0, 2.0, 3.0 }, "layer.weight")
local function step(x)
  local moved = weight - x -- mark: sub
  return ops.log(moved):sum() -- mark: log
end
local watch = ms.insight.watch(step, {
  points = { "tensor_overflow" }, control = server, begin = "node", keep = { "sub" }, on_hit = function() end,
})
for i = 1, 1000000 do
  local fine, problem = pcall(watch, ms.full({ 3 }, i < 4 and 0.25 or 2.0))
  if not fine then
    print((problem:match "^[^\n]*"))
    break
  end
end
io.stdout:flush()
io.read "a"
