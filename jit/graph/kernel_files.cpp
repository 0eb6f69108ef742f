#include "jit/graph/kernel_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <vector>

namespace lunaria::graph {

namespace {

constexpr char kMagic[8] = {'L', 'U', 'N', 'K', 'E', 'R', 'N', '1'};
constexpr size_t kMostBytes = size_t{1} << 26;

struct Header {
    char magic[8];
    uint64_t checksum, key_bytes, object_bytes;
};

uint64_t hash(std::string_view text, uint64_t seed) {
    uint64_t h = 0xcbf29ce484222325ull ^ (seed * 0x9e3779b97f4a7c15ull);
    for (unsigned char c : text) h = (h ^ c) * 0x100000001b3ull;
    return h ^ (h >> 29);
}

// Empty: nowhere.
std::filesystem::path folder() {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    if (cache && *cache == '/') return std::filesystem::path(cache) / "lunaria" / "kernels";
    const char* home = std::getenv("HOME");
    if (home && *home == '/') return std::filesystem::path(home) / ".cache" / "lunaria" / "kernels";
    return {};
}

std::filesystem::path path_of(std::string_view key) {
    std::filesystem::path at = folder();
    if (at.empty()) return {};
    char name[40];
    std::snprintf(name, sizeof name, "%016llx%016llx", static_cast<unsigned long long>(hash(key, 1)),
                  static_cast<unsigned long long>(hash(key, 2)));
    return at / name;
}

class File {
  public:
    File(const char* path, int flags) : fd_(open(path, flags | O_CLOEXEC, 0600)) {}
    ~File() {
        if (fd_ >= 0) close(fd_);
    }
    File(const File&) = delete;
    explicit operator bool() const { return fd_ >= 0; }
    int descriptor() const { return fd_; }

    std::string read_all() const {
        struct stat info;
        // Code is only taken from files that nobody else can have written.
        if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 022) ||
            info.st_size < 0 || static_cast<size_t>(info.st_size) > kMostBytes)
            return {};
        note_use(info.st_mtime);
        std::string content(static_cast<size_t>(info.st_size), 0);
        size_t done = 0;
        while (done < content.size()) {
            ssize_t n = ::read(fd_, content.data() + done, content.size() - done);
            if (n <= 0) return {};
            done += static_cast<size_t>(n);
        }
        return content;
    }
    bool write_all(std::string_view content) const {
        while (!content.empty()) {
            ssize_t n = ::write(fd_, content.data(), content.size());
            if (n <= 0) return false;
            content.remove_prefix(static_cast<size_t>(n));
        }
        return true;
    }

  private:
    // Files that are read stay young, to the day.
    void note_use(time_t last) const {
        constexpr time_t kDay = 24 * 60 * 60;
        if (std::time(nullptr) - last > kDay) futimens(fd_, nullptr);
    }

    int fd_;
};

struct Known {
    std::filesystem::file_time_type used;
    uint64_t bytes;
    std::filesystem::path path;
};

// What others remove meanwhile is left out.
std::vector<Known> known_files() {
    std::vector<Known> found;
    std::error_code failed;
    for (std::filesystem::directory_iterator at(folder(), failed), end; !failed && at != end; at.increment(failed)) {
        std::error_code gone;
        const auto used = at->last_write_time(gone);
        const uint64_t bytes = gone ? 0 : at->file_size(gone);
        if (!gone && at->is_regular_file(gone)) found.push_back({used, bytes, at->path()});
    }
    return found;
}

// The first file that a process writes, and some later ones, may be one too many.
void trim_now_and_then() {
    static std::atomic<unsigned> written = 0;
    if (written++ % 256 == 0) trim_kernel_files();
}

}  // namespace

void trim_kernel_files(uint64_t most) {
    if (folder().empty()) return;
    std::vector<Known> files = known_files();
    uint64_t bytes = 0;
    for (const Known& file : files) bytes += file.bytes;
    if (bytes <= most) return;
    std::ranges::sort(files, {}, &Known::used);
    for (const Known& file : files) {
        if (bytes <= most / 4 * 3) break;
        std::error_code failed;
        std::filesystem::remove(file.path, failed);
        bytes -= file.bytes;
    }
}

std::string read_kernel_file(std::string_view key) {
    const std::filesystem::path path = path_of(key);
    if (path.empty()) return {};
    File file(path.c_str(), O_RDONLY | O_NOFOLLOW);
    if (!file) return {};
    const std::string content = file.read_all();
    Header header;
    if (content.size() < sizeof header) return {};
    std::memcpy(&header, content.data(), sizeof header);
    const std::string_view rest = std::string_view(content).substr(sizeof header);
    if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.key_bytes != key.size() ||
        rest.size() < key.size() || header.object_bytes != rest.size() - key.size() ||
        header.checksum != hash(rest, 3) || rest.substr(0, key.size()) != key)
        return {};
    return std::string(rest.substr(key.size()));
}

void write_kernel_file(std::string_view key, std::string_view object) {
    const std::filesystem::path path = path_of(key);
    if (path.empty()) return;
    std::error_code failed;
    std::filesystem::create_directories(path.parent_path(), failed);
    if (failed) return;
    std::string rest(key);
    rest += object;
    Header header{{}, hash(rest, 3), key.size(), object.size()};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    std::string content(reinterpret_cast<const char*>(&header), sizeof header);
    content += rest;
    std::string draft = path.string() + ".XXXXXX";
    int fd = mkstemp(draft.data());
    if (fd < 0) return;
    close(fd);
    bool complete = false;
    {
        File file(draft.c_str(), O_WRONLY | O_TRUNC);
        complete = file && file.write_all(content);
    }
    if (complete) std::filesystem::rename(draft, path, failed);
    if (!complete || failed) std::filesystem::remove(draft, failed);
    trim_now_and_then();
}

}  // namespace lunaria::graph
