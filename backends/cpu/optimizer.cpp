// CPU kernels: steps of optimizers. All tensors of a call are one range of elements for the threads, so that many small
// parameters are updated together and large ones are split.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/elementwise.h"
#include "backends/cpu/row_loops.h"
#include "backends/cpu/simd/optimizer_loops.h"
#include "core/threads.h"

namespace lunaria::cpu {

namespace {

const OptimizerTable& optimizer_table() {
    switch (current_isa()) {
        case Isa::avx512:
            return avx512::optimizer_table;
        case Isa::avx2:
            return avx2::optimizer_table;
        default:
            return v2::optimizer_table;
    }
}

template <class T>
const OptimizerLoops<T>& optimizer_loops() {
    if constexpr (sizeof(T) == 4)
        return optimizer_table().f32;
    else
        return optimizer_table().f64;
}

MomentumStep momentum_step(const KernelCall& c) {
    return {c.args[3].number(), c.args[4].number(), c.args[5].number(), c.args[6].number(), c.args[7].boolean()};
}

AdamStep adam_step(const KernelCall& c) {
    return {c.args[5].number(), c.args[6].number(),  c.args[7].number(),  c.args[8].number(),
            c.args[9].number(), c.args[10].number(), c.args[11].boolean()};
}

// Whether weights decay, which may be told for each parameter.
bool decays(const KernelCall& c, size_t k) {
    const Value& decayed = c.args[c.args.size() - 2];
    return decayed.is_nil() || decayed.items()[k].boolean();
}

MomentumStep without_decay(MomentumStep s) {
    s.weight_decay = 0;
    return s;
}
AdamStep without_decay(AdamStep s) {
    s.l2 = 0;
    s.decay = 1;
    return s;
}

// The argument's tensors, whose storage is made their own where they are written to.
std::vector<Tensor> variables(const KernelCall& c, size_t i, bool written = true) {
    std::vector<Tensor> list;
    if (!c.has(i)) return list;
    for (const Value& v : c.args[i].items()) {
        list.push_back(v.tensor());
        if (written) list.back().own_storage();
    }
    return list;
}

// Any dtypes and layouts, one element after the other in double precision. `update` gets the number of the tensor, the
// gradient and the places of parameter and moments (which stay as they are where there are none).
template <class Update>
bool plain_step(const KernelCall& c, std::initializer_list<size_t> written, Update update) {
    std::vector<std::vector<Tensor>> lists;
    for (size_t i : written) lists.push_back(variables(c, i));
    const std::vector<Tensor> grads = variables(c, 1, false);
    for (size_t k = 0; k < grads.size(); ++k)
        for (int64_t i = 0; i < grads[k].size(); ++i) {
            double at[4] = {};
            for (size_t j = 0; j < lists.size(); ++j)
                if (!lists[j].empty()) at[j] = lists[j][k].at(i);
            update(k, grads[k].at(i), at);
            for (size_t j = 0; j < lists.size(); ++j)
                if (!lists[j].empty()) lists[j][k].set_at(i, at[j]);
        }
    return true;
}

bool plain_momentum(const KernelCall& c) {
    const MomentumStep steps[] = {without_decay(momentum_step(c)), momentum_step(c)};
    const bool accumulates = c.has(2);
    return plain_step(c, {0, 2}, [&](size_t k, double gradient, double* at) {
        const MomentumStep& s = steps[decays(c, k)];
        const double g = gradient + s.weight_decay * at[0];
        if (accumulates) at[1] = s.momentum * at[1] + (1 - s.dampening) * g;
        at[0] -= s.lr * (!accumulates ? g : s.nesterov ? g + s.momentum * at[1] : at[1]);
    });
}

bool plain_adam(const KernelCall& c) {
    const AdamStep steps[] = {without_decay(adam_step(c)), adam_step(c)};
    const bool has_maxima = c.has(4);
    return plain_step(c, {0, 2, 3, 4}, [&](size_t k, double gradient, double* at) {
        const AdamStep& s = steps[decays(c, k)];
        const double g = gradient + s.l2 * at[0];
        at[1] = s.beta1 * at[1] + (1 - s.beta1) * g;
        at[2] = s.beta2 * at[2] + (1 - s.beta2) * g * g;
        if (has_maxima) at[3] = std::max(at[3], at[2]);
        const double up = s.nesterov ? s.beta1 * at[1] + (1 - s.beta1) * g : at[1];
        at[0] = s.decay * at[0] - s.step * up / (std::sqrt(has_maxima ? at[3] : at[2]) + s.eps);
    });
}

// The one dtype of all tensors of the lists, if it is f32 or f64.
bool common_dtype(const KernelCall& c, size_t lists, DType& dtype) {
    if (c.args[0].items().empty()) return false;
    dtype = c.args[0].items()[0].tensor().dtype();
    for (size_t i = 0; i < lists; ++i) {
        if (!c.has(i)) continue;
        for (const Value& v : c.args[i].items())
            if (v.tensor().dtype() != dtype) return false;
    }
    return dtype == DType::f32 || dtype == DType::f64;
}

// The elements of a list of tensors as one range: `body(k, begin, end)` gets parts of tensor k.
template <class Body>
void over_elements(const std::vector<Tensor>& list, int64_t cost, Body body) {
    std::vector<int64_t> ends;
    int64_t total = 0;
    for (const Tensor& t : list) ends.push_back(total += t.size());
    parallel_for(total, worthwhile_rows(1, cost), 64, [&](int64_t begin, int64_t end) {
        size_t k = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
        while (begin < end) {
            const int64_t first = k ? ends[k - 1] : 0, last = std::min(ends[k], end);
            if (last > begin) body(k, begin - first, last - first);
            begin = last;
            ++k;
        }
    });
}

template <class T>
void fast_step(const KernelCall& c, size_t lists, int64_t cost, auto body) {
    std::vector<Tensor> tensors[5];
    for (size_t i = 0; i < lists; ++i) tensors[i] = variables(c, i, i != 1);
    for (Tensor& gradient : tensors[1]) gradient = gradient.contiguous();
    over_elements(tensors[0], cost, [&](size_t k, int64_t begin, int64_t end) {
        T* at[5] = {};
        for (size_t i = 0; i < lists; ++i)
            if (!tensors[i].empty()) at[i] = tensors[i][k].template data<T>() + begin;
        body(k, at, end - begin);
    });
}

bool fast_momentum(const KernelCall& c) {
    DType dtype{};
    if (!common_dtype(c, 3, dtype)) return false;
    const MomentumStep steps[] = {without_decay(momentum_step(c)), momentum_step(c)};
    return with_real(dtype, [&](auto zero) {
        using T = decltype(zero);
        fast_step<T>(c, 3, 1, [&](size_t k, T* const* at, int64_t count) {
            optimizer_loops<T>().momentum(at[0], at[1], at[2], count, steps[decays(c, k)]);
        });
        return true;
    });
}

bool fast_adam(const KernelCall& c) {
    DType dtype{};
    if (!common_dtype(c, 5, dtype)) return false;
    const AdamStep steps[] = {without_decay(adam_step(c)), adam_step(c)};
    return with_real(dtype, [&](auto zero) {
        using T = decltype(zero);
        fast_step<T>(c, 5, 3, [&](size_t k, T* const* at, int64_t count) {
            optimizer_loops<T>().adam(at[0], at[1], at[2], at[3], at[4], count, steps[decays(c, k)]);
        });
        return true;
    });
}

}  // namespace

void add_optimizer_kernels(KernelTable& table) {
    table.plain("apply_momentum", plain_momentum);
    table.fast("apply_momentum", fast_momentum);
    table.plain("apply_adam", plain_adam);
    table.fast("apply_adam", fast_adam);
}

}  // namespace lunaria::cpu
