-- The errors of a quantised network's layers: as fields, as a table, as files, as a picture.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local weights = require "lunaria.lite.quantise_weights"

local Report = class.define(nil, "QuantReport", "", [[What ms.lite.quantize gives beside the network.

sqnr, cosine: of the network's results for the calibration samples, against those before. layers: a list of { name, kind, bits, method,
size, bytes, weight_sqnr, weight_cosine, input_sqnr, output_sqnr, output_cosine }; errors of outputs are those of the layer for exact
inputs. kept: the names of layers that stayed floating. folded, equalised, smoothed: how many normalisations and pairs were changed
before.]])

local function row_of(layer)
  local cell, s = layer.cell, layer.errors
  local w = cell[layer.kind.weight]
  local row = { name = layer.name, kind = layer.kind.class._name, bits = layer.bits, method = layer.method, size = w.size }
  row.bytes = math.ceil(w.size * layer.bits / 8) + cell.weight_scale.size * (cell.weight_block > 0 and 2 or 4)
  row.weight_sqnr, row.weight_cosine = weights.compare(layer.exact, w)
  if s then
    if cell.input_min then row.input_sqnr = weights.decibels(s.x_signal, s.x_noise) end
    row.output_sqnr, row.output_cosine = weights.decibels(s.signal, s.noise), weights.cosine(s.signal, s.other, s.product)
  end
  return row
end

local function new(layers, kept, changes)
  local self = setmetatable({ layers = {}, kept = {} }, Report)
  for i, layer in ipairs(layers) do self.layers[i] = row_of(layer) end
  for i, layer in ipairs(kept) do self.kept[i] = layer.name end
  self.folded, self.equalised, self.smoothed = changes.folded, changes.equalised, changes.smoothed
  return self
end

local columns = {
  { "layer", "name", "%s" }, { "kind", "kind", "%s" }, { "bits", "bits", "%d" }, { "weights", "size", "%d" }, { "bytes", "bytes", "%d" },
  { "weight dB", "weight_sqnr", "%.1f" }, { "input dB", "input_sqnr", "%.1f" }, { "output dB", "output_sqnr", "%.1f" },
  { "cosine", "output_cosine", "%.6f" },
}

local function cell_text(row, column)
  local value = row[column[2]]
  return value == nil and "" or column[3]:format(value)
end

--- The report as a table of text: a line for each layer.
---     > net = ms.nn.SequentialCell(ms.nn.Dense(64, 32))
---     > _, report = ms.lite.quantize(net, { quant_type = "WEIGHT_QUANT" })
---     > report:table():match "^layer +kind +bits" ~= nil --> true
function Report:table()
  local widths, lines = {}, {}
  local rows = { {} }
  for k, column in ipairs(columns) do rows[1][k] = column[1] end
  for _, row in ipairs(self.layers) do
    local texts = {}
    for k, column in ipairs(columns) do texts[k] = cell_text(row, column) end
    rows[#rows + 1] = texts
  end
  for k in ipairs(columns) do
    widths[k] = 0
    for _, row in ipairs(rows) do widths[k] = math.max(widths[k], #row[k]) end
  end
  for i, row in ipairs(rows) do
    local texts = {}
    for k, text in ipairs(row) do
      local gap = (" "):rep(widths[k] - #text)
      texts[k] = k <= 2 and text .. gap or gap .. text
    end
    lines[i] = (table.concat(texts, "  "):gsub("%s+$", ""))
  end
  if #self.kept > 0 then lines[#lines + 1] = "floating: " .. table.concat(self.kept, ", ") end
  if self.sqnr then lines[#lines + 1] = ("results: %.1f dB, cosine %.6f"):format(self.sqnr, self.cosine) end
  return table.concat(lines, "\n")
end

function Report:__tostring() return self:table() end

--- A picture of the errors: a group of bars for each layer, in decibels; higher is better.
---     > net = ms.nn.SequentialCell(ms.nn.Dense(64, 32))
---     > _, report = ms.lite.quantize(net, { quant_type = "WEIGHT_QUANT" })
---     > report:plot() ~= nil --> true
function Report:plot()
  if #self.layers == 0 then arguments.fail("plot", "all layers of the network stayed floating") end
  local names, series = {}, {}
  for i, row in ipairs(self.layers) do names[i] = row.name == "" and row.kind or row.name end
  for _, what in ipairs { "weight", "input", "output" } do
    local values = {}
    for i, row in ipairs(self.layers) do
      local value = row[what .. "_sqnr"]
      -- What lost nothing has no end.
      if value then values[i] = math.max(0, math.min(value, 120)) end
    end
    if #values == #self.layers and #values > 0 then series[what] = values end
  end
  return ms.plot.bar(names, series, { title = "Signal over rounding noise", y_label = "dB" })
end

local function write(path, text)
  local file, message = io.open(path, "w")
  if not file then arguments.fail("quantize", "debug_info_save_path: " .. message) end
  file:write(text)
  file:close()
end

--- Writes the report into a folder: quant_summary.csv with a row for each layer, output_summary.csv with the network's results.
function Report:save(folder)
  local names = {
    "name", "kind", "bits", "method", "size", "bytes", "weight_sqnr", "weight_cosine", "input_sqnr", "output_sqnr", "output_cosine",
  }
  local lines = { table.concat(names, ",") }
  for _, row in ipairs(self.layers) do
    local texts = {}
    for k, name in ipairs(names) do texts[k] = row[name] == nil and "" or tostring(row[name]) end
    lines[#lines + 1] = table.concat(texts, ",")
  end
  for _, name in ipairs(self.kept) do lines[#lines + 1] = name .. ",float" .. (","):rep(#names - 2) end
  write(folder .. "/quant_summary.csv", table.concat(lines, "\n") .. "\n")
  if self.sqnr then write(folder .. "/output_summary.csv", ("sqnr,cosine\n%.3f,%.9f\n"):format(self.sqnr, self.cosine)) end
end

return new
