// Tensors of other programs in this process, by DLPack's structures: a capsule is a full userdata that holds a pointer,
// as compiled Lua modules can make and take them. With the metatable "dltensor" it is a DLManagedTensor* (version 0.8
// of its ABI), with "dltensor_versioned" a DLManagedTensorVersioned* (1.0). The taker of a capsule sets its pointer to
// null and calls the deleter when the elements are no longer needed.
//
// Both programs read and write the memory: see Tensor::is_exported().
#include <algorithm>
#include <array>
#include <memory>

#include "core/base/error.h"
#include "core/tensor/shape.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/tensor_methods.h"
#include "interpreter/values/values.h"

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

struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void* manager;
    void (*deleter)(DLManagedTensorVersioned*);
    uint64_t flags;
    DLTensor tensor;
};

constexpr int32_t kHost = 1;
constexpr uint64_t kReadOnly = 1;  // of the flags
constexpr uint32_t kMajor = 1;     // the versions with the same layout

template <class Managed>
constexpr const char* kCapsule = "dltensor";
template <>
constexpr const char* kCapsule<DLManagedTensorVersioned> = "dltensor_versioned";

struct Type {
    DType dtype;
    uint8_t code, bits;
};
constexpr Type kTypes[] = {{DType::i8, 0, 8},    {DType::i16, 0, 16}, {DType::i32, 0, 32},   {DType::i64, 0, 64},
                           {DType::u8, 1, 8},    {DType::f16, 2, 16}, {DType::f32, 2, 32},   {DType::f64, 2, 64},
                           {DType::bf16, 4, 16}, {DType::c64, 5, 64}, {DType::c128, 5, 128}, {DType::boolean, 6, 8},
                           {DType::u16, 1, 16},  {DType::u32, 1, 32}, {DType::u64, 1, 64}};

// An exported tensor's hold on its memory, whatever becomes of the tensor.
struct Exported {
    explicit Exported(Tensor& t) {
        t.begin_export();
        tensor = t.view(t.shape(), t.strides());
    }
    ~Exported() { tensor.end_export(); }
    Exported(const Exported&) = delete;
    Exported& operator=(const Exported&) = delete;

    DLManagedTensor managed{};
    Tensor tensor;
    std::array<int64_t, kMaxRank> shape{}, strides{};
};

template <class Managed>
void drop(Managed* managed) {
    if (managed && managed->deleter) managed->deleter(managed);
}

// The place of the pointer in a capsule of that kind; null: it is not such a capsule.
template <class Managed>
Managed** place_in(lua_State* L, int index) {
    void* place = luaL_testudata(L, index, kCapsule<Managed>);
    return place && lua_rawlen(L, index) >= sizeof(Managed*) ? static_cast<Managed**>(place) : nullptr;
}

int collect(lua_State* L) {
    if (auto* place = place_in<DLManagedTensor>(L, 1)) drop(std::exchange(*place, nullptr));
    return 0;
}

// Whether two indices may refer to the same element: the effect of a write to one on the other is then unknown.
bool overlaps(const Shape& shape, const Strides& strides) {
    std::vector<std::pair<int64_t, int64_t>> axes;  // strides and sizes, from the smallest stride on
    for (int axis = 0; axis < shape.rank(); ++axis)
        if (shape[axis] > 1) axes.emplace_back(std::abs(strides[axis]), shape[axis]);
    std::ranges::sort(axes);
    int64_t span = 1;  // of the axes before
    for (const auto& [stride, size] : axes) {
        if (stride < span) return true;
        span += stride * (size - 1);
    }
    return false;
}

template <class Managed>
Tensor taken(Managed*& place, bool read_only) {
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
        data, type->dtype, {count}, [](Storage& storage) { drop(static_cast<Managed*>(storage.foreign)); }, place);
    place = nullptr;
    // Memory that must not be written to is copied by the first write.
    if (!read_only && !overlaps(shape, strides)) all.body()->storage->exports.store(1, std::memory_order_release);
    return all.view(shape, strides, -first);
}

int from_dlpack(lua_State* L) {
    if (auto* place = place_in<DLManagedTensor>(L, 1)) {
        push_shared(L, taken(*place, false));
        return 1;
    }
    auto* place = place_in<DLManagedTensorVersioned>(L, 1);
    if (!place) throw argument_error("from_dlpack", str("a capsule of DLPack is expected, got ", describe(L, 1)));
    if (*place && (*place)->major != kMajor)
        throw argument_error("from_dlpack", str("the capsule is of version ", (*place)->major, ".", (*place)->minor,
                                                " of DLPack; versions ", kMajor, ".x and 0.8 are known"));
    push_shared(L, taken(*place, *place && ((*place)->flags & kReadOnly)));
    return 1;
}

}  // namespace

int to_dlpack(lua_State* L) {
    check_tensor(L, 1, "to_dlpack");
    // The handle's own tensor; one on another device is copied.
    auto& t = reinterpret_cast<Tensor&>(*tensor_place(L, 1));
    Tensor shared = t.device() ? t.to_host() : t;
    const auto* type = std::ranges::find_if(kTypes, [&](const Type& known) { return known.dtype == t.dtype(); });
    if (type == std::end(kTypes)) throw dtype_error("to_dlpack", str("DLPack has no type for ", name_of(t.dtype())));
    auto* place = static_cast<DLManagedTensor**>(lua_newuserdatauv(L, sizeof(DLManagedTensor*), 0));
    *place = nullptr;
    if (luaL_newmetatable(L, kCapsule<DLManagedTensor>)) {
        lua_pushcfunction(L, protect<collect>);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    auto exported = std::make_unique<Exported>(shared);
    std::ranges::copy(shared.shape().dims(), exported->shape.begin());
    for (int axis = 0; axis < shared.rank(); ++axis)
        exported->strides[static_cast<size_t>(axis)] = shared.strides()[axis];
    exported->managed = {{shared.raw(),
                          {kHost, 0},
                          shared.rank(),
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
