-- The parallel_mode "auto_parallel": strategies that are searched for, on processes and on ranks that one process simulates, give the
-- losses and parameters of one process.
-- Eager mode only: the script says the mode itself.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local program = arg[-1]:find "^/" and arg[-1] or os.getenv "PWD" .. "/" .. arg[-1]
local folder = os.tmpname()
os.remove(folder)
ms.io.make_folder(folder)

local function run(ranks, kind, simulated, mode)
  local launch = ranks > 1 and ("launch -n %d "):format(ranks) or ""
  local script = os.getenv "PWD" .. "/tests/lua/parallel/searched_script.lua"
  local pipe = io.popen(("cd '%s' && TMPDIR=. timeout -k 5 60 '%s' %s'%s' . %s %d %s 2>&1"):format(folder, program, launch, script, kind,
    simulated, mode))
  local text = pipe:read "a"
  assert(pipe:close(), text)
  local all = {}
  for rank = 0, ranks - 1 do
    local one = { losses = {}, sums = {} }
    for line in io.lines(("%s/%d-of-%d.txt"):format(folder, rank, ranks)) do
      local name, value = line:match "^(%S+) (%S+)$"
      if name == "loss" then table.insert(one.losses, tonumber(value))
      elseif name == "share" then one.share = tonumber(value)
      elseif name == "plan" then one.plan = value
      else one.sums[name] = tonumber(value) end
    end
    all[rank + 1] = one
  end
  return all
end

for kind, check in pairs {
  wide = function(one, ranks)
    -- Weights are divided, but for what is small.
    assert(one.plan:find("tp_" .. ranks, 1, true), one.plan)
    assert(one.share < 1 / ranks + 0.01, one.share)
  end,
  tall = function(one)
    assert(one.plan:find "^dp_" and not one.plan:find "tp", one.plan)
    t.equal(one.share, 1.0)
  end,
  convolutions = function(one) assert(one.plan) end,
} do
  t.test(("strategies of the network '%s'"):format(kind), function()
    local alone = run(1, kind, 0, "eager")[1]
    assert(alone.losses[6] < alone.losses[1])
    for _, case in ipairs { { 2, 0, "eager" }, { 4, 0, "eager" }, { 1, 4, "eager" }, { 2, 0, "graph" } } do
      local ranks, simulated, mode = table.unpack(case)
      for _, one in ipairs(run(ranks, kind, simulated, mode)) do
        t.near(one.losses, alone.losses, 5e-5)
        for name, sum in pairs(alone.sums) do t.near(one.sums[name], sum, 1e-2) end
        check(one, math.max(ranks, simulated))
      end
    end
  end)
end

os.execute(("rm -r '%s'"):format(folder))
t.finish()
