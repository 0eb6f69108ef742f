-- A plot as lines of text: points and lines as Braille characters (2 by 4 dots each), bars and matrices as blocks.
local data = require "lunaria.plot.data"
local scale = require "lunaria.plot.scale"

local BITS = { { 1, 2, 4, 64 }, { 8, 16, 32, 128 } }

local function length(text)
  return utf8.len(text) or #text
end

local function cut(text, width)
  if length(text) <= width then
    return text
  end
  return utf8.len(text) and text:sub(1, utf8.offset(text, width) - 1) .. "…" or text:sub(1, width)
end

local function right(text, width)
  return (" "):rep(width - length(text)) .. text
end

-- The nearest colour of the 6 x 6 x 6 cube that every terminal with 256 colours has.
local function code(r, g, b)
  local function level(x)
    return x < 48 and 0 or x < 115 and 1 or (x - 35) // 40
  end
  return 16 + 36 * level(r) + 6 * level(g) + level(b)
end

local function code_of_hex(hex)
  return code(tonumber(hex:sub(2, 3), 16), tonumber(hex:sub(4, 5), 16), tonumber(hex:sub(6, 7), 16))
end

local function painted(text, color)
  return color and ("\27[38;5;%dm%s\27[0m"):format(color, text) or text
end

-- A line with a text in place of the characters from a column on, counted from 0. Colours take no column.
local function over(line, column, label)
  local out, at, i = {}, 0, 1
  local function put(stop) while at < stop do out[#out + 1], at = " ", at + 1 end end
  local stop = column + length(label)
  local is_put = false
  while i <= #line do
    local escape = line:match("^\27%[[%d;]*m", i)
    local unit = escape or line:match("^" .. utf8.charpattern, i)
    if not escape then
      if at == column then
        out[#out + 1], is_put = label, true
      end
      if at < column or at >= stop then out[#out + 1] = unit end
      at = at + 1
    else
      out[#out + 1] = unit
    end
    i = i + #unit
  end
  if not is_put then
    put(column)
    out[#out + 1] = label
  end
  return table.concat(out)
end

-- A field of Braille characters, in which every character has the colour of the last dot.
local Field = {}
Field.__index = Field

local function new_field(columns, rows)
  return setmetatable({ columns = columns, rows = rows, bits = {}, colors = {}, marks = {} }, Field)
end

function Field:dot(u, v, color)
  local x, y = math.floor(u * (self.columns * 2 - 1) + 0.5), math.floor((1 - v) * (self.rows * 4 - 1) + 0.5)
  if x < 0 or y < 0 or x >= self.columns * 2 or y >= self.rows * 4 then
    return
  end
  local cell = (y // 4) * self.columns + x // 2
  self.bits[cell] = (self.bits[cell] or 0) | BITS[x % 2 + 1][y % 4 + 1]
  self.colors[cell] = color
end

function Field:line(u1, v1, u2, v2, color)
  -- What lies far outside is cut off before it is walked along dot by dot.
  local from, to = 0, 1
  for _, pair in ipairs { { u1, u2 }, { v1, v2 } } do
    local a, b = pair[1], pair[2]
    if a == b then
      if a < 0 or a > 1 then
        return
      end
    else
      local p, q = (0 - a) / (b - a), (1 - a) / (b - a)
      from, to = math.max(from, math.min(p, q)), math.min(to, math.max(p, q))
    end
  end
  if from > to then
    return
  end
  local du, dv = u2 - u1, v2 - v1
  local steps = math.ceil(math.max(math.abs(du) * self.columns * 2, math.abs(dv) * self.rows * 4) * (to - from))
  for i = 0, steps do
    local share = from + (to - from) * i / math.max(1, steps)
    self:dot(u1 + du * share, v1 + dv * share, color)
  end
end

-- A character in place of the dots.
function Field:mark(u, v, text, color)
  local x, y = math.floor(u * (self.columns - 1) + 0.5), math.floor((1 - v) * (self.rows - 1) + 0.5)
  if x >= 0 and y >= 0 and x < self.columns and y < self.rows then
    local cell = y * self.columns + x
    self.marks[cell], self.colors[cell] = text, color
  end
end

function Field:lines(colored)
  local lines = {}
  for row = 0, self.rows - 1 do
    local parts = {}
    for column = 0, self.columns - 1 do
      local cell = row * self.columns + column
      local bits = self.bits[cell]
      local text = self.marks[cell] or bits and utf8.char(0x2800 + bits) or " "
      parts[#parts + 1] = text == " " and text or painted(text, colored and self.colors[cell])
    end
    lines[row + 1] = table.concat(parts)
  end
  return lines
end

local function draw_points(field, frame, layer, x, y, color, joined)
  local last_u, last_v, end_u, end_v
  for i = 1, #x do
    local u, v = frame.x:place(x[i]), frame.y:place(y[i])
    if u and v then
      if joined and last_u then
        field:line(last_u, last_v, u, v, color)
      else
        field:dot(u, v, color)
      end
      end_u, end_v = u, v
    end
    last_u, last_v = u and v and u, u and v and v
  end
  return end_u, end_v
end

local EIGHTHS = { [0] = " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }

local function draw_bars(field, frame, layer, color)
  for column = 0, field.columns - 1 do
    local u = (column + 0.5) / field.columns
    local value
    for k, count in ipairs(layer.counts) do
      local from, to = frame.x:place(layer.edges[k]), frame.x:place(layer.edges[k + 1])
      if from and to and u >= from and u < to then
        value = frame.y:place(count)
      end
    end
    local eighths = math.floor((value or 0) * field.rows * 8 + 0.5)
    for row = 0, field.rows - 1 do
      local filled = math.min(8, eighths - (field.rows - 1 - row) * 8)
      if filled > 0 then
        local cell = row * field.columns + column
        field.marks[cell], field.colors[cell] = EIGHTHS[filled], color
      end
    end
  end
end

-- Numbers and ticks around lines of a picture.
local function with_axes(frame, lines, columns, rows, margin)
  local out, labels = {}, {}
  for _, tick in ipairs(frame.y:ticks(math.max(2, rows // 3))) do
    local row = math.floor((1 - frame.y:place(tick.value)) * (rows - 1) + 0.5) + 1
    labels[row] = labels[row] or tick.label
  end
  for row = 1, rows do
    out[row] = right(cut(labels[row] or "", margin), margin) .. (labels[row] and "┤" or "│") .. lines[row]
  end
  local ruler, below, ends = {}, {}, 0
  for column = 1, columns do
    ruler[column] = "─"
  end
  for _, tick in ipairs(frame.x:ticks(math.max(2, columns // 12))) do
    local at = math.floor(frame.x:place(tick.value) * (columns - 1) + 0.5) + 1
    local text = cut(tick.label, math.max(3, columns // 3))
    local start = math.max(0, math.min(at - 1 - length(text) // 2, columns - length(text)))
    if at >= 1 and at <= columns and start >= ends then
      ruler[at] = "┬"
      below[#below + 1] = (" "):rep(start - ends) .. text .. " "
      ends = start + length(text) + 1
    end
  end
  out[#out + 1] = (" "):rep(margin) .. "└" .. table.concat(ruler)
  out[#out + 1] = (" "):rep(margin + 1) .. table.concat(below)
  return out
end

local function bar_chart(frame, options, colored)
  local out, widest, most = {}, 0, 0
  for _, name in ipairs(frame.x.categories) do
    widest = math.max(widest, math.min(20, length(name)))
  end
  local bars = {}
  for _, name in ipairs(frame.x.categories) do
    local head = name
    for _, layer in ipairs(frame.layers) do
      for i, other in ipairs(layer.kind == "bar" and layer.x or {}) do
        if other == name then
          local text = ("%.6g"):format(layer.y[i])
          most = math.max(most, length(text))
          bars[#bars + 1] = { head = head, value = layer.y[i], text = text, color = colored and code_of_hex(layer.color) }
          head = ""
        end
      end
    end
  end
  local room = math.max(10, options.width - widest - most - 4)
  local zero = math.min(1, math.max(0, frame.y:place(0) or 0))
  for _, bar in ipairs(bars) do
    local at = math.min(1, math.max(0, frame.y:place(bar.value) or zero))
    local from, to = math.min(at, zero) * room, math.max(at, zero) * room
    local eighths = math.floor((to - from) * 8 + 0.5)
    local blocks = ("█"):rep(eighths // 8)
    if eighths % 8 > 0 and bar.value >= 0 then
      blocks = blocks .. utf8.char(0x2590 - eighths % 8)
    end
    local before = (" "):rep(math.floor(from + 0.5))
    out[#out + 1] = right(cut(bar.head, widest), widest) .. " │" .. before .. painted(blocks, bar.color) .. " " .. bar.text
  end
  return out
end

local SHADES = { " ", "░", "▒", "▓", "█" }

-- Lines of text for a matrix of colours: rgb(row, column) gives red, green, blue; columns and rows of characters.
local function matrix(rows, columns, rgb, width, height, colored)
  -- A character is twice as high as wide: two columns for a cell, or two cells above each other in one character.
  local factor = math.min(width / (columns * (colored and 1 or 2)), height * (colored and 2 or 1) / rows)
  factor = factor >= 1 and math.floor(factor) or factor
  local wide = math.max(1, math.floor(columns * factor)) * (colored and 1 or 2)
  local high = math.max(1, math.floor(rows * factor))
  local function at(row, column)
    return rgb(math.min(rows, row * rows // high + 1), math.min(columns, column * columns // wide + 1))
  end
  local lines = {}
  for row = 0, high - 1, colored and 2 or 1 do
    local parts = {}
    for column = 0, wide - 1 do
      local r, g, b = at(row, column)
      if not colored then
        local light = (0.299 * r + 0.587 * g + 0.114 * b) / 255
        parts[#parts + 1] = SHADES[math.floor(light * 4 + 0.5) + 1]
      elseif row + 1 < high then
        parts[#parts + 1] = ("\27[38;5;%d;48;5;%dm▀"):format(code(r, g, b), code(at(row + 1, column)))
      else
        parts[#parts + 1] = ("\27[0;38;5;%dm▀"):format(code(r, g, b))
      end
    end
    lines[#lines + 1] = table.concat(parts) .. (colored and "\27[0m" or "")
  end
  return lines
end

local function heatmap(layer, options)
  local span = layer.high > layer.low and layer.high - layer.low or 1
  local out = matrix(#layer.z, #layer.z[1], function(i, j)
    return scale.rgb(options.color and layer.map or "grey", (layer.z[i][j] - layer.low) / span)
  end, options.width, options.height, options.color)
  out[#out + 1] = ("%d rows, %d columns, from %.6g to %.6g"):format(#layer.z, #layer.z[1], layer.low, layer.high)
  return out
end

local function xy_chart(frame, options)
  local rows, margin = options.height, 1
  for _, tick in ipairs(frame.y:ticks(math.max(2, rows // 3))) do
    margin = math.max(margin, math.min(12, length(tick.label)))
  end
  local columns = math.max(10, options.width - margin - 2)
  local field = new_field(columns, rows)
  local letters = 0
  for _, layer in ipairs(frame.layers) do
    local color = layer.color and code_of_hex(layer.color)
    if layer.kind == "hist" then
      draw_bars(field, frame, layer, color)
    elseif layer.kind == "contour" then
      for _, line in ipairs(layer.lines) do
        local span = layer.high > layer.low and layer.high - layer.low or 1
        draw_points(field, frame, layer, line.x, line.y, code(scale.rgb(layer.map, (line.level - layer.low) / span)), true)
      end
    elseif layer.kind == "line" or layer.kind == "scatter" then
      local x, y = layer.x, layer.y
      if layer.kind == "line" and not layer.named then
        x, y = data.thin_line(x, y, columns * 16)
      end
      local u, v = draw_points(field, frame, layer, x, y, color, layer.kind == "line")
      if #frame.legend > 1 and layer.name and not options.color and u then
        letters = letters + 1
        field:mark(u, v, string.char(96 + (letters - 1) % 26 + 1), color)
      end
    end
  end
  return with_axes(frame, field:lines(options.color), columns, rows, margin), margin
end

local function radar(frame, options)
  local rows = options.height
  -- A character is twice as high as wide.
  local columns = math.min(options.width, 2 * rows)
  local room = (options.width - columns) // 2
  local field, names = new_field(columns, rows), {}
  require "lunaria.plot.radar".text(frame, field, function(u, v, name, side)
    names[#names + 1] = { row = math.floor((1 - v) * (rows - 1) + 0.5) + 1, at = room + u * (columns - 1), text = name, side = side }
  end)
  local letters = 0
  for _, layer in ipairs(frame.layers) do
    local color = code_of_hex(layer.color)
    local u, v = draw_points(field, frame, layer, layer.x, layer.y, color, true)
    if #frame.legend > 1 and layer.name and not options.color then
      letters = letters + 1
      field:mark(u, v, string.char(96 + (letters - 1) % 26 + 1), color)
    end
  end
  -- Names go over the picture's edge where they have to; each row is a list of characters.
  local cells = {}
  for row, line in ipairs(field:lines(options.color)) do
    cells[row] = (" "):rep(room) .. line
  end
  for _, name in ipairs(names) do
    local label = cut(name.text, math.max(3, options.width // 3))
    local start = math.floor(name.at + 0.5) - (name.side < 0 and length(label) or name.side == 0 and length(label) // 2 or 0)
    cells[name.row] = over(cells[name.row], math.max(0, math.min(start, options.width - length(label))), label)
  end
  return cells
end

local function text(frame, given)
  local options = { width = math.max(20, given.width or 80), height = math.max(3, given.height or 15), color = given.color }
  local first = frame.layers[1]
  local out, margin
  if first and first.kind == "heatmap" then
    out = heatmap(first, options)
  elseif first and first.kind == "image" then
    out = first.picture:lines(options)
  elseif frame.radar then
    out = radar(frame, options)
  elseif first and first.kind == "bar" then
    out = bar_chart(frame, options, options.color)
  else
    out, margin = xy_chart(frame, options)
  end
  local settings = frame.options
  if settings.y_label and margin then
    table.insert(out, 1, settings.y_label)
  end
  if settings.title then
    local room = math.max(0, (options.width - length(settings.title)) // 2)
    table.insert(out, 1, (" "):rep(room) .. settings.title)
  end
  if settings.x_label and margin then
    out[#out + 1] = (" "):rep(math.max(0, (options.width + margin - length(settings.x_label)) // 2)) .. settings.x_label
  end
  if #frame.legend > 0 then
    local parts = {}
    for i, layer in ipairs(frame.legend) do
      local key = options.color and painted("■", code_of_hex(layer.color)) or string.char(96 + (i - 1) % 26 + 1)
      parts[i] = #frame.legend == 1 and not options.color and layer.name or key .. " " .. layer.name
    end
    out[#out + 1] = (" "):rep((margin or 0) + 1) .. table.concat(parts, "   ")
  end
  for i, line in ipairs(out) do
    out[i] = line:gsub("%s+$", "")
  end
  return table.concat(out, "\n")
end

return { draw = text, matrix = matrix }
