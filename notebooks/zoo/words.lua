-- The words of a text as GPT-2 cuts it: a space goes with the word behind it; letters, digits and signs are words of their own, and
-- so are 's, 't, 're, 've, 'm, 'll, 'd.

-- Ranges beyond ASCII that hold no letters, and what they hold instead; signs where nothing is said.
local ranges = {
  { 0xa0, 0xa0, "space" }, { 0x1680, 0x1680, "space" }, { 0x2000, 0x200a, "space" }, { 0x2028, 0x2029, "space" },
  { 0x202f, 0x202f, "space" }, { 0x205f, 0x205f, "space" }, { 0x3000, 0x3000, "space" }, { 0x85, 0x85, "space" },
  { 0xb2, 0xb3, "digit" }, { 0xb9, 0xb9, "digit" }, { 0xbc, 0xbe, "digit" }, { 0x660, 0x669, "digit" }, { 0x966, 0x96f, "digit" },
  { 0x2070, 0x2070, "digit" }, { 0x2074, 0x2079, "digit" }, { 0x2080, 0x2089, "digit" }, { 0x2150, 0x2189, "digit" },
  { 0x2460, 0x249b, "digit" }, { 0xff10, 0xff19, "digit" }, { 0x80, 0xa9 }, { 0xab, 0xb4 }, { 0xb6, 0xb8 }, { 0xbb, 0xbf },
  { 0xd7, 0xd7 }, { 0xf7, 0xf7 }, { 0x300, 0x36f }, { 0x2000, 0x206f }, { 0x20a0, 0x20ff }, { 0x2190, 0x245f }, { 0x249c, 0x2bff },
  { 0x3001, 0x3004 }, { 0x3008, 0x3020 }, { 0xfe00, 0xfe6f }, { 0xff00, 0xff20 }, { 0x1f000, 0x1faff },
}

local function kind_of(code)
  if code < 128 then
    local c = string.char(code)
    return c:find "%a" and "letter" or c:find "%d" and "digit" or c:find "%s" and "space" or "sign"
  end
  for _, range in ipairs(ranges) do
    if code >= range[1] and code <= range[2] then return range[3] or "sign" end
  end
  return "letter"
end

local endings = { ["'s"] = true, ["'t"] = true, ["'m"] = true, ["'d"] = true, ["'re"] = true, ["'ve"] = true, ["'ll"] = true }

return function(text)
  local codes, kinds, list = {}, {}, {}
  for _, code in utf8.codes(text) do
    codes[#codes + 1], kinds[#kinds + 1] = utf8.char(code), kind_of(code)
  end
  local i = 1
  while i <= #codes do
    local last
    for length = 1, 2 do
      local ending = i + length <= #codes and table.concat(codes, "", i, i + length)
      if ending and endings[ending] then last = last or i + length end
    end
    if not last then
      local first = codes[i] == " " and kinds[i + 1] and kinds[i + 1] ~= "space" and i + 1 or i
      last = first
      while kinds[last + 1] == kinds[first] do last = last + 1 end
      -- The last of several spaces belongs to what follows.
      if kinds[first] == "space" and last > first and last < #codes then last = last - 1 end
    end
    list[#list + 1] = table.concat(codes, "", i, last)
    i = last + 1
  end
  return list
end
