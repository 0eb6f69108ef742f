-- vmap: in one run for the whole batch where the function allows it (interpreter/watchers/batching.h), otherwise a loop over
-- samples.
local ms = require "lunaria"
local named = require "lunaria.nn.arguments".named
local ops, is_tensor = ms.ops, ms.is_tensor
local watched = require "lunaria.jit".inside
local table, string, math, select, type, next = table, string, math, select, type, next

return function(core, check_callable, describe, as_tensor)
  -- The line in an error is the user's.
  local function error(message) core.fail(message) end

  -- A table deeper than that contains itself. position: of an argument, from 0; nil: a result.
  local DEEPEST = 100
  local function check_depth(x, position, level)
    if type(x) ~= "table" then return end
    if level > DEEPEST then
      local what = position and "argument " .. position or "the function's result"
      error("vmap: " .. what .. " is nested deeper than 100 levels\n  hint: does the table contain itself?")
    end
    for _, value in next, x do check_depth(value, position, level + 1) end
  end

  -- x with the axis in front, where an element of it is x[i].
  local function to_front(x, axis)
    if type(x) == "table" then
      local result = {}
      for key, value in next, x do result[key] = to_front(value, axis) end
      return result
    end
    return axis == 0 and x or ops.moveaxis(x, axis, 0)
  end

  local function element_of(x, i)
    if type(x) == "table" then
      local result = {}
      for key, value in next, x do result[key] = element_of(value, i) end
      return result
    end
    return x[i]
  end

  -- Appends each of the values to its column; gives how many there are.
  local function append(columns, i, first, ...)
    local count = select("#", ...)
    if i == 1 then
      for k = 1, count + 1 do columns[k] = {} end
    end
    columns[1][i] = first
    for k = 1, count do columns[k + 1][i] = (select(k, ...)) end
    for k = 1, i == 1 and count + 1 or 0 do check_depth(columns[k][1], nil, 1) end
    return count + 1
  end

  local function length_of(x, axis, position)
    if is_tensor(x) then
      local rank = #x.shape
      if axis < -rank or axis >= rank then
        error(string.format("vmap: in_axes[%d] is %d, out of range for %s", position, axis, describe(x)))
      end
      return x.shape[(axis < 0 and axis + rank or axis) + 1]
    elseif type(x) == "table" then
      local _, first = next(x)
      if first ~= nil then return length_of(first, axis, position) end
    end
    error(string.format("vmap: argument %d is mapped and must be a tensor or a table of tensors, got %s\n  hint: "
      .. "in_axes = false for what is not mapped", position, describe(x)))
  end

  local function stack_of(list, axis, like)
    local first = list[1]
    if type(first) == "table" then
      local result = {}
      for key in next, first do
        local column = {}
        for i = 1, #list do column[i] = list[i][key] end
        result[key] = stack_of(column, axis, like)
      end
      return result
    end
    if is_tensor(first) then return ops.stack(list, axis) end
    if type(first) == "number" then
      local column = {}
      for i = 1, #list do column[i] = as_tensor(list[i], like) end
      return ops.stack(column, axis)
    end
    error("vmap: the function must return tensors, numbers or tables of them, got " .. describe(first))
  end

  -- A value with all leaves in it replaced by what f gives.
  local function each_leaf(x, f)
    if type(x) ~= "table" then return f(x) end
    local result = {}
    for key, value in next, x do result[key] = each_leaf(value, f) end
    return result
  end

  -- The form of a sample's result: for a tensor or number its place in the list of leaves, to which it is appended.
  local function spread(x, leaves)
    if type(x) == "table" then
      local form = {}
      for key, value in next, x do form[key] = spread(value, leaves) end
      return form
    end
    if not is_tensor(x) and type(x) ~= "number" then error("vmap: the result is " .. describe(x)) end
    leaves[#leaves + 1] = x
    return #leaves
  end

  -- What gives a leaf of the results of a run, stacked along an axis. first: the place of the first leaf in the results.
  local function leaf_of(results, first, count, like)
    local half = results.n // 2
    return function(k, axis)
      local x = results[first + k - 1]
      if results[half + first + k - 1] then return axis == 0 and x or ops.moveaxis(x, 0, axis) end
      local list = {}
      for i = 1, count do list[i] = x end
      return stack_of(list, axis, like)
    end
  end

  -- The same function as f with the arguments that are mapped only, and with the forms of the results in front of their leaves.
  local function with_forms(f, arguments, axes)
    return function(...)
      local samples, at = { ... }, 0
      local function sample()
        at = at + 1
        return samples[at]
      end
      local call, forms, leaves = {}, {}, {}
      for k = 1, arguments.n do call[k] = axes[k] == false and arguments[k] or each_leaf(arguments[k], sample) end
      local given = table.pack(f(table.unpack(call, 1, arguments.n)))
      for k = 1, given.n do
        check_depth(given[k], nil, 1)
        forms[k] = spread(given[k], leaves)
      end
      return forms, table.unpack(leaves)
    end
  end

  local function bound(f, first) return function(...) return f(first, ...) end end

  -- f as a function of its mapped arguments, which stand side by side, and the place of the first and the last of them; nil
  -- where they do not. A short function: within the batch every instruction counts.
  local function of_mapped(f, arguments, axes)
    local from, to = nil, nil
    for k = 1, arguments.n do
      if axes[k] ~= false then
        if not is_tensor(arguments[k]) or to and to < k - 1 then return end
        from, to = from or k, k
      end
    end
    if to < arguments.n then
      if to > 1 then return end
      local rest, count = { table.unpack(arguments, 2, arguments.n) }, arguments.n - 1
      return function(x) return f(x, table.unpack(rest, 1, count)) end, 1, 1
    end
    for k = 1, from - 1 do f = bound(f, arguments[k]) end
    return f, from, to
  end

  -- The results of a function of mapped tensors that gives tensors and numbers; nil where it gives something else.
  local function plain_run(f, count, arguments, axes, like)
    local from, to
    f, from, to = of_mapped(f, arguments, axes)
    if not f then return end
    local results = table.pack(core.batch(count, f, table.unpack(arguments, from, to)))
    if not results[results.n] then return results[results.n] end
    local forms = {}
    for k = 1, results.n // 2 do
      if not is_tensor(results[k]) and type(results[k]) ~= "number" then return end
      forms[k] = k
    end
    return forms, leaf_of(results, 1, count, like)
  end

  local function run_with_forms(f, count, arguments, axes, like)
    local tensors = {}
    for k = 1, arguments.n do
      if axes[k] ~= false then each_leaf(arguments[k], function(x) tensors[#tensors + 1] = x end) end
    end
    local results = table.pack(core.batch(count, with_forms(f, arguments, axes), table.unpack(tensors)))
    if not results[results.n] then return results[results.n] end
    return results[1], leaf_of(results, 2, count, like)
  end

  -- The results of f for all samples in one run: of each a form, and what gives its leaves, stacked along an axis. False
  -- when the function is not one for this, nil when it was not tried. Changes of what is known of f are effects: they are
  -- left out where effects are watched.
  local function in_one_run(known, f, ...)
    local forms, leaf = nil, nil
    if known.is_plain then
      local random = not watched() and ms.get_rng_state()
      forms, leaf = plain_run(f, ...)
      if forms == nil and random then
        known.is_plain = false
        -- f is called again, and draws the same numbers.
        ms.set_rng_state(random)
      end
    end
    if forms == nil then forms, leaf = run_with_forms(f, ...) end
    if forms == false and not watched() then known.attempts = known.attempts - 1 end
    return forms, leaf
  end

  --- The function that applies f to every element along an axis of its arguments and stacks the results. in_axes: one
  --- axis for all arguments or a table with one for each, false for an argument that is not mapped; out_axes: the axis
  --- of the results that is stacked along, or a table with one for each result.
  ---     > ms.vmap(function(x) return ms.ops.sum(x) end)(ms.tensor{{1.0, 2.0}, {3.0, 4.0}}):tolist()[2] --> 7.0
  local function vmap(f, in_axes, out_axes)
    check_callable(f, "vmap")
    in_axes, out_axes = named("vmap", { "in_axes", "out_axes" }, in_axes, out_axes)
    if in_axes == nil then in_axes = 0 end
    if out_axes == nil then out_axes = 0 end
    local known = { attempts = 3, is_plain = true }
    return function(...)
      local arguments = table.pack(...)
      local count, like
      local axes = {}
      for i = 1, arguments.n do
        local axis = in_axes
        if type(in_axes) == "table" then axis = in_axes[i] end
        if axis == nil then axis = false end
        if axis ~= false and math.type(axis) ~= "integer" then
          error("vmap: in_axes must hold integers or false, got " .. describe(axis))
        end
        if axis ~= false and type(arguments[i]) == "number" and type(in_axes) ~= "table" then axis = false end
        axes[i] = axis
        if axis ~= false then
          check_depth(arguments[i], i - 1, 1)
          local n = length_of(arguments[i], axis, i - 1)
          if count and n ~= count then
            error(string.format("vmap: the mapped axes have different lengths: %d and %d", count, n))
          end
          count = n
          like = like or (is_tensor(arguments[i]) and arguments[i])
          arguments[i] = to_front(arguments[i], axis)
        end
      end
      if not count then error("vmap: no argument is mapped") end
      if count == 0 then error("vmap: the mapped axis has length 0") end
      local function axis_of(k)
        local axis = out_axes
        if type(out_axes) == "table" then axis = out_axes[k] end
        return axis or 0
      end
      local stacked = {}
      local forms, leaf = nil, nil
      if known.attempts > 0 then forms, leaf = in_one_run(known, f, count, arguments, axes, like) end
      if forms then
        for k = 1, #forms do
          stacked[k] = each_leaf(forms[k], function(i) return leaf(i, axis_of(k)) end)
        end
        return table.unpack(stacked, 1, #forms)
      end
      local columns, results, call = {}, 0, {}
      for k = 1, arguments.n do call[k] = arguments[k] end
      for i = 0, count - 1 do
        for k = 1, arguments.n do
          if axes[k] ~= false then call[k] = element_of(arguments[k], i) end
        end
        results = append(columns, i + 1, f(table.unpack(call, 1, arguments.n)))
      end
      for k = 1, results do stacked[k] = stack_of(columns[k], axis_of(k), like) end
      return table.unpack(stacked, 1, results)
    end
  end

  return vmap
end
