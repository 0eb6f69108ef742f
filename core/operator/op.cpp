#include "core/operator/op.h"

#include <algorithm>

#include "core/base/spelling.h"

namespace lunaria {

Op& Op::doc(const char* sentence) {
    doc_text = sentence;
    return *this;
}
Op& Op::example(const char* lua, const char* result) {
    examples.push_back({lua, result});
    return *this;
}
Op& Op::infer(InferFn f) {
    infer_fn = f;
    return *this;
}
Op& Op::grad(GradFn f) {
    grad_fn = f;
    return *this;
}
Op& Op::no_grad(const char* reason) {
    no_grad_reason = reason;
    return *this;
}
Op& Op::refuse_grad(const char* reason) {
    refuses_grad = true;
    return no_grad(reason);
}
Op& Op::expand(ExpandFn f) {
    expand_fn = f;
    return *this;
}
Op& Op::view(ViewFn f) {
    view_fn = f;
    return moves();
}
Op& Op::host(HostFn f) {
    host_fn = f;
    return *this;
}
Op& Op::batched(BatchFn f) {
    batch_fn = f;
    return *this;
}
Op& Op::effect(Effect e) {
    effect_ = e;
    return *this;
}
Op& Op::raises(Raises when) {
    raises_when = when;
    return *this;
}
Op& Op::flops(FlopsFn f) {
    flops_fn = f;
    return *this;
}
Op& Op::moves() {
    only_moves = true;
    return *this;
}
Op& Op::exact() {
    is_exact = true;
    return *this;
}
Op& Op::itemwise() {
    is_itemwise = true;
    return *this;
}
Op& Op::branches() {
    is_branch = true;
    return *this;
}
Op& Op::closes() {
    is_closure = true;
    return *this;
}
Op& Op::type_only() {
    reads_type_only = true;
    return *this;
}
Op& Op::gives_operand() {
    returns_operand = true;
    return *this;
}
Op& Op::keeps_weight() {
    prepares_weight = true;
    return *this;
}
Op& Op::specialises(int i) {
    special_number = static_cast<int8_t>(i);
    return *this;
}
Op& Op::fusion(Fusion f) {
    fuses_as = f;
    return *this;
}
Op& Op::reduction(AxesFn axes, RowFn f, Fusion kind) {
    axes_fn = axes;
    row_fn = f;
    return fusion(kind);
}
Op& Op::row_pass(AxesFn axes, RowFn f) {
    axes_fn = axes;
    row_fn = f;
    return fusion(Fusion::row_pass);
}
Op& Op::cost(int additions) {
    element_cost = static_cast<int16_t>(additions);
    return *this;
}
Op& Op::open(ExpandFn f) {
    open_fn = f;
    return *this;
}
Op& Op::strided() {
    takes_strides = true;
    return *this;
}
Op& Op::half_native() {
    takes_halves = true;
    return *this;
}
Op& Op::wide() {
    has_wide_rules = true;
    return *this;
}
Op& Op::elementwise() {
    is_elementwise = takes_strides = takes_halves = true;
    fuses_as = Fusion::element;
    if (!infer_fn) infer_fn = broadcast_all;
    return *this;
}
Op& Op::alias(const char* other_name) {
    aliases.push_back(other_name);
    registry_->add_alias(other_name, *this);
    return *this;
}
Op& Op::method(bool yes) {
    is_method = yes;
    return *this;
}
Op& Op::cut(const char* factors) {
    cut_text = factors;
    return *this;
}
Op& Op::linear(std::initializer_list<int> operands) {
    for (int i : operands) linear_operands |= uint32_t{1} << i;
    return *this;
}
Op& Op::source(const char* where) {
    source_text = where;
    return *this;
}
Op& Op::sample(const char* text) {
    samples.push_back(text);
    return *this;
}

const Kernel* Op::kernels(const Device& device, size_t& count) const {
    const KernelList* list = kernels_in_use_.load(std::memory_order_acquire);
    if (!list || list->device != &device) [[unlikely]]
        list = &find_kernels(device);
    count = list->kernels.size();
    return list->kernels.data();
}

const Op::KernelList& Op::find_kernels(const Device& device) const {
    std::lock_guard lock(kernel_mutex_);
    auto list = std::ranges::find(kernel_lists_, &device, &KernelList::device);
    if (list == kernel_lists_.end()) {
        const auto found = kernels_on(device);
        kernel_lists_.push_front({&device, {found.begin(), found.end()}});
        list = kernel_lists_.begin();
    }
    kernels_in_use_.store(&*list, std::memory_order_release);
    return *list;
}

Op& Registry::add(SignatureText signature) {
    auto op = std::make_unique<Op>(signature, *this);
    op->id = static_cast<int>(ops_.size());
    for (const Param& p : op->signature.params) op->promotes |= p.type == ArgType::same || p.type == ArgType::real;
    op->is_method = !op->signature.params.empty() && is_tensor_type(op->signature.params[0].type) &&
                    op->signature.params[0].type != ArgType::tensors;
    Op& result = *op;
    if (!by_name_.emplace(op->name(), &result).second)
        throw state_error("registry", str("operator ", op->name(), " is registered twice"));
    ops_.push_back(std::move(op));
    return result;
}

void Registry::add_alias(const char* other, Op& op) {
    if (!by_name_.emplace(other, &op).second)
        throw state_error("registry", str("operator ", other, " is registered twice"));
}

const Op* Registry::find(std::string_view name) const {
    auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
}

const Op& Registry::get(std::string_view name) const {
    if (const Op* op = find(name)) return *op;
    std::string hint;
    for (auto other : similar(name)) hint += (hint.empty() ? "did you mean " : ", ") + std::string(other);
    throw argument_error("ops", str("there is no operator '", name, "'")).hint(hint);
}

std::vector<std::string_view> Registry::similar(std::string_view name) const {
    if (name.size() > 64) return {};
    std::vector<std::pair<size_t, std::string_view>> near;
    for (auto& [other, op] : by_name_)
        if (size_t d = edit_distance(name, other); is_near(name, d)) near.emplace_back(d, other);
    std::sort(near.begin(), near.end());
    std::vector<std::string_view> names;
    for (size_t i = 0; i < near.size() && i < 3; ++i) names.push_back(near[i].second);
    return names;
}

}  // namespace lunaria
