#include "jit/frontend/cursor.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "jit/frontend/literals.h"
#include "jit/frontend/loose_scan.h"

namespace lunaria::lua {

namespace {

using enum TokenKind;

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

enum class Group : std::uint8_t { paren, bracket, brace, block, repeat, count };

struct Open {
    Group group;
    TokenKind kind;           // the keyword or bracket
    std::size_t token;        // its index
    std::size_t locals;       // number of locals visible before it
    int commas = 0;           // directly inside it
    bool parameters = false;  // the parentheses of a function's parameters
    bool awaits_parameters = false;
    std::vector<std::string_view> keys;
};

// Walks the tokens before the cursor once, keeping the open groups and the visible locals.
class TokenWalk {
  public:
    TokenWalk(std::string_view text, const std::vector<LooseToken>& tokens)
        : text_(text), tokens_(tokens), match_(tokens.size(), kNone) {
        for (std::size_t i = 0; i < tokens.size(); ++i) step(i);
    }

    std::vector<std::string> visible_locals() const {
        std::vector<std::string> names;
        std::unordered_set<std::string_view> seen;
        for (std::size_t i = locals_.size(); i-- > 0;)
            if (seen.insert(locals_[i]).second) names.emplace_back(locals_[i]);
        return names;
    }

    // The chain that ends with the token; empty when the token ends none.
    NameChain chain_to(std::size_t last) const;
    std::optional<CallSite> call_at(std::size_t count) const;
    bool ends_chain(std::size_t i) const {
        return i < tokens_.size() && (is(i, name) || is(i, right_paren) || is(i, right_bracket) ||
                                      ((is(i, right_brace) || is(i, string)) && i > 0 && ends_callee(i)));
    }

  private:
    bool is(std::size_t i, TokenKind kind) const { return i < tokens_.size() && tokens_[i].kind == kind; }
    std::string_view text(std::size_t i) const {
        return text_.substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin);
    }
    // A table or string is part of a chain when it is the argument of a call: `f{...}`, `f"..."`.
    bool ends_callee(std::size_t i) const {
        const std::size_t first = is(i, right_brace) ? match_[i] : i;
        return first != kNone && first > 0 &&
               (is(first - 1, name) || is(first - 1, right_paren) || is(first - 1, right_bracket));
    }

    void open(Group group, std::size_t i) {
        Open entry;
        entry.group = group;
        entry.kind = tokens_[i].kind;
        entry.token = i;
        entry.locals = locals_.size();
        open_.push_back(std::move(entry));
        ++counts_[static_cast<std::size_t>(group)];
    }
    void pop() {
        --counts_[static_cast<std::size_t>(open_.back().group)];
        open_.pop_back();
    }
    // Closes down to the innermost opening of the group; a closer without one is ignored. Each opening is dropped once,
    // so that the whole walk is linear.
    bool close(Group group, std::size_t i, bool keep_locals = false) {
        if (counts_[static_cast<std::size_t>(group)] == 0) return false;
        while (open_.back().group != group) pop();
        if (group != Group::block && group != Group::repeat)
            match_[i] = open_.back().token;
        else if (!keep_locals)
            locals_.resize(std::min(locals_.size(), open_.back().locals));
        pop();
        return true;
    }
    void step(std::size_t i);
    void step_name(std::size_t i);
    // Names of a local statement run from `local` to the first token that cannot belong to them.
    void step_local_list(std::size_t i);

    std::string_view text_;
    const std::vector<LooseToken>& tokens_;
    std::vector<std::size_t> match_;  // the opening bracket of a closing one
    std::vector<Open> open_;
    std::array<std::size_t, static_cast<std::size_t>(Group::count)> counts_{};
    std::vector<std::string_view> locals_, loop_names_;
    bool in_local_list_ = false, in_loop_names_ = false;
};

void TokenWalk::step(std::size_t i) {
    const TokenKind kind = tokens_[i].kind;
    if (in_local_list_) step_local_list(i);
    if (in_loop_names_ && kind != name && kind != comma) in_loop_names_ = false;
    switch (kind) {
        case name:
            return step_name(i);
        case local_:
            in_local_list_ = true;
            return;
        case function_:
            open(Group::block, i);
            open_.back().awaits_parameters = true;
            return;
        case for_:
            open(Group::block, i);
            loop_names_.clear();
            in_loop_names_ = true;
            return;
        case while_:
        case if_:
            return open(Group::block, i);
        case do_:
            // The `do` of a loop opens no further block.
            if (open_.empty() || (open_.back().kind != for_ && open_.back().kind != while_))
                return open(Group::block, i);
            if (open_.back().kind == for_) locals_.insert(locals_.end(), loop_names_.begin(), loop_names_.end());
            loop_names_.clear();
            open_.back().kind = do_;
            return;
        case elseif_:
        case else_:
            close(Group::block, i);
            return open(Group::block, i);
        case end_:
            close(Group::block, i);
            return;
        case repeat_:
            return open(Group::repeat, i);
        case until_:
            close(Group::repeat, i, true);  // the condition still sees the locals
            return;
        case left_paren: {
            const bool parameters = !open_.empty() && open_.back().awaits_parameters;
            if (parameters) open_.back().awaits_parameters = false;
            open(Group::paren, i);
            open_.back().parameters = parameters;
            return;
        }
        case left_bracket:
            return open(Group::bracket, i);
        case left_brace:
            return open(Group::brace, i);
        case right_paren:
            close(Group::paren, i);
            return;
        case right_bracket:
            close(Group::bracket, i);
            return;
        case right_brace:
            close(Group::brace, i);
            return;
        case colon:
            if (!open_.empty() && open_.back().awaits_parameters) locals_.push_back("self");
            return;
        case comma:
        case semicolon:
            if (!open_.empty()) ++open_.back().commas;
            return;
        case assign:
            if (i >= 2 && !open_.empty() && open_.back().group == Group::brace && is(i - 1, name) &&
                (is(i - 2, left_brace) || is(i - 2, comma) || is(i - 2, semicolon)))
                open_.back().keys.push_back(text(i - 1));
            return;
        default:
            return;
    }
}

void TokenWalk::step_name(std::size_t i) {
    if (in_loop_names_)
        loop_names_.push_back(text(i));
    else if (!open_.empty() && open_.back().parameters)
        locals_.push_back(text(i));
}

void TokenWalk::step_local_list(std::size_t i) {
    if (is(i, function_)) {
        if (is(i + 1, name)) locals_.push_back(text(i + 1));
        in_local_list_ = false;
    } else if (is(i, name)) {
        const bool is_attribute = is(i - 1, less);
        if (is_attribute) return;
        if (is(i - 1, local_) || is(i - 1, comma))
            locals_.push_back(text(i));
        else
            in_local_list_ = false;
    } else {
        in_local_list_ = is(i, comma) || is(i, less) || is(i, greater);
    }
}

NameChain TokenWalk::chain_to(std::size_t last) const {
    NameChain chain;
    if (!ends_chain(last)) return chain;
    std::size_t i = last;
    bool is_path = true;
    std::vector<std::variant<std::string, std::int64_t>> reversed;
    for (;;) {
        if (is(i, name)) {
            reversed.emplace_back(std::string(text(i)));
            if (i < 2 || !(is(i - 1, dot) || is(i - 1, colon)) || !ends_chain(i - 2)) break;
            is_path = is_path && is(i - 1, dot);
            i -= 2;
            continue;
        }
        const std::size_t first = is(i, string) ? i : match_[i];
        if (first == kNone) break;
        if (is(i, right_bracket) && i == first + 2 && (is(first + 1, string) || is(first + 1, integer))) {
            const std::string_view key = text(first + 1);
            const auto number = is(first + 1, integer) ? parse_number(key) : std::nullopt;
            if (number && std::holds_alternative<std::int64_t>(*number))
                reversed.emplace_back(std::get<std::int64_t>(*number));
            else if (key.size() >= 2 && key.front() == key.back() && key.find('\\') == std::string_view::npos)
                reversed.emplace_back(std::string(key.substr(1, key.size() - 2)));
            else
                is_path = false;
        } else {
            is_path = false;
        }
        i = first;
        // An expression before a call or an index belongs to the chain; a parenthesis on its own begins it.
        if (i == 0 || !ends_chain(i - 1)) break;
        --i;
    }
    chain.begin = tokens_[i].begin;
    chain.end = tokens_[last].end;
    chain.text = text_.substr(chain.begin, chain.end - chain.begin);
    if (is_path) chain.path.assign(reversed.rbegin(), reversed.rend());
    return chain;
}

// `count` tokens come before the word at the cursor.
std::optional<CallSite> TokenWalk::call_at(std::size_t count) const {
    const Open* table = nullptr;
    for (std::size_t k = open_.size(); k-- > 0;) {
        const Open& entry = open_[k];
        if (entry.group == Group::block || entry.group == Group::repeat || entry.parameters) return std::nullopt;
        const std::size_t before = entry.token - 1;
        const bool follows_callee = entry.token > 0 && ends_chain(before);
        if (entry.group == Group::brace && !follows_callee) {
            // An argument itself, or a nested expression, for which the names of options are no help.
            const bool is_argument = !table && entry.token > 0 && (is(before, left_paren) || is(before, comma)) &&
                                     k > 0 && open_[k - 1].group == Group::paren;
            if (!is_argument) return std::nullopt;
            table = &entry;
            continue;
        }
        if (entry.group == Group::bracket || !follows_callee) {
            if (table) return std::nullopt;
            continue;
        }
        CallSite site;
        if (entry.group == Group::brace) {
            if (table) return std::nullopt;
            table = &entry;
        } else {
            site.argument = entry.commas;
        }
        const bool is_method = before >= 2 && is(before, name) && is(before - 1, colon) && ends_chain(before - 2);
        if (is_method) site.method = text(before);
        site.callee = chain_to(is_method ? before - 2 : before);
        if (table) {
            site.in_table = true;
            site.keys.assign(table->keys.begin(), table->keys.end());
            const std::size_t previous = count - 1;  // at least the brace comes before
            site.at_key = previous == table->token || is(previous, comma) || is(previous, semicolon);
        }
        return site;
    }
    return std::nullopt;
}

}  // namespace

CursorContext cursor_context(std::string_view text, std::size_t cursor) {
    text = text.substr(0, std::min(cursor, text.size()));
    CursorContext context;
    context.word_begin = text.size();
    const LooseScan scan = scan_loosely(text);
    const auto& tokens = scan.tokens;
    std::vector<LooseToken> before = tokens;
    switch (scan.cut_off) {
        case CutOff::nothing:
            if (tokens.empty() || tokens.back().end != text.size()) break;
            if (tokens.back().kind == integer) context.place = CursorPlace::number;
            if (tokens.back().kind == name || static_cast<int>(tokens.back().kind) < kKeywordCount) {
                context.word_begin = tokens.back().begin;
                context.word = text.substr(context.word_begin);
                before.pop_back();
            }
            break;
        case CutOff::string:
        case CutOff::long_string: {
            const bool is_short = scan.cut_off == CutOff::string;
            context.place = is_short ? CursorPlace::string : CursorPlace::long_string;
            std::size_t begin = scan.cut_begin + 1;
            if (!is_short) begin = std::min(text.find('[', begin) + 1, text.size());
            context.word_begin = begin;
            context.word = text.substr(begin);
            break;
        }
        case CutOff::comment:
            context.place = CursorPlace::comment;
            break;
    }

    const TokenWalk walk(text, before);
    context.locals = walk.visible_locals();
    if (context.place == CursorPlace::comment || context.place == CursorPlace::number) return context;
    context.call = walk.call_at(before.size());
    if (before.empty()) return context;

    const std::size_t last = before.size() - 1;
    const TokenKind kind = before[last].kind;
    if (context.place == CursorPlace::code) {
        if ((kind == dot || kind == colon) && last > 0 && walk.ends_chain(last - 1)) {
            context.separator = kind == dot ? '.' : ':';
            context.base = walk.chain_to(last - 1);
        }
    } else if (kind == left_bracket && last > 0 && walk.ends_chain(last - 1)) {
        context.separator = '[';
        context.base = walk.chain_to(last - 1);
    } else if (walk.ends_chain(last)) {
        // `require "wo|`: the string is the argument.
        context.call.emplace();
        context.call->callee = walk.chain_to(last);
    }
    return context;
}

}  // namespace lunaria::lua
