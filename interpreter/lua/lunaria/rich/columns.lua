-- Rows of texts as lines of a terminal, in columns: columns(rows, head, align), align a list of "left" and "right".
return function(rows, head, align)
  local widths, lines = {}, {}
  local function measure(row)
    for c, cell in ipairs(row) do
      widths[c] = math.max(widths[c] or 0, utf8.len(cell) or #cell)
    end
  end
  local function add(row)
    local cells = {}
    for c, cell in ipairs(row) do
      local room = (" "):rep(widths[c] - (utf8.len(cell) or #cell))
      cells[c] = align[c] == "right" and room .. cell or cell .. room
    end
    lines[#lines + 1] = (table.concat(cells, "  "):gsub("%s+$", ""))
  end
  measure(head)
  for _, row in ipairs(rows) do
    measure(row)
  end
  add(head)
  for _, row in ipairs(rows) do
    add(row)
  end
  return table.concat(lines, "\n")
end
