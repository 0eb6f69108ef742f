-- The texts of what ms has from C++, which has no comment of its own: functions, constants, dtypes, modules. help/descriptions.lua reads
-- them: a line "name(parameters): text", further lines of the text with two blanks before them, examples with four, as
-- "> code --> result" or with the result in the lines below. A line in brackets gives the kind and the source of what follows.
-- luacheck: no max line length
return [==[
ms.Parameter(data, name, requires_grad): A parameter: a copy of `data` that an optimizer changes and ms.value_and_grad differentiates by.
  As options: {name = , requires_grad = }.
    > ms.Parameter(ms.ones({ 2, 3 }), "weight") --> Parameter (name=weight, shape=(2, 3), dtype=Float32, requires_grad=true)
ms.stop_gradient(x): The value itself, a tensor, a number or anything else, with no gradient flowing through it.
    > ms.grad(function(x) return x * ms.stop_gradient(x) end)(3.0) --> 3.0
ms.ParameterTuple(parameters): The parameters of a list, checked: what gradients and optimizers take as weights.
    > #ms.ParameterTuple({ ms.Parameter(ms.ones { 2 }), ms.Parameter(ms.zeros { 2 }) }) --> 2
ms.tensor(data, dtype): A tensor of a number, a boolean, nested tables of them, or another tensor; without a dtype floats become float32,
  integers int64 and booleans bool. dtype: ms.float32, "float32" or {dtype = }.
    > ms.tensor({ 1, 2.5 }, ms.float16).dtype --> Float16
ms.Tensor(data, dtype): The same as ms.tensor.
ms.slice(start, stop, step): A range of indices as one value, for x[{ ... }]: from start up to stop, not included, by step; any may be nil.
    > ms.arange(6)[ms.slice(1, 6, 2)]:tolist()[3] --> 5
ms.is_tensor(value): Whether the value is a tensor.
    > ms.is_tensor(ms.ones { 2 }) --> true
ms.is_parameter(value): Whether the value is a parameter.
    > ms.is_parameter(ms.ones { 2 }) --> false
ms.clock(): The nanoseconds of a clock that never goes back, as an integer: for measuring times.
    > (function() local start = ms.clock() ms.ones { 8 } return ms.clock() > start end)() --> true
ms.set_seed(seed): Makes the random numbers that follow those of the seed, for any number of threads.
    > (function() ms.set_seed(1) local a = ms.rand { 1 } ms.set_seed(1) return (a - ms.rand { 1 }):item() end)() --> 0.0
ms.get_seed(): The seed in use.
    > (function() ms.set_seed(5) return ms.get_seed() end)() --> 5
ms.get_rng_state(): The state of the random generator: an int64 tensor of the seed and how many numbers were drawn.
    > ms.get_rng_state().shape --> (2,)
ms.set_rng_state(state): Goes on drawing where ms.get_rng_state was called.
    > (function() local s = ms.get_rng_state() local a = ms.rand { 1 } ms.set_rng_state(s) return (a - ms.rand { 1 }):item() end)() --> 0.0
ms.get_num_threads(): How many threads operators use; at first what LUNARIA_NUM_THREADS says in the environment, or OMP_NUM_THREADS, or the
  processors of the machine.
    > ms.get_num_threads() >= 1 --> true
ms.set_num_threads(n): Operators use n threads from now on. Results do not depend on it, but for the products that help "guide.random"
  lists.
    > (function() local n = ms.get_num_threads() ms.set_num_threads(1) local one = ms.get_num_threads() ms.set_num_threads(n) return one end)()
    1
ms.set_context(settings): Settings by name, which ms.get_context reads. mode: ms.GRAPH_MODE or ms.PYNATIVE_MODE. jit_level: what graph
  mode compiles by itself; "auto" (at first): what is likely to pay, by the time that it has taken so far; "O1": every function that works
  with tensors from its second call on and all code at once, as ms.jit does; "O0": functions as "O1" does, with operators one by one.
  device_target: as ms.set_device. device_fallback: whether an operator that has no kernel on the device of its operands may run on the
  host, with copies of them (true at first; ms.runtime.fallbacks counts them), or is an error.
  deterministic: a program with the same seed and inputs gives the same bits when it is run again, with any number of threads
  and in both modes (help "guide.random" lists what can differ). "ON" (or true; "OFF" at first) makes the list shorter for trainings
  that go on from a backup in graph mode: a few steps are made for nothing first, so that products which compiled programs join
  are joined in all that count. runtime_num_threads: as ms.set_num_threads. float32_matmul_precision: "highest", or "high":
  where a device has a faster way for products of float32 matrices (TF32 on a GPU), operands may be rounded to 10 bits behind
  the point.
    > (function() ms.set_context { mode = ms.PYNATIVE_MODE } return ms.get_context("mode") == ms.PYNATIVE_MODE end)() --> true
ms.get_context(name): The setting of the name: "mode", "jit_level", "device_target", "device_id", "device_fallback", "deterministic",
  "runtime_num_threads" or "float32_matmul_precision".
    > ms.get_context("mode") == ms.PYNATIVE_MODE --> true
ms.set_device(device_target, device_id): New tensors are on that device from now on: "CPU", or another one of ms.runtime.devices().
  Operators run where their operands are, whatever the current device is; x:to(device) and cell:to(device) move them.
    > (function() ms.set_device("CPU") return ms.ones({ 2 }).device end)() --> CPU
ms.synchronize(device): Waits until the device, or the current one, has done all that it was given.
    > ms.synchronize()
ms.set_recursion_limit(recursion_limit): How deep calls may be nested in compiled and in differentiated functions before "stack overflow"
  is raised: 195000 at first and at most. recursion_limit: the number of calls; nil: as at first.
    > ms.set_recursion_limit(2000)
    > ms.set_recursion_limit()
ms.memory_stats(): The bytes of tensors: live_bytes now, peak_bytes at most so far, cached_bytes kept for reuse, and how many allocations
  there were.
    > ms.memory_stats().live_bytes <= ms.memory_stats().peak_bytes --> true
ms.reset_peak_memory_stats(): The peak of ms.memory_stats starts again at what is in use.
    > ms.reset_peak_memory_stats()
ms.from_dlpack(capsule): The tensor in a capsule of DLPack, as x:to_dlpack() and compiled modules of others give it. The memory is
  shared: what either program writes is seen by the other, unless it is marked as read-only or elements lie upon one another, when the
  first write makes a copy. A capsule is taken once.
    > ms.from_dlpack(ms.ones({ 2, 3 }).T:to_dlpack()).shape --> (3, 2)
ms.empty_cache(): Gives memory that is kept for reuse back to the system.
    > ms.empty_cache()
ms.save(path, values): Writes tensors to a file, in the format of its name: .npy one tensor, .npz and .safetensors a table of tensors by
  name. The file is there whole or not at all.
    > ms.save("/tmp/lunaria_help.npz", { a = ms.arange(3) })
    > ms.load("/tmp/lunaria_help.npz").a:sum():item() --> 3
    > (os.remove("/tmp/lunaria_help.npz")) --> true
ms.load(path, options): Reads what ms.save writes, and what NumPy and others write in these formats: .npy (a tensor), .npz and .safetensors
  (a table of tensors by name; {names = {...}} reads only some), idx files with or without .gz. Of a network in a .mindir
  or .onnx file: a function, its weights by name and, of ONNX, {inputs = {{name, dtype, shape}...}, outputs = {...}}.
  Arrays of texts in NumPy's formats are texts, or tables of them.
    > ms.save("/tmp/lunaria_help.npy", ms.arange(3))
    > ms.load("/tmp/lunaria_help.npy"):sum():item() --> 3
    > (os.remove("/tmp/lunaria_help.npy")) --> true
ms.load_idx(path): Reads an idx file, compressed or not: a tensor of bytes.
    > (pcall(ms.load_idx, "/no/such/file")) --> false
ms.load_numpy(path, options): Reads an .npy or .npz file.
ms.load_safetensors(path, options): Reads a .safetensors file: a table of tensors by name, and the file's metadata, a table of texts.
  options: names, a list of the tensors that are wanted; mmap = true: the tensors stay in the file until they are looked at, whose length
  must not change meanwhile.
    > ms.save("/tmp/lunaria_help.safetensors", { w = ms.ones { 2 } })
    > ms.load_safetensors("/tmp/lunaria_help.safetensors").w.shape --> (2,)
    > (os.remove("/tmp/lunaria_help.safetensors")) --> true
ms.save_safetensors(path, values, options): Writes a table of tensors by name to a .safetensors file; options: {metadata = {name = text}}.
  later = true: a thread writes the tensors as they are now, as ms.save_checkpoint with async_save does.
    > ms.save_safetensors("/tmp/lunaria_help.safetensors", { w = ms.ones { 2 } }, { metadata = { epoch = "3" } })
    > select(2, ms.load_safetensors("/tmp/lunaria_help.safetensors")).epoch --> 3
    > (os.remove("/tmp/lunaria_help.safetensors")) --> true
ms.load_gguf(path, options): Reads a .gguf file: a table of tensors by name, the file's metadata (texts, numbers, booleans and lists of
  them), and a table of the forms in blocks. A tensor in blocks of weights is one of bytes, each row the blocks of a row of numbers, and the
  table of forms has "q8_0", "q4_0", "q4_k" or "q6_k" under its name. options: names, a list of the tensors that are wanted; mmap = false:
  the tensors are read, where by default they stay in the file until they are looked at, whose length must not change meanwhile;
  float = true: blocks are made numbers of float32, and no form remains. F32, F16, BF16, F64, whole numbers, Q8_0, Q4_0, Q4_K and Q6_K are
  read; a damaged file is an error that names the byte.
    > ms.save_gguf("/tmp/lunaria_help.gguf", { w = ms.ones { 2, 32 } }, { forms = { w = "q8_0" } })
    > tensors, metadata, forms = ms.load_gguf("/tmp/lunaria_help.gguf")
    > tensors.w.shape, tensors.w.dtype, forms.w --> (2, 34)	UInt8	q8_0
    > ms.load_gguf("/tmp/lunaria_help.gguf", { float = true }).w:sum():item() --> 63.99609375
    > (os.remove("/tmp/lunaria_help.gguf")) --> true
ms.save_gguf(path, values, options): Writes a table of tensors by name to a .gguf file. options: metadata, texts, numbers, booleans and lists
  of them by name; forms, which tensors are in blocks: "q8_0" or "q4_0" for floats, which are quantised, and the form for tensors of bytes
  that are in blocks already, as ms.load_gguf gives them.
    > ms.save_gguf("/tmp/lunaria_help.gguf", { w = ms.ones { 2 } }, { metadata = { ["general.name"] = "ones", sizes = { 1, 2 } } })
    > select(2, ms.load_gguf("/tmp/lunaria_help.gguf")).sizes[2] --> 2
    > (os.remove("/tmp/lunaria_help.gguf")) --> true
ms.load_torch(path): Always an error that says how to convert the file: reading a pickle can run any program that is in it.
    > (pcall(ms.load_torch, "net.pt")) --> false
ms.save_mindir(f, path, ...): Writes a function for inputs like these as MindIR: as ms.export does, of tensors, numbers, texts and tables.
    > ms.save_mindir(function(x) return x * 2 end, "/tmp/lunaria_help.mindir", ms.ones { 2 })
    > ms.load_mindir("/tmp/lunaria_help.mindir")(ms.ones { 2 }):tolist()[1] --> 2.0
    > (os.remove("/tmp/lunaria_help.mindir")) --> true
ms.load_mindir(path, options): The function in a MindIR file. options: { dec_key = }, the key of an encrypted one.
    > ms.save_mindir(function(x) return x + 1 end, "/tmp/lunaria_help.mindir", ms.ones { 2 })
    > ms.load_mindir("/tmp/lunaria_help.mindir")(ms.ones { 2 }):sum():item() --> 4.0
    > (os.remove("/tmp/lunaria_help.mindir")) --> true
ms.export(net, ...): Writes a network for inputs like these to a file; the last argument is {file_name = , file_format = "MINDIR" or
  "ONNX"}. An ONNX file holds the operators that the network calls for inputs of these sizes; it is read back and compared first.
  dynamic_axes = { x = { [0] = "batch" } } (or { x = { 0 } }) is for ONNX: the file is for inputs of any size along these
  axes, whose names it has; an operator that fixes such a size is named by an error. Inputs are called x, or x0, x1 ...
  enc_key: a text of 16, 24 or 32 bytes, under which a MindIR file is encrypted (AES-GCM).
  MindSpore reads a MindIR file (mindspore.load, nn.GraphCell) where the network consists of operators that MindSpore has,
  and of branches and loops by the elements of tensors between them, for inputs of any size or for these sizes alone. Any
  other is written in a form of our own, which only Lunaria reads: tables and functions as values, recursion, results that
  are no tensors, tensors whose shape or dtype depends on the way taken. form = "mindspore" fixes the sizes of the inputs
  where need be, and is an error that names what MindSpore does not have; form = "lunaria" writes our own form always.
    > ms.export(function(x) return x * 2 end, ms.ones { 2 }, { file_name = "/tmp/lunaria_help.onnx", file_format = "ONNX" })
    > (ms.load("/tmp/lunaria_help.onnx"))(ms.ones { 2 }):tolist()[1] --> 2.0
    > (os.remove("/tmp/lunaria_help.onnx")) --> true
    > ms.export(ms.nn.Dense(2, 3), ms.ones { 1, 2 }, { file_name = "/tmp/lunaria_help_net" })
    > (os.remove("/tmp/lunaria_help_net.mindir")) --> true
ms.input(prompt, options): Asks the user for a line of text. options: {password = true} does not show what is typed.
    > type(ms.input) --> function
ms.update_display(value, id): Shows a value in the place of the one that ms.display showed under this id.
    > ms.update_display("new", "some id") --> "new"
ms.clear_output(options): Removes what the cell has shown so far; {wait = true}: as soon as there is something new.
    > ms.clear_output()
ms.is_terminal(): Whether the program's output is a terminal.
    > ms.is_terminal(nil) == true or ms.is_terminal(nil) == false --> true
ms.terminal_size(): How many columns and rows the terminal has; 80 and 24 where there is none.
    > select("#", ms.terminal_size()) --> 2
ms.help(value): Explains a value: an operator or a function with its parameters and an example, a class, a module, or what the value is.
    > ms.help(ms.is_tensor) --> ms.is_tensor(value)\n\nWhether the value is a tensor.\n\nParameters\n  value  the value (any value)\n\nExample\n  > ms.is_tensor(ms.ones { 2 })\n  true\n\nSee also ms.ops.is_tensor.\n\nSource: interpreter/bindings, in C++
ms.json.encode(value, options): A value as JSON. Tables with items 1..n are arrays, an empty one is an object unless json.array made it,
  tensors are nested arrays, ms.json.null is null. options: {indent = 2, allow_nan = false}.
    > ms.json.encode({ a = { 1, 2 }, b = ms.json.null }) --> {"a":[1,2],"b":null}
ms.json.decode(text, options): The value of a JSON text. { ordered = true }: json.encode writes its tables in the order that they have there.
    > ms.json.decode('{"a": [1, 2.5]}').a[2] --> 2.5
ms.json.array(table): Marks a table (or a new one) as an array for ms.json.encode, even while it is empty.
    > ms.json.encode({ list = ms.json.array({}) }) --> {"list":[]}
ms.io.read_npy(path): Reads a tensor from an .npy file; of an array of texts, a text or nested tables of them.
    > ms.io.write_npy("/tmp/lunaria_help_r.npy", ms.arange(4))
    > ms.io.read_npy("/tmp/lunaria_help_r.npy").dtype --> Int64
    > (os.remove("/tmp/lunaria_help_r.npy")) --> true
ms.io.read_npz(path, options): Reads a table of tensors by name from an .npz file; options: {names = {...}} reads only some. Arrays of
  texts are texts or nested tables of them.
    > ms.io.write_npz("/tmp/lunaria_help_r.npz", { a = ms.arange(4) })
    > ms.io.read_npz("/tmp/lunaria_help_r.npz").a.dtype --> Int64
    > (os.remove("/tmp/lunaria_help_r.npz")) --> true
ms.io.read_idx(path): The same as ms.load_idx.
    > (pcall(ms.io.read_idx, "/no/such/file")) --> false
ms.io.read_safetensors(path, options): The same as ms.load_safetensors.
    > ms.save("/tmp/lunaria_help_s.safetensors", { w = ms.ones { 2 } })
    > ms.io.read_safetensors("/tmp/lunaria_help_s.safetensors").w.shape --> (2,)
    > (os.remove("/tmp/lunaria_help_s.safetensors")) --> true
ms.io.write_safetensors(path, values, options): The same as ms.save_safetensors.
    > ms.io.write_safetensors("/tmp/lunaria_help_t.safetensors", { w = ms.ones { 3 } })
    > ms.load("/tmp/lunaria_help_t.safetensors").w.shape --> (3,)
    > (os.remove("/tmp/lunaria_help_t.safetensors")) --> true
ms.io.write_npy(path, x): Writes a tensor to an .npy file.
    > ms.io.write_npy("/tmp/lunaria_help_w.npy", ms.arange(4))
    > ms.io.read_npy("/tmp/lunaria_help_w.npy").size --> 4
    > (os.remove("/tmp/lunaria_help_w.npy")) --> true
ms.io.secure_words(count): So many random integers of 64 bits as a tensor, from the operating system's cryptographic generator: of no seed.
    > ms.io.secure_words(3).shape --> (3,)
ms.io.write_npz(path, values, options): Writes a table of tensors by name to an .npz file; options: {compressed = true}.
    > ms.io.write_npz("/tmp/lunaria_help_w.npz", { a = ms.arange(4) })
    > ms.io.read_npz("/tmp/lunaria_help_w.npz").a.size --> 4
    > (os.remove("/tmp/lunaria_help_w.npz")) --> true
ms.io.read_ckpt(path, options): Reads a .ckpt file: a table of tensors and texts by name, and a list of the names in the file's order.
  options: {crc_check = true} demands a checksum, false does not compare one.
    > ms.io.write_ckpt("/tmp/lunaria_help.ckpt", { w = ms.ones { 2 }, note = "hello" }, { "w", "note" })
    > ms.io.read_ckpt("/tmp/lunaria_help.ckpt").note --> hello
    > (os.remove("/tmp/lunaria_help.ckpt")) --> true
ms.io.write_ckpt(path, values, names, checksum, later): Writes the tensors and texts of a table to a .ckpt file, in the order of names.
  checksum: true appends one. later: true has a thread write the values as they are now.
    > ms.io.write_ckpt("/tmp/lunaria_help.ckpt", { w = ms.ones { 2 } }, { "w" }, true)
    > (os.remove("/tmp/lunaria_help.ckpt")) --> true
ms.io.finish_writing(): Waits for the file that a thread writes; what went wrong is an error. The same as ms.async_ckpt_wait.
    > ms.save_safetensors("/tmp/lunaria_help.safetensors", { w = ms.ones { 2 } }, { later = true })
    > ms.io.finish_writing()
    > (os.remove("/tmp/lunaria_help.safetensors")) --> true
ms.io.is_writing(): Whether a thread is writing a file.
    > ms.io.is_writing() --> false
ms.io.as_whole(f, ...): Calls f with the arguments. An interrupt (Ctrl-C) that comes meanwhile waits for the end of f; a second one does
  not. f: what has to be done as a whole.
    > ms.io.as_whole(math.max, 1, 3) --> 3
ms.io.signal_came(number, forget): Whether a signal came since the last call: 1 (HUP), 10 (USR1), 12 (USR2) or 15 (TERM). From the first
  call on it does nothing else; forget: true gives it back its meaning, which for most is the end of the program. number: the signal.
    > ms.io.signal_came(12) --> false
    > ms.io.signal_came(12, true) --> false
ms.io.read_later(parts): Has a thread read checkpoints. parts: a list of { path =, kind = "ckpt" or "safetensors", names =, crc_check = }.
  Gives a handle for ms.io.finish_reading.
    > ms.save_safetensors("/tmp/lunaria_help.safetensors", { w = ms.ones { 2 } })
    > handle = ms.io.read_later { { path = "/tmp/lunaria_help.safetensors", kind = "safetensors" } }
    > ms.io.finish_reading(handle).w:tolist()[1] --> 1.0
    > (os.remove("/tmp/lunaria_help.safetensors")) --> true
ms.io.finish_reading(handle, ask): Waits for what ms.io.read_later began: a table of tensors and texts by name, and one of the files'
  metadata. handle: what it gave. ask: true only says whether all is there.
    > ms.save_safetensors("/tmp/lunaria_help.safetensors", { w = ms.ones { 2 } })
    > handle = ms.io.read_later { { path = "/tmp/lunaria_help.safetensors", kind = "safetensors" } }
    > ms.io.finish_reading(handle).w.shape --> (2,)
    > (os.remove("/tmp/lunaria_help.safetensors")) --> true
ms.io.read_events(path, partial, offset, record, count): Events of a file that TensorBoard reads: a list of { step =, wall_time =, values =
  a list of { tag =, kind =, value = } }, the offset behind the last one and its number. partial: true leaves a last record that is not
  whole out. offset, record: where to begin. count: how many at most. An event's others are its further messages by number, as bytes.
  ms.train.SummaryReader has the values by tag.
    > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
    > record:close()
    > ms.io.read_events(record.path)[1].version --> MindSpore.Event:1
    > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
ms.io.event_frame(content): A text between its length and its check sums, as a file of events and TFRecord have it. content: the text.
    > #ms.io.event_frame("abc") --> 19
ms.io.histogram_values(tag, x): A tensor's histogram as the two values of an event, TensorBoard's and MindSpore's. tag: its name. x: a
  tensor of float32 or float64. ms.train.SummaryRecord writes it.
    > #ms.io.histogram_values("w", ms.ones { 4 }) > 20 --> true
ms.io.format_of(path): What a checkpoint is by its first bytes: "ckpt", "safetensors", "zip" or "unknown".
    > ms.save_safetensors("/tmp/lunaria_help.safetensors", { w = ms.ones { 2 } })
    > ms.io.format_of("/tmp/lunaria_help.safetensors") --> safetensors
    > (os.remove("/tmp/lunaria_help.safetensors")) --> true
ms.io.read_text(path, limit): The bytes of a file of at most limit bytes, by default 64 MiB. A path of anything but a regular file is an
  error.
    > ms.io.read_text("README.md"):sub(1, 1) --> #
    > (pcall(ms.io.read_text, "/dev/zero")) --> false
ms.io.kind(path): What has that path: "file", "folder", "pipe", "socket" or "device"; nil where nothing has.
    > ms.io.kind("/tmp") --> folder
    > ms.io.kind("/no/such/file") == nil --> true
ms.io.draft(path): A file that is written before it takes the place of path, which stays as it was until then: draft.path is where this
  process writes and reads it, draft:commit() puts it in its place. It goes with a variable that is <close>. It has no name
  before (where the file system has such files), so that a program that is killed leaves nothing behind. Without a path it
  lies in the folder for temporary files, for this process alone.
    > draft = ms.io.draft("/tmp/lunaria_help.txt")
    > (io.open(draft.path, "w"):write("text"):close()) --> true
    > ms.io.kind("/tmp/lunaria_help.txt") == nil, draft:commit() --> true
    > ms.io.read_text("/tmp/lunaria_help.txt"), os.remove("/tmp/lunaria_help.txt") --> text	true
ms.io.temporary(ending): Makes an empty file in the folder for temporary files (TMPDIR, or /tmp) whose name nothing else has, for this user
  alone. ending: of its name.
    > name = ms.io.temporary(".lua")
    > ms.io.kind(name), os.remove(name) --> file	true
ms.io.nearest(name, names): "did you mean 'x'?" for the name in a list that is nearest to one that is not; nil where none is near. name: the text
  that was given. names: a list of texts.
    > ms.io.nearest("sofmtax", { "relu", "softmax" }) --> did you mean 'softmax'?
ms.io.warn(place, text, hint): Writes "place: warning: text" and the hint on the standard error, once for each place. place: such as "file.lua:3".
  text: what is wrong. hint: what to write instead.
    > ms.io.warn("file.lua:3", "a warning", "a hint")
ms.io.printable(text): The text with escapes for what a terminal would not show but obey, as messages have it; new lines and tabs stay.
    > ms.io.printable("\27[31mred") --> \x1b[31mred
ms.io.make_folder(path): Makes a folder, with the folders that it lies in.
    > ms.io.make_folder("/tmp")
ms.io.list_folder(path): The names of what is in a folder, sorted; nil when the path is no folder.
    > ms.io.list_folder("/no/such/folder") == nil --> true
ms.random.seed(seed): The same as ms.set_seed.
ms.random.get_state(): The same as ms.get_rng_state.
ms.random.set_state(state): The same as ms.set_rng_state.
ms.display:
    > ms.display({ 1, 2 }) --> {1, 2}
ms.ops.apply_adam:
    > type(ms.ops.apply_adam) --> function
ms.ops.apply_lamb:
    > (function() local p = ms.Parameter(ms.ones { 2 }, "p") ms.ops.apply_lamb({ p }, { ms.ones { 2 } }, { ms.zeros { 2 } }, { ms.zeros { 2 } }, 0.5, 0.5, 0.5, 1e-6, 0.5, 0.5) return p:tolist()[1] end)() --> 0.5
ms.ops.apply_momentum:
    > type(ms.ops.apply_momentum) --> function
ms.ops.assign:
    > (function() local p = ms.Parameter(ms.ones { 2 }, "p") ms.ops.assign(p, ms.zeros { 2 }) return p:sum():item() end)() --> 0.0
ms.ops.assign_add:
    > (function() local p = ms.Parameter(ms.ones { 2 }, "p") ms.ops.assign_add(p, ms.ones { 2 }) return p:sum():item() end)() --> 4.0
ms.ops.assign_sub:
    > (function() local p = ms.Parameter(ms.ones { 2 }, "p") ms.ops.assign_sub(p, ms.ones { 2 }) return p:sum():item() end)() --> 0.0
ms.ops.send:
    > (pcall(ms.ops.send, ms.ones { 2 })) --> false
ms.ops.recv:
    > (pcall(ms.ops.recv, ms.ones { 2 })) --> false
ms.ops.give_gradient:
    > (pcall(ms.ops.give_gradient, ms.ones { 2 }, 0, 0)) --> false
ms.ops.print_:
    > ms.ops.print_(1) --> Tensor(shape=[], dtype=Int64, value= 1)
ms.ops.batch_norm_update:
    > (function() local m, v = ms.Parameter(ms.zeros { 1 }), ms.Parameter(ms.ones { 1 }) ms.ops.batch_norm_update(m, v, ms.ones { 1 }, ms.ones { 1 }, 0.5, 4) return m:item() end)() --> 0.5
f:ir: The graph of the function's records, as text.
    > (function() local f = ms.jit(function(x) return x * 2 end) f(ms.ones { 2 }) f(ms.ones { 2 }) return type(f:ir()) end)() --> string
f:kernels: The kernels that were compiled for the function, as text.
    > (function() local f = ms.jit(function(x) return x * 2 end) f(ms.ones { 2 }) f(ms.ones { 2 }) return type(f:kernels()) end)()
    string
f:report: The same as ms.jit_report(f).
    > ms.jit(function(x) return x * 2 end):report().calls --> 0
handle:update: Replaces what was shown by value. options: metadata, raw, as display has them.
    > display("step 1", { id = true }):update("step 2")
    "step 1"
    "step 2"
plot:line: Adds to the plot what ms.plot.line draws, with the same arguments. Gives the plot back.
    > ms.plot.line({ 1, 2 }):line({ 2, 1 }):svg():match("^<svg") --> <svg
plot:scatter: Adds to the plot what ms.plot.scatter draws, with the same arguments. Gives the plot back.
    > ms.plot.line({ 1, 2 }):scatter({ 1, 2 }, { 2, 1 }):svg():match("^<svg") --> <svg
plot:bar: Adds to the plot what ms.plot.bar draws, with the same arguments. Gives the plot back.
    > ms.plot.bar({ 1, 2 }):bar({ 2, 1 }):svg():match("^<svg") --> <svg
plot:hist: Adds to the plot what ms.plot.hist draws, with the same arguments. Gives the plot back.
    > ms.plot.hist({ 1, 2, 2 }):svg():match("^<svg") --> <svg
plot:heatmap: Adds to the plot what ms.plot.heatmap draws, with the same arguments. Gives the plot back.
    > ms.plot.heatmap({ { 1, 2 }, { 3, 4 } }):svg():match("^<svg") --> <svg
plot:radar: Adds to the plot what ms.plot.radar draws, with the same arguments. Gives the plot back.
    > p = ms.plot.radar({ 1, 0.5, 0.25 }, { names = { "a", "b", "c" } })
    > #p:radar({ 0.5, 1, 1 }, { names = { "a", "b", "c" } }):vega().layer --> 4
plot:contour: Adds to the plot what ms.plot.contour draws, with the same arguments. Gives the plot back.
    > ms.plot.contour({ { 1, 2, 3 }, { 3, 4, 5 }, { 4, 5, 7 } }):svg():match("^<svg") --> <svg
plot:image: Adds to the plot what ms.plot.image draws, with the same arguments. Gives the plot back.
    > ms.plot.image(ms.ones { 2, 2 }):svg():match("^<svg") --> <svg
[constant interpreter/bindings/module.cpp]
ms.GRAPH_MODE: The mode in which functions that are called often are compiled: ms.set_context{ mode = ms.GRAPH_MODE }.
    > ms.get_context("mode") == ms.GRAPH_MODE or ms.get_context("mode") == ms.PYNATIVE_MODE --> true
ms.PYNATIVE_MODE: The mode in which operators run one at a time, as at the start; also called eager mode.
    > ms.PYNATIVE_MODE ~= ms.GRAPH_MODE --> true
ms.version: The version of the program, as text.
    > type(ms.version) --> string
ms.newaxis: In an index: a new axis of size 1.
    > ms.arange(3)[{ ms.newaxis }].shape --> (1, 3)
[module]
ms.amp:
    > ms.amp.auto_mixed_precision(ms.nn.Dense(2, 3), "O3")(ms.ones { 1, 2 }).shape --> (1, 3)
ms.dataset:
    > ms.dataset.NumpySlicesDataset(ms.arange(6)):batch(2):get_dataset_size() --> 3
ms.dataset.audio:
    > ms.dataset.audio.Spectrogram(64)(ms.ones { 400 }).shape --> (33, 13)
ms.dataset.config:
    > ms.dataset.config.get_prefetch_size() >= 1 --> true
ms.dataset.text:
    > table.concat(ms.dataset.text.WhitespaceTokenizer()("to be"), "|") --> to|be
ms.dataset.transforms:
    > ms.dataset.transforms.OneHot(3)(1):tolist()[2] --> 1
ms.dataset.vision:
    > ms.dataset.vision.Resize(4)(ms.zeros({ 8, 12, 3 }, { dtype = ms.uint8 })).shape --> (4, 6, 3)
ms.experimental:
    > ms.experimental.optim.SGD == ms.nn.optim.SGD --> true
ms.experimental.optim.lr_scheduler:
    > type(ms.experimental.optim.lr_scheduler.StepLR) --> table
ms.mindrecord:
    > ms.mindrecord.FileReader("tests/data/samples/mindrecord/images.mindrecord"):len() --> 40
ms.runtime:
    > ms.runtime.memory_allocated() > 0 --> true
ms.train:
    > table.concat(ms.train.names(), " "):find("accuracy", 1, true) ~= nil --> true
ms.context: What MindSpore's first releases set the mode, the device and the kind of parallel training with.
    > ms.context.get_context("device_target") --> CPU
ms.nn: Cells, layers, losses and optimizers.
    > ms.nn.ReLU()(ms.tensor { -1.0, 2.0 }):tolist()[2] --> 2.0
ms.nn.optim: The optimizers with PyTorch's rules and names of arguments.
    > ms.nn.optim.AdamW(ms.nn.Dense(2, 1):trainable_params(), { lr = 1e-3 }) --> AdamW<lr=0.001, parameters=2>
ms.communication: Ranks and groups of ranks by MindSpore's names, and comm_func, functions that ask other ranks.
    > ms.communication.get_group_size() --> 1
ms.communication.comm_func: Functions that ask other ranks and give what comes.
    > ms.communication.comm_func.broadcast(ms.tensor { 3 }):item() --> 3
ms.communication.GlobalComm: The name of the group of all ranks, WORLD_COMM_GROUP, and of the engine that connects them, BACKEND.
    > ms.communication.GlobalComm.WORLD_COMM_GROUP --> hccl_world_group
[constant interpreter/lua/lunaria/communication.lua]
ms.communication.GlobalComm.WORLD_COMM_GROUP: The name of the group of all ranks.
    > ms.communication.GlobalComm.WORLD_COMM_GROUP --> hccl_world_group
ms.communication.GlobalComm.BACKEND: The name of the engine that connects the ranks.
    > ms.communication.GlobalComm.BACKEND --> one rank
ms.communication.HCCL_WORLD_COMM_GROUP: The name of the group of all ranks.
    > ms.communication.HCCL_WORLD_COMM_GROUP --> hccl_world_group
ms.communication.NCCL_WORLD_COMM_GROUP: Another name of the group of all ranks.
    > ms.communication.get_group_size(ms.communication.NCCL_WORLD_COMM_GROUP) --> 1
ms.communication.MCCL_WORLD_COMM_GROUP: Another name of the group of all ranks.
    > ms.communication.get_group_size(ms.communication.MCCL_WORLD_COMM_GROUP) --> 1
[module]
ms.mint: What follows PyTorch's rules and names of arguments: mint.optim, and mint.distributed for ranks.
    > ms.mint.optim.AdamW == ms.nn.optim.AdamW --> true
ms.insight: Networks and trainings looked at: graphs, runs, landscapes, pages in the browser, watchpoints, the origin of NaN, dumps.
    > #ms.insight.substructures(ms.ir(function(x) return x * x end)) --> 0
ms.explain: What in a picture an answer rests on (saliency, counterfactuals), and how far such explanations can be trusted.
    > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(4, 2))
    > ms.explain.Gradient(net)(ms.ones { 1, 1, 2, 2 }, 0).shape --> (1, 1, 2, 2)
ms.federated: One model trained by many parties whose data stay where they are: weights, strategies, training at a party.
    > ms.federated.strategies.FedAvg({ settings = { lr = 0.1 } }):configure({ number = 1 }).lr --> 0.1
ms.federated.strategies: Rules by which the updates of parties become new weights.
    > ms.federated.strategies.FedProx({ mu = 0.1 }).client --> prox
ms.federated.vertical: Parties that have different columns of the same rows: ids in common, links between parties, boosted trees and logistic regression in shares.
    > a = function(links) return #ms.federated.vertical.psi(links.b, { "x", "y" }) end
    > b = function(links) return #ms.federated.vertical.psi(links.a, { "y", "z" }) end
    > ms.federated.vertical.run_parties({ a = a, b = b }).a --> 1
ms.federated.client_rules: How a party trains: rules as pure functions over vectors, and their run on a cell.
    > type(ms.federated.client_rules.find("sgd").step) --> function
ms.federated.partition: Data divided over clients: evenly, by Dirichlet shares, by label, by quantity, by writer, with shifted features.
    > ms.federated.partition.iid(100, 10):sizes()[1] --> 10
ms.federated.secure: Sums of clients' vectors of which the server learns the sum alone: codes, clients, servers, signatures.
    > ms.federated.secure.sum({ ms.tensor({ 1 }, ms.int64), ms.tensor({ 2 }, ms.int64) }, { threshold = 2 }):item() --> 3
ms.federated.compression: Vectors in fewer bytes on their way between clients and server, and what of it secure sums can add up.
    > ms.federated.compression.quantize(ms.tensor { 0.0, 1.0 }, 2).values:tolist()[2] --> 1
ms.federated.privacy: Differential privacy at clients, at the server or in secure sums, with an account over all rounds.
    > ms.federated.privacy.LocalDP({ dp_eps = 1.0 }):epsilon() --> 0.0
ms.armour: Attacks on models and what helps against them, tests of models, privacy: MindArmour's names.
    > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(4, 3))
    > x, y = ms.ones { 2, 1, 2, 2 } * 0.5, ms.tensor { 0, 2 }
    > adv = ms.armour.attacks.FastGradientSignMethod(net, { eps = 0.1 }):generate(x, y)
    > ms.ops.max(ms.ops.abs(adv - x)):item() <= 0.1001 --> true
ms.armour.privacy: Training that keeps its samples private, and what it costs.
    > type(ms.armour.privacy.diff_privacy) --> table
ms.armour.privacy.diff_privacy: Training whose result tells little of any single sample: clipped gradients, noise, budgets.
    > ms.armour.privacy.diff_privacy.NoiseGaussianRandom(1.0, 1.5):noise_multiplier() --> 1.5
ms.armour.privacy.sup_privacy: Training that leaves few and small weights, which tell less of single samples.
    > type(ms.armour.privacy.sup_privacy.SuppressModel) --> table
ms.armour.privacy.sup_privacy.SuppressPrivacyFactory: create(networks, mask_layers, ...) gives what controls the masks of a training.
    > type(ms.armour.privacy.sup_privacy.SuppressPrivacyFactory.create) --> function
ms.armour.privacy.unlearning: Networks that can forget samples exactly.
    > type(ms.armour.privacy.unlearning.SISA) --> table
ms.armour.fuzz_testing: Coverage of what a network can do, and fuzzers that look for inputs it gets wrong.
    > type(ms.armour.fuzz_testing.Fuzzer) --> table
ms.armour.reliability: Faults in memory, drift of series, inputs from outside of what was learnt.
    > type(ms.armour.reliability.FaultInjector) --> table
ms.armour.protection: Marks in weights that show whose network it is, and weights that are of use only with a secret.
    > type(ms.armour.protection.Watermark) --> table
ms.armour.attacks: Attacks that know the gradients of a model: steps within a ball around each input, or the nearest adversarial input.
    > type(ms.armour.attacks.FastGradientMethod) --> table
ms.armour.attacks.black: Attacks on models that are only asked, with counts of questions and budgets for each sample.
    > type(ms.armour.attacks.black.HopSkipJumpAttack) --> table
ms.armour.adv_robustness: MindArmour's other place of attacks and what helps against them; the modules are the same.
    > ms.armour.adv_robustness.attacks == ms.armour.attacks --> true
ms.armour.adv_robustness.attacks: Another name of ms.armour.attacks.
    > ms.armour.adv_robustness.attacks.FastGradientMethod == ms.armour.attacks.FastGradientMethod --> true
ms.armour.defenses: Training that makes networks robust, answers with a certificate, and inputs that attacks are washed out of.
    > type(ms.armour.defenses.TradesDefense) --> table
ms.armour.detectors: What tells adversarial samples and the queries of attacks from clean ones.
    > type(ms.armour.detectors.SpatialSmoothing) --> table
ms.armour.evaluations: Figures and pictures of how well attacks and defences do.
    > x = ms.rand { 1, 8, 8 }
    > ms.armour.evaluations.ssim(x, x):item() --> 1.0
ms.armour.natural_robustness: Changes of pictures that happen without an attacker, and corruptions by which robustness is measured.
    > ms.armour.natural_robustness.corrupt(ms.ones { 4, 4 }, "contrast", 1).shape --> (4, 4)
ms.armour.natural_robustness.transform: Changes of inputs; so far of pictures.
    > type(ms.armour.natural_robustness.transform.image) --> table
ms.armour.natural_robustness.transform.image: Changes of pictures: where things are, blur, light, noise.
    > ms.armour.natural_robustness.transform.image.Contrast(0.5)(ms.ones { 2, 2 })[{ 0, 0 }]:item() --> 0.5
ms.armour.adv_robustness.defenses: Another name of ms.armour.defenses.
    > ms.armour.adv_robustness.defenses == ms.armour.defenses --> true
ms.armour.adv_robustness.detectors: Another name of ms.armour.detectors.
    > ms.armour.adv_robustness.detectors == ms.armour.detectors --> true
ms.armour.adv_robustness.evaluations: Another name of ms.armour.evaluations.
    > ms.armour.adv_robustness.evaluations == ms.armour.evaluations --> true
ms.armour.privacy.accountants: What a history of noisy steps has cost, as (epsilon, delta), and how much noise keeps a budget.
    > accountant = ms.armour.privacy.accountants.Accountant { mechanism = "prv" }
    > accountant:step { noise_multiplier = 1.1, sample_rate = 256 / 60000, steps = 14040 }
    > ("%.2f"):format(accountant:epsilon(1e-5)) --> 2.38
ms.armour.privacy.statistics: Counts, sums, means, histograms and quantiles with noise that hides every single row.
    > n = ms.armour.privacy.statistics.count(ms.ones { 500 }, { epsilon = 2.0, seed = 1 })
    > math.abs(n - 500) < 20 --> true
ms.armour.privacy.local_privacy: Values that are made private where they are: randomized response, unary codes, noise, embeddings as bits.
    > ("%.3f"):format(ms.armour.privacy.local_privacy.keep_probability(2, 1.0)) --> 0.731
ms.armour.privacy.evaluation: What models give away: membership, attributes and pictures of rows they were trained on; audits of epsilon.
    > ms.armour.privacy.evaluation.threshold_attack({ 2.0, 1.0 }, { 0.0, 0.5 }).auc --> 1.0
ms.profiler: Where the time of a program goes: ms.Profiler with its schedules, marks and files.
    > ms.profiler.Profiler == ms.Profiler --> true
ms.profiler.ProfilerLevel: MindSpore's levels of detail; all is recorded at each of them.
    > ms.profiler.ProfilerLevel.Level1 --> Level1
ms.profiler.ProfilerLevel.Level0: A level of detail of MindSpore's.
    > ms.profiler.ProfilerLevel.Level0 --> Level0
ms.profiler.ProfilerLevel.Level1: A level of detail of MindSpore's.
    > ms.profiler.ProfilerLevel.Level1 --> Level1
ms.profiler.ProfilerLevel.Level2: A level of detail of MindSpore's.
    > ms.profiler.ProfilerLevel.Level2 --> Level2
ms.profiler.ProfilerLevel.LevelNone: A level of detail of MindSpore's.
    > ms.profiler.ProfilerLevel.LevelNone --> Level_none
ms.profiler.ProfilerActivity: What MindSpore records; here it is the CPU.
    > ms.profiler.ProfilerActivity.CPU --> CPU
ms.profiler.ProfilerActivity.CPU: Operators that run on the processor, which are recorded.
    > ms.profiler.ProfilerActivity.CPU --> CPU
ms.profiler.ProfilerActivity.GPU: MindSpore's name for a device that is not there.
    > ms.profiler.ProfilerActivity.GPU --> GPU
ms.profiler.ProfilerActivity.NPU: MindSpore's name for an Ascend device.
    > ms.profiler.ProfilerActivity.NPU --> NPU
ms.profiler.mstx: Marks of a program's own in a recording, which its time line shows.
    > ms.profiler.mstx.mark("nothing is recorded now")
ms.boost: Algorithms of training: Adasum, few dimensions, freezing, averages.
    > ms.boost.adasum(ms.tensor { 1.0 }, ms.tensor { 1.0 }):item() --> 1.0
ms.lite: Light inference: networks quantised, pruned, distilled, converted and run small.
    > select(2, ms.lite.quantize(ms.nn.Dense(64, 32), { quant_type = "WEIGHT_QUANT" })).layers[1].bits --> 8
ms.lite.Model: A light file that runs: predict, resize, update_weights, save, with threads of its own.
    > path = os.tmpname()
    > made = ms.lite.convert(ms.nn.Dense(2, 3), { inputs = { ms.zeros { 1, 2 } }, outputFile = path })
    > ms.lite.Model(path):predict(ms.zeros { 1, 2 }).shape --> (1, 3)
    > os.remove(path) --> true
ms.lite.Trainer: A light file that trains: step, loss, virtual batches, loss scale, a backbone before it, save and export.
    > path = os.tmpname()
    > net = ms.nn.Dense(2, 3)
    > optimizer = ms.nn.SGD(net:trainable_params(), 0.1)
    > batch = { ms.zeros { 4, 2 }, ms.zeros { 4, 3 } }
    > made = ms.lite.convert_training(net, ms.nn.MSELoss(), optimizer, { inputs = batch, outputFile = path })
    > trainer = ms.lite.Trainer(path)
    > loss = trainer:step(batch[1], batch[2])
    > trainer:steps() --> 1
    > os.remove(path) --> true
ms.ascend: The simulated Ascend: kernels of its cores, and how long networks would take on it.
    > ms.ascend.to_format(ms.zeros { 20, 40 }, "FRACTAL_NZ").shape --> (3, 32, 16)
ms.probability: Distributions, bijectors and Bayesian layers.
    > ms.probability == ms.nn.probability --> true
ms.probability.bijector: Functions that can be turned round, for transformed distributions.
    > ms.probability.bijector.Exp():forward(0.0):item() --> 1.0
ms.probability.bnn_layers: Layers whose weights are distributions, and their loss.
    > ms.probability.bnn_layers.DenseReparam(3, 4)(ms.ones { 2, 3 }).shape --> (2, 4)
ms.numpy: numpy's functions over tensors, numbers and tables, with numpy's broadcasting and dtypes.
    > np = ms.numpy
    > np.sum({ { 1, 2 }, { 3, 4 } }, 0):tolist()[2] --> 6
    > ms.grad(np.tanh)(0.0) --> 1.0
ms.scipy: scipy's functions: linalg, fft, optimize, special, stats, signal, sparse.
    > ms.scipy.linalg.det({ { 2.0, 0.0 }, { 0.0, 4.0 } }):item() --> 8.0
ms.scipy.linalg: Linear algebra with scipy's names.
    > ms.scipy.linalg.inv({ { 2.0 } }):item() --> 0.5
ms.scipy.fft: Fourier, cosine and sine transforms.
    > ms.scipy.fft.dct({ 1.0, 1.0 }):tolist()[1] --> 4.0
ms.scipy.optimize: Minima, line search, assignment.
    > ms.scipy.optimize.minimize(function(x) return ms.ops.sum(x * x) end, ms.ones(2)).success --> true
ms.scipy.special: Special functions.
    > ms.scipy.special.expit(0.0):item() --> 0.5
ms.scipy.stats: Statistics and distributions.
    > ms.scipy.stats.norm.cdf(0.0):item() --> 0.5
ms.scipy.signal: Convolutions, filters, trends.
    > ms.scipy.signal.convolve({ 1, 2 }, { 1, 1 }):tolist()[2] --> 3
ms.scipy.sparse: Linear systems by iteration: scipy.sparse.linalg.
    > (ms.scipy.sparse.linalg.cg({ { 2.0 } }, { 4.0 })):item() --> 2.0
ms.sparse: Sparse matrices, as coordinates and as rows.
    > ms.sparse.COOTensor({ { 0, 1 } }, { 5.0 }, { 1, 2 }):to_dense():tolist()[1][2] --> 5.0
ms.plot: Pictures of numbers: lines, points, bars, histograms, heatmaps, contours, images.
    > ms.plot.line({ 1, 4, 9 }):svg():match("^<svg") --> <svg
ms.notebook:
    > ms.notebook.comm == require "lunaria.notebook.comm" --> true
ms.notebook.comm: Lines between a cell and a program in the page that shows it.
    > #ms.notebook.comm.list() >= 0 --> true
ms.widgets: Controls in a notebook: sliders, progress bars, buttons.
    > ms.widgets.slider { label = "n" } --> slider n: 0 (0 to 100)
ms.common: What MindSpore keeps there: the initializers.
    > ms.common.initializer.Normal(0.02) --> Normal
ms.common.initializer: Ways to fill new parameters, and the function initializer, which is ms.initializer.
    > ms.common.initializer.One() --> One
[constant interpreter/lua/lunaria/context.lua]
ms.context.GRAPH_MODE: The same as ms.GRAPH_MODE.
    > ms.context.GRAPH_MODE == ms.GRAPH_MODE --> true
ms.context.PYNATIVE_MODE: The same as ms.PYNATIVE_MODE.
    > ms.context.PYNATIVE_MODE == ms.PYNATIVE_MODE --> true
ms.context.ParallelMode: The same as ms.ParallelMode.
    > ms.ParallelMode.AUTO_PARALLEL --> auto_parallel
[constant interpreter/lua/lunaria/common/kinds.lua]
ms.number: The kind of all dtypes, for ms.issubclass_.
    > ms.issubclass_(ms.float16, ms.number) --> true
ms.Int: The kind of the dtypes of signed integers, for ms.issubclass_.
    > ms.issubclass_(ms.int8, ms.Int) --> true
ms.tensor_type: The kind of tensors, for ms.issubclass_.
    > ms.issubclass_(ms.ones { 2 }, ms.tensor_type) --> true
ms.TensorType: The same as ms.tensor_type.
    > ms.issubclass_(ms.ones { 2 }, ms.TensorType) --> true
ms.string: The kind of texts, for ms.issubclass_.
    > ms.issubclass_("text", ms.string) --> true
ms.list_: The kind of tables, for ms.issubclass_.
    > ms.issubclass_({ 1, 2 }, ms.list_) --> true
ms.tuple_: The kind of tables, for ms.issubclass_; tuples are tables here.
    > ms.issubclass_({ 1, 2 }, ms.tuple_) --> true
ms.type_none: The kind of nil, for ms.issubclass_.
    > ms.issubclass_(nil, ms.type_none) --> true
ms.Type: The kind of dtypes and kinds, for ms.issubclass_.
    > ms.issubclass_(ms.float32, ms.Type) --> true
ms.QuantDtype: Widths of quantised numbers, as MindSpore counts them: INT1 to INT16 and UINT1 to UINT16.
    > ms.QuantDtype.INT8.num_bits --> 8
[constant interpreter/lua/lunaria/context.lua]
ms.ParallelMode: The kinds of parallel training: STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL.
    > ms.ParallelMode.AUTO_PARALLEL --> auto_parallel
[constant interpreter/bindings/bind_json.cpp]
ms.json.null: What null of JSON is, since nil in a Lua table is no entry.
    > ms.json.decode("[null]")[1] == ms.json.null --> true
[dtype core/tensor/dtype.h]
ms.bool_: True and false, one byte each. Also called ms.bool.
    > ms.tensor({ true, false }).dtype == ms.bool_ --> true
ms.bool: True and false, one byte each.
    > ms.tensor({ true, false }).dtype == ms.bool --> true
ms.uint8: Integers from 0 to 255.
    > ms.tensor({ 1, 2 }, ms.uint8).dtype --> UInt8
ms.int8: Integers from -128 to 127. Also called ms.byte.
    > ms.tensor({ 1, 2 }, ms.int8).dtype --> Int8
ms.byte: The same as ms.int8, as MindSpore has it; the method x:byte() gives uint8, as PyTorch has it.
    > ms.tensor({ 1, 2 }, ms.byte).dtype --> Int8
ms.int16: Integers from -32768 to 32767. Also called ms.short.
    > ms.tensor({ 1, 2 }, ms.int16).dtype --> Int16
ms.short: The same as ms.int16.
    > ms.tensor({ 1, 2 }, ms.short).dtype --> Int16
ms.int32: Integers of 32 bits.
    > ms.tensor({ 1, 2 }, ms.int32).dtype --> Int32
ms.int64: Integers of 64 bits, what integers of Lua become. Also called ms.int_ and ms.long.
    > ms.tensor({ 1, 2 }).dtype == ms.int64 --> true
ms.int_: The same as ms.int64.
    > ms.tensor({ 1, 2 }, ms.int_).dtype --> Int64
ms.long: The same as ms.int64.
    > ms.tensor({ 1, 2 }, ms.long).dtype --> Int64
ms.float16: Floating point with 11 bits of precision, up to 65504. Also called ms.half.
    > ms.tensor({ 1, 2 }, ms.float16).itemsize --> 2
ms.half: The same as ms.float16.
    > ms.tensor({ 1, 2 }, ms.half).dtype --> Float16
ms.bfloat16: Floating point with 8 bits of precision and the range of float32.
    > ms.tensor({ 1, 2 }, ms.bfloat16).itemsize --> 2
ms.float32: Floating point with 24 bits of precision, what floats of Lua become in tensors. Also called ms.float_ and ms.single.
    > ms.tensor({ 1.0, 2.0 }).dtype == ms.float32 --> true
ms.float_: The same as ms.float32.
    > ms.tensor({ 1, 2 }, ms.float_).dtype --> Float32
ms.single: The same as ms.float32.
    > ms.tensor({ 1, 2 }, ms.single).dtype --> Float32
ms.float64: Floating point with 53 bits of precision, as numbers of Lua have. Also called ms.double.
    > ms.tensor({ 1, 2 }, ms.float64).itemsize --> 8
ms.double: The same as ms.float64.
    > ms.tensor({ 1, 2 }, ms.double).dtype --> Float64
ms.intp: The same as ms.int64.
    > ms.tensor({ 1, 2 }, ms.intp).dtype --> Int64
ms.intc: The same as ms.int32.
    > ms.tensor({ 1, 2 }, ms.intc).dtype --> Int32
ms.uint16: Integers from 0 to 65535. Also called ms.ushort.
    > (ms.tensor({ 65535 }, ms.uint16) + 1):tolist()[1] --> 0
ms.uint32: Integers of 32 bits without a sign. Also called ms.uintc.
    > (ms.tensor({ 0 }, ms.uint32) - 1):tolist()[1] --> 4294967295
ms.uint64: Integers of 64 bits without a sign. Those beyond math.maxinteger are negative as integers of Lua. Also called ms.uint and
  ms.uintp.
    > ms.tensor({ -1 }):astype(ms.uint64):double():item() --> 1.844674407371e+19
ms.ubyte: The same as ms.uint8.
    > ms.tensor({ 1, 2 }, ms.ubyte).dtype --> UInt8
ms.ushort: The same as ms.uint16.
    > ms.tensor({ 1, 2 }, ms.ushort).dtype --> UInt16
ms.uintc: The same as ms.uint32.
    > ms.tensor({ 1, 2 }, ms.uintc).dtype --> UInt32
ms.uintp: The same as ms.uint64.
    > ms.tensor({ 1, 2 }, ms.uintp).dtype --> UInt64
ms.uint: The same as ms.uint64.
    > ms.tensor({ 1, 2 }, ms.uint).dtype --> UInt64
ms.float8_e4m3fn: Floating point of 8 bits to store numbers in: 4 bits of precision, up to 448, without infinity. Nothing is computed in
  it; x:float() converts.
    > ms.tensor({ 0.3, 500.0 }, ms.float8_e4m3fn):float():tolist()[1] --> 0.3125
ms.float8_e5m2: Floating point of 8 bits to store numbers in: 3 bits of precision, up to 57344. Nothing is computed in it; x:float()
  converts.
    > ms.tensor({ 0.3 }, ms.float8_e5m2):float():item() --> 0.3125
ms.qint4x2: Two integers of 4 bits with a sign in a byte, to store quantised weights in: as a number it is the byte, from -128 to 127.
  Nothing is computed in it.
    > ms.tensor({ 0x21 }, ms.qint4x2):int():item() --> 33
ms.complex64: Complex numbers of two float32. Also called ms.cfloat.
    > ms.ops.fft(ms.ones { 4 }).dtype --> Complex64
ms.cfloat: The same as ms.complex64.
    > ms.cfloat --> Complex64
ms.complex128: Complex numbers of two float64. Also called ms.cdouble.
    > ms.ops.fft(ms.ones({ 4 }, ms.float64)).dtype --> Complex128
ms.cdouble: The same as ms.complex128.
    > ms.cdouble --> Complex128
[module core/ops]
ms.ops: The operators: functions of tensors and numbers. Their arguments are given by position or in a trailing table by name.
    > ms.ops.softmax(ms.zeros { 2 }, { axis = 0 }):tolist()[1] --> 0.5
[module interpreter/lua/lunaria/experimental/init.lua]
ms.experimental.optim: The optimizers with PyTorch's rules and the schedulers of their learning rates.
    > ms.experimental.optim.SGD == ms.nn.optim.SGD --> true
[module interpreter/lua/lunaria/nn/optim.lua]
ms.mint.optim: The optimizers with PyTorch's rules and names of arguments.
[module interpreter/bindings/bind_json.cpp]
ms.json: JSON texts: encode, decode, array, null.
    > ms.json.encode { a = 1 } --> {"a":1}
[module core/ops/random.cpp]
ms.random: The operators that draw random numbers, and their seed.
    > ms.random.randint(0, 1, { 2 }):tolist()[1] --> 0
[module interpreter/bindings/bind_io.cpp]
ms.io: Files of one format each; ms.load and ms.save choose it by the file's name.
    > ms.io.write_npy("/tmp/lunaria_help_io.npy", ms.arange(3))
    > ms.io.read_npy("/tmp/lunaria_help_io.npy").size --> 3
    > (os.remove("/tmp/lunaria_help_io.npy")) --> true
[module interpreter/lua/lunaria/probability/init.lua]
ms.probability.distribution: Distributions: densities, moments, divergences, samples.
    > ms.probability.distribution.Normal(0.0, 1.0):cdf(0.0):item() --> 0.5
[module interpreter/lua/lunaria/numpy/linalg.lua]
ms.numpy.fft: Discrete Fourier transforms with numpy's names.
    > ms.numpy.fft.fft({ 1.0, 0.0 }).shape --> (2,)
[module interpreter/lua/lunaria/scipy/sparse.lua]
ms.scipy.sparse.linalg: Linear systems by iteration: cg, bicgstab, gmres.
    > (ms.scipy.sparse.linalg.cg({ { 2.0 } }, { 4.0 })):item() --> 2.0
]==]
