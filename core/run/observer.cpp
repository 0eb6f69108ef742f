#include "core/run/observer.h"

#include <utility>

namespace lunaria {

thread_local constinit Observer* Observer::current_ = nullptr;
thread_local constinit Observer::Call* Observer::innermost_ = nullptr;

void Observer::open() {
    if (std::exchange(is_open_, true)) return;
    outer_ = std::exchange(current_, this);
}

void Observer::close() {
    if (!std::exchange(is_open_, false)) return;
    Observer** link = &current_;
    while (*link && *link != this) link = &(*link)->outer_;
    if (*link) *link = outer_;
    for (Call* call = innermost_; call; call = call->outer_)
        if (call->last_ == this) call->last_ = outer_;
}

}  // namespace lunaria
