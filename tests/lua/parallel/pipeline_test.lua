-- A network in stages on several ranks gives the numbers of one process.
-- Eager mode only: stages are not compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn = ms.nn

local program = arg[-1]:find "^/" and arg[-1] or os.getenv "PWD" .. "/" .. arg[-1]
local folder = os.tmpname()
os.remove(folder)
ms.io.make_folder(folder)

local function run(ranks, ...)
  local launch = ranks > 1 and ("launch -n %d "):format(ranks) or ""
  local script = os.getenv "PWD" .. "/tests/lua/parallel/pipeline_script.lua"
  local pipe = io.popen(("cd '%s' && TMPDIR=. timeout -k 5 60 '%s' %s'%s' %s 2>&1"):format(folder, program, launch, script,
    table.concat({ ... }, " ")))
  local text = pipe:read "a"
  local ok = pipe:close()
  -- What the ranks of a failed program asked of each other stays for `lunaria ranks`.
  local job = text:match "lunaria ranks (%w+)"
  if job then os.execute("rm -f /dev/shm/lunaria-" .. job .. "-*") end
  return text, ok
end

local function losses_of(text)
  local ok, list = pcall(ms.json.decode, text:match "%[[%d%.,e%-%+ ]+%]" or "")
  assert(ok and type(list) == "table" and #list == 5, text)
  return list
end

for i, case in ipairs {
  { 2, 1, 4, "1f1b", "SGD", "cell" }, { 2, 1, 4, "gpipe", "Adam", "function" }, { 3, 1, 2, "1f1b", "AdamWeightDecay", "cell" },
  { 2, 2, 4, "interleaved", "SGD", "cell" }, { 2, 1, 4, "1f1b", "Adam", "cell", 2 }, { 2, 2, 8, "interleaved", "SGD", "function", 2 },
  { 3, 1, 4, "zero_bubble_h1", "Adam", "cell" }, { 2, 1, 4, "zero_bubble_h2", "SGD", "function" },
  { 2, 2, 4, "zero_bubble_v", "Adam", "cell" }, { 2, 1, 8, "zero_bubble_h1", "SGD", "cell", 2 },
} do
  local stages, segments, micro, scheduler, optimizer, how, replicas = table.unpack(case)
  replicas = replicas or 1
  local title = ("%s in %d stages with %d segments, %d micro-batches and %d replicas"):format(scheduler, stages, segments, micro, replicas)
  t.test(title, function()
    local alone, together = ("%s/alone%d"):format(folder, i), ("%s/together%d"):format(folder, i)
    local expected = losses_of((run(1, alone, scheduler, micro, stages, segments, optimizer, how)))
    local text, ok = run(stages * replicas, together, scheduler, micro, stages, segments, optimizer, how, replicas)
    assert(ok, text)
    t.near(losses_of(text), expected, 2e-6)
    assert(expected[5] < expected[1])
    -- Each rank has written the parameters of its stage, and together they are the network.
    local got, want = ms.load_checkpoint(together), ms.load_checkpoint(alone .. ".safetensors")
    local checkpoint = require "lunaria.parallel.checkpoint".open(together)
    local files = {}
    for name, value in pairs(want) do
      t.near(got[name], value, 2e-6)
      local parts = checkpoint:tensor(name).parts
      t.equal(#parts, 1)
      files[parts[1].file] = true
    end
    local writers = 0
    for _ in pairs(files) do writers = writers + 1 end
    assert(writers >= stages, writers)
  end)
end

t.test("gradients of weights wait where they are asked to, with the bits that they have otherwise", function()
  local autodiff = require "lunaria.autodiff"
  ms.set_seed(2)
  local tied = nn.Dense(6, 6)
  for _, case in ipairs {
    { nn.SequentialCell(nn.Dense(6, 8), nn.LayerNorm { 8 }, nn.ReLU(), nn.Dense(8, 6)), { 5, 6 } },
    { nn.SequentialCell(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 3)), { 3, 2, 6, 6 } },
    { nn.SequentialCell(tied, nn.Tanh(), tied), { 5, 6 } },
  } do
    local net, x = case[1], ms.ops.randn(case[2])
    local params, d = net:trainable_params(), ms.ops.randn_like(net(x))
    local function gradients(later)
      local list = table.move(params, 1, #params, 1, { later = later })
      local pull, context = autodiff.vjp(function(v) return net(v) end, { [0] = true }, list, x)
      local of_input, early, all = pull(d), 0, {}
      for _, p in ipairs(params) do early = early + (autodiff.cotangent(context, p, 0) and 1 or 0) end
      autodiff.left(context)
      for i, p in ipairs(params) do all[i] = autodiff.cotangent(context, p, 0) end
      autodiff.left(context) -- nothing is left
      return of_input, early, all
    end
    local of_input, early, all = gradients(nil)
    local same, none, later = gradients(true)
    t.equal(early, #params)
    t.equal(none, 0)
    t.near(same, of_input, 0)
    for i = 1, #params do t.near(later[i], all[i], 0) end
  end
end)

t.test("what does not fit is told", function()
  local net = nn.SequentialCell(nn.Dense(2, 2), nn.ReLU(), nn.Dense(2, 2))
  t.fails("no cell of the chain: 1, 2, 3", nn.PipelineCell, net, 2, { stage_config = { fc = 0 } })
  t.fails("no cell is in stage 1", nn.PipelineCell, net, 2, { stage_config = { ["1"] = 0, ["3"] = 2 } })
  t.fails("is in stage 0 again, after others", nn.PipelineCell, net, 2, { stage_config = { ["1"] = 0, ["2"] = 1, ["3"] = 0 } })
  t.fails("stage_config must be an integer that is not negative", nn.PipelineCell, net, 2, { stage_config = { ["1"] = -1 } })
  t.fails("scheduler must be", nn.PipelineCell, net, 2, { scheduler = "zero_bubble" })
  local text, ok = run(2, folder .. "/x", "1f1b", 2, 3, 1, "SGD", "cell")
  assert(not ok and text:find("the network has 3 stages, the program 2 ranks: as many are needed, or a multiple", 1, true), text)
  -- In one process stages change nothing.
  local x, y = ms.randn { 4, 2 }, ms.randn { 4, 2 }
  local whole = nn.WithLossCell(net, nn.MSELoss())
  t.near(nn.PipelineCell(whole, 2, { stage_config = { ["backbone.1"] = 0, ["3"] = 1 } })(x, y), nn.PipelineCell(whole, 2)(x, y), 0)
end)

os.execute(("rm -r '%s'"):format(folder))
t.finish()
