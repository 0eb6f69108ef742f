-- The assignment of n rows to m >= n columns with the least sum of costs: rows are added one by one, each by a shortest path of exchanges
-- in reduced costs, which the dual variables u and v keep from being negative (Jonker and Volgenant 1987).
return function(cost, n, m)
  local u, v, row_of, column_of = {}, {}, {}, {}
  for i = 1, n do u[i] = 0.0 end
  for j = 1, m do v[j] = 0.0 end
  for start = 1, n do
    local shortest, previous, done_row, done_column = {}, {}, {}, {}
    for j = 1, m do shortest[j] = math.huge end
    local i, length, sink = start, 0.0, nil
    while not sink do
      done_row[i] = true
      local best, lowest = nil, math.huge
      for j = 1, m do
        if not done_column[j] then
          local through = length + cost[i][j] - u[i] - v[j]
          if through < shortest[j] then shortest[j], previous[j] = through, i end
          -- Of equal columns one without a row ends the search.
          if shortest[j] < lowest or (shortest[j] == lowest and best and not row_of[j] and row_of[best]) then
            lowest, best = shortest[j], j
          end
        end
      end
      if not best or lowest == math.huge then return nil end
      length, done_column[best] = lowest, true
      if row_of[best] then i = row_of[best] else sink = best end
    end
    u[start] = u[start] + length
    for k in pairs(done_row) do
      if k ~= start then u[k] = u[k] + length - shortest[column_of[k]] end
    end
    for j in pairs(done_column) do v[j] = v[j] - length + shortest[j] end
    local j = sink
    repeat
      local k = previous[j]
      row_of[j] = k
      column_of[k], j = j, column_of[k]
    until k == start
  end
  return column_of
end
