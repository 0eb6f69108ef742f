-- Files of tensors as a user saves and loads them.
-- Eager mode only: nothing here is called often enough to be compiled.
local ms = require "lunaria"

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))

local function path(name)
  return folder .. "/" .. name
end

local function same(a, b)
  assert(tostring(a) == tostring(b), tostring(a) .. " is not " .. tostring(b))
end

local function fails(part, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error that mentions " .. part)
  assert(tostring(message):find(part, 1, true), "'" .. part .. "' is not in: " .. tostring(message))
end

local a = ms.tensor({ { 1, 2 }, { 3, 4.5 } })
local b = ms.tensor({ 7, 8 })

ms.save(path "a.npy", a)
same(ms.load(path "a.npy"), a)

for _, name in ipairs { "x.npz", "x.safetensors" } do
  ms.save(path(name), { a = a, ["layer.b"] = b })
  local back = ms.load(path(name))
  same(back.a, a)
  same(back["layer.b"], b)
  local one = ms.load(path(name), { names = { "a" } })
  same(one.a, a)
  assert(one["layer.b"] == nil)
  fails("'c'", ms.load, path(name), { names = { "c" } })
end

ms.save(path "c.npz", { a, b }, { compressed = true })
same(ms.load(path "c.npz").arr_1, b)

ms.save_safetensors(path "m.safetensors", { w = a }, { metadata = { format = "lunaria" } })
local tensors, metadata = ms.load_safetensors(path "m.safetensors")
same(tensors.w, a)
assert(metadata.format == "lunaria")

-- A view is saved as it looks, not as it lies in memory.
ms.save(path "t.npy", a.T)
same(ms.load(path "t.npy"), ms.tensor({ { 1, 3 }, { 2, 4.5 } }))

-- Equal tables make equal files.
local function bytes(name)
  local file <close> = assert(io.open(path(name), "rb"))
  return file:read("a")
end
ms.save(path "1.npz", { x = a, y = b, z = a })
ms.save(path "2.npz", { z = a, y = b, x = a })
assert(bytes "1.npz" == bytes "2.npz")

local images = ms.load_idx("tests/data/samples/idx/images-idx3-ubyte.gz")
assert(tostring(images.shape) == "(200, 28, 28)")
same(ms.load("tests/data/samples/idx/images-idx3-ubyte"), images)
same(ms.io.read_idx("tests/data/samples/idx/images-idx3-ubyte"), images)

fails("safetensors", ms.load, path "weights.pt")
fails("safetensors", ms.load_torch, "tests/data/samples/torch/state.pt")
fails("pickle", ms.load_numpy, "tests/data/samples/npy/REJECT_object.npy")
fails("npz or .safetensors", ms.save, path "x.npy", { a = a })
fails(".npy", ms.save, path "x.npz", a)
fails("extension", ms.save, path "x.bin", a)
fails("'w'", ms.save, path "x.npz", { w = "text" })
fails("No such file", ms.load, path "none.npz")
fails("No such file", ms.save, path "none/x.npy", a)
fails("NUL", ms.load, "a\0b.npy")
fails("directory", ms.load, folder)
fails("path", ms.load, 5)
fails("cast it to float32", ms.save, path "h.npy", ms.tensor({ 1, 2 }, ms.bfloat16))
fails("device", ms.load, "/dev/zero")

assert(os.execute("rm -r " .. folder))
