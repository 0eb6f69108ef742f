-- The types of help's entries, which are words ("integer or table of integers"), as those of LuaLS's annotations.
local types = {}

local words = {
  tensor = "lunaria.Tensor", parameter = "lunaria.Parameter", tensors = "lunaria.Tensor", parameters = "lunaria.Parameter",
  boolean = "boolean", booleans = "boolean", integer = "integer|number", integers = "integer|number", number = "number", numbers = "number",
  string = "string", strings = "string", text = "string", texts = "string", name = "string", path = "string", names = "string",
  ["function"] = "function", functions = "function", table = "table", tables = "table", ["nil"] = "nil", dtype = "lunaria.dtype|string",
  cell = "lunaria.nn.Cell", cells = "lunaria.nn.Cell", layer = "lunaria.nn.Cell", network = "lunaria.nn.Cell",
  ["data set"] = "lunaria.dataset.Dataset", ["table of sizes"] = "integer[]|integer", ["list of sizes"] = "integer[]",
}

-- The type of one alternative, such as "table of integers" or "\"mean\"".
local function alternative(text)
  text = text:gsub("^an? ", ""):gsub("^the ", "")
  if text:find '^"[^"]*"$' then return text end
  if words[text] then return words[text] end
  local of = text:match "^table of (.+)$" or text:match "^list of (.+)$"
  if of then
    local item = words[of:gsub("^positive ", "")]
    return item and (item:find "|" and "(" .. item .. ")" or item) .. "[]" or "table"
  end
  local of_what = text:match "^(%a+) of " or text:match "^positive (%a+)$" or text:match "^%a+ (integer)$" or text:match "^%a+ (number)$"
  return of_what and words[of_what] or nil
end

--- A type in words as a type of annotations, and whether it may be nil; "any" where a word is not known.
function types.annotation(text)
  if not text or text == "" then return "any", false end
  local list, seen, optional = {}, {}, false
  local plain = text:gsub(", as floats", ""):gsub(", or ", ", "):gsub(" or ", ", ")
  for part in plain:gmatch "[^,]+" do
    local found = alternative(part:match "^%s*(.-)%s*$")
    if not found then return "any", text:find "or nil" ~= nil end
    for one in found:gmatch(found:find "%(" and ".+" or "[^|]+") do
      if one == "nil" then
        optional = true
      elseif not seen[one] then
        seen[one], list[#list + 1] = true, one
      end
    end
  end
  if #list == 0 then return "any", true end
  return table.concat(list, "|"), optional
end

return types
