// Calls of the library's functions while a call is recorded. Known facts about a function turn its call into guards,
// into symbolic values, or into nothing at all. See Native.
#pragma once

#include "jit/vm/native.h"
#include "jit/vm/values.h"

namespace lunaria::trace {

class Recording;

class LibraryCalls {
  public:
    explicit LibraryCalls(Recording& recording) : r_(recording) {}

    // False: the function is called as any other.
    bool run(Native which, const Value& f, vm::Values& args, vm::Values& results);

  private:
    // The call as the library does it.
    vm::Values really(const Value& f, const vm::Values& args);
    bool type_of(const Value& f, vm::Values& args, vm::Values& results);
    bool select(vm::Values& args, vm::Values& results);
    bool get_metatable(const Value& f, vm::Values& args, vm::Values& results);
    bool set_metatable(const Value& f, vm::Values& args, vm::Values& results);
    bool goes_through(Native which, const Value& f, vm::Values& args, vm::Values& results);
    bool raw_equal(const Value& f, vm::Values& args, vm::Values& results);
    bool tells(Native which, const Value& f, vm::Values& args, vm::Values& results);
    bool item(vm::Values& args, vm::Values& results);
    bool pure(const Value& f, vm::Values& args, vm::Values& results);

    Recording& r_;
};

}  // namespace lunaria::trace
