#include "jit/runtime/values.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/io/npz.h"
#include "core/operator/signature.h"
#include "jit/number.h"
#include "jit/vm/plain_arguments.h"

namespace lunaria::runtime {

namespace {

constexpr int kDeepestValue = 20;  // of tables that are written

bool is_tensor_type(const ir::NodeType& type) { return type.kind == ir::NodeType::Kind::tensor; }

// The arrays of an archive as a table.
Value table_of_values(const NpzFile& file) {
    std::vector<std::pair<Value, Value>> fields;
    for (const std::string& name : file.names()) {
        int64_t place = 0;
        const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), place);
        const bool numbered = failed == std::errc() && end == name.data() + name.size();
        fields.emplace_back(numbered ? Value(place) : Value(name), file.read(name));
    }
    return Program::table(std::move(fields));
}

// Lists within literals are tables of the program.
Value as_table(const Value& v) {
    if (!v.is_list()) return v;
    std::vector<std::pair<Value, Value>> fields;
    for (const Value& item : v.items()) fields.emplace_back(static_cast<int64_t>(fields.size()) + 1, as_table(item));
    return Program::table(std::move(fields));
}

Error no_input(const std::string& word) {
    return argument_error("", str("input '", word, "' is no .npy or .npz file and no value"))
        .hint("texts stand in quotes: '\"mean\"'");
}

std::string type_text(const ir::NodeType& type) {
    if (!is_tensor_type(type)) return "any value";
    return str(name_of(type.tensor.dtype), " ", type.tensor.shape);
}

// The results and what is in them, with the ends of their files' names.
void for_each_leaf(const Value& v, const std::string& name, int depth,
                   const std::function<void(const Value&, const std::string&)>& f) {
    const auto fields = Program::fields(v);
    if (!fields) return f(v, name);
    if (depth >= kDeepestValue)
        throw state_error("", str("result ", name, " is a table in itself, or too deep for files"));
    for (const auto& [key, value] : *fields) {
        std::string part = key.kind() == Value::Kind::string ? key.string() : Program::text(key);
        std::ranges::replace(part, '/', '_');
        for_each_leaf(value, name + "." + part, depth + 1, f);
    }
}

}  // namespace

Value input_of(const std::string& word, const ir::NodeType& wanted) {
    if (word.ends_with(".npy")) return Value(read_npy(word));
    if (word.ends_with(".npz")) return table_of_values(NpzFile(word));
    std::string_view rest = word;
    Value v;
    try {
        v = parse_literal(rest);
    } catch (const Error&) {
        throw no_input(word);
    }
    if (!rest.empty()) throw no_input(word);
    v = as_table(v);
    const bool data = v.is_number() || v.kind() == Value::Kind::boolean || Program::fields(v);
    if (is_tensor_type(wanted) && data) return Value(vm::plain_tensor(v, wanted.tensor.dtype, "input"));
    return v;
}

std::vector<std::string> write_results(std::span<const Value> results, const std::string& out) {
    std::error_code none;
    const bool folder = out.ends_with('/') || std::filesystem::is_directory(out, none);
    if (folder) std::filesystem::create_directories(out, none);
    const std::string prefix = folder ? out + (out.ends_with('/') ? "" : "/") + "output" : out;
    std::vector<std::string> paths;
    for (size_t i = 0; i < results.size(); ++i)
        for_each_leaf(results[i], str(prefix, "_", i), 0, [&](const Value& v, const std::string& name) {
            const std::string path =
                name + (v.is_tensor() || v.is_number() || v.kind() == Value::Kind::boolean ? ".npy" : ".txt");
            if (v.is_tensor())
                write_npy(path, v.tensor());
            else if (v.kind() == Value::Kind::integer)
                write_npy(path, Tensor::scalar(v.integer()));
            else if (v.is_number())
                write_npy(path, Tensor::scalar(DType::f64, v.number()));
            else if (v.kind() == Value::Kind::boolean)
                write_npy(path, Tensor::scalar(DType::boolean, v.boolean()));
            else
                write_file(path, Program::text(v) + "\n");
            paths.push_back(path);
        });
    return paths;
}

std::string describe(const Signature& s) {
    std::string text;
    const auto list = [&](std::string_view title, const std::vector<Described>& rows, bool numbered) {
        text += str(title, ":", rows.empty() ? " none" : "", "\n");
        for (size_t i = 0; i < rows.size(); ++i)
            text += str("  ", numbered ? str(i, " ") : "", rows[i].name, rows[i].name.empty() ? "" : ": ",
                        type_text(rows[i].type), "\n");
    };
    list("inputs", s.inputs, true);
    if (s.takes_more) text += "  and any number of others\n";
    if (s.gives_any)
        text += "results: known when it has run\n";
    else
        list("results", s.outputs, true);
    list("weights", s.weights, false);
    text += str("functions:", s.functions.empty() ? " none" : "", "\n");
    for (const std::string& name : s.functions) text += "  " + name + "\n";
    return text;
}

}  // namespace lunaria::runtime
