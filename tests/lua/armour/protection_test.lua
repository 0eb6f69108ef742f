-- ms.armour.protection: watermarks, obfuscated weights. Takes about a second.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local P, nn, ops = ms.armour.protection, ms.nn, ms.ops

local function network()
  return nn.SequentialCell(nn.Conv2d(2, 4, 3, { has_bias = true }), nn.ReLU(), nn.Conv2d(4, 4, 3, { group = 2 }),
    nn.Flatten(), nn.Dense(4 * 25, 3))
end

t.test("a watermark is learnt, read by its key alone, and gone from other networks", function()
  local net = network()
  local bits = {}
  for i = 1, 32 do bits[i] = (i * 7 % 5 < 2) and 1 or 0 end
  local mark = P.Watermark(net[5].weight, bits, 42)
  local before = net[5].weight:copy()
  local optimizer = nn.Adam(net:trainable_params(), 0.01)
  local step = ms.value_and_grad(function() return mark:loss(2) end, nil, optimizer.parameters)
  for _ = 1, 60 do optimizer((select(2, step()))) end
  t.equal(mark:read(), bits)
  t.equal(mark:errors(), 0)
  t.near(mark:p_value(), 2.0 ^ -32, 1e-20)
  t.equal(mark:errors(before) > 4, true)
  t.equal(P.Watermark(net[5].weight, bits, 43):errors() > 4, true)
  t.near(mark:p_value(-net[5].weight), 1, 1e-12)
  t.fails("bits don't fit", function() P.Watermark(ms.Parameter(ops.ones { 2, 3 }), bits, 1) end)
  t.fails("bit 2 must be 0 or 1", function() P.Watermark(net[5].weight, { 1, 2 }, 1) end)
end)

t.test("a trigger set is its key's", function()
  local function set_of(key) return P.TriggerSet({ 2, 5, 5 }, 3, { key = key }) end
  local set, same, other = set_of(5), set_of(5), set_of(6)
  t.near(set.inputs, same.inputs, 0)
  t.equal(set.labels:tolist(), same.labels:tolist())
  t.equal(ops.max(ops.abs(set.inputs - other.inputs)):item() > 0.1, true)
  t.equal(set:accuracy(network()) < 1, true)
end)

local function written(net)
  local path = os.tmpname()
  os.remove(path)
  ms.save_checkpoint(net, path .. ".ckpt")
  return path
end

t.test("a scrambled checkpoint is of no use without its ratios, and exact with them", function()
  local net, x = network(), ops.rand(6, 2, 5, 5)
  local path = written(net)
  local ratios = ms.obfuscate_ckpt(net, path .. ".ckpt", { saved_path = "/tmp", obfuscate_scale = 30, seed = 8 })
  t.equal(#ratios, 3)
  local values = ms.load_checkpoint(path .. "_obf.ckpt")
  local plain = network()
  ms.load_param_into_net(plain, values)
  t.equal(ops.max(ops.abs(plain(x) - net(x))):item() > 0.01, true)
  local restored = ms.load_obf_params_into_net(network(), nil, ratios)
  ms.load_param_into_net(restored, values)
  t.equal(ops.all(ops.equal(restored(x), net(x))):item(), true)
  -- Other ratios are other keys.
  local wrong = ms.load_obf_params_into_net(network(), nil, { ratios[1] + 1e-9, ratios[2], ratios[3] })
  ms.load_param_into_net(wrong, values)
  t.equal(ops.max(ops.abs(wrong(x) - net(x))):item() > 0.01, true)
  -- Of some cells only.
  local one = ms.obfuscate_ckpt(net, path .. ".ckpt", { target_modules = { "4" }, saved_path = "/tmp" })
  t.equal(#one, 1)
  local part = ms.load_obf_params_into_net(network(), { "4" }, one)
  ms.load_param_into_net(part, ms.load_checkpoint(path .. "_obf.ckpt"))
  t.equal(ops.all(ops.equal(part(x), net(x))):item(), true)
  os.remove(path .. ".ckpt")
  os.remove(path .. "_obf.ckpt")
  t.fails("no Dense or convolution cell '9'", function() ms.load_obf_params_into_net(net, { "9" }, { 2.0 }) end)
  t.fails("a number for each of the 3 cells", function() ms.load_obf_params_into_net(net, nil, { 2.0 }) end)
  t.fails("obfuscate_scale must be more than 1", function() ms.obfuscate_ckpt(net, path, { obfuscate_scale = 1 }) end)
end)

t.test("a scrambled MindIR file is put right by its seed", function()
  local net, x = network(), ops.rand(1, 2, 5, 5)
  local path = os.tmpname()
  ms.save_mindir(net, path .. ".mindir", x)
  ms.obfuscate_model { original_model_path = path .. ".mindir", save_model_path = path .. "_obf.mindir", model_inputs = { x },
    obf_random_seed = 3 }
  t.equal(ops.max(ops.abs(nn.GraphCell(path .. "_obf.mindir")(x) - net(x))):item() > 0.01, true)
  t.near(nn.GraphCell(path .. "_obf.mindir", { obf_random_seed = 3 })(x), nn.GraphCell(path .. ".mindir")(x), 0)
  t.equal(ops.max(ops.abs(nn.GraphCell(path .. "_obf.mindir", nil, 4)(x) - net(x))):item() > 0.01, true)
  for _, ending in ipairs { "", ".mindir", "_obf.mindir" } do os.remove(path .. ending) end
  t.fails("obf_config has no field 'seed'", function() ms.obfuscate_model { seed = 1 } end)
end)

t.test("an encrypted checkpoint is read with its key alone, and says nothing of it", function()
  local net, key = network(), "0123456789abcdef"
  local path = os.tmpname()
  os.remove(path)
  for _, later in ipairs { false, true } do
    ms.save_checkpoint(net, path .. ".ckpt", { enc_key = key, async_save = later, append_dict = { note = "secret words" } })
    ms.async_ckpt_wait()
    local file <close> = io.open(path .. ".ckpt", "rb")
    local bytes = file:read "a"
    t.equal(bytes:find("weight", 1, true), nil)
    t.equal(bytes:find("secret words", 1, true), nil)
    local values = ms.load_checkpoint(path .. ".ckpt", { dec_key = key })
    for _, p in ipairs(net:trainable_params()) do t.near(values[p.name], p, 0) end
    t.equal(values.note, "secret words")
    local wrong = t.fails("the key is another one", function() ms.load_checkpoint(path .. ".ckpt", { dec_key = "0123456789abcdeF" }) end)
    t.equal(wrong:find("0123", 1, true), nil)
    t.fails("is encrypted", function() ms.load_checkpoint(path .. ".ckpt") end)
    -- One changed byte anywhere is seen.
    local changed = bytes:sub(1, 100) .. string.char(bytes:byte(101) ~ 1) .. bytes:sub(102)
    local out = assert(io.open(path .. ".ckpt", "wb"))
    out:write(changed)
    out:close()
    t.fails("cannot be decrypted", function() ms.load_checkpoint(path .. ".ckpt", { dec_key = key }) end)
  end
  ms.save_checkpoint(net, path .. ".ckpt")
  t.fails("is not encrypted", function() ms.load_checkpoint(path .. ".ckpt", { dec_key = key }) end)
  os.remove(path .. ".ckpt")
  local message = t.fails("must have 16, 24 or 32 bytes, got 7", function() ms.save_checkpoint(net, path, { enc_key = "hunter2" }) end)
  t.equal(message:find("hunter2", 1, true), nil)
  message = t.fails("must be a text or nil", function() ms.save_checkpoint(net, path, { enc_key = 12345678 }) end)
  t.equal(message:find("12345678", 1, true), nil)
  t.fails("only .ckpt files are encrypted", function() ms.save_checkpoint(net, path .. ".safetensors", { enc_key = key }) end)
end)

t.test("encrypted bytes are not taken for another format", function()
  local key, path = "0123456789abcdef", os.tmpname()
  os.remove(path)
  local function begins_like_safetensors()
    local file <close> = io.open(path .. ".ckpt", "rb")
    return file:read(9):sub(9) == "{"
  end
  for _ = 1, 20000 do
    ms.save_checkpoint({ w = ms.ones { 2 } }, path .. ".ckpt", { enc_key = key })
    if begins_like_safetensors() then break end
  end
  t.equal(begins_like_safetensors(), true)
  t.near(ms.load_checkpoint(path .. ".ckpt", { dec_key = key }).w, ms.ones { 2 }, 0)
  os.remove(path .. ".ckpt")
end)

t.test("an encrypted MindIR file is read with its key alone", function()
  local net, x, key = network(), ops.rand(1, 2, 5, 5), ("k"):rep(32)
  local path = os.tmpname()
  ms.export(net, x, { file_name = path, file_format = "MINDIR", enc_key = key })
  t.near(ms.load_mindir(path .. ".mindir", { dec_key = key })(x), net(x), 1e-6)
  t.near(ms.load(path .. ".mindir", { dec_key = key })(x), net(x), 1e-6)
  t.fails("is encrypted, and there is no key", function() ms.load_mindir(path .. ".mindir") end)
  t.fails("the key is another one", function() ms.load_mindir(path .. ".mindir", { dec_key = ("l"):rep(32) }) end)
  t.fails("must have 16, 24 or 32 bytes, got 3", function() ms.export(net, x, { file_name = path, enc_key = "abc" }) end)
  os.remove(path)
  os.remove(path .. ".mindir")
end)

t.test("errors do not tell keys and secret seeds", function()
  local weight = nn.Dense(8, 3).weight
  local config = { original_model_path = "a", save_model_path = "b", model_inputs = { weight }, obf_random_seed = -9876 }
  local calls = {
    function() ms.armour.protection.Watermark(weight, { 1, 0 }, -9876) end,
    function() ms.armour.protection.TriggerSet({ 2 }, 3, { key = "9876" }) end,
    function() ms.load_obf_params_into_net(nn.SequentialCell(nn.Dense(8, 3)), nil, { "9876" }) end,
    function() ms.obfuscate_model(config) end,
    function() ms.armour.privacy.diff_privacy.NoiseGaussianRandom { secure = true, seed = 9876 } end,
  }
  for _, call in ipairs(calls) do
    local message = t.fails("", call)
    t.equal(message:match "^[^\n]*":find("9876", 1, true), nil)
  end
end)

t.finish()
