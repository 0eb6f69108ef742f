// What every operator took, for whoever wants to know: while a profile is open, each operator that runs and each step
// of a compiled graph is noted in it, with what it should cost by its shapes.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/operator/op.h"

namespace lunaria {

// Arithmetic operations of a call: multiplications and additions of products, one for each element of anything else.
double flops_of(const Op& op, std::span<const Value> args, std::span<const TensorType> results);
// Of operands and results, once each.
int64_t bytes_of(std::span<const Value> args, std::span<const TensorType> results);

class Profile {
  public:
    struct Event {
        std::string operators;          // one, or those that a generated kernel is made of
        std::string place;              // "file:line" of the program; may be empty
        double start = 0, seconds = 0;  // since the profile was opened
        double flops = 0;
        int64_t bytes = 0;
        int64_t live = 0;  // bytes of all tensors afterwards
        bool generated = false, compiled = false;
    };

    // `place` tells the line that runs. One profile may be open at a time in a process; throws state_error.
    explicit Profile(std::function<std::string()> place);
    ~Profile();
    Profile(const Profile&) = delete;

    // The open one of this thread, or null.
    static Profile* current() { return current_; }

    std::string place() const { return place_(); }
    double now() const;
    void add(Event event);
    std::vector<Event> events;

    // An operator that runs: notes it unless others were noted for it meanwhile, which it is made of.
    class Watch {
      public:
        Watch(Profile* profile, const Op& op, std::span<const Value> args);
        void done(const Value& result);

      private:
        Profile* profile_;
        const Op& op_;
        std::span<const Value> args_;
        std::string place_;
        size_t before_ = 0;
        double start_ = 0;
    };

  private:
    static thread_local constinit Profile* current_;
    std::function<std::string()> place_;
    double opened_;
};

}  // namespace lunaria
