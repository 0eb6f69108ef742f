#include "jit/vm/tensor_parts.h"

#include "core/ir/builder.h"
#include "core/operator/expansion.h"
#include "jit/language.h"
#include "jit/vm/machine.h"

namespace lunaria::vm {

bool fits_in_place(const Tensor& old, const Tensor& value) {
    return value.shape() == old.shape() &&
           (value.dtype() == old.dtype() || is_float(old.dtype()) || !is_float(value.dtype()));
}

Host::Part TensorParts::property(const Value& tensor, const std::string& name) {
    const int rank = tensor.tensor().rank();
    const bool last_two = name == "mT" || name == "mH";
    if ((name != "T" && !last_two) || (last_two && rank < 2)) return {};
    std::shared_ptr<const ir::Graph>& kept = parts_[str(to_string(tensor), "|", name)];
    if (!kept) {
        auto graph = std::make_shared<ir::Graph>(name);
        Value x(graph->add_parameter("x", ir::NodeType::of(type_of(tensor))));
        Shape order;
        for (int i = 0; i < rank; ++i) order.push_back(last_two && i < rank - 2 ? i : rank - 1 - i);
        if (last_two) {
            order[rank - 2] = rank - 1;
            order[rank - 1] = rank - 2;
        }
        ir::GraphBuilder builder(*graph);
        graph->result = Value::list({builder.call("transpose", {x, Value::ints(order)}).value()});
        kept = graph;
    }
    Host::Part part;
    part.function = kept;
    return part;
}

Host::Part TensorParts::indexed(const Value& tensor, Index index, const Value* value) {
    Host::Part part;
    std::string name = str(to_string(Value(tensor)), "|");
    if (value) {
        name += value->is_tensor() ? to_string(*value) + "=" : "number=";
        part.args = {Value(), *value};
    }
    const size_t given = part.args.size();
    for (IndexItem& item : index.items) {
        name += str(static_cast<int>(item.kind), ":", item.integer, ":", item.start.value_or(INT64_MIN), ":",
                    item.stop.value_or(INT64_MIN), ":", item.step, ":");
        // A mask selects as many elements as it has trues: the graph is for this mask.
        if (item.kind == IndexItem::Kind::tensor) {
            if (item.tensor.tensor().dtype() == DType::boolean) {
                name += "mask";
            }
            name += to_string(item.tensor);
            part.args.push_back(item.tensor);
        }
        name += ';';
    }
    const bool mask = name.find("mask") != std::string::npos;
    std::shared_ptr<const ir::Graph>& kept = parts_[name];
    if (!kept || mask) {
        if (parts_.size() > 2000) {
            parts_.clear();
            return indexed(tensor, std::move(index), value);
        }
        auto graph = std::make_shared<ir::Graph>("index");
        Value x(graph->add_parameter("x", ir::NodeType::of(type_of(tensor)))), put;
        if (value) {
            graph->add_parameter("key", {});
            const bool number = value->is_number();
            put = Value(graph->add_parameter("value", number ? ir::NodeType{} : ir::NodeType::of(type_of(*value))));
            const DType dtype = tensor.tensor().dtype();
            if (number)
                put = Value(graph->add_call(lua::primitive("number_tensor"), {put, Value(dtype)},
                                            ir::NodeType::of({dtype, {}})));
        }
        for (IndexItem& item : index.items)
            if (item.kind == IndexItem::Kind::tensor && !mask)
                item.tensor = Value(graph->add_parameter("i", ir::NodeType::of(type_of(item.tensor))));
        if (mask)
            for (size_t k = given; k < part.args.size(); ++k) graph->add_parameter("i", {});
        ir::GraphBuilder builder(*graph);
        const Value whole = x;
        if (value) x = Value(graph->add_call(lua::primitive("content"), {x, Value::list({})}, x.node()->type));
        Value result = speaking_of(
            indexing(), [&] { return value ? index_put(builder, x, index, put) : index_get(builder, x, index); });
        if (value) result = Value(graph->add_call(lua::primitive("overwrite"), {whole, result}, {}));
        graph->result = Value::list({result});
        kept = graph;
        function_of(*kept).whole = &indexing();
    }
    part.function = kept;
    if (mask) parts_.erase(name);
    return part;
}

}  // namespace lunaria::vm
