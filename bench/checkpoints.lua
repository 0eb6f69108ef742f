-- Run by checkpoints.py: checkpoints of 500 MB. Reads commands and answers with nanoseconds, one line each:
--   save PATH, async PATH (the call alone, then all), load PATH, map PATH, sum PATH, mapsum PATH (with a sum of all elements).
local ms = require "lunaria"
local values = {}
for i = 1, 20 do values[("layer%d.weight"):format(i)] = ms.randn { 6250000 } end

local function total(tensors)
  local sum = 0
  for _, x in pairs(tensors) do sum = sum + x:sum():item() end
  return sum
end

local commands = {}
function commands.save(path) ms.save_safetensors(path, values) end
function commands.ckpt(path) ms.save_checkpoint(values, path) end
function commands.begin(path) ms.save_safetensors(path, values, { later = true }) end
function commands.finish() ms.async_ckpt_wait() end
function commands.load(path) ms.load_safetensors(path) end
function commands.map(path) ms.load_safetensors(path, { mmap = true }) end
function commands.sum(path) total(ms.load_safetensors(path)) end
function commands.mapsum(path) total(ms.load_safetensors(path, { mmap = true })) end

for line in io.lines() do
  local name, path = line:match "^(%S+)%s*(.*)$"
  collectgarbage()
  local start = ms.clock()
  commands[name](path)
  print(ms.clock() - start)
  io.flush()
end
