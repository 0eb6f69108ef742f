-- Byte-pair tokens as the package tokenizers gives them (byte_pairs/, written by make_tokens.py).
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local pairs_of_bytes = dofile "notebooks/zoo/byte_pairs.lua"
local folder = "tests/lua/zoo/byte_pairs/"
local tokens = pairs_of_bytes.load(folder .. "vocab.json", folder .. "merges.txt")
local file = assert(io.open(folder .. "expected.json"))
local rows = ms.json.decode(file:read "a")
file:close()

for _, row in ipairs(rows) do
  t.test(("tokens of %q"):format(row.text), function()
    local ids = tokens:encode(row.text)
    t.equal(#ids, #row.ids)
    t.equal(ids, row.ids)
    t.equal(tokens:decode(ids), row.text)
  end)
end

t.test("pairs are learnt, the most frequent first, and texts come back", function()
  local learnt = pairs_of_bytes.learn("ab bcd bcd", 4)
  t.equal(learnt.ranks["b c"], 1)
  local text = "abcd ab\0\xc3\xa4 \xe2\x82\xac"
  t.equal(learnt:decode(learnt:encode(text)), text)
  assert(#learnt:encode("bcd bcd") < 5)
  t.equal(#learnt:encode("aaaa"), 4)
  t.equal(#pairs_of_bytes.learn("aaaa aaaa", 1):encode("aaaaa"), 3)
end)

t.test("a token that is not known is an error", function()
  t.fails("there is no token 100000", function() return tokens:decode { 100000 } end)
  t.fails("no token for", function() return pairs_of_bytes.tokens({ a = 0 }, {}):encode "b" end)
end)

t.finish()
