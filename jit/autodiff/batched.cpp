#include "jit/autodiff/batched.h"

#include <string>
#include <unordered_map>

#include "core/batching/batching.h"
#include "core/ir/builder.h"
#include "core/tensor/byte_key.h"
#include "jit/autodiff/tidy.h"
#include "jit/autodiff/trace.h"

namespace lunaria::autodiff {

namespace {

constexpr size_t kMostGraphs = 4096;

class BatchTracer {
  public:
    BatchTracer(const Op& op, std::span<const Value> args, const std::function<bool(const Value&)>& is_batched,
                int64_t size)
        : op_(op),
          args_(args),
          size_(size),
          raw_(std::string(op.name())),
          builder_(raw_),
          dtype_(promoted_dtype(op, args)),
          whole_(args.size()) {
        builder_.expands = true;
        for (size_t i = 0; i < args.size(); ++i) place(i, is_batched);
    }

    std::unique_ptr<ir::Graph> run() {
        const Call call(op_, sample_, dtype_);
        std::vector<Value> results = by_rule(call);
        if (results.empty()) {
            if (op_.expand_fn && op_.side_effect == Effect::none) return nullptr;
            results = one_by_one();
        }
        raw_.result = Value::list(std::move(results));
        std::vector<size_t> kept;
        return tidy(raw_, numbers_, std::vector<bool>(raw_.parameters().size(), true), kept);
    }

  private:
    Value parameter(TensorType type, bool batched) {
        if (batched) {
            Shape shape{size_};
            for (int64_t n : type.shape.dims()) shape.push_back(n);
            type.shape = shape;
        }
        return Value(raw_.add_parameter("", ir::NodeType::of(std::move(type))));
    }

    void place(size_t i, const std::function<bool(const Value&)>& is_batched) {
        const Value& v = args_[i];
        switch (role(op_, args_, i, false)) {
            case Role::fixed:
                sample_.push_back(v);
                return;
            case Role::number: {
                const ArgType type = op_.signature.params[i].type;
                const bool promoted = type == ArgType::same || type == ArgType::real;
                const Value p = parameter({promoted                 ? dtype_
                                           : type == ArgType::index ? DType::i64
                                                                    : type_of(v).dtype,
                                           {}},
                                          false);
                numbers_[p.node()] = v.kind();
                sample_.push_back(p);
                return;
            }
            case Role::tensor: {
                const bool differs = is_batched(v);
                const Value p = parameter(type_of(v), differs);
                sample_.push_back(differs ? v : p);
                if (differs) whole_[i] = p;
                return;
            }
            case Role::list:
                break;
        }
        std::vector<Value> samples, wholes;
        bool any = false;
        for (const Value& item : v.items()) {
            const bool differs = is_batched(item);
            const Value p = parameter(type_of(item), differs);
            samples.push_back(differs ? item : p);
            wholes.push_back(differs ? p : Value());
            any |= differs;
        }
        sample_.push_back(Value::list(std::move(samples)));
        if (any) whole_[i] = Value::list(std::move(wholes));
    }

    // Several results as a list.
    std::vector<Value> items_of(const Value& results, size_t count) {
        if (results.is_list()) return results.items();
        if (!results.is_node() || results.node()->type.kind != ir::NodeType::Kind::list) return {results};
        std::vector<Value> items;
        for (size_t j = 0; j < count; ++j) items.push_back(builder_.item(results, j));
        return items;
    }

    std::vector<Value> by_rule(const Call& call) {
        if (!op_.infer_fn || !has_batch_rule(op_) || op_.side_effect != Effect::none) return {};
        const Types types = op_.infer_fn(call);
        const BatchCall whole(call, builder_, whole_, size_);
        const Value given = apply_batch_rule(whole, types);
        if (given.is_nil()) return {};
        std::vector<Value> results = items_of(given, types.size());
        if (results.size() != types.size()) return {};
        for (size_t j = 0; j < types.size(); ++j) {
            const TensorType type = type_of(results[j]);
            if (type.dtype != types[j].dtype || !(type.shape == whole.with_batch(types[j].shape))) return {};
        }
        return results;
    }

    Value sample(const Value& arg, const Value& whole, int64_t b) {
        if (whole.is_nil()) return arg;
        if (whole.is_list()) {
            std::vector<Value> items;
            for (size_t k = 0; k < arg.items().size(); ++k)
                items.push_back(sample(arg.items()[k], whole.items()[k], b));
            return Value::list(std::move(items));
        }
        return Expr(builder_, whole)
            .builder()
            .call("narrow", {Expr(builder_, whole), int64_t{0}, b, int64_t{1}})
            .reshape(arg.tensor().shape())
            .value();
    }

    std::vector<Value> one_by_one() {
        std::vector<std::vector<Expr>> columns;
        for (int64_t b = 0; b < size_; ++b) {
            std::vector<Value> own;
            for (size_t i = 0; i < args_.size(); ++i) own.push_back(sample(sample_[i], whole_[i], b));
            const Value given = builder_.emit(op_, own);
            const size_t count = given.is_node() ? given.node()->type.items.size() : 1;
            const std::vector<Value> results = items_of(given, count);
            columns.resize(results.size());
            for (size_t j = 0; j < results.size(); ++j) columns[j].emplace_back(builder_, results[j]);
        }
        std::vector<Value> results;
        for (const auto& column : columns)
            results.push_back(builder_.call("stack", {builder_.list(column), int64_t{0}}).value());
        return results;
    }

    const Op& op_;
    std::span<const Value> args_;
    const int64_t size_;
    ir::Graph raw_;
    ir::GraphBuilder builder_;
    DType dtype_;
    // The arguments of a sample, of which those that differ are known by type only, and what stands for these.
    std::vector<Value> sample_, whole_;
    NumberParameters numbers_;
};

void append_type(std::string& key, const Value& v, bool batched) {
    key += batched ? 'b' : 's';
    append_bytes(key, v.tensor().dtype());
    append_bytes(key, v.tensor().rank());
    for (int64_t n : v.tensor().shape().dims()) append_bytes(key, n);
}

}  // namespace

bool is_fixed(const Op& op, std::span<const Value> args, size_t i) { return role(op, args, i, false) == Role::fixed; }

std::shared_ptr<const ir::Graph> batched(const Op& op, std::span<const Value> args,
                                         const std::function<bool(const Value&)>& is_batched, int64_t size) {
    thread_local std::unordered_map<std::string, std::shared_ptr<const ir::Graph>> graphs;
    std::string key;
    append_bytes(key, op.id);
    append_bytes(key, size);
    // A tensor in an attribute's place, whose elements nobody compares.
    const auto refused = [](std::string&, const Value&) { return false; };
    bool known = true;
    for (size_t i = 0; i < args.size(); ++i) {
        const Role r = role(op, args, i, false);
        append_bytes(key, r);
        if (r == Role::fixed) known &= append_value(key, args[i], refused);
        if (r == Role::tensor) append_type(key, args[i], is_batched(args[i]));
        if (r == Role::number) append_bytes(key, args[i].kind());
        if (r != Role::list) continue;
        append_bytes(key, args[i].items().size());
        for (const Value& item : args[i].items()) append_type(key, item, is_batched(item));
    }
    if (known)
        if (auto found = graphs.find(key); found != graphs.end()) return found->second;
    std::shared_ptr<const ir::Graph> made = BatchTracer(op, args, is_batched, size).run();
    if (!known) return made;
    if (graphs.size() >= kMostGraphs) graphs.clear();
    return graphs[key] = std::move(made);
}

}  // namespace lunaria::autodiff
