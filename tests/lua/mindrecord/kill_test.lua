-- Writers of MindRecord files that are killed at any moment: what was committed is there, or the files are refused.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local R = ms.mindrecord

local program = arg[-1]
local folder = os.tmpname()
os.remove(folder)
os.execute("mkdir " .. folder)
local child = folder .. "/child.lua"
assert(io.open(child, "w")):write [[
local R = require("lunaria").mindrecord
local path, shards = arg[1], math.tointeger(arg[2])
local log = io.open(path .. ".log", "a")
log:setvbuf "no"
local w = R.FileWriter(path, { shard_num = shards, overwrite = true })
w:add_schema { i = { type = "int32" }, b = { type = "bytes" } }
w:set_header_size(1 << 14)
w:set_page_size(1 << 15)
local count = 0
for round = 1, 1000 do
  local rows = {}
  for k = 1, 60 do rows[k] = { i = count + k - 1, b = ("b"):rep((count + k) % 900) } end
  w:write_raw_data(rows)
  count = count + 60
  w:commit()
  log:write(count, "\n")
  w = R.FileWriter.open_for_append(shards > 1 and path .. "0" or path)
end
]]:close()

-- Rows of the file, which must be 0, 1, 2 ... once each; nil where it is refused with its name.
local function rows_of(path)
  local ok, result = pcall(function()
    local seen, count = {}, 0
    for row in R.FileReader(path):get_next() do
      assert(not seen[row.i] and #row.b == (row.i + 1) % 900, "a wrong row")
      seen[row.i], count = true, count + 1
    end
    for i = 0, count - 1 do assert(seen[i], "a row is missing") end
    return count
  end)
  if ok then return result end
  assert(tostring(result):find(folder, 1, true), result)
  return nil
end

local rounds = tonumber(os.getenv "LUNARIA_KILLS") or 40
local slow = os.getenv "ASAN_OPTIONS" and 8 or 1 -- with sanitizers everything takes longer

for _, shards in ipairs { 1, 3 } do
  t.test(("kill -9 at any moment, %d shards"):format(shards), function()
    local refused, grown = 0, 0
    for round = 1, rounds do
      local path = ("%s/r%d_%d"):format(folder, shards, round)
      -- The first part is how long the program takes to begin.
      local wait = slow * (0.02 + (round * 7919 % 97) / 97 * 0.2)
      os.execute(("%s %s %s %d & p=$!; sleep %.3f; kill -9 $p; wait $p 2>/dev/null"):format(program, child, path, shards, wait))
      local committed = 0
      local log = io.open(path .. ".log")
      if log then
        for line in log:lines() do committed = math.tointeger(tonumber(line)) or committed end
        log:close()
      end
      local rows = rows_of(shards > 1 and path .. "0" or path)
      if rows then
        assert(rows == committed or rows == committed + 60, ("%d rows of %d"):format(rows, committed))
        grown = grown + (rows > 60 and 1 or 0)
      else
        refused = refused + 1
        -- Only files that were never there together.
        assert(committed == 0, "committed rows are refused")
      end
      os.execute(("rm -f %s*"):format(path))
    end
    -- How many depends on how busy the machine is.
    assert(grown > 0 and refused < rounds, ("%d of %d grew, %d were refused"):format(grown, rounds, refused))
  end)
end

os.execute("rm -r " .. folder)
t.finish()
