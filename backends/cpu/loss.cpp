// CPU kernels: losses.
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/kernel_table.h"
#include "core/error.h"
#include "core/op.h"

namespace lunaria::cpu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

template <class F>
void with_float(DType t, F f) {
    if (t == DType::f64)
        f(double{});
    else
        f(float{});
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
            throw index_error("labels", str("label ", label, " at position ", i, " is out of range: with ", classes,
                                            " classes labels are 0 .. ", classes - 1))
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
                throw index_error("labels", str("label ", row[i], " is out of range: with ", classes,
                                                " classes labels are 0 .. ", classes - 1, ", and -1 ends a list"));
            ++counts[row[i]];
        }
    }
    return true;
}

bool bernoulli_cross_entropy(const KernelCall& c) {
    with_float(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        for (int64_t i = 0; i < c.out[0].size(); ++i) {
            double x = static_cast<double>(c.tensor(0).data<T>()[i]), t = static_cast<double>(c.tensor(1).data<T>()[i]);
            if (x < 0 || x > 1)
                throw value_error("binary_cross_entropy", str("the input holds ", x, ": probabilities are in 0 .. 1"))
                    .hint("for logits use binary_cross_entropy_with_logits");
            // max(-100, NaN) would drop the NaN.
            double yes = std::log(x), no = std::log1p(-x);
            yes = yes < -100 ? -100 : yes;
            no = no < -100 ? -100 : no;
            c.out[0].data<T>()[i] = static_cast<T>(-(t * yes + (1 - t) * no));
        }
    });
    return true;
}

// weight * x where an infinite x with the weight 0 counts as 0.
double counted(double weight, double x) { return weight == 0 && std::isinf(x) ? 0 : weight * x; }

bool sigmoid_cross_entropy(const KernelCall& c) {
    with_float(c.out[0].dtype(), [&](auto zero) {
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
    return true;
}

double log_add(double a, double b) {
    double high = std::max(a, b), low = std::min(a, b);
    return low == -kInf ? high : high + std::log1p(std::exp(low - high));
}

// One sample of the batch: labels with blanks between them, and the forward and backward variables in logarithms.
template <class T>
class CtcSample {
  public:
    CtcSample(const KernelCall& c, size_t first, int64_t n) {
        const Tensor &log_probs = c.tensor(first), &targets = c.tensor(first + 1);
        steps_ = c.tensor(first + 2).data<int64_t>()[n];
        int64_t labels = c.tensor(first + 3).data<int64_t>()[n];
        int64_t time = log_probs.dim(0), longest = targets.dim(1);
        batch_ = log_probs.dim(1);
        classes_ = log_probs.dim(2);
        blank_ = c.args[first + 4].integer();
        if (steps_ < 0 || steps_ > time)
            throw value_error("ctc_loss", str("input_lengths[", n, "] is ", steps_, ": it must be in 0 .. ", time));
        if (labels < 0 || labels > longest)
            throw value_error("ctc_loss", str("target_lengths[", n, "] is ", labels, ": it must be in 0 .. ", longest));
        p_ = log_probs.data<T>() + n * classes_;
        for (int64_t i = 0; i < labels; ++i) {
            int64_t label = targets.data<int64_t>()[n * longest + i];
            if (label < 0 || label >= classes_ || label == blank_)
                throw index_error("ctc_loss",
                                  str("label ", label, " of sample ", n, " is out of range: classes are 0 .. ",
                                      classes_ - 1, " without the blank ", blank_));
            path_.push_back(blank_);
            path_.push_back(label);
        }
        path_.push_back(blank_);
    }

    int64_t states() const { return static_cast<int64_t>(path_.size()); }
    int64_t steps() const { return steps_; }
    int64_t state_class(int64_t s) const { return path_[static_cast<size_t>(s)]; }
    double log_prob(int64_t t, int64_t s) const {
        return static_cast<double>(p_[t * batch_ * classes_ + state_class(s)]);
    }
    // Whether state s may follow state s - 2: not between equal labels, which need a blank.
    bool may_skip(int64_t s) const {
        return s >= 2 && state_class(s) != blank_ && state_class(s) != state_class(s - 2);
    }

    // alpha[t][s]: all prefixes that end in state s at time t, its own probability included.
    std::vector<double> forward() const {
        std::vector<double> alpha(static_cast<size_t>(steps_ * states()), -kInf);
        for (int64_t t = 0; t < steps_; ++t)
            for (int64_t s = 0; s < states(); ++s) {
                double from = -kInf;
                if (t == 0) {
                    from = s < 2 ? 0 : -kInf;
                } else {
                    from = alpha[at(t - 1, s)];
                    if (s >= 1) from = log_add(from, alpha[at(t - 1, s - 1)]);
                    if (may_skip(s)) from = log_add(from, alpha[at(t - 1, s - 2)]);
                }
                alpha[at(t, s)] = from + log_prob(t, s);
            }
        return alpha;
    }
    // beta[t][s]: all suffixes after state s at time t, its own probability not included.
    std::vector<double> backward() const {
        std::vector<double> beta(static_cast<size_t>(steps_ * states()), -kInf);
        for (int64_t t = steps_ - 1; t >= 0; --t)
            for (int64_t s = 0; s < states(); ++s) {
                if (t == steps_ - 1) {
                    beta[at(t, s)] = s >= states() - 2 ? 0 : -kInf;
                    continue;
                }
                double to = beta[at(t + 1, s)] + log_prob(t + 1, s);
                if (s + 1 < states()) to = log_add(to, beta[at(t + 1, s + 1)] + log_prob(t + 1, s + 1));
                if (s + 2 < states() && may_skip(s + 2))
                    to = log_add(to, beta[at(t + 1, s + 2)] + log_prob(t + 1, s + 2));
                beta[at(t, s)] = to;
            }
        return beta;
    }
    double log_likelihood(const std::vector<double>& alpha) const {
        if (steps_ == 0) return states() == 1 ? 0 : -kInf;
        double last = alpha[at(steps_ - 1, states() - 1)];
        return states() > 1 ? log_add(last, alpha[at(steps_ - 1, states() - 2)]) : last;
    }
    size_t at(int64_t t, int64_t s) const { return static_cast<size_t>(t * states() + s); }

  private:
    int64_t steps_ = 0, batch_ = 0, classes_ = 0, blank_ = 0;
    const T* p_ = nullptr;
    std::vector<int64_t> path_;
};

bool ctc_nll(const KernelCall& c) {
    with_float(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        int64_t time = c.out[1].dim(1), width = c.out[1].dim(2);
        for (int64_t n = 0; n < c.out[0].size(); ++n) {
            CtcSample<T> sample(c, 0, n);
            std::vector<double> alpha = sample.forward();
            c.out[0].data<T>()[n] = static_cast<T>(-sample.log_likelihood(alpha));
            T* out = c.out[1].data<T>() + n * time * width;
            std::fill(out, out + time * width, static_cast<T>(-kInf));
            for (int64_t t = 0; t < sample.steps(); ++t)
                for (int64_t s = 0; s < sample.states(); ++s)
                    out[t * width + s] = static_cast<T>(alpha[sample.at(t, s)]);
        }
    });
    return true;
}

bool ctc_nll_grad(const KernelCall& c) {
    with_float(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        int64_t batch = c.out[0].dim(1), classes = c.out[0].dim(2);
        T* out = c.out[0].data<T>();
        std::fill(out, out + c.out[0].size(), T(0));
        for (int64_t n = 0; n < batch; ++n) {
            CtcSample<T> sample(c, 1, n);
            std::vector<double> alpha = sample.forward(), beta = sample.backward();
            double total = sample.log_likelihood(alpha), dout = static_cast<double>(c.tensor(0).data<T>()[n]);
            if (total == -kInf) continue;  // no alignment: nothing that could be made more likely
            for (int64_t t = 0; t < sample.steps(); ++t)
                for (int64_t s = 0; s < sample.states(); ++s)
                    out[(t * batch + n) * classes + sample.state_class(s)] -=
                        static_cast<T>(dout * std::exp(alpha[sample.at(t, s)] + beta[sample.at(t, s)] - total));
        }
    });
    return true;
}

}  // namespace

void add_loss_kernels(KernelTable& table) {
    table.plain("valid_labels", valid_labels);
    table.plain("label_counts", label_counts);
    table.plain("bernoulli_cross_entropy", bernoulli_cross_entropy);
    table.plain("sigmoid_cross_entropy", sigmoid_cross_entropy);
    table.plain("ctc_nll", ctc_nll);
    table.plain("ctc_nll_grad", ctc_nll_grad);
}

}  // namespace lunaria::cpu
