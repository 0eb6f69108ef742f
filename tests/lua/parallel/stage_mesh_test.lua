-- Operators with strategies inside of the stages of a pipeline: losses and parameters of one process, and a part of the parameters on each
-- rank.
-- Eager mode only: stages are not compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local program = arg[-1]:find "^/" and arg[-1] or os.getenv "PWD" .. "/" .. arg[-1]
local folder = os.tmpname()
os.remove(folder)
ms.io.make_folder(folder)

local function run(ranks, ...)
  local launch = ranks > 1 and ("launch -n %d "):format(ranks) or ""
  local script = os.getenv "PWD" .. "/tests/lua/parallel/stage_mesh_script.lua"
  local pipe = io.popen(("cd '%s' && TMPDIR=. timeout -k 5 60 '%s' %s'%s' . %s 2>&1"):format(folder, program, launch, script,
    table.concat({ ... }, " ")))
  local text = pipe:read "a"
  local ok = pipe:close()
  local job = text:match "lunaria ranks (%w+)"
  if job then os.execute("rm -f /dev/shm/lunaria-" .. job .. "-*") end
  return ok, text
end

-- What a rank wrote: losses, parameters by name, held elements.
local function results(rank, ranks)
  local losses, sums, held = {}, {}, nil
  for line in io.lines(("%s/%d-of-%d.txt"):format(folder, rank, ranks)) do
    local name, value = line:match "^(%S+) (%S+)$"
    if name == "loss" then losses[#losses + 1] = tonumber(value)
    elseif name == "held" then held = tonumber(value)
    else sums[name] = tonumber(value) end
  end
  return losses, sums, held
end

for _, case in ipairs {
  { "columns", 2, "1f1b" }, { "rows", 4, "gpipe" }, { "columns", 2, "zero_bubble_v" }, { "plan", 2, "zero_bubble_h1" },
} do
  local how, width, scheduler = table.unpack(case)
  t.test(("products divided by %s over %d ranks of each of 2 stages, %s"):format(how, width, scheduler),
    function()
      assert(run(1, width, how, scheduler))
      local ok, text = run(2 * width, width, how, scheduler)
      assert(ok, text)
      local losses, sums = results(0, 1)
      assert(losses[5] < losses[1])
      local seen = {}
      for rank = 0, 2 * width - 1 do
        local own, of_rank, held = results(rank, 2 * width)
        t.near(own, losses, 2e-6)
        local size = 0
        for name, sum in pairs(of_rank) do
          t.near(sum, sums[name], 1e-4)
          seen[name] = true
          size = size + 1
        end
        assert(size > 0)
        -- With a plan weights are divided, else products divide whole ones.
        if how == "plan" then t.equal(held, 64 + 8 + 64 + 8 + 16) end
      end
      for name in pairs(sums) do assert(seen[name], name) end
      local got, want = ms.load_checkpoint(folder .. "/together"), ms.load_checkpoint(folder .. "/alone.safetensors")
      for name, value in pairs(want) do t.near(got[name], value, 1e-5) end
      os.execute(("rm -r '%s/together'"):format(folder))
    end)
end

t.test("a block that is computed again in the backward pass has the same losses, masks of dropout included", function()
  assert(run(4, 2, "plan", "1f1b", "drop"))
  local losses = results(3, 4)
  assert(run(4, 2, "plan", "1f1b", "drop", "again"))
  t.equal(results(3, 4), losses)
end)

t.test("stages with strategies need the setting", function()
  local ok, text = run(4, 3, "columns", "1f1b")
  assert(not ok and text:find("divides over 3 ranks", 1, true), text)
end)

os.execute(("rm -r '%s'"):format(folder))
t.finish()
