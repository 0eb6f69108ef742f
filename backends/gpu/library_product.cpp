#include "backends/gpu/library_product.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "backends/gpu/library.h"
#include "core/base/error.h"
#include "core/run/precision.h"

namespace lunaria::gpu {

namespace {

// The library's types: handles are pointers, their attributes are numbered.
struct LibraryHandle;
struct OperationHandle;
struct LayoutHandle;
struct WishesHandle;
using Status = int;

struct Algorithm {
    uint64_t data[8];
};
struct Proposal {
    Algorithm algorithm;
    size_t workspace;
    Status state;
    float waves;
    int reserved[4];
};

namespace number {
constexpr int kFloat = 0, kDouble = 1, kHalf = 2, kBrain = 14;                         // of dtypes
constexpr int kFloatSums = 68, kFloatSumsOfRounded = 77, kDoubleSums = 70;             // the dtype of the computation
constexpr int kTurnA = 3, kTurnB = 4, kEpilogue = 7, kBias = 8;                        // of an operation
constexpr int kBatches = 5, kBatchStep = 6;                                            // of a layout
constexpr int kMostWorkspace = 1, kAlignA = 5, kAlignB = 6, kAlignC = 7, kAlignD = 8;  // of wishes
constexpr int32_t kAsItLies = 0, kTurned = 1;
constexpr uint32_t kAddBias = 4;
}  // namespace number

constexpr int kOldestLibrary = 110401;  // has epilogues with a bias, and all attributes above
constexpr uint64_t kWorkspace = uint64_t{32} << 20;

struct Library {
    size_t (*version)();
    Status (*create)(LibraryHandle** handle);
    Status (*create_operation)(OperationHandle** operation, int sums, int scale);
    Status (*set_operation)(OperationHandle* operation, int attribute, const void* value, size_t bytes);
    Status (*destroy_operation)(OperationHandle* operation);
    Status (*create_layout)(LayoutHandle** layout, int dtype, uint64_t rows, uint64_t columns, int64_t step);
    Status (*set_layout)(LayoutHandle* layout, int attribute, const void* value, size_t bytes);
    Status (*destroy_layout)(LayoutHandle* layout);
    Status (*create_wishes)(WishesHandle** wishes);
    Status (*set_wish)(WishesHandle* wishes, int attribute, const void* value, size_t bytes);
    Status (*destroy_wishes)(WishesHandle* wishes);
    Status (*propose)(LibraryHandle* handle, OperationHandle* operation, LayoutHandle* a, LayoutHandle* b,
                      LayoutHandle* c, LayoutHandle* d, WishesHandle* wishes, int most, Proposal* proposals,
                      int* count);
    Status (*multiply)(LibraryHandle* handle, OperationHandle* operation, const void* alpha, const void* a,
                       LayoutHandle* a_layout, const void* b, LayoutHandle* b_layout, const void* beta, const void* c,
                       LayoutHandle* c_layout, void* d, LayoutHandle* d_layout, const Algorithm* algorithm,
                       void* workspace, size_t workspace_bytes, StreamHandle* stream);
};

struct OpenedLibrary {
    Library functions{};
    LibraryState state;
};

std::string version_of_library(size_t v) { return str(v / 10000, '.', v / 100 % 100, '.', v % 100); }

const OpenedLibrary& opened() {
    static const OpenedLibrary library = [] {
        OpenedLibrary o;
        Library& f = o.functions;
        LibraryOpener opener("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"});
        opener.find(f.version, "cublasLtGetVersion");
        opener.find(f.create, "cublasLtCreate");
        opener.find(f.create_operation, "cublasLtMatmulDescCreate");
        opener.find(f.set_operation, "cublasLtMatmulDescSetAttribute");
        opener.find(f.destroy_operation, "cublasLtMatmulDescDestroy");
        opener.find(f.create_layout, "cublasLtMatrixLayoutCreate");
        opener.find(f.set_layout, "cublasLtMatrixLayoutSetAttribute");
        opener.find(f.destroy_layout, "cublasLtMatrixLayoutDestroy");
        opener.find(f.create_wishes, "cublasLtMatmulPreferenceCreate");
        opener.find(f.set_wish, "cublasLtMatmulPreferenceSetAttribute");
        opener.find(f.destroy_wishes, "cublasLtMatmulPreferenceDestroy");
        opener.find(f.propose, "cublasLtMatmulAlgoGetHeuristic");
        opener.find(f.multiply, "cublasLtMatmul");
        if (opener.is_there()) {
            const size_t v = f.version();
            opener.set_version(static_cast<int>(v), kOldestLibrary, version_of_library(v), "11.4.1 or newer");
        }
        o.state = opener.state();
        return o;
    }();
    return library;
}

// The layout of an operand in the library's terms: columns of adjacent elements, `step` elements apart, or transposed.
struct Lying {
    int32_t turn = number::kAsItLies;
    int64_t step = 1;
};

// For a matrix `down` by `across` with these steps. Nothing where neither axis has adjacent elements.
std::optional<Lying> lying_of(int64_t down, int64_t across, int64_t step_down, int64_t step_across) {
    if ((step_down == 1 || down == 1) && (step_across >= down || across == 1))
        return Lying{number::kAsItLies, across == 1 ? down : step_across};
    if ((step_across == 1 || across == 1) && (step_down >= across || down == 1))
        return Lying{number::kTurned, down == 1 ? across : step_down};
    return {};
}

// The alignment of an address, up to the one that the library makes use of.
uint32_t alignment_of(Address address) {
    constexpr uint32_t kMost = 256;
    return address % kMost == 0 ? kMost : static_cast<uint32_t>(address & (~address + 1));
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

// A product in the library's terms. Its matrices have adjacent elements in columns: so it computes the transposed
// product, columns by rows, with the operands exchanged.
struct Plan {
    LibraryHandle* handle = nullptr;
    OperationHandle* operation = nullptr;
    LayoutHandle *a = nullptr, *b = nullptr, *d = nullptr;
    Algorithm algorithm{};
    size_t workspace = 0;
    bool in_double = false, is_possible = false;

    ~Plan() {
        const Library& library = opened().functions;
        if (operation) library.destroy_operation(operation);
        for (LayoutHandle* layout : {a, b, d})
            if (layout) library.destroy_layout(layout);
    }
    Plan() = default;
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
};

class Planner {
  public:
    Planner(const MatrixProduct& product, const Lying& a, const Lying& b)
        : library_(opened().functions), product_(product), a_(a), b_(b) {}

    std::shared_ptr<Plan> run(LibraryHandle* handle) {
        auto plan = std::make_shared<Plan>();
        plan->handle = handle;
        plan->in_double = product_.dtype == DType::f64;
        plan->is_possible = describe(*plan) && choose(*plan);
        return plan;
    }

  private:
    template <class T>
    static bool ok(Status (*set)(T*, int, const void*, size_t), T* of, int attribute, auto value) {
        return set(of, attribute, &value, sizeof value) == 0;
    }

    bool describe(Plan& plan) {
        const MatrixProduct& p = product_;
        const int dtype = number_of(p.dtype);
        const bool rounds = p.dtype == DType::f32 && rounds_products();
        const int sums = plan.in_double ? number::kDoubleSums
                         : rounds       ? number::kFloatSumsOfRounded
                                        : number::kFloatSums;
        if (library_.create_operation(&plan.operation, sums, plan.in_double ? number::kDouble : number::kFloat) != 0)
            return false;
        const auto set = library_.set_operation;
        if (!ok(set, plan.operation, number::kTurnA, b_.turn) || !ok(set, plan.operation, number::kTurnB, a_.turn))
            return false;
        if (p.bias && (!ok(set, plan.operation, number::kEpilogue, number::kAddBias) ||
                       !ok(set, plan.operation, number::kBias, p.bias)))
            return false;
        return layout(plan.a, dtype, p.columns, p.depth, b_, p.b.batch) &&
               layout(plan.b, dtype, p.depth, p.rows, a_, p.a.batch) &&
               layout(plan.d, dtype, p.columns, p.rows, {number::kAsItLies, p.columns}, p.rows * p.columns);
    }

    bool layout(LayoutHandle*& made, int dtype, int64_t down, int64_t across, const Lying& lying, int64_t batch_step) {
        if (lying.turn == number::kTurned) std::swap(down, across);
        if (library_.create_layout(&made, dtype, static_cast<uint64_t>(down), static_cast<uint64_t>(across),
                                   lying.step) != 0)
            return false;
        if (product_.batches == 1) return true;
        return ok(library_.set_layout, made, number::kBatches, static_cast<int32_t>(product_.batches)) &&
               ok(library_.set_layout, made, number::kBatchStep, batch_step);
    }

    bool choose(Plan& plan) {
        WishesHandle* wishes = nullptr;
        if (library_.create_wishes(&wishes) != 0) return false;
        const auto set = library_.set_wish;
        const uint32_t out = alignment_of(product_.out);
        bool done = ok(set, wishes, number::kMostWorkspace, kWorkspace) &&
                    ok(set, wishes, number::kAlignA, alignment_of(product_.b.address)) &&
                    ok(set, wishes, number::kAlignB, alignment_of(product_.a.address)) &&
                    ok(set, wishes, number::kAlignC, out) && ok(set, wishes, number::kAlignD, out);
        Proposal proposal{};
        int count = 0;
        done = done && library_.propose(plan.handle, plan.operation, plan.a, plan.b, plan.d, plan.d, wishes, 1,
                                        &proposal, &count) == 0;
        library_.destroy_wishes(wishes);
        if (!done || count == 0 || proposal.state != 0) return false;
        plan.algorithm = proposal.algorithm;
        plan.workspace = proposal.workspace;
        return true;
    }

    const Library& library_;
    const MatrixProduct& product_;
    const Lying &a_, &b_;
};

// Everything that a plan depends on.
std::string key_of(const MatrixProduct& p) {
    const bool rounds = p.dtype == DType::f32 && rounds_products();
    std::string key = str(name_of(p.dtype), rounds ? " rounded " : " ", p.batches, ' ', p.rows, ' ', p.columns, ' ',
                          p.depth, ' ', p.bias != 0, ' ', alignment_of(p.out));
    for (const MatrixProduct::Operand* o : {&p.a, &p.b})
        key += str(' ', o->row, ' ', o->column, ' ', o->batch, ' ', alignment_of(o->address));
    return key;
}

std::shared_ptr<Plan> plan_for(const MatrixProduct& p, uint64_t context) {
    static auto* plans = new Plans<LibraryHandle, Plan>;
    const auto a = lying_of(p.depth, p.rows, p.a.column, p.a.row);
    const auto b = lying_of(p.columns, p.depth, p.b.column, p.b.row);
    if (!a || !b) return nullptr;
    return plans->find(context, key_of(p), opened().functions.create,
                       [&](LibraryHandle* handle) { return Planner(p, *a, *b).run(handle); });
}

Result multiply(const Plan& plan, const MatrixProduct& p, Address workspace, StreamHandle* stream) {
    const Library& library = opened().functions;
    // One plan serves all biases.
    if (p.bias) library.set_operation(plan.operation, number::kBias, &p.bias, sizeof p.bias);
    const Factors factors(plan.in_double);
    void* const out = pointer_to(p.out);
    const Status status = library.multiply(plan.handle, plan.operation, factors.one(), pointer_to(p.b.address), plan.a,
                                           pointer_to(p.a.address), plan.b, factors.zero(), out, plan.d, out, plan.d,
                                           &plan.algorithm, pointer_to(workspace), plan.workspace, stream);
    return status == 0 ? kSuccess : kLibraryFailed;
}

}  // namespace

const LibraryState& product_library() { return opened().state; }

bool run_library_product(Launcher& launcher, const MatrixProduct& p) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (p.depth == 0 || std::max({p.rows, p.columns, p.depth, p.batches}) > kMost) return false;
    if (!product_library().missing.empty()) return false;
    std::shared_ptr<Plan> plan;
    launcher.queue().in_context([&](uint64_t context) { plan = plan_for(p, context); });
    if (!plan) return false;
    const Address workspace = plan->workspace ? launcher.take(static_cast<int64_t>(plan->workspace)) : 0;
    launcher.call({p.a.address, p.b.address, p.out, p.bias ? p.bias : p.out, workspace ? workspace : p.out,
                   reinterpret_cast<uint64_t>(plan.get())},
                  5, [plan, p, workspace](StreamHandle* stream) { return multiply(*plan, p, workspace, stream); });
    return true;
}

}  // namespace lunaria::gpu
