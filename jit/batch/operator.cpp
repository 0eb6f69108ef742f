#include "jit/batch/operator.h"

#include <string>
#include <unordered_map>

#include "core/batching/batching.h"
#include "core/ir/builder.h"
#include "core/tensor/byte_key.h"
#include "jit/autodiff/tidy.h"
#include "jit/autodiff/trace.h"

namespace lunaria::batch {

namespace {

using autodiff::Role;
using autodiff::role;

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
        const BatchCall call(Call(op_, sample_, dtype_), builder_, whole_, size_);
        const Value results = batched_results(call);
        if (results.is_nil()) return nullptr;
        raw_.result = Value::list(separate_results(builder_, results));
        std::vector<size_t> kept;
        return autodiff::tidy(raw_, numbers_, std::vector<bool>(raw_.parameters().size(), true), kept);
    }

  private:
    Value parameter(TensorType type, bool batched) {
        if (batched) type.shape.insert(0, size_);
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

    const Op& op_;
    std::span<const Value> args_;
    const int64_t size_;
    ir::Graph raw_;
    ir::GraphBuilder builder_;
    DType dtype_;
    // The arguments of a sample, with the type alone for those that differ between samples, and the batch's tensors for
    // these.
    std::vector<Value> sample_, whole_;
    autodiff::NumberParameters numbers_;
};

void append_type(std::string& key, const Value& v, bool batched) {
    key += batched ? 'b' : 's';
    append_bytes(key, v.tensor().dtype());
    append_bytes(key, v.tensor().rank());
    for (int64_t n : v.tensor().shape().dims()) append_bytes(key, n);
}

}  // namespace

bool is_fixed(const Op& op, std::span<const Value> args, size_t i) { return role(op, args, i, false) == Role::fixed; }

std::shared_ptr<const ir::Graph> operator_graph(const Op& op, std::span<const Value> args,
                                                const std::function<bool(const Value&)>& is_batched, int64_t size) {
    thread_local std::unordered_map<std::string, std::shared_ptr<const ir::Graph>> graphs;
    std::string key;
    append_bytes(key, op.id);
    append_bytes(key, size);
    // Whether a tensor is in an attribute's place: its elements are not compared.
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

}  // namespace lunaria::batch
