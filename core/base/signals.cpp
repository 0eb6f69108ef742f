#include "core/base/signals.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "core/base/visit.h"

namespace lunaria {

namespace {

// The alternate stack of one thread. A stack that is already set, by a sanitizer for instance, is kept.
class SignalStack {
  public:
    SignalStack() {
        stack_t present{};
        if (sigaltstack(nullptr, &present) != 0 || !(present.ss_flags & SS_DISABLE)) return;
        // Room for the processor's registers and for the handlers.
        constexpr long kHandlers = 64 * 1024;
        const auto size = static_cast<size_t>(std::max<long>(sysconf(_SC_MINSIGSTKSZ), 0) + kHandlers);
        memory_ = std::make_unique_for_overwrite<char[]>(size);
        stack_t stack{};
        stack.ss_sp = memory_.get();
        stack.ss_size = size;
        if (sigaltstack(&stack, nullptr) != 0) memory_.reset();
    }
    ~SignalStack() {
        stack_t none{};
        none.ss_flags = SS_DISABLE;
        if (memory_) sigaltstack(&none, nullptr);
    }
    SignalStack(const SignalStack&) = delete;
    SignalStack& operator=(const SignalStack&) = delete;

  private:
    std::unique_ptr<char[]> memory_;
};

}  // namespace

static void need_stack() { thread_local const SignalStack stack; }

void handle_signal(int number, void (*handler)(int), int flags) {
    need_stack();
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
}

void leave_signals_to_others() noexcept {
    thread_local bool left = false;
    if (left) return;
    left = true;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGURG);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void take_signal(int number) noexcept {
    thread_local bool taken = false;
    if (taken) return;
    taken = true;
    need_stack();
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, number);
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

bool program_interrupt_requested() noexcept { return interrupt_requested(); }
bool program_visit_requested() noexcept { return visit_requested(); }

}  // namespace lunaria
