// Products and convolutions, by the kernels of core/lite/kernels.
#include "core/lite/kernels/names.h"
#include "core/lite/runtime/elements.h"
#include "core/lite/runtime/product_form.h"

namespace lunaria::lite {

namespace {

bool read_product_sizes(const StepForm& form, std::string_view name, int64_t least, int64_t (&to)[3]) {
    const std::vector<int64_t> list = form.integers(name);
    if (list.size() > 3) return false;
    for (size_t i = 0; i < list.size(); ++i) {
        if (list[i] < least || list[i] > (int64_t{1} << 30)) return false;
        to[3 - list.size() + i] = list[i];
    }
    return true;
}

}  // namespace

bool read_activation(const StepForm& form, kernels::Activation& activation, float& alpha, float& beta,
                     std::string& fault) {
    alpha = static_cast<float>(form.number("alpha"));
    beta = static_cast<float>(form.number("beta"));
    if (kernels::read_name(kernels::kActivations, form.text("activation"), activation)) return true;
    fault = "there is no activation '" + std::string(form.text("activation")) + "'";
    return false;
}

bool read_convolution(const StepForm& form, kernels::ConvolutionShape& s, std::string& fault) {
    const Operand &x = form.in[0], &y = form.out[0];
    const size_t rank = x.shape.size();
    if (!fits(rank >= 3 && rank <= 5 && y.shape.size() == rank && x.is_dense() && y.is_dense() && form.in[1].is_there(),
              fault))
        return false;
    if (!fits(read_product_sizes(form, "kernel", 1, s.kernel) && read_product_sizes(form, "stride", 1, s.stride) &&
                  read_product_sizes(form, "dilation", 1, s.dilation) && read_product_sizes(form, "pad", 0, s.pad),
              fault, "its attributes do not fit"))
        return false;
    s.batch = x.shape[0];
    s.channels = form.integer("channels", x.shape.back());
    s.out_channels = form.integer("out_channels", y.shape.back());
    s.groups = form.integer("groups", 1);
    s.transposed = form.integer("transposed") != 0;
    for (size_t i = 1; i + 1 < rank; ++i) {
        s.in[4 - rank + i] = x.shape[i];
        s.out[4 - rank + i] = y.shape[i];
    }
    bool good = s.channels == x.shape.back() && s.out_channels == y.shape.back() && y.shape[0] == s.batch &&
                s.groups >= 1 && s.channels % s.groups == 0 && s.out_channels % s.groups == 0;
    double weights = static_cast<double>(s.channels) * static_cast<double>(s.out_channels);
    for (const int64_t n : s.kernel) weights *= static_cast<double>(n);
    good = good && weights < 0x1p40;
    // The windows of all results begin within the padded picture.
    for (int i = 0; i < 3 && good && !s.transposed; ++i)
        good = (s.out[i] - 1) * s.stride[i] - s.pad[i] < s.in[i] + s.pad[i] + s.kernel[i] * s.dilation[i];
    return fits(good, fault);
}

namespace {

// The epilogue but for its pointers; operands from `first` on are bias, scale and residual.
bool read_epilogue(const StepForm& form, size_t first, int64_t columns, kernels::Epilogue& e, std::string& fault) {
    if (!read_activation(form, e.activation, e.alpha, e.beta, fault)) return false;
    e.residual_last = form.integer("residual_last") != 0;
    for (size_t i = first; i < first + 2; ++i) {
        const Operand& o = form.operand(i);
        if (!o.is_there()) continue;
        if (o.dtype != DType::f32 || o.size() != columns || !o.is_dense()) fault = "its bias or scale has another form";
    }
    const Operand& residual = form.operand(first + 2);
    if (residual.is_there()) {
        if (residual.dtype != DType::f32 || !residual.is_dense() || residual.size() != form.out[0].size())
            fault = "its residual has another form";
        e.residual_row = columns;
    }
    return fault.empty();
}
void set_pointers(kernels::Epilogue& e, const Call& call, size_t first, size_t count) {
    auto at = [&](size_t i) { return i < count ? reinterpret_cast<const float*>(call.in[i]) : nullptr; };
    e.bias = at(first);
    e.scale = at(first + 1);
    e.residual = at(first + 2);
}

std::unique_ptr<Work> prepare_product(const StepForm& form, std::string& fault) {
    if (!fits(form.in.size() >= 2 && form.out.size() == 1, fault, "it lacks operands")) return nullptr;
    const Operand &x = form.in[0], &w = form.in[1], &y = form.out[0];
    kernels::Product p;
    p.k = form.integer("k");
    p.n = form.integer("n");
    bool good = fits(kernels::read_name(kernels::kWeightTypes, form.text("type"), p.type), fault,
                     "its weight has an unknown type");
    constexpr int64_t kMost = int64_t{1} << 31;
    good = good && fits(p.k > 0 && p.n > 0 && p.k < kMost && p.n < kMost && !x.shape.empty() && x.shape.back() == p.k &&
                            x.is_dense() && x.dtype == DType::f32 && y.dtype == DType::f32 && y.is_dense(),
                        fault);
    if (!good) return nullptr;
    p.m = x.size() / p.k;
    const int64_t bytes = w.size() * (w.form == Form::plain ? w.width() : 1);
    const bool packed = w.form != Form::plain || bytes >= kernels::weight_bytes(p.type, p.k, p.n);
    if (!fits(packed && w.is_there() && y.size() == p.m * p.n, fault)) return nullptr;
    if (w.form != Form::plain &&
        !fits(w.size() == p.k * p.n && (p.type == kernels::WeightType::q8_0 || p.type == kernels::WeightType::q4_0),
              fault, "its weight has another form"))
        return nullptr;
    if (!read_epilogue(form, 2, p.n, p.epilogue, fault)) return nullptr;
    p.a_row = p.k;
    p.c_row = p.n;
    const size_t count = form.in.size();
    return work(
        [p, count, isa = form.isa](const Call& call) {
            kernels::Product now = p;
            now.a = reinterpret_cast<const float*>(call.in[0]);
            now.b = call.in[1];
            now.c = reinterpret_cast<float*>(call.out[0]);
            set_pointers(now.epilogue, call, 2, count);
            kernels::product(isa, now, call.scratch, call.workers);
        },
        kernels::product_scratch(p, form.workers));
}

// Leading axes that both operands go through in equal steps are the batch of one call; the others are gone through.
struct Batches {
    kernels::BatchedProduct product;
    std::vector<int64_t> sizes, a, b, c;  // of the outer axes, in elements
    int64_t count = 1;
};
void run_batches(const Batches& all, const Call& call, kernels::Isa isa, size_t operands) {
    kernels::BatchedProduct p = all.product;
    set_pointers(p.epilogue, call, 2, operands);
    p.epilogue.residual = nullptr;
    for (int64_t i = 0; i < all.count; ++i) {
        int64_t rest = i, a = 0, b = 0, c = 0;
        for (size_t axis = all.sizes.size(); axis-- > 0;) {
            const int64_t at = rest % all.sizes[axis];
            rest /= all.sizes[axis];
            a += at * all.a[axis];
            b += at * all.b[axis];
            c += at * all.c[axis];
        }
        p.a = reinterpret_cast<const float*>(call.in[0]) + a;
        p.b = reinterpret_cast<const float*>(call.in[1]) + b;
        p.c = reinterpret_cast<float*>(call.out[0]) + c;
        kernels::batched_product(isa, p, call.scratch, call.workers);
    }
}

std::unique_ptr<Work> prepare_batched(const StepForm& form, std::string& fault) {
    if (!fits(form.in.size() >= 2 && form.out.size() == 1, fault, "it lacks operands")) return nullptr;
    const Operand &a = form.in[0], &b = form.in[1], &y = form.out[0];
    const size_t rank = a.shape.size();
    bool good = rank >= 2 && b.shape.size() == rank && y.shape.size() == rank && y.is_dense();
    for (const Operand* o : {&a, &b, &y}) good = good && o->dtype == DType::f32;
    for (size_t i = 0; good && i + 2 < rank; ++i) good = a.shape[i] == b.shape[i] && a.shape[i] == y.shape[i];
    good = good && a.shape[rank - 1] == b.shape[rank - 2] && y.shape[rank - 2] == a.shape[rank - 2] &&
           y.shape[rank - 1] == b.shape[rank - 1];
    if (!fits(good, fault)) return nullptr;
    Batches all;
    kernels::BatchedProduct& p = all.product;
    p.m = a.shape[rank - 2];
    p.k = a.shape[rank - 1];
    p.n = b.shape[rank - 1];
    p.a_row = a.strides[rank - 2];
    p.a_column = a.strides[rank - 1];
    p.b_row = b.strides[rank - 2];
    p.b_column = b.strides[rank - 1];
    p.c_row = p.n;
    p.factor = static_cast<float>(form.number("factor", 1));
    if (!read_epilogue(form, 2, p.n, p.epilogue, fault)) return nullptr;
    p.batch = 1;
    int64_t step = p.m * p.n;
    size_t outer = rank - 2;
    while (outer > 0) {
        const size_t axis = outer - 1;
        const int64_t size = a.shape[axis];
        const bool joins =
            p.batch == 1 || (a.strides[axis] == p.a_batch * p.batch && b.strides[axis] == p.b_batch * p.batch);
        if (size != 1 && !joins) break;
        if (size != 1) {
            if (p.batch == 1) {
                p.a_batch = a.strides[axis];
                p.b_batch = b.strides[axis];
                p.c_batch = step;
            }
            p.batch *= size;
        }
        step *= size;
        --outer;
    }
    for (size_t i = 0; i < outer; ++i) {
        all.sizes.push_back(a.shape[i]);
        all.a.push_back(a.strides[i]);
        all.b.push_back(b.strides[i]);
        all.c.push_back(y.strides[i]);
        all.count *= a.shape[i];
    }
    if (y.size() == 0) all.count = 0;
    return work([all, isa = form.isa, count = form.in.size()](const Call& call) { run_batches(all, call, isa, count); },
                kernels::batched_product_scratch(p, form.workers));
}

std::unique_ptr<Work> prepare_convolution(const StepForm& form, std::string& fault) {
    if (!fits(form.in.size() >= 2 && form.out.size() == 1, fault, "it lacks operands")) return nullptr;
    const Operand &x = form.in[0], &w = form.in[1], &y = form.out[0];
    kernels::Convolution c;
    if (!fits(kernels::read_name(kernels::kWeightTypes, form.text("type"), c.type) &&
                  kernels::read_name(kernels::kConvolutionMethods, form.text("method"), c.method),
              fault, "it has an unknown method or type of weight") ||
        !fits(x.dtype == DType::f32 && y.dtype == DType::f32, fault) || !read_convolution(form, c.shape, fault))
        return nullptr;
    const kernels::ConvolutionShape& s = c.shape;
    if (!fits(w.size() * w.width() >= kernels::convolution_weight_bytes(s, c.method, c.type), fault,
              "its weight does not fit") ||
        !read_epilogue(form, 2, s.out_channels, c.epilogue, fault))
        return nullptr;
    return work(
        [c, count = form.in.size(), isa = form.isa](const Call& call) {
            kernels::Convolution now = c;
            now.x = reinterpret_cast<const float*>(call.in[0]);
            now.weight = call.in[1];
            now.y = reinterpret_cast<float*>(call.out[0]);
            set_pointers(now.epilogue, call, 2, count);
            kernels::convolution(isa, now, call.scratch, call.workers);
        },
        kernels::convolution_scratch(c, form.workers));
}

// What the arrangement of a weight depends on.
bool read_weight_shape(const StepForm& form, kernels::ConvolutionShape& s) {
    s.channels = form.integer("channels");
    s.out_channels = form.integer("out_channels");
    s.groups = form.integer("groups", 1);
    s.transposed = form.integer("transposed") != 0;
    constexpr int64_t kMost = 1 << 24;
    return s.groups >= 1 && s.channels >= 1 && s.channels < kMost && s.out_channels >= 1 && s.out_channels < kMost &&
           s.channels % s.groups == 0 && s.out_channels % s.groups == 0 &&
           read_product_sizes(form, "kernel", 1, s.kernel) && read_product_sizes(form, "stride", 1, s.stride) &&
           read_product_sizes(form, "dilation", 1, s.dilation) && (form.has("stride") || !s.transposed);
}

// Weights that the program computes are arranged in each run.
std::unique_ptr<Work> prepare_packing(const StepForm& form, std::string& fault) {
    if (!fits(form.in.size() == 1 && form.out.size() == 1, fault, "it lacks operands")) return nullptr;
    const Operand &w = form.in[0], &y = form.out[0];
    kernels::ConvolutionShape s;
    kernels::ConvolutionMethod method{};
    kernels::WeightType type{};
    bool good = w.is_there() && w.is_dense() && w.dtype == DType::f32 && y.is_dense() && read_weight_shape(form, s) &&
                kernels::read_name(kernels::kConvolutionMethods, form.text("method"), method) &&
                kernels::read_name(kernels::kWeightTypes, form.text("type"), type);
    int64_t count = s.channels * s.out_channels / std::max<int64_t>(s.groups, 1);
    for (const int64_t n : s.kernel) good = good && !__builtin_mul_overflow(count, n, &count);
    good = good && count == w.size() && y.size() * y.width() >= kernels::convolution_weight_bytes(s, method, type);
    if (!fits(good, fault)) return nullptr;
    return work([=](const Call& call) {
        if (!kernels::pack_convolution(s, method, type, reinterpret_cast<const float*>(call.in[0]), call.out[0]))
            call.fail("its weight cannot be arranged");
    });
}

constexpr StepKind kProductStepsKinds[] = {{"product", prepare_product},
                                           {"batched_product", prepare_batched},
                                           {"convolution", prepare_convolution},
                                           {"pack_convolution", prepare_packing}};

}  // namespace

std::span<const StepKind> product_kinds() { return kProductStepsKinds; }

}  // namespace lunaria::lite
