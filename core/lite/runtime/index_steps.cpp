// Steps that read or write elements at places that are computed: gathers and scatters.
#include <cstring>

#include "backends/cpu/int.h"
#include "core/lite/runtime/elements.h"

namespace lunaria::lite {

namespace {

constexpr const char* kOutside = "an index is out of range";

std::unique_ptr<Work> prepare_gather(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 2, 1, fault)) return nullptr;
    const Operand &x = form.in[0], &index = form.in[1], &y = form.out[0];
    const int axis = axis_of(form, x.rank(), 0);
    if (!fits(axis >= 0 && is_index(index.dtype) && x.dtype == y.dtype, fault)) return nullptr;
    const Around a = around(x.shape, axis);
    const int64_t count = index.size(), run = a.inner * x.width();
    if (!fits(y.size() == a.outer * count * a.inner, fault)) return nullptr;
    return work([=, dtype = index.dtype](const Call& call) {
        share(call.workers, a.outer * count, std::max<int64_t>(1, 65536 / std::max<int64_t>(run, 1)),
              [&](int64_t begin, int64_t end, int) {
                  for (int64_t i = begin; i < end; ++i) {
                      const int64_t at = index_at(call.in[1], dtype, i % count, a.size);
                      if (at < 0) return call.fail(kOutside);
                      std::memcpy(call.out[0] + i * run, call.in[0] + (i / count * a.size + at) * run,
                                  static_cast<size_t>(run));
                  }
              });
    });
}

// The place of element i of a tensor of this shape in another one with these strides, where it is `at` along `axis`.
int64_t place_along(int64_t i, const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, int axis,
                    int64_t at) {
    int64_t place = 0;
    for (size_t k = shape.size(); k-- > 0;) {
        place += (static_cast<int>(k) == axis ? at : i % shape[k]) * strides[k];
        i /= shape[k];
    }
    return place;
}

std::unique_ptr<Work> prepare_gather_elements(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 2, 1, fault)) return nullptr;
    const Operand &x = form.in[0], &index = form.in[1], &y = form.out[0];
    const int axis = axis_of(form, x.rank(), 0);
    bool good = axis >= 0 && is_index(index.dtype) && x.dtype == y.dtype && x.rank() == index.rank() &&
                y.size() == index.size() && x.width() <= 8;
    for (int i = 0; good && i < x.rank(); ++i)
        good = i == axis || index.shape[static_cast<size_t>(i)] <= x.shape[static_cast<size_t>(i)];
    if (!fits(good, fault)) return nullptr;
    return work([=, dtype = index.dtype, shape = index.shape, strides = x.strides, count = index.size(),
                 width = x.width(), size = x.shape[static_cast<size_t>(axis)]](const Call& call) {
        by_width(width, [&](auto tag) {
            using T = decltype(tag);
            share(call.workers, count, 8192, [&](int64_t begin, int64_t end, int) {
                for (int64_t i = begin; i < end; ++i) {
                    const int64_t at = index_at(call.in[1], dtype, i, size);
                    if (at < 0) return call.fail(kOutside);
                    reinterpret_cast<T*>(call.out[0])[i] =
                        reinterpret_cast<const T*>(call.in[0])[place_along(i, shape, strides, axis, at)];
                }
            });
        });
    });
}

// Indices whose last axis names an element, or a slice, of a tensor.
struct Tuples {
    int64_t count = 0, depth = 0, run = 0;  // run: elements of a slice
    std::vector<int64_t> sizes, strides;    // of the indexed axes
    DType dtype = DType::i64;

    // -1: out of range.
    int64_t place(const char* indices, int64_t i) const {
        int64_t at = 0;
        for (int64_t k = 0; k < depth; ++k) {
            const int64_t n = index_at(indices, dtype, i * depth + k, sizes[static_cast<size_t>(k)]);
            if (n < 0) return -1;
            at += n * strides[static_cast<size_t>(k)];
        }
        return at;
    }
};
bool read_tuples(const Operand& x, const Operand& index, Tuples& t, std::string& fault) {
    if (!fits(index.rank() >= 1 && is_index(index.dtype) && index.shape.back() <= x.rank(), fault)) return false;
    t.depth = index.shape.back();
    t.count = t.depth > 0 ? index.size() / t.depth : 0;
    t.dtype = index.dtype;
    t.run = 1;
    for (size_t i = 0; i < x.shape.size(); ++i)
        if (static_cast<int64_t>(i) < t.depth) {
            t.sizes.push_back(x.shape[i]);
            t.strides.push_back(x.strides[i]);
        } else {
            t.run *= x.shape[i];
        }
    return true;
}

std::unique_ptr<Work> prepare_gather_nd(const StepForm& form, std::string& fault) {
    Tuples t;
    if (!has_operands(form, 2, 1, fault) || !read_tuples(form.in[0], form.in[1], t, fault)) return nullptr;
    const int64_t width = form.in[0].width();
    if (!fits(form.out[0].size() == t.count * t.run && form.out[0].dtype == form.in[0].dtype, fault)) return nullptr;
    return work([=](const Call& call) {
        for (int64_t i = 0; i < t.count; ++i) {
            const int64_t at = t.place(call.in[1], i);
            if (at < 0) return call.fail(kOutside);
            std::memcpy(call.out[0] + i * t.run * width, call.in[0] + at * width, static_cast<size_t>(t.run * width));
        }
    });
}

enum class Join : uint8_t { update, add, sub, mul, div, max, min };

template <Join J, class N>
N computed(N a, N b) {
    if constexpr (J == Join::update) return b;
    if constexpr (J == Join::add) return a + b;
    if constexpr (J == Join::sub) return a - b;
    if constexpr (J == Join::mul) return a * b;
    if constexpr (J == Join::div) return a / b;
    if constexpr (J == Join::max) return a > b || a != a ? a : b;
    if constexpr (J == Join::min) return a < b || a != a ? a : b;
}
// Integers wrap around.
template <Join J, class T>
T joined(T a, T b) {
    if constexpr (std::is_integral_v<T>)
        return computed<J>(cpu::Int<T>(a), cpu::Int<T>(b)).v;
    else
        return computed<J>(a, b);
}
template <Join J>
bool may_join(const Operand& x) {
    return J == Join::update ? x.width() <= 8 : by_number(x.dtype, [](auto) {});
}
template <Join J, class F>
void by_element(const Operand& x, F&& f) {
    if constexpr (J == Join::update)
        by_width(x.width(), f);
    else
        by_number(x.dtype, f);
}

void copy_all(const Call& call, const Operand& x) {
    if (x.is_dense()) {
        if (call.out[0] != call.in[0]) std::memmove(call.out[0], call.in[0], static_cast<size_t>(x.size() * x.width()));
        return;
    }
    by_width(x.width(), [&](auto tag) {
        using T = decltype(tag);
        const int64_t count = x.size();
        for (int64_t i = 0; i < count; ++i)
            reinterpret_cast<T*>(call.out[0])[i] =
                reinterpret_cast<const T*>(call.in[0])[place_of(i, x.shape, x.strides)];
    });
}
// The operands of a scatter: the first may be any view.
bool has_scatter(const StepForm& form, std::string& fault) {
    if (form.in.empty() || !form.in[0].is_there()) return fits(false, fault);
    StepForm rest{form.step, form.model, form.dimensions, form.isa, form.workers};
    rest.in.assign(form.in.begin() + 1, form.in.end());
    rest.out = form.out;
    return has_operands(rest, 2, 1, fault);
}

template <Join J>
std::unique_ptr<Work> prepare_scatter_nd(const StepForm& form, std::string& fault) {
    Tuples t;
    if (!has_scatter(form, fault) || !read_tuples(form.out[0], form.in[1], t, fault)) return nullptr;
    const Operand &x = form.in[0], &updates = form.in[2], &y = form.out[0];
    if (!fits(x.dtype == y.dtype && x.size() == y.size() && updates.dtype == x.dtype &&
                  updates.size() == t.count * t.run && may_join<J>(x),
              fault))
        return nullptr;
    return work([t, x](const Call& call) {
        copy_all(call, x);
        by_element<J>(x, [&](auto tag) {
            using T = decltype(tag);
            const auto* const from = reinterpret_cast<const T*>(call.in[2]);
            auto* const to = reinterpret_cast<T*>(call.out[0]);
            for (int64_t i = 0; i < t.count; ++i) {
                const int64_t at = t.place(call.in[1], i);
                if (at < 0) return call.fail(kOutside);
                for (int64_t k = 0; k < t.run; ++k) to[at + k] = joined<J>(to[at + k], from[i * t.run + k]);
            }
        });
    });
}

template <Join J>
std::unique_ptr<Work> scatter_elements(const StepForm& form, std::string& fault) {
    const Operand &x = form.in[0], &index = form.in[1], &updates = form.in[2], &y = form.out[0];
    const int axis = axis_of(form, x.rank(), 0);
    bool good = axis >= 0 && is_index(index.dtype) && x.dtype == y.dtype && x.size() == y.size() &&
                index.rank() == x.rank() && updates.dtype == x.dtype && updates.rank() == x.rank() && may_join<J>(x);
    for (size_t i = 0; good && i < x.shape.size(); ++i)
        good = index.shape[i] <= updates.shape[i] && (static_cast<int>(i) == axis || index.shape[i] <= x.shape[i]);
    if (!fits(good, fault)) return nullptr;
    return work([=](const Call& call) {
        copy_all(call, x);
        const int64_t size = x.shape[static_cast<size_t>(axis)], count = index.size();
        by_element<J>(x, [&](auto tag) {
            using T = decltype(tag);
            auto* const to = reinterpret_cast<T*>(call.out[0]);
            for (int64_t i = 0; i < count; ++i) {
                const int64_t at = index_at(call.in[1], index.dtype, i, size);
                if (at < 0) return call.fail(kOutside);
                const int64_t from = place_of(i, index.shape, updates.strides);
                T& element = to[place_along(i, index.shape, y.strides, axis, at)];
                element = joined<J>(element, reinterpret_cast<const T*>(call.in[2])[from]);
            }
        });
    });
}
// The scatter with the join that an attribute names.
template <template <Join> class Make>
std::unique_ptr<Work> by_reduction(const StepForm& form, std::string& fault) {
    if (!has_scatter(form, fault)) return nullptr;
    const std::string_view how = form.text(form.has("reduction") ? "reduction" : "reduce");
    if (how.empty() || how == "none" || how == "update") return Make<Join::update>::make(form, fault);
    if (how == "add") return Make<Join::add>::make(form, fault);
    if (how == "sub") return Make<Join::sub>::make(form, fault);
    if (how == "mul") return Make<Join::mul>::make(form, fault);
    if (how == "div") return Make<Join::div>::make(form, fault);
    if (how == "max") return Make<Join::max>::make(form, fault);
    if (how == "min") return Make<Join::min>::make(form, fault);
    fault = "there is no reduction '" + std::string(how) + "'";
    return nullptr;
}
template <Join J>
struct Elements {
    static std::unique_ptr<Work> make(const StepForm& form, std::string& fault) {
        return scatter_elements<J>(form, fault);
    }
};
template <Join J>
struct Points {
    static std::unique_ptr<Work> make(const StepForm& form, std::string& fault) {
        return prepare_scatter_nd<J>(form, fault);
    }
};

std::unique_ptr<Work> prepare_index_add(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 3, 1, fault)) return nullptr;
    const Operand &x = form.in[0], &index = form.in[1], &source = form.in[2];
    const int axis = axis_of(form, x.rank(), 0);
    if (!fits(axis >= 0 && is_index(index.dtype) && source.rank() == x.rank() && source.dtype == x.dtype &&
                  form.out[0].size() == x.size() && may_join<Join::add>(x),
              fault))
        return nullptr;
    const Around a = around(x.shape, axis), s = around(source.shape, axis);
    if (!fits(a.outer == s.outer && a.inner == s.inner && s.size == index.size(), fault)) return nullptr;
    return work([=, dtype = index.dtype, alpha = form.number("alpha", 1)](const Call& call) {
        copy_all(call, x);
        by_number(x.dtype, [&](auto tag) {
            using T = decltype(tag);
            const auto factor = static_cast<T>(alpha);
            for (int64_t o = 0; o < a.outer; ++o)
                for (int64_t i = 0; i < s.size; ++i) {
                    const int64_t at = index_at(call.in[1], dtype, i, a.size);
                    if (at < 0) return call.fail(kOutside);
                    const T* from = reinterpret_cast<const T*>(call.in[2]) + (o * s.size + i) * a.inner;
                    T* to = reinterpret_cast<T*>(call.out[0]) + (o * a.size + at) * a.inner;
                    for (int64_t k = 0; k < a.inner; ++k) to[k] = static_cast<T>(to[k] + factor * from[k]);
                }
        });
    });
}

std::unique_ptr<Work> prepare_one_hot(const StepForm& form, std::string& fault) {
    if (!fits(!form.in.empty() && form.out.size() == 1 && form.in[0].is_dense() && form.out[0].is_dense(), fault))
        return nullptr;
    const Operand &index = form.in[0], &y = form.out[0], &on = form.operand(1), &off = form.operand(2);
    const int axis = axis_of(form, y.rank(), -1);
    const bool good = axis >= 0 && is_index(index.dtype) && y.width() <= 8 && y.rank() == index.rank() + 1 &&
                      (!on.is_there() || (on.dtype == y.dtype && on.size() == 1)) &&
                      (!off.is_there() || (off.dtype == y.dtype && off.size() == 1));
    if (!fits(good, fault)) return nullptr;
    const Around a = around(y.shape, axis);
    if (!fits(a.outer * a.inner == index.size(), fault)) return nullptr;
    // The values where they are no operands: 1 and 0, as bytes of the dtype.
    char one[8] = {}, zero[8] = {};
    const double units[] = {form.number("on_value", 1), form.number("off_value", 0)};
    const bool numbers = by_number(y.dtype, [&](auto tag) {
        using T = decltype(tag);
        const T values[] = {static_cast<T>(units[0]), static_cast<T>(units[1])};
        std::memcpy(one, values, sizeof(T));
        std::memcpy(zero, values + 1, sizeof(T));
    });
    if (!fits(numbers || (on.is_there() && off.is_there()), fault)) return nullptr;
    struct Bytes {
        char one[8], zero[8];
    } bytes;
    std::memcpy(bytes.one, one, 8);
    std::memcpy(bytes.zero, zero, 8);
    const bool has_on = on.is_there(), has_off = off.is_there();
    return work([=, dtype = index.dtype, width = y.width()](const Call& call) {
        by_width(width, [&](auto tag) {
            using T = decltype(tag);
            T yes, no;
            std::memcpy(&yes, has_on ? call.in[1] : bytes.one, sizeof(T));
            std::memcpy(&no, has_off ? call.in[2] : bytes.zero, sizeof(T));
            auto* const to = reinterpret_cast<T*>(call.out[0]);
            for (int64_t o = 0; o < a.outer; ++o)
                for (int64_t i = 0; i < a.inner; ++i) {
                    const int64_t at = index_at(call.in[0], dtype, o * a.inner + i);
                    for (int64_t k = 0; k < a.size; ++k) to[(o * a.size + k) * a.inner + i] = k == at ? yes : no;
                }
        });
    });
}

// x (..., size) at indices into its last `axes` axes, taken as one.
std::unique_ptr<Work> prepare_plane_gather(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 2, 1, fault)) return nullptr;
    const Operand &x = form.in[0], &index = form.in[1], &y = form.out[0];
    const int64_t axes = form.integer("axes", 1);
    if (!fits(axes >= 1 && axes <= x.rank() && axes <= index.rank() && x.dtype == y.dtype && is_index(index.dtype) &&
                  y.size() == index.size() && x.width() <= 8,
              fault))
        return nullptr;
    int64_t plane = 1, many = 1;
    for (int64_t i = 0; i < axes; ++i) {
        plane *= x.shape[x.shape.size() - 1 - static_cast<size_t>(i)];
        many *= index.shape[index.shape.size() - 1 - static_cast<size_t>(i)];
    }
    if (!fits(many > 0 && plane > 0 && x.size() / plane == index.size() / many, fault)) return nullptr;
    return work([=, dtype = index.dtype, count = index.size(), width = x.width()](const Call& call) {
        by_width(width, [&](auto tag) {
            using T = decltype(tag);
            for (int64_t i = 0; i < count; ++i) {
                const int64_t at = index_at(call.in[1], dtype, i);
                if (at < 0 || at >= plane) return call.fail(kOutside);
                reinterpret_cast<T*>(call.out[0])[i] = reinterpret_cast<const T*>(call.in[0])[i / many * plane + at];
            }
        });
    });
}

constexpr StepKind kIndexStepsKinds[] = {{"gather", prepare_gather},
                                         {"gather_elements", prepare_gather_elements},
                                         {"gather_nd", prepare_gather_nd},
                                         {"tensor_scatter_update", prepare_scatter_nd<Join::update>},
                                         {"tensor_scatter_add", prepare_scatter_nd<Join::add>},
                                         {"tensor_scatter_sub", prepare_scatter_nd<Join::sub>},
                                         {"tensor_scatter_mul", prepare_scatter_nd<Join::mul>},
                                         {"tensor_scatter_div", prepare_scatter_nd<Join::div>},
                                         {"tensor_scatter_max", prepare_scatter_nd<Join::max>},
                                         {"tensor_scatter_min", prepare_scatter_nd<Join::min>},
                                         {"tensor_scatter_elements", by_reduction<Elements>},
                                         {"tensor_scatter_nd", by_reduction<Points>},
                                         {"index_add", prepare_index_add},
                                         {"one_hot", prepare_one_hot},
                                         {"plane_gather", prepare_plane_gather}};

}  // namespace

std::span<const StepKind> index_kinds() { return kIndexStepsKinds; }

}  // namespace lunaria::lite
