// Tensors of other programs in this process, by DLPack's structure (version 0.8 of its ABI): a capsule is a full
// userdata with the metatable "dltensor" that holds a DLManagedTensor*, as compiled Lua modules can make and take them.
// Whoever takes one sets the pointer to null and calls the deleter when the elements are no longer needed.
#include <algorithm>
#include <array>
#include <memory>

#include "core/error.h"
#include "core/shape.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/bindings/tensor_methods.h"
#include "interpreter/bindings/values.h"
#include "interpreter/protect.h"

namespace lunaria {

namespace {

// As in dlpack.h: other programs read and write these.
struct DLDevice {
    int32_t type, id;
};
struct DLDataType {
    uint8_t code, bits;
    uint16_t lanes;
};
struct DLTensor {
    void* data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t* shape;
    int64_t* strides;  // in elements; null: dense
    uint64_t byte_offset;
};
struct DLManagedTensor {
    DLTensor tensor;
    void* manager;
    void (*deleter)(DLManagedTensor*);
};

constexpr const char* kCapsule = "dltensor";
constexpr int32_t kHost = 1;

struct Type {
    DType dtype;
    uint8_t code, bits;
};
constexpr Type kTypes[] = {{DType::i8, 0, 8},    {DType::i16, 0, 16}, {DType::i32, 0, 32},   {DType::i64, 0, 64},
                           {DType::u8, 1, 8},    {DType::f16, 2, 16}, {DType::f32, 2, 32},   {DType::f64, 2, 64},
                           {DType::bf16, 4, 16}, {DType::c64, 5, 64}, {DType::c128, 5, 128}, {DType::boolean, 6, 8},
                           {DType::u16, 1, 16},  {DType::u32, 1, 32}, {DType::u64, 1, 64}};

// What an exported tensor keeps.
struct Exported {
    DLManagedTensor managed{};
    Tensor tensor;
    std::array<int64_t, kMaxRank> shape{}, strides{};
};

DLManagedTensor*& capsule_at(lua_State* L, int index, const char* where) {
    auto* place = static_cast<DLManagedTensor**>(luaL_testudata(L, index, kCapsule));
    if (!place || lua_rawlen(L, index) < sizeof *place)
        throw argument_error(where, str("a capsule of DLPack is expected, got ", describe(L, index)));
    return *place;
}

int collect(lua_State* L) {
    auto* place = static_cast<DLManagedTensor**>(luaL_testudata(L, 1, kCapsule));
    if (!place || lua_rawlen(L, 1) < sizeof *place || !*place) return 0;
    DLManagedTensor* const managed = std::exchange(*place, nullptr);
    if (managed->deleter) managed->deleter(managed);
    return 0;
}

int from_dlpack(lua_State* L) {
    DLManagedTensor*& place = capsule_at(L, 1, "from_dlpack");
    if (!place) throw argument_error("from_dlpack", "the capsule's tensor has been taken already");
    const DLTensor& given = place->tensor;
    if (given.device.type != kHost)
        throw argument_error("from_dlpack", str("the elements are on a device of type ", given.device.type,
                                                "; those in the host's memory (1) can be taken"));
    const auto* type = std::ranges::find_if(
        kTypes, [&](const Type& t) { return t.code == given.dtype.code && t.bits == given.dtype.bits; });
    if (type == std::end(kTypes) || given.dtype.lanes != 1)
        throw dtype_error("from_dlpack",
                          str("there is no dtype for elements of type code ", int{given.dtype.code}, " with ",
                              int{given.dtype.bits}, " bits and ", given.dtype.lanes, " lanes"));
    if (given.ndim < 0 || given.ndim > kMaxRank)
        throw shape_error("from_dlpack", str("has ", given.ndim, " axes; tensors have at most ", kMaxRank));
    const auto rank = static_cast<size_t>(given.ndim);
    const Shape shape = checked_shape("from_dlpack", std::span(given.shape, rank), size_of(type->dtype));
    Strides strides = contiguous_strides(shape);
    int64_t first = 0, last = 0;
    for (int axis = 0; axis < shape.rank() && given.strides; ++axis) strides[axis] = given.strides[axis];
    for (int axis = 0; axis < shape.rank() && shape.size(); ++axis)
        (strides[axis] < 0 ? first : last) += strides[axis] * (shape[axis] - 1);
    const int64_t count = shape.size() ? last - first + 1 : 0;
    const auto width = static_cast<int64_t>(size_of(type->dtype));
    char* const data = static_cast<char*>(given.data) + given.byte_offset + first * width;
    if (reinterpret_cast<uintptr_t>(data) % std::min<size_t>(size_of(type->dtype), 8) != 0)
        throw argument_error("from_dlpack", "the elements are not aligned");
    const Tensor all = Tensor::over(
        data, type->dtype, {count},
        [](Storage& storage) {
            auto* managed = static_cast<DLManagedTensor*>(storage.foreign);
            if (managed->deleter) managed->deleter(managed);
        },
        place);
    place = nullptr;
    push(L, all.view(shape, strides, -first));
    return 1;
}

}  // namespace

int to_dlpack(lua_State* L) {
    const Tensor t = check_tensor(L, 1, "to_dlpack").to_host();
    const auto* type = std::ranges::find_if(kTypes, [&](const Type& known) { return known.dtype == t.dtype(); });
    if (type == std::end(kTypes)) throw dtype_error("to_dlpack", str("DLPack has no type for ", name_of(t.dtype())));
    auto* place = static_cast<DLManagedTensor**>(lua_newuserdatauv(L, sizeof(DLManagedTensor*), 0));
    *place = nullptr;
    if (luaL_newmetatable(L, kCapsule)) {
        lua_pushcfunction(L, protect<collect>);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    auto exported = std::make_unique<Exported>();
    exported->tensor = t;
    std::ranges::copy(t.shape().dims(), exported->shape.begin());
    for (int axis = 0; axis < t.rank(); ++axis) exported->strides[static_cast<size_t>(axis)] = t.strides()[axis];
    exported->managed = {{t.raw(),
                          {kHost, 0},
                          t.rank(),
                          {type->code, type->bits, 1},
                          exported->shape.data(),
                          exported->strides.data(),
                          0},
                         exported.get(),
                         [](DLManagedTensor* managed) { delete static_cast<Exported*>(managed->manager); }};
    *place = &exported.release()->managed;
    return 1;
}

void bind_dlpack(lua_State* L) {
    lua_pushcfunction(L, protect<from_dlpack>);
    lua_setfield(L, -2, "from_dlpack");
}

}  // namespace lunaria
