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
    // The value that a userdata is; null: it is something else.
    const Value* at(lua_State* L, int index);
    // Whether so many were made that circles should be searched for.
    bool many() const;
    // Frees objects of the machine and of Lua that only refer to each other: a full collection of Lua's garbage. False:
    // there are none of the machine's objects in Lua, and nothing was collected.
    bool collect_cycles(lua_State* L);
    // What the registry let go of for a collection it has again.
    void end_collection() {
        if (weakened_) strengthen();
    }

  private:
    void for_each(const std::function<void(Value&, int)>& f);
    void mirror();
    void strengthen();

    lua_State* main_;
    int boxes_;  // all of them, as weak keys
    size_t new_boxes_ = 0, settled_boxes_ = 0;
    bool weakened_ = false;  // a collection of circles runs
};

}  // namespace lunaria
