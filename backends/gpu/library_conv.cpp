#include "backends/gpu/library_conv.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "backends/gpu/library.h"
#include "core/base/error.h"
#include "core/run/precision.h"

namespace lunaria::gpu {

namespace {

using Kind = ConvolutionKind;
using Status = int;
struct LibraryHandle;
// The library's descriptions of a tensor, a weight or a convolution.
struct Description;

struct Proposal {
    int algorithm;
    Status state;
    float time;
    size_t workspace;
    int is_deterministic, math;
    int reserved[3];
};

namespace number {
constexpr int kFloat = 0, kDouble = 1, kHalf = 2, kBrain = 9;  // of dtypes
constexpr int kChannelsFirst = 0;                              // of a weight
constexpr int kCorrelation = 1;                                // of a convolution: kernels are not flipped
constexpr int kAnyUnits = 0, kTensorCores = 1, kExact = 3;     // the units for the computation
}  // namespace number

constexpr size_t kOldest = 8100;
constexpr size_t kMostWorkspace = size_t{512} << 20;

// The functions of one kind; all take the two operands, the convolution and the result in the same order.
struct KindFunctions {
    Status (*propose)(LibraryHandle* handle, Description* first, Description* second, Description* convolution,
                      Description* result, int most, int* count, Proposal* proposals);
    Status (*workspace)(LibraryHandle* handle, Description* first, Description* second, Description* convolution,
                        Description* result, int algorithm, size_t* bytes);
    Status (*run)(LibraryHandle* handle, const void* alpha, Description* first, const void* first_elements,
                  Description* second, const void* second_elements, Description* convolution, int algorithm,
                  void* workspace, size_t workspace_bytes, const void* beta, Description* result, void* elements);
};

struct Library {
    size_t (*version)();
    Status (*create)(LibraryHandle** handle);
    Status (*set_stream)(LibraryHandle* handle, StreamHandle* stream);
    Status (*create_tensor)(Description** made);
    Status (*set_tensor)(Description* tensor, int dtype, int rank, const int* sizes, const int* steps);
    Status (*destroy_tensor)(Description* tensor);
    Status (*create_weight)(Description** made);
    Status (*set_weight)(Description* weight, int dtype, int layout, int rank, const int* sizes);
    Status (*destroy_weight)(Description* weight);
    Status (*create_convolution)(Description** made);
    Status (*set_convolution)(Description* convolution, int axes, const int* padding, const int* steps,
                              const int* dilation, int mode, int dtype);
    Status (*set_groups)(Description* convolution, int groups);
    Status (*set_math)(Description* convolution, int math);
    Status (*destroy_convolution)(Description* convolution);
    Status (*add)(LibraryHandle* handle, const void* alpha, Description* a, const void* a_elements, const void* beta,
                  Description* to, void* elements);
    std::array<KindFunctions, 3> kinds;
};

struct OpenedLibrary {
    Library functions{};
    LibraryState state;
};

std::string version_text(size_t v) {
    // Before version 9 a major version counted 1,000.
    const size_t unit = v >= 90000 ? 10000 : 1000;
    return str(v / unit, '.', v % unit / 100, '.', v % 100);
}

const OpenedLibrary& opened() {
    static const OpenedLibrary library = [] {
        OpenedLibrary o;
        Library& f = o.functions;
        LibraryOpener opener("cuDNN", {"libcudnn.so.9", "libcudnn.so.8"});
        opener.find(f.version, "cudnnGetVersion");
        opener.find(f.create, "cudnnCreate");
        opener.find(f.set_stream, "cudnnSetStream");
        opener.find(f.create_tensor, "cudnnCreateTensorDescriptor");
        opener.find(f.set_tensor, "cudnnSetTensorNdDescriptor");
        opener.find(f.destroy_tensor, "cudnnDestroyTensorDescriptor");
        opener.find(f.create_weight, "cudnnCreateFilterDescriptor");
        opener.find(f.set_weight, "cudnnSetFilterNdDescriptor");
        opener.find(f.destroy_weight, "cudnnDestroyFilterDescriptor");
        opener.find(f.create_convolution, "cudnnCreateConvolutionDescriptor");
        opener.find(f.set_convolution, "cudnnSetConvolutionNdDescriptor");
        opener.find(f.set_groups, "cudnnSetConvolutionGroupCount");
        opener.find(f.set_math, "cudnnSetConvolutionMathType");
        opener.find(f.destroy_convolution, "cudnnDestroyConvolutionDescriptor");
        opener.find(f.add, "cudnnAddTensor");
        constexpr std::array<std::array<const char*, 3>, 3> kNames{{
            {"cudnnGetConvolutionForwardAlgorithm_v7", "cudnnGetConvolutionForwardWorkspaceSize",
             "cudnnConvolutionForward"},
            {"cudnnGetConvolutionBackwardDataAlgorithm_v7", "cudnnGetConvolutionBackwardDataWorkspaceSize",
             "cudnnConvolutionBackwardData"},
            {"cudnnGetConvolutionBackwardFilterAlgorithm_v7", "cudnnGetConvolutionBackwardFilterWorkspaceSize",
             "cudnnConvolutionBackwardFilter"},
        }};
        for (size_t i = 0; i < kNames.size(); ++i) {
            opener.find(f.kinds[i].propose, kNames[i][0]);
            opener.find(f.kinds[i].workspace, kNames[i][1]);
            opener.find(f.kinds[i].run, kNames[i][2]);
        }
        if (opener.is_there()) {
            const size_t v = f.version();
            opener.set_version(static_cast<int>(v), kOldest, version_text(v), "8.1.0 or newer");
        }
        o.state = opener.state();
        return o;
    }();
    return library;
}

int number_of(DType t) {
    switch (t) {
        case DType::f32:
            return number::kFloat;
        case DType::f64:
            return number::kDouble;
        case DType::f16:
            return number::kHalf;
        default:
            return number::kBrain;
    }
}

using Sizes = std::vector<int>;

Sizes dense_steps(const Sizes& sizes) {
    Sizes steps(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;) steps[i - 1] = steps[i] * sizes[i];
    return steps;
}

// A convolution in the library's terms.
struct Plan {
    LibraryHandle* handle = nullptr;
    Description *input = nullptr, *weight = nullptr, *output = nullptr, *bias = nullptr, *convolution = nullptr;
    int algorithm = 0;
    size_t workspace = 0;
    bool in_double = false, is_possible = false;

    ~Plan() {
        const Library& library = opened().functions;
        for (Description* tensor : {input, output, bias})
            if (tensor) library.destroy_tensor(tensor);
        if (weight) library.destroy_weight(weight);
        if (convolution) library.destroy_convolution(convolution);
    }
    Plan() = default;
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;

    struct Order {
        Description *first, *second, *result;
    };
    Order order(Kind kind) const {
        if (kind == Kind::forward) return {input, weight, output};
        if (kind == Kind::input_grad) return {weight, output, input};
        return {input, output, weight};
    }
};

class Planner {
  public:
    explicit Planner(const LibraryConvolution& c)
        : library_(opened().functions),
          c_(c),
          dtype_(number_of(c.dtype)),
          first_(c.geometry.window.axes == 3 ? 0 : 1) {}

    std::shared_ptr<Plan> run(LibraryHandle* handle) {
        auto plan = std::make_shared<Plan>();
        plan->handle = handle;
        plan->in_double = c_.dtype == DType::f64;
        plan->is_possible = describe(*plan) && choose(*plan);
        return plan;
    }

  private:
    // The library takes at least two axes: an additional one in front has size 1.
    Sizes spatial(const Window::Sizes& all) const {
        Sizes list;
        for (auto i = first_; i < Window::kAxes; ++i) list.push_back(static_cast<int>(all[i]));
        return list;
    }
    Sizes with(int64_t a, int64_t b, const Window::Sizes& all) const {
        Sizes sizes = spatial(all);
        sizes.insert(sizes.begin(), {static_cast<int>(a), static_cast<int>(b)});
        return sizes;
    }
    bool tensor(Description*& made, const Sizes& sizes) const {
        return library_.create_tensor(&made) == 0 && library_.set_tensor(made, dtype_, static_cast<int>(sizes.size()),
                                                                         sizes.data(), dense_steps(sizes).data()) == 0;
    }

    bool describe(Plan& plan) const {
        const Convolution& g = c_.geometry;
        const Window& w = g.window;
        if (!tensor(plan.input, with(g.batch, g.in_channels, w.in))) return false;
        if (!tensor(plan.output, with(g.batch, g.out_channels, w.out))) return false;
        constexpr Window::Sizes kOnes{1, 1, 1};
        if (c_.bias && !tensor(plan.bias, with(1, g.out_channels, kOnes))) return false;
        const Sizes weight = with(g.out_channels, g.in_channels / g.groups, w.kernel);
        if (library_.create_weight(&plan.weight) != 0 ||
            library_.set_weight(plan.weight, dtype_, number::kChannelsFirst, static_cast<int>(weight.size()),
                                weight.data()) != 0)
            return false;
        const Sizes padding = spatial(w.before), steps = spatial(w.stride), dilation = spatial(w.dilation);
        return library_.create_convolution(&plan.convolution) == 0 &&
               library_.set_convolution(plan.convolution, static_cast<int>(padding.size()), padding.data(),
                                        steps.data(), dilation.data(), number::kCorrelation,
                                        plan.in_double ? number::kDouble : number::kFloat) == 0 &&
               library_.set_groups(plan.convolution, static_cast<int>(g.groups)) == 0 &&
               library_.set_math(plan.convolution, wished_math()) == 0;
    }
    int wished_math() const {
        if (is_half(c_.dtype)) return number::kTensorCores;
        return c_.dtype == DType::f32 && !rounds_products() ? number::kExact : number::kAnyUnits;
    }

    // The fastest algorithm that gives the same bits every time.
    bool choose(Plan& plan) const {
        constexpr int kMost = 8;
        const KindFunctions& kind = library_.kinds[static_cast<size_t>(c_.kind)];
        const auto [first, second, result] = plan.order(c_.kind);
        Proposal proposals[kMost] = {};
        int count = 0;
        if (kind.propose(plan.handle, first, second, plan.convolution, result, kMost, &count, proposals) != 0)
            return false;
        for (int i = 0; i < count; ++i) {
            const Proposal& p = proposals[i];
            const bool is_exact = wished_math() != number::kExact || p.math == number::kExact;
            if (p.state != 0 || !p.is_deterministic || !is_exact || p.workspace > kMostWorkspace) continue;
            if (library_.set_math(plan.convolution, p.math) != 0) continue;
            if (kind.workspace(plan.handle, first, second, plan.convolution, result, p.algorithm, &plan.workspace) != 0)
                continue;
            plan.algorithm = p.algorithm;
            return true;
        }
        return false;
    }

    const Library& library_;
    const LibraryConvolution& c_;
    const int dtype_;
    const size_t first_;
};

// Whether no padding of the end alone is needed: the library pads both ends alike.
bool pads_alike(const Window& w) {
    for (size_t i = 0; i < Window::kAxes; ++i) {
        const int64_t reach = w.reach(static_cast<int>(i));
        if (w.in[i] + 2 * w.before[i] < reach) return false;
        if ((w.in[i] + 2 * w.before[i] - reach) / w.stride[i] + 1 != w.out[i]) return false;
    }
    return true;
}

bool fits_int(const Convolution& g) {
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    const Window& w = g.window;
    const int64_t in = capped_product(capped_product(g.batch, g.in_channels), w.in_size());
    const int64_t out = capped_product(capped_product(g.batch, g.out_channels), w.out_size());
    return std::max({in, out, capped_product(capped_product(g.in_channels, g.out_channels), w.kernel_size())}) <= kMost;
}

std::string key_of(const LibraryConvolution& c) {
    const Convolution& g = c.geometry;
    const Window& w = g.window;
    const bool rounds = c.dtype == DType::f32 && rounds_products();
    std::string key = str(static_cast<int>(c.kind), ' ', name_of(c.dtype), rounds ? " rounded " : " ", c.bias != 0, ' ',
                          g.batch, ' ', g.in_channels, ' ', g.out_channels, ' ', g.groups, ' ', w.axes);
    for (const Window::Sizes* sizes : {&w.in, &w.kernel, &w.out, &w.stride, &w.dilation, &w.before})
        for (int64_t n : *sizes) key += str(' ', n);
    return key;
}

std::shared_ptr<Plan> plan_for(const LibraryConvolution& c, uint64_t context) {
    static auto* plans = new Plans<LibraryHandle, Plan>;
    return plans->find(context, key_of(c), opened().functions.create,
                       [&](LibraryHandle* handle) { return Planner(c).run(handle); });
}

Result convolve(const Plan& plan, const LibraryConvolution& c, Address workspace, StreamHandle* stream) {
    const Library& library = opened().functions;
    const Factors factors(plan.in_double);
    const void* const one = factors.one();
    const auto [first, second, result] = plan.order(c.kind);
    // The gradient of the input takes the weight first.
    const bool is_turned = c.kind == Kind::input_grad;
    const Address a = is_turned ? c.second : c.first, b = is_turned ? c.first : c.second;
    if (library.set_stream(plan.handle, stream) != 0) return kLibraryFailed;
    if (library.kinds[static_cast<size_t>(c.kind)].run(plan.handle, one, first, pointer_to(a), second, pointer_to(b),
                                                       plan.convolution, plan.algorithm, pointer_to(workspace),
                                                       plan.workspace, factors.zero(), result, pointer_to(c.out)) != 0)
        return kLibraryFailed;
    if (c.bias &&
        library.add(plan.handle, one, plan.bias, pointer_to(c.bias), one, plan.output, pointer_to(c.out)) != 0)
        return kLibraryFailed;
    return kSuccess;
}

}  // namespace

const LibraryState& convolution_library() { return opened().state; }

bool run_library_convolution(Launcher& launcher, const LibraryConvolution& c) {
    if (!convolution_library().missing.empty()) return false;
    if (!pads_alike(c.geometry.window) || !fits_int(c.geometry)) return false;
    std::shared_ptr<Plan> plan;
    launcher.queue().in_context([&](uint64_t context) { plan = plan_for(c, context); });
    if (!plan) return false;
    const Address workspace = plan->workspace ? launcher.take(static_cast<int64_t>(plan->workspace)) : 0;
    launcher.call({c.first, c.second, c.out, c.bias ? c.bias : c.out, workspace ? workspace : c.out,
                   reinterpret_cast<uint64_t>(plan.get())},
                  5, [plan, c, workspace](StreamHandle* stream) { return convolve(*plan, c, workspace, stream); });
    return true;
}

}  // namespace lunaria::gpu
