-- Writes networks of the zoo, calls of operators and programs with control flow as FOLDER/NAME.mindir, with inputs and outputs: a
-- part of tests/lua/mindir_peers_test.py.
local ms = require "lunaria"
local folder = arg[1]

-- `cases`: lists of inputs on which it is tried, the first of which is the example.
local function write(name, f, cases, form)
  local given = { table.unpack(cases[1]) }
  given[#given + 1] = { file_name = ("%s/%s"):format(folder, name), form = form }
  ms.export(f, table.unpack(given))
  for n, inputs in ipairs(cases) do
    local named, results = {}, {}
    for i, x in ipairs(inputs) do named["x" .. i] = x end
    ms.save(("%s/%s.%d.in.npz"):format(folder, name, n), named)
    for i, y in ipairs { f(table.unpack(inputs)) } do results["o" .. i - 1] = y end
    ms.save(("%s/%s.%d.out.npz"):format(folder, name, n), results)
  end
end

-- Without a form, those that run for inputs of any size only in our own are left out.
local sized = { bert = true, gpt2 = true, lstm = true, ssd = true, vit = true }
for _, network in ipairs(dofile "tests/lua/support/zoo_networks.lua") do
  local name, net, x = table.unpack(network)
  write(name, net, { { x } }, sized[name] and "mindspore" or nil)
end
for n, case in ipairs(dofile "tests/lua/support/mindspore_operators.lua") do
  write(("operator_%03d"):format(n), case.f, { case.inputs }, "mindspore")
end
for n, case in ipairs(dofile "tests/lua/support/mindspore_programs.lua") do
  write(("program_%02d"):format(n), case.f, case.inputs, "mindspore")
end
