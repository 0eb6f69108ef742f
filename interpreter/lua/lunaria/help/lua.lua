-- The texts of Lua's own library, in the form of help/ms.lua; the reference manual of Lua 5.4 says it in full.
return [==[
assert(value, message, ...): All its arguments, if the first is neither false nor nil; otherwise an error with the message.
collectgarbage(option, ...): Runs or steers the garbage collector: "collect", "count" (kilobytes in use), "step", "stop", "restart",
  "incremental", "generational".
dofile(path): Runs a file of Lua and gives its results.
error(message, level): Raises an error; level 1 (the default) adds the place that called error, 2 its caller's, 0 none.
getmetatable(value): The metatable, or its field __metatable, or nil.
ipairs(t): For `for i, v in ipairs(t)`: the items 1, 2, … up to the first nil.
load(chunk, name, mode, env): Compiles text, or what a function gives piece by piece, to a function; nil and the message where it cannot.
loadfile(path, mode, env): Compiles a file to a function; nil and the message where it cannot.
next(t, key): The key after this one, in no particular order, and its value; nil after the last. next(t) == nil: t is empty.
pairs(t): For `for k, v in pairs(t)`: all keys and values, in no particular order, or what the metamethod __pairs gives.
pcall(f, ...): Calls f. True and its results; or false and the error.
print(...): Writes the values as texts, with tabs between and a line end.
rawequal(a, b): Whether they are the same, without metamethods.
rawget(t, key): t[key] without metamethods.
rawlen(t): #t without metamethods.
rawset(t, key, value): t[key] = value without metamethods; gives t.
require(name): The module of the name, run at the first time; what it is and where it was found.
select(n, ...): The arguments from the n-th on; a negative n counts from the end; "#": how many there are.
setmetatable(t, metatable): Gives a table a metatable, or takes it (nil); gives t.
tonumber(value, base): The number of a text (in a base from 2 to 36), or nil.
tostring(value): The value as text: what __tostring or __name in its metatable say.
type(value): "nil", "boolean", "number", "string", "table", "function", "thread" or "userdata".
warn(message, ...): Writes a warning to the error output; "@on" and "@off" switch them.
xpcall(f, handler, ...): As pcall, and handler makes of the error what is given back, while the stack still stands.
coroutine.close(co): Ends a coroutine that waits, and closes its to-be-closed variables.
coroutine.create(f): A coroutine that will run f.
coroutine.isyieldable(co): Whether the coroutine, or what runs, can yield.
coroutine.resume(co, ...): Runs it up to its next yield: true and what it yielded or returned, or false and the error.
coroutine.running(): The coroutine that runs, and whether it is the main one.
coroutine.status(co): "running", "suspended", "normal" or "dead".
coroutine.wrap(f): A function that resumes a coroutine of f and gives what it yields; errors pass on.
coroutine.yield(...): Waits: the values go to who resumed, and those of the next resume come back.
math.abs(x): The absolute value.
math.acos(x): The arc cosine, in radians.
math.asin(x): The arc sine, in radians.
math.atan(y, x): The angle of the point (x, y), in radians; x is 1 where it is left out.
math.ceil(x): The smallest integer that is not below x.
math.cos(x): The cosine of radians.
math.deg(x): Radians as degrees.
math.exp(x): e to the power of x.
math.floor(x): The largest integer that is not above x.
math.fmod(x, y): The rest of x / y, rounded towards zero.
math.log(x, base): The logarithm; natural without a base.
math.max(x, ...): The largest.
math.min(x, ...): The smallest.
math.modf(x): The whole part and the fraction.
math.rad(x): Degrees as radians.
math.random(m, n): A random number in [0, 1); math.random(n) an integer from 1 to n, math.random(m, n) from m to n.
math.randomseed(x, y): Starts Lua's random numbers anew. Those of tensors have ms.set_seed.
math.sin(x): The sine of radians.
math.sqrt(x): The square root.
math.tan(x): The tangent of radians.
math.tointeger(x): The integer of that value, or nil.
math.type(x): "integer", "float", or nil for what is no number.
math.ult(m, n): Whether m < n as unsigned integers.
string.byte(s, i, j): The bytes from i to j as integers; i is 1, j is i where they are left out.
string.char(...): The text of these bytes.
string.dump(f, strip): The function as binary code.
string.find(s, pattern, init, plain): Where the pattern is first found from init on: start, end and its captures, or nil. plain: it is no
  pattern.
string.format(format, ...): The values in a text: %d, %5.2f, %s, %q, %x and so on.
string.gmatch(s, pattern, init): For `for a, b in s:gmatch(pattern)`: the captures of all matches.
string.gsub(s, pattern, replacement, n): The text with (at most n) matches replaced by a text (%1: a capture), a table's field or what a
  function gives; and how many there were.
string.len(s): The number of bytes.
string.lower(s): The text in small letters.
string.match(s, pattern, init): The captures of the first match from init on, or nil.
string.pack(format, ...): The values in a binary text.
string.packsize(format): How long the text of string.pack is.
string.rep(s, n, separator): The text n times, with the separator between.
string.reverse(s): The text backwards.
string.sub(s, i, j): The part from byte i to j; negative: from the end.
string.unpack(format, s, position): The values of a binary text, and the position behind them.
string.upper(s): The text in capital letters.
table.concat(list, separator, i, j): The texts and numbers of a list in one text.
table.insert(list, position, value): Puts a value before the position, or, with two arguments, at the end.
table.move(from, first, last, at, to): Copies items first to last of one list to another's from `at` on; gives that.
table.pack(...): A table of the arguments with their number in the field n.
table.remove(list, position): Takes the item (the last one) out and gives it.
table.sort(list, less): Sorts in place, by < or by less(a, b).
table.unpack(list, i, j): The items i to j as results.
utf8.char(...): The text of these code points.
utf8.codepoint(s, i, j, lax): The code points between the bytes i and j.
utf8.codes(s, lax): For `for position, code in utf8.codes(s)`.
utf8.len(s, i, j, lax): The number of characters, or nil and the first byte that is wrong.
utf8.offset(s, n, i): The byte where the n-th character begins.
os.clock(): The seconds of processor time that the program has used.
os.date(format, time): A time as text, or as a table for "*t"; "!" in front: in universal time.
os.difftime(t2, t1): The seconds between two times.
os.execute(command): Runs a command of the shell; true or nil, "exit" or "signal", and the code.
os.exit(code, close): Ends the program.
os.getenv(name): A variable of the environment, or nil.
os.remove(path): Removes a file; nil and the message where it cannot.
os.rename(old, new): Gives a file another name.
os.setlocale(locale, category): Asks for or sets the program's locale.
os.time(t): The time now, or of a table with year, month, day and so on, in seconds.
os.tmpname(): A name for a temporary file.
io.close(file): Closes a file, or the output.
io.flush(): Writes out what the output has collected.
io.input(file): The default input, after making it this one.
io.lines(path, ...): For `for line in io.lines(path)`; formats as for file:read.
io.open(path, mode): A file: "r", "w", "a", "r+", "w+", "a+", with "b" binary. nil and the message where it cannot.
io.output(file): The default output, after making it this one.
io.popen(command, mode): A command of the shell whose output is read ("r") or whose input is written ("w").
io.read(...): Reads from the default input: "l" a line, "n" a number, "a" all, a number of bytes.
io.tmpfile(): A file that is removed at the end.
io.type(value): "file", "closed file", or nil for anything else.
io.write(...): Writes texts and numbers to the default output.
debug.getinfo(thread, f, what): What is known of a function or a level of the stack.
debug.getlocal(thread, level, n): The name and value of a local variable.
debug.getmetatable(value): The metatable, whatever __metatable says.
debug.getupvalue(f, n): The name and value of a variable that a function captured.
debug.sethook(thread, hook, mask, count): Calls a function at calls, returns, lines or every count instructions.
debug.setlocal(thread, level, n, value): Gives a local variable a value.
debug.setmetatable(value, metatable): Gives any value a metatable.
debug.setupvalue(f, n, value): Gives a captured variable a value.
debug.traceback(thread, message, level): The calls that led here, as text.
debug.upvalueid(f, n): What two functions that share a variable have in common.
debug.upvaluejoin(f1, n1, f2, n2): Makes a variable of f1 that of f2.
math.cosh(x): The hyperbolic cosine. Left from older versions of Lua.
math.frexp(x): The mantissa and the exponent of x. Left from older versions of Lua.
math.ldexp(m, e): m * 2^e. Left from older versions of Lua.
math.log10(x): The logarithm to base 10. Left from older versions of Lua: math.log(x, 10).
math.pow(x, y): x to the power of y. Left from older versions of Lua: x ^ y.
math.sinh(x): The hyperbolic sine. Left from older versions of Lua.
math.tanh(x): The hyperbolic tangent. Left from older versions of Lua.
debug.debug(): A prompt of Lua's own; breakpoint() has a debugger.
debug.gethook(thread): The hook of debug.sethook, its mask and count.
debug.getregistry(): Lua's table of what C code keeps.
debug.getuservalue(userdata, n): A value that belongs to a userdata.
debug.setcstacklimit(limit): Does nothing any more.
debug.setuservalue(userdata, value, n): Gives a userdata a value that belongs to it.
]==]
