// Laid-out tensors for programs: the module "lunaria.laid" behind lunaria/parallel/. Layouts have numbers there, which
// are what the operator lay_out takes.
#include "core/base/error.h"
#include "core/ops/lay_out.h"
#include "core/parallel/communicator.h"
#include "core/parallel/laid.h"
#include "core/parallel/traffic.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/bindings/parallel_layout.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "jit/graph/divided.h"
#include "jit/parallel/divided_forms.h"

namespace lunaria {

namespace {

Tensor in_layout(const Tensor& t, const Distribution& layout) {
    return parallel::tensor_of(parallel::in_layout(parallel::content(t), layout));
}

Tensor lay_out(const Tensor& t, int64_t number, const Tensor* other) {
    if (number) return in_layout(t, parallel::layout_numbered(number, t.shape()));
    const Distribution* layout = other ? parallel::layout_of(*other) : nullptr;
    if (layout) return in_layout(t, *layout->complete());
    if (!parallel::is_laid_out(t)) return t.to_host();
    return parallel::whole(parallel::content(t)).apart();
}

// The ranks of this process's stage of a pipeline, whose meshes count from 0; empty: all ranks are one stage.
std::vector<int>& stage() {
    static std::vector<int> ranks;
    return ranks;
}

// stage([ranks]): meshes are those of a stage with these ranks, or of all ranks.
int set_stage(lua_State* L) {
    std::vector<int> ranks;
    if (!lua_isnoneornil(L, 1)) {
        luaL_checktype(L, 1, LUA_TTABLE);
        for (lua_Integer i = 1; i <= luaL_len(L, 1); ++i) {
            lua_geti(L, 1, i);
            ranks.push_back(static_cast<int>(luaL_checkinteger(L, -1)));
            lua_pop(L, 1);
        }
    }
    stage() = std::move(ranks);
    return 0;
}

// The mesh on the ranks of the stage.
const parallel::Mesh& in_stage(const parallel::Mesh& mesh) {
    if (stage().empty() || !mesh.is_plain()) return mesh;
    if (mesh.count() > static_cast<int64_t>(stage().size()))
        throw value_error("mesh", str("has ", mesh.count(), " ranks, and a stage has ", stage().size()));
    return parallel::Mesh::of("mesh", mesh.sizes(), mesh.names(),
                              std::span<const int>(stage()).first(static_cast<size_t>(mesh.count())));
}

const Distribution& layout_of_texts(lua_State* L, int index) {
    const parallel::Mesh& mesh = in_stage(parallel::Mesh::parse("layout", luaL_checkstring(L, index)));
    return *Distribution::parse("layout", mesh, luaL_checkstring(L, index + 1)).first;
}

// number(mesh, layout): the number of a layout given as texts.
int device_number(lua_State* L) {
    lua_pushinteger(L, parallel::number_of(layout_of_texts(L, 1)));
    return 1;
}

// number_of(layout, rank, where, name): the number of a layout of ms.Layout for tensors with so many axes.
int number_of(lua_State* L) {
    const int rank = static_cast<int>(luaL_checkinteger(L, 2));
    const Distribution& layout = layout_at(L, 1, rank, luaL_checkstring(L, 3), luaL_checkstring(L, 4));
    const parallel::Mesh& mesh = in_stage(layout.mesh());
    lua_pushinteger(L, parallel::number_of(*Distribution::of(mesh, layout.cuts(), layout.partial(), layout.merge())));
    return 1;
}

// texts(tensor): the mesh and the layout, which is complete, as number() takes them; nothing: whole on every rank.
int texts(lua_State* L) {
    const Distribution* layout = parallel::layout_of(check_tensor(L, 1, "layout"));
    if (!layout) return 0;
    push(L, std::string_view(layout->mesh().text()));
    push(L, std::string_view(layout->complete()->text()));
    return 2;
}

// of_piece(piece, shape, mesh, layout): the laid-out tensor of which this rank has the piece; without a layout the
// piece is the whole.
int of_piece(lua_State* L) {
    const Tensor piece = check_tensor(L, 1, "layout").contiguous();
    if (lua_isnoneornil(L, 3)) {
        push(L, parallel::tensor_of(parallel::content(piece)));
        return 1;
    }
    luaL_checktype(L, 2, LUA_TTABLE);
    Shape shape;
    for (lua_Integer i = 1; i <= luaL_len(L, 2); ++i) {
        lua_geti(L, 2, i);
        shape.push_back(luaL_checkinteger(L, -1));
        lua_pop(L, 1);
    }
    push(L, parallel::tensor_of({&layout_of_texts(L, 3), piece.dtype(), shape, {piece}}));
    return 1;
}

// ranks(): the number of processes that tensors can be laid out on: all, or those of the stage.
int ranks(lua_State* L) {
    const parallel::Communicator* all = parallel::world();
    lua_pushinteger(L, !stage().empty() ? static_cast<int64_t>(stage().size()) : all ? all->ranks() : 1);
    return 1;
}

// everywhere(tensor): the tensor, whole on every rank of any mesh.
int everywhere(lua_State* L) {
    push(L, parallel::tensor_of(parallel::content(check_tensor(L, 1, "distribute"))));
    return 1;
}

int is_layout_at(lua_State* L) {
    lua_pushboolean(L, is_layout(L, 1));
    return 1;
}

int is_laid_out(lua_State* L) {
    const Tensor* t = tensor_at(L, 1);
    lua_pushboolean(L, t && parallel::is_laid_out(*t));
    return 1;
}

int is_device_parameter(lua_State* L) {
    const Tensor* t = tensor_at(L, 1);
    lua_pushboolean(L, t && t->parameter());
    return 1;
}

// pieces(tensor): a list of the pieces that this process holds.
int pieces(lua_State* L) {
    const parallel::Laid laid = parallel::content(check_tensor(L, 1, "pieces"));
    lua_createtable(L, static_cast<int>(laid.pieces.size()), 0);
    lua_Integer n = 0;
    for (const Tensor& piece : laid.pieces) {
        push(L, piece.apart());
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

// become(tensor, other): the tensor itself, for all its handles, gets the content and layout of the other.
int become(lua_State* L) {
    const Tensor other = check_tensor(L, 2, "distribute");
    check_tensor(L, 1, "distribute");
    reinterpret_cast<Tensor&>(*tensor_place(L, 1)).become(other);
    lua_settop(L, 1);
    return 1;
}

// movements(): a list of tables
int movements(lua_State* L) {
    lua_createtable(L, 0, 0);
    lua_Integer n = 0;
    for (const parallel::MovementTotal& m : parallel::movements()) {
        lua_createtable(L, 0, 10);
        const std::pair<const char*, const std::string*> texts[] = {
            {"place", &m.place}, {"operator", &m.operation}, {"operand", &m.operand}, {"from", &m.from},
            {"to", &m.to},       {"path", &m.path},          {"why", &m.why}};
        for (auto [name, value] : texts) {
            push(L, std::string_view(*value));
            lua_setfield(L, -2, name);
        }
        lua_pushinteger(L, m.calls);
        lua_setfield(L, -2, "calls");
        lua_pushinteger(L, m.bytes);
        lua_setfield(L, -2, "bytes");
        lua_pushboolean(L, m.is_implicit);
        lua_setfield(L, -2, "implicit");
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

int forget(lua_State*) {
    parallel::forget_movements();
    return 0;
}

// on_reshard([mode]): the mode before
int on_reshard(lua_State* L) {
    const char* const modes[] = {"silent", "warn", "error", nullptr};
    push(L, std::string_view(modes[static_cast<int>(parallel::on_reshard())]));
    if (!lua_isnoneornil(L, 1))
        parallel::set_on_reshard(static_cast<parallel::OnReshard>(luaL_checkoption(L, 1, nullptr, modes)));
    return 1;
}

}  // namespace

int open_laid(lua_State* L) {
    set_lay_out(lay_out);
    graph::set_make_divided(parallel::make_divided);
    constexpr std::pair<const char*, lua_CFunction> kFunctions[] = {
        {"number", protect<device_number>},
        {"pieces", protect<pieces>},
        {"become", protect<become>},
        {"movements", protect<movements>},
        {"forget", protect<forget>},
        {"on_reshard", protect<on_reshard>},
        {"number_of", protect<number_of>},
        {"texts", protect<texts>},
        {"of_piece", protect<of_piece>},
        {"stage", protect<set_stage>},
        {"is_layout", protect<is_layout_at>},
        {"ranks", protect<ranks>},
        {"everywhere", protect<everywhere>},
        {"is_laid_out", protect<is_laid_out>},
        {"is_parameter", protect<is_device_parameter>},
    };
    lua_createtable(L, 0, static_cast<int>(std::size(kFunctions)));
    for (auto [name, function] : kFunctions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace lunaria
