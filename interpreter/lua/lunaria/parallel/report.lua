-- ms.parallel_report: which line of the program moved which tensor, how and why.
local arguments = require "lunaria.nn.arguments"
local laid = require "lunaria.laid"

local fail, describe = arguments.fail, arguments.describe
local M = {}

local function bytes_text(n)
  if n < 1024 then return ("%d B"):format(n) end
  if n < 1024 ^ 2 then return ("%.1f KB"):format(n / 1024) end
  return ("%.1f MB"):format(n / 1024 ^ 2)
end

local Report = {}
Report.__index = Report

local is_number = { bytes = true, calls = true }
local columns = { "line", "operator", "tensor", "from", "to", "by", "bytes", "calls", "rule" }

function Report:__tostring()
  if #self == 0 then return "no tensor was moved" end
  local rows, widths = { columns }, {}
  for _, m in ipairs(self) do
    rows[#rows + 1] = { m.place, m.operator == "" and "(asked for)" or m.operator, m.operand, m.from, m.to, m.path, bytes_text(m.bytes),
      tostring(m.calls), m.why }
  end
  for _, row in ipairs(rows) do
    for i, text in ipairs(row) do widths[i] = math.max(widths[i] or 0, #text) end
  end
  local lines = {}
  for k, row in ipairs(rows) do
    local cells = {}
    for i, text in ipairs(row) do
      local space = (" "):rep(widths[i] - #text)
      cells[i] = is_number[columns[i]] and space .. text or text .. space
    end
    lines[k] = table.concat(cells, "  "):gsub("%s+$", "")
  end
  lines[#lines + 1] = ("together %s in %d lines"):format(bytes_text(self.bytes), #self)
  return table.concat(lines, "\n")
end

--- What moved between ranks while f ran with the arguments after it: a table with a row for each line, operator and tensor (place,
--- operator, operand, from, to, path, bytes, calls, implicit, why) and the sum in its field bytes, which prints as a table. Bytes are
--- those that the ranks of this process received. Without f: since the program began, or since the last report.
---     > mesh = ms.mesh({ 2 }, { "dp" })
---     > x = ms.distribute(ms.ones { 4, 3 }, mesh("dp"))
---     > ms.parallel_report(function() return ms.ops.cumsum(x, 0) end)[1].operator --> cumsum
function M.parallel_report(f, ...)
  if f ~= nil then
    if not arguments.is_callable(f) then fail("parallel_report", "a function is expected, got " .. describe(f)) end
    laid.forget()
    f(...)
  end
  local report = setmetatable(laid.movements(), Report)
  report.bytes = 0
  for _, m in ipairs(report) do report.bytes = report.bytes + m.bytes end
  laid.forget()
  return report
end

return M
