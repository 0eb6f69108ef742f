#include "core/data/text/bytes.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"

namespace lunaria::text {

const std::array<int32_t, 256>& byte_letters() {
    static const auto all = [] {
        std::array<int32_t, 256> letters{};
        for (int byte = 0, others = 0; byte < 256; ++byte) {
            const bool is_printable =
                (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
            letters[static_cast<size_t>(byte)] = is_printable ? byte : 256 + others++;
        }
        return letters;
    }();
    return all;
}

BytePairs::BytePairs(std::string_view where, std::string_view merges) : words_(where, kByteWords) {
    int number = 0;
    for (size_t at = 0; at < merges.size(); ++number) {
        const size_t end = std::min(merges.find('\n', at), merges.size());
        std::string_view line = merges.substr(at, end - at);
        at = end + 1;
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty() || line.starts_with("#version")) continue;
        const size_t space = line.find(' ');
        if (space == std::string_view::npos || space == 0 || space + 1 == line.size())
            throw value_error(where, str("line ", number + 1, " of the merges is '", line, "', not two tokens"));
        ranks_.try_emplace({std::string(line.substr(0, space)), std::string(line.substr(space + 1))}, number);
    }
}

void BytePairs::add_word(std::string_view word, std::vector<std::string>& out) const {
    std::vector<std::string> parts;
    for (char byte : word) parts.push_back(utf8_of(byte_letters()[static_cast<uint8_t>(byte)]));
    while (parts.size() > 1) {
        poll_interrupt();
        int best = INT32_MAX;
        std::pair<std::string, std::string> chosen;
        for (size_t i = 0; i + 1 < parts.size(); ++i) {
            const auto it = ranks_.find(std::pair<std::string_view, std::string_view>(parts[i], parts[i + 1]));
            if (it == ranks_.end() || it->second >= best) continue;
            best = it->second;
            chosen = it->first;
        }
        if (best == INT32_MAX) break;
        std::vector<std::string> joined;
        for (size_t i = 0; i < parts.size(); ++i) {
            if (i + 1 < parts.size() && parts[i] == chosen.first && parts[i + 1] == chosen.second)
                joined.push_back(parts[i] + parts[i + 1]), ++i;
            else
                joined.push_back(std::move(parts[i]));
        }
        parts = std::move(joined);
    }
    out.insert(out.end(), parts.begin(), parts.end());
}

std::vector<std::string> BytePairs::tokens(std::string_view text) const {
    std::vector<std::string> list;
    for (const Pattern::Match& match : words_.all(text))
        add_word(text.substr(match.begin, match.end - match.begin), list);
    return list;
}

}  // namespace lunaria::text
