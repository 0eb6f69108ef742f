-- Files that Pillow, soundfile, NumPy and SciPy read (tests/data/readers): the same pixels, samples and arrays here.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local vision, audio = ms.dataset.vision, ms.dataset.audio

local folder = "tests/data/readers/"
local expected = ms.load(folder .. "expected.npz")

local function same(name, got, wanted)
  wanted = wanted or expected[name]
  t.equal({ name, tostring(got.dtype), tostring(got.shape) }, { name, tostring(wanted.dtype), tostring(wanted.shape) })
  assert((got:astype(ms.float32) - wanted:astype(ms.float32)):abs():max():item() == 0, name)
end
local function bytes_of(name)
  local file <close> = assert(io.open(folder .. name, "rb"))
  return file:read "a"
end
local function fails(part, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and tostring(message):find(part, 1, true), tostring(message))
end

local bitmaps = {}
for name in pairs(expected) do if name:find "%.bmp$" then bitmaps[#bitmaps + 1] = name end end

t.test("bitmaps of every number of bits, run-length encoded or with masks", function()
  assert(#bitmaps == 14, #bitmaps)
  for _, name in ipairs(bitmaps) do
    same(name, vision.read_image(folder .. name))
    t.equal(vision.get_image_size(bytes_of(name)), { 5, 13 })
  end
end)

t.test("damaged bitmaps are errors, or other pixels, and no more", function()
  for _, name in ipairs(bitmaps) do
    local whole = bytes_of(name)
    for cut = 0, #whole - 5, 7 do fails("the", vision.Decode(), whole:sub(1, cut)) end
    for at = 1, math.min(#whole, 200), 3 do
      for _, byte in ipairs { 0, 1, 127, 255 } do
        pcall(vision.Decode(), whole:sub(1, at - 1) .. string.char(byte) .. whole:sub(at + 1))
      end
    end
  end
  local header = ("<c2I4I4I4I4i4i4I2I2I4I4i4i4I4I4"):pack("BM", 60, 0, 1078, 40, 20000, 13000, 1, 8, 1, 0, 0, 0, 0, 0)
  fails("more than its", vision.Decode(), header .. ("\0"):rep(1024) .. "\0\1")
end)

t.test("an image is turned as the camera was held where that is asked for", function()
  local plain = vision.read_image(folder .. "turned1.png")
  for number = 1, 8 do
    local name = ("turned%d.png"):format(number)
    same(name, vision.read_image(folder .. name), plain)
    same(name, vision.read_image(folder .. name, { apply_exif_orientation = true }))
    same(name, vision.read_image(folder .. name, "color", true))
    same(name, vision.Decode { apply_exif_orientation = true }(bytes_of(name)))
  end
  same("turned6.jpg", vision.read_image(folder .. "turned6.jpg", { apply_exif_orientation = true }))
  same("plain8.bmp", vision.read_image(folder .. "plain8.bmp", { apply_exif_orientation = true }))
  fails("apply_exif_orientation", vision.read_image, folder .. "turned6.jpg", nil, 1)
  fails("there is no argument 'turn'", vision.read_image, folder .. "turned6.jpg", { turn = true })
end)

t.test("sounds by A-law, mu-law and ADPCM, of 20 bits, of unknown length", function()
  for kind, bits in pairs { alaw = 8, mulaw = 8, ima = 4, ms = 4, bits20 = 20, extensible = 32, piped = 16 } do
    local name = kind .. ".wav"
    local samples, rate, found = audio.read(folder .. name)
    same(name, samples)
    t.equal({ name, rate, found }, { name, 8000, bits })
  end
  local whole = audio.read(folder .. "bits20.wav", { raw = true })
  t.equal(tostring(whole.dtype), "Int32")
  same("bits20.wav", whole:astype(ms.float32) / 2 ^ 23)
end)

t.test("a sound that is cut is an error, or what is there of it", function()
  fails("it claims 1000 bytes of samples, but 120 are there", audio.read, folder .. "cut.wav")
  same("cut.wav", (audio.read(folder .. "cut.wav", { cut_short = true })))
  same("cut.wav", (audio.read(folder .. "cut.wav", false, true)))
  fails("cut_short", audio.read, folder .. "cut.wav", false, 1)
end)

t.test("arrays of texts, alone and beside others", function()
  local csr = ms.load(folder .. "csr.npz")
  t.equal(csr.format, "csr")
  local rows, columns = table.unpack(csr.shape:tolist())
  local dense = ms.zeros { rows, columns }
  local starts, indices, data = csr.indptr:tolist(), csr.indices:tolist(), csr.data:tolist()
  for row = 1, rows do
    for at = starts[row] + 1, starts[row + 1] do dense[{ row - 1, indices[at] }] = data[at] end
  end
  same("csr.npz", dense)
  local texts = ms.io.read_npz(folder .. "texts.npz")
  t.equal(texts.names, { { "ab", "cä中" }, { "", "😀x" }, { "e", "f" } })
  t.equal(texts.bytes, { "xyz", "" })
  t.equal({ texts.one, texts.big }, { "word", { "be", "d" } })
  t.equal(texts.turned, { { "a", "b", "c" }, { "d", "e", "f" } })
  t.equal(texts.numbers:tolist(), { 0, 1, 2 })
  t.equal(ms.load(folder .. "texts.npz", { names = { "one" } }), { one = "word" })
end)

t.test("damaged arrays of texts are errors", function()
  local path = os.tmpname()
  local function npy(descr, shape, content)
    local header = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n"):format(descr, shape)
    local file <close> = assert(io.open(path, "wb"))
    file:write("\x93NUMPY\1\0", ("<s2"):pack(header), content)
  end
  npy("<U2", "(1,)", "a\0\0\0b\0\0\0")
  t.equal(ms.io.read_npy(path), { "ab" })
  npy("<U2", "(1,)", "a\0\0\0b\0\0")
  fails("truncated", ms.io.read_npy, path)
  npy("<U1", "(1,)", "\0\xD8\0\0")
  fails("is no character", ms.io.read_npy, path)
  npy("<U1", "(1099511627776, 0)", "")
  t.equal(ms.io.read_npy(path), {})
  npy("<U0", "(1099511627776,)", "")
  fails("cannot be there", ms.io.read_npy, path)
  npy("<U99999999999", "(1,)", "")
  fails("is not supported", ms.io.read_npy, path)
  npy("<M8[s]", "(1,)", ("\0"):rep(8))
  fails("is not supported", ms.io.read_npy, path)
  os.remove(path)
end)

t.finish()
