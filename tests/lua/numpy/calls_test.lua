-- ms.numpy against numpy: 5,000 random calls over all names with what numpy gives (make.py beside calls.txt writes them).
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local run = require "numpy.calls"
local np = require("lunaria").numpy

local count = run(arg[1] or "tests/data/numpy/calls.txt", setmetatable({ np = np }, { __index = function(_, name) return np[name] end }))
t.test("there are 5,000 calls", function() t.equal(count, 5000) end)
t.finish()
