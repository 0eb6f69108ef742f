// The questions of a recorded call to the outside: fields, metatables, variables, keys and lengths of tables. Each is
// asked once, until something may have changed the answer, and is a guard of the record.
#pragma once

#include <string>
#include <unordered_map>

#include "jit/vm/host.h"

namespace lunaria::trace {

class Recording;

// A text that identifies a question to an object: a field, its metatable, ...
std::string question(char kind, const void* object, const Value& key);

class Questions {
  public:
    // Answers by question.
    using Answers = std::unordered_map<std::string, Value>;

    explicit Questions(Recording& recording) : r_(recording) {}

    Value read(const Value& table, const Value& key);
    Value metatable(const Value& value);
    Value meta(const Value& object, const char* event);
    void refuse_metamethod(const Value& v, const char* event);
    Value read_upvalue(const Value& function, int position, const void* identity, bool varies = false);
    void write_upvalue(const Value& function, int position, const void* identity, const Value& v);
    Value next_key(const Value& table, const Value& key);
    Value length_of(const Value& table);
    // Whether a write into the table involves only the table, whatever the key.
    bool takes_any_key(const Value& table);
    void read_all(const Value& table, int depth = 0);
    vm::Field follow(const Value& object, const Value& key, const char* event);
    void check_key(const Value& key);

    // The answers since the last effect that may have changed anything.
    Answers& answers() { return found_; }
    // Such an effect has happened: only the decisions about numbers still hold.
    void forget_all();
    // A field has this value now; `any_key`: it may have been any field of the table.
    void wrote(const Value& table, const Value& key, const Value& value, bool any_key);

  private:
    Recording& r_;
    Answers found_;
};

}  // namespace lunaria::trace
