// CPU kernels: steps of optimizers. All tensors of a call are one range of elements for the threads, so that many small
// parameters are updated together and large ones are split.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/elementwise.h"
#include "backends/cpu/row_loops.h"
#include "backends/cpu/simd/optimizer_loops.h"
#include "core/ops/formulas_optimizer.h"
#include "core/threads/threads.h"

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

LambStep lamb_step(const KernelCall& c) {
    return {c.args[5].number(), c.args[6].number(), c.args[7].number(),
            c.args[8].number(), c.args[9].number(), c.args[10].number()};
}

// The factor of the direction that is subtracted from a parameter, from the sums of their squares.
double lamb_rate(const KernelCall& c, const double* sums) {
    const double rate = c.args[4].number();
    return sums[0] > 0 && sums[1] > 0 ? rate * std::sqrt(sums[0]) / std::sqrt(sums[1]) : rate;
}

// Whether weights decay, which may be given for each parameter.
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

LambStep without_decay(LambStep s) {
    s.decay = 0;
    return s;
}

// The argument's tensors; those that are written to get storage of their own.
std::vector<Tensor> variables(const KernelCall& c, size_t i, bool written = true) {
    std::vector<Tensor> list;
    if (!c.has(i)) return list;
    for (const Value& v : c.args[i].items()) {
        list.push_back(v.tensor());
        if (written) list.back().own_storage();
    }
    return list;
}

// A step for any dtypes and layouts, one element after the other in double precision. `update` gets the number of the
// tensor, the gradient, and the addresses of parameter and moments (unchanged if there are none).
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
        const formula::MomentumNumbers<double> numbers{s.lr, s.momentum, 1 - s.dampening, s.weight_decay};
        if (!accumulates)
            formula::momentum_update<false, false>(at[0], gradient, at[1], numbers);
        else if (s.nesterov)
            formula::momentum_update<true, true>(at[0], gradient, at[1], numbers);
        else
            formula::momentum_update<true, false>(at[0], gradient, at[1], numbers);
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

bool plain_lamb(const KernelCall& c) {
    const LambStep steps[] = {without_decay(lamb_step(c)), lamb_step(c)};
    auto direction = [](const LambStep& s, const double* at) {
        return at[1] / s.correction1 / (std::sqrt(at[2] / s.correction2) + s.eps) + s.decay * at[0];
    };
    std::vector<double> sums(2 * c.args[0].items().size()), rates;
    plain_step(c, {0, 2, 3}, [&](size_t k, double g, double* at) {
        const LambStep& s = steps[decays(c, k)];
        at[1] = s.beta1 * at[1] + (1 - s.beta1) * g;
        at[2] = s.beta2 * at[2] + (1 - s.beta2) * g * g;
        const double u = direction(s, at);
        sums[2 * k] += at[0] * at[0];
        sums[2 * k + 1] += u * u;
    });
    for (size_t k = 0; k < sums.size(); k += 2) rates.push_back(lamb_rate(c, &sums[k]));
    return plain_step(c, {0, 2, 3},
                      [&](size_t k, double, double* at) { at[0] -= rates[k] * direction(steps[decays(c, k)], at); });
}

// The common dtype of all tensors of the lists, if it is f32 or f64.
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

// The sums are computed by blocks of elements, added up in order: the same for any number of threads.
template <class T>
void lamb(const KernelCall& c) {
    const LambStep steps[] = {without_decay(lamb_step(c)), lamb_step(c)};
    std::vector<Tensor> lists[4];
    for (size_t i = 0; i < 4; ++i) lists[i] = variables(c, i, i != 1);
    for (Tensor& gradient : lists[1]) gradient = gradient.contiguous();
    struct Block {
        size_t k;
        int64_t begin, count;
        double sums[2];
    };
    constexpr int64_t kBlock = 8192;
    std::vector<Block> blocks;
    for (size_t k = 0; k < lists[0].size(); ++k)
        for (int64_t at = 0, size = lists[0][k].size(); at < size; at += kBlock)
            blocks.push_back({k, at, std::min(kBlock, size - at), {}});
    auto at = [&](size_t list, const Block& block) { return lists[list][block.k].template data<T>() + block.begin; };
    auto over_blocks = [&](int64_t cost, auto body) {
        parallel_for(static_cast<int64_t>(blocks.size()), worthwhile_rows(kBlock, cost),
                     [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i) body(blocks[static_cast<size_t>(i)]);
                     });
    };
    over_blocks(3, [&](Block& b) {
        optimizer_loops<T>().lamb_moments(at(0, b), at(1, b), at(2, b), at(3, b), b.count, steps[decays(c, b.k)],
                                          b.sums);
    });
    std::vector<double> sums(2 * lists[0].size()), rates;
    for (const Block& b : blocks)
        for (size_t i = 0; i < 2; ++i) sums[2 * b.k + i] += b.sums[i];
    for (size_t k = 0; k < sums.size(); k += 2) rates.push_back(lamb_rate(c, &sums[k]));
    over_blocks(3, [&](const Block& b) {
        optimizer_loops<T>().lamb_move(at(0, b), at(2, b), at(3, b), b.count, steps[decays(c, b.k)], rates[b.k]);
    });
}

bool fast_lamb(const KernelCall& c) {
    DType dtype{};
    if (!common_dtype(c, 4, dtype)) return false;
    return with_real(dtype, [&](auto zero) {
        lamb<decltype(zero)>(c);
        return true;
    });
}

}  // namespace

void add_optimizer_kernels(KernelTable& table) {
    table.plain("apply_momentum", plain_momentum);
    table.fast("apply_momentum", fast_momentum);
    table.plain("apply_adam", plain_adam);
    table.fast("apply_adam", fast_adam);
    table.plain("apply_lamb", plain_lamb);
    table.fast("apply_lamb", fast_lamb);
}

}  // namespace lunaria::cpu
