-- Places for the nodes of a directed graph without cycles, in layers from top to bottom (Sugiyama's way): a node stands
-- below all that it reads, an edge that skips layers gets a bend in each, the order within a layer follows the mean place
-- of the neighbours, and so do the places themselves as far as the widths of the nodes allow.
local GAP_X, GAP_Y, BEND = 22, 34, 8

-- Layers by longest path; `nodes` stand in an order in which every edge leads forwards.
local function ranks(nodes)
  for _, node in ipairs(nodes) do
    node.rank = 0
    for _, source in ipairs(node.sources) do
      node.rank = math.max(node.rank, source.rank + 1)
    end
  end
  -- What nothing is above moves down to just above the first that reads it.
  for i = #nodes, 1, -1 do
    local node = nodes[i]
    if #node.sources == 0 and #node.readers > 0 and not node.fixed then
      local least = math.huge
      for _, reader in ipairs(node.readers) do
        least = math.min(least, reader.rank - 1)
      end
      node.rank = math.max(node.rank, least)
    end
  end
end

local function layers_of(nodes)
  local layers, edges = {}, {}
  local function put(node)
    layers[node.rank + 1] = layers[node.rank + 1] or {}
    local layer = layers[node.rank + 1]
    layer[#layer + 1] = node
    node.above, node.below = {}, {}
  end
  local deepest = 0
  for _, node in ipairs(nodes) do
    deepest = math.max(deepest, node.rank)
  end
  for rank = 0, deepest do
    layers[rank + 1] = {}
  end
  for _, node in ipairs(nodes) do
    put(node)
  end
  local function connect(a, b)
    a.below[#a.below + 1] = b
    b.above[#b.above + 1] = a
  end
  for _, node in ipairs(nodes) do
    for _, source in ipairs(node.sources) do
      local way, last = { source }, source
      for rank = source.rank + 1, node.rank - 1 do
        local bend = { rank = rank, width = BEND, height = 0 }
        put(bend)
        connect(last, bend)
        way[#way + 1], last = bend, bend
      end
      connect(last, node)
      way[#way + 1] = node
      edges[#edges + 1] = way
    end
  end
  return layers, edges
end

local function mean(list, field, otherwise)
  local sum = 0
  for _, item in ipairs(list) do
    sum = sum + item[field]
  end
  return #list > 0 and sum / #list or otherwise
end

local function number(layer)
  for i, node in ipairs(layer) do
    node.place = i
  end
end

local function order(layers)
  for _, layer in ipairs(layers) do
    number(layer)
  end
  for sweep = 1, 8 do
    local down = sweep % 2 == 1
    for k = 1, #layers do
      local layer = layers[down and k or #layers + 1 - k]
      for i, node in ipairs(layer) do
        node.wish = mean(down and node.above or node.below, "place", i)
      end
      table.sort(layer, function(a, b)
        return a.wish < b.wish or a.wish == b.wish and a.place < b.place
      end)
      number(layer)
    end
  end
end

-- Moves the nodes of a layer towards where they wish to be, in order and apart from each other.
local function settle(layer)
  local blocks = {}
  for _, node in ipairs(layer) do
    -- Nodes that would overlap become one block, which stands at the mean of their wishes.
    local block = { first = node, nodes = { node }, offset = { 0 }, width = node.width, wish = node.wish }
    blocks[#blocks + 1] = block
    while #blocks > 1 do
      local a, b = blocks[#blocks - 1], blocks[#blocks]
      local distance = a.width - a.nodes[1].width / 2 + GAP_X + b.nodes[1].width / 2
      if b.wish - a.wish >= distance then
        break
      end
      local n, m = #a.nodes, #b.nodes
      a.wish = (a.wish * n + (b.wish - distance) * m) / (n + m)
      for i, other in ipairs(b.nodes) do
        a.nodes[n + i], a.offset[n + i] = other, b.offset[i] + distance
      end
      a.width = a.width + GAP_X + b.width
      blocks[#blocks] = nil
    end
  end
  for _, block in ipairs(blocks) do
    for i, node in ipairs(block.nodes) do
      node.x = block.wish + block.offset[i]
    end
  end
end

local function place(layers)
  local y = 0
  for _, layer in ipairs(layers) do
    local x, tallest = 0, 0
    for _, node in ipairs(layer) do
      node.x = x + node.width / 2
      x = x + node.width + GAP_X
      tallest = math.max(tallest, node.height)
    end
    for _, node in ipairs(layer) do
      node.x = node.x - (x - GAP_X) / 2
      node.y = y + tallest / 2
    end
    y = y + tallest + GAP_Y
  end
  for sweep = 1, 12 do
    local down = sweep % 2 == 1
    for k = 1, #layers do
      local layer = layers[down and k or #layers + 1 - k]
      for _, node in ipairs(layer) do
        node.wish = mean(down and node.above or node.below, "x", node.x)
      end
      settle(layer)
    end
  end
end

--- Gives x and y (of the middle) to nodes { width =, height =, sources = {nodes}, readers = {nodes}, fixed = stays on top }
--- and returns the ways of the edges (lists of nodes and bends), the width and the height of the whole.
return function(nodes)
  ranks(nodes)
  local layers, edges = layers_of(nodes)
  order(layers)
  place(layers)
  local left, right, bottom = math.huge, -math.huge, 0
  for _, layer in ipairs(layers) do
    for _, node in ipairs(layer) do
      left, right = math.min(left, node.x - node.width / 2), math.max(right, node.x + node.width / 2)
      bottom = math.max(bottom, node.y + node.height / 2)
    end
  end
  for _, layer in ipairs(layers) do
    for _, node in ipairs(layer) do
      node.x = node.x - left
    end
  end
  return edges, right - left, bottom
end
