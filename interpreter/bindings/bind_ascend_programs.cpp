// The functions with which lunaria/ascend/tile.lua writes programs. Buffers are values of their own, and each
// instruction is one call: a kernel has millions of them. Addresses count in elements there and in bytes here.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "interpreter/bindings/ascend_programs.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

using namespace ascend;

constexpr const char* kWhere = "ascend.kernel";

constexpr const char* kBufferHandle = "lunaria.ascend.buffer";

// A part of a buffer of the core or of a tensor of the kernel. The user value of a tensor is a table with further facts
// about it.
struct Buffer {
    Space space = Space::ub;
    DType type = DType::f16;
    int32_t tensor = 0;
    int64_t address = 0;  // in bytes
    int64_t count = 0;    // elements

    int64_t width() const { return static_cast<int64_t>(size_of(type)); }
    Operand operand(int64_t later = 0) const {
        const int64_t first = address + later * width();
        if (first < -kMostAddress || first >= kMostAddress) throw value_error(kWhere, "an address is too large");
        return {space, tensor, first};
    }
};

int32_t add_place(WrittenProgram& written, const std::string& place) {
    const auto [entry, fresh] = written.places.try_emplace(place, static_cast<int32_t>(written.places.size()));
    if (fresh) written.program.places.push_back(place);
    return entry->second;
}

// The running line of the user's program, as a number of the program's places. Asked for each instruction, so that a
// line that occurred before costs no text.
int32_t place_here(lua_State* L, WrittenProgram& written) {
    LuaHost* host = LuaHost::existing(L);
    if (host && host->machine().is_running()) return add_place(written, running_place(L));
    lua_Debug frame;
    for (int level = 1; lua_getstack(L, level, &frame); ++level) {
        // Lua searches for the line; the source is at hand.
        lua_getinfo(L, "S", &frame);
        if (*frame.what == 'C' || std::string_view(frame.source, frame.srclen).starts_with(kLibraryChunks)) continue;
        lua_getinfo(L, "l", &frame);
        if (frame.currentline <= 0) continue;
        const auto [entry, fresh] = written.lines.try_emplace({frame.source, frame.currentline}, 0);
        if (fresh) entry->second = add_place(written, running_place(L));
        return entry->second;
    }
    return add_place(written, running_place(L));
}

// The functions below have the types of programs and of buffers as upvalues: their names would be looked up for every
// instruction.
bool has_type(lua_State* L, int index, int type) {
    if (lua_type(L, index) != LUA_TUSERDATA || !lua_getmetatable(L, index)) return false;
    const bool same = lua_rawequal(L, -1, lua_upvalueindex(type));
    lua_pop(L, 1);
    return same;
}

WrittenProgram& program_at(lua_State* L, int index) {
    auto* written = static_cast<WrittenProgram*>(lua_touserdata(L, index));
    if (!written || !has_type(L, index, 1)) throw value_error(kWhere, "a program is expected");
    return *written;
}

const Buffer* buffer_or_null(lua_State* L, int index) {
    auto* buffer = static_cast<const Buffer*>(lua_touserdata(L, index));
    return buffer && has_type(L, index, 2) ? buffer : nullptr;
}

const Buffer& buffer_at(lua_State* L, int index, std::string_view what) {
    if (const Buffer* buffer = buffer_or_null(L, index)) return *buffer;
    throw value_error(kWhere, str(what, " must be a buffer or a tensor of the kernel, got ", luaL_typename(L, index)));
}

int64_t between(lua_State* L, int index, int64_t least, int64_t most) {
    int is_integer = 0;
    const lua_Integer n = lua_tointegerx(L, index, &is_integer);
    if (!is_integer)
        throw value_error(kWhere, str("an integer is expected, got ",
                                      lua_isnone(L, index) ? "nothing" : luaL_tolstring(L, index, nullptr)));
    if (n < least || n > most)
        throw value_error(kWhere, str("a number from ", least, " to ", most, " is expected, got ", n));
    return n;
}

template <class T>
T named(lua_State* L, int index, T last) {
    return static_cast<T>(between(L, index, 0, static_cast<int64_t>(last)));
}

constexpr int64_t kMost = int64_t{1} << 30;
constexpr int64_t kMostBursts = 65535;
int32_t number_at(lua_State* L, int index) { return static_cast<int32_t>(between(L, index, -kMost, kMost)); }
int64_t number_or(lua_State* L, int index, int64_t otherwise) {
    return lua_isnoneornil(L, index) ? otherwise : between(L, index, -kMost, kMost);
}
int32_t checked(int64_t n) {
    if (n < -kMost || n > kMost) throw value_error(kWhere, str("the number ", n, " is too large for an instruction"));
    return static_cast<int32_t>(n);
}

void finish(lua_State* L, WrittenProgram& written, Instruction& i) {
    i.place = place_here(L, written);
    written.program.code.push_back(i);
}

int new_program(lua_State* L) {
    WrittenProgram written;
    written.program.name = luaL_checkstring(L, 1);
    push_handle(L, std::move(written), kAscendProgramHandle);
    return 1;
}

// The type is the second upvalue of the running function; the user value is that at `extra`, or nothing.
void push_buffer(lua_State* L, const Buffer& buffer, int extra) {
    if (extra)
        lua_pushvalue(L, extra);
    else
        lua_pushnil(L);
    new (lua_newuserdatauv(L, sizeof(Buffer), 1)) Buffer(buffer);
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_setmetatable(L, -2);
}

constexpr DType kTypes[] = {DType::f16, DType::f32, DType::i32, DType::i16, DType::u8, DType::i8};

DType type_at(lua_State* L, int index, const char* who) {
    const std::string_view name = luaL_checkstring(L, index);
    for (DType type : kTypes)
        if (lunaria::name_of(type) == name) return type;
    throw value_error(kWhere, str(who, " float16, float32, int32, int16, int8 or uint8, not ", name));
}

// buffer(space, type, address in bytes, count): a new one.
int new_buffer(lua_State* L) {
    push_buffer(L,
                {named(L, 1, Space::ub), type_at(L, 2, "buffers hold"), 0, between(L, 3, 0, int64_t{1} << 40),
                 between(L, 4, 1, int64_t{1} << 40)},
                0);
    return 1;
}

// tensor(number, type, count, table): a tensor of the kernel; the table holds further facts about it.
int new_tensor(lua_State* L) {
    const auto number = static_cast<int32_t>(between(L, 1, 0, kMostTensors - 1));
    luaL_checktype(L, 4, LUA_TTABLE);
    push_buffer(L, {Space::gm, type_at(L, 2, "kernels work on"), number, 0, luaL_checkinteger(L, 3)}, 4);
    return 1;
}

// buffer:at(elements [, count]): the part that begins so many elements later.
int buffer_later(lua_State* L) {
    Buffer part = buffer_at(L, 1, "what :at is called of");
    const int64_t elements = between(L, 2, -kMostAddress, kMostAddress);
    part.address += elements * part.width();
    part.count = lua_isnoneornil(L, 3) ? part.count - elements : between(L, 3, -kMostAddress, kMostAddress);
    lua_getiuservalue(L, 1, 1);
    push_buffer(L, part, lua_gettop(L));
    return 1;
}

// buffer:as(type): the same bytes as elements of another type.
int buffer_as(lua_State* L) {
    Buffer same = buffer_at(L, 1, "what :as is called of");
    const int64_t bytes = same.count * same.width();
    luaL_tolstring(L, 2, nullptr);
    std::string name = lua_tostring(L, -1);
    std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
    push(L, std::string_view(name));
    same.type = type_at(L, lua_gettop(L), "buffers hold");
    same.count = bytes / same.width();
    lua_getiuservalue(L, 1, 1);
    push_buffer(L, same, lua_gettop(L));
    return 1;
}

// Upvalue 3: the methods.
int buffer_index(lua_State* L) {
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(3)) != LUA_TNIL) return 1;
    const Buffer& buffer = buffer_at(L, 1, "the buffer");
    const std::string_view key = lua_isstring(L, 2) ? lua_tostring(L, 2) : "";
    if (key == "count") {
        lua_pushinteger(L, buffer.count);
    } else if (key == "dtype") {
        push(L, lunaria::name_of(buffer.type));
    } else if (key == "width") {
        lua_pushinteger(L, buffer.width());
    } else if (key == "address") {
        lua_pushinteger(L, buffer.address);
    } else if (key == "space") {
        lua_pushstring(L, ascend::name_of(buffer.space));
    } else if (lua_getiuservalue(L, 1, 1) == LUA_TTABLE) {
        lua_pushvalue(L, 2);
        lua_rawget(L, -2);
    } else {
        lua_pushnil(L);
    }
    return 1;
}

// Notes of a program about a tensor.
int buffer_newindex(lua_State* L) {
    buffer_at(L, 1, "the buffer");
    if (lua_getiuservalue(L, 1, 1) != LUA_TTABLE) {
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_setiuservalue(L, 1, 1);
    }
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_rawset(L, -3);
    return 0;
}

int buffer_tostring(lua_State* L) {
    const Buffer& buffer = buffer_at(L, 1, "the buffer");
    push(L, std::string_view(str(lunaria::name_of(buffer.type), "[", buffer.count, "] of ",
                                 ascend::name_of(buffer.space), " at byte ", buffer.address)));
    return 1;
}

// Checks the buffers in an instruction of the cube; b: the type of its right operand.
void check_cube(const Instruction& i, DType b) {
    auto require = [](bool holds, const char* text) {
        if (!holds) throw value_error(kWhere, text);
    };
    const bool half = i.type == DType::f16 && i.to == DType::f32, small = i.type == DType::i8 && i.to == DType::i32;
    switch (i.op) {
        case Opcode::load2d:
        case Opcode::load3d:
            require(i.dst.space == Space::l0a || i.dst.space == Space::l0b, i.op == Opcode::load2d
                                                                                ? "load2d moves from L1 to L0A or L0B"
                                                                                : "load3d moves from L1 to L0A or L0B");
            break;
        case Opcode::mmad:
            require(i.dst.space == Space::l0c && i.a.space == Space::l0a && i.b.space == Space::l0b,
                    "mmad needs c in L0C, a in L0A and b in L0B");
            require(i.type == b && (half || small),
                    "mmad multiplies float16 and adds in float32, or multiplies int8 and adds in int32");
            break;
        case Opcode::drain:
            require(i.dst.space == Space::ub && i.a.space == Space::l0c, "drain moves from L0C to UB");
            break;
        default:
            break;
    }
}

// emit(program, op, pipe, kind, dst, a, b, c, number, register, n ...); operands that an instruction does not have are
// nil.
int emit(lua_State* L) {
    WrittenProgram& written = program_at(L, 1);
    Instruction i;
    i.op = named(L, 2, Opcode::barrier);
    i.pipe = named(L, 3, Pipe::mte3);
    i.kind = named(L, 4, Arithmetic::pair);
    constexpr std::pair<const char*, Operand Instruction::*> kOperands[] = {
        {"dst", &Instruction::dst}, {"a", &Instruction::a}, {"b", &Instruction::b}, {"c", &Instruction::c}};
    std::array<const Buffer*, 4> given{};
    for (int k = 0; k < 4; ++k) {
        if (lua_isnil(L, 5 + k)) continue;
        const auto& [name, operand] = kOperands[static_cast<size_t>(k)];
        given[static_cast<size_t>(k)] = buffer_or_null(L, 5 + k);
        if (!given[static_cast<size_t>(k)]) buffer_at(L, 5 + k, str(name, " of ", ascend::name_of(i)));
        i.*operand = given[static_cast<size_t>(k)]->operand();
    }
    i.type = given[1] ? given[1]->type : DType::f16;
    i.to = given[0] ? given[0]->type : i.type;
    i.number = static_cast<float>(luaL_checknumber(L, 9));
    i.reg = static_cast<int8_t>(between(L, 10, -1, 31));
    const int count = lua_gettop(L) - 10;
    if (i.op == Opcode::load3d) {
        Window window{};
        for (int n = 0; n < std::min<int>(count, kWindowNumbers); ++n)
            window[static_cast<size_t>(n)] = number_at(L, 11 + n);
        i.n[0] = static_cast<int32_t>(written.program.windows.size());
        written.program.windows.push_back(window);
    } else {
        for (int n = 0; n < std::min<int>(count, static_cast<int>(i.n.size())); ++n)
            i.n[static_cast<size_t>(n)] = number_at(L, 11 + n);
    }
    if (i.op == Opcode::scalar_op) {
        between(L, 11, 0, 31);
        between(L, 12, -1, 31);
    }
    if (i.op == Opcode::set_flag || i.op == Opcode::wait_flag) throw value_error(kWhere, "flags are written by flag");
    if (i.op == Opcode::barrier) between(L, 11, -1, kPipes - 1);
    check_cube(i, given[2] ? given[2]->type : i.type);
    finish(L, written, i);
    return 0;
}

// flag(program, 1: set, 2: wait or 3: both, from, to, number)
int flag(lua_State* L) {
    WrittenProgram& written = program_at(L, 1);
    const int64_t which = between(L, 2, 1, 3);
    Instruction i;
    i.n[0] = static_cast<int32_t>(between(L, 3, 0, kPipes - 1));
    i.n[1] = static_cast<int32_t>(between(L, 4, 0, kPipes - 1));
    i.n[2] = static_cast<int32_t>(between(L, 5, 0, 15));
    i.place = place_here(L, written);
    for (int64_t step = 1; step <= 2; ++step) {
        if (!(which & step)) continue;
        i.op = step == 1 ? Opcode::set_flag : Opcode::wait_flag;
        i.pipe = static_cast<Pipe>(i.n[step == 1 ? 0 : 1]);
        written.program.code.push_back(i);
    }
    return 0;
}

enum class Way : uint8_t { load, store, copy };

Pipe pipe_of(Way way, const Buffer& dst, const Buffer& src) {
    if (way == Way::load) {
        if (src.space != Space::gm || dst.space == Space::gm)
            throw value_error(kWhere, "load moves from a tensor of the kernel to a buffer");
        return Pipe::mte2;
    }
    if (way == Way::store) {
        if (dst.space != Space::gm || src.space != Space::ub)
            throw value_error(kWhere, "store moves from UB to a tensor of the kernel");
        return Pipe::mte3;
    }
    if (src.space == Space::ub && dst.space == Space::ub) return Pipe::v;
    if (src.space == Space::ub && dst.space == Space::l1) return Pipe::mte3;
    if (src.space == Space::l1 && dst.space == Space::ub) return Pipe::mte1;
    throw value_error(kWhere,
                      str("copy has no way from ", ascend::name_of(src.space), " to ", ascend::name_of(dst.space)));
}

// move(program, way, dst, src, count, bursts, elements of a burst, strides of the source and of the destination, a
// register and by how many elements the tensor's part begins later for each unit of it); all but the operands may be
// nil.
int move(lua_State* L) {
    constexpr const char* kNames[] = {"load", "store", "copy"};
    WrittenProgram& written = program_at(L, 1);
    const Way way = named(L, 2, Way::copy);
    const char* name = kNames[static_cast<size_t>(way)];
    const Buffer *dst = buffer_or_null(L, 3), *src = buffer_or_null(L, 4);
    if (!dst) buffer_at(L, 3, str("the destination of ", name));
    if (!src) buffer_at(L, 4, str("the source of ", name));
    Instruction i;
    i.op = Opcode::move;
    i.pipe = pipe_of(way, *dst, *src);
    i.type = src->type;
    i.to = dst->type;
    i.dst = dst->operand();
    i.a = src->operand();
    const int64_t count = number_or(L, 5, std::min(dst->count, src->count)), burst = number_or(L, 7, count);
    const int64_t bursts = number_or(L, 6, 1);
    if (bursts > kMostBursts)
        throw value_error(kWhere, str("a move has at most ", kMostBursts, " bursts, got ", bursts));
    i.n[0] = static_cast<int32_t>(bursts);
    i.n[1] = checked(burst * src->width());
    i.n[2] = checked(number_or(L, 8, burst) * src->width());
    i.n[3] = checked(number_or(L, 9, burst) * dst->width());
    if (!lua_isnoneornil(L, 10)) {
        if (way == Way::copy) throw value_error(kWhere, "copy takes no register: it moves between buffers");
        i.reg = static_cast<int8_t>(between(L, 10, 0, 31));
        i.n[4] = checked(number_or(L, 11, 1) * (way == Way::load ? src : dst)->width());
    }
    finish(L, written, i);
    return 0;
}

struct VectorOperands {
    const Buffer *dst, *a, *b;
};

// The beginning of an instruction of the vector pipe: (program, op, kind, dst, a, b, number, register ...).
VectorOperands vector_operands(lua_State* L, Instruction& i) {
    i.op = named(L, 2, Opcode::transpose);
    i.pipe = Pipe::v;
    i.kind = named(L, 3, Arithmetic::pair);
    VectorOperands given{buffer_or_null(L, 4), buffer_or_null(L, 5), buffer_or_null(L, 6)};
    if (!given.dst) buffer_at(L, 4, str("dst of ", ascend::name_of(i)));
    if (!given.a) buffer_at(L, 5, str("a of ", ascend::name_of(i)));
    if (!given.b && !lua_isnil(L, 6)) buffer_at(L, 6, str("b of ", ascend::name_of(i)));
    int number = 1;
    for (const Buffer* operand : {given.dst, given.a, given.b}) {
        if (operand && operand->space != Space::ub)
            throw value_error(kWhere, str("operand ", number, " of ", ascend::name_of(i), " must be in UB"));
        ++number;
    }
    i.type = given.a->type;
    i.to = given.dst->type;
    i.number = lua_isnil(L, 7) ? 0.0f : static_cast<float>(luaL_checknumber(L, 7));
    i.reg = lua_isnil(L, 8) ? int8_t{-1} : static_cast<int8_t>(between(L, 8, -1, 31));
    return given;
}

void set_operands(Instruction& i, const VectorOperands& given, int64_t later) {
    i.dst = given.dst->operand(later);
    i.a = given.a->operand(later);
    if (given.b) i.b = given.b->operand(later);
}

// vector(..., count): as many elements as `count` says or the destination has, by whole repeats and a last shorter one.
int vector(lua_State* L) {
    WrittenProgram& written = program_at(L, 1);
    Instruction i;
    const VectorOperands given = vector_operands(L, i);
    const int64_t dst_width = given.dst->width(), a_width = given.a->width(), b_width = given.b ? given.b->width() : 2;
    const int64_t lanes = 256 / std::max(dst_width, a_width);
    const int64_t count = number_or(L, 9, std::min(given.dst->count, kMost));
    i.place = place_here(L, written);
    int64_t done = 0;
    while (count - done >= lanes) {
        const int64_t repeats = std::min<int64_t>(255, (count - done) / lanes);
        set_operands(i, given, done);
        i.n = {static_cast<int32_t>(repeats), static_cast<int32_t>(lanes), static_cast<int32_t>(lanes * dst_width / 32),
               static_cast<int32_t>(lanes * a_width / 32), static_cast<int32_t>(lanes * b_width / 32)};
        written.program.code.push_back(i);
        done += repeats * lanes;
    }
    if (done < count) {
        set_operands(i, given, done);
        i.n = {1, static_cast<int32_t>(count - done), 8, 8, 8};
        written.program.code.push_back(i);
    }
    return 0;
}

// repeats(..., repeats, lanes, strides of dst, a and b): one instruction; strides count elements between repeats.
int repeats(lua_State* L) {
    WrittenProgram& written = program_at(L, 1);
    Instruction i;
    const VectorOperands given = vector_operands(L, i);
    const int64_t count = number_or(L, 9, 1);
    const int64_t lanes = number_or(L, 10, 256 / std::max(given.dst->width(), given.a->width()));
    auto blocks = [&](int index, const Buffer* buffer) {
        if (count == 1) return 8;
        const int64_t bytes = number_or(L, index, lanes) * (buffer ? buffer->width() : 2);
        if (bytes % 32 != 0)
            throw value_error(kWhere, str(ascend::name_of(i), ": a stride of ", bytes, " bytes is no multiple of 32"));
        return checked(bytes / 32);
    };
    set_operands(i, given, 0);
    i.n = {checked(count), checked(lanes), blocks(11, given.dst), blocks(12, given.a), blocks(13, given.b)};
    finish(L, written, i);
    return 0;
}

void add_functions(lua_State* L, int into, int program, int buffer,
                   std::initializer_list<std::pair<const char*, lua_CFunction>> functions) {
    for (auto [name, function] : functions) {
        lua_pushvalue(L, program);
        lua_pushvalue(L, buffer);
        lua_pushcclosure(L, function, 2);
        lua_setfield(L, into, name);
    }
}

}  // namespace

void bind_ascend_programs(lua_State* L) {
    const int module = lua_gettop(L);
    make_handle_type(L, kAscendProgramHandle, protect<release_handle<WrittenProgram>>);
    luaL_getmetatable(L, kAscendProgramHandle);
    const int program = lua_gettop(L);
    luaL_newmetatable(L, kBufferHandle);
    const int buffer = lua_gettop(L);
    lua_pushstring(L, "buffer");
    lua_setfield(L, buffer, "__name");
    lua_pushboolean(L, 0);
    lua_setfield(L, buffer, "__metatable");
    add_functions(L, buffer, program, buffer,
                  {{"__newindex", protect<buffer_newindex>}, {"__tostring", protect<buffer_tostring>}});
    lua_pushvalue(L, program);
    lua_pushvalue(L, buffer);
    lua_createtable(L, 0, 2);
    add_functions(L, lua_gettop(L), program, buffer, {{"at", protect<buffer_later>}, {"as", protect<buffer_as>}});
    lua_pushcclosure(L, protect<buffer_index>, 3);
    lua_setfield(L, buffer, "__index");
    add_functions(L, module, program, buffer,
                  {{"program", protect<new_program>},
                   {"buffer", protect<new_buffer>},
                   {"tensor", protect<new_tensor>},
                   {"emit", protect<emit>},
                   {"flag", protect<flag>},
                   {"move", protect<move>},
                   {"vector", protect<vector>},
                   {"repeats", protect<repeats>}});
    lua_settop(L, module);
}

}  // namespace lunaria
