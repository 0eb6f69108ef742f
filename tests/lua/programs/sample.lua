-- The samples of an operator's entry (core/ops/sample.h), read: what a call of it takes.
local ms = require "lunaria"

local DTYPES = { f32 = "float32", f64 = "float64", f16 = "float16", bf16 = "bfloat16", i8 = "int8", i16 = "int16", i32 = "int32",
  i64 = "int64", u8 = "uint8", bool = "bool", c64 = "complex64", u16 = "uint16", u32 = "uint32", u64 = "uint64", c128 = "complex128" }

-- A list of { parameter, value, name where it is passed by name }: a value is { dtype, shape, low, high } of a tensor,
-- { list = values }, or { text = Lua's text of an attribute }. Nil where the entry has no such parameter.
local function parse_sample(text, entry)
  local at = 1
  local function skip() at = text:find("[^ ]", at) or #text + 1 end
  local function eat(token)
    skip()
    if text:sub(at, at + #token - 1) ~= token then return false end
    at = at + #token
    return true
  end
  local function take(pattern)
    local found = text:match("^" .. pattern, at)
    if found then at = at + #found end
    return found
  end
  local function number() skip() return tonumber(take "[-+.%w]+") end
  local item
  function item()
    skip()
    if eat "{" then
      local list = {}
      if not eat "}" then
        repeat list[#list + 1] = item() until not eat ","
        assert(eat "}", text)
      end
      return { list = list }
    end
    local word = text:match("^[%w_]+%[", at)
    if word then
      at = at + #word
      local value = { dtype = DTYPES[word:sub(1, -2)], shape = {} }
      if not eat "]" then
        repeat value.shape[#value.shape + 1] = math.tointeger(number()) until not eat ","
        assert(eat "]", text)
      end
      if eat ":" then
        assert(eat "(", text)
        value.low = number()
        assert(eat ",", text)
        value.high = number()
        assert(eat ")", text)
      end
      return value
    end
    local quoted = take '"[^"]*"'
    if quoted then return { text = quoted } end
    local plain = take "[-+.%w_]+"
    if plain == "inf" then plain = "math.huge" elseif plain == "-inf" then plain = "-math.huge" end
    if DTYPES[plain] or (rawget(ms, plain) ~= nil and plain:find "%d") or plain == "bool" then plain = "ms." .. (DTYPES[plain] or plain) end
    return { text = plain }
  end
  local arguments, position = {}, 0
  skip()
  while at <= #text do
    local name = text:match("^([%w_]+)=", at)
    local parameter
    if name then
      at = at + #name + 1
      for _, p in ipairs(entry.parameters) do
        if p.name == name then parameter = p end
      end
    else
      position = position + 1
      parameter = entry.parameters[position]
    end
    if not parameter then return nil end
    arguments[#arguments + 1] = { parameter = parameter, value = item(), name = name }
    skip()
    if at <= #text then assert(eat ",", text) end
    skip()
  end
  return arguments
end

return parse_sample
