// The module lunaria.registry: all names that a user can type, for help (lua/lunaria/help/) and for tests. It has the
// operators' entries, texts of functions, files of the library, options, and commands of the debugger.
#include <array>
#include <filesystem>

#include "core/io/embedded.h"
#include "core/ops/families.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/bindings/library_names.h"
#include "interpreter/display/pretty.h"
#include "interpreter/loader/loader.h"
#include "interpreter/protect.h"
#include "interpreter/session/command_line.h"
#include "interpreter/session/debugger_prompt.h"
#include "interpreter/values/fields.h"
#include "interpreter/values/operators.h"
#include "jit/frontend/ast.h"
#include "jit/frontend/parser.h"

namespace lunaria {

namespace {

// In the order of ArgType.
constexpr std::array<const char*, 16> kTypes{"same",    "float", "tensor", "index",  "mask",  "tensors",
                                             "bool",    "int",   "number", "string", "dtype", "ints",
                                             "numbers", "shape", "scalar", "any"};

void set_flag(lua_State* L, const char* field, bool value) {
    lua_pushboolean(L, value);
    lua_setfield(L, -2, field);
}

struct Family {
    const char* file;
    const char* title;
    void (*add)(Registry&);
};

constexpr Family kFamilies[] = {
    {"math", "Elementwise arithmetic and functions", add_math_ops},
    {"activation", "Activation functions", add_activation_ops},
    {"activation_grad", "Gradients of activation functions", add_activation_grad_ops},
    {"compare", "Comparisons, logic and selection", add_compare_ops},
    {"reduce", "Reductions and scans", add_reduce_ops},
    {"sort", "Sorting and searching", add_sort_ops},
    {"softmax", "Softmax", add_softmax_ops},
    {"norm", "Normalisation", add_norm_ops},
    {"loss", "Loss functions", add_loss_ops},
    {"shape", "Shapes and views", add_shape_ops},
    {"slice", "Slices and parts", add_slice_ops},
    {"array", "Joining, repeating, padding", add_array_ops},
    {"index", "Gathering and masks", add_index_ops},
    {"scatter", "Scattering and segments", add_scatter_ops},
    {"create", "Making tensors", add_create_ops},
    {"random", "Random numbers", add_random_ops},
    {"linalg", "Linear algebra", add_linalg_ops},
    {"conv", "Convolutions", add_conv_ops},
    {"pool", "Pooling", add_pool_ops},
    {"attention", "Attention, embedding, dropout", add_attention_ops},
    {"routing", "Mixtures of experts", add_routing_ops},
    {"arrangement", "Blocks, mirrors, grids, dropout of channels", add_arrangement_ops},
    {"boxes", "Bounding boxes", add_box_ops},
    {"state", "State", add_state_ops},
    {"communication", "Requests to other ranks", add_communication_ops},
    {"optimizer", "Steps of optimizers", add_optimizer_ops},
    {"quantise", "Rounding to integer formats", add_quantise_ops},
};

// Sets the field to a list with the elements of the range, each pushed by `push_item`.
void set_list(lua_State* L, const char* field, const auto& items, auto push_item) {
    lua_createtable(L, static_cast<int>(std::size(items)), 0);
    lua_Integer n = 0;
    for (const auto& item : items) {
        push_item(item);
        lua_rawseti(L, -2, ++n);
    }
    lua_setfield(L, -2, field);
}

void set_texts(lua_State* L, const char* field, const auto& items) {
    set_list(L, field, items, [&](std::string_view text) { push(L, text); });
}

void push_parameter(lua_State* L, const Param& param) {
    lua_createtable(L, 0, 8);
    set_texts(L, "other_names", param.other_names);
    set_texts(L, "choices", param.choices);
    if (param.has_default) set_text(L, "default", to_string(param.default_value));
    set_text(L, "name", param.name);
    set_text(L, "type", kTypes[static_cast<size_t>(param.type)]);
    set_flag(L, "optional", param.optional);
    set_flag(L, "has_default", param.has_default);
    set_flag(L, "by_name_only", param.by_name_only);
}

void push_entry(lua_State* L, const Op& op) {
    constexpr std::array<const char*, 4> kEffects{"none", "random", "ordered", "state"};
    lua_createtable(L, 0, 16);
    set_text(L, "name", op.name());
    set_text(L, "signature", op.signature.text);
    set_text(L, "doc", op.doc_text);
    set_text(L, "effect", kEffects[static_cast<size_t>(op.declared_effect())]);
    set_flag(L, "method", op.is_method);
    set_flag(L, "host", op.host_fn != nullptr);
    set_flag(L, "gives_operand", op.returns_operand);
    set_flag(L, "has_gradient", op.grad_fn != nullptr || op.expand_fn != nullptr);
    if (op.no_grad_reason) set_text(L, "no_gradient", op.no_grad_reason);
    if (op.source_text) set_text(L, "made_of", op.source_text);
    set_list(L, "parameters", op.signature.params, [&](const Param& param) { push_parameter(L, param); });
    set_texts(L, "results", op.signature.results);
    set_texts(L, "aliases", op.aliases);
    set_texts(L, "samples", op.samples);
    set_list(L, "examples", op.examples, [&](const Op::Example& example) {
        lua_createtable(L, 2, 0);
        push(L, std::string_view(example.lua));
        lua_rawseti(L, -2, 1);
        push(L, std::string_view(example.result));
        lua_rawseti(L, -2, 2);
    });
}

// A list of all operators in the order of the registry.
int entries(lua_State* L) {
    lua_newtable(L);
    lua_Integer n = 0;
    for (const auto& op : registry().all()) {
        push_entry(L, *op);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

// entry(name or operator): the facts about one operator; nil for anything else.
int entry(lua_State* L) {
    const Op* op = lua_type(L, 1) == LUA_TSTRING ? registry().find(lua_tostring(L, 1)) : operator_at(L, 1);
    if (!op) return 0;
    push_entry(L, *op);
    return 1;
}

// {{file =, title =, names = {...}}, ...}: the operators by their files in core/ops.
int families(lua_State* L) {
    lua_newtable(L);
    lua_Integer n = 0;
    for (const Family& family : kFamilies) {
        Registry ops;
        family.add(ops);
        lua_createtable(L, 0, 3);
        set_text(L, "file", family.file);
        set_text(L, "title", family.title);
        set_list(L, "names", ops.all(), [&](const auto& op) { push(L, op->name()); });
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

// listing(f): {signature =, doc = the comment above it, text =, file =, line =} of a function; doc and text are left
// out where its source is not known.
int listing(lua_State* L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    const FunctionSource source = State::of(L).loader().source_of(L, 1);
    lua_newtable(L);
    set_text(L, "signature", describe_function(L, 1));
    if (source.function) {
        set_text(L, "doc", source.function->doc);
        set_text(L, "text", source.chunk->text(source.function->span));
    }
    lua_Debug info;
    lua_pushvalue(L, 1);
    lua_getinfo(L, ">S", &info);
    if (*info.what == 'C') return 1;
    set_text(L, "file", info.short_src);
    lua_pushinteger(L, info.linedefined);
    lua_setfield(L, -2, "line");
    return 1;
}

// files([start]): the names of the files in the program that begin so, "lunaria/" if nothing else is said:
// "lunaria/nn/dense.lua".
int files(lua_State* L) {
    const std::string_view start = luaL_optstring(L, 1, "lunaria/");
    lua_newtable(L);
    lua_Integer n = 0;
    for (const EmbeddedFile& file : embedded_files()) {
        if (!std::string_view(file.name).starts_with(start)) continue;
        lua_pushstring(L, file.name);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

// parts(): the names of ms that lie in files called otherwise, which are loaded when they are first used.
int parts(lua_State* L) {
    push_part_names(L);
    return 1;
}

// text(name): the text of a file in the program.
int text(lua_State* L) {
    const std::string_view found = embedded_text(luaL_checkstring(L, 1));
    if (!found.data()) return 0;
    push(L, found);
    return 1;
}

// The path of the running program.
int program(lua_State* L) {
    std::error_code none;
    push(L, std::string_view(std::filesystem::read_symlink("/proc/self/exe", none).string()));
    return 1;
}

// The text that --help prints.
int usage(lua_State* L) {
    push(L, kUsage);
    return 1;
}

// {{name =, usage =, text =}, ...}: the commands of the debugger's prompt.
int debugger_commands(lua_State* L) {
    lua_newtable(L);
    lua_Integer n = 0;
    for (const DebuggerPrompt::Description& command : DebuggerPrompt::descriptions()) {
        lua_createtable(L, 0, 3);
        set_text(L, "name", command.name);
        set_text(L, "usage", command.usage);
        set_text(L, "text", command.text);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

constexpr std::pair<const char*, lua_CFunction> kFunctions[] = {
    {"entries", protect<entries>}, {"entry", protect<entry>}, {"families", protect<families>},
    {"listing", protect<listing>}, {"files", protect<files>}, {"text", protect<text>},
    {"parts", protect<parts>},     {"usage", protect<usage>}, {"debugger_commands", protect<debugger_commands>},
    {"program", protect<program>}};

}  // namespace

int open_registry(lua_State* L) {
    lua_newtable(L);
    for (auto [name, function] : kFunctions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace lunaria
