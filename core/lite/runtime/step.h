// A step of a light model that is ready to run: its operands with the sizes of the present inputs, and the work itself.
//
// A kind of step has a function that looks at operands and attributes once, when the model is built or resized, and
// makes a Work of them; a fault is a text that ends the sentence "step 3 (gather): ...". Works do not allocate.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "core/lite/format/model.h"
#include "core/lite/kernels/common.h"
#include "core/tensor/dtype.h"

namespace lunaria::lite {

// A view for the present sizes.
struct Operand {
    uint32_t value = kNone;  // kNone: absent
    DType dtype = DType::f32;
    Form form = Form::plain;
    std::vector<int64_t> shape, strides;  // in elements
    int64_t offset = 0;                   // in bytes
    const std::byte* constant = nullptr;  // its first element, where the value is part of the file

    bool is_there() const { return value != kNone; }
    bool is_dense() const;
    int64_t size() const;
    int rank() const { return static_cast<int>(shape.size()); }
    int64_t width() const { return static_cast<int64_t>(size_of(dtype)); }
};

struct StepForm {
    const Step& step;
    const Model& model;
    std::span<const int64_t> dimensions;
    kernels::Isa isa;
    int workers = 1;
    std::vector<Operand> in{}, out{};

    bool has(std::string_view name) const { return find(step.attributes, name) != nullptr; }
    // Of the first element; `otherwise` where there is no such attribute.
    int64_t integer(std::string_view name, int64_t otherwise = 0) const;
    double number(std::string_view name, double otherwise = 0) const;
    std::string_view text(std::string_view name) const;
    std::vector<int64_t> integers(std::string_view name) const;
    // An axis, counted from the end if it is negative; -1 where there is none.
    int axis(std::string_view name, int rank, int64_t otherwise) const;
    const Operand& operand(size_t i) const;  // an absent one behind the last
};

// Addresses of the operands' first elements; of absent ones null.
struct Call {
    char* const* in = nullptr;
    char* const* out = nullptr;
    char* scratch = nullptr;  // aligned to 64 bytes
    const kernels::Workers& workers;
    // What went wrong on the way, such as an index out of range: a text that outlives the run.
    std::atomic<const char*>& fault;

    void fail(const char* text) const { fault.store(text, std::memory_order_relaxed); }
};

class Work {
  public:
    virtual ~Work() = default;
    virtual void run(const Call& call) const = 0;
    int64_t scratch = 0;  // bytes
};

template <class F>
class WorkOf final : public Work {
  public:
    explicit WorkOf(F f) : f_(std::move(f)) {}
    void run(const Call& call) const override { f_(call); }

  private:
    F f_;
};
template <class F>
std::unique_ptr<Work> work(F f, int64_t scratch = 0) {
    auto made = std::make_unique<WorkOf<F>>(std::move(f));
    made->scratch = scratch;
    return made;
}

using Prepare = std::unique_ptr<Work> (*)(const StepForm& form, std::string& fault);
struct StepKind {
    std::string_view name;
    Prepare prepare;
};
// Null where the runtime has no such step.
Prepare find_kind(std::string_view name);

// The kinds of each source.
std::span<const StepKind> product_kinds();
std::span<const StepKind> pool_kinds();
std::span<const StepKind> arrangement_kinds();
std::span<const StepKind> index_kinds();
std::span<const StepKind> order_kinds();
std::span<const StepKind> reduction_kinds();
std::span<const StepKind> row_kinds();
std::span<const StepKind> integer_kinds();
std::span<const StepKind> training_kinds();
// Of the formulas of elementwise operators.
std::unique_ptr<Work> prepare_elements(const StepForm& form, std::string& fault);

// Calls f(begin, end, worker) for parts of 0 .. count, each of at least `grain`.
template <class F>
void share(const kernels::Workers& workers, int64_t count, int64_t grain, F&& f) {
    const int64_t parts = std::min<int64_t>(workers.workers * 2, grain > 0 ? count / grain : count);
    if (!workers.run || parts <= 1) {
        if (count > 0) f(int64_t{0}, count, 0);
        return;
    }
    struct Closure {
        F& f;
        int64_t count, parts;
    } closure{f, count, parts};
    workers.run(
        workers.pool, parts,
        [](void* c, int64_t part, int worker) {
            const Closure& closure = *static_cast<Closure*>(c);
            closure.f(closure.count * part / closure.parts, closure.count * (part + 1) / closure.parts, worker);
        },
        &closure);
}

}  // namespace lunaria::lite
