#include "core/base/error.h"

#include <sstream>

#include "core/base/printable.h"

namespace lunaria {

Error::Error(ErrorKind kind, std::string_view where, std::string_view message)
    : kind_(kind), where_(where), message_(message) {
    compose();
}

Error Error::hint(std::string_view text) const {
    Error copy = *this;
    copy.hint_ = text;
    copy.compose();
    return copy;
}

void Error::compose() {
    full_ = where_.empty() ? message_ : where_ + ": " + message_;
    if (!hint_.empty()) full_ += "\n  hint: " + hint_;
    full_ = printable(full_);
}

void print_text(std::ostream& out, const void* characters) { out << static_cast<const char*>(characters); }

std::string joined(std::initializer_list<MessagePart> parts) {
    std::ostringstream out;
    for (const MessagePart& part : parts) part.print(out, part.value);
    return std::move(out).str();
}

}  // namespace lunaria
