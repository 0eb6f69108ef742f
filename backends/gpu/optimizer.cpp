// GPU kernels: steps of optimizers. A launch updates several parameters, whose elements are divided into chunks.
#include "core/ops/formulas_optimizer.h"

#include <algorithm>
#include <array>
#include <vector>

#include "backends/gpu/launcher.h"
#include "backends/gpu/operators.h"
#include "core/base/error.h"
#include "core/operator/op.h"

namespace lunaria::gpu {

namespace {

constexpr int kOptimizerThreads = 256;
constexpr int64_t kChunk = 4096;
// The most tensors of a launch: its words hold their addresses and ends.
constexpr size_t kMostTensors = 32;
constexpr size_t kMostLists = 5;

// The tensors of parameter, gradient and moments, number by number.
using Lists = std::array<std::vector<Tensor>, kMostLists>;

// The gradients are list 1. False unless they have a common dtype, f32 or f64.
bool lists_of(const KernelCall& c, size_t count, DType& dtype, Lists& lists) {
    if (c.args[0].items().empty()) return false;
    dtype = c.args[0].items()[0].tensor().dtype();
    if (dtype != DType::f32 && dtype != DType::f64) return false;
    for (size_t i = 0; i < count; ++i) {
        if (!c.has(i)) continue;
        for (const Value& v : c.args[i].items()) {
            if (v.tensor().dtype() != dtype || !v.tensor().device()) return false;
            lists[i].push_back(v.tensor());
        }
    }
    for (size_t i = 0; i < count; ++i)
        for (Tensor& t : lists[i])
            if (i == 1)
                t = t.contiguous();
            else
                t.own_storage();
    return true;
}

bool decays(const KernelCall& c, size_t k) {
    const Value& decayed = c.args[c.args.size() - 2];
    return decayed.is_nil() || decayed.items()[k].boolean();
}

// The update of an element: `update` gets the values of all lists and changes them.
using Update = std::function<void(Writer&, std::span<Number> values)>;

bool step(Launcher& launcher, const std::string& name, DType t, const Lists& lists, std::span<const size_t> which,
          std::span<const double> numbers, const std::function<Update(Writer&)>& write) {
    std::vector<size_t> used;
    for (size_t i = 0; i < kMostLists; ++i)
        if (!lists[i].empty()) used.push_back(i);
    bool done = true;
    for (size_t first = 0; first < which.size() && done; first += kMostTensors) {
        const size_t count = std::min(kMostTensors, which.size() - first);
        const size_t places = count == 1 ? 1 : kMostTensors;
        Words words;
        for (size_t p = 0; p < places; ++p)
            for (size_t i : used) words.tensor(lists[i][which[first + std::min(p, count - 1)]]);
        int64_t chunks = 0;
        for (size_t p = 0; p < places; ++p) {
            const int64_t size = p < count ? lists[0][which[first + p]].size() : 0;
            words.size(size).size(chunks += (size + kChunk - 1) / kChunk);
        }
        for (double number : numbers) words.real(number);
        if (chunks == 0) continue;
        done = launcher.run(str(name, ' ', name_of(t), " of ", places, " by ", used.size()), chunks, kOptimizerThreads,
                            words, [&](Writer& w) {
                                std::vector<std::vector<Elements>> tensors(places);
                                for (auto& tensor : tensors)
                                    for (size_t i = 0; i < used.size(); ++i) tensor.push_back(w.tensor(t));
                                std::vector<Number> sizes, ends;
                                for (size_t p = 0; p < places; ++p) {
                                    sizes.push_back(w.size());
                                    ends.push_back(w.size());
                                }
                                const Update update = write(w);
                                // The tensor that contains this block's chunk.
                                std::vector<Elements> here = tensors[0];
                                Number size = sizes[0], start = w.index(0);
                                for (size_t p = 1; p < places; ++p) {
                                    const Number behind = w.block() >= ends[p - 1];
                                    for (size_t i = 0; i < used.size(); ++i)
                                        here[i].address = select(behind, tensors[p][i].address, here[i].address);
                                    size = select(behind, sizes[p], size);
                                    start = select(behind, ends[p - 1], start);
                                }
                                const Number from = (w.block() - start) * kChunk, to = from + kChunk;
                                w.loop(from + w.thread(), select(to < size, to, size), w.threads(), [&](Number i) {
                                    std::array<Number, kMostLists> values{};
                                    for (size_t k = 0; k < used.size(); ++k) values[used[k]] = here[k].get(i);
                                    update(w, values);
                                    for (size_t k = 0; k < used.size(); ++k)
                                        if (used[k] != 1) here[k].set(i, values[used[k]]);
                                });
                            });
    }
    return done;
}

// Parameters with weight decay and those without, each with numbers of their own.
template <class Run>
bool by_decay(const KernelCall& c, size_t count, Run run) {
    std::vector<size_t> which[2];
    for (size_t k = 0; k < count; ++k) which[decays(c, k)].push_back(k);
    return run(which[0], false) && run(which[1], true);
}

bool momentum(Launcher& launcher, const KernelCall& c) {
    DType t{};
    Lists lists;
    if (!lists_of(c, 3, t, lists)) return false;
    const bool accumulates = c.has(2), nesterov = c.args[7].boolean();
    return by_decay(c, lists[0].size(), [&](const std::vector<size_t>& which, bool decayed) {
        const double numbers[] = {c.args[3].number(), c.args[4].number(), 1 - c.args[5].number(),
                                  decayed ? c.args[6].number() : 0};
        return step(launcher, str("momentum ", accumulates, nesterov), t, lists, which, numbers, [&](Writer& w) {
            formula::MomentumNumbers<Number> s;
            for (Number* n : {&s.lr, &s.momentum, &s.share, &s.decay}) *n = w.real(t);
            return [=](Writer&, std::span<Number> v) {
                if (!accumulates)
                    formula::momentum_update<false, false>(v[0], v[1], v[2], s);
                else if (nesterov)
                    formula::momentum_update<true, true>(v[0], v[1], v[2], s);
                else
                    formula::momentum_update<true, false>(v[0], v[1], v[2], s);
            };
        });
    });
}

bool adam(Launcher& launcher, const KernelCall& c) {
    DType t{};
    Lists lists;
    if (!lists_of(c, 5, t, lists)) return false;
    const bool has_maxima = c.has(4), nesterov = c.args[11].boolean();
    return by_decay(c, lists[0].size(), [&](const std::vector<size_t>& which, bool decayed) {
        const double beta1 = c.args[6].number(), beta2 = c.args[7].number();
        const double numbers[] = {c.args[5].number(),
                                  beta1,
                                  beta2,
                                  1 - beta1,
                                  1 - beta2,
                                  c.args[8].number(),
                                  decayed ? c.args[9].number() : 0,
                                  decayed ? c.args[10].number() : 1};
        return step(launcher, str("adam ", has_maxima, nesterov), t, lists, which, numbers, [&](Writer& w) {
            formula::AdamNumbers<Number> s;
            for (Number* n : {&s.step, &s.beta1, &s.beta2, &s.rest1, &s.rest2, &s.eps, &s.l2, &s.decay}) *n = w.real(t);
            return [=](Writer&, std::span<Number> v) {
                if (has_maxima)
                    nesterov ? formula::adam_update<true, true>(v[0], v[1], v[2], v[3], v[4], s)
                             : formula::adam_update<true, false>(v[0], v[1], v[2], v[3], v[4], s);
                else
                    nesterov ? formula::adam_update<false, true>(v[0], v[1], v[2], v[3], v[4], s)
                             : formula::adam_update<false, false>(v[0], v[1], v[2], v[3], v[4], s);
            };
        });
    });
}

}  // namespace

void add_optimizer_kernels(KernelTable& table) {
    table.add("apply_momentum", momentum);
    table.add("apply_adam", adam);
}

}  // namespace lunaria::gpu
