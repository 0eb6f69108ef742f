-- Sentences of a text that say what a parameter is: "name: what it is." or "name, name: ...", at the beginning of a sentence, where every
-- name is one of the parameters. They are taken out of the text, which goes on without them.
local filled = require "lunaria.help.filled"

-- "a, b" as names if all of them are known.
local function names_in(text, known)
  local list = {}
  for name in text:gsub(" and ", ", "):gsub(" or ", ", "):gmatch "[^,%s]+" do
    if not known[name] then return nil end
    list[#list + 1] = name
  end
  return #list > 0 and list or nil
end

-- Where the sentence that begins at `from` ends: at a full stop that is followed by a blank or by nothing, and is outside brackets.
local function end_of(text, from)
  local at, depth = from, 0
  while at <= #text do
    local c = text:sub(at, at)
    if c:find "[%(%{%[]" then
      depth = depth + 1
    elseif c:find "[%)%}%]]" then
      depth = math.max(0, depth - 1)
    elseif c == "." and depth == 0 and text:find("^%.%s", at) or at == #text then
      local before = text:sub(math.max(1, at - 4), at)
      if not before:find "e%.g%.$" and not before:find "i%.e%.$" and not before:find " al%.$" and not before:find "%.%.$" then return at end
    end
    at = at + 1
  end
  return #text
end

-- The next declaration from `from` on: where it begins, where its text begins, the names.
local function next_declaration(text, from, known)
  local at = from
  while true do
    local first, last = text:find("%f[%w_][%a_][%w_]*[%w_,%s]*: ", at)
    if not first then return nil end
    -- The shortest run of names before the colon that begins a sentence.
    local begin = first
    while begin <= last do
      local before = begin == 1 and "." or text:sub(1, begin - 1):match "(%S)%s*$"
      if before and before:find "[%.;]" and text:sub(begin, begin):find "[%a_]" then
        local names = names_in(text:sub(begin, last - 2), known)
        if names then return begin, last + 1, names end
      end
      begin = text:find("%f[%w_][%a_]", begin + 1)
      if not begin then break end
    end
    at = last
  end
end

--- The text without its declarations, and what these say: { name = text }. known: the parameters, { name = true }.
return function(doc, known)
  local own, paragraphs = {}, {}
  for paragraph in (doc .. "\n\n"):gmatch "(.-)\n\n+" do
    local flat = paragraph:gsub("%s*\n%s*", " ")
    if paragraph:find "\n%s" or paragraph:find "^%s" then
      paragraphs[#paragraphs + 1] = paragraph
    else
      local rest, from, found = {}, 1, false
      while true do
        local begin, text, names = next_declaration(flat, from, known)
        if not begin then break end
        local stop = end_of(flat, text)
        local following = next_declaration(flat, text, known)
        if following and following <= stop then stop = following - 1 end
        local meaning = flat:sub(text, stop):gsub("[%s%.;]+$", "")
        for _, name in ipairs(names) do own[name] = own[name] or meaning end
        rest[#rest + 1] = flat:sub(from, begin - 1):match "^%s*(.-)%s*$"
        from, found = stop + 1, true
      end
      rest[#rest + 1] = flat:sub(from):match "^%s*(.-)%s*$"
      local text = table.concat(rest, " "):match "^%s*(.-)%s*$"
      if not found then
        paragraphs[#paragraphs + 1] = paragraph
      elseif text ~= "" then
        paragraphs[#paragraphs + 1] = filled(text)
      end
    end
  end
  return table.concat(paragraphs, "\n\n"), own
end
