-- Checkpoints: what is written is read again, MindSpore's own files, wrong and damaged files, networks that do not fit.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn = ms.nn

local folder = os.tmpname()
os.remove(folder)
ms.io.make_folder(folder)
local function at(name) return folder .. "/" .. name end

local samples = "tests/data/samples/ckpt/"

local function bytes_of(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read("a")
end
local function write_bytes(path, bytes)
  local file <close> = assert(io.open(path, "wb"))
  file:write(bytes)
  return path
end

local Net = nn.Cell:extend("Net")
function Net:init()
  self.fc = nn.Dense(3, 2)
  self.norm = nn.BatchNorm1d(2)
end
function Net:construct(x) return self.norm(self.fc(x)) end

t.test("what is saved is loaded, in both formats, in all dtypes", function()
  local values = { scalar = ms.tensor(2.5, ms.float64), empty = ms.zeros { 0, 3 } }
  for _, name in ipairs { "float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8", "bool_" } do
    values[name] = ms.tensor({ { 0, 1, 1 }, { 1, 0, 1 } }):astype(ms[name])
  end
  for _, path in ipairs { at "all.ckpt", at "all.safetensors" } do
    ms.save_checkpoint(values, path)
    local loaded = ms.load_checkpoint(path)
    for name, value in pairs(values) do
      assert(ms.is_parameter(loaded[name]) and loaded[name].name == name)
      t.equal({ loaded[name].dtype, loaded[name].shape, loaded[name]:tolist() }, { value.dtype, value.shape, value:tolist() })
    end
  end
  t.equal(ms.io.list_folder(folder), { "all.ckpt", "all.safetensors" })
end)

t.test("a network is saved and another takes up its parameters", function()
  local net, other = Net(), Net()
  net.norm.moving_mean:assign(ms.tensor { 1.0, 2.0 })
  ms.save_checkpoint(net, at "net")
  local missing, left = ms.load_param_into_net(other, ms.load_checkpoint(at "net.ckpt"), { strict_load = true })
  t.equal({ missing, left }, { {}, {} })
  for name, parameter in net:parameters_and_names() do t.equal(other:parameters_dict()[name]:tolist(), parameter:tolist()) end
  local third = Net()
  ms.load_checkpoint(at "net.ckpt", third)
  t.equal(third.norm.moving_mean:tolist(), { 1.0, 2.0 })
  -- Wrapped in other cells a network's parameters keep their names.
  local step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net:trainable_params()))
  t.equal(net.fc.weight.name, "fc.weight")
  assert(step.optimizer["moment1.fc.weight"])
end)

t.test("appended values, choices, prefixes", function()
  local net = Net()
  ms.save_checkpoint(net, at "more.ckpt", { append_dict = { epoch = 3, rate = 0.5, done = true, words = "grüße ✓ 𝄞" },
    choice_func = function(name) return not name:find "norm" end, crc_check = true })
  local loaded = ms.load_checkpoint(at "more.ckpt", { crc_check = true })
  t.equal({ loaded.epoch:item(), loaded.rate:item(), loaded.done:item(), loaded.words }, { 3, 0.5, true, "grüße ✓ 𝄞" })
  t.equal(loaded["norm.gamma"], nil)
  assert(loaded["fc.bias"])
  ms.save_checkpoint({ { name = "a.x", data = ms.ones { 1 } }, { name = "b.x", data = ms.zeros { 1 } } }, at "prefix.safetensors",
    { append_dict = { note = "hello" } })
  local function names(options)
    local list = {}
    for name in pairs(ms.load_checkpoint(at "prefix.safetensors", options)) do list[#list + 1] = name end
    table.sort(list)
    return table.concat(list, " ")
  end
  t.equal(names { crc_check = false }, "a.x b.x note")
  t.equal(names { specify_prefix = "a." }, "a.x")
  t.equal(names { filter_prefix = { "a.", "n" } }, "b.x")
  t.equal(names { choice_func = function(name) return name == "b.x" end }, "b.x")
end)

t.test("MindSpore's files read as it wrote them", function()
  local plain, crc, same = ms.load_checkpoint(samples .. "plain.ckpt"), ms.load_checkpoint(samples .. "crc.ckpt", { crc_check = true }),
    ms.load_checkpoint(samples .. "ms.safetensors")
  t.near(plain["w.float32"][{ 0, 0 }]:item(), 0.5484054684638977, 0)
  for name, value in pairs(plain) do t.equal(crc[name]:tolist(), value:tolist()) end
  for name, value in pairs(same) do t.equal({ value.dtype, value:tolist() }, { plain[name].dtype, plain[name]:tolist() }) end
  assert(next(ms.load_checkpoint(samples .. "net_convnet.ckpt")))
  local appended = ms.load_checkpoint(samples .. "append.ckpt")
  local texts = 0
  for _, value in pairs(appended) do texts = texts + (type(value) == "string" and 1 or 0) end
  t.equal(texts, 1)
end)

t.test("our files have MindSpore's bytes", function()
  local values, names = ms.io.read_ckpt(samples .. "plain.ckpt")
  ms.io.write_ckpt(at "again.ckpt", values, names, false)
  t.equal(bytes_of(at "again.ckpt"), bytes_of(samples .. "plain.ckpt"))
  values, names = ms.io.read_ckpt(samples .. "crc.ckpt")
  ms.io.write_ckpt(at "again.ckpt", values, names, true)
  t.equal(bytes_of(at "again.ckpt"), bytes_of(samples .. "crc.ckpt"))
  values, names = ms.io.read_ckpt(samples .. "append.ckpt")
  ms.io.write_ckpt(at "again.ckpt", values, names, false)
  t.equal(bytes_of(at "again.ckpt"), bytes_of(samples .. "append.ckpt"))
end)

t.test("formats are converted", function()
  t.equal(ms.ckpt_to_safetensors(samples .. "plain.ckpt", at "converted"), { at "converted/plain.safetensors" })
  t.equal(ms.safetensors_to_ckpt(at "converted"), { at "converted/plain.ckpt" })
  for name, value in pairs(ms.load_checkpoint(samples .. "plain.ckpt")) do
    t.equal(ms.load_checkpoint(at "converted/plain.ckpt")[name]:tolist(), value:tolist())
  end
end)

t.test("models in several files", function()
  ms.io.make_folder(at "sharded")
  ms.save_safetensors(at "sharded/model-00001-of-00002.safetensors", { a = ms.ones { 2 }, b = ms.zeros { 1 } })
  ms.save_safetensors(at "sharded/model-00002-of-00002.safetensors", { c = ms.ones { 3 } })
  local index = [[{"metadata":{"total_size":24},"weight_map":{"a":"model-00001-of-00002.safetensors",
    "b":"model-00001-of-00002.safetensors","c":"model-00002-of-00002.safetensors"}}]]
  write_bytes(at "sharded/model.safetensors.index.json", index)
  for _, path in ipairs { at "sharded", at "sharded/model.safetensors.index.json" } do
    local loaded = ms.load_checkpoint(path)
    t.equal({ loaded.a:tolist(), loaded.b:tolist(), loaded.c:tolist() }, { { 1.0, 1.0 }, { 0.0 }, { 1.0, 1.0, 1.0 } })
  end
  for _, file in ipairs { "../x.safetensors", "/etc/passwd", "", ".hidden" } do
    write_bytes(at "sharded/bad.index.json", ms.json.encode { weight_map = { a = file } })
    t.fails({ "bad.index.json", "which is no file of the folder" }, ms.load_checkpoint, at "sharded/bad.index.json")
  end
  write_bytes(at "sharded/bad.index.json", "{\"weight_map\": 3")
  t.fails({ "is not the index of a checkpoint" }, ms.load_checkpoint, at "sharded/bad.index.json")
end)

t.test("networks that do not fit are not changed", function()
  local net = Net()
  local before = net.fc.weight:tolist()
  local good = { ["fc.weight"] = ms.ones { 2, 3 }, ["fc.bias"] = ms.ones { 2 } }
  local missing, left = ms.load_param_into_net(net, { ["fc.weight"] = ms.ones { 2, 3 }, other = ms.ones { 1 } })
  t.equal(missing, { "fc.bias", "norm.moving_mean", "norm.moving_variance", "norm.gamma", "norm.beta" })
  t.equal(left, { "other" })
  t.equal(net.fc.weight:tolist(), { { 1.0, 1.0, 1.0 }, { 1.0, 1.0, 1.0 } })
  net.fc.weight:assign(ms.tensor(before))
  good["fc.bias"] = ms.ones { 3 }
  t.fails({ "load_param_into_net: fc.bias has shape (2,) in the network and (3,) in the checkpoint" }, ms.load_param_into_net, net, good)
  good["fc.bias"] = ms.ones({ 2 }):astype(ms.int32)
  t.fails({ "fc.bias is Float32 in the network and Int32 in the checkpoint" }, ms.load_param_into_net, net, good)
  good["fc.bias"] = "text"
  t.fails({ "fc.bias must be a tensor, got the string 'text'" }, ms.load_param_into_net, net, good)
  good["fc.bias"] = ms.ones({ 2 }):astype(ms.float16)
  t.fails({ "fc.bias is Float32 in the network and Float16" }, ms.load_param_into_net, net, good, true)
  good["fc.bias"] = ms.ones { 2 }
  t.fails({ "the checkpoint has no norm.moving_mean, norm.moving_variance" }, ms.load_param_into_net, net, good, { strict_load = true })
  t.near(net.fc.weight, before, 0)
  good["fc.bias"] = ms.ones({ 2 }):astype(ms.float16)
  ms.load_param_into_net(net, good)
  t.equal({ net.fc.bias.dtype, net.fc.bias:tolist() }, { ms.float32, { 1.0, 1.0 } })
  local prefixed = {}
  for name, parameter in net:parameters_and_names() do prefixed["backbone." .. name] = parameter + 1 end
  t.equal(#ms.load_param_into_net(net, prefixed), 0)
  t.equal(net.fc.bias:tolist(), { 2.0, 2.0 })
end)

t.test("damaged files end in an error that tells the offset", function()
  local whole = bytes_of(samples .. "plain.ckpt")
  for length = 0, #whole - 1, 3 do
    local ok, message = pcall(ms.load_checkpoint, write_bytes(at "cut.ckpt", whole:sub(1, length)))
    -- A file that ends between two tensors is a whole one.
    if not ok then assert(message:find "offset" or message:find "empty" or message:find "truncated", message) end
  end
  local summed = bytes_of(samples .. "crc.ckpt")
  for i = 1, #summed do
    for _, bit in ipairs { 1, 64 } do
      local flipped = summed:sub(1, i - 1) .. string.char(summed:byte(i) ~ bit) .. summed:sub(i + 1)
      t.fails({}, ms.load_checkpoint, write_bytes(at "flipped.ckpt", flipped), { crc_check = true })
    end
  end
  for i = 1, #whole do
    local flipped = whole:sub(1, i - 1) .. string.char(whole:byte(i) ~ 128) .. whole:sub(i + 1)
    local ok, message = pcall(ms.load_checkpoint, write_bytes(at "flipped.ckpt", flipped))
    assert(ok or type(message) == "string" and #message > 0)
  end
  t.fails({ "offset", "truncated" }, ms.load_checkpoint, samples .. "REJECT_truncated.ckpt")
  t.fails({ "checksum" }, ms.load_checkpoint, samples .. "REJECT_crc_flip.ckpt")
  assert(ms.load_checkpoint(samples .. "REJECT_crc_flip.ckpt", { crc_check = false }))
  t.fails({ "has no checksum" }, ms.load_checkpoint, samples .. "plain.ckpt", { crc_check = true })
end)

-- A message of fields { number, text } or { number, integer }.
local function varint(n)
  local bytes = {}
  repeat
    bytes[#bytes + 1] = string.char((n & 127) | (n >> 7 ~= 0 and 128 or 0))
    n = n >> 7
  until n == 0
  return table.concat(bytes)
end
local function message(fields)
  local parts = {}
  for _, field in ipairs(fields) do
    local number, value = field[1], field[2]
    local is_text = type(value) == "string"
    parts[#parts + 1] = is_text and varint(number << 3 | 2) .. varint(#value) .. value or varint(number << 3) .. varint(value)
  end
  return table.concat(parts)
end
local function entry(name, dims, kind, content)
  local fields = {}
  for _, size in ipairs(dims) do fields[#fields + 1] = { 1, size } end
  fields[#fields + 1], fields[#fields + 2] = { 2, kind }, { 3, content }
  return message { { 1, message { { 1, name }, { 2, message(fields) } } } }
end

t.test("files that lie are refused without taking memory", function()
  local function refused(texts, bytes)
    local before = ms.memory_stats().live_bytes
    t.fails(texts, ms.load_checkpoint, write_bytes(at "lie.ckpt", bytes))
    assert(ms.memory_stats().live_bytes - before < 1e6)
  end
  refused({ "'w'", "bytes" }, entry("w", { 1 << 40 }, "Float32", "1234"))
  refused({ "'w'" }, entry("w", { 1 << 33, 1 << 33 }, "Float32", "1234"))
  refused({ "'w'" }, entry("w", { -2 }, "Float32", "12345678"))
  refused({ "'w'", "bytes are left over" }, entry("w", { 1 }, "Float32", "12345678"))
  refused({ "'w'", "the type 'Float99'" }, entry("w", { 1 }, "Float99", "1234"))
  refused({ "offset 24", "another shape or type" }, entry("w", { 1 }, "Float32", "1234") .. entry("w", { 2 }, "Float32", "12345678"))
  refused({ "'w' is there twice" },
    entry("w", { 1 }, "Float32", "1234") .. entry("v", { 1 }, "Float32", "1234") .. entry("w", { 1 }, "Float32", "1234"))
  refused({ "offset", "no UTF-8" }, entry("\xff", { 1 }, "Float32", "1234"))
  refused({ "offset", "zero byte" }, entry("a\0b", { 1 }, "Float32", "1234"))
  refused({ "truncated", "offset 0" }, "\x0a" .. varint(math.maxinteger))
  refused({ "offset 0", "longer than 64 bits" }, "\x0a" .. ("\xff"):rep(11))
  refused({ "map of tensors" }, message { { 1, message { { 1, "w" }, { 3, "x" } } } })
  refused({ "no name or no tensor" }, message { { 1, message { { 1, "w" } } } })
  refused({ "whole letters" }, entry("w", { 0 }, "str", "12345"))
  refused({ "encrypted" }, "\xd8\x5e\x3a\x7f" .. ("x"):rep(50))
  -- The content of one tensor in two pieces, and an old scalar.
  local loaded = ms.load_checkpoint(write_bytes(at "pieces.ckpt",
    entry("w", { 2 }, "Int32", "\1\0\0\0") .. entry("w", { 2 }, "Int32", "\2\0\0\0") .. entry("s", { 0 }, "Int32", "\3\0\0\0")))
  t.equal({ loaded.w:tolist(), loaded.s:item() }, { { 1, 2 }, 3 })
  local many = {}
  for i = 1, 20000 do many[i] = entry("w" .. i, { 0, 3 }, "Float32", "") end
  local count = 0
  for _ in pairs(ms.load_checkpoint(write_bytes(at "many.ckpt", table.concat(many)))) do count = count + 1 end
  t.equal(count, 20000)
end)

t.test("what is wrong is named", function()
  local net = Net()
  t.fails({ "save_checkpoint", "save_obj must be a cell", "got 3" }, ms.save_checkpoint, 3, at "x.ckpt")
  t.fails({ "save_checkpoint", "ckpt_file_name must be a path, got 5" }, ms.save_checkpoint, net, 5)
  t.fails({ "save_checkpoint", "the value of w must be a tensor, got a table" }, ms.save_checkpoint, { w = { {} } }, at "x.ckpt")
  t.fails({ "save_checkpoint", "there is nothing to save" }, ms.save_checkpoint, net, at "x.ckpt", { choice_func = function() end })
  t.fails({ "save_checkpoint", "fc.weight is there twice" }, ms.save_checkpoint, net, at "x.ckpt", { append_dict = { ["fc.weight"] = 3 } })
  t.fails({ "save_checkpoint", "enc_key" }, ms.save_checkpoint, net, at "x.ckpt", { enc_key = "key" })
  t.fails({ "No such file", "directory" }, ms.save_checkpoint, net, "/proc/no/such/dir/x.ckpt")
  t.fails({ "/proc/no/such/file.ckpt", "No such file" }, ms.load_checkpoint, "/proc/no/such/file.ckpt")
  t.fails({ "is a directory without a file" }, ms.load_checkpoint, folder)
  t.fails({ "is a device, not a regular file" }, ms.load_checkpoint, "/dev/zero")
  t.fails({ "Python pickle", "save_file" }, ms.load_checkpoint, "weights.pt")
  -- What ms.save wrote as .npz is read; a pickle of that name is not.
  local one, other = nn.Dense(2, 1), nn.Dense(2, 1)
  ms.save(at "one.npz", one:parameters_dict())
  t.equal(ms.load_weights(other, at "one.npz"), {})
  t.equal(other.weight:tolist(), one.weight:tolist())
  t.fails({ "unknown format", "checkpoint" }, ms.load_checkpoint, "tests/data/samples/img/rgb.png")
  t.fails({ "is a ckpt file, not a safetensors file" }, ms.load_checkpoint, samples .. "plain.ckpt", { format = "safetensors" })
  t.fails({ "has no parameter whose name is wanted" }, ms.load_checkpoint, samples .. "plain.ckpt", { specify_prefix = "zzz" })
  t.fails({ "load_param_into_net", "net must be a cell" }, ms.load_param_into_net, 3, {})
  t.fails({ "load_param_into_net", "parameter_dict must be a table", "ms.load_checkpoint(path)" }, ms.load_param_into_net, net, "x")
  t.fails({ "ckpt_to_safetensors", "there is no .ckpt file" }, ms.ckpt_to_safetensors, at "nothing.txt")
  os.execute(("ln -s /dev/full '%s'"):format(at "full.ckpt"))
  t.fails({ "full.ckpt", "No space left" }, ms.save_checkpoint, { w = ms.ones { 1 << 20 } }, at "full.ckpt")
end)

os.execute("rm -rf '" .. folder .. "'")
t.finish()
