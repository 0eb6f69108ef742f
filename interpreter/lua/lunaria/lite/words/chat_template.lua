-- ms.lite.chat_template: the part of Jinja in which the chat templates of published models are written. A template becomes a function
-- of Lua; statements are functions of a scope of names and of the list of texts that they add to.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local values = require "lunaria.lite.words.template_values"
local parser = require "lunaria.lite.words.template_parser"

local truth, text_of, fail = values.truth, values.text_of, values.fail
local fail_at, at_line, Parser = parser.fail_at, parser.at_line, parser.Parser

-- Names of the scopes around a scope are seen in it, and set in none but itself.
local function scope_in(parent) return setmetatable({}, { __index = parent }) end

local Reader = {}
Reader.__index = Reader
local statements = {}

-- The statements up to a tag of one of these names, and that tag's parser with its name.
function Reader:block(line, ...)
  local ends, list = { ... }, {}
  while true do
    local piece = self.pieces[self.at]
    if not piece then
      if #ends > 0 then fail_at(line, "the tag that begins here has no '%s'", ends[#ends]) end
      break
    end
    self.at = self.at + 1
    if piece[1] == "text" then
      local text = piece[2]
      list[#list + 1] = function(_, out) out[#out + 1] = text end
    elseif piece[1] == "{{" then
      list[#list + 1] = self:output(Parser.of(piece[2], piece[3]))
    else
      local tag = Parser.of(piece[2], piece[3])
      local name = (tag:take "name" or fail_at(piece[3], "the tag has no name"))[2]
      for _, one in ipairs(ends) do
        if name == one then return self.joined(list), name, tag end
      end
      local read = statements[name] or fail_at(piece[3], "the tag '%s' is not supported", name)
      list[#list + 1] = read(self, tag, piece[3])
    end
  end
  return self.joined(list)
end

-- A statement may end a loop: it gives "break" or "continue" then.
function Reader.joined(list)
  return function(scope, out)
    for i = 1, #list do
      local signal = list[i](scope, out)
      if signal then return signal end
    end
    return nil
  end
end

local function finish(tag)
  local found = tag:peek()
  if found then fail_at(found[3], "'%s' is not understood here", text_of(found[2])) end
end

function Reader:output(tag)
  local value = self.tuple(tag)
  finish(tag)
  return function(scope, out) out[#out + 1] = text_of(value(scope)) end
end

-- One expression, or a list of them without brackets.
function Reader.tuple(tag)
  local list = { tag:expression() }
  while tag:operator "," and tag:peek() do list[#list + 1] = tag:expression() end
  if #list == 1 then return list[1] end
  return function(scope)
    local made = ms.json.array {}
    for i, one in ipairs(list) do made[i] = one(scope) end
    return made
  end
end

local function captured(body, scope)
  local out = {}
  body(scope, out)
  return table.concat(out)
end

statements["if"] = function(reader, tag, line)
  local branches, last = {}, nil
  while true do
    local condition = tag:expression()
    finish(tag)
    local body, name, next_tag = reader:block(line, "elif", "else", "endif")
    branches[#branches + 1] = { condition, body }
    if name == "else" then
      finish(next_tag)
      last, name, next_tag = reader:block(line, "endif")
    end
    if name == "endif" then
      finish(next_tag)
      break
    end
    tag = next_tag
  end
  return function(scope, out)
    for _, branch in ipairs(branches) do
      if truth(branch[1](scope)) then return branch[2](scope, out) end
    end
    return last and last(scope, out)
  end
end

-- The names that a loop or set gives values.
local function targets(tag)
  local names, bracket = {}, tag:operator "("
  repeat names[#names + 1] = tag:expect("name")[2] until not tag:operator "," or not tag:peek "name"
  if bracket then tag:expect("operator", ")") end
  return names
end
local function assign(scope, names, value, line)
  if #names == 1 then
    rawset(scope, names[1], value)
    return
  end
  local list = at_line(line, values.items, value)
  if #list ~= #names then fail_at(line, "%d names are given %d values", #names, #list) end
  for i, name in ipairs(names) do rawset(scope, name, list[i]) end
end

local function loop_facts(loop, list, i)
  local count = #list
  loop.index, loop.index0, loop.revindex, loop.revindex0 = i, i - 1, count - i + 1, count - i
  loop.first, loop.last, loop.length = i == 1, i == count, count
  loop.previtem, loop.nextitem = list[i - 1], list[i + 1]
end

local function new_loop(outer)
  local depth = outer and outer.depth or 0
  local loop, seen = { depth = depth + 1, depth0 = depth }, nil
  loop.cycle = function(...) return (select(loop.index0 % select("#", ...) + 1, ...)) end
  loop.changed = function(...)
    local now = { ... }
    local same = seen and values.equal(seen, now)
    seen = now
    return not same
  end
  return loop
end

statements["for"] = function(reader, tag, line)
  local names = targets(tag)
  tag:expect("name", "in")
  local iterated = tag:either()
  local condition = tag:take("name", "if") and tag:expression()
  if tag:peek("name", "recursive") then fail_at(line, "recursive loops are not supported") end
  finish(tag)
  local body, name, next_tag = reader:block(line, "else", "endfor")
  local otherwise
  finish(next_tag)
  if name == "else" then otherwise = reader:block(line, "endfor") end
  return function(scope, out)
    local list = at_line(line, values.items, iterated(scope))
    if condition then
      local kept = {}
      for _, item in ipairs(list) do
        local inner = scope_in(scope)
        assign(inner, names, item, line)
        if truth(condition(inner)) then kept[#kept + 1] = item end
      end
      list = kept
    end
    local loop = new_loop(rawget(scope, "loop"))
    for i, item in ipairs(list) do
      local inner = scope_in(scope)
      loop_facts(loop, list, i)
      rawset(inner, "loop", loop)
      assign(inner, names, item, line)
      if body(inner, out) == "break" then break end
    end
    if #list == 0 and otherwise then return otherwise(scope_in(scope), out) end
    return nil
  end
end
statements["break"] = function(_, tag)
  finish(tag)
  return function() return "break" end
end
statements["continue"] = function(_, tag)
  finish(tag)
  return function() return "continue" end
end

function statements.set(reader, tag, line)
  local names = targets(tag)
  if #names == 1 and tag:operator "." then
    local field = tag:expect("name")[2]
    tag:expect("operator", "=")
    local value = reader.tuple(tag)
    finish(tag)
    return function(scope)
      local object = scope[names[1]]
      local meta = type(object) == "table" and getmetatable(object)
      if not (meta and meta.is_namespace) then fail_at(line, "'%s' is no namespace: its fields cannot be set", names[1]) end
      values.put(object, field, value(scope))
    end
  end
  if tag:operator "=" then
    local value = reader.tuple(tag)
    finish(tag)
    return function(scope) assign(scope, names, value(scope), line) end
  end
  local inner
  local filtered = tag:filtered(function() return inner end)
  finish(tag)
  local body = reader:block(line, "endset")
  return function(scope)
    inner = captured(body, scope_in(scope))
    assign(scope, names, filtered(scope), line)
  end
end

function statements.macro(reader, tag, line)
  local name = tag:expect("name")[2]
  tag:expect("operator", "(")
  local parameters = {}
  while not tag:operator ")" do
    local parameter = { tag:expect("name")[2] }
    if tag:operator "=" then parameter[2] = tag:expression() end
    parameters[#parameters + 1] = parameter
    if not tag:operator "," then
      tag:expect("operator", ")")
      break
    end
  end
  finish(tag)
  local body = reader:block(line, "endmacro")
  return function(scope)
    local function run(args, named)
      local inner = scope_in(scope)
      if args.n and args.n > #parameters then fail_at(line, "macro '%s' takes %d arguments, got %d", name, #parameters, args.n) end
      for i, parameter in ipairs(parameters) do
        local value = args[i]
        if value == nil then value = named[parameter[1]] end
        if value == nil and parameter[2] then value = parameter[2](inner) end
        rawset(inner, parameter[1], value)
      end
      return captured(body, inner)
    end
    rawset(scope, name, setmetatable({ macro = run }, { keys = {} }))
  end
end

-- What a model said itself is marked so in some templates; it is text as any other.
function statements.generation(reader, tag, line)
  finish(tag)
  return (reader:block(line, "endgeneration"))
end

function statements.filter(reader, tag, line)
  local inner
  tag.at = tag.at - 1
  tag.tokens[tag.at] = { "operator", "|", line }
  local filtered = tag:filtered(function() return inner end)
  finish(tag)
  local body = reader:block(line, "endfilter")
  return function(scope, out)
    inner = captured(body, scope_in(scope))
    out[#out + 1] = text_of(filtered(scope))
  end
end

function statements.with(reader, tag, line)
  local rows = {}
  while tag:peek() do
    local name = tag:expect("name")[2]
    tag:expect("operator", "=")
    rows[#rows + 1] = { name, tag:expression() }
    if not tag:operator "," then break end
  end
  finish(tag)
  local body = reader:block(line, "endwith")
  return function(scope, out)
    local inner = scope_in(scope)
    for _, row in ipairs(rows) do rawset(inner, row[1], row[2](scope)) end
    return body(inner, out)
  end
end

local globals = {}
function globals.range(first, last, step)
  if last == nil then first, last = 0, first end
  step = step or 1
  if math.type(first) ~= "integer" or math.type(last) ~= "integer" or math.type(step) ~= "integer" or step == 0 then
    fail "range takes integers, and a step that is not 0"
  end
  local most = 100000
  if (last - first) // step > most then fail("a range has at most %d numbers", most) end
  local list = ms.json.array {}
  for i = first, step > 0 and last - 1 or last + 1, step do list[#list + 1] = i end
  return list
end
local function filled(made, other, named)
  for _, from in ipairs { other or false, named or false } do
    if from then
      for _, key in ipairs(values.keys_of(from)) do values.put(made, key, from[key]) end
    end
  end
  return made
end
function globals.namespace(...) return filled(setmetatable({}, { keys = {}, is_namespace = true }), ...) end
function globals.dict(...) return filled(values.dictionary(), ...) end
function globals.raise_exception(message) fail("%s", text_of(message)) end
function globals.strftime_now(format)
  local fine, text = pcall(os.date, format)
  return fine and text or fail("'%s' is no format of dates", text_of(format))
end

local function raised(problem)
  if type(problem) ~= "table" or not problem.template then error(problem, 0) end
  arguments.fail("chat_template", ("%s%s"):format(problem.line and ("line %d: "):format(problem.line) or "", problem.template))
end

--- A chat template of a language model, in the part of Jinja that such templates use, as a function: it takes a table of values by name
--- (messages, add_generation_prompt, tools, bos_token and whatever else the template asks for) and gives the text for the model.
--- Errors, those of the template's own raise_exception too, name the line of the template.
---     > template = ms.lite.chat_template("{% for m in messages %}[{{ m.role | upper }}] {{ m.content }}{% endfor %}")
---     > template { messages = { { role = "user", content = "Good day" } } } --> [USER] Good day
local function chat_template(text)
  if type(text) ~= "string" then
    arguments.fail("chat_template", "the template must be a text, got " .. arguments.describe(text))
  end
  local fine, run = pcall(function()
    return (setmetatable({ pieces = parser.pieces_of(text), at = 1 }, Reader):block(1))
  end)
  if not fine then raised(run) end
  return function(given)
    if type(given) ~= "table" then
      arguments.fail("chat_template", "a table of values by name is expected, got " .. arguments.describe(given))
    end
    local root = scope_in(globals)
    for name, value in pairs(given) do rawset(root, name, value) end
    local out = {}
    local done, problem = pcall(run, scope_in(root), out)
    if not done then raised(problem) end
    return table.concat(out)
  end
end

return { chat_template = chat_template }
