-- Curves that grow while a program runs: in a notebook one output that is replaced, in a terminal lines that are drawn
-- over, elsewhere the curve as text at the end.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local frontend = require "lunaria.frontend"

local fail, describe = arguments.fail, arguments.describe

-- Drawing takes longer the more points there are: never more than a tenth of the time.
local LEAST_PAUSE, SHARE = 200000000, 10

local Live = {}
Live.__index = Live
Live.__name = "live plot"

local function plot_of(self)
  local p
  for _, name in ipairs(self._names) do
    local series = self._series[name]
    local options = {}
    for key, value in pairs(self._options) do
      options[key] = value
    end
    options.x, options.y, options.label = series.x, series.y, (#self._names > 1 or self._named) and name or nil
    p = p and p:line(options) or ms.plot.line(options)
  end
  return p
end

local function draw_in_place(self, p)
  local width, height = ms.terminal_size()
  local text = p:text { width = math.min(width - 1, 100), height = math.max(5, math.min(15, height - 8)), color = self._color }
  local _, lines = text:gsub("\n", "\n")
  local out = self._out
  if self._lines then
    out:write(("\27[%dA\r\27[J"):format(self._lines + 1))
  end
  out:write(text, "\n")
  out:flush()
  self._lines = lines
end

local function draw(self, last)
  if #self._names == 0 then
    return
  end
  local start, p = ms.clock(), plot_of(self)
  if self._rich then
    -- The rest of the formats once it is finished; until then a drawing alone, which is replaced without flicker.
    local shown = last and p or { ["image/svg+xml"] = p:svg(), ["text/plain"] = p:text() }
    if self._handle then
      self._handle:update(shown, { raw = not last })
    else
      self._handle = ms.display(shown, { id = true, raw = not last })
    end
  elseif self._terminal then
    draw_in_place(self, p)
  elseif last then
    print(p:text())
  end
  self._pending = false
  local now = ms.clock()
  self._next = now + math.max(LEAST_PAUSE, (now - start) * SHARE)
end

--- Adds a point: add(step, loss), or several curves at once: add(step, { train = 0.3, test = 0.4 }). Numbers may be tensors
--- of one element. Gives the curve back.
---     > ms.plot.live():add(1, { train = 3, test = 4 }):add(2, { train = 2, test = 3.5 }) --> live plot of 2 curves
function Live:add(step, values)
  if self._done then
    fail("plot.live", "the curve is finished: nothing can be added")
  end
  if type(values) ~= "table" or ms.is_tensor(values) then
    values = { [self._label] = values }
  end
  local function number(value, name)
    value = ms.is_tensor(value) and value.size == 1 and value:item() or value
    if type(value) ~= "number" then
      fail("plot.live", ("%s must be a number, got %s"):format(name, describe(value)))
    end
    return value + 0.0
  end
  local x, sorted = number(step, "the step"), {}
  for name, value in pairs(values) do
    sorted[#sorted + 1] = { tostring(name), number(value, tostring(name)) }
  end
  table.sort(sorted, function(a, b)
    return a[1] < b[1]
  end)
  for _, pair in ipairs(sorted) do
    local name = pair[1]
    if not self._series[name] then
      self._series[name] = { x = {}, y = {} }
      self._names[#self._names + 1] = name
    end
    local series = self._series[name]
    series.x[#series.x + 1], series.y[#series.y + 1] = x, pair[2]
  end
  self._pending = true
  if (self._rich or self._terminal) and ms.clock() >= self._next then
    draw(self)
  end
  return self
end

--- Draws the whole for the last time. Happens by itself at the end of a cell, or when the variable is closed
--- (local c <close> = ms.plot.live{}).
---     > pcall(function() ms.plot.live():finish():add(1, 2) end)
---     false	example:1: plot.live: the curve is finished: nothing can be added
function Live:finish()
  if not self._done then
    draw(self, true)
    self._done = true
  end
  return self
end

--- The curves so far as a plot, to be saved for instance.
---     > #ms.plot.live():add(1, 2):plot():svg() > 1000 --> true
function Live:plot()
  return plot_of(self) or fail("plot.live", "nothing was added yet")
end

Live.__close = Live.finish

function Live:__tostring()
  return ("live plot of %d curves"):format(#self._names)
end

--- A curve that is drawn while it grows. Options are those of ms.plot.line, label among them, and file (io.stdout).
---     > c = ms.plot.live { title = "loss" }
---     > for step = 1, 3 do c:add(step, 1 / step) end
---     > #c:plot():vega().layer[1].data.values --> 3
local function live(options)
  options = options or {}
  if type(options) ~= "table" then
    fail("plot.live", "a table of options is expected, got " .. describe(options))
  end
  local given = {}
  for name, value in pairs(options) do
    given[name] = value
  end
  local out, label = given.file or io.stdout, given.label or "value"
  given.file, given.label, given.x, given.y = nil, nil, nil, nil
  given.y_label = given.y_label or given.title == nil and label or nil
  -- The options are checked here, not when the first point comes.
  local check = { y = { 0 } }
  for name, value in pairs(given) do
    check[name] = value
  end
  ms.plot.line(check)
  local self = setmetatable({
    _options = given, _label = label, _named = options.label ~= nil, _series = {}, _names = {}, _next = 0, _out = out,
    _rich = frontend.has_display(),
    _terminal = ms.is_terminal(out), _color = (os.getenv "NO_COLOR" or "") == "",
  }, Live)
  frontend.after_cell(function()
    self:finish()
  end)
  return self
end

return live
