// Softmax along any axis, normalisation of groups, parts of a tensor that are replaced, products of other numbers.
#include <cmath>
#include <cstring>

#include "core/lite/runtime/elements.h"

namespace lunaria::lite {

namespace {

// One line of n floats, in place: x - max, or its exponential over the sum of all.
void softmax_line(float* x, int64_t n, bool logarithm, BlockFunction exp) {
    constexpr int64_t kPart = 512;
    alignas(64) float part[kPart];
    const float most = blocks().rows.largest(x, n, -std::numeric_limits<float>::infinity());
    double sum = 0;
    const int64_t dense = 1;
    for (int64_t i = 0; i < n; i += kPart) {
        const int64_t here = std::min(kPart, n - i), whole = (here + kGroup - 1) / kGroup * kGroup;
        for (int64_t k = 0; k < here; ++k) part[k] = x[i + k] - most;
        for (int64_t k = here; k < whole; ++k) part[k] = 0;
        if (logarithm) std::memcpy(x + i, part, static_cast<size_t>(here) * sizeof(float));
        const char* const in = reinterpret_cast<const char*>(part);
        exp(&in, &dense, reinterpret_cast<char*>(part), whole);
        RowSum total;
        blocks().rows.sum(part, here, false, total);
        for (double lane : total.lanes) sum += lane;
        sum += total.total;
        if (!logarithm) std::memcpy(x + i, part, static_cast<size_t>(here) * sizeof(float));
    }
    const auto factor = static_cast<float>(1 / sum), shift = static_cast<float>(std::log(sum));
    for (int64_t i = 0; i < n; ++i) x[i] = logarithm ? x[i] - shift : x[i] * factor;
}

template <bool Logarithm>
std::unique_ptr<Work> prepare_softmax(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 1, 1, fault)) return nullptr;
    const Operand &x = form.in[0], &y = form.out[0];
    const int axis = x.rank() ? axis_of(form, x.rank(), -1) : 0;
    const MemoryFunction load = loader_of(x.dtype), store = storer_of(y.dtype);
    if (!fits(axis >= 0 && x.size() == y.size() && lane_of(x.dtype) == Lane::single &&
                  lane_of(y.dtype) == Lane::single && load && store,
              fault))
        return nullptr;
    const Around a = x.rank() ? around(x.shape, axis) : Around{};
    const BlockFunction exp = find_formula("exp", DType::f32)->run;
    return work(
        [=, from = x.width(), to = y.width()](const Call& call) {
            auto lines = [&](int64_t begin, int64_t end, int worker) {
                auto* const line = reinterpret_cast<float*>(call.scratch) + worker * (a.size + 16);
                for (int64_t i = begin; i < end; ++i) {
                    const int64_t start = i / a.inner * a.size * a.inner + i % a.inner;
                    if (a.inner == 1)
                        load(call.in[0] + start * from, line, a.size);
                    else
                        for (int64_t k = 0; k < a.size; ++k)
                            load(call.in[0] + (start + k * a.inner) * from, line + k, 1);
                    softmax_line(line, a.size, Logarithm, exp);
                    if (a.inner == 1)
                        store(line, call.out[0] + start * to, a.size);
                    else
                        for (int64_t k = 0; k < a.size; ++k)
                            store(line + k, call.out[0] + (start + k * a.inner) * to, 1);
                }
            };
            if (a.size > 0) share(call.workers, a.outer * a.inner, std::max<int64_t>(1, 4096 / a.size), lines);
        },
        (a.size + 16) * 4 * form.workers);
}

std::unique_ptr<Work> prepare_group_norm(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 1, 1, fault)) return nullptr;
    const Operand &x = form.in[0], &y = form.out[0], &w = form.operand(1), &b = form.operand(2);
    const int64_t groups = form.integer("num_groups", 1);
    bool good = x.rank() >= 2 && x.dtype == DType::f32 && y.dtype == DType::f32 && y.size() == x.size() &&
                groups >= 1 && x.shape[1] % groups == 0;
    for (const Operand* o : {&w, &b})
        good = good && (!o->is_there() || (o->dtype == DType::f32 && o->size() == x.shape[1] && o->is_dense()));
    if (!fits(good, fault)) return nullptr;
    const int64_t channels = x.shape[1] / groups,
                  pixels = x.shape[0] && x.shape[1] ? x.size() / x.shape[0] / x.shape[1] : 0;
    const bool has_w = w.is_there(), has_b = b.is_there();
    return work([=, eps = form.number("eps", 1e-5), count = x.shape[0] * groups](const Call& call) {
        const int64_t n = channels * pixels;
        share(call.workers, count, std::max<int64_t>(1, 8192 / std::max<int64_t>(n, 1)),
              [&](int64_t begin, int64_t end, int) {
                  for (int64_t g = begin; g < end; ++g) {
                      const auto* const from = reinterpret_cast<const float*>(call.in[0]) + g * n;
                      auto* const to = reinterpret_cast<float*>(call.out[0]) + g * n;
                      double mean = 0, spread = 0;
                      for (int64_t i = 0; i < n; ++i) mean += static_cast<double>(from[i]);
                      mean /= static_cast<double>(n);
                      for (int64_t i = 0; i < n; ++i) {
                          const double d = static_cast<double>(from[i]) - mean;
                          spread += d * d;
                      }
                      const double factor = 1 / std::sqrt(spread / static_cast<double>(n) + eps);
                      for (int64_t c = 0; c < channels; ++c) {
                          const int64_t channel = g % groups * channels + c;
                          const double scale =
                              factor *
                              (has_w ? static_cast<double>(reinterpret_cast<const float*>(call.in[1])[channel]) : 1);
                          const double shift =
                              has_b ? static_cast<double>(reinterpret_cast<const float*>(call.in[2])[channel]) : 0;
                          for (int64_t i = c * pixels; i < (c + 1) * pixels; ++i)
                              to[i] = static_cast<float>((static_cast<double>(from[i]) - mean) * scale + shift);
                      }
                  }
              });
    });
}

// The part of a tensor that strided_slice of the same arguments would give.
struct Part {
    std::vector<int64_t> sizes, steps;  // in elements
    int64_t start = 0;
};
int64_t steps_between(int64_t from, int64_t to, int64_t step) {
    return std::max<int64_t>(0, step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step);
}
bool read_part(const StepForm& form, const Operand& x, Part& part) {
    const std::vector<int64_t> begin = form.integers("begin"), stop = form.integers("stop"),
                               given = form.integers("strides");
    auto bit = [&](const char* mask, size_t i) { return (form.integer(mask) >> i & 1) != 0; };
    if (stop.size() != begin.size() || begin.size() > 63) return false;
    size_t axis = 0, left = 0;
    for (size_t i = 0; i < begin.size(); ++i) left += bit("new_axis_mask", i) || bit("ellipsis_mask", i) ? 0 : 1;
    if (left > x.shape.size()) return false;
    auto whole = [&] {
        part.sizes.push_back(x.shape[axis]);
        part.steps.push_back(x.strides[axis++]);
    };
    for (size_t i = 0; i < begin.size(); ++i) {
        if (bit("ellipsis_mask", i)) {
            while (x.shape.size() - axis > left) whole();
            continue;
        }
        if (bit("new_axis_mask", i)) {
            part.sizes.push_back(1);
            part.steps.push_back(0);
            continue;
        }
        --left;
        const int64_t size = x.shape[axis], step = i < given.size() ? given[i] : 1;
        if (step == 0) return false;
        int64_t from = begin[i] < 0 ? begin[i] + size : begin[i], to = stop[i] < 0 ? stop[i] + size : stop[i];
        if (bit("shrink_axis_mask", i)) {
            if (from < 0 || from >= size) return false;
            part.start += from * x.strides[axis++];
            continue;
        }
        if (step > 0) {
            from = bit("begin_mask", i) ? 0 : std::clamp<int64_t>(from, 0, size);
            to = bit("end_mask", i) ? size : std::clamp<int64_t>(to, 0, size);
        } else {
            from = bit("begin_mask", i) ? size - 1 : std::clamp<int64_t>(from, -1, size - 1);
            to = bit("end_mask", i) ? -1 : std::clamp<int64_t>(to, -1, size - 1);
        }
        const int64_t count = steps_between(from, to, step);
        part.start += std::min<int64_t>(count, 1) * from * x.strides[axis];
        part.sizes.push_back(count);
        part.steps.push_back(step * x.strides[axis++]);
    }
    while (axis < x.shape.size()) whole();
    return true;
}

// A copy of a tensor, and a value that takes the place of a part of it.
struct Replacement {
    std::vector<int64_t> shape, strides;  // of the tensor
    bool is_dense = true, is_single = false;
    int64_t count = 0;
    std::vector<int64_t> outer, steps, value_steps;  // of the part, but for its last axis
    int64_t start = 0, run = 1, step = 1, value_step = 1;

    template <class T>
    void copy(const T* from, T* to) const {
        if (is_single && count > 0)
            std::fill_n(to, count, *from);
        else if (!is_dense)
            for (int64_t i = 0; i < count; ++i) to[i] = from[place_of(i, shape, strides)];
        else if (to != from)
            std::memmove(to, from, static_cast<size_t>(count) * sizeof(T));
    }
    template <class T>
    void replace(const T* values, T* to) const {
        int64_t rows = 1;
        for (const int64_t n : outer) rows *= n;
        for (int64_t i = 0; i < rows; ++i) {
            T* const row = to + start + place_of(i, outer, steps);
            const T* const source = values + place_of(i, outer, value_steps);
            if (step == 1 && value_step == 1)
                std::memcpy(row, source, static_cast<size_t>(run) * sizeof(T));
            else
                for (int64_t k = 0; k < run; ++k) row[k * step] = source[k * value_step];
        }
    }
};

std::unique_ptr<Work> prepare_slice_assign(const StepForm& form, std::string& fault) {
    if (!fits(form.in.size() >= 2 && form.out.size() == 1 && form.out[0].is_dense() && form.in[1].is_there(), fault))
        return nullptr;
    const Operand &x = form.in[0], &value = form.in[1], &y = form.out[0];
    Part part;
    bool good = x.dtype == y.dtype && value.dtype == y.dtype && x.shape == y.shape && y.width() <= 8 &&
                read_part(form, y, part) && value.shape.size() <= part.sizes.size();
    std::vector<int64_t> steps(part.sizes.size(), 0);
    for (size_t i = 0; good && i < value.shape.size(); ++i) {
        const size_t at = part.sizes.size() - value.shape.size() + i;
        good = value.shape[i] == 1 || value.shape[i] == part.sizes[at];
        steps[at] = value.shape[i] == 1 ? 0 : value.strides[i];
    }
    if (!fits(good, fault)) return nullptr;
    Replacement r{x.shape,
                  x.strides,
                  x.is_dense(),
                  std::ranges::all_of(x.strides, [](int64_t s) { return s == 0; }),
                  y.size(),
                  part.sizes,
                  part.steps,
                  steps,
                  part.start,
                  1,
                  1,
                  1};
    if (!r.outer.empty()) {
        r.run = r.outer.back();
        r.step = r.steps.back();
        r.value_step = r.value_steps.back();
        r.outer.pop_back();
    }
    return work([r, width = y.width()](const Call& call) {
        by_width(width, [&](auto tag) {
            using T = decltype(tag);
            auto* const to = reinterpret_cast<T*>(call.out[0]);
            r.copy(reinterpret_cast<const T*>(call.in[0]), to);
            r.replace(reinterpret_cast<const T*>(call.in[1]), to);
        });
    });
}

std::unique_ptr<Work> prepare_strided_slice(const StepForm& form, std::string& fault) {
    if (!fits(form.in.size() == 1 && form.in[0].is_there() && form.out.size() == 1 && form.out[0].is_dense(), fault))
        return nullptr;
    const Operand &x = form.in[0], &y = form.out[0];
    Part part;
    if (!fits(x.dtype == y.dtype && y.width() <= 8 && read_part(form, x, part), fault)) return nullptr;
    int64_t count = 1;
    for (const int64_t n : part.sizes) count *= n;
    if (!fits(count == y.size(), fault)) return nullptr;
    return work([=, width = y.width()](const Call& call) {
        by_width(width, [&](auto tag) {
            using T = decltype(tag);
            const auto* const from = reinterpret_cast<const T*>(call.in[0]) + part.start;
            share(call.workers, count, 16384, [&](int64_t begin, int64_t end, int) {
                for (int64_t i = begin; i < end; ++i)
                    reinterpret_cast<T*>(call.out[0])[i] = from[place_of(i, part.sizes, part.steps)];
            });
        });
    });
}

std::unique_ptr<Work> prepare_reverse_sequence(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 2, 1, fault)) return nullptr;
    const Operand &x = form.in[0], &lengths = form.in[1], &y = form.out[0];
    const int axis = form.axis(form.has("seq_dim") ? "seq_dim" : "seq_axis", x.rank(), 0),
              batch = form.axis(form.has("batch_dim") ? "batch_dim" : "batch_axis", x.rank(), 0);
    if (!fits(axis >= 0 && batch >= 0 && axis != batch && is_index(lengths.dtype) && x.dtype == y.dtype &&
                  x.shape == y.shape && lengths.size() == x.shape[static_cast<size_t>(batch)] && x.width() <= 8,
              fault))
        return nullptr;
    const Around a = around(x.shape, axis), b = around(x.shape, batch);
    return work([=, width = x.width(), count = x.size(), dtype = lengths.dtype](const Call& call) {
        by_width(width, [&](auto tag) {
            using T = decltype(tag);
            for (int64_t i = 0; i < count; ++i) {
                const int64_t length = index_at(call.in[1], dtype, i / b.inner % b.size), at = i / a.inner % a.size;
                if (length < 0 || length > a.size) return call.fail("a length is out of range");
                const int64_t from = at < length ? i + (length - 1 - 2 * at) * a.inner : i;
                reinterpret_cast<T*>(call.out[0])[i] = reinterpret_cast<const T*>(call.in[0])[from];
            }
        });
    });
}

// Products of matrices of other numbers than f32, in float64 or 64-bit integers; leading axes by numpy's rules.
// A vector is a row on the left and a column on the right.
void make_matrix(Operand& o, bool is_left) {
    if (o.rank() != 1) return;
    o.shape.insert(is_left ? o.shape.begin() : o.shape.end(), 1);
    o.strides.insert(is_left ? o.strides.begin() : o.strides.end(), 0);
}

std::unique_ptr<Work> prepare_matmul(const StepForm& form, std::string& fault) {
    if (!fits(form.in.size() == 2 && form.out.size() == 1 && form.out[0].is_dense(), fault)) return nullptr;
    Operand a = form.in[0], b = form.in[1];
    const Operand& y = form.out[0];
    if (!fits(a.rank() >= 1 && b.rank() >= 1 && a.dtype == b.dtype && loader_of(a.dtype) && storer_of(y.dtype), fault))
        return nullptr;
    make_matrix(a, true);
    make_matrix(b, false);
    const int64_t m = a.shape[a.shape.size() - 2], k = a.shape.back(), n = b.shape.back();
    const size_t outer = std::max(a.shape.size(), b.shape.size()) - 2;
    std::vector<int64_t> sizes(outer, 1), a_steps(outer, 0), b_steps(outer, 0);
    bool good = b.shape[b.shape.size() - 2] == k;
    int64_t batches = 1;
    for (auto& [o, steps] : {std::pair{&a, &a_steps}, std::pair{&b, &b_steps}})
        for (size_t i = 0; i + 2 < o->shape.size(); ++i) {
            const size_t at = outer - (o->shape.size() - 2) + i;
            if (o->shape[i] == 1) continue;
            good = good && (sizes[at] == 1 || sizes[at] == o->shape[i]);
            sizes[at] = o->shape[i];
            (*steps)[at] = o->strides[i];
        }
    for (const int64_t s : sizes) batches *= s;
    if (!fits(good && y.size() == batches * m * n, fault)) return nullptr;
    const Lane lane = lane_of(a.dtype), out = lane_of(y.dtype);
    const bool is_real = lane == Lane::single || lane == Lane::twice;
    return work([=, load = loader_of(a.dtype), store = storer_of(y.dtype), width = a.width(),
                 out_width = y.width()](const Call& call) {
        share(call.workers, batches * m, 4, [&](int64_t begin, int64_t end, int) {
            for (int64_t row = begin; row < end; ++row) {
                int64_t rest = row / m, from_a = row % m * a.strides[a.shape.size() - 2], from_b = 0;
                for (size_t i = outer; i-- > 0;) {
                    from_a += rest % sizes[i] * a_steps[i];
                    from_b += rest % sizes[i] * b_steps[i];
                    rest /= sizes[i];
                }
                for (int64_t j = 0; j < n; ++j) {
                    double real = 0;
                    uint64_t whole = 0;
                    for (int64_t p = 0; p < k; ++p) {
                        Element u{}, v{};
                        load(call.in[0] + (from_a + p * a.strides.back()) * width, &u, 1);
                        load(call.in[1] + (from_b + p * b.strides[b.shape.size() - 2] + j * b.strides.back()) * width,
                             &v, 1);
                        if (is_real)
                            real += u.real(lane) * v.real(lane);
                        else
                            whole += static_cast<uint64_t>(u.integer(lane)) * static_cast<uint64_t>(v.integer(lane));
                    }
                    Element r{};
                    is_real ? r.set(out, real) : r.set(out, static_cast<int64_t>(whole));
                    store(&r, call.out[0] + (row * n + j) * out_width, 1);
                }
            }
        });
    });
}

constexpr StepKind kRowStepsKinds[] = {{"softmax", prepare_softmax<false>},
                                       {"log_softmax", prepare_softmax<true>},
                                       {"group_norm", prepare_group_norm},
                                       {"slice_assign", prepare_slice_assign},
                                       {"strided_slice", prepare_strided_slice},
                                       {"reverse_sequence", prepare_reverse_sequence},
                                       {"matmul", prepare_matmul}};

}  // namespace

std::span<const StepKind> row_kinds() { return kRowStepsKinds; }

}  // namespace lunaria::lite
