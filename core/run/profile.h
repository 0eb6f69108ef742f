// Times of operators: while a profile is open, each operator that runs and each step of a compiled graph is noted in
// it, with its expected cost by its shapes.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/run/observer.h"

namespace lunaria {

// Arithmetic operations of a call: multiplications and additions for products, one for each element for other
// operators.
double flops_of(const Op& op, std::span<const Value> args, std::span<const TensorType> results);
// Bytes of operands and results, each tensor once.
int64_t bytes_of(std::span<const Value> args, std::span<const TensorType> results);

class Profile final : public Observer {
  public:
    struct Event {
        std::string operators;          // one, or those in a generated kernel
        std::string place;              // "file:line" of the program; may be empty
        double start = 0, seconds = 0;  // since the profile was opened
        double flops = 0;
        int64_t bytes = 0;
        int64_t live = 0;  // bytes of all tensors afterwards
        bool generated = false, compiled = false;
    };

    // `place` returns the line that runs. Only one profile may be open in a thread; throws state_error. It closes by
    // itself when it has `most` events.
    explicit Profile(std::function<std::string()> place, size_t most = SIZE_MAX);
    ~Profile();

    // The open profile of this thread, or null.
    static Profile* current() { return current_; }

    std::string place() const { return place_(); }
    double now() const;
    void add(Event event);
    std::vector<Event> events;

  private:
    static thread_local constinit Profile* current_;
    // An operator is noted unless operators that it is made of were noted meanwhile.
    void begin(const Op& op, std::span<const Value> args) override;
    void end(const Op& op, std::span<const Value> args, const Value* result) override;
    struct Running {
        std::string place;
        size_t before;  // events
        double start;
    };
    std::vector<Running> running_;
    std::function<std::string()> place_;
    size_t most_;
    double opened_;
};

}  // namespace lunaria
