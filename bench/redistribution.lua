-- Plans of redistributions for bench/redistribution.py. Of each line "SIZES|SHAPE|FROM|TO" of the input, such as "x=4, y=2|64,64|[@x, *]|
-- [*, @y]": the seconds of the plan where links take 10 microseconds and 0.1 nanoseconds for a byte, and the bytes that a rank gets at the
-- most where only bytes count. The tensors are of float32.
local ms = require "lunaria"
local layouts = require "lunaria.layouts"

local meshes = {}
local function mesh_of(text)
  if not meshes[text] then
    local sizes, names = {}, {}
    for name, size in text:gmatch "(%w+)=(%d+)" do
      names[#names + 1], sizes[#sizes + 1] = name, math.tointeger(tonumber(size))
    end
    meshes[text] = ms.mesh(sizes, names)
  end
  return meshes[text]
end

for line in io.lines() do
  local mesh_text, shape_text, from, to = line:match "^(.-)|(.-)|(.-)|(.-)$"
  local mesh, shape = mesh_of(mesh_text), {}
  for n in shape_text:gmatch "%d+" do shape[#shape + 1] = math.tointeger(tonumber(n)) end
  from, to = layouts.parse(mesh, from), layouts.parse(mesh, to)
  local real = layouts.plan(from, to, shape, ms.float32, { latency = 1e-5, seconds_per_byte = 1e-10 })
  local least = layouts.plan(from, to, shape, ms.float32, { latency = 0, seconds_per_byte = 1e-10 })
  print(("%.9g %d %d"):format(real.seconds, least.bytes, least.least_bytes))
end
