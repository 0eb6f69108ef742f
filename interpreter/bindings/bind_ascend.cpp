// The module "lunaria.ascend_core" behind lunaria/ascend/. It writes (by bind_ascend_programs) and runs programs of a
// core, outlines the operators of a function, and returns the device's record of what ran on it.
#include <algorithm>
#include <array>

#include "backends/ascend/chip.h"
#include "backends/ascend/device.h"
#include "backends/ascend/outline.h"
#include "backends/cpu/copy.h"
#include "backends/cpu/device.h"
#include "core/base/error.h"
#include "core/operator/op.h"
#include "interpreter/bindings/ascend_programs.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/bindings/outlined_calls.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

using namespace ascend;

double number_of(lua_State* L, int table, const char* name, double otherwise) {
    lua_getfield(L, table, name);
    const double value = lua_isnil(L, -1) ? otherwise : luaL_checknumber(L, -1);
    lua_pop(L, 1);
    return value;
}

void read(lua_State* L, int table, const char* name, double& value) { value = number_of(L, table, name, value); }
void read(lua_State* L, int table, const char* name, int64_t& value) {
    value = static_cast<int64_t>(number_of(L, table, name, static_cast<double>(value)));
}
void read(lua_State* L, int table, const char* name, bool& value) {
    lua_getfield(L, table, name);
    if (!lua_isnil(L, -1)) value = lua_toboolean(L, -1);
    lua_pop(L, 1);
}

ChipSettings settings_at(lua_State* L, int table) {
    ChipSettings s;
    constexpr std::pair<const char*, Space> kBuffers[] = {
        {"l1", Space::l1}, {"l0a", Space::l0a}, {"l0b", Space::l0b}, {"l0c", Space::l0c}, {"ub", Space::ub}};
    for (auto [name, space] : kBuffers) read(L, table, name, s.core.bytes[static_cast<size_t>(space)]);
    CoreSettings& c = s.core;
    for (auto [name, value] : {std::pair<const char*, double*>{"l1_to_l0a", &c.l1_to_l0a},
                               {"l1_to_l0b", &c.l1_to_l0b},
                               {"l0c_to_ub", &c.l0c_to_ub},
                               {"ub_to_l1", &c.ub_to_l1},
                               {"vector_bytes", &c.vector},
                               {"gm_per_core", &c.gm},
                               {"hbm_per_cycle", &s.hbm},
                               {"l2_per_cycle", &s.l2}})
        read(L, table, name, *value);
    for (auto [name, value] : {std::pair<const char*, int64_t*>{"gm_read_head", &c.gm_read_head},
                               {"gm_write_head", &c.gm_write_head},
                               {"transfers", &c.transfers},
                               {"burst", &c.burst},
                               {"issue", &c.issue},
                               {"decode", &c.decode},
                               {"queue", &c.queue},
                               {"move_head", &c.move_head},
                               {"cube_head", &c.cube_head},
                               {"vector_head", &c.vector_head},
                               {"slow_vector_head", &c.slow_vector_head},
                               {"reduce_head", &c.reduce_head},
                               {"scalar_cycles", &c.scalar},
                               {"trace_limit", &c.trace_limit},
                               {"cores", &s.cores},
                               {"cache_lines", &s.cache_lines},
                               {"core_start", &s.core_start}})
        read(L, table, name, *value);
    read(L, table, "saturate", c.saturate);
    read(L, table, "divides", c.divides);
    read(L, table, "compute", c.compute);
    if (s.cores < 1 || c.gm <= 0 || s.hbm <= 0 || c.queue < 1 || c.transfers < 1 || c.burst < 1)
        throw value_error("ascend", "the parameters of the chip must be positive");
    return s;
}

void push_faults(lua_State* L, const std::vector<Fault>& faults) {
    lua_createtable(L, static_cast<int>(faults.size()), 0);
    for (size_t i = 0; i < faults.size(); ++i) {
        const Fault& f = faults[i];
        lua_createtable(L, 0, 5);
        for (auto [name, text] :
             {std::pair<const char*, const std::string*>{"kind", &f.kind}, {"text", &f.text}, {"place", &f.place}}) {
            push(L, std::string_view(*text));
            lua_setfield(L, -2, name);
        }
        lua_pushinteger(L, f.block);
        lua_setfield(L, -2, "block");
        lua_pushinteger(L, static_cast<lua_Integer>(f.instruction));
        lua_setfield(L, -2, "instruction");
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
}

constexpr const char* kTraceHandle = "lunaria.ascend.trace";
using Traces = std::vector<std::vector<TraceRow>>;  // by blocks

std::vector<const Program*> programs_at(lua_State* L, int index) {
    luaL_checktype(L, index, LUA_TTABLE);
    std::vector<const Program*> programs;
    for (lua_Integer i = 1; lua_rawgeti(L, index, i) != LUA_TNIL; ++i) {
        programs.push_back(&handle_at<WrittenProgram>(L, -1, kAscendProgramHandle).program);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return programs;
}

// trace(result of run, its programs): a row for each instruction. The rows are made on demand, since that takes longer
// than the run.
int trace(lua_State* L) {
    const auto& traces = handle_at<Traces>(L, 1, kTraceHandle);
    const std::vector<const Program*> programs = programs_at(L, 2);
    if (programs.size() != traces.size()) throw value_error("ascend.kernel", "the trace is of other programs");
    lua_newtable(L);
    lua_Integer next = 1;
    for (size_t b = 0; b < traces.size(); ++b)
        for (const TraceRow& row : traces[b]) {
            const Instruction& i = programs[b]->code[row.instruction];
            lua_createtable(L, 0, 6);
            push(L, std::string_view(name_of(i)));
            lua_setfield(L, -2, "name");
            push(L, std::string_view(name_of(row.pipe)));
            lua_setfield(L, -2, "pipe");
            push(L, std::string_view(programs[b]->places[static_cast<size_t>(i.place)]));
            lua_setfield(L, -2, "place");
            for (auto [name, value] : {std::pair<const char*, int64_t>{"block", static_cast<int64_t>(b)},
                                       {"start", row.start},
                                       {"stop", row.end}}) {
                lua_pushinteger(L, value);
                lua_setfield(L, -2, name);
            }
            lua_rawseti(L, -2, next++);
        }
    return 1;
}

void push_result(lua_State* L, const ChipResult& r) {
    lua_createtable(L, 0, 12);
    for (auto [name, value] : {std::pair<const char*, double>{"cycles", r.cycles},
                               {"gm_rate", r.gm_rate},
                               {"hbm_bytes", r.hbm_bytes},
                               {"moved_bytes", r.moved_bytes},
                               {"cores_used", static_cast<double>(r.cores_used)}}) {
        lua_pushnumber(L, value);
        lua_setfield(L, -2, name);
    }
    for (auto [name, values] : {std::pair<const char*, const std::array<double, kPipes>*>{"busy", &r.busy},
                                {"instructions", &r.instructions}}) {
        lua_createtable(L, 0, kPipes);
        for (size_t p = 0; p < kPipes; ++p) {
            lua_pushnumber(L, (*values)[p]);
            lua_setfield(L, -2, name_of(static_cast<Pipe>(p)));
        }
        lua_setfield(L, -2, name);
    }
    lua_pushboolean(L, r.overflowed);
    lua_setfield(L, -2, "overflowed");
    push_faults(L, r.faults);
    lua_setfield(L, -2, "faults");
}

// Tensors of the kernel: { name =, tensor = (or bytes =), written = }. `held` keeps them.
std::vector<GlobalTensor> tensors_at(lua_State* L, int index, std::vector<Tensor>& held) {
    std::vector<GlobalTensor> tensors;
    for (lua_Integer i = 1; lua_rawgeti(L, index, i) != LUA_TNIL; ++i) {
        const int row = lua_gettop(L);
        lua_getfield(L, row, "name");
        const std::string name = luaL_checkstring(L, -1);
        lua_getfield(L, row, "written");
        const bool written = lua_toboolean(L, -1);
        lua_getfield(L, row, "tensor");
        if (lua_isnil(L, -1)) {
            tensors.emplace_back(name, nullptr, static_cast<int64_t>(number_of(L, row, "bytes", 0)), written);
        } else {
            Tensor t = check_tensor(L, -1, "ascend.kernel", name);
            if (t.device()) throw value_error("ascend.kernel", str(name, " must be in host memory"));
            if (!t.is_contiguous() && !written) throw value_error("ascend.kernel", str(name, " must be dense"));
            t = t.contiguous();
            tensors.emplace_back(name, static_cast<uint8_t*>(t.raw()), static_cast<int64_t>(t.nbytes()), written);
            held.push_back(std::move(t));
        }
        lua_settop(L, row - 1);
    }
    lua_pop(L, 1);
    return tensors;
}

// run(settings, tensors, programs): times, faults; the tensors hold the results. Then, by tensors, how many bytes were
// not written; and the argument of trace().
int run(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    const ChipSettings settings = settings_at(L, 1);
    std::vector<Tensor> held;
    std::vector<GlobalTensor> tensors = tensors_at(L, 2, held);
    const std::vector<const Program*> programs = programs_at(L, 3);
    for (const Program* program : programs)
        for (const Instruction& step : program->code)
            for (const Operand* o : {&step.dst, &step.a, &step.b, &step.c})
                if (o->space == Space::gm && static_cast<size_t>(o->tensor) >= std::max<size_t>(tensors.size(), 1))
                    throw value_error("ascend.kernel", str("there is no tensor ", o->tensor));
    if (programs.empty() || tensors.empty())
        throw value_error("ascend.kernel", "a kernel has at least one block and one tensor");
    ChipResult result = run_kernel(settings, programs, tensors);
    push_result(L, result);
    lua_newtable(L);
    for (size_t i = 0; i < tensors.size(); ++i) {
        lua_pushinteger(L, tensors[i].memory.count_unwritten());
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    push_handle(L, std::move(result.traces), kTraceHandle);
    return 3;
}

void push_types(lua_State* L, const std::vector<OutlinedTensor>& tensors) {
    lua_createtable(L, static_cast<int>(tensors.size()), 0);
    for (size_t i = 0; i < tensors.size(); ++i) {
        const OutlinedTensor& t = tensors[i];
        lua_createtable(L, t.shape.rank(), 6);
        for (int axis = 0; axis < t.shape.rank(); ++axis) {
            lua_pushinteger(L, t.shape[axis]);
            lua_rawseti(L, -2, axis + 1);
        }
        lua_pushinteger(L, t.id);
        lua_setfield(L, -2, "id");
        lua_pushinteger(L, t.argument);
        lua_setfield(L, -2, "argument");
        push(L, name_of(t.dtype));
        lua_setfield(L, -2, "dtype");
        lua_pushinteger(L, static_cast<lua_Integer>(size_of(t.dtype)));
        lua_setfield(L, -2, "width");
        if (t.layout != OutlinedTensor::Layout::dense) {
            constexpr const char* kLayouts[] = {"dense", "swapped", "broadcast", "permuted"};
            lua_pushstring(L, kLayouts[static_cast<int>(t.layout)]);
            lua_setfield(L, -2, "layout");
        }
        if (!t.parameter.empty()) {
            push(L, std::string_view(t.parameter));
            lua_setfield(L, -2, "parameter");
        }
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
}

void push_collective(lua_State* L, const OutlinedCall::Collective& c) {
    for (const auto& [name, text] : {std::pair<const char*, const std::string&>{"op", c.name}, {"axis", c.axis}}) {
        push(L, std::string_view(text));
        lua_setfield(L, -2, name);
    }
    for (auto [name, value] : {std::pair<const char*, int64_t>{"stride", c.stride}, {"size", c.size}}) {
        lua_pushinteger(L, value);
        lua_setfield(L, -2, name);
    }
    lua_pushnumber(L, c.bytes);
    lua_setfield(L, -2, "bytes");
}

}  // namespace

void push_calls(lua_State* L, std::span<const OutlinedCall> calls) {
    luaL_checkstack(L, 8, "too many results");
    lua_createtable(L, static_cast<int>(calls.size()), 0);
    for (size_t i = 0; i < calls.size(); ++i) {
        const OutlinedCall& call = calls[i];
        lua_createtable(L, 0, 8);
        if (call.kind == OutlinedCall::Kind::operation) {
            push(L, call.op->name());
            lua_setfield(L, -2, "op");
        } else {
            constexpr const char* kKinds[] = {"", "to_device", "to_host", "record", "wait", "collective"};
            lua_pushstring(L, kKinds[static_cast<int>(call.kind)]);
            lua_setfield(L, -2, "kind");
            if (call.kind == OutlinedCall::Kind::collective) push_collective(L, call.collective);
        }
        for (auto [name, value] : {std::pair<const char*, int64_t>{"stream", call.stream}, {"event", call.event}}) {
            lua_pushinteger(L, value);
            lua_setfield(L, -2, name);
        }
        push(L, std::string_view(call.place));
        lua_setfield(L, -2, "place");
        if (call.layer >= 0) {
            lua_pushinteger(L, call.layer);
            lua_setfield(L, -2, "layer");
        }
        lua_pushnumber(L, call.flops);
        lua_setfield(L, -2, "flops");
        for (auto [name, flag] : {std::pair<const char*, bool>{"elementwise", call.op && call.op->is_elementwise},
                                  {"on_cpu", call.on_cpu}}) {
            lua_pushboolean(L, flag);
            lua_setfield(L, -2, name);
        }
        push_types(L, call.inputs);
        lua_setfield(L, -2, "inputs");
        push_types(L, call.outputs);
        lua_setfield(L, -2, "outputs");
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
}

namespace {

// outline(f, arguments ...): the operators that f calls, none of which computes anything; then its results.
int outline(lua_State* L) {
    luaL_checkany(L, 1);
    std::vector<OutlinedCall> calls;
    {
        Outline outline(cpu::device(), cpu::fast_copy, [L] { return running_place(L); });
        lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
        calls = std::move(outline.calls);
    }
    push_calls(L, calls);
    lua_insert(L, 1);
    return lua_gettop(L);
}

// take_record(): the operators that ran on the device since the last call, the tensors that copies into another order
// made, and the number of operators that did not fit into the record.
int take_record(lua_State* L) {
    const Record record = ascend::take_record();
    push_calls(L, record.calls);
    lua_createtable(L, static_cast<int>(record.rearranged.size()), 0);
    for (size_t i = 0; i < record.rearranged.size(); ++i) {
        lua_pushinteger(L, record.rearranged[i]);
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    lua_pushinteger(L, record.left_out);
    return 3;
}

// set_stream(number): returns the previous one.
int set_stream(lua_State* L) {
    lua_pushinteger(L, ascend::set_stream(static_cast<int>(luaL_checkinteger(L, 1))));
    return 1;
}

// mark_event(stream, event, whether the stream waits for it).
int mark_event(lua_State* L) {
    ascend::mark_event(static_cast<int>(luaL_checkinteger(L, 1)), luaL_checkinteger(L, 2), lua_toboolean(L, 3));
    return 0;
}

int discard_record(lua_State*) {
    ascend::take_record();
    return 0;
}

constexpr std::array<const char*, 3> kLimits = {"memory_parameters", "memory_features", "memory_communication"};

// configure(settings of a chip): the device takes those that it has.
int configure(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    DeviceSettings settings;
    for (size_t part = 0; part < kLimits.size(); ++part) read(L, 1, kLimits[part], settings.memory[part]);
    read(L, 1, "saturate", settings.saturate);
    ascend::configure(settings);
    return 0;
}

// settings(): those of configure.
int settings(lua_State* L) {
    const DeviceSettings settings = ascend::settings();
    lua_createtable(L, 0, 4);
    for (size_t part = 0; part < kLimits.size(); ++part) {
        lua_pushinteger(L, settings.memory[part]);
        lua_setfield(L, -2, kLimits[part]);
    }
    lua_pushboolean(L, settings.saturate);
    lua_setfield(L, -2, "saturate");
    return 1;
}

// memory(): by parts, the bytes that tensors take and took at most.
int memory(lua_State* L) {
    const auto parts = memory_parts();
    lua_createtable(L, 0, 3);
    for (size_t part = 0; part < parts.size(); ++part) {
        lua_createtable(L, 0, 2);
        lua_pushinteger(L, parts[part].live);
        lua_setfield(L, -2, "live");
        lua_pushinteger(L, parts[part].peak);
        lua_setfield(L, -2, "peak");
        lua_setfield(L, -2, kMemoryParts[part]);
    }
    return 1;
}

// units(): by operators, the part of the chip that runs them.
int units(lua_State* L) {
    lua_newtable(L);
    for (const auto& op : registry().all()) {
        push(L, op->name());
        push(L, unit_of(*op));
        lua_rawset(L, -3);
    }
    return 1;
}

int take_overflow(lua_State* L) {
    lua_pushboolean(L, ascend::take_overflow());
    return 1;
}

}  // namespace

bool ascend_overflowed() { return has_places() && ascend::overflowed(); }

int open_ascend(lua_State* L) {
    make_handle_type(L, kTraceHandle, protect<release_handle<Traces>>);
    lua_createtable(L, 0, 21);
    bind_ascend_programs(L);
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"run", protect<run>},
                                  {"trace", protect<trace>},
                                  {"outline", protect<outline>},
                                  {"rank_step", protect<rank_step>},
                                  {"take_record", protect<take_record>},
                                  {"discard_record", protect<discard_record>},
                                  {"set_stream", protect<set_stream>},
                                  {"mark_event", protect<mark_event>},
                                  {"configure", protect<configure>},
                                  {"settings", protect<settings>},
                                  {"memory", protect<memory>},
                                  {"units", protect<units>},
                                  {"take_overflow", protect<take_overflow>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace lunaria
