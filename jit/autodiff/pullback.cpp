#include "jit/autodiff/pullback.h"

#include <algorithm>
#include <cmath>

#include "jit/autodiff/trace.h"

namespace lunaria::autodiff {

namespace {

constexpr size_t kMostEntries = 4096;  // of all operators; a graph takes a few kilobytes
constexpr size_t kMostPerOp = 128;     // a miss compares with all of an operator's

// The properties of one argument or result for which a graph was traced.
struct Key {
    Role role = Role::fixed;
    Value::Kind kind = Value::Kind::nil;
    DType dtype = DType::f32;
    Shape shape;
    Value value;
    bool varies = true;  // for a number: false if other numbers in its place are constants of graphs of their own
    std::vector<TensorType> items;

    static Key of_tensor(const Value& v) {
        Key key;
        key.role = Role::tensor;
        key.dtype = v.tensor().dtype();
        key.shape = v.tensor().shape();
        return key;
    }
    static Key of(const Value& v, Role role) {
        if (role == Role::tensor) return of_tensor(v);
        Key key;
        key.role = role;
        key.kind = v.kind();
        if (role == Role::fixed) key.value = v;
        if (role == Role::list)
            for (const Value& item : v.items()) key.items.push_back(type_of(item));
        return key;
    }

    bool fits_tensor(const Value& v) const {
        return v.is_tensor() && v.tensor().dtype() == dtype && v.tensor().shape() == shape;
    }
    bool fits(const Value& v) const {
        if (role == Role::tensor) return fits_tensor(v);
        if (v.kind() != kind) return false;
        if (role == Role::number) return varies || !is_usual_exponent(v);
        if (kind == Value::Kind::nil) return true;
        if (role == Role::list) return fits_list(v.items());
        return same_value(value, v) &&
               (kind != Value::Kind::number || std::signbit(value.number()) == std::signbit(v.number()));
    }
    bool fits_list(const std::vector<Value>& list) const {
        if (list.size() != items.size()) return false;
        for (size_t i = 0; i < list.size(); ++i) {
            if (!list[i].is_tensor() || list[i].tensor().dtype() != items[i].dtype) return false;
            if (!(list[i].tensor().shape() == items[i].shape)) return false;
        }
        return true;
    }
};

// Whether the key lacks something of the arguments: the elements of a tensor in an attribute's place.
bool holds_tensor(const Value& v) {
    return v.is_tensor() || (v.is_list() && std::any_of(v.items().begin(), v.items().end(), holds_tensor));
}

// The graphs that one thread has traced: a short list for each operator, recently used ones at the front.
template <class Traced>
class Cache {
  public:
    // The graph for a call; `trace` makes one when there is none.
    template <class Trace>
    std::shared_ptr<const Traced> get(const Op& op, std::span<const Value> args, const Value& result, uint64_t active,
                                      uint64_t present, Trace&& trace) {
        size_t id = static_cast<size_t>(op.id);
        if (id >= ops_.size()) ops_.resize(std::max(registry().all().size(), id + 1));
        OpEntries& of_op = ops_[id];
        if (!of_op.ready) prepare(op, of_op);
        active &= of_op.operands;
        size_t results = result.is_list() ? result.items().size() : 1;
        if (results < 64) present &= (uint64_t{1} << results) - 1;
        auto& entries = of_op.entries;
        for (size_t k = 0; k < entries.size(); ++k) {
            Entry& entry = *entries[k];
            if (entry.active != active || entry.present != present || !entry.fits(args, result)) continue;
            entry.last_use = ++clock_;
            if (k == 0) return entry.traced;
            std::swap(entries[k], entries[k - 1]);
            return entries[k - 1]->traced;
        }
        return add(of_op, op, args, result, active, present, trace(active, present));
    }

  private:
    struct Entry {
        uint64_t active, present, last_use = 0;
        std::vector<Key> args, results;  // no results: they follow from the arguments
        std::shared_ptr<const Traced> traced;

        bool fits(std::span<const Value> given, const Value& result) const {
            for (size_t i = 0; i < args.size(); ++i)
                if (!args[i].fits(given[i])) return false;
            if (results.empty()) return true;
            if (!result.is_list()) return results[0].fits_tensor(result);
            if (result.items().size() != results.size()) return false;
            for (size_t j = 0; j < results.size(); ++j)
                if (!results[j].fits_tensor(result.items()[j])) return false;
            return true;
        }
    };
    struct OpEntries {
        bool ready = false;
        uint64_t operands = 0;  // parameters that take tensors
        std::vector<std::unique_ptr<Entry>> entries;
    };

    static void prepare(const Op& op, OpEntries& of_op) {
        const auto& params = op.signature.params;
        for (size_t i = 0; i < params.size(); ++i)
            if (i < 64 && is_tensor_type(params[i].type)) of_op.operands |= uint64_t{1} << i;
        of_op.ready = true;
    }

    std::shared_ptr<const Traced> add(OpEntries& of_op, const Op& op, std::span<const Value> args, const Value& result,
                                      uint64_t active, uint64_t present, Traced traced) {
        auto entry = std::make_unique<Entry>();
        entry->active = active;
        entry->present = present;
        // Shared by this cache and by runs of the graph, which may end after the cache has dropped it.
        entry->traced = std::make_shared<const Traced>(std::move(traced));
        bool cacheable = true;
        for (size_t i = 0; i < args.size(); ++i) {
            Role r = role(op, args, i, has_bit(active, i));
            cacheable &= r != Role::fixed || !holds_tensor(args[i]);
            entry->args.push_back(Key::of(args[i], r));
            if (r == Role::number) entry->args.back().varies = !specialises(op, i, has_bit(active, i));
        }
        if (!cacheable) return entry->traced;
        if (op.infer_fn && !result.is_nil() && !types_follow(op, args))
            for (const Value& r : result.is_list() ? result.items() : std::vector<Value>{result})
                entry->results.push_back(Key::of_tensor(r));
        entry->last_use = ++clock_;
        auto& entries = of_op.entries;
        if (entries.size() >= kMostPerOp) forget_oldest(entries);
        if (++count_ > kMostEntries) forget_oldest_of_all();
        entries.insert(entries.begin(), std::move(entry));
        return entries.front()->traced;
    }
    // Whether the operands' types give the shape of every result.
    static bool types_follow(const Op& op, std::span<const Value> args) {
        for (const TensorType& t : op.infer_fn(Call(op, args, promoted_dtype(op, args))))
            if (!t.shape.known()) return false;
        return true;
    }

    static auto oldest(std::vector<std::unique_ptr<Entry>>& entries) {
        return std::min_element(entries.begin(), entries.end(),
                                [](auto& a, auto& b) { return a->last_use < b->last_use; });
    }
    void forget_oldest(std::vector<std::unique_ptr<Entry>>& entries) {
        entries.erase(oldest(entries));
        --count_;
    }
    void forget_oldest_of_all() {
        OpEntries* found = nullptr;
        for (OpEntries& of_op : ops_) {
            if (of_op.entries.empty()) continue;
            if (!found || (*oldest(of_op.entries))->last_use < (*oldest(found->entries))->last_use) found = &of_op;
        }
        forget_oldest(found->entries);
    }

    std::vector<OpEntries> ops_;  // by the operator's id
    uint64_t clock_ = 0;
    size_t count_ = 0;
};

template <class Traced>
Cache<Traced>& cache() {
    static thread_local Cache<Traced> instance;
    return instance;
}

}  // namespace

std::shared_ptr<const Pullback> pullback(const Op& op, std::span<const Value> args, const Value& result,
                                         uint64_t active, uint64_t present) {
    if (needs_expansion(op))
        throw state_error(op.name(), "has no gradient rule of its own: what it is made of has to be differentiated");
    return cache<Pullback>().get(op, args, result, active, present, [&](uint64_t wanted, uint64_t given) {
        return trace_pullback(op, args, result, wanted, given);
    });
}

size_t count_results(const Op& op, std::span<const Value> args) {
    const size_t named = op.signature.results.size();
    if (named > 1 || !op.infer_fn) return named;
    const size_t given = op.infer_fn(Call(op, args, promoted_dtype(op, args))).size();
    return named == 1 || given > 1 ? given : 0;
}

std::shared_ptr<const ir::Graph> expansion(const Op& op, std::span<const Value> args) {
    if (!op.expand_fn) throw state_error(op.name(), "is not made of other operators");
    using Expansion = std::unique_ptr<ir::Graph>;
    const auto& found = cache<Expansion>().get(op, args, Value(), 0, 0, [&](uint64_t, uint64_t) {
        check_tensor_args(op, args);
        // Also what those operators are made of: a derivative of the derivative asks each of them for its rule.
        Expansion made = trace_expansion(op, args), plain = without_composites(*made);
        return plain ? std::move(plain) : std::move(made);
    });
    return {found, found->get()};
}

}  // namespace lunaria::autodiff
