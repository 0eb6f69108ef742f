-- Moves tensors of random integers from layout to layout on simulated ranks, by the plan that costs the least, and compares the pieces.
--   lunaria tests/conformance/redistribute.lua --mesh 4,2,2 --rank 3 [--partial] [--seed S] [--count N] [--ranks] [--quiet]
-- Where sending costs bytes alone (the first plan) the bytes of all ranks together must be the lower bound, and without partial layouts
-- those of the rank that gets the most, too. The second plan is that of links of 10 microseconds and 10 GB/s; it must not cost more than
-- the shortest path nor than the direct exchange. --partial: values of which each rank has a term. --count: so many pairs of layouts at
-- random instead of all. --ranks: ranks are threads with a communicator, else one loop over the pieces. The last line is "N passed,
-- M failed".
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path
local ms = require "lunaria"
local layouts = require "lunaria.layouts"
local support = require "support"

local usage = "usage: lunaria redistribute.lua --mesh 4,2,2 --rank 3 [--partial] [--seed S] [--count N] [--ranks] [--quiet]"
local _, options = support.options(usage,
  { mesh = "", rank = "2", seed = "1", count = "", partial = true, ranks = true, quiet = true }, 0)

local function number(name, least)
  local value = math.tointeger(tonumber(options[name]))
  if not value or value < least then
    io.stderr:write(("--%s must be an integer of at least %d\n%s\n"):format(name, least, usage))
    os.exit(2)
  end
  return value
end

local rank = number("rank", 1)
math.randomseed(number("seed", 0))
local sizes, names = {}, {}
for size in options.mesh:gmatch "[^,]+" do
  sizes[#sizes + 1] = math.tointeger(tonumber(size))
  names[#names + 1] = ("xyzuvw"):sub(#sizes, #sizes)
end
if #sizes == 0 or #sizes > 6 then
  io.stderr:write("--mesh must be one to six sizes, such as 4,2,2\n", usage, "\n")
  os.exit(2)
end
local mesh = ms.mesh(sizes, names)

-- All layouts, as texts: each axis of the mesh is whole, cuts an axis of the tensor at some place of its list, or is partial.
local all = {}
local cuts, partial = {}, {}
for axis = 1, rank do cuts[axis] = {} end
local function choose(m)
  if m > #sizes then
    local parts = {}
    for axis = 1, rank do parts[axis] = #cuts[axis] > 0 and "@" .. table.concat(cuts[axis], ".") or "*" end
    local text = "[" .. table.concat(parts, ", ") .. "]" .. (#partial > 0 and " +" .. table.concat(partial, ".") or "")
    all[#all + 1] = layouts.parse(mesh, text)
    return
  end
  choose(m + 1)
  if options.partial then
    partial[#partial + 1] = names[m]
    choose(m + 1)
    partial[#partial] = nil
  end
  for axis = 1, rank do
    for place = 1, #cuts[axis] + 1 do
      table.insert(cuts[axis], place, names[m])
      choose(m + 1)
      table.remove(cuts[axis], place)
    end
  end
end
choose(1)

-- Mostly sizes that all axes of the mesh together divide; else any, so that pieces are unequal or empty.
local function random_shape()
  local even, shape = math.random(3) > 1, {}
  for axis = 1, rank do shape[axis] = even and mesh.size or math.random(0, 2 * mesh.size) end
  return shape
end

local function random_tensor(shape)
  local size = 1
  for _, n in ipairs(shape) do size = size * n end
  if size == 0 then return ms.zeros(shape) end
  local list = {}
  for i = 1, size do list[i] = math.random(-9, 9) end
  return ms.tensor(list, ms.float32):reshape(table.unpack(shape))
end

-- Which term of a sum a position holds.
local function term_of(layout, position)
  local is_partial, strides = {}, {}
  for _, name in ipairs(layout.partial) do is_partial[name] = true end
  local stride = 1
  for m = #sizes, 1, -1 do strides[m], stride = stride, stride * sizes[m] end
  local term = 0
  for m = 1, #sizes do
    if is_partial[names[m]] then term = term * sizes[m] + position // strides[m] % sizes[m] end
  end
  return term + 1
end

local function complete(layout)
  local parts = {}
  for axis, list in ipairs(layout.axes) do parts[axis] = list end
  return mesh(table.unpack(parts, 1, rank))
end

local function random_pieces(layout, shape)
  local count = 1
  for _, name in ipairs(layout.partial) do
    for m = 1, #sizes do count = names[m] == name and count * sizes[m] or count end
  end
  local whole, terms = nil, {}
  for t = 1, count do
    local term = random_tensor(shape)
    whole = whole and whole + term or term
    terms[t] = layouts.split(term, complete(layout))
  end
  local pieces = {}
  for p = 1, mesh.size do pieces[p] = terms[term_of(layout, p - 1)][p] end
  return pieces, whole
end

local function same(a, b)
  if tostring(a.shape) ~= tostring(b.shape) then return false end
  return a.size == 0 or ms.ops.all(ms.ops.equal(a, b)):item()
end

-- Pieces of positions that differ along axes along which all is the same must be equal, and all together the whole.
local function difference(layout, whole, pieces)
  local first = {}
  for p = 1, mesh.size do
    local offsets, piece_sizes = layout:piece(p - 1, whole.shape)
    if tostring(pieces[p].shape) ~= tostring(piece_sizes) then return ("the shape of piece %d"):format(p - 1) end
    local key = term_of(layout, p - 1) .. tostring(offsets) .. tostring(piece_sizes)
    if first[key] and not same(first[key], pieces[p]) then return ("piece %d differs from an equal one"):format(p - 1) end
    first[key] = first[key] or pieces[p]
  end
  return not same(layouts.join(pieces, layout, whole.shape), whole) and "the values" or nil
end

local models = { { latency = 0, seconds_per_byte = 1e-10, ranks = options.ranks or nil },
  { latency = 1e-5, seconds_per_byte = 1e-10, ranks = options.ranks or nil } }

local function with_way(model, way)
  local copy = { way = way }
  for name, value in pairs(model) do copy[name] = value end
  return copy
end

-- Nothing, or what is wrong with a pair of layouts.
local function check(from, to, shape)
  local pieces, whole = random_pieces(from, shape)
  local rounding = #from.partial > 0 and mesh.size or 1
  for i, model in ipairs(models) do
    local plan = layouts.plan(from, to, shape, ms.float32, model)
    if i == 1 or not options.quiet then
      local costs = ("%d B, all %d B of at least %d B"):format(plan.bytes, plan.total_bytes, plan.least_total)
      if not options.quiet then print(("%s -> %s of %s: %s: %s"):format(from, to, whole.shape, costs, plan.text)) end
    end
    local after, counted = layouts.redistribute(from, to, shape, ms.float32, model, pieces)
    local wrong = difference(to, whole, after)
    if wrong then return wrong, plan end
    if counted and counted ~= plan.total_bytes then return ("the ranks counted %d bytes"):format(counted), plan end
    if i == 1 and (plan.total_bytes > plan.least_total or plan.total_bytes + rounding <= plan.least_total) then
      return ("the lower bound is %d bytes, not %d"):format(plan.least_total, plan.total_bytes), plan
    elseif i == 1 and #from.partial + #to.partial == 0 and plan.bytes ~= plan.least_bytes then
      return ("the lower bound of one rank is %d bytes, not %d"):format(plan.least_bytes, plan.bytes), plan
    elseif i == 2 then
      for _, way in ipairs { "path", "exchange" } do
        local found, other = pcall(layouts.plan, from, to, shape, ms.float32, with_way(model, way))
        if found and other.seconds < plan.seconds * (1 - 1e-9) then
          return ("%s takes %g s, the plan %g s"):format(other.text, other.seconds, plan.seconds), plan
        end
      end
    end
  end
end

local passed, failed = 0, 0
local pairs_of_layouts = #all * #all
local count = options.count ~= "" and number("count", 1) or pairs_of_layouts
print(("%s, tensors of rank %d: %d layouts, %d of %d pairs"):format(mesh, rank, #all, math.min(count, pairs_of_layouts), pairs_of_layouts))
for i = 1, count do
  local k = options.count ~= "" and math.random(pairs_of_layouts) - 1 or i - 1
  local from, to, shape = all[k // #all + 1], all[k % #all + 1], random_shape()
  local wrong, plan = check(from, to, shape)
  if wrong then
    failed = failed + 1
    print(("FAILED %s -> %s of (%s): %s: %s"):format(from, to, table.concat(shape, ", "), plan.text, wrong))
  else
    passed = passed + 1
  end
end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0)
