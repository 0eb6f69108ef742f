#include "interpreter/bindings/swap.h"

#include <atomic>
#include <map>
#include <unordered_set>

#include "interpreter/host/lua_host.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"
#include "jit/vm/code.h"
#include "jit/vm/split_rule.h"

namespace lunaria {

namespace {

constexpr const char* kSwapped = "lunaria.swapped";

std::atomic<int64_t> bytes_out{0};

// Places where reverse rules keep tensors, what these are in host memory, and the device that they come from.
struct Swapped {
    struct Place {
        Value rule;
        size_t capture;
        Tensor host;
        Device* device;
    };
    std::vector<Place> places;
};

// Copies of tensors on another device; those that are views of the same elements, in another shape, share one.
class Copies {
  public:
    Tensor of(const Tensor& t, Device* device) {
        const auto key = t.is_contiguous() ? std::pair<const void*, int64_t>{t.body()->data, t.size()}
                                           : std::pair<const void*, int64_t>{t.body(), -1};
        Tensor& copy = known_[key];
        if (!copy || copy.dtype() != t.dtype()) {
            copy = t.to(device);
            bytes += static_cast<int64_t>(copy.nbytes());
            return copy;
        }
        return copy.shape() == t.shape() ? copy : copy.view(t.shape(), contiguous_strides(t.shape()), 0);
    }
    int64_t bytes = 0;

  private:
    std::map<std::pair<const void*, int64_t>, Tensor> known_;
};

// Calls f with each reverse rule of an operator that the value leads to.
template <class F>
void for_each_rule(const Value& from, const F& f) {
    std::unordered_set<const void*> seen;
    std::vector<Value> waiting{from};
    while (!waiting.empty()) {
        const Value v = std::move(waiting.back());
        waiting.pop_back();
        if (v.is_list()) {
            for (const Value& item : v.items()) waiting.push_back(item);
            continue;
        }
        if (v.kind() != Value::Kind::object || !seen.insert(v.object()).second) continue;
        if (const auto* split = vm::object_as<vm::SplitRule>(v)) {
            waiting.push_back(split->now);
            waiting.push_back(split->later);
        } else if (auto* closure = vm::object_as<vm::Closure>(v)) {
            if (closure->function->rule)
                f(v, *closure);
            else
                for (const Value& capture : closure->captures) waiting.push_back(capture);
        }
    }
}

// Puts a tensor with the same content in the place of one that a rule keeps.
void replace(vm::Closure& rule, size_t capture, Tensor other) {
    Value& held = rule.captures[capture];
    rule.versions += other.version() - static_cast<uint64_t>(held.tensor().version());
    Value v(std::move(other));
    v.set_marks(held.marks());
    held = std::move(v);
}

}  // namespace

int swap_out(lua_State* L) {
    LuaHost& host = LuaHost::of(L);
    const Value pull = host.to_value(L, 1), held = host.to_value(L, 2);
    const auto* context = vm::object_as<vm::Context>(held);
    luaL_argexpected(L, context, 2, "a derivative's context");
    Swapped swapped;
    Copies copies;
    std::vector<Tensor> sources;  // kept, so that no other tensor gets the place of one of them
    for_each_rule(pull, [&](const Value& v, vm::Closure& rule) {
        if (!vm::is_unchanged(rule)) return;
        for (size_t k = 0; k < rule.captures.size(); ++k) {
            const Value& capture = rule.captures[k];
            if (!capture.is_tensor() || context->find(capture)) continue;
            const Tensor t = capture.tensor();
            if (!t.device() || t.parameter()) continue;
            swapped.places.push_back({v, k, copies.of(t, nullptr), t.device()});
            replace(rule, k, swapped.places.back().host);
            sources.push_back(t);
        }
    });
    push_handle(L, std::move(swapped), kSwapped);
    bytes_out += copies.bytes;
    return 1;
}

int swapped_bytes(lua_State* L) {
    lua_pushinteger(L, bytes_out.load());
    return 1;
}

int swap_back(lua_State* L) {
    Copies copies;
    for (const Swapped::Place& place : handle_at<Swapped>(L, 1, kSwapped).places)
        replace(*static_cast<vm::Closure*>(place.rule.object()), place.capture, copies.of(place.host, place.device));
    return 0;
}

int swap_away(lua_State* L) {
    for (const Swapped::Place& place : handle_at<Swapped>(L, 1, kSwapped).places)
        replace(*static_cast<vm::Closure*>(place.rule.object()), place.capture, place.host);
    return 0;
}

void prepare_swaps(lua_State* L) { make_handle_type(L, kSwapped, protect<release_handle<Swapped>>); }

}  // namespace lunaria
