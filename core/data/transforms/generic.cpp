// Transforms made of others.
#include "core/data/transforms/step.h"

namespace lunaria::transforms {

namespace {

void run_compose(Row& row, const Arguments& a, RowDraws& draws) {
    for (const TransformPtr& part : a.parts) part->apply(row, draws);
}

size_t results_of_compose(const Arguments& a, size_t inputs) {
    for (const TransformPtr& part : a.parts) inputs = part->results(inputs);
    return inputs;
}

// A transform under chance must give as many values as it gets, so that a row has the same columns whatever was drawn.
size_t unchanged(const Arguments& a, size_t inputs) {
    for (const TransformPtr& part : a.parts) {
        const size_t count = part->results(inputs);
        if (count != inputs)
            throw argument_error(a.where, str(part->name(), " makes ", count, " values of ", inputs,
                                              ": what is applied by chance must keep their number"));
    }
    return inputs;
}

void run_random_apply(Row& row, const Arguments& a, RowDraws& draws) {
    if (draws.chance(a.number(0))) run_compose(row, a, draws);
}

void run_random_choice(Row& row, const Arguments& a, RowDraws& draws) {
    a.parts[static_cast<size_t>(draws.below(static_cast<int64_t>(a.parts.size())))]->apply(row, draws);
}

std::vector<size_t> shuffled(size_t count, RowDraws& draws) {
    std::vector<size_t> order(count);
    for (size_t i = 0; i < count; ++i) order[i] = i;
    for (size_t i = count; i > 1; --i)
        std::swap(order[i - 1], order[static_cast<size_t>(draws.below(static_cast<int64_t>(i)))]);
    return order;
}

void run_random_order(Row& row, const Arguments& a, RowDraws& draws) {
    for (size_t at : shuffled(a.parts.size(), draws)) a.parts[at]->apply(row, draws);
}

// Applies so many of the parts, no part twice, each with its probability.
void run_random_some(Row& row, const Arguments& a, RowDraws& draws) {
    std::vector<size_t> order = shuffled(a.parts.size(), draws);
    order.resize(std::min(order.size(), static_cast<size_t>(a.integer(0))));
    for (size_t at : order)
        if (draws.chance(a.number(1))) a.parts[at]->apply(row, draws);
}

// Applies one of the parts, so many times.
void run_random_several(Row& row, const Arguments& a, RowDraws& draws) {
    for (int64_t i = 0; i < a.integer(0); ++i) run_random_choice(row, a, draws);
}

}  // namespace

std::span<const Entry> generic_entries() {
    static const Entry entries[] = {
        {"compose", 0, run_compose, 0, results_of_compose},    {"random_apply", 1, run_random_apply, 0, unchanged},
        {"random_choice", 0, run_random_choice, 0, unchanged}, {"random_order", 0, run_random_order, 0, unchanged},
        {"random_some", 2, run_random_some, 0, unchanged},     {"random_several", 1, run_random_several, 0, unchanged},
    };
    return entries;
}

}  // namespace lunaria::transforms
