#include "core/io/proto_tensor.h"

#include <algorithm>
#include <cstring>

#include "core/tensor/shape.h"

namespace lunaria::proto {

namespace {

// By the names that dtypes have in Lua.
constexpr std::pair<int64_t, std::string_view> kProtoTypes[] = {{1, "float32"},        {2, "uint8"},
                                                                {3, "int8"},           {4, "uint16"},
                                                                {5, "int16"},          {6, "int32"},
                                                                {7, "int64"},          {8, "string"},
                                                                {9, "bool"},           {10, "float16"},
                                                                {11, "float64"},       {12, "uint32"},
                                                                {13, "uint64"},        {14, "complex64"},
                                                                {15, "complex128"},    {16, "bfloat16"},
                                                                {17, "float8_e4m3fn"}, {18, "float8_e4m3fnuz"},
                                                                {19, "float8_e5m2"},   {20, "float8_e5m2fnuz"},
                                                                {21, "uint4"},         {22, "int4"},
                                                                {23, "float4_e2m1"},   {24, "float8_e8m0"},
                                                                {25, "uint2"},         {26, "int2"}};

template <class T>
void fill(const ProtoReader& p, const TensorContents& c, Tensor& t, size_t wanted) {
    for (size_t i = 0; i < wanted; ++i) {
        T& out = t.data<T>()[i];
        if constexpr (requires { typename T::value_type; }) {
            using Part = typename T::value_type;
            if (!c.floats.empty())
                out = T(static_cast<Part>(c.floats[2 * i]), static_cast<Part>(c.floats[2 * i + 1]));
            else if (!c.doubles.empty())
                out = T(static_cast<Part>(c.doubles[2 * i]), static_cast<Part>(c.doubles[2 * i + 1]));
            else
                p.fail(str(c.called(), " has complex elements as integers"));
        } else if constexpr (requires { out.bits; }) {
            // Floats of 16 and fewer bits are stored in int32_data as their bits.
            if (c.int32s.empty()) p.fail(str(c.called(), " has its elements in the wrong field"));
            out.bits = static_cast<decltype(out.bits)>(c.int32s[i]);
        } else if constexpr (std::is_floating_point_v<T>) {
            if (!c.floats.empty())
                out = static_cast<T>(c.floats[i]);
            else if (!c.doubles.empty())
                out = static_cast<T>(c.doubles[i]);
            else
                p.fail(str(c.called(), " has floats as integers"));
        } else {
            if (!c.floats.empty() || !c.doubles.empty()) p.fail(str(c.called(), " has integers as floats"));
            const int64_t v = c.int32s.empty() ? c.int64s[i] : c.int32s[i];
            if constexpr (std::is_same_v<T, bool>)
                out = v != 0;
            else
                out = static_cast<T>(v);
        }
    }
}

}  // namespace

std::string_view type_name(int64_t type) {
    for (auto [number, name] : kProtoTypes)
        if (number == type) return name;
    return {};
}

std::optional<DType> dtype_of(int64_t type) {
    const std::string_view name = type_name(type);
    return name.empty() || name == "string" ? std::nullopt : parse_dtype(name);
}

int64_t type_number(DType dtype) {
    for (auto [number, name] : kProtoTypes)
        if (name == name_of(dtype)) return number;
    return 0;
}

Fields<TensorContents::Entry> TensorContents::Entry::fields() {
    static constexpr Field<Entry> list[] = {field<&Entry::key>(1), field<&Entry::value>(2)};
    return list;
}

std::string TensorContents::called() const {
    return name.empty() ? "a tensor without a name" : str("tensor '", name, "'");
}

Shape shape_of(const ProtoReader& p, const TensorContents& c, DType dtype) {
    try {
        return checked_shape(p.file(), c.dims, size_of(dtype));
    } catch (const Error& e) {
        p.fail(str(c.called(), ": ", e.message()));
    }
}

Tensor elements(const ProtoReader& p, const TensorContents& c, DType dtype) {
    const Shape shape = shape_of(p, c, dtype);
    const auto wanted = static_cast<size_t>(shape.size());
    const size_t lists = c.listed();
    auto wrong_size = [&](size_t there, std::string_view what) {
        p.fail(str(c.called(), " of shape ", shape, " and dtype ", name_of(dtype), " has ", there, " ", what));
    };
    if (c.raw && (lists == 0 || !c.raw->empty())) {
        if (lists) p.fail(str(c.called(), " has its elements twice"));
        if (c.raw->size() != wanted * size_of(dtype)) wrong_size(c.raw->size(), "bytes of data");
        Tensor t = Tensor::empty(dtype, shape);
        if (wanted) std::memcpy(t.raw(), c.raw->data(), c.raw->size());
        normalise(t);
        return t;
    }
    // Complex numbers are pairs of floats.
    const size_t numbers = is_complex(dtype) ? 2 * wanted : wanted;
    const size_t most = std::max({c.floats.size(), c.doubles.size(), c.int32s.size(), c.int64s.size()});
    if (lists != numbers || most != numbers) wrong_size(lists, "elements");
    Tensor t = Tensor::empty(dtype, shape);
    visit_stored(dtype, [&](auto tag) { fill<typename decltype(tag)::type>(p, c, t, wanted); });
    return t;
}

void normalise(Tensor& t) {
    if (t.dtype() != DType::boolean) return;
    auto* bytes = static_cast<unsigned char*>(t.raw());
    for (int64_t i = 0; i < t.size(); ++i) bytes[i] = bytes[i] != 0;
}

ProtoWriter& write_raw(ProtoWriter& w, uint32_t field, const Tensor& tensor) {
    const Tensor dense = tensor.contiguous().to_host();
    return w.bytes(field, {static_cast<const char*>(dense.raw()), dense.nbytes()});
}

}  // namespace lunaria::proto
