-- The history of versions, the newest first: ?changelog shows it. The first row is the version of CMakeLists.txt.
-- luacheck: no max line length
return {
  { version = "0.1.0", text = "The first version.", changes = {
    "Tensors, operators, derivatives to any order of programs in Lua, cells, optimizers, losses, data sets, Model and its callbacks, with MindSpore's names.",
    "Graph mode: functions that are called often run as compiled code, on the CPU and on NVIDIA's processors; the program stays as it is.",
    "Files: MindIR, ONNX, checkpoints, safetensors, GGUF, MindRecord, TFRecord, events of TensorBoard and MindSpore.",
    "Light models for C, C++ and microcontrollers; language models; servers; federated learning; robust and private training; ranks that work together; a simulated Ascend 910.",
    "The prompt, the Jupyter kernel, the debugger, ms.insight, the lessons (lunaria lessons) and the networks of lunaria.zoo.",
    "Packages: an archive that runs where it is unpacked, a Python wheel, a Debian package.",
  } },
}
