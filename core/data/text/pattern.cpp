#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/error.h"
#include "core/data/text/unicode.h"

namespace lunaria::text {

namespace {

// The limit of steps of one match, about a second. Patterns may take exponential time.
constexpr uint32_t kMostSteps = 20'000'000;

std::string message_of(int code) {
    PCRE2_UCHAR text[256];
    pcre2_get_error_message(code, text, sizeof text);
    return reinterpret_cast<char*>(text);
}

}  // namespace

struct Pattern::Body {
    std::string where;
    pcre2_code* code = nullptr;
    pcre2_match_context* context = nullptr;
    ~Body() {
        pcre2_match_context_free(context);
        pcre2_code_free(code);
    }
    PCRE2_SPTR bytes(std::string_view text) const { return reinterpret_cast<PCRE2_SPTR>(text.data()); }
    [[noreturn]] void fail(int error) const {
        throw value_error(where, str("the pattern cannot be matched: ", message_of(error)));
    }
};

Pattern::Pattern(std::string_view where, std::string_view pattern) : body_(std::make_unique<Body>()) {
    body_->where = where;
    int error = 0;
    PCRE2_SIZE at = 0;
    body_->code = pcre2_compile(body_->bytes(pattern), pattern.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                                &error, &at, nullptr);
    if (!body_->code)
        throw value_error(where, str("'", pattern, "' is no regular expression: ", message_of(error), " at byte ", at));
    pcre2_jit_compile(body_->code, PCRE2_JIT_COMPLETE);
    body_->context = pcre2_match_context_create(nullptr);
    if (!body_->context) throw memory_error(where, "there is no memory for the pattern");
    pcre2_set_match_limit(body_->context, kMostSteps);
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;

bool Pattern::find(std::string_view text, size_t from, Match& match) const {
    const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
        pcre2_match_data_create_from_pattern(body_->code, nullptr), &pcre2_match_data_free);
    if (!data) throw memory_error(body_->where, "there is no memory for a match");
    const int found = pcre2_match(body_->code, body_->bytes(text), text.size(), from, 0, data.get(), body_->context);
    if (found == PCRE2_ERROR_NOMATCH) return false;
    if (found < 0) body_->fail(found);
    const PCRE2_SIZE* places = pcre2_get_ovector_pointer(data.get());
    match = {places[0], std::max(places[0], places[1])};
    return true;
}

std::vector<Pattern::Match> Pattern::all(std::string_view text) const {
    const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
        pcre2_match_data_create_from_pattern(body_->code, nullptr), &pcre2_match_data_free);
    if (!data) throw memory_error(body_->where, "there is no memory for a match");
    std::vector<Match> list;
    // The first match looks whether the text is UTF-8.
    for (size_t from = 0, options = 0; from <= text.size(); options = PCRE2_NO_UTF_CHECK) {
        const int found = pcre2_match(body_->code, body_->bytes(text), text.size(), from,
                                      static_cast<uint32_t>(options), data.get(), body_->context);
        if (found == PCRE2_ERROR_NOMATCH) break;
        if (found < 0) body_->fail(found);
        const PCRE2_SIZE* places = pcre2_get_ovector_pointer(data.get());
        if (places[1] < from || places[0] > places[1]) body_->fail(PCRE2_ERROR_BADOFFSET);
        list.push_back({places[0], places[1]});
        from = places[1];
        if (places[0] < places[1]) continue;
        // After an empty match the search goes on a character later.
        ++from;
        while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
    }
    return list;
}

std::string Pattern::replaced(std::string_view text, std::string_view with, bool all) const {
    const uint32_t options = PCRE2_SUBSTITUTE_OVERFLOW_LENGTH | PCRE2_SUBSTITUTE_UNSET_EMPTY |
                             PCRE2_SUBSTITUTE_UNKNOWN_UNSET | (all ? PCRE2_SUBSTITUTE_GLOBAL : 0);
    std::string out(text.size() + with.size() + 64, '\0');
    for (int attempt = 0; attempt < 2; ++attempt) {
        PCRE2_SIZE size = out.size();
        const int done =
            pcre2_substitute(body_->code, body_->bytes(text), text.size(), 0, options, nullptr, body_->context,
                             body_->bytes(with), with.size(), reinterpret_cast<PCRE2_UCHAR*>(out.data()), &size);
        if (done >= 0) {
            out.resize(size);
            return out;
        }
        if (done != PCRE2_ERROR_NOMEMORY || attempt == 1) body_->fail(done);
        out.resize(size);
    }
    return out;
}

}  // namespace lunaria::text
