#include "jit/saving/names.h"

#include "core/ir/text.h"
#include "core/operator/op.h"
#include "jit/vm/object.h"

namespace lunaria {

namespace {

class Name final : public Object, public ir::NameHolder {
  public:
    explicit Name(std::string_view name) : name_(name) {}
    std::string_view held_name() const override { return name_; }

  private:
    const std::string name_;
};

}  // namespace

Value operator_name(const Op& op) { return name_value(str("ms.ops.", op.name())); }

const Op* operator_named(const Value& name) {
    constexpr std::string_view kPrefix = "ms.ops.";
    const Name* found = name.kind() == Value::Kind::object ? vm::object_as<Name>(name) : nullptr;
    if (!found || !found->held_name().starts_with(kPrefix)) return nullptr;
    return registry().find(found->held_name().substr(kPrefix.size()));
}

Value name_value(std::string_view name) { return vm::make_object<Name>(name); }

}  // namespace lunaria
