-- What help() says of Lua's own library, as in help/ms.lua; the reference manual of Lua 5.4 says it in full.
-- luacheck: ignore 212
local M = { _G = {}, coroutine = {}, math = {}, string = {}, table = {}, utf8 = {}, os = {}, io = {}, debug = {} }

--- All its arguments, if the first is neither false nor nil; otherwise an error with the message.
function M._G.assert(value, message, ...) end
--- Runs or steers the garbage collector: "collect", "count" (kilobytes in use), "step", "stop", "restart",
--- "incremental", "generational".
function M._G.collectgarbage(option, ...) end
--- Runs a file of Lua and gives its results.
function M._G.dofile(path) end
--- Raises an error; level 1 (the default) adds the place that called error, 2 its caller's, 0 none.
function M._G.error(message, level) end
--- The metatable, or its field __metatable, or nil.
function M._G.getmetatable(value) end
--- For `for i, v in ipairs(t)`: the items 1, 2, … up to the first nil.
function M._G.ipairs(t) end
--- Compiles text, or what a function gives piece by piece, to a function; nil and the message where it cannot.
function M._G.load(chunk, name, mode, env) end
--- Compiles a file to a function; nil and the message where it cannot.
function M._G.loadfile(path, mode, env) end
--- The key after this one, in no particular order, and its value; nil after the last. next(t) == nil: t is empty.
function M._G.next(t, key) end
--- For `for k, v in pairs(t)`: all keys and values, in no particular order, or what the metamethod __pairs gives.
function M._G.pairs(t) end
--- Calls f. True and its results; or false and the error.
function M._G.pcall(f, ...) end
--- Writes the values as texts, with tabs between and a line end.
function M._G.print(...) end
--- Whether they are the same, without metamethods.
function M._G.rawequal(a, b) end
--- t[key] without metamethods.
function M._G.rawget(t, key) end
--- #t without metamethods.
function M._G.rawlen(t) end
--- t[key] = value without metamethods; gives t.
function M._G.rawset(t, key, value) end
--- The module of the name, run at the first time; what it is and where it was found.
function M._G.require(name) end
--- The arguments from the n-th on; a negative n counts from the end; "#": how many there are.
function M._G.select(n, ...) end
--- Gives a table a metatable, or takes it (nil); gives t.
function M._G.setmetatable(t, metatable) end
--- The number of a text (in a base from 2 to 36), or nil.
function M._G.tonumber(value, base) end
--- The value as text: what __tostring or __name in its metatable say.
function M._G.tostring(value) end
--- "nil", "boolean", "number", "string", "table", "function", "thread" or "userdata".
function M._G.type(value) end
--- Writes a warning to the error output; "@on" and "@off" switch them.
function M._G.warn(message, ...) end
--- As pcall, and handler makes of the error what is given back, while the stack still stands.
function M._G.xpcall(f, handler, ...) end
--- Ends a coroutine that waits, and closes its to-be-closed variables.
function M.coroutine.close(co) end
--- A coroutine that will run f.
function M.coroutine.create(f) end
--- Whether the coroutine, or what runs, can yield.
function M.coroutine.isyieldable(co) end
--- Runs it up to its next yield: true and what it yielded or returned, or false and the error.
function M.coroutine.resume(co, ...) end
--- The coroutine that runs, and whether it is the main one.
function M.coroutine.running() end
--- "running", "suspended", "normal" or "dead".
function M.coroutine.status(co) end
--- A function that resumes a coroutine of f and gives what it yields; errors pass on.
function M.coroutine.wrap(f) end
--- Waits: the values go to who resumed, and those of the next resume come back.
function M.coroutine.yield(...) end
--- The absolute value.
function M.math.abs(x) end
--- The arc cosine, in radians.
function M.math.acos(x) end
--- The arc sine, in radians.
function M.math.asin(x) end
--- The angle of the point (x, y), in radians; x is 1 where it is left out.
function M.math.atan(y, x) end
--- The smallest integer that is not below x.
function M.math.ceil(x) end
--- The cosine of radians.
function M.math.cos(x) end
--- Radians as degrees.
function M.math.deg(x) end
--- e to the power of x.
function M.math.exp(x) end
--- The largest integer that is not above x.
function M.math.floor(x) end
--- The rest of x / y, rounded towards zero.
function M.math.fmod(x, y) end
--- The logarithm; natural without a base.
function M.math.log(x, base) end
--- The largest.
function M.math.max(x, ...) end
--- The smallest.
function M.math.min(x, ...) end
--- The whole part and the fraction.
function M.math.modf(x) end
--- Degrees as radians.
function M.math.rad(x) end
--- A random number in [0, 1); math.random(n) an integer from 1 to n, math.random(m, n) from m to n.
function M.math.random(m, n) end
--- Starts Lua's random numbers anew. Those of tensors have ms.set_seed.
function M.math.randomseed(x, y) end
--- The sine of radians.
function M.math.sin(x) end
--- The square root.
function M.math.sqrt(x) end
--- The tangent of radians.
function M.math.tan(x) end
--- The integer of that value, or nil.
function M.math.tointeger(x) end
--- "integer", "float", or nil for what is no number.
function M.math.type(x) end
--- Whether m < n as unsigned integers.
function M.math.ult(m, n) end
--- The bytes from i to j as integers; i is 1, j is i where they are left out.
function M.string.byte(s, i, j) end
--- The text of these bytes.
function M.string.char(...) end
--- The function as binary code.
function M.string.dump(f, strip) end
--- Where the pattern is first found from init on: start, end and its captures, or nil. plain: it is no pattern.
function M.string.find(s, pattern, init, plain) end
--- The values in a text: %d, %5.2f, %s, %q, %x and so on.
function M.string.format(format, ...) end
--- For `for a, b in s:gmatch(pattern)`: the captures of all matches.
function M.string.gmatch(s, pattern, init) end
--- The text with (at most n) matches replaced by a text (%1: a capture), a table's field or what a function gives;
--- and how many there were.
function M.string.gsub(s, pattern, replacement, n) end
--- The number of bytes.
function M.string.len(s) end
--- The text in small letters.
function M.string.lower(s) end
--- The captures of the first match from init on, or nil.
function M.string.match(s, pattern, init) end
--- The values in a binary text.
function M.string.pack(format, ...) end
--- How long the text of string.pack is.
function M.string.packsize(format) end
--- The text n times, with the separator between.
function M.string.rep(s, n, separator) end
--- The text backwards.
function M.string.reverse(s) end
--- The part from byte i to j; negative: from the end.
function M.string.sub(s, i, j) end
--- The values of a binary text, and the position behind them.
function M.string.unpack(format, s, position) end
--- The text in capital letters.
function M.string.upper(s) end
--- The texts and numbers of a list in one text.
function M.table.concat(list, separator, i, j) end
--- Puts a value before the position, or, with two arguments, at the end.
function M.table.insert(list, position, value) end
--- Copies items first to last of one list to another's from `at` on; gives that.
function M.table.move(from, first, last, at, to) end
--- A table of the arguments with their number in the field n.
function M.table.pack(...) end
--- Takes the item (the last one) out and gives it.
function M.table.remove(list, position) end
--- Sorts in place, by < or by less(a, b).
function M.table.sort(list, less) end
--- The items i to j as results.
function M.table.unpack(list, i, j) end
--- The text of these code points.
function M.utf8.char(...) end
--- The code points between the bytes i and j.
function M.utf8.codepoint(s, i, j, lax) end
--- For `for position, code in utf8.codes(s)`.
function M.utf8.codes(s, lax) end
--- The number of characters, or nil and the first byte that is wrong.
function M.utf8.len(s, i, j, lax) end
--- The byte where the n-th character begins.
function M.utf8.offset(s, n, i) end
--- The seconds of processor time that the program has used.
function M.os.clock() end
--- A time as text, or as a table for "*t"; "!" in front: in universal time.
function M.os.date(format, time) end
--- The seconds between two times.
function M.os.difftime(t2, t1) end
--- Runs a command of the shell; true or nil, "exit" or "signal", and the code.
function M.os.execute(command) end
--- Ends the program.
function M.os.exit(code, close) end
--- A variable of the environment, or nil.
function M.os.getenv(name) end
--- Removes a file; nil and the message where it cannot.
function M.os.remove(path) end
--- Gives a file another name.
function M.os.rename(old, new) end
--- Asks for or sets the program's locale.
function M.os.setlocale(locale, category) end
--- The time now, or of a table with year, month, day and so on, in seconds.
function M.os.time(t) end
--- A name for a temporary file.
function M.os.tmpname() end
--- Closes a file, or the output.
function M.io.close(file) end
--- Writes out what the output has collected.
function M.io.flush() end
--- The default input, after making it this one.
function M.io.input(file) end
--- For `for line in io.lines(path)`; formats as for file:read.
function M.io.lines(path, ...) end
--- A file: "r", "w", "a", "r+", "w+", "a+", with "b" binary. nil and the message where it cannot.
function M.io.open(path, mode) end
--- The default output, after making it this one.
function M.io.output(file) end
--- A command of the shell whose output is read ("r") or whose input is written ("w").
function M.io.popen(command, mode) end
--- Reads from the default input: "l" a line, "n" a number, "a" all, a number of bytes.
function M.io.read(...) end
--- A file that is removed at the end.
function M.io.tmpfile() end
--- "file", "closed file", or nil for anything else.
function M.io.type(value) end
--- Writes texts and numbers to the default output.
function M.io.write(...) end
--- What is known of a function or a level of the stack.
function M.debug.getinfo(thread, f, what) end
--- The name and value of a local variable.
function M.debug.getlocal(thread, level, n) end
--- The metatable, whatever __metatable says.
function M.debug.getmetatable(value) end
--- The name and value of a variable that a function captured.
function M.debug.getupvalue(f, n) end
--- Calls a function at calls, returns, lines or every count instructions.
function M.debug.sethook(thread, hook, mask, count) end
--- Gives a local variable a value.
function M.debug.setlocal(thread, level, n, value) end
--- Gives any value a metatable.
function M.debug.setmetatable(value, metatable) end
--- Gives a captured variable a value.
function M.debug.setupvalue(f, n, value) end
--- The calls that led here, as text.
function M.debug.traceback(thread, message, level) end
--- What two functions that share a variable have in common.
function M.debug.upvalueid(f, n) end
--- Makes a variable of f1 that of f2.
function M.debug.upvaluejoin(f1, n1, f2, n2) end

--- The hyperbolic cosine. Left from older versions of Lua.
function M.math.cosh(x) end
--- The mantissa and the exponent of x. Left from older versions of Lua.
function M.math.frexp(x) end
--- m * 2^e. Left from older versions of Lua.
function M.math.ldexp(m, e) end
--- The logarithm to base 10. Left from older versions of Lua: math.log(x, 10).
function M.math.log10(x) end
--- x to the power of y. Left from older versions of Lua: x ^ y.
function M.math.pow(x, y) end
--- The hyperbolic sine. Left from older versions of Lua.
function M.math.sinh(x) end
--- The hyperbolic tangent. Left from older versions of Lua.
function M.math.tanh(x) end
--- A prompt of Lua's own; breakpoint() has a debugger.
function M.debug.debug() end
--- The hook of debug.sethook, its mask and count.
function M.debug.gethook(thread) end
--- Lua's table of what C code keeps.
function M.debug.getregistry() end
--- A value that belongs to a userdata.
function M.debug.getuservalue(userdata, n) end
--- Does nothing any more.
function M.debug.setcstacklimit(limit) end
--- Gives a userdata a value that belongs to it.
function M.debug.setuservalue(userdata, value, n) end

return M
