#include "core/parallel/combine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/base/error.h"

namespace lunaria::parallel {

namespace {

// Elements are combined in blocks, whose partial results stay in the first cache.
constexpr int64_t kBlock = 512;

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

struct Add {
    template <class T>
    T operator()(T a, T b) const {
        if constexpr (std::is_integral_v<T>)  // sums of integers wrap
            return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
        else
            return a + b;
    }
};

struct Multiply {
    template <class T>
    T operator()(T a, T b) const {
        if constexpr (std::is_integral_v<T>)  // by way of 64 bits, where shorter numbers would be promoted to int
            return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
        else
            return a * b;
    }
};

// NaN wins, whichever side it is on.
struct Larger {
    template <class T>
    T operator()(T a, T b) const {
        return a > b || a != a ? a : b;
    }
};
struct Smaller {
    template <class T>
    T operator()(T a, T b) const {
        return a < b || a != a ? a : b;
    }
};

template <class T, class F>
class Tree {
  public:
    Tree(std::span<const void* const> parts, int64_t divisor) : parts_(parts), divisor_(divisor) {}

    void run(T* out, int64_t count) const {
        if constexpr (std::is_same_v<T, Wide<T>>) {
            if (parts_.size() == 2 && divisor_ == 1) return pair(part(0), part(1), out, count);
        }
        std::array<Wide<T>, kBlock> sums;
        for (int64_t begin = 0; begin < count; begin += kBlock) {
            const int64_t n = std::min(kBlock, count - begin);
            combine(0, parts_.size(), begin, n, sums.data());
            if constexpr (std::is_floating_point_v<Wide<T>> || kIsComplex<T>) {
                if (divisor_ != 1)
                    for (int64_t i = 0; i < n; ++i) sums[i] /= static_cast<Wide<T>>(static_cast<float>(divisor_));
            }
            for (int64_t i = 0; i < n; ++i) out[begin + i] = static_cast<T>(sums[i]);
        }
    }

  private:
    const T* part(size_t i) const { return static_cast<const T*>(parts_[i]); }

    static void pair(const T* a, const T* b, T* out, int64_t count) {
        const F f;
        for (int64_t i = 0; i < count; ++i) out[i] = f(a[i], b[i]);
    }

    void combine(size_t first, size_t parts, int64_t begin, int64_t n, Wide<T>* sums) const {
        if (parts == 1) {
            const T* a = part(first) + begin;
            for (int64_t i = 0; i < n; ++i) sums[i] = static_cast<Wide<T>>(a[i]);
            return;
        }
        const size_t half = std::bit_floor(parts - 1);
        combine(first, half, begin, n, sums);
        const F f;
        if (parts - half == 1) {
            const T* a = part(first + half) + begin;
            for (int64_t i = 0; i < n; ++i) sums[i] = f(sums[i], static_cast<Wide<T>>(a[i]));
            return;
        }
        std::array<Wide<T>, kBlock> others;
        combine(first + half, parts - half, begin, n, others.data());
        for (int64_t i = 0; i < n; ++i) sums[i] = f(sums[i], others[i]);
    }

    std::span<const void* const> parts_;
    int64_t divisor_;
};

template <class T>
void combine_as(Combine how, std::span<const void* const> parts, T* out, int64_t count) {
    const auto divisor = how == Combine::mean ? static_cast<int64_t>(parts.size()) : 1;
    if (how == Combine::sum || how == Combine::mean) {
        if constexpr (!std::is_same_v<T, bool>) Tree<T, Add>(parts, divisor).run(out, count);
    } else if (how == Combine::product) {
        if constexpr (!std::is_same_v<T, bool>) Tree<T, Multiply>(parts, 1).run(out, count);
    } else if constexpr (!kIsComplex<T>) {
        if (how == Combine::max)
            Tree<T, Larger>(parts, 1).run(out, count);
        else
            Tree<T, Smaller>(parts, 1).run(out, count);
    }
}

}  // namespace

void combine(Combine how, DType dtype, std::span<const void* const> parts, void* out, int64_t count) {
    if (parts.size() == 1) {
        if (parts[0] != out && count > 0) std::memcpy(out, parts[0], static_cast<size_t>(count) * size_of(dtype));
        return;
    }
    visit_dtype(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        combine_as<T>(how, parts, static_cast<T*>(out), count);
    });
}

void check_combine(std::string_view where, Combine how, DType dtype) {
    const bool adds = how == Combine::sum || how == Combine::mean || how == Combine::product;
    if (is_stored_only(dtype))
        throw dtype_error(where, str("elements of type ", name_of(dtype), " are only stored, not computed with"));
    if (dtype == DType::boolean && adds)
        throw dtype_error(where, str("bool has no ", name_of(how))).hint("max is \"or\" and min is \"and\" of bools");
    if (is_complex(dtype) && !adds)
        throw dtype_error(where, str("complex numbers have no order, hence no ", name_of(how)));
    if (how == Combine::mean && !is_float(dtype) && !is_complex(dtype))
        throw dtype_error(where, str("the mean of ", name_of(dtype), " is no ", name_of(dtype)))
            .hint("convert to float32, or use sum");
}

}  // namespace lunaria::parallel
