-- Remedies for the errors of Lua itself: arithmetic, comparisons, calls, fields, the functions of the standard library. hints.lua asks for
-- one where none of its own rules fits.
-- luacheck: no max line length
local foreign = require "lunaria.help.foreign"
local origins = require "lunaria.help.origins"
local path_hint = require "lunaria.help.paths"
local remedies = require "lunaria.help.remedies"

local formats = "formats are %d for whole numbers, %g and %.2f for all numbers, %s for all values; a percent sign is %%"
local plain = "the signs ( ) . % + - * ? [ ^ $ have a meaning in patterns: % before one takes it as it is; text:find(part, 1, true) looks for a plain text"
local divided = "whole numbers are not divided by 0: if n ~= 0 then ... end; 1 / 0 is inf"
local to_number = "a text becomes a number by tonumber(text), a number a text by tostring(n)"

-- The variable or field of the line that is nil, and why it is.
local function why_nil(at)
  local hint = at.name and origins.of(at.name, at.above)
  return hint or origins.of_field(at.line, at.variables, remedies.habit) or at.name and ("%s has no value: is it misspelt, or set further down?"):format(at.name)
    or "one of the values is nil: print them before this line"
end

local function of_number(name, at)
  local method = at.line:match("%f[%w_]" .. name .. "%s*[:.]%s*([%a_][%w_]*)")
  if not method then return "a number has no fields: is the table above it meant?" end
  if method == "format" or method == "tostring" then return ("a number as text is tostring(%s) or (\"%%g\"):format(%s)"):format(name, name) end
  if math[method] then return ("of a number it is math.%s(%s)"):format(method, name) end
  if foreign.is_operator(method) then return ("a number is no tensor: ms.tensor(%s):%s()"):format(name, method) end
  return ("a number has no fields and methods: is %s the value that is meant?"):format(name)
end

local function with_colon(name, at)
  local object = at.line:match("([%a_][%w_]*)%." .. name .. "%s*%(")
  return object and object ~= "string" and object ~= "table" and object ~= "math" and ("a method is called with a colon: %s:%s(...)"):format(object, name) or nil
end

-- { pattern of the first line without its place, the remedy, or a function of the captures and the place }.
local rules = {
  { "^attempt to %w+ .*nil value %(field 'integer index'%)", function(at)
    for name in at.line:gmatch "([%a_][%w_]*)%[" do
      if type(at.variables[name]) == "string" then return ("a text has no elements: its first letter is %s:sub(1, 1)"):format(name) end
    end
  end },
  { "^attempt to call a string value", "a text is no function: is a comma, or .., missing before it?" },
  { "^attempt to call a boolean value", "true and false are no functions: is a comma missing, or the function's name meant?" },
  { "^attempt to call a number value", "a number is no function: is * or a comma missing before the parenthesis?" },
  { "^attempt to call a nil value$", "what is called is the result of a call, which gave nothing: does its function end with return?" },
  { "^attempt to index a number value$", function(at)
    return at.line:find "pairs" and "ipairs and pairs take a table; a loop over numbers is: for i = 1, n do ... end"
  end },
  { "^attempt to concatenate a nil value$", function(at)
    local called = at.line:match "%.%.%s*([%a_][%w_%.:]*)%s*%(" or at.line:match "([%a_][%w_%.:]*)%s*%b()%s*%.%."
    return called and ("%s gave nothing: does it end with return?"):format(called)
  end },
  { "^cannot open file '(.-)'", path_hint },
  { "^attempt to index a boolean value", "true and false have no fields: is the table that the line speaks of another one?" },
  { "^attempt to index a number value %(%a+ '([%w_]+)'%)", of_number },
  { "^attempt to perform arithmetic on a boolean value", "a truth value becomes a number by: condition and 1 or 0" },
  { "^attempt to perform arithmetic on a function value %(%a+ '([%w_]+)'%)", function(name) return ("a function is called: %s()"):format(name) end },
  { "^attempt to concatenate a function value %(%a+ '([%w_]+)'%)", function(name) return ("a function is called: %s()"):format(name) end },
  { "^attempt to compare number with string", to_number }, { "^attempt to compare string with number", to_number },
  { "^attempt to compare nil with", why_nil }, { "^attempt to compare %a+ with nil", why_nil }, { "^attempt to compare two nil values", why_nil },
  { "^invalid order function for sorting", "the function says whether a comes before b, and is false for equal ones: function(a, b) return a < b end" },
  { "^attempt to compare two table values", "tables are compared by a field: a.n < b.n; table.sort(t, function(a, b) return a.n < b.n end) sorts by one" },
  { "^attempt to perform bitwise operation on a nil value", why_nil },
  { "^attempt to perform arithmetic on a nil value$", why_nil }, { "^bad 'for' %a+ %(number expected, got nil%)", why_nil },
  { "^bad 'for' %a+ %(number expected, got string%)", to_number },
  { "^bad 'for' %a+ %(number expected, got table%)", "the number of elements of a table is #t; for i, v in ipairs(t) do goes through it" },
  { "^'for' step is zero", "without a step it is 1: for i = 1, n do; backwards it is -1" },
  { "^invalid conversion '.-' to 'format'", formats },
  { "^bad argument #%d+ to 'format' %(no value%)", "each % of the format needs a value; a percent sign is %%" },
  { "^bad argument #%d+ to 'format' %(number has no integer", "%d takes whole numbers alone: %g or %.2f takes all, n // 1 cuts off" },
  { "^bad argument #%d+ to 'format' %(number expected, got string%)", "%s takes texts, tonumber(text) makes a number" },
  { "number has no integer representation", "math.floor(x) and x // 1 | 0 make whole numbers" },
  { "^malformed pattern", plain }, { "^missing '%[' after '%%f'", plain }, { "^invalid pattern capture", plain }, { "^unfinished capture", plain },
  { "^attempt to perform 'n//0'", divided }, { "^attempt to perform 'n%%%%0'", divided },
  { "^table index is nil", function(at)
    return at.line:find "%[" and (why_nil(at) or "the key has no value; t[#t + 1] = v puts v at the end of a list")
  end },
  { "^table index is NaN", "the key is 0 / 0: a number that can be nan is no key" },
  { "^bad argument #1 to '([%w_]+)' %(%a+ expected, got no value%)", with_colon },
  { "^bad argument #%d+ to '[%w_ ]+' %(.* expected, got nil%)", why_nil },
  { "^bad argument #%d+ to '[%w_ ]+' %(.* expected, got no value%)", "an argument is missing in this call" },
  { "^bad argument #%d+ to '[%w_ ]+' %(table expected, got string%)", "a list stands in braces: { \"a\", \"b\" }" },
  { "^bad argument #%d+ to '[%w_ ]+' %(table expected, got number%)", "a list stands in braces: { 1, 2 }" },
  { "^bad argument #%d+ to '[%w_ ]+' %(string expected, got table%)", "the texts of a list as one are table.concat(t, \", \")" },
  { "^bad argument #%d+ to '[%w_ ]+' %(number expected, got table%)", "one number is wanted: an element of the table is t[i]; of all math.max(table.unpack(t))" },
  { "^bad argument #%d+ to 'random' %(interval is empty%)", "math.random(a, b) needs a <= b; math.random() is between 0 and 1" },
  { "^bad argument #%d+ to '%w+' %((.-): No such file", path_hint }, { "^(.-): No such file or directory", path_hint },
  { "^attempt to use a closed file", "the file was closed before this line: io.open opens it again" },
  { "^attempt to yield from outside a coroutine", "coroutine.yield belongs into a function that coroutine.create or coroutine.wrap was given" },
  { "^cannot resume dead coroutine", "its function has ended: coroutine.status(c) says so, coroutine.create begins anew" },
  { "^attempt to assign to const variable", "a variable with <const> keeps its value: leave <const> out where it is declared" },
  { "^json: ", "names and texts stand in double quotes: {\"lr\": 0.1}; there is no comma behind the last" },
}

--- The remedy for the first line of an error without its place, or nil. at: { line =, above =, variables =, name = the variable of the line
--- that is nil, if one is }.
return function(text, at) return remedies.first(rules, text, at) end
