-- Checkpoints of many ranks: what any number of ranks wrote, any other number reads; what is damaged or missing is told.
-- The process stands in for all ranks, one after the other.
-- Eager mode only: files are the same in both.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local shards = require "lunaria.shards"
local sharded = require "lunaria.parallel.checkpoint"
local nn = ms.nn

local program = arg[-1]
-- In memory where there is such a folder: a disk takes its time to say that a file is on it.
local folder = os.tmpname()
os.remove(folder)
if ms.io.kind "/dev/shm" == "folder" then folder = "/dev/shm/" .. folder:match "[^/]*$" end
ms.io.make_folder(folder)
local function at(name) return folder .. "/" .. name end
local function raises(f, text) t.fails(text, f) end

local function interval(size, part, parts)
  local chunk = (size + parts - 1) // parts
  return math.min(part * chunk, size), math.min((part + 1) * chunk, size)
end

-- The piece of a tensor that the rank of a mesh { dp, tp } holds at a level: whole along dp (level 0), or with axis 0 cut
-- along dp too; axis `axis` is cut along tp.
local function piece(value, axis, mesh, rank, level)
  local dp, tp = rank // mesh[2], rank % mesh[2]
  local from, to = {}, {}
  for k = 1, #value.shape do from[k], to[k] = 0, value.shape[k] end
  if axis and axis < #value.shape then from[axis + 1], to[axis + 1] = interval(to[axis + 1], tp, mesh[2]) end
  local replica, replicas = dp, mesh[1]
  if not axis or axis >= #value.shape then replica, replicas = rank, mesh[1] * mesh[2] end
  if level > 0 and #value.shape > 0 then
    local begin, stop = interval(to[1] - from[1], dp, mesh[1])
    from[1], to[1] = from[1] + begin, from[1] + stop
    replica, replicas = axis and axis < #value.shape and 0 or rank % mesh[2], axis and axis < #value.shape and 1 or mesh[2]
  end
  local own = value
  for k = 1, #from do own = own:narrow(k - 1, from[k], to[k] - from[k]) end
  local shape, sizes = {}, {}
  for k = 1, #from do shape[k], sizes[k] = value.shape[k], to[k] - from[k] end
  return own:copy(), { shape = shape, offsets = from, replica = replica, replicas = replicas }, sizes
end

local function axis_of(name) return name:find "weight" and 1 or name:find "bias" and 0 or nil end

local function save_all(path, values, mesh, level, step)
  local ranks = mesh[1] * mesh[2]
  for rank = 0, ranks - 1 do
    local own = {}
    for name, value in pairs(values) do
      if ms.is_tensor(value) then
        local part, where = piece(value, axis_of(name), mesh, rank, level)
        sharded.set_piece(part, where)
        own[name] = part
      else
        own[name] = value
      end
    end
    local complete = select(2, sharded.save(path, own, { step = step, place = { rank = rank, ranks = ranks, job = "test" } }))
    t.equal(complete, rank == ranks - 1)
  end
end

local function same(a, b) return tostring(a.shape) == tostring(b.shape) and a.dtype == b.dtype and ms.ops.equal(a, b):all():item() end

-- A small training: its values after some steps, and the values after more.
local function training()
  ms.set_seed(3)
  local net = nn.SequentialCell(nn.Dense(7, 12), nn.ReLU(), nn.Dense(12, 5))
  local optimizer = nn.Adam(net:trainable_params(), { learning_rate = 0.01 })
  local loss = nn.MSELoss()
  local step = ms.value_and_grad(function(x, y) return loss(net(x), y) end, nil, net:trainable_params())
  local function run(count)
    for _ = 1, count do
      local _, gradients = step(ms.ops.randn { 6, 7 }, ms.ops.randn { 6, 5 })
      optimizer(gradients)
    end
  end
  local function parameters()
    local list = {}
    for name, parameter in net:parameters_and_names() do list["net." .. name] = parameter end
    for name, parameter in optimizer:parameters_and_names() do list["optimizer." .. name] = parameter end
    return list
  end
  return run, parameters, optimizer
end

local meshes = { { 1, 1 }, { 2, 1 }, { 3, 1 }, { 2, 2 }, { 1, 3 }, { 4, 2 }, { 2, 4 } }

t.test("trainings go on with the same bits on any number of ranks, mesh and level", function()
  local run, parameters, optimizer = training()
  run(3)
  local saved, random, count = {}, ms.get_rng_state(), optimizer.global_step
  for name, value in pairs(parameters()) do saved[name] = value:copy() end
  run(3)
  local expected = {}
  for name, value in pairs(parameters()) do expected[name] = value:copy() end
  for i, mesh in ipairs(meshes) do
    for level = 0, 1 do
      local path = at(("train%d%d"):format(i, level))
      local values = { ["random.state"] = random, numbers = ms.json.encode { step = count } }
      for name, value in pairs(saved) do values[name] = value end
      save_all(path, values, mesh, level, 3)
      -- Every other mesh and level reads what it needs, and nothing else.
      for k, other in ipairs(meshes) do
        local level2 = (i + k + level) % 2
        local checkpoint = sharded.open(path)
        for rank = 0, other[1] * other[2] - 1 do
          for name, value in pairs(saved) do
            local part, where, sizes = piece(value, axis_of(name), other, rank, level2)
            local got = checkpoint:read(name, where.offsets, sizes)
            assert(same(got, part), name)
          end
        end
      end
      -- The training goes on.
      if level == 1 then
        local run2, parameters2, optimizer2 = training()
        local loaded = ms.load_checkpoint(path)
        for name, parameter in pairs(parameters2()) do parameter:assign(loaded[name]) end
        optimizer2.global_step = ms.json.decode(loaded.numbers).step
        ms.set_rng_state(loaded["random.state"])
        run2(3)
        for name, parameter in pairs(parameters2()) do assert(same(parameter, expected[name]), name) end
      end
    end
  end
end)

t.test("save_checkpoint and load_checkpoint take a folder", function()
  local net, other = nn.Dense(3, 2), nn.Dense(3, 2)
  ms.save_checkpoint(net, at "run", { sharded = true, step = 10, append_dict = { note = "ten" } })
  ms.save_checkpoint(net, at "run", { sharded = true, step = 20, async_save = true })
  ms.async_ckpt_wait()
  t.equal(ms.io.list_folder(at "run"), { "step-00000010", "step-00000020" })
  t.equal(ms.io.list_folder(at "run/step-00000020"), { "complete", "rank-0000-of-0001.safetensors" })
  local loaded = ms.load_checkpoint(at "run/step-00000010", other)
  t.equal(loaded.note, "ten")
  assert(same(other.weight, net.weight) and same(other.bias, net.bias))
  t.equal(ms.load_checkpoint(at "run").note, nil)
  -- Other programs read the file as any safetensors file.
  assert(same(ms.load_safetensors(at "run/step-00000010/rank-0000-of-0001.safetensors").weight, net.weight))
  -- A step replaces one with its number.
  net.weight:assign(ms.zeros { 2, 3 })
  ms.save_checkpoint(net, at "run", { sharded = true, step = 10 })
  t.equal(ms.load_checkpoint(at "run/step-00000010").weight:sum():item(), 0.0)
end)

t.test("a network's pieces are read into it", function()
  local net = nn.Dense(4, 6)
  save_all(at "whole", { weight = net.weight, bias = net.bias }, { 3, 1 }, 1, 1)
  local part = nn.Dense(4, 3)
  sharded.set_piece(part.weight, { shape = { 6, 4 }, offsets = { 3, 0 } })
  sharded.set_piece(part.bias, { shape = { 6 }, offsets = { 3 } })
  ms.load_checkpoint(at "whole", part)
  assert(same(part.weight, net.weight:narrow(0, 3, 3)) and same(part.bias, net.bias:narrow(0, 3, 3)))
end)

t.test("laid-out tensors go from mesh to mesh", function()
  local whole = { w = ms.ops.randn { 7, 6 }, b = ms.ops.randn { 7 }, k = ms.ops.randn { 2, 4, 3 } }
  local meshes_ = { ms.mesh({ 2, 2 }, { "dp", "tp" }), ms.mesh({ 3 }, { "x" }), ms.mesh({ 4, 2 }, { "dp", "tp" }) }
  local function laid(mesh, value, name)
    if mesh == meshes_[2] then return ms.distribute(value, name == "b" and mesh(nil) or mesh("x")) end
    if name == "b" then return ms.distribute(value, mesh("tp")) end
    return ms.distribute(value, name == "w" and mesh("dp", "tp") or mesh(nil, { "dp", "tp" }))
  end
  for i, mesh in ipairs(meshes_) do
    local values = {}
    for name, value in pairs(whole) do values[name] = laid(mesh, value, name) end
    ms.save_checkpoint(values, at("laid" .. i), { sharded = true, step = i })
    local checkpoint = sharded.open(at("laid" .. i))
    t.equal(#checkpoint.files, ({ 4, 3, 8 })[i])
    t.equal(#checkpoint:tensor("w").parts, ({ 4, 3, 8 })[i])
    t.equal(#checkpoint:tensor("b").parts, ({ 2, 1, 2 })[i])
    for name, value in pairs(whole) do assert(same(checkpoint:read(name), value), name) end
    -- A network that lies otherwise gets its pieces.
    for k, other in ipairs(meshes_) do
      local net = nn.Dense(6, 7)
      for _, name in ipairs { "weight", "bias" } do
        net[name]:assign(ms.zeros(net[name].shape))
        laid(other, net[name], name == "bias" and "b" or "w")
      end
      save_all(at "again", { weight = whole.w, bias = whole.b }, { k, 1 }, 1, 1)
      ms.load_checkpoint(at "again", net)
      assert(same(net.weight, whole.w) and same(net.bias, whole.b))
      t.equal(tostring(net.weight.layout), k == 2 and "[7@x, 6]" or "[7@dp, 6@tp]")
    end
  end
end)

t.test("zeros behind a piece are not written", function()
  -- Seven rows on two ranks: both have four, the last one of the second is none.
  local net = nn.Dense(4, 7)
  local padded = { net.weight:narrow(0, 0, 4):copy(), ms.ops.concat({ net.weight:narrow(0, 4, 3), ms.zeros { 1, 4 } }, 0) }
  for rank = 0, 1 do
    sharded.set_piece(padded[rank + 1], { shape = { 7, 4 }, offsets = { 4 * rank, 0 }, sizes = { 4 - rank, 4 } })
    sharded.save(at "padded", { weight = padded[rank + 1] }, { place = { rank = rank, ranks = 2, job = "test" } })
  end
  assert(same(ms.load_checkpoint(at "padded").weight, net.weight))
  local part = nn.Dense(4, 4, { has_bias = false })
  sharded.set_piece(part.weight, { shape = { 7, 4 }, offsets = { 4, 0 }, sizes = { 3, 4 } })
  ms.load_checkpoint(at "padded", part)
  assert(same(part.weight, padded[2]))
end)

t.test("a step that is not complete is left out", function()
  local values = { weight = ms.ones { 8, 4 } }
  save_all(at "steps", values, { 2, 2 }, 0, 1)
  for rank = 0, 3 do
    if rank ~= 2 then
      sharded.save(at "steps", values, { step = 2, place = { rank = rank, ranks = 4, job = "test" } })
    end
  end
  t.equal(sharded.find_step(at "steps"), at "steps/step-00000001")
  local unfinished = sharded.steps_of(at "steps")[2]
  t.equal({ unfinished.step, unfinished.complete }, { 2, false })
  raises(function() ms.load_checkpoint(unfinished.path) end, "is not complete: the file of rank 2 of 4 is missing")
  os.remove(at "steps/step-00000001/complete")
  raises(function() ms.load_checkpoint(at "steps") end,
    "has no complete step: of step 2 the file of rank 2 of 4 is missing")
  -- The next run removes what this one left; keep says how many steps stay.
  save_all(at "kept", values, { 2, 1 }, 0, 1)
  for step = 2, 5 do
    for rank = 0, 1 do
      sharded.save(at "kept", values, { step = step, keep = 2, place = { rank = rank, ranks = 2, job = "test" } })
    end
  end
  t.equal(#sharded.steps_of(at "kept"), 3)
  sharded.save(at "kept", values, { step = 6, place = { rank = 0, ranks = 2, job = "killed" } })
  sharded.save(at "kept", values, { step = 6, place = { rank = 0, ranks = 1, job = "next" } })
  for _, step in ipairs(sharded.steps_of(at "kept")) do assert(step.complete, step.name) end
end)

t.test("what is damaged or missing is told", function()
  local values = { weight = ms.ops.randn { 8, 4 } }
  save_all(at "damaged", values, { 4, 1 }, 1, 1)
  local path = at "damaged/step-00000001/rank-0002-of-0004.safetensors"
  local file <close> = assert(io.open(path, "r+b"))
  file:seek("end", -3)
  file:write "x"
  file:close()
  raises(function() ms.load_checkpoint(at "damaged") end, "rank-0002-of-0004.safetensors: damaged: the sum of bytes")
  raises(function() ms.load_checkpoint(at "damaged") end, "'weight' [4:6, 0:4]")
  ms.load_checkpoint(at "damaged", { crc_check = false })
  os.remove(path)
  raises(function() ms.load_checkpoint(at "damaged") end,
    "the elements [4:6, 0:4] of 'weight' are in none of its files: rank 2 of 4 had them, and rank-0002-of-0004.safetensors is not there")
  raises(function() ms.save_checkpoint(values, at "run", { sharded = true, format = "ckpt" }) end, "format must be nil")
  raises(function() ms.load_checkpoint_async(at "run") end, "has files of ranks")
end)

t.test("4,096 headers are read in a second", function()
  local path = at "many"
  ms.io.make_folder(path)
  local parts = {}
  for k = 1, 8 do
    parts[k] = { name = ("layers.%d.attention.weight"):format(k), tensor = ms.ones { 1, 4 }, shape = { 8192, 4 }, offsets = { 1000, 0 },
      layout = "Float32[8192@dp, 4]", mesh = "dp=8192" }
  end
  -- The files differ in the offsets only; that each is brought to the disk would take longer than all else.
  local first = path .. "/" .. shards.name_of(0, 4096)
  shards.write(first, parts, { format = "ms" })
  local text = ms.io.read_text(first)
  for rank = 1, 4095 do
    local file <close> = assert(io.open(path .. "/" .. shards.name_of(rank, 4096), "wb"))
    file:write((text:gsub("%[1000,0%]", ("[%d,0]"):format(1000 + rank))))
  end
  local best = math.huge
  for _ = 1, 3 do
    -- Time of the processor, which other processes do not take.
    local from = os.clock()
    local handle = shards.open(path)
    best = math.min(best, os.clock() - from)
    t.equal(#shards.tensor(handle, "layers.3.attention.weight").parts, 4096)
  end
  print(("headers of 4,096 files: %.2f s"):format(best))
  assert(best < (os.getenv "ASAN_OPTIONS" and 100 or 10), best)
end)

-- Four processes that save step after step; one of them is killed at any time.
local script = [[
local ms = require "lunaria"
local sharded = require "lunaria.parallel.checkpoint"
local values = {}
for step = 1, 1000 do
  for k = 1, 3 do values["w" .. k] = ms.full({ 64, 1024 }, step) end
  sharded.save(arg[1], values, { step = step, keep = 3 })
end
]]

t.test("a rank that is killed while it saves leaves the steps before", function()
  local file <close> = assert(io.open(at "save.lua", "w"))
  file:write(script)
  file:close()
  -- On a slow machine a round may end before any rank has made it.
  os.execute(("mkdir '%s'"):format(at "killed"))
  math.randomseed(7)
  for round = 1, tonumber(arg[1] or "") or 3 do
    local lines = {}
    for rank = 0, 2 do
      -- The others are ended a little later: no rank waits for another.
      lines[#lines + 1] = ("LUNARIA_RANK=%d LUNARIA_RANKS=3 LUNARIA_JOB=round%d timeout -s KILL %.3f '%s' '%s' '%s' & "):format(rank, round,
        rank == 1 and 0.1 + 0.2 * math.random() or 0.45, program, at "save.lua", at "killed")
    end
    os.execute("(" .. table.concat(lines) .. " wait) >/dev/null 2>&1")
    local steps = sharded.steps_of(at "killed")
    local newest
    for _, step in ipairs(steps) do
      if step.complete then newest = step end
    end
    if newest then
      local loaded = ms.load_checkpoint(at "killed")
      for k = 1, 3 do t.equal({ loaded["w" .. k]:min():item(), loaded["w" .. k]:max():item() }, { newest.step, newest.step }) end
    else
      -- All may have been ended before the first wrote.
      raises(function() ms.load_checkpoint(at "killed") end, #steps > 0 and "has no complete step" or "is a directory without a file")
    end
  end
end)

t.test("a full disk leaves the steps before", function()
  local mount = ("unshare -rm sh -c \"mount -t tmpfs -o size=3m tmpfs '%s' && %%s\" 2>&1"):format(at "disk")
  ms.io.make_folder(at "disk")
  if not os.execute(mount:format "true" .. " >/dev/null") then return end
  local file <close> = assert(io.open(at "full.lua", "w"))
  file:write [[
local ms = require "lunaria"
local sharded = require "lunaria.parallel.checkpoint"
local function save(step, size)
  for rank = 0, 1 do
    sharded.save(arg[1], { w = ms.full({ size }, step) }, { step = step, place = { rank = rank, ranks = 1, job = "a" } })
    break
  end
end
save(1, 1000)
print(pcall(save, 2, 1000000))
print(ms.load_checkpoint(arg[1]).w:max():item(), #ms.io.list_folder(arg[1] .. "/step-00000001"))
local left = sharded.steps_of(arg[1])[2]
print(#ms.io.list_folder(left.path))
save(3, 1000)
print(ms.load_checkpoint(arg[1]).w:max():item())
]]
  file:close()
  local pipe = io.popen(mount:format(("'%s' '%s' '%s'"):format(program, at "full.lua", at "disk")))
  local text = pipe:read "a"
  pipe:close()
  assert(text:find("rank-0000-of-0001.safetensors: writing failed: No space left on device", 1, true), text)
  assert(text:find("\n1\t2\n0\n3\n", 1, true), text)
end)

os.execute(("rm -r '%s'"):format(folder))
t.finish()
