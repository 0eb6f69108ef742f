-- Byte-pair tokens as GPT-2 has them (Sennrich et al. 2016, over bytes): a text is cut into words, a word into bytes, and the pair
-- of neighbours that was learnt first is joined until no pair is known. Any text can be written and is read back exactly.
local M = {}

-- Bytes are written as letters that can be seen, as in the published files: those that are none follow from U+0100 on.
local letters, bytes, count = {}, {}, 0
for byte = 0, 255 do
  local seen = byte >= 33 and byte <= 126 or byte >= 161 and byte <= 172 or byte >= 174
  letters[byte] = utf8.char(seen and byte or 256 + count)
  if not seen then count = count + 1 end
  bytes[letters[byte]] = string.char(byte)
end

local words_of = require "lunaria.zoo.words"

local Tokens = {}
Tokens.__index = Tokens

-- The bytes of a word in visible letters.
local function split(word)
  local list = {}
  for i = 1, #word do list[i] = letters[word:byte(i)] end
  return list
end

-- The parts of a word in visible letters.
function Tokens:parts(word)
  if self.known[word] then return self.known[word] end
  local list = split(word)
  while true do
    local best, at
    for i = 1, #list - 1 do
      local rank = self.ranks[list[i] .. " " .. list[i + 1]]
      if rank and (not best or rank < best) then best, at = rank, i end
    end
    if not best then break end
    list[at] = list[at] .. table.remove(list, at + 1)
  end
  self.known[word] = list
  return list
end

--- The numbers of a text's tokens.
function Tokens:encode(text)
  local ids = {}
  for _, word in ipairs(words_of(text)) do
    for _, part in ipairs(self:parts(word)) do ids[#ids + 1] = self.ids[part] or error("byte_pairs: no token for " .. part, 2) end
  end
  return ids
end

--- The text of tokens.
function Tokens:decode(ids)
  local list = {}
  for i, id in ipairs(ids) do
    local text = self.texts[id] or error("byte_pairs: there is no token " .. tostring(id), 2)
    list[i] = text:gsub(utf8.charpattern, bytes)
  end
  return table.concat(list)
end

--- Tokens of { part = number } and a list of "first second" pairs, the first learnt first.
function M.tokens(ids, merges)
  local tokens = setmetatable({ ids = ids, ranks = {}, texts = {}, known = {} }, Tokens)
  for part, id in pairs(ids) do tokens.texts[id] = part end
  for i, pair in ipairs(merges) do tokens.ranks[pair] = i end
  return tokens
end

--- Tokens of the files that GPT-2 is published with, vocab.json and merges.txt.
function M.load(vocabulary, merges)
  local file, list = assert(io.open(vocabulary, "rb")), {}
  local ids = require("lunaria").json.decode(file:read "a")
  file:close()
  for line in io.lines(merges) do
    if not line:find "^#version" and line ~= "" then list[#list + 1] = line end
  end
  return M.tokens(ids, list)
end

--- Learns `count` pairs from a text: always the one that occurs most often.
function M.learn(text, merge_count)
  local words, order, ids, merges = {}, {}, {}, {}
  for _, word in ipairs(words_of(text)) do
    if not words[word] then
      order[#order + 1], words[word] = word, { split(word), 0 }
    end
    words[word][2] = words[word][2] + 1
  end
  for byte = 0, 255 do ids[letters[byte]] = byte end
  for step = 1, merge_count do
    local times, best = {}, nil
    for _, word in ipairs(order) do
      local list, n = table.unpack(words[word])
      for i = 1, #list - 1 do
        local pair = list[i] .. " " .. list[i + 1]
        times[pair] = (times[pair] or 0) + n
      end
    end
    for pair, n in pairs(times) do
      if not best or n > times[best] or n == times[best] and pair < best then best = pair end
    end
    if not best then break end
    merges[step], ids[best:gsub(" ", "")] = best, 255 + step
    local a, b = best:match "^(%S+) (%S+)$"
    for _, word in ipairs(order) do
      local list = words[word][1]
      local i = 1
      while i < #list do
        if list[i] == a and list[i + 1] == b then list[i] = a .. table.remove(list, i + 1) end
        i = i + 1
      end
    end
  end
  return M.tokens(ids, merges)
end

return M
