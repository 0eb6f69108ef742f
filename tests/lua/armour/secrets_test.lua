-- Secrets are in no message, no state that is saved and no dump of the process. One second.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, armour = ms.nn, ms.armour
local dp, protection = armour.privacy.diff_privacy, armour.protection

-- What a process with other secrets than this one's writes into a dump.
local function filter_after(code)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write("local ms = require 'lunaria'\n", code, "\nprint(io.open('/proc/self/coredump_filter'):read 'l')\n")
  file:close()
  local pipe = assert(io.popen(("'%s' %s"):format(arg[-1], path)))
  local got = pipe:read "a"
  pipe:close()
  os.remove(path)
  return tonumber(got:match "(%x+)%s*$" or "", 16)
end

t.test("a process that holds a secret leaves its memory out of dumps", function()
  local before = filter_after ""
  if before == nil then return end
  t.equal(before ~= 0x10, true)
  for _, code in ipairs {
    "ms.armour.privacy.diff_privacy.NoiseGaussianRandom({ secure = true })(ms.zeros { 3 })",
    "ms.armour.protection.TriggerSet({ 4 }, 3, { key = 99 })",
    "ms.save_checkpoint(ms.nn.Dense(2, 2), os.tmpname(), { enc_key = ('k'):rep(16) })",
    "ms.armour.privacy.statistics.count(ms.tensor { true, false }, { epsilon = 1.0 })",
  } do
    t.equal({ code, filter_after(code) }, { code, 0x10 })
  end
end)

t.test("messages do not show secrets", function()
  local secret = 918273645
  local net = nn.SequentialCell(nn.Dense(4, 3))
  local calls = {
    function() dp.NoiseGaussianRandom { secure = true, seed = secret } end,
    function() dp.DPModel(net, { optimizer = nn.SGD(net:trainable_params(), 0.1), loss_fn = nn.CrossEntropyLoss(), secure = true,
      seed = secret }) end,
    function() protection.TriggerSet({ 4 }, 3, { key = -secret }) end,
    function() protection.Watermark(net:trainable_params()[1], { 1, 0 }, secret + 0.5) end,
    function() ms.load_obf_params_into_net(net, { "0" }, { -secret }) end,
    function() ms.save_checkpoint(net, "/tmp/none.ckpt", { enc_key = tostring(secret) }) end,
  }
  for i, call in ipairs(calls) do
    local ok, message = pcall(call)
    t.equal({ i, ok, tostring(message):find("918273645", 1, true) }, { i, false, nil })
  end
  local set = protection.TriggerSet({ 4 }, 3, { key = secret })
  t.equal(tostring(set):find("918273645", 1, true), nil)
  local noise = dp.NoiseGaussianRandom { secure = true }
  noise(ms.zeros { 2 })
  t.equal(noise:state_dict().random, nil)
end)

t.finish()
