-- Data parallel training on several processes of this machine.
-- Eager mode only: the programs set their mode.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local program = arg[-1]
local long = os.getenv "LUNARIA_TEST_LONG" ~= nil

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- What a script writes on `ranks` processes: the contents of the files RANK-of-RANKS.txt in its folder, from rank 0 on.
local function run(script, ranks, ...)
  local folder = os.tmpname()
  os.remove(folder)
  ms.io.make_folder(folder)
  local words = { quoted(program), "launch -n", ranks, "tests/lua/parallel/" .. script, quoted(folder), ... }
  local pipe = assert(io.popen("timeout -k 5 120 " .. table.concat(words, " ") .. " 2>&1 </dev/null"))
  local said = pipe:read "a"
  local good = pipe:close()
  local texts = {}
  for rank = 0, ranks - 1 do
    local file = io.open(("%s/%d-of-%d.txt"):format(folder, rank, ranks))
    texts[rank] = file and file:read "a" or nil
    if file then file:close() end
  end
  os.execute("rm -r " .. quoted(folder))
  if not good then error(("%s on %d ranks failed:\n%s"):format(script, ranks, said), 0) end
  return texts, said
end

local function expect_equal(texts, count, expected, what)
  for rank = 0, count - 1 do
    if texts[rank] ~= expected then
      local line = 1
      local other = (texts[rank] or ""):gmatch "[^\n]*"
      for wanted in expected:gmatch "[^\n]*" do
        local got = other()
        if got ~= wanted then
          error(("%s: rank %d of %d differs in line %d: %.80s instead of %.80s"):format(what, rank, count, line, tostring(got), wanted), 0)
        end
        line = line + 1
      end
      error(("%s: rank %d of %d wrote more"):format(what, rank, count), 0)
    end
  end
end

local counts = long and { 2, 4, 8 } or { 2, 4 }
local steps = long and 100 or 15

t.test("losses and parameters are the same bits for any number of ranks, eager and compiled", function()
  for _, mode in ipairs { "", "graph" } do
    local alone = run("shards.lua", 1, steps, mode)[0]
    assert(#alone > 1000 and select(2, alone:gsub("loss", "")) == steps)
    for _, count in ipairs(counts) do expect_equal(run("shards.lua", count, steps, mode), count, alone, mode .. " whole batches") end
    expect_equal(run("shards.lua", 2, steps, mode .. " rows"), 2, alone, mode .. " rows of the data set")
    expect_equal(run("shards.lua", 2, steps, mode .. " level1"), 2, alone, mode .. " divided parameters")
  end
end)

t.test("what trains on several ranks computes what one process does", function()
  local texts = run("faces.lua", 2)
  t.equal({ texts[0], texts[1] }, { "good", "good" })
end)

t.test("divided parameters, states and gradients take the bytes of the formula", function()
  for _, level in ipairs { "none", "level1", "level2", "level3" } do
    for _, count in ipairs(long and { 2, 4, 8 } or { 2 }) do
      local texts = run("memory.lua", count, level)
      for rank = 0, count - 1 do
        local rested, wanted, held, of, live = texts[rank]:match "at rest (%d+) of (%d+), gradients (%d+) of (%d+), live (%d+)"
        t.equal({ rested, held }, { wanted, of })
        -- The loss is in a block of its own; whole parameters keep their buckets.
        if level ~= "none" then assert(tonumber(live) - tonumber(of) == 64, texts[rank]) end
      end
    end
  end
end)

t.test("reference trainings on two ranks have the losses of the reference", function()
  for _, kind in ipairs { "data", "shards", "level1", "level2", "level3" } do
    local runs = "mlp.Adam,gpt_mini.AdamW" .. (kind ~= "shards" and ",bnet.Momentum,lenet.SGD" or "")
    local pipe = assert(io.popen(("timeout -k 5 120 %s launch -n 2 tests/conformance/training.lua tests/data/conformance --run %s "
      .. "--parallel %s 2>&1 </dev/null"):format(quoted(program), runs, kind)))
    local said = pipe:read "a"
    assert(pipe:close() and said:find(", 0 failed", 1, true), said)
  end
end)

t.finish()
