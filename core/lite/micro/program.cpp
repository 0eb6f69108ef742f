#include "core/lite/micro/program.h"

#include <algorithm>

namespace lunaria::lite::micro {

int64_t Operand::size() const {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    return count;
}

bool Operand::is_dense() const {
    int64_t step = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
        if (shape[axis] != 1 && strides[axis] != step) return false;
        step *= shape[axis];
    }
    return true;
}

Program::Program(const Model& model) : model_(model), values_(model.values.size()) {
    calls_.set_depth(1);
    // The names that a user sees come first.
    for (const uint32_t v : model.inputs) values_[v] = names_.name(model.values[v].name);
    for (const uint32_t v : model.outputs) values_[v] = names_.name(model.values[v].name);
    for (size_t v = 0; v < model.values.size(); ++v)
        if (values_[v].empty() && model.values[v].home != Value::Home::constant)
            values_[v] = names_.name(model.values[v].name.empty() ? str("t", v) : model.values[v].name);
}

std::string Program::array(Array array, std::string_view wish) {
    array.name = names_.name(str("net_", wish));
    arrays_.push_back(std::move(array));
    return arrays_.back().name;
}

std::string Program::array_of(uint32_t value, std::string_view key, const std::function<Array()>& make) {
    std::string& known = arrangements_[{value, std::string(key)}];
    if (known.empty()) {
        const std::string& name = model_.values[value].name;
        known = array(make(), name.empty() ? str("w", value) : name);
    }
    return known;
}

std::string Program::array_of(uint32_t value) {
    return array_of(value, "", [&] {
        const Value& v = model_.values[value];
        Array made;
        made.dtype = v.dtype;
        made.count = static_cast<int64_t>(v.bytes / size_of(v.dtype));
        made.elements.assign(v.data, v.data + v.bytes);
        for (const Number& n : v.shape) made.comment += made.comment.empty() ? str(n.value) : str(" x ", n.value);
        return made;
    });
}

void Program::helper(std::string_view name, std::string_view text) {
    if (std::ranges::find(known_helpers_, name) != known_helpers_.end()) return;
    known_helpers_.emplace_back(name);
    helpers_ += text;
    helpers_ += '\n';
}

void Program::call(std::string_view wish, const std::vector<Parameter>& parameters, const std::string& body,
                   bool fails) {
    std::string head = "(";
    for (const Parameter& p : parameters) {
        if (head.size() > 1) head += ", ";
        head += str(p.is_written ? "" : "const ", type_name(p.dtype), " *", p.name);
    }
    head += ")";
    const std::string key = str(fails ? "int" : "void", head, body);
    std::string& name = written_[key];
    if (name.empty()) {
        name = names_.name(str("step_", wish));
        functions_ +=
            str("static ", fails ? "int " : "void ", name, head, " {\n", body, fails ? "    return 0;\n" : "", "}\n\n");
    }
    std::string arguments;
    for (const Parameter& p : parameters) arguments += arguments.empty() ? p.argument : ", " + p.argument;
    can_fail_ = can_fail_ || fails;
    if (fails)
        calls_.line("if (", name, "(", arguments, ") != 0) return 2;");
    else
        calls_.line(name, "(", arguments, ");");
}

namespace {

Operand operand_of(const Model& model, const View& view) {
    Operand o;
    o.value = view.value;
    if (view.value == kNone) return o;
    const Value& v = model.values[view.value];
    o.dtype = v.dtype;
    o.offset = view.offset.value;
    for (const Number& n : view.whole ? v.shape : view.shape) o.shape.push_back(n.value);
    o.strides.assign(o.shape.size(), 1);
    if (view.whole)
        for (size_t axis = o.shape.size(); axis-- > 1;) o.strides[axis - 1] = o.strides[axis] * o.shape[axis];
    else
        for (size_t axis = 0; axis < view.strides.size(); ++axis) o.strides[axis] = view.strides[axis].value;
    return o;
}

}  // namespace

StepForm::StepForm(Program& p, uint32_t number) : program(p), step(p.model().steps[number]), number_(number) {
    for (const View& v : step.operands) in.push_back(operand_of(p.model(), v));
    for (const View& v : step.results) out.push_back(operand_of(p.model(), v));
    for (const std::vector<Operand>* list : {&in, &out})
        for (const Operand& o : *list)
            if (o.is_there() && o.size() > INT32_MAX / 8)
                refuse("one of its operands has too many elements for a microcontroller");
}

void StepForm::refuse(std::string_view why) const {
    std::string place = str("step ", number_, " (", step.label.empty() ? step.kind : step.label, ")");
    if (!step.node.empty()) place += str(", node '", step.node, "'");
    const Error error = value_error("lite.micro", str(place, ": ", why));
    throw step.source.empty() ? error : error.at(step.source);
}

int64_t StepForm::integer(std::string_view name, int64_t otherwise) const {
    const Attribute* const a = find(step.attributes, name);
    if (!a) return otherwise;
    if (!a->integers.empty()) return a->integers[0].value;
    return a->numbers.empty() ? otherwise : static_cast<int64_t>(a->numbers[0]);
}

double StepForm::number(std::string_view name, double otherwise) const {
    const Attribute* const a = find(step.attributes, name);
    if (!a) return otherwise;
    if (!a->numbers.empty()) return a->numbers[0];
    return a->integers.empty() ? otherwise : static_cast<double>(a->integers[0].value);
}

std::string_view StepForm::text(std::string_view name) const {
    const Attribute* const a = find(step.attributes, name);
    return a ? std::string_view(a->text) : std::string_view();
}

std::vector<int64_t> StepForm::integers(std::string_view name) const {
    std::vector<int64_t> result;
    if (const Attribute* const a = find(step.attributes, name))
        for (const Number& n : a->integers) result.push_back(n.value);
    return result;
}

size_t StepForm::axis(std::string_view name, size_t rank, int64_t otherwise) const {
    int64_t axis = integer(name, otherwise);
    if (axis < 0) axis += static_cast<int64_t>(rank);
    demand(axis >= 0 && axis < static_cast<int64_t>(rank), str("its ", name, " is out of range"));
    return static_cast<size_t>(axis);
}

Parameter StepForm::read(std::string name, const Operand& o) const {
    const Value& v = value(o);
    demand(!type_name(o.dtype).empty() && v.form == Form::plain,
           str("C99 has no elements of ", name_of(o.dtype), " as they are stored"));
    std::string argument =
        v.home == Value::Home::constant ? program.array_of(o.value) : std::string(program.name_of(o.value));
    if (o.offset != 0) argument += str(" + ", o.offset);
    return {std::move(name), o.dtype, false, std::move(argument)};
}

Parameter StepForm::written(std::string name, const Operand& o) const {
    Parameter p = read(std::move(name), o);
    const Value::Home home = value(o).home;
    demand(home == Value::Home::arena || home == Value::Home::output,
           "it writes into a value that lives from run to run");
    p.is_written = true;
    return p;
}

}  // namespace lunaria::lite::micro
