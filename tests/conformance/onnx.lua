-- Runs the node tests of the package onnx and counts them:
--   lunaria tests/conformance/onnx.lua DIR [--only PATTERN] [--graph] [--verbose]
-- DIR is what tests/conformance/reference/onnx_cases.py writes. Cases are right, refused (not supported, and said so when
-- the model is loaded), random (what is drawn differs, dtype and shape are compared) or wrong.
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path
local ms = require "lunaria"
local support = require "support"
local case = require "onnx_case"

local folder, options = support.options("usage: lunaria onnx.lua DIR [--only PATTERN] [--graph] [--verbose]",
  { only = "", graph = true, verbose = true })

local names, tolerances = {}, support.read_json(folder .. "/tolerances.json")
for name in pairs(tolerances) do
  if name:find(options.only) then names[#names + 1] = name end
end
table.sort(names)
local counts = { right = 0, refused = 0, random = 0, wrong = 0 }
for _, name in ipairs(names) do
  local outcome, message = case(folder .. "/node/" .. name .. "/", name, tolerances[name], options.graph and ms.jit)
  counts[outcome] = counts[outcome] + 1
  if outcome == "wrong" or options.verbose and outcome ~= "right" then print(outcome .. " " .. name .. ": " .. message) end
end
print(("%d right, %d refused, %d random, %d wrong of %d"):format(counts.right, counts.refused, counts.random, counts.wrong,
  #names))
os.exit(counts.wrong == 0 and 0 or 1, true)
