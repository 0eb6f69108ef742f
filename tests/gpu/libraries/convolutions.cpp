// cuDNN as the mock of the driver has it: convolutions are looked at, and done on this processor when their turn in the
// stream comes. LUNARIA_MOCK_CUDNN is its version.
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/tensor/dtype.h"
#include "tests/gpu/libraries/library.h"

using namespace lunaria::testing;

namespace lunaria::testing {
const char* const kLibrary = "cuDNN";
}

namespace {

using lunaria::DType;
constexpr size_t kWorkspace = 2048;
constexpr int kSpecial = 7;  // the algorithm that has to be chosen

struct Handle {
    void* stream = nullptr;
};
// Of a tensor, a weight or a convolution.
struct Description {
    int dtype = -1, mode = -1, math = 0, groups = 1;
    std::vector<int> sizes, steps, padding, dilation;
};
struct Proposal {
    int algorithm;
    Status state;
    float time;
    size_t workspace;
    int is_deterministic, math;
    int reserved[3];
};

DType dtype_of(int number) {
    return number == 0 ? DType::f32 : number == 1 ? DType::f64 : number == 2 ? DType::f16 : DType::bf16;
}
int64_t count(const Description& d) {
    int64_t n = 1;
    for (int size : d.sizes) n *= size;
    return n;
}
size_t bytes_of(const Description& d) { return static_cast<size_t>(count(d)) * lunaria::size_of(dtype_of(d.dtype)); }

Status set_list(std::vector<int>& to, int n, const int* from) {
    to.assign(from, from + n);
    return 0;
}

int64_t convolutions = 0, rounded_convolutions = 0;

// What the three kinds read and write; the convolution links input, weight and output.
struct Work {
    int kind = 0;
    Description input, weight, output, convolution;
    uint64_t input_at = 0, weight_at = 0, output_at = 0;

    bool is_told_right() const {
        const size_t rank = input.sizes.size();
        if (rank < 4 || weight.sizes.size() != rank || output.sizes.size() != rank) return false;
        if (input.dtype != output.dtype || weight.dtype != input.dtype || convolution.mode != 1) return false;
        if (convolution.dtype != (input.dtype == 1 ? 1 : 0) || convolution.steps.size() != rank - 2) return false;
        const int groups = convolution.groups;
        if (input.sizes[1] != weight.sizes[1] * groups || output.sizes[1] != weight.sizes[0] ||
            output.sizes[1] % groups != 0 || input.sizes[0] != output.sizes[0])
            return false;
        for (size_t i = 0; i + 2 < rank; ++i) {
            const int reach = convolution.dilation[i] * (weight.sizes[i + 2] - 1) + 1;
            const int places = (input.sizes[i + 2] + 2 * convolution.padding[i] - reach) / convolution.steps[i] + 1;
            if (places != output.sizes[i + 2] || input.sizes[i + 2] == 0) return false;
        }
        return true;
    }

    template <class T>
    void run() const {
        T* in = static_cast<T*>(inside(input_at, bytes_of(input)));
        T* kernel = static_cast<T*>(inside(weight_at, bytes_of(weight)));
        T* out = static_cast<T*>(inside(output_at, bytes_of(output)));
        if (!in || !kernel || !out) return blame("a convolution in memory that is not allocated");
        T* const results[] = {out, in, kernel};
        const Description* const described[] = {&output, &input, &weight};
        std::vector<double> sums(static_cast<size_t>(count(*described[kind])));
        for_all([&](int64_t i, int64_t w, int64_t o) {
            const double x = static_cast<double>(in[i]), y = static_cast<double>(kernel[w]),
                         z = static_cast<double>(out[o]);
            if (kind == 0) sums[static_cast<size_t>(o)] += x * y;
            if (kind == 1) sums[static_cast<size_t>(i)] += y * z;
            if (kind == 2) sums[static_cast<size_t>(w)] += x * z;
        });
        for (size_t i = 0; i < sums.size(); ++i) {
            if constexpr (sizeof(T) == sizeof(double))
                results[kind][i] = sums[i];
            else
                results[kind][i] = T(static_cast<float>(sums[i]));
        }
    }

    // Every element of the input with the one of the weight that it meets for one of the output.
    template <class F>
    void for_all(F f) const {
        const size_t axes = input.sizes.size() - 2;
        auto size = [&](const Description& d, size_t axis) { return axis < axes ? d.sizes[axis + 2] : 1; };
        auto of = [&](const std::vector<int>& list, size_t axis, int otherwise) {
            return axis < axes ? list[axis] : otherwise;
        };
        const int group_out = output.sizes[1] / convolution.groups, group_in = weight.sizes[1];
        for (int64_t o = 0; o < count(output); ++o) {
            std::array<int, 3> place{};
            int64_t rest = o;
            for (size_t axis = axes; axis-- > 0;) {
                place[axis] = static_cast<int>(rest % size(output, axis));
                rest /= size(output, axis);
            }
            const int channel = static_cast<int>(rest % output.sizes[1]),
                      image = static_cast<int>(rest / output.sizes[1]);
            const int64_t each = count(weight) / weight.sizes[0];
            for (int64_t k = 0; k < each; ++k) {
                int64_t index = 0, unit = 1, left = k;
                bool is_inside = true;
                for (size_t axis = axes; axis-- > 0;) {
                    const int at = static_cast<int>(left % size(weight, axis));
                    left /= size(weight, axis);
                    const int i = place[axis] * of(convolution.steps, axis, 1) +
                                  at * of(convolution.dilation, axis, 1) - of(convolution.padding, axis, 0);
                    is_inside &= i >= 0 && i < size(input, axis);
                    index += unit * i;
                    unit *= size(input, axis);
                }
                if (!is_inside) continue;
                const int64_t from = channel / group_out * group_in + left;
                f((image * input.sizes[1] + from) * unit + index, channel * each + k, o);
            }
        }
    }
};

void run_work(void* what) {
    if (skips()) return;
    const auto* work = static_cast<const Work*>(what);
    switch (dtype_of(work->input.dtype)) {
        case DType::f32:
            return work->run<float>();
        case DType::f64:
            return work->run<double>();
        case DType::f16:
            return work->run<lunaria::Half>();
        default:
            return work->run<lunaria::BFloat16>();
    }
}

struct Operand {
    Description* description;
    const void* at = nullptr;
};

// The kinds name what they read and write in orders of their own.
Work work_of(int kind, Operand first, Operand second, Description* convolution, Operand result) {
    Operand input = first, weight = second, output = result;
    if (kind == 1) input = result, weight = first, output = second;
    if (kind == 2) weight = result, output = second;
    auto address = [](const Operand& o) { return reinterpret_cast<uint64_t>(o.at); };
    return {kind,         *input.description, *weight.description, *output.description,
            *convolution, address(input),     address(weight),     address(output)};
}

// First ways that are not to be chosen: that fail, whose bits differ from time to time, that take too much memory.
Status propose(int kind, Handle* handle, Description* first, Description* second, Description* convolution,
               Description* result, int most, int* made, Proposal* proposals) {
    *made = 0;
    if (!know({handle, first, second, convolution, result})) return kInvalid;
    if (!work_of(kind, {first}, {second}, convolution, {result}).is_told_right()) {
        blame("a convolution whose tensors do not fit");
        return kInvalid;
    }
    const bool exact = convolution->math == 3;
    const int math = exact ? 3 : 1;
    const Proposal all[] = {{0, 9, 1, 0, 1, math, {}},
                            {1, 0, 1, 0, 0, math, {}},
                            {2, 0, 1, size_t{1} << 40, 1, math, {}},
                            {3, 0, 1, 0, 1, 0, {}},
                            {kSpecial, 0, 1, kWorkspace, 1, math, {}}};
    for (const Proposal& p : all)
        if (*made < most && (exact || p.algorithm != 3)) proposals[(*made)++] = p;
    return 0;
}

Status workspace_of(Handle* handle, int algorithm, size_t* bytes) {
    *bytes = kWorkspace;
    return know({handle}) && algorithm == kSpecial ? 0 : kInvalid;
}

Status convolve(int kind, Handle* handle, Operand first, Operand second, Description* convolution, int algorithm,
                void* workspace, size_t workspace_bytes, Operand result) {
    if (!know({handle, first.description, second.description, convolution, result.description})) return kInvalid;
    if (algorithm != kSpecial || workspace_bytes < kWorkspace ||
        !inside(reinterpret_cast<uint64_t>(workspace), workspace_bytes)) {
        blame("a convolution by another way or workspace than was agreed");
        return kInvalid;
    }
    ++convolutions;
    rounded_convolutions += convolution->math != 3;
    // Kept: a graph may do it again.
    static auto& asked = *new std::deque<Work>;
    add(handle->stream, run_work, &asked.emplace_back(work_of(kind, first, second, convolution, result)));
    return 0;
}

struct Sum {
    Description bias, to;
    uint64_t bias_at, to_at;
};
template <class T>
void add_bias(const Sum& s) {
    const T* bias = static_cast<T*>(inside(s.bias_at, bytes_of(s.bias)));
    T* to = static_cast<T*>(inside(s.to_at, bytes_of(s.to)));
    if (!bias || !to) return blame("a bias in memory that is not allocated");
    const int64_t channels = s.to.sizes[1], plane = count(s.to) / (s.to.sizes[0] * channels);
    for (int64_t i = 0; i < count(s.to); ++i) {
        const T b = bias[i / plane % channels];
        if constexpr (sizeof(T) == sizeof(double))
            to[i] += b;
        else
            to[i] = T(static_cast<float>(to[i]) + static_cast<float>(b));
    }
}
void run_sum(void* what) {
    if (skips()) return;
    const auto* s = static_cast<const Sum*>(what);
    switch (dtype_of(s->to.dtype)) {
        case DType::f32:
            return add_bias<float>(*s);
        case DType::f64:
            return add_bias<double>(*s);
        case DType::f16:
            return add_bias<lunaria::Half>(*s);
        default:
            return add_bias<lunaria::BFloat16>(*s);
    }
}

}  // namespace

#define EXPORT [[gnu::visibility("default")]]

extern "C" {

EXPORT size_t cudnnGetVersion() { return version_or("LUNARIA_MOCK_CUDNN", 91900); }
EXPORT Status cudnnCreate(Handle** handle) { return make(handle, Handle{}); }
EXPORT Status cudnnSetStream(Handle* handle, void* stream) {
    if (!know({handle})) return kInvalid;
    handle->stream = stream;
    return 0;
}
EXPORT Status cudnnCreateTensorDescriptor(Description** made) { return make(made, Description{}); }
EXPORT Status cudnnCreateFilterDescriptor(Description** made) { return make(made, Description{}); }
EXPORT Status cudnnCreateConvolutionDescriptor(Description** made) { return make(made, Description{}); }
EXPORT Status cudnnDestroyTensorDescriptor(Description* d) { return destroy(d); }
EXPORT Status cudnnDestroyFilterDescriptor(Description* d) { return destroy(d); }
EXPORT Status cudnnDestroyConvolutionDescriptor(Description* d) { return destroy(d); }
EXPORT Status cudnnSetTensorNdDescriptor(Description* d, int dtype, int rank, const int* sizes, const int* steps) {
    if (!know({d})) return kInvalid;
    d->dtype = dtype;
    int64_t dense = 1;
    for (int i = rank; i-- > 0; dense *= sizes[i])
        if (steps[i] != dense) blame("a tensor that is not dense");
    set_list(d->steps, rank, steps);
    return set_list(d->sizes, rank, sizes);
}
EXPORT Status cudnnSetFilterNdDescriptor(Description* d, int dtype, int layout, int rank, const int* sizes) {
    if (!know({d}) || layout != 0) return kInvalid;
    d->dtype = dtype;
    return set_list(d->sizes, rank, sizes);
}
EXPORT Status cudnnSetConvolutionNdDescriptor(Description* d, int axes, const int* padding, const int* steps,
                                              const int* dilation, int mode, int dtype) {
    if (!know({d})) return kInvalid;
    d->mode = mode;
    d->dtype = dtype;
    set_list(d->padding, axes, padding);
    set_list(d->dilation, axes, dilation);
    return set_list(d->steps, axes, steps);
}
EXPORT Status cudnnSetConvolutionGroupCount(Description* d, int groups) {
    d->groups = groups;
    return 0;
}
EXPORT Status cudnnSetConvolutionMathType(Description* d, int math) {
    d->math = math;
    return 0;
}
EXPORT Status cudnnAddTensor(Handle* handle, const void*, Description* a, const void* from, const void*,
                             Description* to, void* at) {
    if (!know({handle, a, to})) return kInvalid;
    static auto& asked = *new std::deque<Sum>;
    add(handle->stream, run_sum,
        &asked.emplace_back(Sum{*a, *to, reinterpret_cast<uint64_t>(from), reinterpret_cast<uint64_t>(at)}));
    return 0;
}

EXPORT Status cudnnGetConvolutionForwardAlgorithm_v7(Handle* h, Description* x, Description* w, Description* c,
                                                     Description* y, int most, int* count, Proposal* p) {
    return propose(0, h, x, w, c, y, most, count, p);
}
EXPORT Status cudnnGetConvolutionBackwardDataAlgorithm_v7(Handle* h, Description* w, Description* y, Description* c,
                                                          Description* x, int most, int* count, Proposal* p) {
    return propose(1, h, w, y, c, x, most, count, p);
}
EXPORT Status cudnnGetConvolutionBackwardFilterAlgorithm_v7(Handle* h, Description* x, Description* y, Description* c,
                                                            Description* w, int most, int* count, Proposal* p) {
    return propose(2, h, x, y, c, w, most, count, p);
}
EXPORT Status cudnnGetConvolutionForwardWorkspaceSize(Handle* h, Description*, Description*, Description*, Description*,
                                                      int algorithm, size_t* bytes) {
    return workspace_of(h, algorithm, bytes);
}
EXPORT Status cudnnGetConvolutionBackwardDataWorkspaceSize(Handle* h, Description*, Description*, Description*,
                                                           Description*, int algorithm, size_t* bytes) {
    return workspace_of(h, algorithm, bytes);
}
EXPORT Status cudnnGetConvolutionBackwardFilterWorkspaceSize(Handle* h, Description*, Description*, Description*,
                                                             Description*, int algorithm, size_t* bytes) {
    return workspace_of(h, algorithm, bytes);
}
EXPORT Status cudnnConvolutionForward(Handle* h, const void*, Description* x, const void* xs, Description* w,
                                      const void* ws, Description* c, int algorithm, void* workspace, size_t bytes,
                                      const void*, Description* y, void* ys) {
    return convolve(0, h, {x, xs}, {w, ws}, c, algorithm, workspace, bytes, {y, ys});
}
EXPORT Status cudnnConvolutionBackwardData(Handle* h, const void*, Description* w, const void* ws, Description* y,
                                           const void* ys, Description* c, int algorithm, void* workspace, size_t bytes,
                                           const void*, Description* x, void* xs) {
    return convolve(1, h, {w, ws}, {y, ys}, c, algorithm, workspace, bytes, {x, xs});
}
EXPORT Status cudnnConvolutionBackwardFilter(Handle* h, const void*, Description* x, const void* xs, Description* y,
                                             const void* ys, Description* c, int algorithm, void* workspace,
                                             size_t bytes, const void*, Description* w, void* ws) {
    return convolve(2, h, {x, xs}, {y, ys}, c, algorithm, workspace, bytes, {w, ws});
}

// For tests: convolutions that were asked for, of these by units that may round, and handles that are alive.
EXPORT int64_t mock_convolutions(int which) {
    return which == 0 ? convolutions : which == 1 ? rounded_convolutions : static_cast<int64_t>(alive().size());
}
}
