// Values of the machine as Lua's userdata, and the search for circles through Lua and the machine.
#pragma once

#include <functional>
#include <lua.hpp>

#include "core/tensor/value.h"

namespace lunaria {

class Boxes {
  public:
    explicit Boxes(lua_State* main);
    // The value as a userdata.
    void push(lua_State* L, const Value& v);
    // The value in a userdata; null: it is something else.
    const Value* at(lua_State* L, int index);
    // Whether so many boxes were made that circles should be searched for.
    bool many() const;
    // Frees objects of the machine and of Lua that only refer to each other: a full collection of Lua's garbage. False:
    // Lua refers to no objects of the machine, and nothing was collected. `release`: is told of each object that only
    // Lua refers to.
    using Release = std::function<void(const Object&)>;
    bool collect_cycles(lua_State* L, const Release& release);
    // The registry refers again to the objects that it released for a collection.
    void end_collection() {
        if (weakened_) strengthen();
    }

  private:
    void for_each(const std::function<void(Value&, int)>& f);
    void mirror(const Release& release);
    void strengthen();

    lua_State* main_;
    int boxes_;  // all of them, as weak keys
    size_t new_boxes_ = 0, settled_boxes_ = 0;
    bool weakened_ = false;  // a collection of circles is running
};

}  // namespace lunaria
