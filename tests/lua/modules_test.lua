-- Lua modules that the system has installed, compiled ones too, load into this program and live with its exceptions.
-- Eager mode only: nothing here is called often enough to be compiled.
local lfs = require "lfs"
local cjson = require "cjson"

local ms = require "lunaria"

-- A function of a C module returns what it should, and its errors are ordinary Lua errors.
assert(lfs.attributes("tests", "mode") == "directory")
assert(cjson.encode({ 1, 2 }) == "[1,2]")
local ok, message = pcall(cjson.decode, "{bad")
assert(not ok and message:find("invalid token"), message)

-- An error of ours crosses the frames of a C module that calls back.
local text = setmetatable({}, { __index = function() return ms.ops.matmul(ms.tensor({ 1.0 }), ms.tensor({ 1.0, 2.0 })) end })
ok, message = pcall(string.gsub, "abc", "%w", text)
assert(not ok and tostring(message):find("matmul"), message)

-- A C iterator with a finalizer inside a coroutine that is never finished.
local first = coroutine.wrap(function()
  for name in lfs.dir("tests") do coroutine.yield(name) end
end)
assert(type(first()) == "string")
first = nil -- luacheck: ignore
collectgarbage()

-- Values go from one to the other.
assert(ms.tensor(cjson.decode("[1.5, 2.5]")):sum():item() == 4)
