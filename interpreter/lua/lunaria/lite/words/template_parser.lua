-- Expressions of chat templates as Lua closures over a scope of names, and the texts and tags that a template consists of. As in Jinja
-- with the settings that chat templates are written for, tags stand in no line of their own: the line end after one and the spaces
-- before one are left out.
local ms = require "lunaria"
local values = require "lunaria.lite.words.template_values"
local known = require "lunaria.lite.words.template_filters"

local null = ms.json.null
local truth, text_of, kind_of = values.truth, values.text_of, values.kind_of
local fail = values.fail

-- An error at a line of the template. Errors of values know no line: the nearest expression adds its own.
local function fail_at(line, message, ...) error({ template = message:format(...), line = line }, 0) end
local function at_line(line, f, ...)
  local results = table.pack(pcall(f, ...))
  if results[1] then return table.unpack(results, 2, results.n) end
  local problem = results[2]
  if type(problem) == "table" and problem.template then
    problem.line = problem.line or line
    error(problem, 0)
  end
  -- What Lua itself says of values that an operator does not take.
  if type(problem) == "string" then
    error({ template = problem:gsub("^[^:]+:%d+: ", ""), line = line }, 0)
  end
  error(problem, 0)
end

-- Lexer: a list of texts and tags, each tag a list of tokens { kind, value, line }.
local operators = { "**", "//", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[", "]", "{", "}",
  ".", ",", ":", "|" }
local escapes = { n = "\n", t = "\t", r = "\r", b = "\b", f = "\f", v = "\v", a = "\a", ["0"] = "\0", ["\n"] = "" }

local function text_token(source, at, line)
  local quote, parts = source:sub(at, at), {}
  local i = at + 1
  while true do
    local c = source:sub(i, i)
    if c == "" then fail_at(line, "a text has no end") end
    if c == quote then break end
    if c == "\\" then
      local kind = source:sub(i + 1, i + 1)
      local digits = ({ x = "^%x%x", u = "^%x%x%x%x", U = "^%x%x%x%x%x%x%x%x" })[kind]
      local code = digits and source:match(digits, i + 2)
      if code then
        parts[#parts + 1] = utf8.char(tonumber(code, 16))
        i = i + 2 + #code
      else
        parts[#parts + 1] = escapes[kind] or (kind == "\\" or kind == "'" or kind == '"') and kind or "\\" .. kind
        i = i + 2
      end
    else
      local stop = source:find("[\\" .. quote .. "]", i) or #source + 1
      parts[#parts + 1] = source:sub(i, stop - 1)
      i = stop
    end
  end
  return table.concat(parts), i + 1
end

local function number_token(source, at)
  local digits = source:match("^[%d_]+", at)
  local after = at + #digits
  local fraction = source:match("^%.%d+[eE][+-]?%d+", after) or source:match("^%.%d+", after) or source:match("^[eE][+-]?%d+", after)
  local number = tonumber((digits:gsub("_", "") .. (fraction or "")))
  return number, after + #(fraction or "")
end

-- The tokens from `at` to the end of a tag, the place after it, whether the end has a sign ("-", "+"), and the line there.
local function tag_tokens(source, at, closing, line)
  local tokens, depth, first = {}, 0, line
  while true do
    local space = source:match("^%s*", at)
    line = line + select(2, space:gsub("\n", ""))
    at = at + #space
    local sign = source:match("^[-+]?", at)
    if depth == 0 and source:sub(at + #sign, at + #sign + 1) == closing then return tokens, at + #sign + 2, sign, line end
    local c = source:sub(at, at)
    if c == "" then fail_at(first, "the tag that begins here has no end '%s'", closing) end
    local token, after
    if c:find "[%a_\x80-\xFF]" then
      local name = source:match("^[%w_\x80-\xFF]+", at)
      token, after = { "name", name, line }, at + #name
    elseif c:find "%d" then
      local number, next_at = number_token(source, at)
      token, after = { "number", number, line }, next_at
    elseif c == '"' or c == "'" then
      local text, next_at = text_token(source, at, line)
      token, after = { "text", text, line }, next_at
      line = line + select(2, source:sub(at, next_at - 1):gsub("\n", ""))
    else
      for _, operator in ipairs(operators) do
        if source:sub(at, at + #operator - 1) == operator then
          token, after = { "operator", operator, line }, at + #operator
          break
        end
      end
      if not token then fail_at(line, "'%s' is not understood", source:match("^[%z\1-\x7F\xC2-\xFD][\x80-\xBF]*", at) or "?") end
      if c:find "[%(%[{]" then depth = depth + 1 elseif c:find "[%)%]}]" then depth = math.max(depth - 1, 0) end
    end
    tokens[#tokens + 1] = token
    at = after
  end
end

local closing_of = { ["{{"] = "}}", ["{%"] = "%}", ["{#"] = "#}" }

local function pieces_of(source)
  source = source:gsub("\r\n?", "\n"):gsub("\n$", "", 1)
  local pieces, at, line, strips = {}, 1, 1, false
  local function put_text(text, sign, opening)
    local first = line
    line = line + select(2, text:gsub("\n", ""))
    if strips then text = text:gsub("^%s+", "") end
    if sign == "-" then
      text = text:gsub("%s+$", "")
    elseif sign ~= "+" and opening and opening ~= "{{" then
      -- Spaces from the beginning of a line to a tag.
      local before, spaces = text:match "^(.-)([ \t]*)$"
      if spaces and (before:sub(-1) == "\n" or before == "" and (at == 1 or source:sub(at - 1, at - 1) == "\n")) then text = before end
    end
    if text ~= "" then pieces[#pieces + 1] = { "text", text, first } end
  end
  while true do
    local from = source:find("{[{%%#]", at)
    if not from then
      put_text(source:sub(at))
      return pieces
    end
    local opening = source:sub(from, from + 1)
    local sign = source:match("^[-+]?", from + 2)
    put_text(source:sub(at, from - 1), sign, opening)
    local tag_line, end_sign, after = line
    if opening == "{#" then
      local stop = source:find("#}", from + 2, true) or fail_at(line, "the comment that begins here has no end '#}'")
      end_sign, after = source:sub(stop - 1, stop - 1), stop + 2
      line = line + select(2, source:sub(from, stop):gsub("\n", ""))
    else
      local tokens
      tokens, after, end_sign, line = tag_tokens(source, from + 2 + #sign, closing_of[opening], line)
      if opening == "{%" and tokens[1] and tokens[1][2] == "raw" then
        local stop, rest = source:find("{%%[-+]?%s*endraw%s*[-+]?%%}", after)
        if not stop then fail_at(tag_line, "raw has no endraw") end
        local raw = source:sub(after, stop - 1)
        if end_sign == "" then raw = raw:gsub("^\n", "", 1) end
        pieces[#pieces + 1] = { "text", raw, line }
        line = line + select(2, source:sub(after, rest):gsub("\n", ""))
        after, end_sign = rest + 1, source:sub(rest - 2, rest - 2)
      else
        pieces[#pieces + 1] = { opening, tokens, tag_line }
      end
    end
    strips = end_sign == "-"
    at = after
    if opening ~= "{{" and not strips and end_sign ~= "+" and source:sub(at, at) == "\n" then
      at = at + 1
      line = line + 1
    end
  end
end

-- Reads the tokens of a tag: fields tokens, at, first_line.
local Parser = {}
function Parser.__index(self, name)
  if name ~= "line" then return Parser[name] end
  local token = self.tokens[self.at] or self.tokens[#self.tokens]
  return token and token[3] or self.first_line
end
function Parser.of(tokens, line) return setmetatable({ tokens = tokens, at = 1, first_line = line }, Parser) end

function Parser:peek(kind, value)
  local token = self.tokens[self.at]
  return token and (kind == nil or token[1] == kind) and (value == nil or token[2] == value) and token or nil
end
function Parser:take(kind, value)
  local token = self:peek(kind, value)
  if token then self.at = self.at + 1 end
  return token
end
function Parser:expect(kind, value)
  local token = self:take(kind, value)
  if token then return token end
  local found = self:peek()
  fail_at(self.line, "%s is expected, got %s", value and ("'%s'"):format(value) or "a " .. kind,
    found and ("'%s'"):format(text_of(found[2])) or "the end of the tag")
end
function Parser:operator(...)
  for _, value in ipairs { ... } do
    if self:take("operator", value) then return value end
  end
  return nil
end

-- Each expression is a function of a scope.
local function arithmetic(name, line, f)
  return function(a, b)
    if a == nil or b == nil then fail_at(line, "an operand of '%s' is undefined", name) end
    return at_line(line, f, a, b)
  end
end
local function number_of(x) return type(x) == "boolean" and (x and 1 or 0) or type(x) == "number" and x
  or fail("a number is expected, got a value of type %s", kind_of(x)) end
local binary = {
  ["+"] = function(a, b)
    if type(a) == "string" and type(b) == "string" then return a .. b end
    if values.is_list(a) and values.is_list(b) then return table.move(b, 1, #b, #a + 1, { table.unpack(a) }) end
    if type(a) == "string" or type(b) == "string" or type(a) == "table" or type(b) == "table" then
      fail("'+' takes no values of types %s and %s", kind_of(a), kind_of(b))
    end
    return number_of(a) + number_of(b)
  end,
  ["-"] = function(a, b) return number_of(a) - number_of(b) end,
  ["*"] = function(a, b)
    if type(a) == "string" or type(b) == "string" then
      local text, count = a, b
      if type(b) == "string" then text, count = b, a end
      if math.type(count) ~= "integer" or #text * math.max(count, 0) > 1 << 24 then fail "a text is repeated too often" end
      return text:rep(count)
    end
    return number_of(a) * number_of(b)
  end,
  ["/"] = function(a, b) return number_of(b) == 0 and fail "division by zero" or number_of(a) / number_of(b) end,
  ["//"] = function(a, b) return number_of(b) == 0 and fail "division by zero" or number_of(a) // number_of(b) end,
  ["%"] = function(a, b)
    if type(a) == "string" then return (a:format(table.unpack(type(b) == "table" and b or { b }))) end
    return number_of(b) == 0 and fail "division by zero" or number_of(a) % number_of(b)
  end,
  ["**"] = function(a, b)
    local power = number_of(a) ^ number_of(b)
    return math.type(a) == "integer" and math.type(b) == "integer" and b >= 0 and math.tointeger(power) or power
  end,
}

function Parser:left_to_right(next_level, ...)
  local left = next_level(self)
  while true do
    local line = self.line
    local name = self:operator(...)
    if not name then return left end
    local f, a, b = arithmetic(name, line, binary[name]), left, next_level(self)
    left = function(scope) return f(a(scope), b(scope)) end
  end
end

function Parser:expression()
  local value = self:either()
  while self:take("name", "if") do
    local condition, yes, no = self:either(), value, nil
    if self:take("name", "else") then no = self:expression() end
    value = function(scope)
      if truth(condition(scope)) then return yes(scope) end
      return no and no(scope)
    end
  end
  return value
end

function Parser:either()
  local left = self:both()
  while self:take("name", "or") do
    local a, b = left, self:both()
    left = function(scope)
      local value = a(scope)
      if truth(value) then return value end
      return b(scope)
    end
  end
  return left
end

function Parser:both()
  local left = self:negation()
  while self:take("name", "and") do
    local a, b = left, self:negation()
    left = function(scope)
      local value = a(scope)
      if not truth(value) then return value end
      return b(scope)
    end
  end
  return left
end

function Parser:negation()
  if not self:take("name", "not") then return self:comparison() end
  local value = self:negation()
  return function(scope) return not truth(value(scope)) end
end

local compared = {
  ["=="] = values.equal,
  ["!="] = function(a, b) return not values.equal(a, b) end,
  ["<"] = function(a, b) return values.compare(a, b) < 0 end,
  [">"] = function(a, b) return values.compare(a, b) > 0 end,
  ["<="] = function(a, b) return values.compare(a, b) <= 0 end,
  [">="] = function(a, b) return values.compare(a, b) >= 0 end,
  ["in"] = function(a, b) return values.contains(b, a) end,
  ["not in"] = function(a, b) return not values.contains(b, a) end,
}

function Parser:comparison()
  local first, rest = self:sum(), {}
  while true do
    local line = self.line
    local name = self:operator("==", "!=", "<=", ">=", "<", ">")
    if not name and self:take("name", "in") then name = "in" end
    if not name and self:peek("name", "not") and (self.tokens[self.at + 1] or {})[2] == "in" then
      self.at, name = self.at + 2, "not in"
    end
    if not name then break end
    rest[#rest + 1] = { compared[name], self:sum(), line }
  end
  if #rest == 0 then return first end
  return function(scope)
    local left = first(scope)
    for _, one in ipairs(rest) do
      local right = one[2](scope)
      if not at_line(one[3], one[1], left, right) then return false end
      left = right
    end
    return true
  end
end

function Parser:sum() return self:left_to_right(Parser.joined, "+", "-") end

function Parser:joined()
  local list = { self:product() }
  while self:operator "~" do list[#list + 1] = self:product() end
  if #list == 1 then return list[1] end
  return function(scope)
    local parts = {}
    for i, one in ipairs(list) do parts[i] = text_of(one(scope)) end
    return table.concat(parts)
  end
end

function Parser:product() return self:left_to_right(Parser.power, "*", "//", "/", "%") end
function Parser:power() return self:left_to_right(Parser.unary, "**") end

function Parser:unary(without_filters)
  local line = self.line
  local sign = self:operator("-", "+")
  local value
  if sign then
    local inner = self:unary(true)
    value = function(scope)
      local number = at_line(line, number_of, inner(scope))
      return sign == "-" and -number or number
    end
  else
    value = self:postfix(self:primary())
  end
  return without_filters and value or self:filtered(value)
end

local constants = { ["true"] = true, ["True"] = true, ["false"] = false, ["False"] = false, none = null, None = null }

function Parser:primary()
  local line = self.line
  local token = self:take "name"
  if token then
    local name = token[2]
    local constant = constants[name]
    if constant ~= nil then return function() return constant end end
    return function(scope) return scope[name] end, name
  end
  token = self:take "number"
  if token then
    return function() return token[2] end
  end
  token = self:take "text"
  if token then
    local text = token[2]
    while self:peek "text" do text = text .. self:take("text")[2] end
    return function() return text end
  end
  if self:operator "(" then return self:parenthesis() end
  if self:operator "[" then
    local list = self:list "]"
    return function(scope)
      local made = ms.json.array {}
      for i, one in ipairs(list) do
        local value = one(scope)
        made[i] = value == nil and null or value
      end
      return made
    end
  end
  if self:operator "{" then return self:dictionary() end
  local found = self:peek()
  fail_at(line, "an expression is expected, got %s", found and ("'%s'"):format(text_of(found[2])) or "the end of the tag")
end

-- What stands in brackets: an expression, or several as a list.
function Parser:parenthesis()
  if self:operator ")" then return function() return ms.json.array {} end end
  local first = self:expression()
  if not self:peek("operator", ",") then
    self:expect("operator", ")")
    return first
  end
  self:operator ","
  local list = self:list ")"
  table.insert(list, 1, first)
  return function(scope)
    local made = ms.json.array {}
    for i, one in ipairs(list) do made[i] = one(scope) end
    return made
  end
end

function Parser:list(closing)
  local list = {}
  while not self:operator(closing) do
    list[#list + 1] = self:expression()
    if not self:operator "," then
      self:expect("operator", closing)
      break
    end
  end
  return list
end

function Parser:dictionary()
  local rows = {}
  while not self:operator "}" do
    local key = self:expression()
    self:expect("operator", ":")
    rows[#rows + 1] = { key, self:expression() }
    if not self:operator "," then
      self:expect("operator", "}")
      break
    end
  end
  return function(scope)
    local made = values.dictionary()
    for _, row in ipairs(rows) do
      local value = row[2](scope)
      values.put(made, row[1](scope), value == nil and null or value)
    end
    return made
  end
end

local function undefined(line, name) fail_at(line, "'%s' is undefined", name) end

-- x.name and x[key]. A method stands before an item of a dictionary where a dot asks, behind it where brackets do.
local function field_of(x, name, line, shown)
  if x == nil then undefined(line, shown) end
  local method = values.method(x, name)
  if method then return method end
  return values.item(x, name)
end
local function item_of(x, key, line, shown)
  if x == nil then undefined(line, shown) end
  local item = values.item(x, key)
  if item == nil and type(key) == "string" then return values.method(x, key) end
  return item
end

function Parser:subscript(value, shown, line)
  local parts, is_slice = {}, false
  for i = 1, 3 do
    if not (self:peek("operator", ":") or self:peek("operator", "]")) then parts[i] = self:expression() end
    if not self:operator ":" then break end
    is_slice = true
  end
  self:expect("operator", "]")
  if is_slice then
    return function(scope)
      local x = value(scope)
      if x == nil then undefined(line, shown) end
      local function part(i) return parts[i] and parts[i](scope) end
      return at_line(line, values.slice, x, part(1), part(2), part(3))
    end
  end
  local key = parts[1] or fail_at(line, "an index is expected between '[' and ']'")
  return function(scope) return item_of(value(scope), key(scope), line, shown) end
end

function Parser:postfix(value, name)
  local shown = name or "the value"
  while true do
    local line, before, called = self.line, value, shown
    if self:operator "." then
      local token = self:take "name" or self:expect "number"
      local field = token[2]
      value = function(scope) return field_of(before(scope), field, line, called) end
      shown = shown .. "." .. text_of(field)
    elseif self:operator "[" then
      value = self:subscript(before, called, line)
      shown = shown .. "[...]"
    elseif self:peek("operator", "(") then
      local call = self:call()
      value = function(scope)
        local f = before(scope)
        if f == nil then undefined(line, called) end
        if type(f) == "table" and f.macro then return f.macro(call(scope)) end
        if type(f) ~= "function" then fail_at(line, "'%s' is no function, but a value of type %s", called, kind_of(f)) end
        local args, named = call(scope)
        if next(named) then
          args.n = args.n + 1
          args[args.n] = named
        end
        return at_line(line, f, table.unpack(args, 1, args.n))
      end
      shown = shown .. "(...)"
    else
      return value, shown
    end
  end
end

-- The arguments of a call as a function of a scope: those by position, those by name.
function Parser:call()
  self:expect("operator", "(")
  local args, named = {}, {}
  while not self:operator ")" do
    local token, after = self:peek "name", self.tokens[self.at + 1]
    if token and after and after[1] == "operator" and after[2] == "=" then
      self.at = self.at + 2
      named[#named + 1] = { token[2], self:expression() }
    else
      args[#args + 1] = self:expression()
    end
    if not self:operator "," then
      self:expect("operator", ")")
      break
    end
  end
  return function(scope)
    local by_place, by_name = { n = #args }, {}
    for i, one in ipairs(args) do by_place[i] = one(scope) end
    for _, one in ipairs(named) do by_name[one[1]] = one[2](scope) end
    return by_place, by_name
  end
end

local function no_arguments() return {}, {} end

function Parser:filtered(value)
  while true do
    local line, before = self.line, value
    if self:operator "|" then
      local name = self:expect("name")[2]
      local f = known.filters[name] or fail_at(line, "there is no filter '%s'", name)
      local call = self:peek("operator", "(") and self:call() or no_arguments
      value = function(scope) return at_line(line, f, before(scope), call(scope)) end
    elseif self:take("name", "is") then
      local negated = self:take("name", "not") ~= nil
      local name = self:expect("name")[2]
      local f = known.tests[name] or fail_at(line, "there is no test '%s'", name)
      local call = no_arguments
      local token = self:peek()
      if self:peek("operator", "(") then
        call = self:call()
      elseif token and (token[1] == "text" or token[1] == "number" or token[2] == "[" or token[2] == "{" or token[1] == "name"
        and not ({ ["else"] = 1, ["or"] = 1, ["and"] = 1, ["if"] = 1, is = 1, ["not"] = 1, ["in"] = 1 })[token[2]]) then
        local one = self:postfix(self:primary())
        call = function(scope) return { one(scope) }, {} end
      end
      value = function(scope) return truth(at_line(line, f, before(scope), call(scope))) ~= negated end
    else
      return value
    end
  end
end

return { Parser = Parser, pieces_of = pieces_of, fail_at = fail_at, at_line = at_line }
