#include "core/io/inside.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/io/descriptor.h"

namespace lunaria {

namespace {

class InsideSource final : public Source {
  public:
    InsideSource(std::string name, uint64_t size, int file) : Source(std::move(name), size), file_(file) {}

  private:
    void read_some(uint64_t offset, char* to, size_t bytes) const override {
        while (bytes > 0) {
            const ssize_t got = pread(file_.number(), to, bytes, static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) throw error(str("cannot be read: ", std::strerror(errno)));
            if (got == 0) throw error("became shorter while it was read");
            to += got;
            bytes -= static_cast<size_t>(got);
            offset += static_cast<uint64_t>(got);
        }
    }
    Descriptor file_;
};

}  // namespace

std::unique_ptr<Source> open_inside(const std::string& folder, const std::string& path, const std::string& name) {
    auto refuse = [&](std::string_view why) -> Error {
        return file_error(name, str("refers to the file '", path.substr(0, 200), "', ", why));
    };
    if (path.empty() || path.find('\0') != std::string::npos || path.size() > 4096) throw refuse("which is no path");
    if (path[0] == '/') throw refuse("which is not relative to its own folder");
    Descriptor at(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (at.number() < 0) throw refuse(str("whose folder cannot be opened: ", std::strerror(errno)));
    // Opens the names one after the other without following links, so that the file that is opened is the file that was
    // checked.
    for (size_t begin = 0; begin <= path.size();) {
        const size_t end = std::min(path.find('/', begin), path.size());
        const std::string part = path.substr(begin, end - begin);
        const bool last = end == path.size();
        begin = end + 1;
        if (part == "..") throw refuse("which lies outside of its folder");
        if (part.empty() || part == ".") {
            if (last) throw refuse("which is a folder");
            continue;
        }
        // Does not wait, should it be a pipe.
        const int flags = last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY;
        const int next = openat(at.number(), part.c_str(), flags | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            throw refuse(errno == ELOOP || errno == ENOTDIR ? std::string("which goes by way of a symbolic link")
                                                            : str("which cannot be opened: ", std::strerror(errno)));
        at.reset(next);
    }
    struct stat status {};
    if (fstat(at.number(), &status) != 0) throw refuse(str("which cannot be looked at: ", std::strerror(errno)));
    if (!S_ISREG(status.st_mode)) throw refuse("which is no regular file");
    if (status.st_nlink > 1) throw refuse("which has several hard links");
    const int own = fcntl(at.number(), F_DUPFD_CLOEXEC, 0);
    if (own < 0) throw refuse(str("which cannot be opened: ", std::strerror(errno)));
    return std::make_unique<InsideSource>(folder + "/" + path, static_cast<uint64_t>(status.st_size), own);
}

}  // namespace lunaria
