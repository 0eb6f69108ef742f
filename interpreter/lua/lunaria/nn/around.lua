-- Steps around a cell's computation: hooks on gradients, recomputation, inputs that set_inputs has declared.
--
-- Hooks: the tensors that go into a cell and those that come out of it pass through an identity each, whose derivative is where the
-- hooks are called: that of the results runs first, then the cell's own, then that of the inputs.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local function identity(...) return ... end

-- The values with the floating tensors among them put through an identity; back(cotangents), a list with one for each of
-- these tensors, gives what goes on in their place.
local function watched(back, ...)
  local values, places, tensors = table.pack(...), {}, {}
  for i = 1, values.n do
    local value = values[i]
    if ms.is_tensor(value) and value:is_floating_point() then
      places[#places + 1], tensors[#tensors + 1] = i, value
    end
  end
  local count = #tensors
  if count == 0 then return ... end
  local through = table.pack(ms.custom_vjp(identity, function(...)
    local cotangents = table.move({ ... }, 2 * count + 1, 3 * count, 1, {})
    return table.unpack(back(cotangents), 1, count)
  end)(table.unpack(tensors, 1, count)))
  for k, i in ipairs(places) do values[i] = through[k] end
  return table.unpack(values, 1, values.n)
end

-- What a hook gave in place of a list of gradients: a list, one tensor, or nothing.
local function replaced(gradients, given)
  if given == nil then return gradients end
  return ms.is_tensor(given) and { given } or given
end

--- run(special, cell, ...) with the hooks in special.backward_pre and special.backward around its derivative.
local function hooked(run, special, cell, ...)
  local of_results
  local function before(cotangents)
    for _, hook in ipairs(special.backward_pre) do
      cotangents = replaced(cotangents, hook(cell, cotangents))
    end
    of_results = cotangents
    return cotangents
  end
  local function after(cotangents)
    for _, hook in ipairs(special.backward) do
      cotangents = replaced(cotangents, hook(cell, cotangents, of_results))
    end
    return cotangents
  end
  return watched(before, run(special, cell, watched(after, ...)))
end

--- run(special, cell, ...) whose intermediate values are computed again for the gradient.
local function again(run, special, cell, ...)
  return ms.checkpoint(function(...) return run(special, cell, ...) end)(...)
end

-- A size of -1 is any size.
local function told(i, input)
  local is_table = type(input) == "table" and type(input.shape) == "table"
  if not ms.is_tensor(input) and not is_table then
    fail("set_inputs", ("input %d must be a tensor, or a table such as {shape = {-1, 3}, dtype = ms.float32}, got %s"):format(
      i, describe(input)))
  end
  local sizes = {}
  for axis, size in ipairs(input.shape) do sizes[axis] = check.integer("set_inputs", "a size of input " .. i, size) end
  return { sizes = sizes, dtype = input.dtype }
end

local function fits(x, wanted)
  if not ms.is_tensor(x) or x.ndim ~= #wanted.sizes or wanted.dtype ~= nil and x.dtype ~= wanted.dtype then return false end
  for axis, size in ipairs(wanted.sizes) do
    if size ~= -1 and x.shape[axis] ~= size then return false end
  end
  return true
end

--- A function that raises an error where its arguments are not the inputs that were told; nil where none were. name: the cell's.
local function expected_inputs(name, ...)
  local count, wanted = select("#", ...), { ... }
  for i = 1, count do wanted[i] = told(i, wanted[i]) end
  return count > 0 and function(...)
    for i, is in ipairs(wanted) do
      local x = (select(i, ...))
      if not fits(x, is) then
        fail(name, ("set_inputs said that input %d has shape (%s)%s, got %s%s"):format(i, table.concat(is.sizes, ", "),
          is.dtype and " and dtype " .. tostring(is.dtype) or "", describe(x),
          ms.is_tensor(x) and " and dtype " .. tostring(x.dtype) or ""))
      end
    end
  end or nil
end

return { watched = watched, replaced = replaced, hooked = hooked, again = again, expected_inputs = expected_inputs }
