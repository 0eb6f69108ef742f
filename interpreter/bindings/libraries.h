// Modules that `require "lunaria"` opens. Nothing is built before it is asked for: a script that does not use tensors
// does not pay for them.
#pragma once

#include <lua.hpp>
#include <string>

namespace lunaria {

// Puts "lunaria" where require finds it, and the Lua files under interpreter/lua/ behind it.
void open_libraries(lua_State* L);

// The __index of that table: parts that are written in Lua, loaded at the first use.
int load_part(lua_State* L);

// The module behind lunaria/transforms.lua.
int open_autodiff(lua_State* L);

// The module behind lunaria/op.lua.
int open_custom_ops(lua_State* L);

// The facts in the entries of the operators, for tests.
int open_registry(lua_State* L);

// The module behind lunaria/insight/.
int open_insight(lua_State* L);
int open_insight_graph(lua_State* L);
void bind_insight_server(lua_State* L);

// The modules behind lunaria/lite/.
int open_lite(lua_State* L);
int open_lite_model(lua_State* L);
int open_lite_micro(lua_State* L);

// The module behind lunaria/insight/watch.lua.
int open_watch(lua_State* L);

// The module behind the training in lunaria/parallel/.
int open_gradients(lua_State* L);
// The module behind lunaria/parallel/mesh.lua.
int open_layouts(lua_State* L);
// The module behind lunaria/communication.lua.
int open_ranks(lua_State* L);

// The module behind lunaria/onnx/: files as tables.
int open_onnx(lua_State* L);
int onnx_graph(lua_State* L);

// The module behind lunaria/dataset/.
int open_data(lua_State* L);

// The module behind the transforms of lunaria/dataset/.
int open_steps(lua_State* L);

// The module behind lunaria/federated/population.lua.
int open_population(lua_State* L);

// The module behind lunaria/federated/rounds.lua.
int open_rounds(lua_State* L);

// The module behind lunaria/lite/words/.
int open_words(lua_State* L);
// The module behind lunaria/lite/serve.lua.
int open_serving(lua_State* L);
// The module behind lunaria/federated/server.lua.
int open_federated_server(lua_State* L);

// The module behind lunaria/federated/vertical/.
int open_vertical(lua_State* L);
// The modules behind lunaria/federated/secure/ and compression/.
int open_federated_secure(lua_State* L);
int open_federated_compression(lua_State* L);
// The module behind lunaria/federated/client.lua.
int open_federated_client(lua_State* L);

// The module behind lunaria/profile.lua.
int open_profiling(lua_State* L);
// "file:line" of the running line of the program, in Lua or in the virtual machine.
std::string running_place(lua_State* L);

// A part of the module behind lunaria/op.lua: operators in shared libraries.
int define_foreign_op(lua_State* L);

// The module behind lunaria/ascend/.
int open_ascend(lua_State* L);
// The overflow flag of the simulated Ascend, without clearing it.
bool ascend_overflowed();

// The module behind lunaria/runtime.lua.
int open_devices(lua_State* L);

// The module behind lunaria/parallel/checkpoint.lua.
int open_shards(lua_State* L);
// The module behind lunaria/parallel/pipeline.lua.
int open_schedules(lua_State* L);
// The module behind lunaria/parallel/: laid-out tensors.
int open_laid(lua_State* L);
// The module behind lunaria/parallel/plan.lua.
int open_plans(lua_State* L);

// The module behind the Lua files that draw pictures.
int open_rendering(lua_State* L);
// The module behind lunaria/notebook/comm.lua.
int open_frontend(lua_State* L);

// The module table `ms`, on the stack.
int open_lunaria(lua_State* L);

// Parts of the module, each adds its fields to the table on top of the stack.
void bind_dtypes(lua_State* L);
void bind_operators(lua_State* L);
void bind_tensors(lua_State* L);
void bind_parameters(lua_State* L);
void bind_context(lua_State* L);
void bind_devices(lua_State* L);
void bind_io(lua_State* L);
void bind_checkpoints(lua_State* L);
void bind_gguf(lua_State* L);
void bind_events(lua_State* L);
void bind_session(lua_State* L);
void bind_json(lua_State* L);
void bind_dlpack(lua_State* L);
void bind_ir(lua_State* L);
void bind_display(lua_State* L);

// ms.load_mindir(path) -> a function of the network's inputs, and its weights by name. ms.load of such a file calls it
// too.
int load_mindir(lua_State* L);
int load_gguf(lua_State* L);
// The same for an ONNX file.
int load_onnx(lua_State* L);

}  // namespace lunaria
