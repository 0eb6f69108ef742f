// Steps that put elements in another order: copies of views, concatenations, triangles, conversions.
#include <cstring>

#include "core/lite/runtime/elements.h"

namespace lunaria::lite {

namespace {

// The axes of a copy to dense memory, neighbours that are gone through in equal steps joined, without those of size 1.
struct Axes {
    std::vector<int64_t> sizes, from, to;  // steps in elements
    int64_t count = 1;
};
Axes axes_of(const Operand& x) {
    Axes a;
    int64_t step = 1;
    for (size_t i = x.shape.size(); i-- > 0;) {
        const int64_t size = x.shape[i];
        a.count *= size;
        if (size == 1) continue;
        if (!a.sizes.empty() && a.from.back() * a.sizes.back() == x.strides[i] &&
            a.to.back() * a.sizes.back() == step) {
            a.sizes.back() *= size;
        } else {
            a.sizes.push_back(size);
            a.from.push_back(x.strides[i]);
            a.to.push_back(step);
        }
        step *= size;
    }
    return a;
}

// A plane of two axes, in squares so that both sides stay in the cache.
template <class T>
void copy_plane(const T* from, T* to, int64_t rows, int64_t columns, int64_t from_row, int64_t from_column,
                int64_t to_row, int64_t to_column) {
    constexpr int64_t kSquare = 16;
    for (int64_t i = 0; i < rows; i += kSquare)
        for (int64_t j = 0; j < columns; j += kSquare)
            for (int64_t r = i; r < std::min(rows, i + kSquare); ++r)
                for (int64_t c = j; c < std::min(columns, j + kSquare); ++c)
                    to[r * to_row + c * to_column] = from[r * from_row + c * from_column];
}

// Planes of two axes, and the axes along which they lie.
struct Planes {
    int64_t rows = 1, columns = 1;
    int64_t from_row = 0, from_column = 1, to_row = 0, to_column = 1;
    std::vector<int64_t> sizes, from, to;
    int64_t count = 1;
    int64_t width = 4;

    bool is_transposition() const {
        return count == 1 && from_row == 1 && to_column == 1 && to_row == columns && width <= 4 && from_column == rows;
    }
};
// The last axis of the result, and the axis of neighbours of the operand if that is another.
Planes planes_of(const Axes& a, int64_t width) {
    Planes p;
    p.width = width;
    size_t other = a.sizes.size() > 1 ? 1 : 0;
    for (size_t i = 1; i < a.sizes.size(); ++i)
        if (a.from[0] != 1 && a.from[i] == 1) other = i;
    p.columns = a.sizes[0];
    p.from_column = a.from[0];
    p.to_column = a.to[0];
    if (other) {
        p.rows = a.sizes[other];
        p.from_row = a.from[other];
        p.to_row = a.to[other];
    }
    for (size_t i = 1; i < a.sizes.size(); ++i) {
        if (i == other) continue;
        p.sizes.push_back(a.sizes[i]);
        p.from.push_back(a.from[i]);
        p.to.push_back(a.to[i]);
        p.count *= a.sizes[i];
    }
    return p;
}
template <class T>
void copy_planes(const Planes& p, const T* x, T* y, int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
        int64_t rest = plane, at = 0, put = 0;
        for (size_t i = 0; i < p.sizes.size(); ++i) {
            const int64_t k = rest % p.sizes[i];
            rest /= p.sizes[i];
            at += k * p.from[i];
            put += k * p.to[i];
        }
        if (p.from_column == 1 && p.to_column == 1)
            for (int64_t r = 0; r < p.rows; ++r)
                std::memcpy(y + put + r * p.to_row, x + at + r * p.from_row,
                            static_cast<size_t>(p.columns) * sizeof(T));
        else
            copy_plane(x + at, y + put, p.rows, p.columns, p.from_row, p.from_column, p.to_row, p.to_column);
    }
}

std::unique_ptr<Work> prepare_copy(const StepForm& form, std::string& fault) {
    if (!fits(form.in.size() == 1 && form.out.size() == 1 && form.in[0].is_there() && form.out[0].is_there(), fault))
        return nullptr;
    const Operand &x = form.in[0], &y = form.out[0];
    if (!fits(x.dtype == y.dtype && x.size() == y.size() && y.is_dense() && x.form == Form::plain, fault))
        return nullptr;
    const Axes a = axes_of(x);
    const int64_t width = x.width();
    if (a.count == 0) return work([](const Call&) {});
    if (a.sizes.empty() || (a.sizes.size() == 1 && a.from[0] == 1))
        return work([bytes = a.count * width](const Call& call) {
            if (call.out[0] != call.in[0]) std::memmove(call.out[0], call.in[0], static_cast<size_t>(bytes));
        });
    if (!fits(width <= 8, fault, "it copies elements of an unknown size")) return nullptr;
    return work([p = planes_of(a, width), isa = form.isa](const Call& call) {
        if (p.is_transposition())
            return kernels::transpose(isa, static_cast<int>(p.width), 1, p.columns, p.rows, call.in[0], call.out[0],
                                      call.workers);
        by_width(p.width, [&](auto tag) {
            using T = decltype(tag);
            const auto* const x = reinterpret_cast<const T*>(call.in[0]);
            auto* const y = reinterpret_cast<T*>(call.out[0]);
            share(call.workers, p.count, std::max<int64_t>(1, 16384 / (p.rows * p.columns)),
                  [&](int64_t begin, int64_t end, int) { copy_planes(p, x, y, begin, end); });
        });
    });
}

std::unique_ptr<Work> prepare_concat(const StepForm& form, std::string& fault) {
    if (!has_operands(form, form.in.size(), 1, fault)) return nullptr;
    const Operand& y = form.out[0];
    const int axis = axis_of(form, y.rank(), 0);
    if (!fits(axis >= 0 && !form.in.empty(), fault)) return nullptr;
    std::vector<int64_t> runs;  // bytes
    int64_t total = 0, outer = around(y.shape, axis).outer;
    for (const Operand& x : form.in) {
        const Around a = around(x.shape, axis);
        if (!fits(x.rank() == y.rank() && x.dtype == y.dtype && (a.outer == outer || x.size() == 0), fault))
            return nullptr;
        runs.push_back(x.size() == 0 ? 0 : a.size * a.inner * x.width());
        total += runs.back();
    }
    if (!fits(total * outer == y.size() * y.width(), fault)) return nullptr;
    return work([=](const Call& call) {
        int64_t at = 0;
        for (size_t k = 0; k < runs.size(); ++k) {
            for (int64_t i = 0; i < outer; ++i)
                std::memcpy(call.out[0] + i * total + at, call.in[k] + i * runs[k], static_cast<size_t>(runs[k]));
            at += runs[k];
        }
    });
}

std::unique_ptr<Work> prepare_flip(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 1, 1, fault)) return nullptr;
    const Operand &x = form.in[0], &y = form.out[0];
    if (!fits(x.shape == y.shape && x.dtype == y.dtype && x.width() <= 8, fault)) return nullptr;
    // A view from the last element on backwards.
    std::vector<int64_t> strides = x.strides;
    int64_t start = 0;
    for (int64_t axis : form.integers(form.has("dims") ? "dims" : "axis")) {
        if (axis < 0) axis += x.rank();
        if (!fits(axis >= 0 && axis < x.rank(), fault)) return nullptr;
        const auto i = static_cast<size_t>(axis);
        if (x.shape[i] > 0) start += (x.shape[i] - 1) * strides[i];
        strides[i] = -strides[i];
    }
    return work([=, shape = x.shape, width = x.width(), count = x.size()](const Call& call) {
        by_width(width, [&](auto tag) {
            using T = decltype(tag);
            const auto* const from = reinterpret_cast<const T*>(call.in[0]) + start;
            auto* const to = reinterpret_cast<T*>(call.out[0]);
            share(call.workers, count, 16384, [&](int64_t begin, int64_t end, int) {
                for (int64_t i = begin; i < end; ++i) to[i] = from[place_of(i, shape, strides)];
            });
        });
    });
}

template <bool Lower>
std::unique_ptr<Work> prepare_triangle(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 1, 1, fault)) return nullptr;
    const Operand &x = form.in[0], &y = form.out[0];
    if (!fits(x.shape == y.shape && x.dtype == y.dtype && x.rank() >= 2 && x.width() <= 8, fault)) return nullptr;
    const int64_t rows = x.shape[x.shape.size() - 2], columns = x.shape.back(), count = x.size();
    return work([=, width = x.width(), diagonal = form.integer("diagonal")](const Call& call) {
        by_width(width, [&](auto tag) {
            using T = decltype(tag);
            const auto* const from = reinterpret_cast<const T*>(call.in[0]);
            auto* const to = reinterpret_cast<T*>(call.out[0]);
            for (int64_t i = 0; i < count; ++i) {
                const int64_t row = i / columns % rows, column = i % columns;
                const bool keeps = Lower ? column - row <= diagonal : column - row >= diagonal;
                to[i] = keeps ? from[i] : T(0);
            }
        });
    });
}

std::unique_ptr<Work> prepare_cast(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 1, 1, fault)) return nullptr;
    const Operand &x = form.in[0], &y = form.out[0];
    const MemoryFunction load = loader_of(x.dtype), store = storer_of(y.dtype);
    if (!fits(load && store && x.size() == y.size(), fault)) return nullptr;
    const BlockFunction change = change_lane(x.dtype, lane_of(y.dtype)), round = round_to(y.dtype);
    return work([=, count = x.size(), from = x.width(), to = y.width()](const Call& call) {
        share(call.workers, count, 16384, [&](int64_t begin, int64_t end, int) {
            constexpr int64_t kPart = 256;
            alignas(64) char a[kPart * 8], b[kPart * 8];
            const int64_t dense = 1;
            for (int64_t i = begin; i < end; i += kPart) {
                const int64_t n = std::min(kPart, end - i), groups = (n + kGroup - 1) / kGroup * kGroup;
                std::memset(a, 0, sizeof a);
                load(call.in[0] + i * from, a, n);
                char *here = a, *other = b;
                for (const BlockFunction f : {change, round}) {
                    if (!f) continue;
                    const char* const in = here;
                    f(&in, &dense, other, groups);
                    std::swap(here, other);
                }
                store(here, call.out[0] + i * to, n);
            }
        });
    });
}

constexpr StepKind kKinds[] = {
    {"copy", prepare_copy},           {"concat", prepare_concat},        {"flip", prepare_flip},
    {"tril", prepare_triangle<true>}, {"triu", prepare_triangle<false>}, {"cast", prepare_cast}};

}  // namespace

std::span<const StepKind> arrangement_kinds() { return kKinds; }

}  // namespace lunaria::lite
