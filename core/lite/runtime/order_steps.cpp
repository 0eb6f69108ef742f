// Steps along an axis whose result depends on the order of elements: sorting, the best of a line, running sums.
#include <bit>
#include <cstring>

#include "core/lite/runtime/elements.h"
#include "core/lite/runtime/plain_blocks.h"

namespace lunaria::lite {

namespace {

// An element as an unsigned number of the same order, with NaN above everything and -0 equal to 0; see also
// backends/cpu/sort_keys.h.
uint64_t key_of(double x) {
    constexpr uint64_t kSign = uint64_t{1} << 63;
    const auto bits = std::bit_cast<uint64_t>(x + 0.0);
    return (bits ^ ((0 - (bits >> 63)) | kSign)) | (0 - static_cast<uint64_t>(x != x));
}
uint64_t key_of(int64_t x, DType t) { return static_cast<uint64_t>(x) ^ (t == DType::u64 ? 0 : uint64_t{1} << 63); }

struct Reader {
    DType dtype = DType::f32;
    MemoryFunction load = nullptr;
    int64_t width = 4;

    bool is_real() const { return lane_of(dtype) == Lane::single || lane_of(dtype) == Lane::twice; }
    uint64_t key(const char* at) const {
        Element x{};
        load(at, &x, 1);
        const Lane lane = lane_of(dtype);
        return is_real() ? key_of(x.real(lane)) : key_of(x.integer(lane), dtype);
    }
};

void put_index(char* to, DType t, int64_t i, int64_t x) {
    if (t == DType::i32)
        reinterpret_cast<int32_t*>(to)[i] = static_cast<int32_t>(x);
    else
        reinterpret_cast<int64_t*>(to)[i] = x;
}
bool takes_indices(const Operand& o) { return o.dtype == DType::i32 || o.dtype == DType::i64; }

struct Item {
    uint64_t key = 0;
    int64_t place = 0;
    friend bool operator<(const Item& a, const Item& b) {
        return a.key < b.key || (a.key == b.key && a.place < b.place);
    }
};

// The first `keep` of each sorted line: their elements (unless `values` is false) and places.
struct Sorting {
    Around around;
    int64_t keep = 0;
    bool descending = false, values = true;
    Reader reader;
    DType index = DType::i64;
    bool indices = true;
};
void sort_lines(const Sorting& s, const Call& call) {
    const int64_t lines = s.around.outer * s.around.inner, n = s.around.size, inner = s.around.inner;
    char* const values = s.values ? call.out[0] : nullptr;
    char* const indices = s.indices ? call.out[s.values ? 1 : 0] : nullptr;
    share(call.workers, lines, std::max<int64_t>(1, 1024 / std::max<int64_t>(n, 1)),
          [&](int64_t begin, int64_t end, int worker) {
              auto* const items = reinterpret_cast<Item*>(call.scratch) + static_cast<int64_t>(worker) * n;
              for (int64_t line = begin; line < end; ++line) {
                  const int64_t from = line / inner * n * inner + line % inner,
                                to = line / inner * s.keep * inner + line % inner;
                  for (int64_t i = 0; i < n; ++i) {
                      const uint64_t key = s.reader.key(call.in[0] + (from + i * inner) * s.reader.width);
                      items[i] = {s.descending ? ~key : key, i};
                  }
                  if (s.keep < n)
                      std::partial_sort(items, items + s.keep, items + n);
                  else
                      std::sort(items, items + n);
                  for (int64_t i = 0; i < s.keep; ++i) {
                      const int64_t at = items[i].place;
                      if (values)
                          std::memcpy(values + (to + i * inner) * s.reader.width,
                                      call.in[0] + (from + at * inner) * s.reader.width,
                                      static_cast<size_t>(s.reader.width));
                      if (indices) put_index(indices, s.index, to + i * inner, at);
                  }
              }
          });
}
std::unique_ptr<Work> prepare_sorting(const StepForm& form, int axis, int64_t keep, bool descending, bool values,
                                      std::string& fault) {
    const Operand& x = form.in[0];
    const bool scalar = x.rank() == 0;
    Sorting s;
    s.around = scalar ? Around{} : around(x.shape, axis);
    s.keep = keep;
    s.descending = descending;
    s.values = values;
    s.reader = {x.dtype, loader_of(x.dtype), x.width()};
    s.indices = form.out.size() > (values ? 1u : 0u) && form.out[values ? 1 : 0].is_there();
    if (s.indices) s.index = form.out[values ? 1 : 0].dtype;
    bool good = s.reader.load && keep >= 0 && keep <= s.around.size;
    for (const Operand& y : form.out)
        good = good && (!y.is_there() || (y.is_dense() && y.size() == s.around.outer * keep * s.around.inner));
    good = good && (!values || form.out[0].dtype == x.dtype) && (!s.indices || takes_indices(form.out[values ? 1 : 0]));
    if (!fits(good, fault)) return nullptr;
    return work([s](const Call& call) { sort_lines(s, call); },
                static_cast<int64_t>(sizeof(Item)) * s.around.size * form.workers);
}
template <bool Values>
std::unique_ptr<Work> prepare_sort(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 1, 1, fault)) return nullptr;
    const Operand& x = form.in[0];
    const int axis = x.rank() ? axis_of(form, x.rank(), -1) : 0;
    if (!fits(axis >= 0, fault)) return nullptr;
    const int64_t n = x.rank() ? x.shape[static_cast<size_t>(axis)] : 1;
    return prepare_sorting(form, axis, n, form.integer("descending") != 0, Values, fault);
}
std::unique_ptr<Work> prepare_topk(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 1, 1, fault)) return nullptr;
    const Operand& x = form.in[0];
    const int axis = x.rank() ? axis_of(form, x.rank(), -1) : 0;
    if (!fits(axis >= 0, fault)) return nullptr;
    return prepare_sorting(form, axis, form.integer("k"), form.integer("largest", 1) != 0, true, fault);
}

// The first place of the largest or smallest element of a line; NaN is the best.
template <bool Largest>
int64_t best_of(const Reader& reader, const char* line, int64_t size, int64_t step) {
    // NaN has the largest key, which no number has: it is the best of both orders. No NaN has the key 0.
    auto key = [&](int64_t i) {
        const uint64_t k = reader.key(line + i * step);
        return Largest || (k == UINT64_MAX && reader.is_real()) ? k : ~k;
    };
    int64_t best = 0;
    uint64_t most = key(0);
    for (int64_t i = 1; i < size; ++i)
        if (const uint64_t k = key(i); k > most) {
            most = k;
            best = i;
        }
    return best;
}

// Its place for each line, and the element itself. Without an axis all elements are one line.
template <bool Largest, bool Values>
std::unique_ptr<Work> prepare_best(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 1, 1, fault)) return nullptr;
    const Operand& x = form.in[0];
    const bool has_axis = x.rank() > 0 && (form.has("axis") || form.has("dim"));
    const int axis = has_axis ? axis_of(form, x.rank(), -1) : 0;
    if (!fits(axis >= 0, fault)) return nullptr;
    const Around a = has_axis ? around(x.shape, axis) : Around{1, x.size(), 1};
    const Reader reader{x.dtype, loader_of(x.dtype), x.width()};
    constexpr size_t at = Values ? 1 : 0;
    const bool indices = form.out.size() > at && form.out[at].is_there();
    const DType index = indices ? form.out[at].dtype : DType::i64;
    bool good = reader.load && a.size > 0 && (!Values || form.out[0].dtype == x.dtype) &&
                (!indices || takes_indices(form.out[at]));
    for (const Operand& y : form.out) good = good && (!y.is_there() || y.size() == a.outer * a.inner);
    if (!fits(good, fault)) return nullptr;
    return work([=](const Call& call) {
        auto lines = [&](int64_t begin, int64_t end, int) {
            for (int64_t line = begin; line < end; ++line) {
                const int64_t first = line / a.inner * a.size * a.inner + line % a.inner, step = a.inner * reader.width;
                const char* const from = call.in[0] + first * reader.width;
                const int64_t best = best_of<Largest>(reader, from, a.size, step);
                if constexpr (Values)
                    std::memcpy(call.out[0] + line * reader.width, from + best * step,
                                static_cast<size_t>(reader.width));
                if (indices) put_index(call.out[at], index, line, best);
            }
        };
        share(call.workers, a.outer * a.inner, std::max<int64_t>(1, 4096 / a.size), lines);
    });
}

// Running sums and products of a line, in float64 and in 64-bit integers at once: the dtype of the result chooses.
struct Running {
    Around around;
    bool product = false, exclusive = false, backwards = false;
    MemoryFunction load = nullptr, store = nullptr;
    Lane from = Lane::single, to = Lane::single;
    int64_t in_width = 4, out_width = 4;
};
void run_along(const Running& r, const char* x, char* y) {
    const bool is_real = r.to == Lane::single || r.to == Lane::twice;
    double real = r.product ? 1 : 0;
    uint64_t whole = r.product ? 1 : 0;
    for (int64_t i = 0; i < r.around.size; ++i) {
        const int64_t at = (r.backwards ? r.around.size - 1 - i : i) * r.around.inner;
        Element v{};
        r.load(x + at * r.in_width, &v, 1);
        const double number = v.real(r.from), real_before = real;
        const auto integer = static_cast<uint64_t>(v.integer(r.from)), whole_before = whole;
        real = r.product ? real * number : real + number;
        whole = r.product ? whole * integer : whole + integer;
        if (is_real)
            v.set(r.to, r.exclusive ? real_before : real);
        else
            v.set(r.to, static_cast<int64_t>(r.exclusive ? whole_before : whole));
        r.store(&v, y + at * r.out_width, 1);
    }
}
template <bool Product>
std::unique_ptr<Work> prepare_running(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 1, 1, fault)) return nullptr;
    const Operand &x = form.in[0], &y = form.out[0];
    const int axis = x.rank() ? axis_of(form, x.rank(), 0) : 0;
    if (!fits(axis >= 0, fault)) return nullptr;
    const Running r{x.rank() ? around(x.shape, axis) : Around{},
                    Product,
                    form.integer("exclusive") != 0,
                    form.integer("reverse") != 0,
                    loader_of(x.dtype),
                    storer_of(y.dtype),
                    lane_of(x.dtype),
                    lane_of(y.dtype),
                    x.width(),
                    y.width()};
    if (!fits(r.load && r.store && x.size() == y.size(), fault)) return nullptr;
    return work([r](const Call& call) {
        const Around& a = r.around;
        auto lines = [&](int64_t begin, int64_t end, int) {
            for (int64_t line = begin; line < end; ++line) {
                const int64_t start = line / a.inner * a.size * a.inner + line % a.inner;
                run_along(r, call.in[0] + start * r.in_width, call.out[0] + start * r.out_width);
            }
        };
        share(call.workers, a.outer * a.inner, std::max<int64_t>(1, 4096 / std::max<int64_t>(a.size, 1)), lines);
    });
}

constexpr StepKind kKinds[] = {
    {"sort", prepare_sort<true>},          {"argsort", prepare_sort<false>},       {"topk", prepare_topk},
    {"argmax", prepare_best<true, false>}, {"argmin", prepare_best<false, false>}, {"max", prepare_best<true, true>},
    {"min", prepare_best<false, true>},    {"cumsum", prepare_running<false>},     {"cumprod", prepare_running<true>}};

}  // namespace

std::span<const StepKind> order_kinds() { return kKinds; }

}  // namespace lunaria::lite
