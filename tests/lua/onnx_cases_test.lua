-- A case or two of each operator of the ONNX node tests (tests/data/onnx, written by
-- tests/conformance/reference/onnx_cases.py): right, or refused when the model is loaded.
package.path = "tests/conformance/?.lua;" .. package.path
local ms = require "lunaria"
local case = require "onnx_case"

local file = assert(io.open("tests/data/onnx/cases.bin", "rb"))
local index = ms.json.decode(file:read "l")
local folder = os.tmpname()
os.remove(folder)
local made = {}
local function make(path)
  if not made[path] then assert(os.execute("mkdir -p " .. path)) end
  made[path] = true
end

local counts, wrong = { right = 0, refused = 0, random = 0, wrong = 0 }, {}
for set = 0, 2 do make(("%s/test_data_set_%d"):format(folder, set)) end
for _, entry in ipairs(index) do
  os.execute(("rm -f %s/test_data_set_*/*"):format(folder))
  for _, row in ipairs(entry.files) do
    make(folder .. "/" .. (row[1]:match "^(.*)/" or ""))
    local out = assert(io.open(folder .. "/" .. row[1], "wb"))
    out:write(row[2] > 0 and file:read(row[2]) or "")
    out:close()
  end
  local outcome, message = case(folder .. "/", entry.name, { entry.rtol, entry.atol })
  counts[outcome] = counts[outcome] + 1
  if outcome == "wrong" then wrong[#wrong + 1] = entry.name .. ": " .. message end
end
file:close()
os.execute("rm -r " .. folder)
assert(#wrong == 0, table.concat(wrong, "\n"))
-- Of what is stored: cases of types that tensors do not have are refused, and some operators of other domains.
assert(counts.right >= 290, ("only %d of %d cases are right"):format(counts.right, #index))
print(("%d right, %d refused, %d random"):format(counts.right, counts.refused, counts.random))
assert(dofile "tests/lua/support/compiled.lua".check())
