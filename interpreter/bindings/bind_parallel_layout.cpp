// The module behind lunaria/parallel/mesh.lua: meshes, layouts, and tensors moved from one to another.
#include <algorithm>
#include <atomic>

#include "core/base/error.h"
#include "core/parallel/communicator.h"
#include "core/parallel/redistribution.h"
#include "core/parallel/simulated.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/bindings/parallel_layout.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"

namespace lunaria {

using parallel::AxisSet;
using parallel::Mesh;

namespace {

constexpr const char* kMesh = "lunaria.mesh";
constexpr const char* kLayout = "lunaria.layout";

// Meshes and layouts last to the end of the process: their handles need no finalizer.
struct MeshHandle {
    const Mesh* mesh;
};
struct LayoutHandle {
    const Distribution* layout;
    bool has_shape;
    Shape shape;  // of the tensor that it is asked of
};

const MeshHandle* mesh_handle(lua_State* L, int index) {
    return static_cast<const MeshHandle*>(luaL_testudata(L, index, kMesh));
}
const LayoutHandle* layout_handle(lua_State* L, int index) {
    return static_cast<const LayoutHandle*>(luaL_testudata(L, index, kLayout));
}

const Mesh& mesh_at(lua_State* L, int index, std::string_view where) {
    const MeshHandle* handle = mesh_handle(L, index);
    if (!handle) throw argument_error(where, str("a mesh is expected, got ", describe(L, index)));
    return *handle->mesh;
}

template <class List, class Push>
void push_layout_list(lua_State* L, const List& list, const Push& push_one) {
    lua_createtable(L, static_cast<int>(list.size()), 0);
    lua_Integer i = 0;
    for (const auto& one : list) {
        push_one(one);
        lua_rawseti(L, -2, ++i);
    }
}

void push_integers(lua_State* L, std::span<const int64_t> list) {
    push_layout_list(L, list, [&](int64_t n) { lua_pushinteger(L, n); });
}

void push_names(lua_State* L, std::span<const std::string> list) {
    push_layout_list(L, list, [&](const std::string& name) { push(L, std::string_view(name)); });
}

std::vector<int64_t> ranks_of(const Mesh& mesh) {
    std::vector<int64_t> ranks;
    for (int64_t p = 0; p < mesh.count(); ++p) ranks.push_back(mesh.rank(p));
    return ranks;
}

void set(lua_State* L, const char* name, int64_t value) {
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}
void set(lua_State* L, const char* name, double value) {
    lua_pushnumber(L, value);
    lua_setfield(L, -2, name);
}
void set(lua_State* L, const char* name, std::string_view value) {
    push(L, value);
    lua_setfield(L, -2, name);
}

// Meshes

std::string name_at(lua_State* L, int index, std::string_view where) {
    if (lua_type(L, index) != LUA_TSTRING)
        throw argument_error(where, str("the name of an axis of the mesh is expected, got ", describe(L, index)));
    return lua_tostring(L, index);
}

// mesh(where, sizes, names, ranks or nil)
int make_mesh(lua_State* L) {
    const std::string where = luaL_checkstring(L, 1);
    const std::vector<int64_t> sizes = integers_at(L, 2, where, "sizes");
    std::vector<std::string> names;
    if (!lua_istable(L, 3)) throw argument_error(where, str("names must be a list of texts, got ", describe(L, 3)));
    for (lua_Integer i = 1; i <= luaL_len(L, 3); ++i) {
        lua_geti(L, 3, i);
        names.push_back(name_at(L, -1, where));
        lua_pop(L, 1);
    }
    std::vector<int> ranks;
    if (!lua_isnoneornil(L, 4))
        for (int64_t rank : integers_at(L, 4, where, "ranks"))
            ranks.push_back(static_cast<int>(std::clamp<int64_t>(rank, -1, INT32_MAX)));
    if (sizes.empty()) throw argument_error(where, "a mesh has at least one axis");
    push_mesh(L, Mesh::of(where, sizes, names, ranks));
    return 1;
}

// The mesh axes at `index`: a name, a list of names, major to minor, or nothing (nil, false, "None").
std::vector<int> axes_at(lua_State* L, int index, const Mesh& mesh) {
    std::vector<int> axes;
    if (lua_isnil(L, index) || (lua_isboolean(L, index) && !lua_toboolean(L, index))) return axes;
    if (!lua_istable(L, index)) {
        const std::string name = name_at(L, index, "layout");
        if (name != "None") axes.push_back(mesh.axis("layout", name));
        return axes;
    }
    for (lua_Integer i = 1; i <= luaL_len(L, index); ++i) {
        lua_geti(L, index, i);
        axes.push_back(mesh.axis("layout", name_at(L, -1, "layout")));
        lua_pop(L, 1);
    }
    return axes;
}

void push_unsized(lua_State* L, const Distribution& layout);

// mesh("dp", nil, { "tp", "sp" }): a layout
int call_mesh(lua_State* L) {
    const Mesh& mesh = mesh_at(L, 1, "layout");
    if (lua_gettop(L) - 1 > kMaxRank)
        throw argument_error("layout", str("a tensor has at most ", kMaxRank, " axes, got ", lua_gettop(L) - 1));
    Distribution::Cuts cuts;
    for (int i = 2; i <= lua_gettop(L); ++i) cuts.push_back(axes_at(L, i, mesh));
    push_unsized(L, *Distribution::of(mesh, cuts));
    return 1;
}

int mesh_text(lua_State* L) {
    push(L, std::string_view(str("Mesh(", mesh_at(L, 1, "tostring").text(), ")")));
    return 1;
}

int mesh_equal(lua_State* L) {
    const MeshHandle *a = mesh_handle(L, 1), *b = mesh_handle(L, 2);
    lua_pushboolean(L, a && b && a->mesh == b->mesh);
    return 1;
}

template <class Object>
struct Field {
    std::string_view name;
    void (*push)(lua_State*, const Object&);
};
// Pushes the field that the key at 2 names; false: there is none.
template <class Object>
bool push_field(lua_State* L, std::span<const Field<Object>> fields, const Object& object) {
    if (lua_type(L, 2) != LUA_TSTRING) return false;
    for (const Field<Object>& field : fields)
        if (field.name == lua_tostring(L, 2)) {
            field.push(L, object);
            return true;
        }
    return false;
}

int mesh_field(lua_State* L) {
    static constexpr Field<Mesh> kFields[] = {
        {"shape", [](lua_State* l, const Mesh& m) { push_integers(l, m.sizes()); }},
        {"names", [](lua_State* l, const Mesh& m) { push_names(l, m.names()); }},
        {"ranks", [](lua_State* l, const Mesh& m) { push_integers(l, ranks_of(m)); }},
        {"size", [](lua_State* l, const Mesh& m) { lua_pushinteger(l, m.count()); }},
    };
    if (!push_field<Mesh>(L, kFields, mesh_at(L, 1, "mesh")))
        throw argument_error("mesh", str("a mesh has no such field: ", describe(L, 2)))
            .hint("it has shape, names, ranks and size; call it to get a layout: mesh(\"dp\", nil)");
    return 1;
}

// Layouts

void push_layout_handle(lua_State* L, LayoutHandle handle);

void push_unsized(lua_State* L, const Distribution& layout) { push_layout_handle(L, {&layout, false, {}}); }

const LayoutHandle& check_layout(lua_State* L, int index, std::string_view where) {
    const LayoutHandle* handle = layout_handle(L, index);
    if (!handle) throw argument_error(where, str("a layout is expected, got ", describe(L, index)));
    return *handle;
}

int layout_text(lua_State* L) {
    const LayoutHandle& handle = check_layout(L, 1, "tostring");
    push(L, std::string_view(handle.has_shape ? handle.layout->text(handle.shape) : handle.layout->text()));
    return 1;
}

int layout_equal(lua_State* L) {
    const LayoutHandle *a = layout_handle(L, 1), *b = layout_handle(L, 2);
    lua_pushboolean(L, a && b && a->layout == b->layout);
    return 1;
}

std::vector<std::string> names_of(const Mesh& mesh, std::span<const int> axes) {
    std::vector<std::string> names;
    for (int axis : axes) names.push_back(mesh.name(axis));
    return names;
}

std::vector<std::string> names_in(const Mesh& mesh, AxisSet set) {
    std::vector<std::string> names;
    for (int a = 0; a < mesh.axes(); ++a)
        if (parallel::has_axis(set, a)) names.push_back(mesh.name(a));
    return names;
}

// layout:to_dict(): MindSpore's form, where the numbers of mesh axes count from the last one and -1 is none.
int layout_to_dict(lua_State* L) {
    const Distribution& layout = *check_layout(L, 1, "to_dict").layout;
    const Mesh& mesh = layout.mesh();
    lua_createtable(L, 0, 5);
    push_integers(L, mesh.sizes());
    lua_setfield(L, -2, "device_matrix");
    push_layout_list(L, layout.cuts(), [&](const std::vector<int>& axes) {
        const auto number = [&](int axis) { return static_cast<lua_Integer>(mesh.axes() - 1 - axis); };
        if (axes.size() > 1)
            push_layout_list(L, axes, [&](int axis) { lua_pushinteger(L, number(axis)); });
        else
            lua_pushinteger(L, axes.empty() ? -1 : number(axes[0]));
    });
    lua_setfield(L, -2, "tensor_map");
    push_names(L, mesh.names());
    lua_setfield(L, -2, "alias_name");
    push_integers(L, ranks_of(mesh));
    lua_setfield(L, -2, "rank_list");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "interleaved_parallel");
    return 1;
}

// layout:piece(position, shape or nil): offsets and sizes of the part of a tensor of this shape that the position
// holds.
int layout_piece(lua_State* L) {
    const LayoutHandle& handle = check_layout(L, 1, "piece");
    Shape shape = handle.shape;
    if (!lua_isnoneornil(L, 3))
        shape = checked_shape("piece", integers_at(L, 3, "piece", "shape"));
    else if (!handle.has_shape)
        throw argument_error("piece", "the shape of the tensor is missing").hint("layout:piece(position, shape)");
    if (shape.rank() != handle.layout->rank())
        throw shape_error("piece", str("the layout ", handle.layout->text(), " is not for a tensor of shape ", shape));
    const int64_t position = integer_at(L, 2, "piece", "position"), count = handle.layout->mesh().count();
    if (position < 0 || position >= count)
        throw index_error("piece", str("the mesh has positions 0 to ", count - 1, ", got ", position));
    Shape offsets = shape;
    const parallel::Region region = handle.layout->piece(shape, position);
    for (int i = 0; i < shape.rank(); ++i) offsets[i] = region[static_cast<size_t>(i)].begin;
    push(L, offsets);
    push(L, parallel::shape_of(region));
    return 2;
}

int layout_field(lua_State* L) {
    static constexpr Field<Distribution> kFields[] = {
        {"to_dict", [](lua_State* l, const Distribution&) { lua_pushcfunction(l, protect<layout_to_dict>); }},
        {"piece", [](lua_State* l, const Distribution&) { lua_pushcfunction(l, protect<layout_piece>); }},
        {"mesh", [](lua_State* l, const Distribution& d) { push_mesh(l, d.mesh()); }},
        {"ndim", [](lua_State* l, const Distribution& d) { lua_pushinteger(l, d.rank()); }},
        {"axes",
         [](lua_State* l, const Distribution& d) {
             push_layout_list(l, d.cuts(),
                              [&](const std::vector<int>& axes) { push_names(l, names_of(d.mesh(), axes)); });
         }},
        {"partial", [](lua_State* l, const Distribution& d) { push_names(l, names_in(d.mesh(), d.partial())); }},
        {"merge",
         [](lua_State* l, const Distribution& d) {
             d.partial() ? push(l, std::string_view(parallel::name_of(d.merge()))) : lua_pushnil(l);
         }},
    };
    if (!push_field<Distribution>(L, kFields, *check_layout(L, 1, "layout").layout))
        throw argument_error("layout", str("a layout has no such field: ", describe(L, 2)))
            .hint("it has mesh, ndim, axes, partial, merge, piece and to_dict");
    return 1;
}

// parse(mesh, "[8@dp, 4] +tp") -> the layout
int parse(lua_State* L) {
    const auto [layout, shape] = Distribution::parse("layout", mesh_at(L, 1, "layout"), luaL_checkstring(L, 2));
    if (shape.known())
        push_layout(L, *layout, shape);
    else
        push_unsized(L, *layout);
    return 1;
}

int is_layout_value(lua_State* L) {
    lua_pushboolean(L, is_layout(L, 1));
    return 1;
}

// Tensors

std::vector<Tensor> tensors_at(lua_State* L, int index) {
    luaL_checktype(L, index, LUA_TTABLE);
    std::vector<Tensor> tensors;
    for (lua_Integer i = 1; i <= luaL_len(L, index); ++i) {
        lua_geti(L, index, i);
        tensors.push_back(check_tensor(L, -1, "redistribute", "pieces").to_host());
        lua_pop(L, 1);
    }
    return tensors;
}

double number_option(lua_State* L, int index, const char* name, double otherwise) {
    if (!lua_istable(L, index) || !push_option(L, index, name)) return otherwise;
    const double value = luaL_checknumber(L, -1);
    lua_pop(L, 1);
    return value;
}

parallel::Costs costs_at(lua_State* L, int index) {
    parallel::Costs costs;
    costs.link.latency = number_option(L, index, "latency", costs.link.latency);
    costs.link.seconds_per_byte = number_option(L, index, "seconds_per_byte", costs.link.seconds_per_byte);
    costs.memory_limit = static_cast<int64_t>(number_option(L, index, "memory_limit", 0));
    return costs;
}

// Of the arguments from, to, shape, dtype, options { latency, seconds_per_byte, memory_limit, way = "path" | "exchange"
// }.
parallel::Plan plan_at(lua_State* L) {
    const Shape shape = checked_shape("redistribute", integers_at(L, 3, "redistribute", "shape"));
    const Distribution& from = layout_at(L, 1, shape.rank(), "redistribute", "from");
    const Distribution& to = layout_at(L, 2, shape.rank(), "redistribute", "to");
    const DType dtype = dtype_at(L, 4, "redistribute").value_or(DType::f32);
    const parallel::Costs costs = costs_at(L, 5);
    std::string way;
    if (lua_istable(L, 5) && push_option(L, 5, "way")) way = luaL_checkstring(L, -1);
    if (way == "exchange") return direct_exchange(from, to, shape, dtype, costs);
    if (way != "path") return plan_redistribution(from, to, shape, dtype, costs);
    const auto path = shortest_path(from, to, shape, dtype, costs);
    if (!path) throw state_error("redistribute", "no path is found");
    return *path;
}

// plan(from, to, shape, dtype, options) -> { text, bytes, total_bytes, seconds, least_bytes, least_total, steps }
int plan(lua_State* L) {
    const parallel::Plan plan = plan_at(L);
    const parallel::Volume least = parallel::lower_bound_bytes(*plan.from, *plan.to, plan.shape, plan.dtype);
    lua_createtable(L, 0, 7);
    set(L, "text", plan.text());
    set(L, "bytes", plan.bytes);
    set(L, "total_bytes", plan.total_bytes);
    set(L, "seconds", plan.seconds);
    set(L, "least_bytes", least.received);
    set(L, "least_total", least.total);
    push_layout_list(L, plan.steps, [&](const parallel::Step& step) {
        lua_createtable(L, 0, 7);
        set(L, "kind", std::string_view(name_of(step.kind)));
        set(L, "axes", step.from->mesh().names_of(step.axes));
        set(L, "from", step.from->text(plan.shape));
        set(L, "to", step.to->text(plan.shape));
        set(L, "bytes", step.bytes);
        set(L, "total_bytes", step.total_bytes);
        set(L, "seconds", step.seconds);
    });
    lua_setfield(L, -2, "steps");
    return 1;
}

// The pieces of ranks that are threads with a communicator each, and the bytes that all of them counted.
std::pair<std::vector<Tensor>, int64_t> run_on_ranks(const parallel::Plan& plan, const std::vector<Tensor>& pieces) {
    std::vector<Tensor> results(static_cast<size_t>(plan.to->mesh().count()));
    std::atomic<int64_t> bytes = 0;
    int count = 0;
    for (const Mesh* mesh : {&plan.from->mesh(), &plan.to->mesh()})
        for (int64_t p = 0; p < mesh->count(); ++p) count = std::max(count, mesh->rank(p) + 1);
    parallel::run_simulated(count, [&](parallel::Communicator& communicator) {
        const int64_t source = plan.from->mesh().position(communicator.rank()),
                      target = plan.to->mesh().position(communicator.rank());
        const Tensor piece = source < 0 ? Tensor() : pieces.at(static_cast<size_t>(source));
        const Tensor result = redistribute(plan, piece, communicator);
        if (target >= 0) results[static_cast<size_t>(target)] = result;
        for (size_t c = 0; c < parallel::kCollectives; ++c)
            bytes += static_cast<int64_t>(communicator.traffic(static_cast<parallel::Collective>(c)).bytes);
    });
    return {std::move(results), bytes};
}

// redistribute(from, to, shape, dtype, options, pieces of all positions) -> those afterwards. With the option ranks =
// true the ranks are threads, and the second result is the number of bytes that they got.
int redistribute_pieces(lua_State* L) {
    const parallel::Plan plan = plan_at(L);
    std::vector<Tensor> pieces = tensors_at(L, 6);
    const auto push_one = [&](const Tensor& piece) { push(L, piece); };
    if (!lua_istable(L, 5) || !push_option(L, 5, "ranks")) {
        push_layout_list(L, redistribute(plan, std::move(pieces)), push_one);
        return 1;
    }
    const auto [results, bytes] = run_on_ranks(plan, pieces);
    push_layout_list(L, results, push_one);
    lua_pushinteger(L, bytes);
    return 2;
}

// split(tensor, layout) -> the pieces of all positions
int split(lua_State* L) {
    const Tensor tensor = check_tensor(L, 1, "split").to_host();
    const Distribution& layout = layout_at(L, 2, tensor.rank(), "split", "layout");
    std::vector<Tensor> pieces;
    for (int64_t p = 0; p < layout.mesh().count(); ++p) pieces.push_back(parallel::piece_of(tensor, layout, p));
    push_layout_list(L, pieces, [&](const Tensor& piece) { push(L, piece); });
    return 1;
}

// join(pieces of all positions, layout, shape) -> the whole tensor
int join(lua_State* L) {
    const Shape shape = checked_shape("join", integers_at(L, 3, "join", "shape"));
    const Distribution& layout = layout_at(L, 2, shape.rank(), "join", "layout");
    const std::vector<Tensor> pieces = tensors_at(L, 1);
    if (static_cast<int64_t>(pieces.size()) != layout.mesh().count())
        throw argument_error("join", str(pieces.size(), " pieces for a mesh of ", layout.mesh().count(), " ranks"));
    push(L, parallel::whole_of(layout, shape, pieces[0].dtype(), pieces));
    return 1;
}

void push_layout_handle(lua_State* L, LayoutHandle handle) {
    new (lua_newuserdatauv(L, sizeof(LayoutHandle), 0)) LayoutHandle(handle);
    if (luaL_newmetatable(L, kLayout)) {
        constexpr luaL_Reg functions[] = {{"__tostring", protect<layout_text>},
                                          {"__eq", protect<layout_equal>},
                                          {"__index", protect<layout_field>},
                                          {nullptr, nullptr}};
        luaL_setfuncs(L, functions, 0);
    }
    lua_setmetatable(L, -2);
}

}  // namespace

bool is_layout(lua_State* L, int index) { return layout_handle(L, index) != nullptr; }

const Distribution& layout_at(lua_State* L, int index, int rank, std::string_view where, std::string_view name) {
    const LayoutHandle* handle = layout_handle(L, index);
    if (!handle)
        throw argument_error(where, str(name, " must be a layout, got ", describe(L, index)))
            .hint("a mesh gives layouts: ms.mesh({ 4, 2 }, { \"dp\", \"tp\" })(\"dp\", nil)");
    const Distribution& layout = *handle->layout;
    if (layout.rank() == rank) return layout;
    if (layout.rank() > rank)
        throw argument_error(
            where, str(name, " ", layout.text(), " is for ", layout.rank(), " axes, and the tensor has ", rank));
    Distribution::Cuts cuts = layout.cuts();
    cuts.resize(static_cast<size_t>(rank));
    return *Distribution::of(layout.mesh(), cuts, layout.partial(), layout.merge());
}

void push_layout(lua_State* L, const Distribution& layout, const Shape& shape) {
    push_layout_handle(L, {&layout, true, shape});
}

void push_mesh(lua_State* L, const Mesh& mesh) {
    new (lua_newuserdatauv(L, sizeof(MeshHandle), 0)) MeshHandle{&mesh};
    if (luaL_newmetatable(L, kMesh)) {
        constexpr luaL_Reg functions[] = {{"__tostring", protect<mesh_text>},
                                          {"__eq", protect<mesh_equal>},
                                          {"__index", protect<mesh_field>},
                                          {"__call", protect<call_mesh>},
                                          {nullptr, nullptr}};
        luaL_setfuncs(L, functions, 0);
    }
    lua_setmetatable(L, -2);
}

int open_layouts(lua_State* L) {
    constexpr luaL_Reg functions[] = {{"mesh", protect<make_mesh>},
                                      {"parse", protect<parse>},
                                      {"is_layout", protect<is_layout_value>},
                                      {"plan", protect<plan>},
                                      {"redistribute", protect<redistribute_pieces>},
                                      {"split", protect<split>},
                                      {"join", protect<join>},
                                      {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}

}  // namespace lunaria
