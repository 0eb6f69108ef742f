// cuBLASLt as the mock of the driver has it: what it is told about matrices is looked at and kept, products are done on
// this processor when their turn in the stream comes. LUNARIA_MOCK_CUBLASLT is its version; 0 refuses all products.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>

#include "core/tensor/dtype.h"
#include "tests/gpu/libraries/library.h"

using namespace lunaria::testing;

namespace lunaria::testing {
const char* const kLibrary = "cuBLASLt";
}

namespace {

using lunaria::DType;
constexpr Status kUnsupported = 15;
constexpr size_t kWorkspace = 4096;

struct Layout {
    int dtype = 0;
    uint64_t rows = 0, columns = 0;
    int64_t step = 0, batch_step = 0;
    int32_t batches = 1;
};
struct Operation {
    int sums = 0, scale = 0;
    int32_t turn_a = 0, turn_b = 0;
    uint32_t epilogue = 1;
    uint64_t bias = 0;
};
struct Wishes {
    uint64_t workspace = 0;
    uint32_t align[4] = {256, 256, 256, 256};
};
struct Algorithm {
    uint64_t number = 0;
    uint32_t align[4] = {};
    uint64_t rest[5] = {};
};
static_assert(sizeof(Algorithm) == 64);
struct Proposal {
    Algorithm algorithm;
    size_t workspace;
    Status state;
    float waves;
    int reserved[4];
};

template <class T>
Status set(T& field, const void* value, size_t bytes) {
    if (bytes != sizeof(T)) {
        blame("an attribute of another size");
        return kInvalid;
    }
    std::memcpy(&field, value, bytes);
    return 0;
}

DType dtype_of(int number) {
    return number == 0 ? DType::f32 : number == 1 ? DType::f64 : number == 2 ? DType::f16 : DType::bf16;
}

// Of a matrix, how many bytes from its first element to behind its last one.
size_t bytes_of(const Layout& l) {
    const int64_t last = (l.batches - 1) * std::abs(l.batch_step) + static_cast<int64_t>(l.columns - 1) * l.step +
                         static_cast<int64_t>(l.rows);
    return static_cast<size_t>(last) * lunaria::size_of(dtype_of(l.dtype));
}

struct Product {
    Operation operation;
    Layout a, b, d;
    uint64_t a_at, b_at, d_at;

    bool is_told_right() const {
        const uint64_t m = operation.turn_a ? a.columns : a.rows, k = operation.turn_a ? a.rows : a.columns;
        const uint64_t k_of_b = operation.turn_b ? b.columns : b.rows, n = operation.turn_b ? b.rows : b.columns;
        for (const Layout* l : {&a, &b, &d})
            if (l->step < static_cast<int64_t>(l->rows) || l->dtype != d.dtype || l->batches != d.batches) return false;
        const bool in_double = operation.sums == 70 && operation.scale == 1 && d.dtype == 1;
        const bool in_float =
            (operation.sums == 68 || (operation.sums == 77 && d.dtype == 0)) && operation.scale == 0 && d.dtype != 1;
        return m == d.rows && n == d.columns && k == k_of_b && k > 0 && (in_double || in_float);
    }

    template <class T>
    void run() const {
        const T *as = static_cast<T*>(inside(a_at, bytes_of(a))), *bs = static_cast<T*>(inside(b_at, bytes_of(b)));
        T* ds = static_cast<T*>(inside(d_at, bytes_of(d)));
        const bool has_bias = operation.epilogue == 4;
        const T* bias = has_bias ? static_cast<T*>(inside(operation.bias, d.rows * sizeof(T))) : nullptr;
        if (!as || !bs || !ds || (has_bias && !bias)) return blame("a product in memory that is not allocated");
        const auto m = static_cast<int64_t>(d.rows), n = static_cast<int64_t>(d.columns);
        const auto k = static_cast<int64_t>(operation.turn_a ? a.rows : a.columns);
        const int64_t a_down = operation.turn_a ? a.step : 1, a_across = operation.turn_a ? 1 : a.step;
        const int64_t b_down = operation.turn_b ? b.step : 1, b_across = operation.turn_b ? 1 : b.step;
        for (int64_t batch = 0; batch < d.batches; ++batch)
            for (int64_t j = 0; j < n; ++j)
                for (int64_t i = 0; i < m; ++i) {
                    double sum = bias ? static_cast<double>(bias[i]) : 0;
                    for (int64_t l = 0; l < k; ++l)
                        sum += rounded(as[batch * a.batch_step + i * a_down + l * a_across]) *
                               rounded(bs[batch * b.batch_step + l * b_down + j * b_across]);
                    ds[batch * d.batch_step + j * d.step + i] = T(static_cast<float>(sum));
                    if constexpr (sizeof(T) == 8) ds[batch * d.batch_step + j * d.step + i] = sum;
                }
    }
    // As TF32 has it, where that is asked for.
    template <class T>
    double rounded(T v) const {
        if (operation.sums != 77) return static_cast<double>(v);
        const auto wide = static_cast<float>(v);
        uint32_t bits = 0;
        std::memcpy(&bits, &wide, sizeof bits);
        bits = (bits + 0x1000) & ~0x1fffU;
        float result = 0;
        std::memcpy(&result, &bits, sizeof result);
        return result;
    }
};

void run_product(void* what) {
    if (skips()) return;
    const auto* p = static_cast<const Product*>(what);
    switch (dtype_of(p->d.dtype)) {
        case DType::f32:
            return p->run<float>();
        case DType::f64:
            return p->run<double>();
        case DType::f16:
            return p->run<lunaria::Half>();
        default:
            return p->run<lunaria::BFloat16>();
    }
}

bool is_aligned(const void* address, uint32_t align) { return reinterpret_cast<uintptr_t>(address) % align == 0; }

size_t version() { return version_or("LUNARIA_MOCK_CUBLASLT", 130100); }

int64_t products = 0, rounded_products = 0, biased_products = 0;

}  // namespace

#define EXPORT [[gnu::visibility("default")]]

extern "C" {

EXPORT size_t cublasLtGetVersion() { return version(); }
EXPORT Status cublasLtCreate(int** handle) { return make(handle, 0); }
EXPORT Status cublasLtMatmulDescCreate(Operation** made, int sums, int scale) {
    return make(made, Operation{.sums = sums, .scale = scale});
}
EXPORT Status cublasLtMatmulDescSetAttribute(Operation* o, int attribute, const void* value, size_t bytes) {
    if (!know({o})) return kInvalid;
    switch (attribute) {
        case 3:
            return set(o->turn_a, value, bytes);
        case 4:
            return set(o->turn_b, value, bytes);
        case 7:
            return set(o->epilogue, value, bytes);
        case 8:
            return set(o->bias, value, bytes);
        default:
            return kInvalid;
    }
}
EXPORT Status cublasLtMatmulDescDestroy(Operation* o) { return destroy(o); }
EXPORT Status cublasLtMatrixLayoutCreate(Layout** made, int dtype, uint64_t rows, uint64_t columns, int64_t step) {
    return make(made, Layout{.dtype = dtype, .rows = rows, .columns = columns, .step = step});
}
EXPORT Status cublasLtMatrixLayoutSetAttribute(Layout* l, int attribute, const void* value, size_t bytes) {
    if (!know({l})) return kInvalid;
    return attribute == 5   ? set(l->batches, value, bytes)
           : attribute == 6 ? set(l->batch_step, value, bytes)
                            : kInvalid;
}
EXPORT Status cublasLtMatrixLayoutDestroy(Layout* l) { return destroy(l); }
EXPORT Status cublasLtMatmulPreferenceCreate(Wishes** made) { return make(made, Wishes{}); }
EXPORT Status cublasLtMatmulPreferenceSetAttribute(Wishes* w, int attribute, const void* value, size_t bytes) {
    if (!know({w})) return kInvalid;
    if (attribute == 1) return set(w->workspace, value, bytes);
    return attribute >= 5 && attribute <= 8 ? set(w->align[attribute - 5], value, bytes) : kInvalid;
}
EXPORT Status cublasLtMatmulPreferenceDestroy(Wishes* w) { return destroy(w); }
EXPORT Status cublasLtMatmulAlgoGetHeuristic(int* handle, Operation* o, Layout* a, Layout* b, Layout* c, Layout* d,
                                             Wishes* w, int most, Proposal* proposals, int* count) {
    *count = 0;
    if (!know({handle, o, a, b, c, d, w})) return kInvalid;
    const Product p{*o, *a, *b, *d, 0, 0, 0};
    if (!p.is_told_right()) {
        blame("a product of matrices that do not fit");
        return kInvalid;
    }
    if (most < 1 || version() == 0) return kUnsupported;
    Proposal made{};
    made.algorithm.number = 0x1234;
    std::memcpy(made.algorithm.align, w->align, sizeof w->align);
    made.workspace = std::min<uint64_t>(w->workspace, kWorkspace);
    *proposals = made;
    *count = 1;
    return 0;
}
EXPORT Status cublasLtMatmul(int* handle, Operation* o, const void*, const void* a, Layout* a_layout, const void* b,
                             Layout* b_layout, const void*, const void* c, Layout* c_layout, void* d, Layout* d_layout,
                             const Algorithm* algorithm, void* workspace, size_t workspace_bytes, void* stream) {
    if (!know({handle, o, a_layout, b_layout, c_layout, d_layout})) return kInvalid;
    const uint32_t* align = algorithm->align;
    if (algorithm->number != 0x1234 || !is_aligned(a, align[0]) || !is_aligned(b, align[1]) ||
        !is_aligned(c, align[2]) || !is_aligned(d, align[3])) {
        blame("operands do not lie as they were told to");
        return kInvalid;
    }
    if (workspace_bytes > 0 && !inside(reinterpret_cast<uint64_t>(workspace), workspace_bytes)) {
        blame("a workspace that is not allocated");
        return kInvalid;
    }
    ++products;
    rounded_products += o->sums == 77;
    biased_products += o->epilogue == 4;
    // Kept: a graph may do it again.
    static auto& asked = *new std::deque<Product>;
    add(stream, run_product,
        &asked.emplace_back(Product{*o, *a_layout, *b_layout, *d_layout, reinterpret_cast<uint64_t>(a),
                                    reinterpret_cast<uint64_t>(b), reinterpret_cast<uint64_t>(d)}));
    return 0;
}

// For tests: products that were asked for, of these with rounded operands, and with a bias; handles that are alive.
EXPORT int64_t mock_products(int which) {
    return which == 0   ? products
           : which == 1 ? rounded_products
           : which == 2 ? biased_products
                        : static_cast<int64_t>(alive().size());
}
}
