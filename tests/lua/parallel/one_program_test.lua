-- One program on 1, 2 and 4 ranks: the same losses and parameters, bit by bit, eager and compiled, and the same up to roundings with
-- tensors laid out on four simulated ranks: three or four of the ten ways a day. All cost 40 seconds of two idle cores.
-- Eager mode only: the programs set their mode.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local today = require "support.today"
local ms = require "lunaria"

local program = arg[-1]
local long = os.getenv "LUNARIA_TEST_LONG" and " long" or ""
local pictures = io.open "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz"

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- What the program writes on so many ranks, by ranks from 0 on.
local function run(name, ranks, flags)
  local folder = os.tmpname()
  os.remove(folder)
  ms.io.make_folder(folder)
  local command = ("timeout -k 5 %d %s launch -n %d tests/lua/parallel/one_program.lua %s %s %s%s 2>&1 </dev/null"):format(
    long == "" and 120 or 1500, quoted(program), ranks, quoted(folder), name, flags, long)
  local pipe = assert(io.popen(command))
  local said = pipe:read "a"
  local good = pipe:close()
  local texts = {}
  for rank = 0, ranks - 1 do
    local file = io.open(("%s/%d-of-%d.txt"):format(folder, rank, ranks))
    texts[rank + 1] = file and file:read "a" or ""
    if file then file:close() end
  end
  os.execute("rm -r " .. quoted(folder))
  if not good then error(("%s on %d ranks failed:\n%s"):format(name, ranks, said), 0) end
  return texts
end

local function losses(text)
  local list = {}
  for loss in text:gmatch "loss (%S+)" do list[#list + 1] = tonumber(loss) end
  return list
end

-- The number of the first line that is another one.
local function first_difference(text, other)
  local line, rest = 0, other:gmatch "[^\n]*"
  for wanted in text:gmatch "[^\n]*" do
    line = line + 1
    if rest() ~= wanted then return line, wanted:sub(1, 60) end
  end
end

local ways = {}
for _, name in ipairs { "gpt", "lenet", "resnet", "transformer", pictures and "lesson" } do
  for _, flags in ipairs { "", "graph" } do ways[#ways + 1] = { name, flags } end
end
for number, way in ipairs(ways) do
  local name, flags = way[1], way[2]
  if today.has(number, 3) then
    t.test(("%s has the same bits on 1, 2 and 4 ranks%s"):format(name, flags == "" and "" or ", compiled"), function()
      local alone = run(name, 1, flags)[1]
      assert(#alone > 1000)
      for _, ranks in ipairs { 2, 4 } do
        for rank, text in ipairs(run(name, ranks, flags)) do
          if text ~= alone then
            error(("rank %d of %d: line %d: %s"):format(rank - 1, ranks, first_difference(alone, text)), 0)
          end
        end
      end
    end)
    if name ~= "lesson" then
      t.test(("%s laid out on four simulated ranks has the same losses%s"):format(name, flags == "" and "" or ", compiled"), function()
        local wanted, got = losses(run(name, 1, flags .. " alone")[1]), losses(run(name, 1, flags .. " laid")[1])
        t.equal(#got >= 6 and #got == #wanted, true)
        -- Roundings grow from step to step.
        for i = 1, 6 do t.near(got[i], wanted[i], 1e-3 * (1 + wanted[i])) end
      end)
    end
  end
end

t.finish()
