-- Replacements of functions written in C wherever a derivative is computed: the same in Lua, so that gradients flow through
-- the values that they move. Programs without an interpreter have these texts too (jit/runtime).
local table, math, string = table, math, string
local select, type, error, next, ipairs, pairs, assert = select, type, error, next, ipairs, pairs, assert
local tonumber, tostring = tonumber, tostring

return function(core, ms)
  local replace, number = core.replace, core.number
  local ops = ms.ops

  -- The originals, for what is in their own replacements.
  local plain_select, plain_tonumber, plain_tostring = core.original(select), core.original(tonumber), core.original(tostring)

  core.note_harmless()

  local function count(...) return plain_select("#", ...) end

  local function drop(n, first, ...)
    if n <= 1 then return first, ... end
    return drop(n - 1, ...)
  end

  replace(select, function(n, ...)
    local given = count(...)
    if n == "#" then return given end
    if n < 0 then n = given + n + 1 end
    if n < 1 then error("bad argument #1 to 'select' (index out of range)") end
    if n > given then return end
    return drop(n, ...)
  end)

  replace(next, function(t, key)
    local following = core.next_key(t, key)
    if following == nil then return nil end
    return following, core.raw_get(t, following)
  end)

  replace((ipairs({})), function(t, i)
    i = i + 1
    local value = t[i]
    if value ~= nil then return i, value end
  end)

  replace(rawget, core.raw_get)
  replace(rawset, core.raw_set)

  replace(assert, function(value, ...)
    if value then return value, ... end
    if count(...) == 0 then error "assertion failed!" end
    error((...))
  end)

  local plain_pairs = core.original(pairs)
  replace(pairs, function(t)
    local method = core.metamethod(t, "__pairs")
    if not method then return plain_pairs(t) end
    local iterator, state, first = method(t)
    return iterator, state, first
  end)

  replace(tonumber, function(value, base)
    if base == nil and type(value) == "number" then return value end
    return plain_tonumber(value, base)
  end)

  -- A text that a metamethod makes of what is differentiated is known for one.
  replace(tostring, function(...)
    local value = ...
    local method = type(value) == "table" and core.metamethod(value, "__tostring")
    if not method then return plain_tostring(...) end
    local text = method(value)
    if type(text) ~= "string" then
      if type(text) ~= "number" then error("'__tostring' must return a string") end
      text = plain_tostring(text)
    end
    return text
  end, "derivative")

  replace(table.pack, function(...)
    local t = { ... }
    t.n = count(...)
    return t
  end)

  local plain_unpack = core.original(table.unpack)
  local function unpack(t, from, to)
    if from > to then return end
    if from == to then return t[from] end
    if from + 7 > to then return t[from], unpack(t, from + 1, to) end
    return t[from], t[from + 1], t[from + 2], t[from + 3], t[from + 4], t[from + 5], t[from + 6],
      unpack(t, from + 7, to)
  end
  replace(table.unpack, function(t, from, to)
    from, to = from or 1, to or #t
    -- More than Lua's stack holds.
    if from <= to and to - from >= 1000000 then return plain_unpack(t, from, to) end
    return unpack(t, from, to)
  end)

  local plain_insert, plain_remove = core.original(table.insert), core.original(table.remove)
  replace(table.insert, function(t, ...)
    local n = count(...)
    if n == 1 then
      t[#t + 1] = (...)
    elseif n == 2 then
      local at, value = ...
      if math.type(at) ~= "integer" or at < 1 or at > #t + 1 then
        return plain_insert(t, ...)
      end
      for i = #t, at, -1 do t[i + 1] = t[i] end
      t[at] = value
    else
      return plain_insert(t, ...)
    end
  end)

  replace(table.remove, function(t, at)
    local n = #t
    if at == nil then
      at = n
    elseif n + 1 ~= at and (at < 1 or at > n + 1) and not (n == 0 and at == 0) then
      return plain_remove(t, at)
    end
    local value = t[at]
    for i = at, n - 1 do t[i] = t[i + 1] end
    if at <= n then t[n] = nil end
    return value
  end)

  replace(table.move, function(from, first, last, at, to)
    to = to or from
    if last >= first then
      if at > last or at <= first or to ~= from then
        for i = 0, last - first do to[at + i] = from[first + i] end
      else
        for i = last - first, 0, -1 do to[at + i] = from[first + i] end
      end
    end
    return to
  end)

  -- Lua's own algorithm, step by step: programs may print in the comparison, and equal elements end where it puts them.
  local function default_less(a, b) return a < b end
  local function order(t, less, i, j)
    local a, b = t[i], t[j]
    if less(b, a) then t[i], t[j] = b, a end
  end
  local function partition(t, less, low, high, pivot)
    local i, j = low, high - 1
    while true do
      i = i + 1
      local above = t[i]
      while less(above, pivot) do
        if i == high - 1 then error("invalid order function for sorting") end
        i = i + 1
        above = t[i]
      end
      j = j - 1
      local below = t[j]
      while less(pivot, below) do
        if j < i then error("invalid order function for sorting") end
        j = j - 1
        below = t[j]
      end
      if j < i then
        t[high - 1], t[i] = above, pivot
        return i
      end
      t[i], t[j] = below, above
    end
  end
  local function sort(t, less, low, high)
    while low < high do
      order(t, less, low, high)
      if high - low == 1 then return end
      local middle = (low + high) // 2
      local a, b = t[middle], t[low]
      if less(a, b) then
        t[middle], t[low] = b, a
      else
        order(t, less, middle, high)
      end
      if high - low == 2 then return end
      local pivot = t[middle]
      t[middle], t[high - 1] = t[high - 1], pivot
      middle = partition(t, less, low, high, pivot)
      if middle - low < high - middle then
        sort(t, less, low, middle - 1)
        low = middle + 1
      else
        sort(t, less, middle + 1, high)
        high = middle - 1
      end
    end
  end
  replace(table.sort, function(t, less) sort(t, less or default_less, 1, #t) end)

  -- The matches one by one, as a function of known state. An empty match right behind the last one does not count.
  local find, plain_gmatch = string.find, core.original(string.gmatch)
  local function matches(s, at, stop, ...)
    if count(...) > 0 then return ... end
    return s:sub(at, stop)
  end
  replace(string.gmatch, function(s, pattern, init)
    if type(s) ~= "string" or type(pattern) ~= "string" or pattern:sub(1, 1) == "^" or init then
      return plain_gmatch(s, pattern, init)
    end
    local from, last = 1, 0
    local function step(at, stop, ...)
      if at == nil then
        from = #s + 2
        return nil
      elseif stop + 1 == last then
        from = at + 1
        return false
      end
      from, last = stop + 1, stop + 1
      return true, matches(s, at, stop, ...)
    end
    local function following()
      if from > #s + 1 then return nil end
      local list = table.pack(step(find(s, pattern, from)))
      if list[1] == false then return following() end
      return table.unpack(list, 2, list.n)
    end
    return following
  end)

  -- What a function makes of the matches, in their places.
  local function replacement(by, s, at, stop, ...)
    local found = s:sub(at, stop)
    local value
    if count(...) > 0 then value = by(...) else value = by(found) end
    if not value then return found end
    if type(value) ~= "string" and type(value) ~= "number" then
      error("invalid replacement value (a " .. type(value) .. ")")
    end
    return value
  end
  local function next_match(s, pattern, from, by)
    local found = table.pack(find(s, pattern, from))
    if not found[1] then return nil end
    return found[1], found[2], function() return replacement(by, s, table.unpack(found, 1, found.n)) end
  end
  replace(string.gsub, function(s, pattern, by, most)
    local parts, from, last, n = {}, 1, 0, 0
    local anchored = pattern:sub(1, 1) == "^"
    most = most or #s + 1
    while n < most do
      local at, stop, value = next_match(s, pattern, from, by)
      if not at then break end
      if stop + 1 == last then
        -- An empty match right behind the last one does not count.
        if from > #s then break end
        parts[#parts + 1] = s:sub(from, from)
        from = from + 1
      else
        parts[#parts + 1] = s:sub(from, at - 1)
        parts[#parts + 1] = value()
        n = n + 1
        from, last = stop + 1, stop + 1
      end
      if anchored then break end
    end
    parts[#parts + 1] = s:sub(from)
    return table.concat(parts), n
  end)

  -- A function that uses what is differentiated is compiled with what differentiates it, or not at all.
  replace(require("lunaria.jit").make, function(f) return f end, true)

  -- Numbers.
  for lua_name, primitive in pairs {
    sqrt = "num_sqrt", exp = "num_exp", sin = "num_sin", cos = "num_cos", tan = "num_tan", asin = "num_asin",
    acos = "num_acos", abs = "num_abs", cosh = "num_cosh", sinh = "num_sinh", tanh = "num_tanh",
  } do
    local by = number(primitive)
    if math[lua_name] then replace(math[lua_name], function(x) return by(x) end) end
  end
  local log, log_base, atan, atan2 = number "num_log", number "num_log_base", number "num_atan", number "num_atan2"
  local fmod, trunc, frac = number "num_fmod", number "num_trunc", number "num_frac"
  replace(math.log, function(x, base)
    if base == nil then return log(x) end
    return log_base(x, base)
  end)
  -- Which Lua may have for programs of older versions.
  local older = {}
  function older.log10(x) return log_base(x, 10.0) end
  function older.pow(x, y) return x ^ y end
  function older.atan2(y, x) return atan2(y, x) end
  for lua_name, by in pairs(older) do
    if math[lua_name] then replace(math[lua_name], by) end
  end
  replace(math.atan, function(y, x)
    if x == nil then return atan(y) end
    return atan2(y, x)
  end)
  replace(math.fmod, function(x, y) return fmod(x, y) end)
  replace(math.modf, function(x) return trunc(x), frac(x) end)
  replace(math.deg, function(x) return x * (180.0 / math.pi) end)
  replace(math.rad, function(x) return x * (math.pi / 180.0) end)
  replace(math.max, function(first, ...)
    local most = first
    for i = 1, count(...) do
      local x = select(i, ...)
      if most < x then most = x end
    end
    return most
  end)
  replace(math.min, function(first, ...)
    local least = first
    for i = 1, count(...) do
      local x = select(i, ...)
      if x < least then least = x end
    end
    return least
  end)

  -- A tensor of numbers and tensors that are differentiated is stacked of them.
  local function tensor_of(data, dtype)
    if type(data) == "number" then return ops.ones({}, dtype) * data end
    if ms.is_tensor(data) then return ops.cast(data, dtype) end
    local parts = {}
    for i = 1, #data do parts[i] = tensor_of(data[i], dtype) end
    return ops.stack(parts, 0)
  end
  replace(ms.tensor, function(data, dtype)
    if type(dtype) == "table" then dtype = dtype.dtype end
    if dtype == nil then dtype = ms.is_tensor(data) and data.dtype or ms.float32 end
    return tensor_of(data, dtype)
  end, true)

  -- What gives a variable another value is an index assignment to all of it.
  local function assigns(op, f)
    local plain = core.original(op)
    replace(op, function(...)
      local variable, value = ...
      if type(variable) == "table" then
        variable, value = variable.variable or variable.target or variable.input or variable[1],
          variable.value or variable[2] or value
      end
      local fine = count(...) <= 2 and ms.is_tensor(variable) and core.fills(variable, value)
      if not fine then return plain(...) end
      return f(variable, value)
    end, true)
  end
  local function put(t, value)
    t["..."] = value
    return t
  end
  assigns(ops.assign, put)
  assigns(ops.assign_add, function(t, value)
    t["..."] = t + value
    return t
  end)
  assigns(ops.assign_sub, function(t, value)
    t["..."] = t - value
    return t
  end)
end
