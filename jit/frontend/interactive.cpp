#include "jit/frontend/interactive.h"

#include <algorithm>
#include <optional>

namespace lunaria::lua {

namespace {

constexpr int kIndentWidth = 2;

std::unique_ptr<Chunk> parse_fragment(std::string source, std::string name) {
    return parse(std::move(source), std::move(name), TextKind::fragment);
}

std::optional<SyntaxError> failure_of(std::unique_ptr<Chunk> (*parse_as)(std::string, std::string),
                                      std::string_view text) {
    try {
        parse_as(std::string(text), "input");
        return std::nullopt;
    } catch (const SyntaxError& error) {
        return error;
    }
}

}  // namespace

InputState input_state(std::string_view text) {
    const auto as_expression = failure_of(parse_expression_list, text);
    if (!as_expression) return {Completeness::complete, {}};
    const auto as_chunk = failure_of(parse_fragment, text);
    if (!as_chunk) return {Completeness::complete, {}};
    // An incomplete block is a better guide for the indentation than an expression that stopped early.
    const SyntaxError& error = as_chunk->incomplete() ? *as_chunk : *as_expression;
    if (!error.incomplete()) return {Completeness::invalid, {}};
    const bool within_text = error.problem().message.starts_with("unfinished");
    // Outside every block and bracket, the rest of an expression goes one step in.
    const int depth = within_text ? 0 : std::max(error.problem().open_lines, 1);
    return {Completeness::incomplete, std::string(static_cast<std::size_t>(depth * kIndentWidth), ' ')};
}

bool is_expression(std::string_view text) { return !failure_of(parse_expression_list, text); }

std::unique_ptr<Chunk> parse_interactive(std::string source, std::string name) {
    try {
        return parse_expression_list(source, name);
    } catch (const SyntaxError& as_expression) {
        try {
            return parse_fragment(std::move(source), std::move(name));
        } catch (const SyntaxError& as_chunk) {
            const std::uint32_t expression_at = as_expression.problem().span.begin;
            if (as_chunk.problem().span.begin >= expression_at) throw;
            throw as_expression;
        }
    }
}

}  // namespace lunaria::lua
