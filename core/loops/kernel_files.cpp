#include "core/loops/kernel_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
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

class File {
  public:
    explicit File(int fd) : fd_(fd) {}
    File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    ~File() {
        if (fd_ >= 0) close(fd_);
    }
    explicit operator bool() const { return fd_ >= 0; }
    int descriptor() const { return fd_; }

    std::string read(size_t bytes) const {
        std::string content(bytes, 0);
        size_t done = 0;
        while (done < bytes) {
            const ssize_t n = ::read(fd_, content.data() + done, bytes - done);
            if (n <= 0) return {};
            done += static_cast<size_t>(n);
        }
        return content;
    }
    bool write_all(std::string_view content) const {
        while (!content.empty()) {
            const ssize_t n = ::write(fd_, content.data(), content.size());
            if (n <= 0) return false;
            content.remove_prefix(static_cast<size_t>(n));
        }
        return true;
    }

  private:
    int fd_;
};

std::string path_of_caches() {
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/') return cache;
    if (const char* home = std::getenv("HOME"); home && *home == '/') return std::string(home) + "/.cache";
    return {};
}

// A folder that is not a link, belongs to this user, and is closed to writing by others.
File own_folder(int parent, const char* name, bool create) {
    if (create) mkdirat(parent, name, 0700);
    File folder(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info;
    if (!folder || fstat(folder.descriptor(), &info) != 0 || info.st_uid != geteuid()) return File(-1);
    if ((info.st_mode & 077) && fchmod(folder.descriptor(), 0700) != 0) return File(-1);
    return folder;
}

// The folder of the kernels; none: there is no cache. All work in it goes through its descriptor, so that it stays the
// folder that was checked.
File kernel_folder(bool create) {
    const std::string caches = path_of_caches();
    if (caches.empty()) return File(-1);
    if (create) {
        std::error_code failed;
        std::filesystem::create_directories(caches, failed);
    }
    const File parent(open(caches.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent) return File(-1);
    const File mine = own_folder(parent.descriptor(), "lunaria", create);
    return mine ? own_folder(mine.descriptor(), "kernels", create) : File(-1);
}

constexpr size_t kNameLength = 32, kDraftLength = kNameLength + 17;

std::string hexadecimal(uint64_t number) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
    return digits;
}

std::string name_of(std::string_view key) { return hexadecimal(hash(key, 1)) + hexadecimal(hash(key, 2)); }

// A file that is being written has its final name, a point and a number.
bool is_draft(std::string_view name) { return name.size() == kDraftLength && name[kNameLength] == '.'; }

bool may_be_entry(std::string_view name) {
    if (name.size() != kNameLength && !is_draft(name)) return false;
    return name.find_first_not_of("0123456789abcdef") == (is_draft(name) ? kNameLength : name.npos) &&
           name.find_first_not_of("0123456789abcdef", kNameLength + 1) == name.npos;
}

// The facts about a regular file of this user; nothing for links, devices and pipes.
std::optional<struct stat> facts(int folder, const std::string& name) {
    struct stat info;
    if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode) ||
        info.st_uid != geteuid())
        return std::nullopt;
    return info;
}

// Opening a pipe would wait for its other end.
File open_entry(int folder, const std::string& name) {
    if (!facts(folder, name)) return File(-1);
    return File(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

bool begins_as_entry(int folder, const std::string& name) {
    const File file = open_entry(folder, name);
    return file && file.read(sizeof kMagic) == std::string_view(kMagic, sizeof kMagic);
}

struct Known {
    time_t used;
    uint64_t bytes;
    std::string name;
};

// An entry must have both an entry's name and its first bytes.
std::vector<Known> known_entries(int folder) {
    std::vector<Known> found;
    const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* list = again < 0 ? nullptr : fdopendir(again);
    if (!list) {
        if (again >= 0) close(again);
        return found;
    }
    while (const dirent* item = readdir(list)) {
        const std::string name = item->d_name;
        if (!may_be_entry(name)) continue;
        if (const auto info = facts(folder, name))
            found.push_back({info->st_mtime, static_cast<uint64_t>(info->st_size), name});
    }
    closedir(list);
    return found;
}

uint64_t bytes_of(const std::vector<Known>& entries) {
    uint64_t bytes = 0;
    for (const Known& entry : entries) bytes += entry.bytes;
    return bytes;
}

// The first file that a process writes may be one too many, and so may some later ones.
void trim_now_and_then() {
    static std::atomic<unsigned> written = 0;
    if (written++ % 256 == 0) trim_kernel_files();
}

// Reading a file renews its time, once a day.
void note_use(const File& file, time_t last) {
    constexpr time_t kDay = 24 * 60 * 60;
    if (std::time(nullptr) - last > kDay) futimens(file.descriptor(), nullptr);
}

std::string draft_of(const std::string& name) {
    static std::atomic<uint64_t> written = 0;
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t numbers[] = {static_cast<uint64_t>(getpid()), static_cast<uint64_t>(now.tv_sec),
                                static_cast<uint64_t>(now.tv_nsec), written++};
    return name + "." + hexadecimal(hash({reinterpret_cast<const char*>(numbers), sizeof numbers}, 4));
}

}  // namespace

void trim_kernel_files(uint64_t most) {
    const File folder = kernel_folder(false);
    if (!folder) return;
    std::vector<Known> entries = known_entries(folder.descriptor());
    if (bytes_of(entries) <= most) return;
    // Other files with such a name are neither counted nor touched.
    std::erase_if(entries, [&](const Known& entry) { return !begins_as_entry(folder.descriptor(), entry.name); });
    uint64_t bytes = bytes_of(entries);
    if (bytes <= most) return;
    std::ranges::sort(entries, {}, &Known::used);
    for (const Known& entry : entries) {
        if (bytes <= most / 4 * 3) break;
        unlinkat(folder.descriptor(), entry.name.c_str(), 0);
        bytes -= entry.bytes;
    }
}

std::string read_kernel_file(std::string_view key) {
    const File folder = kernel_folder(false);
    if (!folder) return {};
    const File file = open_entry(folder.descriptor(), name_of(key));
    struct stat info;
    // Code is only taken from files to which only this user can have written.
    if (!file || fstat(file.descriptor(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
        (info.st_mode & 022) || info.st_size < 0 || static_cast<size_t>(info.st_size) > kMostBytes)
        return {};
    note_use(file, info.st_mtime);
    const std::string content = file.read(static_cast<size_t>(info.st_size));
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
    const File folder = kernel_folder(true);
    if (!folder) return;
    const std::string name = name_of(key), draft = draft_of(name);
    struct stat info;
    // A damaged entry is replaced; a link, a folder or a pipe in its place is not.
    if (fstatat(folder.descriptor(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(info.st_mode)) return;
    std::string rest(key);
    rest += object;
    Header header{{}, hash(rest, 3), key.size(), object.size()};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    std::string content(reinterpret_cast<const char*>(&header), sizeof header);
    content += rest;
    bool complete = false;
    {
        const File file(openat(folder.descriptor(), draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (!file) return;
        complete = file.write_all(content);
    }
    if (!complete || renameat(folder.descriptor(), draft.c_str(), folder.descriptor(), name.c_str()) != 0)
        unlinkat(folder.descriptor(), draft.c_str(), 0);
    trim_now_and_then();
}

}  // namespace lunaria::graph
