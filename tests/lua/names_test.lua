-- Names that come from files are text when they are shown, whatever bytes they have; and files beside one that is written stay.
local ms = require "lunaria"
local t = require "tests.lua.harness"
local D = ms.dataset

local evil = "w\27]0;title\7\27[31m\u{202e}\u{9b}1m"
local folder = ms.io.temporary()
os.remove(folder)
ms.io.make_folder(folder)
local function at(name) return folder .. "/" .. name end
local function write(name, text)
  local file <close> = assert(io.open(at(name), "wb"))
  file:write(text)
  return at(name)
end

local function shown(what, text)
  text = tostring(text)
  assert(not text:find "[\27\7]" and not text:find "\u{202e}" and not text:find "\u{9b}", what .. ": " .. ms.io.printable(text))
  return text
end

local function fails(what, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, what)
  assert(shown(what, message):find("\\x1b]0;title\\x07\\x1b[31m\\u{202e}\\u{9b}1m", 1, true), what .. ": " .. message)
end

t.test("names of files are text in messages", function()
  ms.save(at "a.safetensors", { [evil] = ms.ones { 2 } })
  fails("safetensors", ms.load, at "a.safetensors", { names = { evil .. "x" } })
  ms.save(at "a.npz", { [evil] = ms.ones { 2 } })
  fails("npz", ms.load, at "a.npz", { names = { evil .. "x" } })
  fails("a path", ms.load, at(evil .. ".npy"))
  fails("a path that Lua reads", D.config.load, at(evil))
  fails("words", D.text.GloVe.from_file, write("glove.txt", "the 1 2\n" .. evil .. " 1 " .. evil .. "\n"))
  fails("csv", D.CSVDataset, write("a.csv", "a,b\n1,2\n"), { column_names = { evil, evil } })
  fails("columns", function() D.NumpySlicesDataset({ [evil] = { 1, 2 } }):map(function(x) return x end, "other") end)
  fails("a pipeline", D.deserialize, { op_type = evil, arguments = {}, children = { D.serialize(D.NumpySlicesDataset { 1, 2 }) } })
  fails("an option", function() ms.nn.Dense(2, 2, { [evil] = 1 }) end)
end)

t.test("names are text where values are printed", function()
  shown("a parameter", ms.Parameter(ms.ones { 2 }, evil))
  local net = ms.nn.Dense(2, 2)
  net.weight.name = evil
  shown("a parameter of a network", net.weight)
end)

t.test("a model's names are text", function()
  local files = require "lunaria.onnx_files"
  local draft = ms.io.draft(at "a.onnx")
  files.write(draft, {
    opset = 13, name = evil, nodes = { { op = evil, name = evil, inputs = { evil }, outputs = { evil .. "y" }, attributes = {} } },
    initializers = {}, inputs = { { name = evil, dtype = ms.float32, shape = { 2 } } },
    outputs = { { name = evil .. "z", dtype = ms.float32, shape = { 2 } } },
  })
  draft:commit()
  local ok, message = pcall(ms.load, at "a.onnx")
  assert(not ok and shown("onnx", message):find("is made by no node", 1, true), message)
end)

t.test("files beside the one that is written stay as they are", function()
  local net = ms.nn.Dense(2, 2)
  local names = { "m.part.onnx", "m.onnx.tmp", "m.onnx.part", "m.ckpt.tmp", "m.npy.tmp", "m.mindir.tmp", "m.safetensors.tmp" }
  for _, name in ipairs(names) do write(name, "mine") end
  ms.export(net, ms.ones { 1, 2 }, { file_name = at "m", file_format = "ONNX" })
  ms.export(net, ms.ones { 1, 2 }, { file_name = at "m" })
  ms.save_checkpoint(net, at "m.ckpt")
  ms.save(at "m.npy", ms.ones { 2 })
  ms.save(at "m.safetensors", { w = ms.ones { 2 } })
  for _, name in ipairs(names) do t.equal(ms.io.read_text(at(name)), "mine") end
  -- And what could not be written leaves nothing.
  local before = #ms.io.list_folder(folder)
  local broken = ms.nn.Cell:extend "Broken"
  function broken.construct(_, x) return ms.ops.dropout(x, 0.5) + ms.ops.rand { 2 } end
  pcall(ms.export, broken(), ms.ones { 1, 2 }, { file_name = at "n", file_format = "ONNX" })
  pcall(ms.save_checkpoint, net, at "no/such/folder.ckpt")
  local after = ms.io.list_folder(folder)
  assert(#after == before or #after == before + 1 and ms.io.kind(at "n.onnx"), table.concat(after, " "))
end)

os.execute(("rm -r '%s'"):format(folder))
t.finish()
