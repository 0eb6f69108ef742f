#include "kernel/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace lunaria::jupyter {

Log::Log() : file_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10)) {}

Log::~Log() {
    if (file_ >= 0) close(file_);
}

void Log::line(std::string_view text) const {
    if (file_ < 0) return;
    std::string row = "lunaria kernel: ";
    // Bytes from outside must not control the terminal.
    for (const char c : text.substr(0, 2000)) row += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    row += '\n';
    // In one call, so that lines of several threads do not mix. A failure to write the log cannot be reported.
    if (write(file_, row.data(), row.size()) < 0) return;
}

}  // namespace lunaria::jupyter
