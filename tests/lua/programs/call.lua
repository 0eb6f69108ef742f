-- The text of a call, from an operator's sample as tests/lua/programs/sample.lua has read it.

-- Also gives the templates of the operands a1, a2 …, the names that the text uses, and whether it names a dtype.
local function call_of(entry, sample)
  local operands, dtypes = {}, 0
  local function text_of(value)
    if value.list then
      local parts = {}
      for i, item in ipairs(value.list) do parts[i] = text_of(item) end
      return "{ " .. table.concat(parts, ", ") .. " }"
    elseif value.shape then
      operands[#operands + 1] = value
      return "a" .. #operands
    elseif value.text == "ms.float32" then
      dtypes = dtypes + 1
      return "dtype"
    end
    return value.text
  end
  local parts, named = {}, {}
  for _, argument in ipairs(sample) do
    local parameter, text = argument.parameter, text_of(argument.value)
    if #named == 0 and not argument.name and not parameter.by_name_only then
      parts[#parts + 1] = text
    else
      named[#named + 1] = (parameter.name == "end" and "[\"end\"]" or parameter.name) .. " = " .. text
    end
  end
  if #named > 0 then parts[#parts + 1] = "{ " .. table.concat(named, ", ") .. " }" end
  local names = { "dtype" }
  for i = 1, #operands do names[i + 1] = "a" .. i end
  local text = ("ops.%s(%s)"):format(entry.name, table.concat(parts, ", "))
  return text, operands, table.concat(names, ", "), dtypes > 0
end

return call_of
