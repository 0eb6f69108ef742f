#include "core/base/visit.h"

#include <omp.h>

#include <utility>

namespace lunaria {

namespace {

// Only the thread that called set_visitor has a visitor.
std::function<void()>& visitor() {
    thread_local std::function<void()> ours;
    return ours;
}

}  // namespace

void set_visitor(std::function<void()> f) { visitor() = std::move(f); }

void visit() {
    if (!visitor() || omp_in_parallel() || !visit_flag.exchange(false)) return;
    visitor()();
}

}  // namespace lunaria
