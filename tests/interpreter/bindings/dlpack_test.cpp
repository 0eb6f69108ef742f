// Capsules as other programs make them: both versions of the structure, read-only memory, elements that lie upon one
// another, and when the deleter is called.
#include <gtest/gtest.h>

#include <array>
#include <lua.hpp>

#include "backends/cpu/device.h"
#include "interpreter/loader/loader.h"
#include "interpreter/program/program_state.h"
#include "interpreter/values/values.h"

namespace lunaria {
namespace {

// As in dlpack.h, laid out here once more: what a test shares with the code would not show a wrong layout.
struct Plain {
    void* data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct Managed {
    Plain tensor;
    void* manager;
    void (*deleter)(Managed*);
};
struct Versioned {
    uint32_t major, minor;
    void* manager;
    void (*deleter)(Versioned*);
    uint64_t flags;
    Plain tensor;
};

struct Owner {
    std::array<float, 6> elements{1, 2, 3, 4, 5, 6};
    std::array<int64_t, 2> shape{2, 3}, strides{3, 1};
    int deleted = 0;

    Plain tensor() { return {elements.data(), 1, 0, 2, 2, 32, 1, shape.data(), strides.data(), 0}; }
};

class DLPack : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }
    lua_State* lua() { return state_.lua(); }

    // A capsule of what the pointer leads to, as the global `capsule`.
    template <class T>
    void give(const char* type, T* managed) {
        *static_cast<T**>(lua_newuserdatauv(lua(), sizeof(T*), 0)) = managed;
        luaL_newmetatable(lua(), type);
        lua_setmetatable(lua(), -2);
        lua_setglobal(lua(), "capsule");
    }
    // What the program gives as text, or its error.
    std::string run(const std::string& program) {
        lua_State* L = lua();
        lua_settop(L, 0);
        state_.loader().compile(L, "local ms = require 'lunaria' local ops = ms.ops " + program, "@test.lua");
        lua_pcall(L, 0, 1, 0);
        return luaL_tolstring(L, -1, nullptr);
    }
    ProgramState state_;
    Owner owner_;
    Managed managed_{owner_.tensor(), &owner_, [](Managed* m) { ++static_cast<Owner*>(m->manager)->deleted; }};
    Versioned versioned_{
        1, 1, &owner_, [](Versioned* m) { ++static_cast<Owner*>(m->manager)->deleted; }, 0, owner_.tensor()};
};

TEST_F(DLPack, both_programs_write_into_the_memory_and_the_deleter_is_called_once) {
    give("dltensor", &managed_);
    EXPECT_EQ(run("v = ms.from_dlpack(capsule) v:add_(10) return v[1][2]:item()"), "16.0");
    EXPECT_EQ(owner_.elements[5], 16);
    owner_.elements[0] = 7;
    EXPECT_EQ(run("return v[0][0]:item()"), "7.0");
    EXPECT_EQ(run("v[{0, 1}] = 5 ops.assign_add(v, 1) return #v"), "2");
    EXPECT_EQ(owner_.elements[1], 6);
    EXPECT_NE(run("ms.from_dlpack(capsule)").find("has been taken already"), std::string::npos);
    EXPECT_EQ(owner_.deleted, 0);
    // A row is a copy and keeps nothing.
    EXPECT_EQ(run("row = v[0] v:release() return row[0]:item()"), "8.0");
    EXPECT_EQ(owner_.deleted, 1);
    run("capsule = nil collectgarbage()");
    EXPECT_EQ(owner_.deleted, 1);
}

TEST_F(DLPack, versions_and_read_only_memory) {
    give("dltensor_versioned", &versioned_);
    EXPECT_EQ(run("v = ms.from_dlpack(capsule) v:mul_(2) return v:sum():item()"), "42.0");
    EXPECT_EQ(owner_.elements[5], 12);
    run("v:release()");
    EXPECT_EQ(owner_.deleted, 1);
    versioned_.flags = 1;
    give("dltensor_versioned", &versioned_);
    // The first write makes a copy.
    EXPECT_EQ(run("v = ms.from_dlpack(capsule) local w = v v:mul_(2) return w:sum():item()"), "84.0");
    EXPECT_EQ(owner_.elements[5], 12);
    EXPECT_EQ(owner_.deleted, 2);
    versioned_.major = 2;
    give("dltensor_versioned", &versioned_);
    EXPECT_NE(run("ms.from_dlpack(capsule)").find("of version 2.1 of DLPack; versions 1.x and 0.8 are known"),
              std::string::npos);
    EXPECT_EQ(owner_.deleted, 2);
}

TEST_F(DLPack, elements_in_any_order) {
    owner_.shape = {3, 2};
    owner_.strides = {1, 3};
    managed_.tensor = owner_.tensor();
    give("dltensor", &managed_);
    EXPECT_EQ(run("v = ms.from_dlpack(capsule) v:add_(1) v[0] = 20 return v:sum():item()"), "60.0");
    EXPECT_EQ(owner_.elements, (std::array<float, 6>{20, 3, 4, 20, 6, 7}));
    // An optimizer's step wants them in a row.
    EXPECT_NE(run("ops.batch_norm_update(v[0], v[0], v[0], v[0], 0.5, 2) local u = ms.from_dlpack(v:to_dlpack())"
                  " return u:sum():item()")
                  .find("60.0"),
              std::string::npos);
    // Upon one another: a write to one would change others.
    owner_.strides = {0, 1};
    managed_.tensor = owner_.tensor();
    give("dltensor", &managed_);
    EXPECT_EQ(run("v = ms.from_dlpack(capsule) v[0] = 1 return tostring(v:tolist()[2][1])"), "20.0");
    EXPECT_EQ(owner_.elements[0], 20);
}

}  // namespace
}  // namespace lunaria
