-- ms.federated.vertical.psi: ids that two parties have in common.
local core = require "lunaria.vertical"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local links = require "lunaria.federated.vertical.link"

local fail, describe = arguments.fail, arguments.describe

-- Ids as texts: integers by their digits, so that "7" and 7 are one.
local function texts(ids)
  if ms.is_tensor(ids) then ids = ids:tolist() end
  if type(ids) ~= "table" or getmetatable(ids) ~= nil or next(ids) ~= nil and #ids == 0 then
    fail("psi", "ids must be a list of texts or integers, got " .. describe(ids))
  end
  local list = {}
  for i, id in ipairs(ids) do
    local text = math.type(id) == "integer" and ("%d"):format(id) or id
    -- The error says nothing of the id.
    if type(text) ~= "string" then fail("psi", ("id %d must be a text or an integer, got a value of type %s"):format(i, type(id))) end
    list[i] = text
  end
  return list
end

local known = { first = "boolean", learns = arguments.one_of("both", "own", "other"), bins = arguments.positive, scalar = "string" }

--- Private set intersection: the ids that this party and the other end of the link have in common, exactly, as texts, sorted, in the same
--- order on both sides; then their positions among ids, from 1; then how many ids the other side has (with several bins: at most). nil
--- where only the other side learns. link: the way to the other party. ids: a list of texts or integers, each once. Options: learns
--- ("both", "own" or "other"), bins (1: parts that are compared one after the other, which bounds memory), first (whether this side begins;
--- nil: the one whose name comes first), scalar (64 random bytes, for tests; else drawn by the system).
---
--- Ids become points of ristretto255, which each side multiplies by a secret number (Diffie and Hellman). A side that keeps to the
--- protocol learns the size of the other set and, where it learns, the intersection; nothing of other ids, as long as discrete logarithms
--- are hard. What neither protocol nor cryptography prevents: a side may put ids that it guesses among its own.
---     > one = function(links) return ms.federated.vertical.psi(links.b, { "x", "y", "z" }) end
---     > other = function(links) return ms.federated.vertical.psi(links.a, { "z", "w", "x" }) end
---     > table.concat(ms.federated.vertical.run_parties({ a = one, b = other }).a, " ") --> x z
local function psi(link, ids, options)
  if not class.is_a(link, links.Link) then fail("psi", "link must be a link to the other party, got " .. describe(link)) end
  local o = arguments.options("psi", options, known, "{ learns = \"own\" }")
  local list = texts(ids)
  if o.scalar ~= nil and #o.scalar ~= 64 then fail("psi", "scalar must have 64 bytes") end
  local first = o.first
  if first == nil then first = link.own < link.peer end
  local learns = o.learns or "both"
  local own, other = learns ~= "other", learns ~= "own"
  local first_learns, second_learns = own, other
  if not first then first_learns, second_learns = other, own end
  local side = core.intersection(list, first, first_learns, second_learns, o.bins or 1, o.scalar)
  return links.guarded({ link }, function()
    while true do
      local message = core.next_message(side)
      if message then link:send("psi", { content = message }) end
      local is_done, positions, other_ids = core.result(side)
      if is_done then
        if not own then return nil, nil, other_ids end
        local common = {}
        for i, position in ipairs(positions) do common[i] = list[position] end
        return common, positions, other_ids
      end
      core.take_message(side, links.text(link, link:receive("psi"), "content"))
    end
  end)
end

return psi
