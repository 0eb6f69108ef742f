-- Networks as MindIR files: those of MindSpore run with its results, ours come back with theirs.
local ms = require "lunaria"
local ops, nn = ms.ops, ms.nn

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))

local function path(name)
  return folder .. "/" .. name
end

local function fails(part, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error that mentions " .. part)
  assert(tostring(message):find(part, 1, true), "'" .. part .. "' is not in: " .. tostring(message))
end

local function close(a, b, tolerance)
  assert(tostring(a.shape) == tostring(b.shape), tostring(a.shape) .. " is not " .. tostring(b.shape))
  local difference = ops.abs(a - b):max():item()
  assert(difference <= (tolerance or 1e-6), "the results differ by " .. difference)
end

-- Files of MindSpore, with the inputs and outputs that it gave with them.
local samples = "tests/data/samples/"
local file = assert(io.open(samples .. "manifest.json"))
local manifest = ms.json.decode(file:read "a")
file:close()
local count = 0
for _, entry in ipairs(manifest.files) do
  if entry.path:match "%.mindir$" then
    count = count + 1
    local net, weights = ms.load_mindir(samples .. entry.path)
    local expect = entry.expect
    local function tensor(t) return ms.tensor(t.values):reshape(t.shape) end
    local x = tensor(expect.input)
    close(net(x), tensor(expect.output), 1e-5)
    close((ms.load(samples .. entry.path))(x), net(x), 0)
    for name, weight in pairs(expect.parameters) do
      -- Of larger ones the manifest has only the shape and a checksum.
      if weight.values then close(weights[name], tensor(weight), 0) end
      assert(weights[name].dtype == ms.float32 and #weights[name].shape == #weight.shape, name)
    end
    local text = ms.ir(net)
    assert(text:find("ops.matmul(", 1, true) and text:find("captures 1", 1, true), text)

    -- The graph is a function like any other: its derivative, and the file that it is saved in again.
    local dx = ms.grad(function(v) return net(v):sum() end)(x)
    local direction = ops.ones_like(x) * 1e-2
    local slope = (net(x + direction):sum() - net(x - direction):sum()):item() / 2
    assert(math.abs((dx * direction):sum():item() - slope) < 1e-3)
    local list = {}
    for name in pairs(weights) do list[#list + 1] = name end
    table.sort(list)
    local parameters = {}
    for i, name in ipairs(list) do parameters[i] = weights[name] end
    local gradients = ms.grad(function(v) return net(v):sum() end, false, parameters)(x)
    local bias
    for i, name in ipairs(list) do
      if name == "2.bias" or name == "d.bias" then bias = gradients[i] end
    end
    close(bias, ops.ones_like(bias) * 2)
    ms.save_mindir(net, path "again.mindir", x)
    local again, kept = ms.load_mindir(path "again.mindir")
    close(again(x), net(x), 0)
    for name in pairs(weights) do assert(kept[name], name) end
  end
end
assert(count == 2)

-- A loop with a branch, as MindSpore 2.10 writes it, with what it gives: a call with code behind it, weights, two results.
do
  local net, weights = ms.load(samples .. "mindir/ms_loop.mindir")
  local t = ms.tensor
  local a, b = t { { 1.0, -2.0 }, { 0.5, 3.0 } }, t { { -1.0, 2.0 }, { -0.5, -3.0 } }
  local function agree(f)
    local x, y = f(a)
    close(x, t { { 6.875, 0.3125 }, { -1.0625, 7.15625 } }, 0)
    close(y, t { { 11.375, -2.9375 }, { -0.3125, 15.03125 } }, 0)
    x, y = f(b)
    close(x, t { { -10.5546875, 7.26171875 }, { 15.72265625, 2.880859375 } }, 0)
    close(y, t { { -21.0859375, 22.08984375 }, { 29.45703125, -5.705078125 } }, 0)
  end
  agree(net)
  agree(ms.jit(net))
  for _, form in ipairs { "lunaria", "mindspore" } do
    ms.export(net, a, { file_name = path "again", form = form })
    local again, kept = ms.load(path "again.mindir")
    agree(again)
    close(kept.w, weights.w, 0)
  end
  local function total(v) return (net(v)):sum() end
  local slope = (total(a + 1e-2) - total(a - 1e-2)):item() / 2e-2
  assert(math.abs(ms.grad(total)(a):sum():item() - slope) < 1e-2)
end

-- Networks of ours.
local net = nn.SequentialCell { nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 3) }
local x = ops.randn { 5, 4 }
ms.export(net, x, { file_name = path "net", file_format = "MINDIR" })
local loaded, weights = ms.load_mindir(path "net.mindir")
close(loaded(x), net(x))
local names = 0
for _ in pairs(weights) do names = names + 1 end
assert(names == 4)

-- Control flow that does not depend on the elements, tables, closures, several inputs and results, parts of tensors.
local w = ms.Parameter(ops.randn { 3, 3 }, "w")
local function f(a, b)
  local parts = {}
  for i = 0, 2 do
    local row = a[i]
    if i % 2 == 0 then row = row:tanh() else row = -row end
    parts[#parts + 1] = row
  end
  local joined = ops.stack(parts)
  local function twice(v) return v * 2 end
  return ops.matmul(twice(joined), w) + b, (a["1:, :2"] / 3):sum({ axis = 1 }), a
end
local a, b = ops.randn { 3, 3 }, ops.randn { 3 }
ms.save_mindir(f, path "f.mindir", a, b)
local g = ms.load_mindir(path "f.mindir")
local expected, found = { f(a, b) }, { g(a, b) }
assert(#found == 3)
for i = 1, 3 do close(found[i], expected[i], 1e-6) end
local other = a * -2
close((select(2, g(other, b))), (select(2, f(other, b))))

local function h(v)
  local largest, at = ops.max(v, 1)
  return 2 - v.T // 2, largest, at + v.shape[1], math.pi * v ^ 2
end
ms.save_mindir(h, path "h.mindir", a)
local k = ms.load_mindir(path "h.mindir")
expected, found = { h(other) }, { k(other) }
assert(#found == 4)
for i = 1, 4 do close(found[i], expected[i]) end

-- What a file does not have is refused, with the line.
local counter, seen = 0, { {} }
fails("random", ms.save_mindir, function(v) return v + ops.randn { 3 } end, path "x", a)
fails("mindir_test.lua:", ms.save_mindir, function(v)
  if v:sum() > 0 then counter = counter + 1 end
  return v
end, path "x", a)
fails("assigns to a variable", ms.save_mindir, function(v) if v:sum() > 0 then counter = 1 end return v end, path "x", a)
fails("writes into a table", ms.save_mindir, function(v) if v:sum() > 0 then seen[1] = v end return v end, path "x", a)
fails("table.insert writes", ms.save_mindir, function(v)
  if v:sum() > 0 then table.insert(seen, v) end
  return v
end, path "x", a)
local function put(t, v) t[1] = v end
fails("writes into a table", ms.save_mindir, function(v, n) put(seen[n], v) return v end, path "x", a, 1)
fails("may write into it", ms.save_mindir, function(v, n)
  local either = n > 1 and put or function() end
  either(seen, v)
  return v
end, path "x", a, 1)
fails("may write into it", ms.save_mindir, function(v, n)
  local list = { seen }
  list[n][1] = v
  return list[n][1]
end, path "x", a, 1)
fails("os.time", ms.save_mindir, function(v) return v * (v:sum() > 0 and os.time() or 1) end, path "x", a)
fails("a file has a copy only", ms.save_mindir, function(v)
  local t = _G
  return v:sum() > 0 and v or t
end, path "x", a)
fails("is closed", ms.save_mindir, function(v)
  if v:sum() > 0 then
    local closed <close> = setmetatable({}, { __close = function() end })
    return v, closed
  end
  return -v
end, path "x", a)
fails("returns nothing", ms.save_mindir, function() end, path "x", a)
fails("input 0 is", ms.save_mindir, f, path "x", print)
fails("callable", ms.save_mindir, 3, path "x", a)
fails("path must be", ms.save_mindir, f, 3, a)
fails("file_name", ms.export, net, x, {})
fails("'AIR'", ms.export, net, x, { file_name = path "x", file_format = "AIR" })
fails("(1, 9)", ms.export, nn.Dense(2, 2), ops.ones { 1, 9 }, { file_name = path "x" })
assert(not io.open(path "x"), "a file was left behind")

-- Wrong use and damaged files.
fails("dense", loaded, ops.ones { 5, 7 })
fails("dense", loaded)
fails("must be a tensor", loaded, "text")
fails("cannot be opened", ms.load_mindir, path "not_there.mindir")
fails("is empty", function()
  io.open(path "empty.mindir", "w"):close()
  ms.load_mindir(path "empty.mindir")
end)
fails("MindIR", function()
  local out = io.open(path "bad.mindir", "w")
  out:write("\10\3\49\46\49")
  out:close()
  ms.load_mindir(path "bad.mindir")
end)

os.execute("rm -r " .. folder)
assert(dofile "tests/lua/support/compiled.lua".check())
