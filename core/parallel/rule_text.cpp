// Rules written as text in an operator's entry: "...!m!n,...!m!k->...!n!k". See rule_families.h for the marks.
#include <algorithm>
#include <map>

#include "core/parallel/rule_families.h"

namespace lunaria::parallel {

namespace {

struct Axis {
    char letter;
    char mark;  // '!', '&' or 0
};

struct Group {
    bool whole = false, leading = false;
    std::vector<Axis> axes;
};

[[noreturn]] void malformed(const Call& call, std::string_view text) {
    throw state_error(call.name(), str("the cut \"", text, "\" cannot be read"));
}

Group parse_group(const Call& call, std::string_view text, std::string_view all) {
    Group group;
    if (text == "-") {
        group.whole = true;
        return group;
    }
    if (text.starts_with("...")) {
        group.leading = true;
        text.remove_prefix(3);
    }
    char mark = 0;
    for (char c : text) {
        if (c == '!' || c == '&') {
            mark = c;
        } else if (c >= 'a' && c <= 'z') {
            group.axes.push_back({c, mark});
            mark = 0;
        } else {
            malformed(call, all);
        }
    }
    return group;
}

std::vector<Group> parse_groups(const Call& call, std::string_view text, std::string_view all) {
    std::vector<Group> groups;
    while (true) {
        const size_t comma = text.find(',');
        groups.push_back(parse_group(call, text.substr(0, comma), all));
        if (comma == std::string_view::npos) return groups;
        text.remove_prefix(comma + 1);
    }
}

struct Text {
    std::vector<Group> operands, results;
    std::map<char, Merge> merges;
    bool is_joint = false;
};

Text parse_cut(const Call& call, std::string_view all) {
    Text text;
    std::string_view groups = all.substr(0, all.find(' '));
    const size_t arrow = groups.find("->");
    if (arrow == std::string_view::npos) malformed(call, all);
    if (arrow > 0) text.operands = parse_groups(call, groups.substr(0, arrow), all);
    text.results = parse_groups(call, groups.substr(arrow + 2), all);
    for (std::string_view rest = all.substr(groups.size()); !rest.empty();) {
        rest.remove_prefix(1);
        const std::string_view word = rest.substr(0, rest.find(' '));
        if (word == "+") {
            text.is_joint = true;
        } else {
            if (word.size() < 3 || word[1] != ':' || !parse_merge(word.substr(2))) malformed(call, all);
            text.merges[word[0]] = *parse_merge(word.substr(2));
        }
        rest.remove_prefix(word.size());
    }
    return text;
}

// The factors of letters and of leading axes, which are numbered from the right.
class Names {
  public:
    Names(Rule& rule, const Text& text) : rule_(rule) {
        for (const auto* groups : {&text.operands, &text.results})
            for (const Group& group : *groups)
                for (const Axis& axis : group.axes) {
                    Letter& l = letters_[axis.letter];
                    if (axis.mark) l.mark = axis.mark;
                    (groups == &text.operands ? l.in_operands : l.in_results) = true;
                }
        for (const auto& [letter, merge] : text.merges) letters_[letter].merge = merge;
    }

    // The largest sizes; an axis of size 1 beside a longer one is broadcast. False: the ranks do not fit.
    bool measure(const Group& group, const Shape& shape, bool of_result) {
        if (group.whole) return true;
        const int leading = shape.rank() - static_cast<int>(group.axes.size());
        if (leading < 0 || (leading > 0 && !group.leading)) return false;
        for (int k = 0; k < shape.rank(); ++k) {
            Letter& l = of(group, k, leading);
            l.size = std::max(l.size, shape[k]);
            (of_result ? l.in_results : l.in_operands) = true;
        }
        return true;
    }
    void name(const Group& group, const Shape& shape, std::vector<AxisFactors>& axes) {
        if (group.whole) return;
        const int leading = shape.rank() - static_cast<int>(group.axes.size());
        for (int k = 0; k < shape.rank(); ++k) {
            Letter& l = of(group, k, leading);
            if (l.mark == '!' || shape[k] != l.size) continue;
            if (l.factor < 0) l.factor = rule_.add(kind_of(l), l.size, merge_of(l));
            axes[static_cast<size_t>(k)] = {l.factor};
        }
    }

  private:
    struct Letter {
        char mark = 0;
        bool in_operands = false, in_results = false;
        Merge merge = Merge::none;
        int64_t size = 0;
        int factor = -1;
    };

    Letter& of(const Group& group, int axis, int leading) {
        return axis < leading ? leading_[leading - axis]
                              : letters_[group.axes[static_cast<size_t>(axis - leading)].letter];
    }
    static Kind kind_of(const Letter& l) {
        if (l.mark == '&') return Kind::spread;
        return !l.in_operands ? Kind::make : l.in_results ? Kind::pass : Kind::reduce;
    }
    static Merge merge_of(const Letter& l) {
        if (l.mark == '&') return Merge::none;
        return l.in_results || l.merge != Merge::none ? l.merge : Merge::sum;
    }

    Rule& rule_;
    std::map<char, Letter> letters_;
    std::map<int, Letter> leading_;
};

}  // namespace

RulePtr text_rule(const Call& call, const Types& types, std::string_view given) {
    const Text text = parse_cut(call, given);
    auto rule = std::make_unique<Rule>(call, types);
    rule->is_jointly_linear = text.is_joint;
    const auto& params = call.op.signature.params;
    std::vector<int> group_of(params.size(), -1);
    int count = 0;
    for (size_t i = 0; i < params.size(); ++i)
        if (is_tensor_type(params[i].type)) group_of[i] = count++;
    if (count != static_cast<int>(text.operands.size())) malformed(call, given);
    // An operator that gives lists of different lengths has one group for all of them.
    auto result_group = [&](size_t j) -> const Group& {
        return text.results.size() == 1 ? text.results[0] : text.results.at(j);
    };
    if (text.results.size() != 1 && text.results.size() != types.size()) return nullptr;
    Names names(*rule, text);
    for (const Operand& o : rule->operands) {
        if (group_of[o.argument] < 0) continue;
        if (!names.measure(text.operands[static_cast<size_t>(group_of[o.argument])], o.shape, false)) return nullptr;
    }
    for (size_t j = 0; j < types.size(); ++j)
        if (!names.measure(result_group(j), types[j].shape, true)) return nullptr;
    for (Operand& o : rule->operands)
        if (group_of[o.argument] >= 0)
            names.name(text.operands[static_cast<size_t>(group_of[o.argument])], o.shape, o.axes);
    for (size_t j = 0; j < types.size(); ++j) names.name(result_group(j), types[j].shape, rule->results[j].axes);
    return rule;
}

}  // namespace lunaria::parallel
