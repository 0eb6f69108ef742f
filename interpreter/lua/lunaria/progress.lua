-- A progress bar around a loop: for x in ms.progress(items, { desc = "train" }) do ... end
-- On a terminal one line that is drawn again in place, at most ten times a second; in a notebook one output that is
-- replaced, which is still there when the notebook is opened again; elsewhere one line per tenth.
local ms = require "lunaria"
local frontend = require "lunaria.frontend"
local escaped = require "lunaria.plot.svg_text"
local line = require "lunaria.progress_line"

local function clock_text(seconds)
  seconds = math.max(0, math.floor(seconds + 0.5))
  if seconds >= 3600 then
    return ("%d:%02d:%02d"):format(seconds // 3600, seconds // 60 % 60, seconds % 60)
  end
  return ("%02d:%02d"):format(seconds // 60, seconds % 60)
end

local function rate_text(rate)
  if rate >= 100 or rate == 0 then
    return ("%.0f/s"):format(rate)
  elseif rate >= 1 then
    return ("%.1f/s"):format(rate)
  end
  return ("%.1f s each"):format(1 / rate)
end

local Bar = {}
Bar.__index = Bar

function Bar:text(count)
  local elapsed = (ms.clock() - self._start) / 1e9
  local rate = elapsed > 0 and count / elapsed or 0
  local head = self._desc and self._desc .. ": " or ""
  if not self._total then
    return ("%s%d [%s, %s]"):format(head, count, clock_text(elapsed), rate_text(rate))
  end
  local share = self._total > 0 and math.min(1, count / self._total) or 1
  local left = rate > 0 and clock_text((self._total - count) / rate) or "?"
  local bar = ""
  if self._terminal then
    local filled = math.floor(share * 24)
    bar = "|" .. ("#"):rep(filled) .. (" "):rep(24 - filled) .. "|"
  end
  return ("%s%3d%%%s %d/%d [%s<%s, %s]"):format(
    head, math.floor(share * 100), bar, count, self._total, clock_text(elapsed), left, rate_text(rate))
end

function Bar:draw(count)
  local text = self:text(count)
  self._out:write("\r", text, (" "):rep(self._width - #text))
  self._out:flush()
  self._width, line.bar = #text, self
end

-- The same as HTML, with the browser's own bar between the words.
function Bar:show(count)
  local text = self:text(count)
  local html = escaped(text)
  if self._total then
    local head, tail = text:match("^(.-%d+%%)(.*)$")
    html = ("%s <progress value=\"%d\" max=\"%d\"></progress>%s"):format(escaped(head), math.min(count, self._total),
      math.max(1, self._total), escaped(tail))
  end
  local bundle = { ["text/html"] = "<div style=\"font-family:monospace\">" .. html .. "</div>", ["text/plain"] = text }
  if self._handle then
    self._handle:update(bundle, { raw = true })
  else
    self._handle = ms.display(bundle, { raw = true, id = true })
  end
end

function Bar:update(count)
  self._count = count
  if self._rich then
    local now = ms.clock()
    if not self._handle or now - self._drawn >= 100000000 then
      self._drawn = now
      self:show(count)
    end
  elseif self._terminal then
    local now = ms.clock()
    if now - self._drawn >= 100000000 then
      self._drawn = now
      self:draw(count)
    end
  elseif self._total and self._total > 0 and count * 10 // self._total > self._tenth then
    self._tenth = count * 10 // self._total
    self._out:write(self:text(count), "\n")
  end
end

function Bar:finish()
  if self._done then
    return
  end
  self._done = true
  if self._rich then
    self:show(self._count)
    return
  elseif self._terminal then
    self:draw(self._count)
    line.bar = nil
    self._out:write("\n")
  elseif not self._total or self._count < self._total then
    self._out:write(self:text(self._count), "\n")
  end
  self._out:flush()
end

local function steps(iterable)
  local kind = type(iterable)
  if math.type(iterable) == "integer" then
    return iterable, function(_, i)
      if i < iterable then
        return i + 1
      end
    end, nil, 0
  elseif ms.is_tensor(iterable) then
    local count = #iterable
    return count, function(_, i)
      if i < count - 1 then
        return i + 1, iterable[i + 1]
      end
    end, nil, -1
  elseif kind == "function" then
    return nil, iterable
  end
  local meta = getmetatable(iterable)
  if type(meta) == "table" and meta.__call then
    return nil, iterable
  elseif kind == "table" then
    return #iterable, ipairs(iterable)
  end
  error("progress: the first argument must be a list, an integer, a tensor or an iterator, got a " .. kind, 3)
end

--- Goes through `iterable` (a list, an integer n for 1..n, a tensor, or an iterator function) and shows how far it is.
--- Options: total (number of steps, where it cannot be told), desc (text in front), file (default: io.stderr).
--- The state and the first value of an iterator follow the options: ms.progress(next, nil, t).
---
---     for i, batch in ms.progress(batches, { desc = "epoch 1" }) do ... end
---     > sum = 0
---     > for i in ms.progress(10, { file = io.tmpfile() }) do sum = sum + i end
---     > sum --> 55
local function progress(iterable, options, state, first)
  options = options or {}
  for name in pairs(options) do
    if name ~= "total" and name ~= "desc" and name ~= "file" then
      error(("progress: there is no option '%s'; there are: total, desc, file"):format(tostring(name)), 2)
    end
  end
  local total, step, own_state, own_first = steps(iterable)
  if step ~= iterable then
    state, first = own_state, own_first
  end
  local out = options.file or io.stderr
  local bar = setmetatable({
    _total = options.total or total,
    _desc = options.desc,
    _out = out,
    _terminal = ms.is_terminal(out),
    _rich = not options.file and frontend.has_display(),
    _start = ms.clock(),
    _drawn = 0,
    _count = 0,
    _tenth = 0,
    _width = 0,
  }, Bar)
  local count = -1
  local function advance(s, control)
    count = count + 1
    bar:update(count)
    return step(s, control)
  end
  -- The fourth value is closed when the loop ends, also by break or an error.
  local guard = setmetatable({}, {
    __close = function()
      bar:finish()
    end,
  })
  return advance, state, first, guard
end

return progress
