-- The guides of the reference are true: their transcripts give what stands below each line.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local transcript = require "transcript"
local entries = require "lunaria.help.entries"
local others = require "lunaria.help.other_names"
local own_names = require "support.own_names"

local lines = 0
for _, guide in ipairs(require "lunaria.help.guides") do
  t.test(guide.title, function()
    local run = transcript.new()
    for _, part in ipairs(guide.parts) do
      for _, row in ipairs(type(part) == "table" and part or {}) do
        lines = lines + 1
        local got = run(own_names(row[1]))
        if row[2] then t.equal(got, own_names(row[2])) end
        assert(not got:find "^[^\n]*:%d+: ", row[1] .. " gives " .. got)
      end
    end
  end)
end
t.test("there are guides for the usual tasks", function() assert(lines > 80, lines) end)
t.test("what other frameworks' names lead to exists", function()
  local missing = {}
  for _, rows in pairs(others) do
    for _, row in ipairs(rows) do
      local known = row[2] == "" or entries.names()[row[2]] or not row[2]:find "[%.:]"
      if not known then missing[#missing + 1] = row[2] end
    end
  end
  t.equal(missing, {})
end)
ms.set_context { mode = ms.get_context "mode" }
t.finish()
