-- The types that parameters have in the reference: single ones, "table of ..." of several, texts in quotes, and alternatives of them,
-- "integer, table of integers or nil".
local types = {}

local single = {}
for name in ([[tensor number integer boolean string table function cell parameter dtype nil userdata model optimizer callback metric
  initializer slice layout mesh file coroutine thread attack defence bijector distribution codec vocabulary tokenizer sampler
  schedule client strategy identity link job plot image graph device class module value values arguments]]):gmatch "%S+" do
  single[name] = true
end
for _, name in ipairs { "any value", "any values", "data set", "adaptive clip", "federated client", "federated model", "communicator",
  "server configuration", "checkpoint configuration", "loss scale manager", "SSL configuration", "vectors", "constant", "fixed-point code",
  "decoder", "feature map", "compiled function", "sparse tensor", "tensor of integers", "tensor of booleans", "tensor of one integer",
  "tensor of one boolean", "sizes", "light number", "object" } do
  single[name] = true
end

local several = {}
for name in ([[tensors numbers integers booleans strings tables functions cells parameters dtypes callbacks optimizers sizes values
  shapes models layouts tokens]]):gmatch "%S+" do
  several[name] = true
end

local function is_one(text)
  return single[text] or text:find '^"[^"]*"$' or several[text:match "^table of (%l+)$" or ""] or false
end

--- The alternatives of a type in a list; nil where one of them is no type.
function types.alternatives(text)
  local list = {}
  for part in text:gsub(", as floats", ""):gsub(" or ", ", "):gmatch "[^,]+" do
    part = part:match "^%s*(.-)%s*$"
    if not is_one(part) then return nil end
    list[#list + 1] = part
  end
  return #list > 0 and list or nil
end

--- What is wrong with a parameter of the index as it is shown, or nil: no type, a type that is none, no meaning, one that ends amid a
--- sentence or has unequal brackets.
function types.fault(parameter)
  if not parameter.type then return "no type" end
  if not types.alternatives(parameter.type) then return "no type is called " .. parameter.type end
  local text = parameter.text or ""
  if not text:find "%w" then return "no meaning" end
  for _, pair in ipairs { "()", "{}", "[]" } do
    local open, close = "%" .. pair:sub(1, 1), "%" .. pair:sub(2, 2)
    local whole = not text:find("[%[%(][%-%d][^%[%(]*[%]%)]") -- [0, 1) is a range
    if whole and select(2, text:gsub(open, "")) ~= select(2, text:gsub(close, "")) then return "brackets: " .. text end
  end
  if select(2, text:gsub('"', "")) % 2 == 1 then return "quotes: " .. text end
  if text:find "[,%(:;%-=]$" or text:find "^[,%);:%.]" then return "it is cut: " .. text end
  local last = text:match "%s(%l+)$"
  for word in ("the an and or"):gmatch "%S+" do
    if last == word then return "it ends amid a sentence: " .. text end
  end
  return nil
end

return types
