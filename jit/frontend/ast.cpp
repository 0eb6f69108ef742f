#include "jit/frontend/ast.h"

#include <algorithm>
#include <array>

namespace lunaria::lua {

namespace {

// "\r\n" and "\n\r" end one line, as in stock Lua.
std::vector<std::uint32_t> find_line_starts(std::string_view text) {
    std::vector<std::uint32_t> starts{0};
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c != '\n' && c != '\r') continue;
        if (i + 1 < text.size() && text[i + 1] != c && (text[i + 1] == '\n' || text[i + 1] == '\r')) ++i;
        starts.push_back(static_cast<std::uint32_t>(i + 1));
    }
    return starts;
}

}  // namespace

Chunk::Chunk(std::string source, std::string name)
    : source_(std::move(source)), name_(std::move(name)), line_starts_(find_line_starts(source_)) {}

Position Chunk::position(std::uint32_t offset) const {
    const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
    return {static_cast<std::uint32_t>(after - line_starts_.begin()), offset - *(after - 1) + 1};
}

std::string_view Chunk::line(std::uint32_t number) const {
    if (number == 0 || number > line_starts_.size()) return {};
    const std::size_t begin = line_starts_[number - 1];
    const std::size_t end = number < line_starts_.size() ? line_starts_[number] : source_.size();
    std::string_view text = std::string_view(source_).substr(begin, end - begin);
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
    return text;
}

std::vector<const Function*> Chunk::functions_at(std::uint32_t first_line, std::uint32_t last_line) const {
    std::vector<const Function*> found;
    for (const Function* f : functions_)
        if (f->first_line == first_line && f->last_line == last_line) found.push_back(f);
    return found;
}

std::vector<const Function*> Chunk::find_functions(std::uint32_t first_line, std::uint32_t last_line,
                                                   std::size_t parameter_count, bool is_vararg,
                                                   List<std::string_view> upvalue_names) const {
    std::vector<const Function*> found = functions_at(first_line, last_line);
    std::erase_if(found, [&](const Function* f) {
        const auto same_name = [](const Upvalue& u, std::string_view name) { return u.local->name == name; };
        return f->parameters.size() != parameter_count || f->is_vararg != is_vararg ||
               !std::equal(f->upvalues.begin(), f->upvalues.end(), upvalue_names.begin(), upvalue_names.end(),
                           same_name);
    });
    return found;
}

const Function* Chunk::find_function(std::uint32_t first_line, std::uint32_t last_line, std::size_t parameter_count,
                                     bool is_vararg, List<std::string_view> upvalue_names) const {
    const auto found = find_functions(first_line, last_line, parameter_count, is_vararg, upvalue_names);
    return found.size() == 1 ? found.front() : nullptr;
}

const Expr* left_child(const Expr& expr) {
    switch (expr.kind) {
        case ExprKind::index:
            return expr.as<Index>().object;
        case ExprKind::call:
            return expr.as<Call>().callee;
        case ExprKind::method_call:
            return expr.as<MethodCall>().object;
        case ExprKind::binary:
            return expr.as<Binary>().left;
        case ExprKind::logical:
            return expr.as<Logical>().left;
        default:
            return nullptr;
    }
}

std::vector<const Expr*> left_spine(const Expr& expr) {
    std::vector<const Expr*> spine;
    for (const Expr* e = &expr; e; e = left_child(*e)) spine.push_back(e);
    return spine;
}

std::string_view spelling(UnaryOp op) {
    static constexpr std::array<std::string_view, 4> kText = {"-", "not", "#", "~"};
    return kText[static_cast<std::size_t>(op)];
}

std::string_view spelling(BinaryOp op) {
    static constexpr std::array<std::string_view, 19> kText = {"+",  "-",  "*",  "%",  "^", "/",  "//", "&", "|", "~",
                                                               "<<", ">>", "..", "==", "<", "<=", "~=", ">", ">="};
    return kText[static_cast<std::size_t>(op)];
}

std::string_view spelling(LogicalOp op) { return op == LogicalOp::and_ ? "and" : "or"; }

}  // namespace lunaria::lua
