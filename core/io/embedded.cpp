#include "core/io/embedded.h"

#include <algorithm>

// Defined by the assembler file that the build writes from embedded.S.in.
extern "C" {
extern const lunaria::EmbeddedFile lunaria_embedded_begin[] __attribute__((visibility("hidden")));
extern const lunaria::EmbeddedFile lunaria_embedded_end[] __attribute__((visibility("hidden")));
}

namespace lunaria {

std::span<const EmbeddedFile> embedded_files() { return {lunaria_embedded_begin, lunaria_embedded_end}; }

std::string_view embedded_text(std::string_view name) {
    const auto files = embedded_files();
    const auto found =
        std::ranges::lower_bound(files, name, {}, [](const EmbeddedFile& f) { return std::string_view(f.name); });
    if (found == files.end() || found->name != name) return {};
    return found->text();
}

}  // namespace lunaria
