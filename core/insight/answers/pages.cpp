#include "core/insight/answers/pages.h"

#include <algorithm>
#include <span>

#include "core/io/embedded.h"
#include "core/io/stream.h"

// Defined by the assembler file that the build writes.
extern "C" {
extern const lunaria::EmbeddedFile lunaria_pages_begin[] __attribute__((visibility("hidden")));
extern const lunaria::EmbeddedFile lunaria_pages_end[] __attribute__((visibility("hidden")));
}

namespace lunaria::insight {

namespace {

constexpr std::pair<std::string_view, const char*> kTypes[] = {{".html", "text/html; charset=utf-8"},
                                                               {".js", "text/javascript; charset=utf-8"},
                                                               {".css", "text/css; charset=utf-8"},
                                                               {".svg", "image/svg+xml"},
                                                               {".png", "image/png"},
                                                               {".json", "application/json; charset=utf-8"}};

std::string unpacked(std::string_view bytes) {
    const auto source = memory_source("page", bytes);
    const auto stream = gzip_stream(*source);
    // gzip's last four bytes are the size.
    const auto* end = reinterpret_cast<const unsigned char*>(bytes.data() + bytes.size());
    std::string text(static_cast<size_t>(end[-4] | end[-3] << 8 | end[-2] << 16), '\0');
    stream->read(text.data(), text.size());
    stream->finish();
    return text;
}

}  // namespace

Answer page(std::string_view name, bool reads_gzip) {
    const std::span<const EmbeddedFile> files(lunaria_pages_begin, lunaria_pages_end);
    const auto file = std::ranges::find(files, name, [](const EmbeddedFile& f) { return std::string_view(f.name); });
    if (file == files.end()) return error_answer(404, "there is no such page");
    Answer answer;
    for (const auto& [ending, type] : kTypes)
        if (name.ends_with(ending)) answer.type = type;
    if (reads_gzip) {
        answer.body = file->text();
        answer.headers.emplace_back("Content-Encoding", "gzip");
    } else {
        answer.body = unpacked(file->text());
    }
    return answer;
}

}  // namespace lunaria::insight
