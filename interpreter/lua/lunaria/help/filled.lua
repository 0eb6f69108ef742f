--- A text in lines of at most 120 bytes.
return function(text)
  local lines, line = {}, ""
  for word in text:gmatch "%S+" do
    if #line + #word >= 120 then
      lines[#lines + 1], line = line, ""
    end
    line = line == "" and word or line .. " " .. word
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end
