// CPU kernels: scatter and segments. Values that meet at a position are combined in the order of the indices.
#include <algorithm>
#include <limits>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/positions.h"
#include "backends/cpu/wrapping.h"
#include "core/base/interrupt.h"

namespace lunaria::cpu {

namespace {

template <class A>
A larger(A a, A b) {
    return a > b || a != a ? a : b;  // NaN wins
}
template <class A>
A smaller(A a, A b) {
    return a < b || a != a ? a : b;
}

// The items to be combined: pieces of `elements` elements at given offsets, or single elements along an axis.
struct Pieces {
    Scratch<int64_t> offsets;
    int64_t elements;

    template <class T, class F>
    void combine(T* out, const T* values, F f) const {
        const auto count = static_cast<int64_t>(offsets.size());
        in_ranges(count, offsets_between_looks(elements), [&](int64_t begin, int64_t end) {
            for (int64_t k = begin; k < end; ++k) {
                T* const to = out + offsets[static_cast<size_t>(k)];
                for (int64_t i = 0; i < elements; ++i) to[i] = f(to[i], values[k * elements + i]);
            }
        });
    }
};
struct SingleElements {
    ElementOffsets offsets;

    template <class T, class F>
    void combine(T* out, const T* values, F f) const {
        offsets.visit(0, offsets.rows(), [out, values, f](int64_t i, int64_t at) { out[at] = f(out[at], values[i]); });
    }
};

template <class A>
A quotient(const KernelCall& call, A a, A b) {
    if constexpr (std::is_integral_v<A>) {
        if (b == 0) throw Error(ErrorKind::arithmetic, call.op.name(), "integer division by zero");
        // The lowest integer has no negative.
        if constexpr (std::is_signed_v<A>)
            if (b == -1) return static_cast<A>(0 - static_cast<uint64_t>(a));
    }
    return static_cast<A>(a / b);
}

template <class Where>
void scatter_into(const KernelCall& call, Tensor& out, const Tensor& updates, const Where& where,
                  const std::string& how) {
    visit_dtype(out.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        using A = Accumulator<T>;
        T* to = out.data<T>();
        const T* from = updates.data<T>();
        auto combine = [&](auto f) {
            where.combine(to, from, [f](T a, T b) { return static_cast<T>(f(static_cast<A>(a), static_cast<A>(b))); });
        };
        if (how == "none") return combine([](A, A b) { return b; });
        if (how == "add") return combine([](A a, A b) { return wrapping(a, b, [](auto x, auto y) { return x + y; }); });
        if (how == "sub") return combine([](A a, A b) { return wrapping(a, b, [](auto x, auto y) { return x - y; }); });
        if (how == "mul") return combine([](A a, A b) { return wrapping(a, b, [](auto x, auto y) { return x * y; }); });
        if (how == "div") return combine([&](A a, A b) { return quotient(call, a, b); });
        if constexpr (kIsComplex<T>) {
            throw dtype_error(call.op.name(), "complex numbers have no order: max and min need real ones");
        } else {
            if (how == "max") return combine(larger<A>);
            combine(smaller<A>);
        }
    });
}

bool scatter_nd(const KernelCall& call) {
    Tensor& out = call.out[0];
    copy_elements(call.tensor(0), out);
    Tensor indices = call.tensor(1).contiguous(), updates = call.tensor(2).contiguous();
    int64_t elements = 1;
    for (int i = static_cast<int>(indices.shape().back()); i < out.rank(); ++i) elements *= out.dim(i);
    const Pieces where{point_offsets(call, indices, out.shape()), elements};
    scatter_into(call, out, updates, where, call.args[3].string());
    return true;
}

bool scatter_elements(const KernelCall& call) {
    Tensor& out = call.out[0];
    copy_elements(call.tensor(0), out);
    Tensor index = call.tensor(1).contiguous(), updates = call.tensor(2).contiguous();
    const SingleElements where{{call, index, out.shape(), axis_of(call, 3, out.rank())}};
    scatter_into(call, out, updates, where, call.args[4].string());
    return true;
}

enum class Segment { sum, prod, max, min };

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// The value of a segment without elements.
template <Segment kHow, class T>
T empty_segment() {
    if constexpr (kHow == Segment::sum || kHow == Segment::prod)
        return T(kHow == Segment::sum ? 0 : 1);
    else if constexpr (std::is_same_v<T, Half>)
        return Half(kHow == Segment::max ? -65504.0f : 65504.0f);
    else if constexpr (std::is_same_v<T, BFloat16>)
        return BFloat16(kHow == Segment::max ? -0x1.fep+127f : 0x1.fep+127f);
    else
        return kHow == Segment::max ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
}

template <Segment kHow>
bool segment(const KernelCall& call) {
    const Tensor &in = call.tensor(0), &ids = call.tensor(1);
    Tensor& out = call.out[0];
    int64_t segments = call.args[2].integer(), inner = ids.size() ? in.size() / ids.size() : 0;
    if (out.size() == 0 && in.size() == 0) return true;
    visit_dtype(in.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        using A = Accumulator<T>;
        // Sums and products of halves are made in float32, and rounded once.
        if constexpr (kIsComplex<T> || (kIsHalf<T> && (kHow == Segment::sum || kHow == Segment::prod))) {
            throw dtype_error(call.op.name(), str("has no kernel for dtype ", name_of(in.dtype())));
        } else {
            T* to = out.template data<T>();
            const T* from = in.template data<T>();
            std::fill(to, to + out.size(), empty_segment<kHow, T>());
            const int64_t turn = offsets_between_looks(inner);
            std::vector<bool> seen(static_cast<size_t>(segments));
            for (int64_t i = 0; i < ids.size(); ++i, from += inner) {
                if (i % turn == 0) poll_interrupt();
                int64_t id = ids.data<int64_t>()[i];
                if (id < 0) continue;
                if (id >= segments)
                    throw index_error(call.op.name(),
                                      str("segment id ", id, " is out of range for ", segments, " segments"));
                bool first = !seen[static_cast<size_t>(id)];
                seen[static_cast<size_t>(id)] = true;
                for (int64_t k = 0; k < inner; ++k) {
                    T& element = to[id * inner + k];
                    A a = static_cast<A>(element), b = static_cast<A>(from[k]);
                    if constexpr (kHow == Segment::sum)
                        element = static_cast<T>(wrapping(a, b, [](auto x, auto y) { return x + y; }));
                    else if constexpr (kHow == Segment::prod)
                        element = static_cast<T>(wrapping(a, b, [](auto x, auto y) { return x * y; }));
                    // The first element replaces the mark of an empty segment, so that -inf stays -inf.
                    else if constexpr (kHow == Segment::max)
                        element = first ? from[k] : static_cast<T>(larger(a, b));
                    else
                        element = first ? from[k] : static_cast<T>(smaller(a, b));
                }
            }
        }
    });
    return true;
}

bool sparse_mean(const KernelCall& call) {
    const Tensor& x = call.tensor(0);
    const Tensor indices = call.tensor(1).contiguous(), ids = call.tensor(2).contiguous();
    const int64_t *index = indices.data<int64_t>(), *id = ids.data<int64_t>();
    const int64_t rows = x.dim(0), inner = rows ? x.size() / rows : 0, count = indices.size();
    for (int64_t k = 0; k < count; ++k) {
        if (index[k] < 0 || index[k] >= rows)
            throw index_error(call.op.name(), str("index ", index[k], " is out of range for ", rows, " rows of x"));
        if (id[k] < (k ? id[k - 1] : 0))
            throw value_error(call.op.name(), str("segment_ids must not be negative and not fall, but [", k, "] is ",
                                                  id[k], k ? str(" behind ", id[k - 1]) : ""));
    }
    Shape shape = x.shape();
    // A size that the largest id would require is refused in any case.
    const int64_t last = count ? id[count - 1] : -1;
    shape[0] = last < std::numeric_limits<int64_t>::max() ? last + 1 : last;
    checked_shape(call.op.name(), shape.dims(), size_of(x.dtype()));
    Tensor& out = call.out[0] = Tensor::zeros(x.dtype(), shape);
    visit_dtype(x.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
            for (int64_t k = 0; k < count;) {
                int64_t stop = k;
                T* to = out.template data<T>() + id[k] * inner;
                for (; stop < count && id[stop] == id[k]; ++stop)
                    for (int64_t i = 0; i < inner; ++i) to[i] += x.template data<T>()[index[stop] * inner + i];
                for (int64_t i = 0; i < inner; ++i) to[i] /= static_cast<T>(stop - k);
                k = stop;
            }
        } else {
            throw dtype_error(call.op.name(), str("has no kernel for dtype ", name_of(x.dtype())));
        }
    });
    return true;
}

}  // namespace

void add_scatter_kernels(KernelTable& table) {
    table.plain("tensor_scatter_nd", scatter_nd);
    table.plain("tensor_scatter_elements", scatter_elements);
    table.plain("unsorted_segment_sum", segment<Segment::sum>);
    table.plain("unsorted_segment_prod", segment<Segment::prod>);
    table.plain("unsorted_segment_max", segment<Segment::max>);
    table.plain("sparse_segment_mean", sparse_mean);
    table.plain("unsorted_segment_min", segment<Segment::min>);
}

}  // namespace lunaria::cpu
