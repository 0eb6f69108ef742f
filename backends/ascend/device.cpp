#include "backends/ascend/device.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "backends/ascend/half.h"
#include "backends/separate/device.h"
#include "core/base/error.h"
#include "core/loops/graph_backend.h"
#include "core/operator/op.h"
#include "core/tensor/parameter_watch.h"

namespace lunaria::ascend {

namespace {

// Operators of the cube; the operands at these places are converted to float16.
struct OfCube {
    std::string_view name;
    size_t operands[2];
};
constexpr OfCube kOfCube[] = {
    {"matmul", {0, 1}},
    {"mm", {0, 1}},
    {"bmm", {0, 1}},
    {"mv", {0, 1}},
    {"dense", {0, 1}},
    {"affine", {0, 1}},
    {"conv1d", {0, 1}},
    {"conv2d", {0, 1}},
    {"conv3d", {0, 1}},
    {"conv2d_relu", {0, 1}},
    {"conv_input_grad", {0, 1}},
    {"conv_weight_grad", {0, 1}},
};

// Operators that run on the processors of the chip's host, because the chip has no kernel for them.
constexpr std::string_view kOnCpu[] = {
    "svd_factors",
    "sort",
    "msort",
    "argsort",
    "kthvalue",
    "median",
    "nanmedian",
    "unique",
    "unique_consecutive",
    "unique_with_pad",
    "histc",
    "bincount",
    "searchsorted",
    "multinomial",
    "random_gamma",
    "random_poisson",
    "randperm",
    "choice_with_mask",
    "ctc_path",
    "dft",
    "dft_real",
    "csr_matmul",
    "betainc",
    "betaln",
    "igamma",
    "igammac",
    "zeta",
    "zeta_slope",
    "argwhere",
    "linear_recurrence",
    "cumprod_grad",
    "bessel_i0",
    "bessel_i0e",
    "bessel_i1",
    "bessel_i1e",
    "bessel_j0",
    "bessel_j1",
    "bessel_k0",
    "bessel_k0e",
    "bessel_k1",
    "bessel_k1e",
    "bessel_y0",
    "bessel_y1",
    "nextafter",
    "label_counts",
    "cholesky",
    "cofactor",
    "cofactor_slope",
    "det",
    "slogdet",
    "eig",
    "eigh",
    "reciprocal_gaps",
    "geqrf",
    "qr",
    "lu_factor",
    "permutation_of_pivots",
    "inverse",
    "pinv",
    "matrix_exp",
    "matrix_solve",
    "solve_triangular",
    "digamma",
    "erfcx",
    "lgamma",
    "log_betainc",
    "log_betainc_slope",
    "log_igamma",
    "log_igamma_slope",
    "log_ndtr",
    "ndtr",
    "ndtri",
    "tgamma",
    "trigamma",
    "gcd",
    "lcm",
    "sparse_segment_mean",
};

// Operators that have kernels in general but none on the chip: their expansions run there.
constexpr std::string_view kMadeOfOthers[] = {"attention", "conv2d_last", "max_window_last"};

// Operators that move elements and compute nothing, so that the bits stay the same.
constexpr std::string_view kMoves[] = {
    "concat",
    "gather",
    "gather_elements",
    "gather_nd",
    "plane_gather",
    "where",
    "slice_assign",
    "diagonal_scatter",
    "tril",
    "triu",
    "tensor_scatter_elements",
    "tensor_scatter_nd",
    "reverse_sequence",
};

bool runs_on_cpu(const Op& op, DType dtype) {
    if (dtype == DType::f64 || dtype == DType::bf16 || !is_lane(dtype)) return true;
    return std::ranges::find(kOnCpu, op.name()) != std::end(kOnCpu);
}

// The state of the device beside its memory and its queue.
struct Chip final : public separate::Watcher {
    std::mutex mutex;
    DeviceSettings settings;                           // under the mutex
    std::array<PartMemory, 3> parts;                   // under the mutex
    std::unordered_set<const void*> parameter_blocks;  // under the mutex
    std::atomic<bool> saturate{true}, overflow{false};
    Recorder recorder;

    enum Part : size_t { kParameters, kFeatures };

    void take(Part part, size_t bytes) {
        PartMemory& of = parts[part];
        const int64_t limit = settings.memory[part];
        if (of.live + static_cast<int64_t>(bytes) > limit)
            throw memory_error("Ascend", str("out of device memory: ", bytes, " bytes are asked for as ",
                                             part == kParameters ? "parameters" : "feature maps", ", ", of.live, " of ",
                                             limit, " are in use"));
        of.live += static_cast<int64_t>(bytes);
        of.peak = std::max(of.peak, of.live);
    }
    void allocating(const void*, size_t bytes) override {
        std::lock_guard lock(mutex);
        take(kFeatures, bytes);
    }
    void released(const void* block, size_t bytes) noexcept override {
        std::lock_guard lock(mutex);
        parts[parameter_blocks.erase(block) ? kParameters : kFeatures].live -= static_cast<int64_t>(bytes);
    }
    void is_parameter(const Storage& storage) {
        std::lock_guard lock(mutex);
        if (parameter_blocks.contains(storage.data)) return;
        take(kParameters, storage.bytes);
        parts[kFeatures].live -= static_cast<int64_t>(storage.bytes);
        parameter_blocks.insert(storage.data);
    }
    void launched(const KernelCall& call) override { recorder.launched(call, runs_on_cpu(call.op, call.dtype)); }
    void copied(const Tensor& source, const Tensor& destination) override { recorder.copied(source, destination); }
    void transferred(const void* block, size_t bytes, bool to_device) override {
        recorder.transferred(block, bytes, to_device);
    }
    void written(const Tensor& source, const Tensor& destination) override;
};
Chip& chip() {
    static auto* instance = new Chip;  // static: tensors that are released at the end of the process still call it
    return *instance;
}

bool has_specials(const Tensor& t) {
    if (!t.is_contiguous()) return false;
    if (t.dtype() == DType::f32) {
        const float* x = t.data<float>();
        bool special = false;
        for (int64_t i = 0; i < t.size(); ++i) special |= !(std::fabs(x[i]) <= std::numeric_limits<float>::max());
        return special;
    }
    if (t.dtype() != DType::f16) return false;
    const uint16_t* x = t.data<uint16_t>();
    bool special = false;
    for (int64_t i = 0; i < t.size(); ++i) special |= (x[i] & 0x7c00) == 0x7c00;
    return special;
}

void saturate(const Tensor& t) {
    if (t.dtype() == DType::f32) {
        constexpr float kMost = std::numeric_limits<float>::max();
        float* x = t.data<float>();
        for (int64_t i = 0; i < t.size(); ++i) x[i] = std::isnan(x[i]) ? 0 : std::clamp(x[i], -kMost, kMost);
        return;
    }
    uint16_t* x = t.data<uint16_t>();
    for (int64_t i = 0; i < t.size(); ++i)
        if ((x[i] & 0x7c00) == 0x7c00) x[i] = x[i] & 0x3ff ? 0 : static_cast<uint16_t>((x[i] & 0x8000) | 0x7bff);
}

// Checks a result for overflow. Infinities and NaN that the operands already had are no overflow.
void finish(const Tensor& result, bool from_specials) {
    if (!has_specials(result)) return;
    if (!from_specials) chip().overflow = true;
    if (chip().saturate) saturate(result);
}

void Chip::written(const Tensor& source, const Tensor& destination) {
    const bool narrowed = size_of(destination.dtype()) < size_of(source.dtype()) && is_float(source.dtype());
    if (narrowed && destination.dtype() == DType::f16) finish(destination, has_specials(source));
}

bool any_specials(const Value& v) {
    if (v.is_tensor()) return v.tensor() && has_specials(v.tensor());
    return v.is_list() && std::ranges::any_of(v.items(), any_specials);
}

// Asks the host's kernels in turn, and checks the results.
bool run_plain(const KernelCall& call) {
    const auto list = host_device()->kernels(call.op);
    if (std::ranges::none_of(list, [&](Kernel kernel) { return kernel(call); })) return false;
    bool with_operands = false;
    for (const Value& v : call.args) with_operands |= v.is_tensor() || v.is_list();
    const bool moves = std::ranges::find(kMoves, call.op.name()) != std::end(kMoves);
    if (!with_operands || moves || runs_on_cpu(call.op, call.dtype)) return true;
    std::optional<bool> specials;
    for (const Tensor& out : call.out) {
        if (!out || !has_specials(out)) continue;
        if (!specials) specials = std::ranges::any_of(call.args, any_specials);
        finish(out, *specials);
    }
    return true;
}

Tensor as_half(const Tensor& t) {
    const Tensor dense = t.contiguous();
    std::vector<uint16_t> halves(static_cast<size_t>(t.size()));
    Tensor rounded = Tensor::empty(DType::f32, t.shape());
    if (floats_to_halves(dense.data<float>(), halves.data(), t.size(), chip().saturate) && !has_specials(t))
        chip().overflow = true;
    halves_to_floats(halves.data(), rounded.data<float>(), t.size());
    return rounded;
}

bool run_on_cube(const KernelCall& call) {
    if (call.dtype != DType::f32) return run_plain(call);
    std::vector<Value> args(call.args.begin(), call.args.end());
    for (const OfCube& row : kOfCube)
        if (row.name == call.op.name())
            for (size_t i : row.operands)
                if (args[i].is_tensor() && args[i].tensor().dtype() == DType::f32)
                    args[i] = Value(as_half(args[i].tensor()));
    return run_plain(KernelCall{call.op, args, call.out, call.dtype, call.seed, call.counter});
}

// All earlier work has run when this call runs.
bool without_overflow(const KernelCall& call) {
    const bool overflow = chip().overflow.exchange(false);
    const Tensor& out = call.out[0];
    if (overflow)
        std::fill_n(out.data<bool>(), out.size(), false);
    else
        copy_elements(call.tensor(0), out);
    return true;
}

std::span<const Kernel> kernels(const Op& op) {
    static constexpr Kernel kCube[] = {&run_on_cube}, kPlain[] = {&run_plain}, kStatus[] = {&without_overflow};
    static const Op& status = registry().get("without_overflow");
    if (&op == &status) return kStatus;
    if (host_device()->kernels(op).empty()) return {};
    if (std::ranges::find(kMadeOfOthers, op.name()) != std::end(kMadeOfOthers)) return {};
    const bool of_cube = std::ranges::any_of(kOfCube, [&](const OfCube& row) { return row.name == op.name(); });
    return of_cube ? std::span<const Kernel>(kCube) : std::span<const Kernel>(kPlain);
}

// No generated loops: every operator is a task of its own in any graph.
class NoLoops final : public graph::Backend {
  public:
    bool can_compile() const override { return false; }
    std::vector<graph::LoopRef> compile(std::span<const graph::LoopTask> tasks) override {
        return std::vector<graph::LoopRef>(tasks.size());
    }
    void launch(const graph::LoopRef&, std::span<void* const>) override {}
};

}  // namespace

Device& device() {
    static NoLoops loops;
    static Device& ascend = []() -> Device& {
        Device& made = separate::make_device({"Ascend", &kernels, &loops, &chip()});
        static Device* self = nullptr;
        self = &made;
        watch_parameters([](const Storage& storage) {
            if (storage.device == self) chip().is_parameter(storage);
        });
        return made;
    }();
    return ascend;
}

void configure(const DeviceSettings& settings) {
    device().synchronize();
    Chip& c = chip();
    std::lock_guard lock(c.mutex);
    c.settings = settings;
    c.saturate = settings.saturate;
}

DeviceSettings settings() {
    std::lock_guard lock(chip().mutex);
    return chip().settings;
}

std::array<PartMemory, 3> memory_parts() {
    std::lock_guard lock(chip().mutex);
    return chip().parts;
}

std::string_view unit_of(const Op& op) {
    if (op.expand_fn) return "others";
    if (op.view_fn || op.host_fn || op.reads_type_only) return "none";
    const auto list = kernels(op);
    if (list.empty()) return host_device()->kernels(op).empty() ? "host" : "others";
    if (std::ranges::any_of(kOfCube, [&](const OfCube& row) { return row.name == op.name(); })) return "cube";
    return runs_on_cpu(op, DType::f32) ? "AI CPU" : "vector";
}

bool take_overflow() {
    device().synchronize();
    return chip().overflow.exchange(false);
}

bool overflowed() {
    device().synchronize();
    return chip().overflow;
}

Record take_record() { return chip().recorder.take(); }
int set_stream(int stream) { return chip().recorder.set_stream(stream); }
void mark_event(int stream, int64_t event, bool waits) { chip().recorder.mark(stream, event, waits); }

}  // namespace lunaria::ascend
