-- Readers of files refuse at once what is no file: a folder, a pipe without a writer, a device without an end, a socket.
-- Eager mode only: nothing here is called often enough to be compiled.
local ms = require "lunaria"
local t = require "tests.lua.harness"
package.path = "tests/attack/?.lua;" .. package.path
local readers = require "readers"
local D, text = ms.dataset, ms.dataset.text

local folder = ms.io.temporary()
os.remove(folder)
ms.io.make_folder(folder)

local calls = {}
for i, kind in ipairs(readers.kinds) do calls[("%s %d"):format(kind[1], i)] = kind[3] end
for name, f in pairs {
  load_mindir = ms.load_mindir, load_torch = ms.load_torch, load_numpy = ms.load_numpy, load_safetensors = ms.load_safetensors,
  add_dict = function(p)
    local path = ms.io.temporary()
    D.vision.write_file(path, readers.texts.jieba)
    local tokenizer = text.JiebaTokenizer(nil, path, { mode = "MP" })
    os.remove(path)
    tokenizer:add_dict(p)
  end,
  pieces = function(p) text.SentencePieceVocab.from_file(p, 20, 1.0, "bpe") end,
  tokenizer = function(p) text.SentencePieceTokenizer(p, "string") end, summary = function(p) ms.train.SummaryReader(p):tags() end,
  schema = function(p) D.Schema(p) end, later = function(p) ms.load_checkpoint_async(p):result() end,
  read_text = function(p) ms.io.read_text(p) end, format_of = function(p) ms.io.format_of(p) end,
  emnist = function(p) D.MnistDataset(p) end, cifar = function(p) D.Cifar10Dataset(p) end,
  folders = function(p) D.ImageFolderDataset(p) end,
  images = function(p) ms.mindrecord.ImageNetToMR(p, folder, folder .. "/made"):transform() end,
  cells = function(p) ms.ascend.estimate(p) end,
} do calls[name] = f end

os.execute(("mkfifo '%s/pipe'; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('%s/socket')\""):format(folder, folder))

for name, call in pairs(calls) do
  t.test("only files are read: " .. name, function()
    for _, path in ipairs { folder, folder .. "/pipe", "/dev/zero", folder .. "/socket", "/dev/null" } do
      local began = os.time()
      local ok, message = pcall(call, path)
      assert(not ok and type(message) == "string", path)
      assert(os.time() - began <= 30, path .. " took too long")
      assert(not message:find "lunaria:lunaria/" and not message:find "std::", message)
    end
  end)
end
os.execute(("rm -r '%s'"):format(folder))

t.finish()
