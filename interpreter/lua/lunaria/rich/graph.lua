-- A graph of the intermediate representation as a value: its text, and in a notebook a drawing of it. The drawing is made
-- from the text, which says everything (core/ir/printer.h).
local escaped = require "lunaria.plot.svg_text"
local layout = require "lunaria.rich.layout"

local MOST_NODES = 300

-- Names and numbers that an argument list refers to, strings left aside.
local function references(text)
  text = text:gsub("\"[^\"]*\"", "\"\"")
  local list = {}
  for id in text:gmatch("%%(%d+)") do
    list[#list + 1] = id
  end
  return list, text
end

local function shortened(text, most)
  return #text > most and text:sub(1, most - 1) .. "…" or text
end

-- What is written into a node: the operator with those of its arguments that are no edges.
local function label_of(expression)
  local item = expression:match("^%%%d+%[(%d+)%]$")
  if item then
    return "[" .. item .. "]"
  end
  local name, arguments = expression:match("^([@%w_%. ]+)%((.*)%)$")
  if not name then
    return shortened(expression, 28)
  end
  local plain = {}
  for part in arguments:gsub("{[^{}]*}", function(list)
    return list:find("%", 1, true) and "" or list:gsub(",", ";")
  end):gmatch("[^,]+") do
    part = part:match("^%s*(.-)%s*$")
    if part ~= "" and not part:find("%%%d") then
      plain[#plain + 1] = part
    end
  end
  return shortened(name .. (#plain > 0 and " " .. table.concat(plain, ", ") or ""), 34)
end

local function link(graph, node)
  node.sources, node.readers = {}, {}
  for _, id in ipairs(references(node.reads or "")) do
    local from = graph.by_id[id]
    if from and not node.sources[from] then
      node.sources[from] = true
      node.sources[#node.sources + 1] = from
      from.readers[#from.readers + 1] = node
    end
  end
  graph.nodes[#graph.nodes + 1] = node
  return node
end

-- One statement as a node. A call of what was just looked up, `ms.ops.tanh(x)` or `x:tanh()`, is one node with that name,
-- and its first result is the node itself.
local function add_statement(graph, id, expression, note)
  local plain, type_text = expression:match("^(.-)%s+: ([^:]*)$")
  expression = plain or expression
  local of, position = expression:match("^result%(%%(%d+), (%d+)%)$")
  if of and position == "0" and graph.by_id[of] and graph.by_id[of].is_call then
    graph.by_id[id] = graph.by_id[of]
    return
  end
  local node = { kind = expression:find("^%%%d+%[") and "item" or "call", note = note, reads = expression }
  node.type = type_text and type_text ~= "?" and type_text or nil
  node.label = label_of(expression)
  node.field = expression:match("^index%(%%%d+, \"([%a_][%w_]*)\"%)$")
  local callee, arguments = expression:match("^call%(%%(%d+), (.*)%)$")
  if callee then
    node.is_call = true
    local f = graph.by_id[callee]
    if f and f.field then
      node.reads, node.label = arguments, f.field
      local plain_arguments = label_of("x(" .. arguments:gsub("^{(.*)}$", "%1") .. ")")
      node.label = shortened(f.field .. plain_arguments:sub(2), 34)
    end
  end
  graph.by_id[id] = link(graph, node)
end

-- Looked-up functions and captured values that nothing reads any more, since calls have taken over their names.
local function without_unread(graph)
  local kept = {}
  for i = #graph.nodes, 1, -1 do
    local node = graph.nodes[i]
    local unread = #node.readers == 0 and (node.field or node.label == "_ENV")
    if unread then
      for _, source in ipairs(node.sources) do
        for k = #source.readers, 1, -1 do
          if source.readers[k] == node then
            table.remove(source.readers, k)
          end
        end
      end
    else
      table.insert(kept, 1, node)
    end
  end
  graph.nodes = kept
  return #kept
end

-- { { title =, nodes = } ... }: this graph and those within it, each with its nodes in order; and how many there are.
local function parse(text)
  local graphs, open = {}, {}
  for line in text:gmatch("[^\n]+") do
    local body = line:match("^%s*(.-)%s*$")
    local head = body:match("^graph (.*) {")
    if head then
      local name, parameters = head:match("^([^(]*)%((.*)%)")
      local graph = { title = name or head, nodes = {}, by_id = {} }
      for id, rest in (parameters or ""):gmatch("%%(%d+) ?([^,]*)") do
        local label = rest:match("^(.-): ") or rest
        graph.by_id[id] = link(graph, { label = label ~= "" and label or "%" .. id, kind = "parameter", fixed = true, note = rest })
      end
      graphs[#graphs + 1], open[#open + 1] = graph, graph
    elseif body == "}" then
      open[#open] = nil
    elseif #open > 0 then
      local statement = body:match("^(.-)%s*%-%- .*$") or body
      local id, expression = statement:match("^%%(%d+) = (.*)$")
      if id then
        add_statement(open[#open], id, expression, body)
      elseif statement:find("^return ") then
        link(open[#open], { label = "return", reads = statement, kind = "return", note = statement })
      end
    end
  end
  local count = 0
  for _, graph in ipairs(graphs) do
    count = count + without_unread(graph)
  end
  return graphs, count
end

local fills = { parameter = "#e8f1fa", call = "#ffffff", item = "#f4f4f4", ["return"] = "#e9f5e7" }

local function number(x)
  return (("%.1f"):format(x):gsub("%.0$", ""))
end

local function draw_graph(out, graph, x0, y0)
  for _, node in ipairs(graph.nodes) do
    node.width = math.max(26, 7.3 * (utf8.len(node.label) or #node.label) + 14)
    node.height = node.kind == "item" and 18 or 24
    if node.type then
      node.width = math.max(node.width, 6 * #node.type + 12)
      node.height = 36
    end
  end
  local edges, width, height = layout(graph.nodes)
  local title_width = 7.5 * #graph.title + 20
  width = math.max(width, title_width)
  local function at(node)
    return x0 + 12 + node.x, y0 + 34 + node.y
  end
  out[#out + 1] = ("<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"6\" fill=\"none\" stroke=\"#bbbbbb\"/>"):format(
    number(x0), number(y0), number(width + 24), number(height + 46))
  out[#out + 1] = ("<text x=\"%s\" y=\"%s\" font-weight=\"bold\">%s</text>"):format(number(x0 + 10), number(y0 + 18), escaped(graph.title))
  for _, way in ipairs(edges) do
    local parts = {}
    for i = 1, #way - 1 do
      local ax, ay = at(way[i])
      local bx, by = at(way[i + 1])
      ay, by = ay + way[i].height / 2, by - way[i + 1].height / 2
      if i == 1 then
        parts[1] = ("M%s %s"):format(number(ax), number(ay))
      end
      local middle = (ay + by) / 2
      parts[#parts + 1] = ("C%s %s %s %s %s %s"):format(number(ax), number(middle), number(bx), number(middle), number(bx), number(by))
    end
    out[#out + 1] = ("<path d=\"%s\" fill=\"none\" stroke=\"#777777\" marker-end=\"url(#lunaria-arrow)\"/>"):format(table.concat(parts))
  end
  for _, node in ipairs(graph.nodes) do
    local x, y = at(node)
    out[#out + 1] = ("<g><title>%s</title><rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"%d\" fill=\"%s\" "
      .. "stroke=\"#555555\"/>"):format(escaped(node.note or ""), number(x - node.width / 2),
      number(y - node.height / 2), number(node.width), number(node.height), node.kind == "parameter" and 12 or 3, fills[node.kind])
    out[#out + 1] = ("<text x=\"%s\" y=\"%s\" text-anchor=\"middle\">%s</text>"):format(number(x), number(y + (node.type and -2 or 4)),
      escaped(node.label))
    if node.type then
      out[#out + 1] = ("<text x=\"%s\" y=\"%s\" text-anchor=\"middle\" font-size=\"9\" fill=\"#777777\">%s</text>"):format(number(x),
        number(y + 12), escaped(node.type))
    end
    out[#out + 1] = "</g>"
  end
  return width + 24, height + 46
end

local Graph = {}
Graph.__name = "graph"

--- The drawing as SVG; nothing when the graph is too large for one (then its text is the better way to read it).
local function svg(self)
  local graphs, count = parse(self._text)
  if count == 0 or count > MOST_NODES then
    return nil
  end
  local body, y, widest = {}, 6, 0
  for _, graph in ipairs(graphs) do
    local width, height = draw_graph(body, graph, 6, y)
    y, widest = y + height + 12, math.max(widest, width)
  end
  return ("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
    .. "font-family=\"DejaVu Sans Mono, monospace\" font-size=\"11\" fill=\"#222222\">\n"
    .. "<defs><marker id=\"lunaria-arrow\" markerWidth=\"8\" markerHeight=\"8\" refX=\"6\" refY=\"3\" orient=\"auto\">"
    .. "<path d=\"M0 0L6 3L0 6z\" fill=\"#777777\"/></marker></defs>\n"
    .. "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n%s\n</svg>"):format(math.ceil(widest + 12), math.ceil(y),
    math.ceil(widest + 12), math.ceil(y), table.concat(body, "\n"))
end

local methods = { svg = svg }

-- The functions of strings work on the text: g:find("mul"), #g, g .. "\n".
function Graph:__index(name)
  local method = methods[name]
  if method or not string[name] then
    return method
  end
  return function(_, ...)
    return string[name](self._text, ...)
  end
end

function Graph:__tostring()
  return self._text
end

function Graph:__len()
  return #self._text
end

function Graph.__concat(a, b)
  return tostring(a) .. tostring(b)
end

function Graph.__eq(a, b)
  return tostring(a) == tostring(b)
end

function Graph:__mime()
  return { ["image/svg+xml"] = svg(self), ["text/plain"] = self._text }
end

return function(text)
  return setmetatable({ _text = text }, Graph)
end
