-- The data of plots (tensors, lists, lists of lists) as plain Lua lists of numbers, thinned out to what a picture can show.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local fail, describe = arguments.fail, arguments.describe
local data = {}

local MOST_SERIES = 100

local function plain(value)
  return ms.is_tensor(value) and value:tolist() or value
end

local function number(value, where, name)
  if type(value) == "boolean" then
    return value and 1 or 0
  end
  value = ms.is_tensor(value) and value.size == 1 and value:item() or value
  if type(value) ~= "number" then
    fail(where, ("%s must hold numbers, got %s"):format(name, describe(value)))
  end
  return value + 0.0
end

--- A flat list of numbers out of a tensor of any shape, a list or a single number.
function data.numbers(value, where, name)
  if ms.is_tensor(value) and value.ndim ~= 1 then
    value = value:reshape { -1 }
  end
  value = plain(value)
  if type(value) == "number" then
    value = { value }
  elseif type(value) ~= "table" then
    fail(where, ("%s must be a tensor or a list of numbers, got %s"):format(name, describe(value)))
  end
  local list = {}
  for i = 1, #value do
    list[i] = number(value[i], where, name)
  end
  if #list == 0 then
    fail(where, name .. " is empty")
  end
  return list
end

--- Numbers or names: the second result tells whether they are names.
function data.numbers_or_names(value, where, name)
  if type(value) ~= "table" or type(value[1]) ~= "string" then
    return data.numbers(value, where, name), false
  end
  local list = {}
  for i = 1, #value do
    list[i] = tostring(value[i])
  end
  return list, true
end

--- Rows of numbers, all of one length.
function data.matrix(value, where, name)
  if ms.is_tensor(value) and value.ndim ~= 2 then
    fail(where, ("%s must have 2 axes, got %s"):format(name, describe(value)))
  end
  local rows = plain(value)
  if type(rows) ~= "table" or (rows[1] ~= nil and type(plain(rows[1])) ~= "table") then
    fail(where, ("%s must be a tensor with 2 axes or a list of lists, got %s"):format(name, describe(value)))
  end
  local result = {}
  for i = 1, #rows do
    local row = plain(rows[i])
    if type(row) ~= "table" then
      fail(where, ("row %d of %s must be a list of numbers, got %s"):format(i, name, describe(row)))
    end
    local list = {}
    for j = 1, #row do
      list[j] = number(row[j], where, name)
    end
    if #list == 0 or (i > 1 and #list ~= #result[1]) then
      fail(where, ("%s must have rows of one length: row %d has %d numbers, the first has %d"):format(
        name, i, #list, i > 1 and #result[1] or #list))
    end
    result[i] = list
  end
  if #result == 0 then
    fail(where, name .. " is empty")
  end
  return result
end

--- Several series: { { name =, values = } ... } out of a list of numbers, a tensor with 2 axes (one series per row), or a
--- table from names to lists.
function data.series(value, where, name)
  if type(value) == "table" and not ms.is_tensor(value) and value[1] == nil then
    local keys, result = {}, {}
    for key in pairs(value) do
      keys[#keys + 1] = key
    end
    table.sort(keys, function(a, b)
      return tostring(a) < tostring(b)
    end)
    for i, key in ipairs(keys) do
      result[i] = { name = tostring(key), values = data.numbers(value[key], where, name .. "." .. tostring(key)) }
    end
    if #result == 0 then
      fail(where, name .. " is empty")
    end
    return result
  end
  local nested = ms.is_tensor(value) and value.ndim == 2
    or type(value) == "table" and (type(value[1]) == "table" or ms.is_tensor(value[1]) and value[1].size > 1)
  if not nested then
    return { { values = data.numbers(value, where, name) } }
  end
  local result = {}
  if #value > MOST_SERIES then
    fail(where, ("%s has %d rows, one series each; more than %d cannot be told apart"):format(name, #value, MOST_SERIES))
  end
  for i = 1, #value do
    result[i] = { name = tostring(i), values = data.numbers(ms.is_tensor(value) and value[i - 1] or value[i], where, name) }
  end
  return result
end

function data.is_finite(x)
  return x == x and x ~= math.huge and x ~= -math.huge
end

--- The least and the greatest of the finite numbers of some lists (positive ones only, if wanted); nothing when there is
--- none.
function data.extent(lists, positive)
  local low, high
  for _, list in ipairs(lists) do
    for i = 1, #list do
      local x = list[i]
      if data.is_finite(x) and (not positive or x > 0) then
        low = (not low or x < low) and x or low
        high = (not high or x > high) and x or high
      end
    end
  end
  return low, high
end

--- A line of very many points that looks the same: of each stretch of `n` the first, least, greatest and last remain.
function data.thin_line(x, y, most)
  if #x <= most then
    return x, y
  end
  for i = 2, #x do
    if not (x[i] >= x[i - 1]) then
      return x, y
    end
  end
  local stretch = math.ceil(#x * 4 / most)
  local xs, ys = {}, {}
  for first = 1, #x, stretch do
    local last = math.min(first + stretch - 1, #x)
    local least, greatest, hole = first, first, nil
    for i = first, last do
      if y[i] ~= y[i] then
        hole = i
      elseif not (y[least] <= y[i]) then
        least = i
      elseif not (y[greatest] >= y[i]) then
        greatest = i
      end
    end
    local kept = { first, least, greatest, hole or last, last }
    table.sort(kept)
    for k, i in ipairs(kept) do
      if k == 1 or i ~= kept[k - 1] then
        xs[#xs + 1], ys[#ys + 1] = x[i], y[i]
      end
    end
  end
  return xs, ys
end

--- Points of which those that fall into one cell of a fine grid are drawn once; gives the indices of the others.
function data.thin_points(x, y, frame, columns, rows)
  local kept, seen = {}, {}
  for i = 1, #x do
    local u, v = frame.x:place(x[i]), frame.y:place(y[i])
    if u and v then
      local key = (u * columns // 1) * (rows + 1) + v * rows // 1
      if not seen[key] then
        seen[key] = true
        kept[#kept + 1] = i
      end
    end
  end
  return kept
end

return data
