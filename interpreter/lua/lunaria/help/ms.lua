-- What help() and the kernel's inspection say of ms's functions that are written in C++: their signatures and comments, in
-- functions that are never called, by the names under which ms has them.
-- luacheck: ignore 212
local M = { json = {}, random = {}, io = {} }

--- A parameter: a copy of `data` that an optimizer changes and ms.value_and_grad differentiates by.
--- As options: {name = , requires_grad = }.
---
---     > ms.Parameter(ms.ones({ 2, 3 }), "weight")
---     Parameter (name=weight, shape=(2, 3), dtype=Float32, requires_grad=true)
function M.Parameter(data, name, requires_grad) end

--- The value itself, a tensor, a number or anything else, with no gradient flowing through it.
---
---     > ms.grad(function(x) return x * ms.stop_gradient(x) end)(3.0)
---     3.0
function M.stop_gradient(x) end

--- The parameters of a list, checked: what gradients and optimizers take as weights.
---
---     > #ms.ParameterTuple({ ms.Parameter(ms.ones { 2 }), ms.Parameter(ms.zeros { 2 }) })
---     2
function M.ParameterTuple(parameters) end

--- A tensor of a number, a boolean, nested tables of them, or another tensor; without a dtype floats become float32,
--- integers int64 and booleans bool. dtype: ms.float32, "float32" or {dtype = }.
---
---     > ms.tensor({ 1, 2.5 }, ms.float16).dtype
---     Float16
function M.tensor(data, dtype) end

--- The same as ms.tensor.
function M.Tensor(data, dtype) end

--- A range of indices as one value, for x[{ ... }]: from start up to stop, not included, by step; any may be nil.
---
---     > ms.arange(6)[ms.slice(1, 6, 2)]:tolist()[3]
---     5
function M.slice(start, stop, step) end

--- Whether the value is a tensor.
---
---     > ms.is_tensor(ms.ones { 2 })
---     true
function M.is_tensor(value) end

--- Whether the value is a parameter.
---
---     > ms.is_parameter(ms.ones { 2 })
---     false
function M.is_parameter(value) end

--- The nanoseconds of a clock that never goes back, as an integer: for measuring times.
function M.clock() end

--- Makes the random numbers that follow those of the seed, for any number of threads.
---
---     > (function() ms.set_seed(1) local a = ms.rand { 1 } ms.set_seed(1) return (a - ms.rand { 1 }):item() end)()
---     0.0
function M.set_seed(seed) end

--- The seed in use.
---
---     > (function() ms.set_seed(5) return ms.get_seed() end)()
---     5
function M.get_seed() end

--- The state of the random generator: an int64 tensor of the seed and how many numbers were drawn.
function M.get_rng_state() end

--- Goes on drawing where ms.get_rng_state was called.
---
---     > (function() local s = ms.get_rng_state() local a = ms.rand { 1 } ms.set_rng_state(s) return (a - ms.rand { 1 }):item() end)()
---     0.0
function M.set_rng_state(state) end

--- How many threads operators use; at first what LUNARIA_NUM_THREADS says in the environment, or OMP_NUM_THREADS, or the
--- processors of the machine.
function M.get_num_threads() end

--- Operators use n threads from now on. Results do not depend on it, but for the products that help "guide.random" lists.
function M.set_num_threads(n) end

--- Settings by name, which ms.get_context reads. mode: ms.GRAPH_MODE or ms.PYNATIVE_MODE. device_target: as
--- ms.set_device. device_fallback: whether an operator that has no kernel on the device of its operands may run on the host,
--- with copies of them (true at first; ms.runtime.fallbacks counts them), or is an error.
--- deterministic: a program with the same seed and inputs gives the same bits when it is run again, with any number of threads
--- and in both modes (help "guide.random" lists what can differ). "ON" (or true; "OFF" at first) makes the list shorter for trainings
--- that go on from a backup in graph mode: a few steps are made for nothing first, so that products which compiled programs join
--- are joined in all that count. runtime_num_threads: as ms.set_num_threads. float32_matmul_precision: "highest", or "high":
--- where a device has a faster way for products of float32 matrices (TF32 on a GPU), operands may be rounded to 10 bits behind
--- the point.
---
---     > (function() ms.set_context { mode = ms.PYNATIVE_MODE } return ms.get_context("mode") == ms.PYNATIVE_MODE end)()
---     true
function M.set_context(settings) end

--- The setting of the name: "mode", "device_target", "device_id", "device_fallback", "deterministic",
--- "runtime_num_threads" or "float32_matmul_precision".
---
---     > ms.get_context("mode") == ms.PYNATIVE_MODE
---     true
function M.get_context(name) end

--- New tensors are on that device from now on: "CPU", or another one of ms.runtime.devices(). Operators run where their
--- operands are, whatever the current device is; x:to(device) and cell:to(device) move them.
---
---     > (function() ms.set_device("CPU") return ms.ones({ 2 }).device end)()
---     CPU
function M.set_device(device_target, device_id) end

--- Waits until the device, or the current one, has done all that it was given.
---
---     > ms.synchronize()
function M.synchronize(device) end

--- How deep calls may be nested in compiled and in differentiated functions before "stack overflow" is raised: 195000 at first and at
--- most. recursion_limit: the number of calls; nil: as at first.
---
---     > ms.set_recursion_limit(2000)
---     > ms.set_recursion_limit()
function M.set_recursion_limit(recursion_limit) end

--- The bytes of tensors: live_bytes now, peak_bytes at most so far, cached_bytes kept for reuse, and how many allocations
--- there were.
---
---     > ms.memory_stats().live_bytes <= ms.memory_stats().peak_bytes
---     true
function M.memory_stats() end

--- The peak of ms.memory_stats starts again at what is in use.
function M.reset_peak_memory_stats() end

--- The tensor in a capsule of DLPack, as x:to_dlpack() and compiled modules of others give it. The memory is
--- shared: what either program writes is seen by the other, unless it is marked as read-only or elements lie upon one another, when the
--- first write makes a copy. A capsule is taken once.
---
---     > ms.from_dlpack(ms.ones({ 2, 3 }).T:to_dlpack()).shape
---     (3, 2)
function M.from_dlpack(capsule) end

--- Gives memory that is kept for reuse back to the system.
function M.empty_cache() end

--- Writes tensors to a file, in the format of its name: .npy one tensor, .npz and .safetensors a table of tensors by
--- name. The file is there whole or not at all.
---
---     > ms.save("/tmp/lunaria_help.npz", { a = ms.arange(3) })
---     > ms.load("/tmp/lunaria_help.npz").a:sum():item()
---     3
---     > (os.remove("/tmp/lunaria_help.npz"))
---     true
function M.save(path, values) end

--- Reads what ms.save writes, and what NumPy and others write in these formats: .npy (a tensor), .npz and .safetensors
--- (a table of tensors by name; {names = {...}} reads only some), idx files with or without .gz. Of a network in a .mindir
--- or .onnx file: a function, its weights by name and, of ONNX, {inputs = {{name, dtype, shape}...}, outputs = {...}}.
--- Arrays of texts in NumPy's formats are texts, or tables of them.
function M.load(path, options) end

--- Reads an idx file, compressed or not: a tensor of bytes.
function M.load_idx(path) end

--- Reads an .npy or .npz file.
function M.load_numpy(path, options) end

--- Reads a .safetensors file: a table of tensors by name, and the file's metadata, a table of texts. options: names, a list
--- of the tensors that are wanted; mmap = true: the tensors stay in the file until they are looked at, whose length must not
--- change meanwhile.
function M.load_safetensors(path, options) end

--- Writes a table of tensors by name to a .safetensors file; options: {metadata = {name = text}}. later = true: a thread
--- writes the tensors as they are now, as ms.save_checkpoint with async_save does.
function M.save_safetensors(path, values, options) end

--- Always an error that says how to convert the file: reading a pickle can run any program that is in it.
function M.load_torch(path) end

--- Writes a function for inputs like these as MindIR: as ms.export does, of tensors, numbers, texts and tables.
---
---     > ms.save_mindir(function(x) return x * 2 end, "/tmp/lunaria_help.mindir", ms.ones { 2 })
---     > ms.load_mindir("/tmp/lunaria_help.mindir")(ms.ones { 2 }):tolist()[1]
---     2.0
---     > (os.remove("/tmp/lunaria_help.mindir"))
---     true
function M.save_mindir(f, path, ...) end

--- The function in a MindIR file.
function M.load_mindir(path) end

--- Writes a network for inputs like these to a file; the last argument is {file_name = , file_format = "MINDIR" or "ONNX"}.
--- An ONNX file holds the operators that the network calls for inputs of these sizes; it is read back and compared first.
--- dynamic_axes = { x = { [0] = "batch" } } (or { x = { 0 } }) is for ONNX: the file is for inputs of any size along these
--- axes, whose names it has; an operator that fixes such a size is named by an error. Inputs are called x, or x0, x1 ...
--- MindSpore reads a MindIR file (mindspore.load, nn.GraphCell) where the network consists of operators that MindSpore has,
--- and of branches and loops by the elements of tensors between them, for inputs of any size or for these sizes alone. Any
--- other is written in a form of our own, which only Lunaria reads: tables and functions as values, recursion, results that
--- are no tensors, tensors whose shape or dtype depends on the way taken. form = "mindspore" fixes the sizes of the inputs
--- where need be, and is an error that names what MindSpore does not have; form = "lunaria" writes our own form always.
---
---     > ms.export(function(x) return x * 2 end, ms.ones { 2 }, { file_name = "/tmp/lunaria_help.onnx", file_format = "ONNX" })
---     > (ms.load("/tmp/lunaria_help.onnx"))(ms.ones { 2 }):tolist()[1]
---     2.0
---     > (os.remove("/tmp/lunaria_help.onnx"))
---     true
function M.export(net, ...) end

--- Asks the user for a line of text. options: {password = true} does not show what is typed.
function M.input(prompt, options) end

--- Shows a value in the place of the one that ms.display showed under this id.
function M.update_display(value, id) end

--- Removes what the cell has shown so far; {wait = true}: as soon as there is something new.
function M.clear_output(options) end

--- Whether the program's output is a terminal.
function M.is_terminal() end

--- How many columns and rows the terminal has; 80 and 24 where there is none.
function M.terminal_size() end

--- Explains a value: an operator or a function with its parameters and an example, a class, a module, or what the value is.
function M.help(value) end

--- A value as JSON. Tables with items 1..n are arrays, an empty one is an object unless json.array made it, tensors are
--- nested arrays, ms.json.null is null. options: {indent = 2, allow_nan = false}.
---
---     > ms.json.encode({ a = { 1, 2 }, b = ms.json.null })
---     {"a":[1,2],"b":null}
function M.json.encode(value, options) end

--- The value of a JSON text.
---
---     > ms.json.decode('{"a": [1, 2.5]}').a[2]
---     2.5
function M.json.decode(text) end

--- Marks a table (or a new one) as an array for ms.json.encode, even while it is empty.
---
---     > ms.json.encode({ list = ms.json.array({}) })
---     {"list":[]}
function M.json.array(table) end

--- Reads a tensor from an .npy file; of an array of texts, a text or nested tables of them.
function M.io.read_npy(path) end
--- Reads a table of tensors by name from an .npz file; options: {names = {...}} reads only some. Arrays of texts are
--- texts or nested tables of them.
function M.io.read_npz(path, options) end
--- Writes a tensor to an .npy file.
function M.io.write_npy(path, x) end
--- Writes a table of tensors by name to an .npz file; options: {compressed = true}.
function M.io.write_npz(path, values, options) end

--- Reads a .ckpt file: a table of tensors and texts by name, and a list of the names in the file's order. options:
--- {crc_check = true} demands a checksum, false does not compare one.
---
---     > ms.io.write_ckpt("/tmp/lunaria_help.ckpt", { w = ms.ones { 2 }, note = "hello" }, { "w", "note" })
---     > ms.io.read_ckpt("/tmp/lunaria_help.ckpt").note
---     hello
---     > (os.remove("/tmp/lunaria_help.ckpt"))
---     true
function M.io.read_ckpt(path, options) end
--- Writes the tensors and texts of a table to a .ckpt file, in the order of names. checksum: true appends one. later: true has
--- a thread write the values as they are now.
---
---     > ms.io.write_ckpt("/tmp/lunaria_help.ckpt", { w = ms.ones { 2 } }, { "w" }, true)
---     > (os.remove("/tmp/lunaria_help.ckpt"))
---     true
function M.io.write_ckpt(path, values, names, checksum, later) end
--- Waits for the file that a thread writes; what went wrong is an error. The same as ms.async_ckpt_wait.
---
---     > ms.save_safetensors("/tmp/lunaria_help.safetensors", { w = ms.ones { 2 } }, { later = true })
---     > ms.io.finish_writing()
---     > (os.remove("/tmp/lunaria_help.safetensors"))
---     true
function M.io.finish_writing() end
--- Whether a thread is writing a file.
---
---     > ms.io.is_writing()
---     false
function M.io.is_writing() end
--- Calls f with the arguments. An interrupt (Ctrl-C) that comes meanwhile waits for the end of f; a second one does not. f: what
--- has to be done as a whole.
---
---     > ms.io.as_whole(math.max, 1, 3)
---     3
function M.io.as_whole(f, ...) end
--- Whether a signal came since the last call: 1 (HUP), 10 (USR1), 12 (USR2) or 15 (TERM). From the first call on it does
--- nothing else; forget: true gives it back its meaning, which for most is the end of the program. number: the signal.
---
---     > ms.io.signal_came(12)
---     false
---     > ms.io.signal_came(12, true)
---     false
function M.io.signal_came(number, forget) end
--- Has a thread read checkpoints. parts: a list of { path =, kind = "ckpt" or "safetensors", names =, crc_check = }. Gives a
--- handle for ms.io.finish_reading.
---
---     > ms.save_safetensors("/tmp/lunaria_help.safetensors", { w = ms.ones { 2 } })
---     > handle = ms.io.read_later { { path = "/tmp/lunaria_help.safetensors", kind = "safetensors" } }
---     > ms.io.finish_reading(handle).w:tolist()[1]
---     1.0
---     > (os.remove("/tmp/lunaria_help.safetensors"))
---     true
function M.io.read_later(parts) end
--- Waits for what ms.io.read_later began: a table of tensors and texts by name, and one of the files' metadata. handle: what
--- it gave. ask: true only says whether all is there.
---
---     > ms.save_safetensors("/tmp/lunaria_help.safetensors", { w = ms.ones { 2 } })
---     > handle = ms.io.read_later { { path = "/tmp/lunaria_help.safetensors", kind = "safetensors" } }
---     > ms.io.finish_reading(handle).w.shape
---     (2,)
---     > (os.remove("/tmp/lunaria_help.safetensors"))
---     true
function M.io.finish_reading(handle, ask) end
--- Events of a file that TensorBoard reads: a list of { step =, wall_time =, values = a list of { tag =, kind =, value = } }, the
--- offset behind the last one and its number. partial: true leaves a last record that is not whole out. offset, record: where to
--- begin. count: how many at most. ms.train.SummaryReader has them by tag.
---
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:close()
---     > ms.io.read_events(record.path)[1].version
---     MindSpore.Event:1
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary")
---     true
function M.io.read_events(path, partial, offset, record, count) end
--- What a checkpoint is by its first bytes: "ckpt", "safetensors", "zip" or "unknown".
---
---     > ms.save_safetensors("/tmp/lunaria_help.safetensors", { w = ms.ones { 2 } })
---     > ms.io.format_of("/tmp/lunaria_help.safetensors")
---     safetensors
---     > (os.remove("/tmp/lunaria_help.safetensors"))
---     true
function M.io.format_of(path) end
--- The bytes of a file of at most limit bytes, by default 64 MiB. A path of anything but a regular file is an error.
---
---     > ms.io.read_text("README.md"):sub(1, 1)
---     #
---     > (pcall(ms.io.read_text, "/dev/zero"))
---     false
function M.io.read_text(path, limit) end
--- What has that path: "file", "folder", "pipe", "socket" or "device"; nil where nothing has.
---
---     > ms.io.kind("/tmp")
---     folder
---     > ms.io.kind("/no/such/file") == nil
---     true
function M.io.kind(path) end
--- A file that is written before it takes the place of path, which stays as it was until then: draft.path is where this
--- process writes and reads it, draft:commit() puts it in its place. It goes with a variable that is <close>. It has no name
--- before (where the file system has such files), so that a program that is killed leaves nothing behind. Without a path it
--- lies in the folder for temporary files, for this process alone.
---
---     > draft = ms.io.draft("/tmp/lunaria_help.txt")
---     > (io.open(draft.path, "w"):write("text"):close())
---     true
---     > ms.io.kind("/tmp/lunaria_help.txt") == nil, draft:commit()
---     true
---     > ms.io.read_text("/tmp/lunaria_help.txt"), os.remove("/tmp/lunaria_help.txt")
---     text	true
function M.io.draft(path) end
--- Makes an empty file in the folder for temporary files (TMPDIR, or /tmp) whose name nothing else has, for this user alone.
--- ending: of its name.
---
---     > name = ms.io.temporary(".lua")
---     > ms.io.kind(name), os.remove(name)
---     file	true
function M.io.temporary(ending) end
--- The text with escapes for what a terminal would not show but obey, as messages have it; new lines and tabs stay.
---
---     > ms.io.printable("\27[31mred")
---     \x1b[31mred
function M.io.printable(text) end
--- Makes a folder, with the folders that it lies in.
---
---     > ms.io.make_folder("/tmp")
function M.io.make_folder(path) end
--- The names of what is in a folder, sorted; nil when the path is no folder.
---
---     > ms.io.list_folder("/no/such/folder") == nil
---     true
function M.io.list_folder(path) end

--- The same as ms.set_seed.
function M.random.seed(seed) end

--- The same as ms.get_rng_state.
function M.random.get_state() end

--- The same as ms.set_rng_state.
function M.random.set_state(state) end

return M
