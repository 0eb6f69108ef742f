-- Tables in HTML, as notebooks show them. Cells are texts, which are escaped here.
local escaped = require "lunaria.plot.svg_text"

local html = { escaped = escaped }

local function row(cells, tag, align)
  local parts = {}
  for i, cell in ipairs(cells) do
    local side = type(align) == "table" and align[i] or align or "right"
    parts[i] = ("<%s%s>%s</%s>"):format(tag, side == "left" and " style=\"text-align:left\"" or "", escaped(cell), tag)
  end
  return "<tr>" .. table.concat(parts) .. "</tr>"
end

--- Options: head (list of names), align ("left" or "right", or a list of them), caption.
function html.table(rows, options)
  local parts = { "<table style=\"border-collapse:collapse;font-family:monospace;font-size:90%;text-align:right\">" }
  if options.caption then
    parts[#parts + 1] = ("<caption style=\"text-align:left;padding:4px 0\">%s</caption>"):format(escaped(options.caption))
  end
  if options.head then
    parts[#parts + 1] = "<thead>" .. row(options.head, "th", options.align) .. "</thead>"
  end
  parts[#parts + 1] = "<tbody>"
  for _, cells in ipairs(rows) do
    parts[#parts + 1] = row(cells, "td", options.align)
  end
  parts[#parts + 1] = "</tbody></table>"
  return table.concat(parts)
end

--- Indices from 0 to n - 1, of which at most `most` are shown: a list with a `false` where some are left out.
function html.shown(n, most)
  local list = {}
  if n <= most then
    for i = 0, n - 1 do
      list[#list + 1] = i
    end
    return list
  end
  local half = most // 2
  for i = 0, half - 1 do
    list[#list + 1] = i
  end
  list[#list + 1] = false
  for i = n - half, n - 1 do
    list[#list + 1] = i
  end
  return list
end

return html
