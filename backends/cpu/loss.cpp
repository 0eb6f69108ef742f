// CPU kernels: losses.
#include <atomic>
#include <cmath>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/row_loops.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/operator/op.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

template <class F>
bool with_float(DType t, F f) {
    return with_real(t, [&](auto zero) {
        f(zero);
        return true;
    });
}

bool valid_labels(const KernelCall& c) {
    const Tensor& labels = c.tensor(0);
    int64_t classes = c.args[1].integer();
    bool ignores = c.has(2);
    int64_t ignored = ignores ? c.args[2].integer() : 0;
    for (int64_t i = 0; i < labels.size(); ++i) {
        int64_t label = labels.data<int64_t>()[i];
        bool keep = !ignores || label != ignored;
        if (keep && (label < 0 || label >= classes))
            throw index_error(c.args[3].string(), str("label ", label, " at position ", i, " is out of range: with ",
                                                      classes, " classes labels are 0 .. ", classes - 1))
                .hint(ignores ? str("labels that do not count are marked with ignore_index (", ignored, ")") : "");
        c.out[0].data<int64_t>()[i] = keep ? label : 0;
        c.out[1].data<bool>()[i] = keep;
    }
    return true;
}

bool label_counts(const KernelCall& c) {
    const Tensor& target = c.tensor(0);
    int64_t classes = target.shape().back(), rows = classes ? target.size() / classes : 0;
    for (int64_t r = 0; r < rows; ++r) {
        const int64_t* row = target.data<int64_t>() + r * classes;
        int64_t* counts = c.out[0].data<int64_t>() + r * classes;
        std::fill(counts, counts + classes, 0);
        for (int64_t i = 0; i < classes && row[i] != -1; ++i) {
            if (row[i] < 0 || row[i] >= classes)
                throw index_error("multilabel_margin_loss",
                                  str("label ", row[i], " is out of range: with ", classes, " classes labels are 0 .. ",
                                      classes - 1, ", and -1 ends a list"));
            ++counts[row[i]];
        }
    }
    return true;
}

bool bernoulli_cross_entropy(const KernelCall& c) {
    return with_float(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        for (int64_t i = 0; i < c.out[0].size(); ++i) {
            double x = static_cast<double>(c.tensor(0).data<T>()[i]), t = static_cast<double>(c.tensor(1).data<T>()[i]);
            if (x < 0 || x > 1)
                throw value_error("binary_cross_entropy", str("the input holds ", x, ": probabilities are in 0 .. 1"))
                    .hint("for logits use binary_cross_entropy_with_logits");
            // max(-100, NaN) would lose the NaN.
            double yes = std::log(x), no = std::log1p(-x);
            yes = yes < -100 ? -100 : yes;
            no = no < -100 ? -100 : no;
            c.out[0].data<T>()[i] = static_cast<T>(-(t * yes + (1 - t) * no));
        }
    });
}

// weight * x, where an infinite x with weight 0 counts as 0.
double counted(double weight, double x) { return weight == 0 && std::isinf(x) ? 0 : weight * x; }

bool sigmoid_cross_entropy(const KernelCall& c) {
    return with_float(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        for (int64_t i = 0; i < c.out[0].size(); ++i) {
            double x = static_cast<double>(c.tensor(0).data<T>()[i]), t = static_cast<double>(c.tensor(1).data<T>()[i]);
            double weight = c.has(2) ? 1 + (static_cast<double>(c.tensor(2).data<T>()[i]) - 1) * t : 1;
            // log(1 + exp(-x)) without overflow. For large negative x it is -x; the terms in x are taken together so
            // that infinities do not meet.
            double tail = std::log1p(std::exp(-std::abs(x)));
            double linear = x < 0 ? counted(1 - t - weight, x) : counted(1 - t, x);
            c.out[0].data<T>()[i] = static_cast<T>(linear + weight * tail);
        }
    });
}

// The cost of an element in additions.
constexpr int64_t kCost = 12;

// Declines when the input holds no probability, so that the plain kernel reports it.
bool bernoulli_fast(const KernelCall& c) {
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        std::atomic<bool> good{true};
        parallel_for(c.out[0].size(), kThreadElements / kCost, 64, [&](int64_t begin, int64_t end) {
            if (!loss_loops<T>().bernoulli(c.tensor(0).data<T>() + begin, c.tensor(1).data<T>() + begin,
                                           c.out[0].data<T>() + begin, end - begin))
                good = false;
        });
        return good.load();
    });
}

bool sigmoid_fast(const KernelCall& c) {
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        parallel_for(c.out[0].size(), kThreadElements / kCost, 64, [&](int64_t begin, int64_t end) {
            loss_loops<T>().sigmoid(c.tensor(0).data<T>() + begin, c.tensor(1).data<T>() + begin,
                                    c.has(2) ? c.tensor(2).data<T>() + begin : nullptr, c.out[0].data<T>() + begin,
                                    end - begin);
        });
        return true;
    });
}

// States 2 i + 1 are the labels, the others blanks.
bool ctc_path(const KernelCall& c) {
    const Tensor& targets = c.tensor(0);
    int64_t time = c.args[3].integer(), classes = c.args[4].integer(), blank = c.args[5].integer();
    int64_t batch = targets.dim(0), longest = targets.dim(1), states = 2 * longest + 1;
    int64_t* path = c.out[0].data<int64_t>();
    bool *skip = c.out[1].data<bool>(), *last = c.out[2].data<bool>(), *active = c.out[3].data<bool>();
    for (int64_t n = 0; n < batch; ++n, path += states, skip += states, last += states) {
        int64_t steps = c.tensor(1).data<int64_t>()[n], labels = c.tensor(2).data<int64_t>()[n];
        if (steps < 0 || steps > time)
            throw value_error("ctc_loss", str("input_lengths[", n, "] is ", steps, ": it must be in 0 .. ", time));
        if (labels < 0 || labels > longest)
            throw value_error("ctc_loss", str("target_lengths[", n, "] is ", labels, ": it must be in 0 .. ", longest));
        for_elements(states, [&](int64_t s) {
            bool is_label = s % 2 == 1 && s / 2 < labels;
            path[s] = is_label ? targets.data<int64_t>()[n * longest + s / 2] : blank;
            if (is_label && (path[s] < 0 || path[s] >= classes || path[s] == blank))
                throw index_error("ctc_loss",
                                  str("label ", path[s], " of sample ", n, " is out of range: classes are 0 .. ",
                                      classes - 1, " without the blank ", blank));
            skip[s] = is_label && s >= 3 && path[s] != path[s - 2];
            last[s] = s == 2 * labels || (labels > 0 && s == 2 * labels - 1);
        });
        for_elements(time, [&](int64_t t) { active[t * batch + n] = t < steps; });
    }
    return true;
}

}  // namespace

void add_loss_kernels(KernelTable& table) {
    table.plain("valid_labels", valid_labels);
    table.plain("label_counts", label_counts);
    table.fast("bernoulli_cross_entropy", bernoulli_fast);
    table.fast("sigmoid_cross_entropy", sigmoid_fast);
    table.plain("bernoulli_cross_entropy", bernoulli_cross_entropy);
    table.plain("sigmoid_cross_entropy", sigmoid_cross_entropy);
    table.plain("ctc_path", ctc_path);
}

}  // namespace lunaria::cpu
