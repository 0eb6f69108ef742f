// A host that watches what a function does: everything is Lua's business as before, but the machine gets no operator to
// run by itself, so that all of them come by here, and runs Lua functions itself, so that it sees what they call.
#pragma once

#include "interpreter/host/lua_host.h"

namespace lunaria {

class WatchingHost : public vm::Host {
  public:
    explicit WatchingHost(LuaHost& host) : WatchingHost(host, host) {}
    // `inner`: who is asked, which may watch, too.
    WatchingHost(LuaHost& host, vm::Host& inner) : host_(host), inner_(inner) {}

    vm::Callee resolve(const Value& f) override;
    // None: arithmetic on tensors comes to arithmetic().
    const Op* tensor_operator(std::string_view) override { return nullptr; }
    vm::Values call(const Value& f, std::span<const Value> args) override { return inner_.call(f, args); }
    Value index(const Value& object, const Value& key) override { return inner_.index(object, key); }
    void set_index(const Value& object, const Value& key, const Value& value) override {
        inner_.set_index(object, key, value);
    }
    Value metamethod(const Value& a, const Value& b, std::string_view event) override {
        return inner_.metamethod(a, b, event);
    }
    Value arithmetic(std::string_view primitive, const Value& a, const Value& b) override {
        return inner_.arithmetic(primitive, a, b);
    }
    bool compare(std::string_view primitive, const Value& a, const Value& b) override {
        return inner_.compare(primitive, a, b);
    }
    vm::Field find_field(const Value& o, const Value& k) override { return inner_.find_field(o, k); }
    vm::Field find_new_field(const Value& o, const Value& k) override { return inner_.find_new_field(o, k); }
    Value concat(const Value& a, const Value& b) override { return inner_.concat(a, b); }
    Value length(const Value& a) override { return inner_.length(a); }
    Value new_table(size_t array, size_t fields) override { return inner_.new_table(array, fields); }
    Value raw_get(const Value& t, const Value& k) override { return inner_.raw_get(t, k); }
    void raw_set(const Value& t, const Value& k, const Value& v) override { inner_.raw_set(t, k, v); }
    bool is_table(const Value& v) override { return inner_.is_table(v); }
    bool is_function(const Value& v) override { return inner_.is_function(v); }
    Value resumed_by(const Value& f, std::span<const Value> args) override { return inner_.resumed_by(f, args); }
    bool reaches(const Value& coroutine, const vm::Context& context,
                 const std::function<bool(const Value&)>& follows) override {
        return inner_.reaches(coroutine, context, follows);
    }
    std::string describe(const Value& v) override { return inner_.describe(v); }
    std::string why_opaque(const Value& f) override { return inner_.why_opaque(f); }
    Bound bind(const Op& op, std::span<const Value> args) override { return inner_.bind(op, args); }
    Part part_of(const Value& t, const Value& k) override { return inner_.part_of(t, k); }
    void for_each_table(const Value& t, const std::function<void(const Value&)>& f) override {
        inner_.for_each_table(t, f);
    }
    bool is_part(const Value& text) override { return inner_.is_part(text); }
    Part put_part(const Value& tensor, const Value& key, const Value& value) override {
        return inner_.put_part(tensor, key, value);
    }
    bool is_harmless(const Value& f) override { return inner_.is_harmless(f); }
    bool gives_keys(const Value& f) override { return inner_.gives_keys(f); }
    Value stand_in(const Value& f) override { return inner_.stand_in(f); }
    bool holds_floats(const Value& table) override { return inner_.holds_floats(table); }
    Protected call_protected(const std::function<void()>& body) override { return inner_.call_protected(body); }
    [[noreturn]] void raise(const Value& error) override { host_.raise(error); }
    void poll() override { inner_.poll(); }
    std::string outer_place(size_t level) override { return inner_.outer_place(level); }

  protected:
    LuaHost& host_;
    vm::Host& inner_;

  private:
    bool is_c_function(const Value& f) const;
};

}  // namespace lunaria
