-- Lines of equal height by marching squares: in every cell of the grid the line through it is straight, and the pieces
-- are joined where they share an edge of the grid.

-- The two pieces of line for each of the 16 ways in which the corners (lower left, lower right, upper right, upper left:
-- bits 1, 2, 4, 8) lie above the level. Edges: 1 below, 2 right, 3 above, 4 left. The two saddles are settled by the
-- mean of the corners.
local pieces = {
  [0] = {}, { 4, 1 }, { 1, 2 }, { 4, 2 }, { 2, 3 }, {}, { 1, 3 }, { 4, 3 }, { 3, 4 }, { 1, 3 }, {}, { 2, 3 }, { 2, 4 },
  { 1, 2 }, { 1, 4 }, {},
}

-- Joins pieces { from, to } with keyed ends into lines of points.
local function joined(list, points)
  local at = {}
  for _, piece in ipairs(list) do
    for _, key in ipairs(piece) do
      at[key] = at[key] or {}
      table.insert(at[key], piece)
    end
  end
  local used, lines = {}, {}
  local function follow(key, piece)
    local keys = { key }
    while piece do
      used[piece] = true
      key = piece[1] == key and piece[2] or piece[1]
      keys[#keys + 1] = key
      piece = nil
      for _, other in ipairs(at[key]) do
        if not used[other] then
          piece = other
        end
      end
    end
    local xs, ys = {}, {}
    for i, k in ipairs(keys) do
      xs[i], ys[i] = points[k][1], points[k][2]
    end
    lines[#lines + 1] = { x = xs, y = ys }
  end
  -- Open lines start where only one piece ends; what is left is closed.
  for _, open in ipairs { true, false } do
    for _, piece in ipairs(list) do
      for _, key in ipairs(piece) do
        if not used[piece] and (not open or #at[key] == 1) then
          follow(key, piece)
        end
      end
    end
  end
  return lines
end

local function lines_at(x, y, z, level)
  local list, points = {}, {}
  local columns = #x
  -- Where the level crosses the edge between two corners of the grid; one key for both cells that share the edge.
  local function crossing(i1, j1, i2, j2)
    local key = ((i1 * columns + j1) << 32) | (i2 * columns + j2)
    if not points[key] then
      local a, b = z[i1][j1], z[i2][j2]
      local share = (level - a) / (b - a)
      points[key] = { x[j1] + (x[j2] - x[j1]) * share, y[i1] + (y[i2] - y[i1]) * share }
    end
    return key
  end
  for i = 1, #y - 1 do
    for j = 1, columns - 1 do
      local a, b, c, d = z[i][j], z[i][j + 1], z[i + 1][j + 1], z[i + 1][j]
      local sum = a + b + c + d
      if sum - sum == 0 then -- all four are finite
        local case = (a >= level and 1 or 0) + (b >= level and 2 or 0) + (c >= level and 4 or 0) + (d >= level and 8 or 0)
        local edges = pieces[case]
        if case == 5 or case == 10 then
          local joins = (sum / 4 >= level) == (case == 5)
          edges = joins and { 1, 2, 3, 4 } or { 4, 1, 2, 3 }
        end
        local function key(edge)
          if edge == 1 then
            return crossing(i, j, i, j + 1)
          elseif edge == 2 then
            return crossing(i, j + 1, i + 1, j + 1)
          elseif edge == 3 then
            return crossing(i + 1, j, i + 1, j + 1)
          end
          return crossing(i, j, i + 1, j)
        end
        for k = 1, #edges, 2 do
          list[#list + 1] = { key(edges[k]), key(edges[k + 1]) }
        end
      end
    end
  end
  return joined(list, points)
end

--- The lines of z (a row for each y) at each of the levels: a list of { level =, x =, y = }.
return function(x, y, z, levels)
  local all = {}
  for _, level in ipairs(levels) do
    for _, line in ipairs(lines_at(x, y, z, level)) do
      line.level = level
      all[#all + 1] = line
    end
  end
  return all
end
