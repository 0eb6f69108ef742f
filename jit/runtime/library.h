// The functions that a saved program may name (jit/saving/library_functions.h), for a host without an interpreter:
// those of Lua's library in C++ (natives.h), transforms such as ms.grad by their own texts in interpreter/lua, which
// are parts of the program and lowered when one of them is named.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/ir/graph.h"
#include "jit/vm/machine.h"
#include "jit/vm/plain_host.h"

namespace lunaria::runtime {

class Library {
  public:
    explicit Library(vm::PlainHost& host);
    // Nil: no program may refer to it, or it is not there without the full program.
    Value function_named(const std::string& name);
    // Loads the texts that a field of that name needs where the object is a tensor. Programs name their fields before
    // they run: what is loaded within a recorded call is not seen by the record.
    void prepare_field(std::string_view name);
    // A name that function_named() did not find.
    const std::string& missing() const { return missing_; }

  private:
    void add(const char* library, const char* name, vm::PlainHost::Function::Body body);
    void add_module_functions();
    void load_texts();
    Value run_text(std::string_view name);
    Value method_named(std::string_view name);
    Value in_library(std::string_view library, std::string_view name) const;

    vm::PlainHost& host_;
    vm::Machine machine_;
    std::map<std::string, Value, std::less<>> libraries_;  // tables of functions, by the names of the rows
    Value globals_, modules_, in_place_maker_;
    std::unordered_set<const void*> in_texts_;  // functions that the texts do, all or in part
    bool has_texts_ = false;
    std::string missing_;
};

}  // namespace lunaria::runtime
