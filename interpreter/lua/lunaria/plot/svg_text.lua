-- A text with what XML takes for itself written as entities; control characters, which XML has no way to write, left out.
local entities = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ["\""] = "&quot;" }

return function(text)
  text = utf8.len(text) and text or text:gsub("[\128-\255]", "?")
  return (text:gsub("[&<>\"]", entities):gsub("[\0-\8\11\12\14-\31]", ""))
end
