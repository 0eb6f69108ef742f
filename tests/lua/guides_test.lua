-- The guides of the reference are true: their transcripts give what stands below each line.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local transcript = require "transcript"
local entries = require "lunaria.help.entries"
local others = require "lunaria.help.other_names"
local own_names = require "support.own_names"

t.in_parts()
local lines = 0
for _, guide in ipairs(require "lunaria.help.guides") do
  t.test(guide.title, function()
    local run = transcript.new()
    for _, part in ipairs(guide.parts) do
      for _, row in ipairs(type(part) == "table" and part or {}) do
        lines = lines + 1
        local got = run(own_names(row[1]))
        if row[2] then t.equal(got, own_names(row[2])) end
        assert(not got:find "^[^\n]*:%d+: ", row[1] .. " gives " .. got)
      end
    end
  end)
end
t.test("there are guides for the usual tasks", function() assert(lines > 80, lines) end)
t.test("what other frameworks' names lead to exists", function()
  local missing = {}
  for _, rows in pairs(others) do
    for _, row in ipairs(rows) do
      local known = row[2] == "" or entries.names()[row[2]] or not row[2]:find "[%.:]"
      if not known then missing[#missing + 1] = row[2] end
    end
  end
  t.equal(missing, {})
end)

-- What the programs of the tables find: variables, and files in a folder of their own.
local function surroundings(folder)
  local nn = ms.nn
  local x, net = ms.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } }, nn.Dense(2, 2)
  local grads = {}
  for i, p in ipairs(net:trainable_params()) do grads[i] = ms.ops.zeros_like(p) end
  ms.save(folder .. "/a.npy", x)
  ms.save(folder .. "/w.npz", net:parameters_dict())
  ms.save_checkpoint(net, folder .. "/net.ckpt")
  return setmetatable({ ms = ms, nn = nn, ops = ms.ops, x = x, a = x, b = x + 1, y = ms.tensor { 0, 1 }, image = ms.ones { 1, 3, 8, 8 },
    f = function(v) return (v * v):sum() end, net = net, optimizer = nn.SGD(net:trainable_params(), 0.1), grads = grads,
    folder = folder }, { __index = _G })
end
t.test("what stands on the right of the tables of other names runs", function()
  local folder = os.tmpname()
  os.remove(folder)
  os.execute("mkdir " .. folder)
  local wrong, count = {}, 0
  for _, framework in ipairs { "pytorch", "mindspore", "numpy", "jax", "tensorflow" } do
    for _, row in ipairs(others[framework]) do
      local program, around = row[4], surroundings(folder)
      local run = program and (load("return " .. program, "=row", "t", around) or load(program, "=row", "t", around))
      local ran, result = pcall(run or error, "no program")
      count = count + 1
      if not ran then
        wrong[#wrong + 1] = ("%s: %s gives %s"):format(row[1], program, result)
      end
    end
  end
  os.execute("rm -r " .. folder)
  t.equal(wrong, {})
  assert(count > 400, count)
end)
ms.set_context { mode = ms.get_context "mode" }
t.finish()
