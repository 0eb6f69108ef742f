// Reductions over any axes, where no loop does them: in float64, or in 64-bit integers.
#include <cmath>
#include <cstring>
#include <limits>

#include "core/lite/runtime/elements.h"
#include "core/lite/runtime/plain_blocks.h"

namespace lunaria::lite {

namespace {

enum class Fold : uint8_t { sum, mean, product, largest, smallest, all, any, exponentials };

struct Plan {
    std::vector<int64_t> kept, kept_steps;        // sizes and steps of the axes that remain
    std::vector<int64_t> reduced, reduced_steps;  // and of the others
    int64_t results = 1, count = 1;
    int64_t width = 4;
    MemoryFunction load = nullptr, store = nullptr;
    Lane from = Lane::single, to = Lane::single;
    bool is_natural = false;  // elements of u64
    int64_t out_width = 4;
};

// Elements of a result in one type: float64, or 64-bit integers.
template <class T>
T start_of(Fold f) {
    switch (f) {
        case Fold::product:
        case Fold::all:
            return 1;
        case Fold::largest:
            return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                        : std::numeric_limits<T>::min();
        case Fold::smallest:
            return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                        : std::numeric_limits<T>::max();
        default:
            return 0;
    }
}
template <class T>
void fold(Fold f, T& a, T x) {
    switch (f) {
        case Fold::product:
            if constexpr (std::is_integral_v<T>)
                a = static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(x));
            else
                a *= x;
            return;
        case Fold::largest:
            a = a > x || a != a ? a : x;
            return;
        case Fold::smallest:
            a = a < x || a != a ? a : x;
            return;
        case Fold::all:
            a = a != 0 && x != 0;
            return;
        case Fold::any:
            a = a != 0 || x != 0;
            return;
        default:
            if constexpr (std::is_integral_v<T>)
                a = static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(x));
            else
                a += x;
    }
}

// Calls f with each element behind a result; those along the last reduced axis in runs.
template <class T, class F>
void for_elements(const Plan& p, const char* from, F&& f) {
    constexpr int64_t kRun = 64;
    alignas(64) char lanes[kRun * 8];
    const int64_t last = p.reduced.empty() ? 1 : p.reduced.back(),
                  step = p.reduced.empty() ? 1 : p.reduced_steps.back();
    for (int64_t i = 0; i < p.count; i += last) {
        const char* row = from + place_of(i, p.reduced, p.reduced_steps) * p.width;
        for (int64_t j = 0; j < last; j += kRun) {
            const int64_t n = std::min(kRun, last - j);
            if (step == 1) {
                p.load(row + j * p.width, lanes, n);
            } else {
                const auto lane = static_cast<int64_t>(width_of(p.from));
                for (int64_t k = 0; k < n; ++k) p.load(row + (j + k) * step * p.width, lanes + k * lane, 1);
            }
            for (int64_t k = 0; k < n; ++k) {
                if (p.from == Lane::single)
                    f(static_cast<T>(reinterpret_cast<float*>(lanes)[k]));
                else if (p.from == Lane::twice)
                    f(static_cast<T>(reinterpret_cast<double*>(lanes)[k]));
                else if (p.from == Lane::boolean)
                    f(static_cast<T>(lanes[k] != 0));
                else if (p.is_natural)
                    f(static_cast<T>(reinterpret_cast<uint64_t*>(lanes)[k]));
                else
                    f(static_cast<T>(reinterpret_cast<int64_t*>(lanes)[k]));
            }
        }
    }
}

template <class T>
T reduce(const Plan& p, Fold f, const char* from) {
    if constexpr (std::is_floating_point_v<T>)
        if (f == Fold::exponentials) {
            T most = -std::numeric_limits<T>::infinity(), sum = 0;
            for_elements<T>(p, from, [&](T x) { fold(Fold::largest, most, x); });
            if (std::isinf(most) || std::isnan(most)) return most;
            for_elements<T>(p, from, [&](T x) { sum += std::exp(x - most); });
            return most + std::log(sum);
        }
    T a = start_of<T>(f);
    for_elements<T>(p, from, [&](T x) { fold(f, a, x); });
    if (f == Fold::mean) a = static_cast<T>(a / static_cast<T>(p.count));
    return a;
}

template <Fold F>
std::unique_ptr<Work> prepare_reduction(const StepForm& form, std::string& fault) {
    if (!fits(form.in.size() >= 1 && form.out.size() >= 1 && form.in[0].is_there() && form.out[0].is_dense(), fault))
        return nullptr;
    const Operand &x = form.in[0], &y = form.out[0];
    std::vector<bool> is_reduced(x.shape.size(), false);
    const std::string_view name = form.has("axis") ? "axis" : "dim";
    const std::vector<int64_t> axes = form.integers(name);
    for (int64_t axis : axes) {
        if (axis < 0) axis += x.rank();
        if (!fits(axis >= 0 && axis < x.rank(), fault)) return nullptr;
        is_reduced[static_cast<size_t>(axis)] = true;
    }
    if (axes.empty()) is_reduced.assign(x.shape.size(), true);
    Plan p;
    for (size_t i = 0; i < x.shape.size(); ++i) {
        (is_reduced[i] ? p.reduced : p.kept).push_back(x.shape[i]);
        (is_reduced[i] ? p.reduced_steps : p.kept_steps).push_back(x.strides[i]);
        (is_reduced[i] ? p.count : p.results) *= x.shape[i];
    }
    p.width = x.width();
    p.out_width = y.width();
    p.load = loader_of(x.dtype);
    p.store = storer_of(y.dtype);
    p.from = lane_of(x.dtype);
    p.to = lane_of(y.dtype);
    p.is_natural = x.dtype == DType::u64;
    if (!fits(p.load && p.store && y.size() == p.results && x.form == Form::plain, fault)) return nullptr;
    const bool is_real = p.from == Lane::single || p.from == Lane::twice || F == Fold::mean || F == Fold::exponentials;
    return work([p, is_real](const Call& call) {
        share(call.workers, p.results, std::max<int64_t>(1, 8192 / std::max<int64_t>(p.count, 1)),
              [&](int64_t begin, int64_t end, int) {
                  for (int64_t i = begin; i < end; ++i) {
                      const char* const from = call.in[0] + place_of(i, p.kept, p.kept_steps) * p.width;
                      char* const to = call.out[0] + i * p.out_width;
                      Element v{};
                      if (is_real)
                          v.set(p.to, reduce<double>(p, F, from));
                      else if (p.is_natural)
                          v.set(p.to, static_cast<int64_t>(reduce<uint64_t>(p, F, from)));
                      else
                          v.set(p.to, reduce<int64_t>(p, F, from));
                      p.store(&v, to, 1);
                  }
              });
    });
}

constexpr StepKind kReductionStepsKinds[] = {
    {"sum", prepare_reduction<Fold::sum>},       {"mean", prepare_reduction<Fold::mean>},
    {"prod", prepare_reduction<Fold::product>},  {"amax", prepare_reduction<Fold::largest>},
    {"amin", prepare_reduction<Fold::smallest>}, {"all", prepare_reduction<Fold::all>},
    {"any", prepare_reduction<Fold::any>},       {"logsumexp", prepare_reduction<Fold::exponentials>}};

}  // namespace

std::span<const StepKind> reduction_kinds() { return kReductionStepsKinds; }

}  // namespace lunaria::lite
