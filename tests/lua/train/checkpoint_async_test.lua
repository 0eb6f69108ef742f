-- Checkpoints that threads write and read while the program goes on, and tensors that stay in their file.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, train = ms.nn, ms.train

local folder = os.tmpname()
os.remove(folder)
ms.io.make_folder(folder)
local function at(name) return folder .. "/" .. name end
local function bytes_of(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read("a")
end
local program = arg[-1]
-- Runs Lua text in a program of its own: its exit status and what it wrote.
local function run(text)
  local file <close> = assert(io.open(at "script.lua", "w"))
  file:write(text)
  file:close()
  local pipe = assert(io.popen(("'%s' '%s' 2>&1"):format(program, at "script.lua")))
  local output = pipe:read("a")
  local _, _, status = pipe:close()
  return status, output
end

t.test("a file holds the values of the call, whatever is done to them meanwhile", function()
  for _, format in ipairs { "ckpt", "safetensors" } do
    local w, view = ms.ones { 1 << 20 }, ms.arange(12):reshape { 3, 4 }:transpose(0, 1)
    local p = ms.Parameter(ms.zeros { 1 << 20 }, "p")
    for round = 1, 5 do
      ms.save_checkpoint({ w = w, p = p, view = view, round = round }, at "values", { format = format, async_save = true })
      w[0] = -1
      p:assign(ms.full({ 1 << 20 }, round))
      p[5] = 100
      ms.async_ckpt_wait()
      assert(not ms.async_ckpt_thread_status())
      local loaded = ms.load_checkpoint(at("values." .. format))
      t.equal({ loaded.round:item(), loaded.w[0]:item(), loaded.w:sum():item() }, { round, 1.0, 1.0 * (1 << 20) })
      t.equal({ loaded.p:min():item(), loaded.p:max():item() }, { round - 1.0, round - 1.0 })
      t.equal(loaded.view:tolist(), view:tolist())
      w, p = ms.ones { 1 << 20 }, ms.Parameter(ms.full({ 1 << 20 }, round), "p")
    end
  end
end)

local images, labels = ms.randn { 16, 32 }, ms.randint(0, 3, { 16 })
local function model_of()
  ms.set_seed(3)
  local net = nn.SequentialCell(nn.Dense(32, 256), nn.ReLU(), nn.Dense(256, 3))
  return ms.Model(net, nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.01)), net
end
local batches = {}
for i = 0, 7 do batches[i + 1] = { images[{ ms.slice(2 * i, 2 * i + 2) }], labels[{ ms.slice(2 * i, 2 * i + 2) }] } end

t.test("the files of a training are those that are written at once", function()
  for _, sink in ipairs { false, true } do
    local folders = {}
    for _, async in ipairs { false, "thread" } do
      local directory = at(("files_%s_%s"):format(sink, async))
      local model = model_of()
      ms.set_context { deterministic = true }
      local options = { save_checkpoint_steps = sink and 4 or 1, keep_checkpoint_max = 0, async_save = async }
      model:train(2, batches, train.ModelCheckpoint("net", directory, train.CheckpointConfig(options)),
        { dataset_sink_mode = sink, sink_size = 4 })
      folders[#folders + 1] = directory
    end
    local names = ms.io.list_folder(folders[1])
    t.equal(#names, sink and 4 or 16)
    t.equal(ms.io.list_folder(folders[2]), names)
    for _, name in ipairs(names) do
      assert(bytes_of(folders[1] .. "/" .. name) == bytes_of(folders[2] .. "/" .. name), name)
    end
  end
end)

t.test("a file that others replace goes when the new one is whole", function()
  local directory = at "kept"
  local model = model_of()
  local saving = train.ModelCheckpoint("net", directory, train.CheckpointConfig { save_checkpoint_steps = 1, keep_checkpoint_max = 1,
    async_save = true })
  local least = 100
  local watch = train.LambdaCallback { on_train_step_end = function(context)
    if context:original_args().cur_step_num < 3 then return end
    local whole = 0
    for _, name in ipairs(ms.io.list_folder(directory)) do whole = whole + (name:find("%.ckpt$") and 1 or 0) end
    least = math.min(least, whole)
  end }
  model:train(2, batches, { saving, watch })
  assert(least >= 1)
  t.equal(ms.io.list_folder(directory), { "net-2_8.ckpt" })
  assert(ms.load_checkpoint(saving.last_checkpoint)["0.weight"])
end)

t.test("what cannot begin is told at once, what fails later by the next call", function()
  t.fails({ "nowhere", "No such file or directory" }, ms.save_checkpoint, { w = ms.ones { 1 } }, at "nowhere/x", { async_save = true })
  t.fails({ "async_save must be true, false or \"thread\"" }, ms.save_checkpoint, { w = ms.ones { 1 } }, at "x", { async_save = "process" })
  t.fails({ "the name", "is no UTF-8" }, ms.save_checkpoint, { ["a\xff"] = ms.ones { 1 } }, at "x.ckpt", { async_save = true })
  assert(not ms.async_ckpt_thread_status())
  os.execute(("ln -s /dev/full '%s'"):format(at "full.ckpt"))
  ms.save_checkpoint({ w = ms.ones { 1 << 20 } }, at "full.ckpt", { async_save = true })
  t.fails({ "full.ckpt: writing failed: No space left on device" }, ms.save_checkpoint, { w = ms.ones { 1 } }, at "x",
    { async_save = true })
  ms.save_checkpoint({ w = ms.ones { 1 } }, at "x", { async_save = true })
  ms.async_ckpt_wait()
  t.equal(ms.load_checkpoint(at "x.ckpt").w:tolist(), { 1.0 })
  local model = model_of()
  os.execute(("mkdir '%s'; for i in 1 2 3; do ln -s /dev/full '%s'/net-1_$i.ckpt; done"):format(at "disk", at "disk"))
  t.fails({ "net-1_1.ckpt: writing failed: No space left" }, model.train, model, 1, batches,
    train.ModelCheckpoint("net", at "disk", train.CheckpointConfig { async_save = true }))
end)

t.test("a full disk and a read-only folder leave the file that is there", function()
  -- In a name space of its own a program may mount a small disk; not every system lets it.
  local mount = ("unshare -rm sh -c \"mount -t tmpfs -o size=3m tmpfs '%s' && %%s\" 2>&1"):format(folder)
  if not os.execute(mount:format "true" .. " >/dev/null") then
    print "skipped: no disk can be mounted here"
    return
  end
  local script = os.tmpname()
  local file <close> = assert(io.open(script, "w"))
  file:write(([[local ms = require "lunaria"
    local path = %q
    if arg[1] == "first" then ms.save_checkpoint({ w = ms.ones { 200000 } }, path) end
    for _, async in ipairs { false, true } do
      local ok, message = pcall(function()
        ms.save_checkpoint({ w = ms.ones { 900000 } }, path, { async_save = async })
        ms.async_ckpt_wait()
      end)
      print(ok, message, ms.load_checkpoint(path).w.size, table.concat(ms.io.list_folder(path:match "^(.*)/"), " "))
    end]]):format(at "disk.ckpt"))
  file:close()
  local pipe = assert(io.popen(mount:format(("'%s' '%s' first && mount -o remount,ro '%s' && '%s' '%s'"):format(program, script, folder,
    program, script))))
  local lines = {}
  for line in pipe:lines() do lines[#lines + 1] = line end
  pipe:close()
  os.remove(script)
  t.equal(#lines, 4)
  for i, line in ipairs(lines) do
    assert(line:find "^false\t.*disk%.ckpt: ", line)
    assert(line:find(i <= 2 and "writing failed: No space left on device" or "cannot be written: Read-only file system", 1, true), line)
    assert(line:find "\t200000\tdisk%.ckpt$", line)
  end
end)

t.test("the end of the program waits for the file, and tells when it fails", function()
  for _, ending in ipairs { "", "os.exit(0)", "os.exit(true, true)" } do
    os.remove(at "end.ckpt")
    local status, output = run(([[local ms = require "lunaria"
      ms.save_checkpoint({ w = ms.ones { 1 << 22 } }, %q, { async_save = true }) %s]]):format(at "end.ckpt", ending))
    t.equal({ status, output }, { 0, "" })
    t.equal(ms.load_checkpoint(at "end.ckpt").w.size, 1 << 22)
    assert(not io.open(at "end.ckpt.tmp"))
    status, output = run(([[local ms = require "lunaria"
      ms.save_checkpoint({ w = ms.ones { 1 << 22 } }, %q, { async_save = true }) %s]]):format(at "full.ckpt", ending))
    assert(status == 1 and output:find("full.ckpt was to be written without waiting and is not", 1, true), output)
  end
end)

t.test("a thread reads what the program would read", function()
  local net = nn.Dense(3, 2)
  for _, name in ipairs { "read.ckpt", "read.safetensors" } do
    ms.save_checkpoint(net, at(name), { append_dict = { note = "hello", step = 7 } })
    local loading = ms.load_checkpoint_async(at(name), { filter_prefix = "bias" })
    local loaded = loading:result()
    assert(loading:done() and loading:result() == loaded)
    t.equal({ loaded.note, loaded.step:item(), loaded.bias }, { "hello", 7, nil })
    t.equal(loaded.weight:tolist(), net.weight:tolist())
    local other = nn.Dense(3, 2)
    ms.load_checkpoint_async(at(name), other):result()
    t.equal(other.weight:tolist(), net.weight:tolist())
    local bytes = bytes_of(at(name))
    local file <close> = assert(io.open(at("cut_" .. name), "wb"))
    file:write(bytes:sub(1, -9))
    file:close()
    local cut = ms.load_checkpoint_async(at("cut_" .. name))
    t.fails({ "cut_" .. name }, cut.result, cut)
  end
  t.fails({ "nothing.ckpt", "No such file" }, ms.load_checkpoint_async, at "nothing.ckpt")
  t.fails({ "load_checkpoint_async: net must be a cell" }, ms.load_checkpoint_async, at "read.ckpt", 3)
  -- A handle that nothing waits for.
  for _ = 1, 20 do ms.load_checkpoint_async(at "read.ckpt") end
  collectgarbage()
  ms.io.make_folder(at "parts")
  ms.save_safetensors(at "parts/one.safetensors", { a = ms.ones { 2 } })
  ms.save_safetensors(at "parts/two.safetensors", { b = ms.zeros { 2 }, c = ms.zeros { 1 } })
  local file <close> = assert(io.open(at "parts/model.safetensors.index.json", "w"))
  file:write [[{"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}]]
  file:close()
  local loaded = ms.load_checkpoint_async(at "parts"):result()
  t.equal({ loaded.a:tolist(), loaded.b:tolist(), loaded.c }, { { 1.0, 1.0 }, { 0.0, 0.0 }, nil })
end)

t.test("tensors that stay in their file are those that are read", function()
  local values = { empty = ms.zeros { 0, 3 }, number = ms.tensor(2.5, ms.float64), mask = ms.tensor { true, false, true } }
  -- One byte, and what follows lies at an odd place.
  for i, name in ipairs { "uint8", "int8", "float16", "bfloat16", "int16", "int32", "float32", "int64", "float64" } do
    values[("%d_%s"):format(i, name)] = ms.arange(i * 2 + 1):astype(ms[name])
  end
  ms.save_safetensors(at "map.safetensors", values)
  local mapped, read = ms.load_safetensors(at "map.safetensors", { mmap = true }), ms.load_safetensors(at "map.safetensors")
  for name, value in pairs(values) do
    t.equal({ mapped[name].dtype, mapped[name].shape, mapped[name]:tolist() }, { value.dtype, value.shape, value:tolist() })
    t.equal(read[name]:tolist(), value:tolist())
  end
  local before = bytes_of(at "map.safetensors")
  local big = ms.randn { 1 << 16 }
  ms.save_safetensors(at "big.safetensors", { big = big })
  local x = ms.load_checkpoint(at "big.safetensors", { mmap = true }).big
  x[0] = 5
  x:assign(x + 1)
  ms.save_safetensors(at "big.safetensors", { big = big * 2 })
  local y = ms.load_safetensors(at "big.safetensors", { mmap = true }).big
  ms.save_safetensors(at "big.safetensors", { big = big * 3 })
  t.equal({ x[0]:item(), (y - big * 2):abs():max():item() }, { 6.0, 0.0 })
  t.equal(bytes_of(at "map.safetensors"), before)
  -- A network takes the values, not the place.
  local net, dense = nn.Dense(256, 256), nn.Dense(256, 256)
  ms.save_checkpoint(dense, at "net.safetensors")
  ms.load_param_into_net(net, ms.load_checkpoint(at "net.safetensors", { mmap = true }))
  t.equal(net.weight:tolist(), dense.weight:tolist())
  t.fails({ "is a .ckpt file, which cannot be mapped" }, ms.load_checkpoint, at "end.ckpt", { mmap = true })
  t.fails({ "mmap must be true or false" }, ms.load_safetensors, at "map.safetensors", { mmap = 1 })
end)

t.test("a file that becomes shorter while it is mapped interrupts the program", function()
  local status, output = run(([[local ms = require "lunaria"
    ms.save_safetensors(%q, { w = ms.ones { 1 << 20 } })
    local w = ms.load_safetensors(%q, { mmap = true }).w
    io.open(%q, "w"):close()
    print(pcall(function() return (w + 1):sum():item() end))
    ms.ones { 1 }:add(1)
    print(2 .. " not reached")]]):format(at "short.safetensors", at "short.safetensors", at "short.safetensors"))
  assert(status ~= 0 and output:find("became shorter while its tensors were mapped", 1, true), output)
  assert(output:find("interrupted", 1, true) and not output:find("2 not reached", 1, true), output)
end)

os.execute("rm -rf '" .. folder .. "'")
t.finish()
