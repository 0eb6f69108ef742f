#include "core/value.h"

#include <cmath>
#include <sstream>

#include "core/error.h"

namespace lunaria {

Value Value::list(std::vector<Value> items) {
    Value v;
    v.kind_ = Kind::list;
    v.payload_.object = new ListObject(std::move(items));
    return v;
}

Value Value::ints(std::span<const int64_t> items) { return list(std::vector<Value>(items.begin(), items.end())); }

void Value::drop() noexcept {
    if (kind_ == Kind::tensor) return Tensor::drop(payload_.tensor);
    // A sole owner needs no read-modify-write: nobody else can have a reference to copy.
    Object* object = payload_.object;
    if (object->refs.load(std::memory_order_acquire) == 1 || object->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
        delete object;
}

bool same_value(const Value& a, const Value& b) {
    if (a.kind() != b.kind()) return false;
    switch (a.kind()) {
        case Value::Kind::nil:
            return true;
        case Value::Kind::boolean:
            return a.boolean() == b.boolean();
        case Value::Kind::integer:
            return a.integer() == b.integer();
        case Value::Kind::number:
            return a.number() == b.number() || (std::isnan(a.number()) && std::isnan(b.number()));
        case Value::Kind::dtype:
            return a.dtype() == b.dtype();
        case Value::Kind::node:
            return a.node() == b.node();
        case Value::Kind::string:
            return a.string() == b.string();
        case Value::Kind::object:
            return a.object() == b.object();
        case Value::Kind::list: {
            const auto &x = a.items(), &y = b.items();
            if (x.size() != y.size()) return false;
            for (size_t i = 0; i < x.size(); ++i)
                if (!same_value(x[i], y[i])) return false;
            return true;
        }
        case Value::Kind::tensor: {
            const Tensor &x = a.tensor(), &y = b.tensor();
            if (x.dtype() != y.dtype() || !(x.shape() == y.shape())) return false;
            if (x.same_body(y)) return true;
            for (int64_t i = 0; i < x.size(); ++i) {
                double p = x.at(i), q = y.at(i);
                if (p != q && !(std::isnan(p) && std::isnan(q))) return false;
            }
            return true;
        }
    }
    return false;
}

std::string to_string(const Value& v) {
    switch (v.kind()) {
        case Value::Kind::nil:
            return "nil";
        case Value::Kind::boolean:
            return v.boolean() ? "true" : "false";
        case Value::Kind::integer:
            return std::to_string(v.integer());
        case Value::Kind::number:
            return str(v.number());
        case Value::Kind::dtype:
            return std::string(name_of(v.dtype()));
        case Value::Kind::node:
            return "node";
        case Value::Kind::string:
            return "\"" + v.string() + "\"";
        case Value::Kind::object:
            return "object";
        case Value::Kind::tensor:
            return str(name_of(v.tensor().dtype()), v.tensor().shape());
        case Value::Kind::list: {
            std::string text = "{";
            for (const Value& item : v.items()) text += (text.size() > 1 ? ", " : "") + to_string(item);
            return text + "}";
        }
    }
    return "?";
}

}  // namespace lunaria
