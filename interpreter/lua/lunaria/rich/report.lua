-- A table with a line of totals below it, as text in a terminal and as HTML in a notebook.
local columns = require "lunaria.rich.columns"
local html = require "lunaria.rich.html"

local report = {
  times = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" } },
  sizes = { { 1e9, "GB" }, { 1e6, "MB" }, { 1e3, "kB" }, { 1, "B" } },
}

--- A number in the first of the units that it reaches, with three digits.
function report.scaled(value, units)
  for i, unit in ipairs(units) do
    if value >= unit[1] or i == #units then return ("%.3g %s"):format(value / unit[1], unit[2]) end
  end
end

--- Has the objects of a class shown as such. Their method _table gives rows, head and align as columns() wants them,
--- _totals the line below.
function report.shows(class)
  function class:__tostring() return columns(self:_table()) .. "\n" .. self:_totals() end

  function class:__mime()
    local rows, head, align = self:_table()
    return {
      ["text/html"] = html.table(rows, { head = head, align = align })
        .. ("<div style=\"font-family:monospace;font-size:90%%\">%s</div>"):format(html.escaped(self:_totals())),
      ["text/plain"] = tostring(self),
    }
  end
end

return report
