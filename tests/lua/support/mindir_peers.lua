-- Writes networks of the zoo and calls of operators as FOLDER/NAME.mindir, with their inputs and outputs: a part of
-- tests/lua/mindir_peers_test.py.
local ms = require "lunaria"
local folder = arg[1]

local function write(name, f, inputs, form)
  local options = { file_name = ("%s/%s"):format(folder, name), form = form }
  local given, named = { table.unpack(inputs) }, {}
  given[#given + 1] = options
  ms.export(f, table.unpack(given))
  for i, x in ipairs(inputs) do named["x" .. i] = x end
  ms.save(("%s/%s.in.npz"):format(folder, name), named)
  local results = {}
  for i, y in ipairs { f(table.unpack(inputs)) } do results["o" .. i - 1] = y end
  ms.save(("%s/%s.out.npz"):format(folder, name), results)
end

-- Without a form, those that run for inputs of any size only in our own are left out.
local sized = { gpt2 = true, lstm = true, ssd = true }
for _, network in ipairs(dofile "tests/lua/support/zoo_networks.lua") do
  local name, net, x = table.unpack(network)
  write(name, net, { x }, sized[name] and "mindspore" or nil)
end
for n, case in ipairs(dofile "tests/lua/support/mindspore_operators.lua") do
  write(("operator_%03d"):format(n), case.f, case.inputs, "mindspore")
end
