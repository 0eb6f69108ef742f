// Observers of the operators that run() runs in a thread: a profile, watchpoints. Those of a thread form a stack, and
// all of them see every operator.
#pragma once

#include <span>

#include "core/operator/op.h"

namespace lunaria {

class Observer {
  public:
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;

    // The latest observer of this thread; null: there is none.
    static Observer* current() { return current_; }
    // Whether an observer of this thread has to see every operator: then compiled graphs run operator by operator.
    static bool sees_all() {
        for (const Observer* o = current_; o; o = o->outer_)
            if (o->needs_all_) return true;
        return false;
    }

    // A call of an operator while it runs. Lua may collect an observer meanwhile, where memory is short: close() takes
    // it out of the calls.
    class Call {
      public:
        Call(const Op& op, std::span<const Value> args) : op_(op), args_(args), last_(current_), outer_(innermost_) {
            innermost_ = this;
            Observer* o = last_;
            try {
                for (; o; o = o->outer_) o->begin(op, args);
            } catch (...) {
                for (Observer* begun = last_; begun != o; begun = begun->outer_) begun->end(op, args, nullptr);
                innermost_ = outer_;
                throw;
            }
        }
        ~Call() {
            close(nullptr);
            innermost_ = outer_;
        }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        // Throws what an observer throws to end the program.
        void done(const Value& result) {
            close(&result);
            for (Observer* o = last_; o; o = o->outer_) o->after();
        }

      private:
        friend class Observer;
        void close(const Value* result) {
            if (is_closed_) return;
            is_closed_ = true;
            for (Observer* o = last_; o; o = o->outer_) o->end(op_, args_, result);
        }
        const Op& op_;
        std::span<const Value> args_;
        Observer* last_;
        Call* const outer_;
        bool is_closed_ = false;
    };

  protected:
    explicit Observer(bool needs_all) : needs_all_(needs_all) {}
    ~Observer() { close(); }
    // Observes this thread from open() to close().
    void open();
    void close();

  private:
    // Calls of begin and end nest. `result` is null where the operator failed. `begin` may throw to end the
    // program; its own call has not begun then. `end` does not throw.
    virtual void begin(const Op& op, std::span<const Value> args) = 0;
    virtual void end(const Op& op, std::span<const Value> args, const Value* result) = 0;
    // Called when the operator has ended for all observers; may throw.
    virtual void after() {}

    static thread_local constinit Observer* current_;
    static thread_local constinit Call* innermost_;
    const bool needs_all_;
    bool is_open_ = false;
    Observer* outer_ = nullptr;
};

}  // namespace lunaria
