#include "core/io/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "core/base/interrupt.h"

namespace lunaria {
namespace {

// The block between two looks at the interrupt flag: some milliseconds of work.
constexpr size_t kChunk = size_t{8} << 20;

std::string reason(int code) { return std::system_category().message(code); }

void check_path(const std::string& path) {
    if (path.empty()) throw file_error("file", "the path is empty");
    if (path.find('\0') != std::string::npos)
        throw file_error("file", "the path contains a zero byte (NUL), which no file name can hold");
}

std::string kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    if (S_ISSOCK(mode)) return "a socket";
    return "not a file";
}

class MemorySource final : public Source {
  public:
    MemorySource(std::string name, std::string_view bytes) : Source(std::move(name), bytes.size()), bytes_(bytes) {}

  private:
    void read_some(uint64_t offset, char* to, size_t bytes) const override {
        std::memcpy(to, bytes_.data() + offset, bytes);
    }
    std::string_view bytes_;
};

class FileSource final : public Source {
  public:
    FileSource(std::string name, uint64_t size, int file) : Source(std::move(name), size), file_(file) {}

  private:
    void read_some(uint64_t offset, char* to, size_t bytes) const override {
        while (bytes > 0) {
            poll_interrupt();
            ssize_t got = pread(file_.number(), to, std::min(bytes, kChunk), static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) throw error("cannot be read: " + reason(errno));
            if (got == 0) throw error("became shorter while it was being read");
            to += got;
            offset += static_cast<uint64_t>(got);
            bytes -= static_cast<size_t>(got);
        }
    }
    Descriptor file_;
};

// Twelve random characters.
std::string random_name() {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz012345";
    std::array<unsigned char, 12> bytes;
    std::string name(bytes.size(), 'x');
    if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        // Names need not be secret, since a name that exists is never opened; they must differ.
        static std::atomic<uint64_t> count = 0;
        const uint64_t number = static_cast<uint64_t>(getpid()) << 32 ^ count++;
        for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(number >> (5 * i));
    }
    for (size_t i = 0; i < bytes.size(); ++i) name[i] = kLetters[bytes[i] % kLetters.size()];
    return name;
}

// Calls make(name) with names that begin with `stem` until one is free; make gives -1 and sets errno as open does.
template <class Make>
std::string under_free_name(const std::string& stem, std::string_view ending, const Make& make) {
    for (int attempt = 0; attempt < 100; ++attempt) {
        std::string name = str(stem, ".", random_name(), ending);
        if (make(name.c_str()) >= 0) return name;
        if (errno != EEXIST) return {};
    }
    return {};
}

// Removes the file of this name unless a writer holds its lock. A lock ends with the writer's process.
void remove_abandoned(const char* path) {
    const Descriptor left(open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat opened, named;
    if (left && fstat(left.number(), &opened) == 0 && S_ISREG(opened.st_mode) &&
        flock(left.number(), LOCK_EX | LOCK_NB) == 0 && lstat(path, &named) == 0 && named.st_ino == opened.st_ino &&
        named.st_dev == opened.st_dev)
        unlink(path);
}

// A free name for a draft of `target`, which make(name) takes as under_free_name says. The first one tried is the same
// each time, so that what a killed process left under it is removed when the file is written next.
template <class Make>
std::string under_draft_name(const std::string& target, const Make& make) {
    std::string name = target + ".lunaria.part";
    remove_abandoned(name.c_str());
    if (make(name.c_str()) >= 0) return name;
    return under_free_name(target, ".part", make);
}

std::string temporary_stem() {
    const char* folder = std::getenv("TMPDIR");
    return str(folder && *folder ? folder : "/tmp", "/lunaria");
}

std::string path_of_descriptor(int number) { return str("/proc/self/fd/", number); }

}  // namespace

void Source::read(uint64_t offset, void* to, size_t bytes) const {
    if (offset > size_ || bytes > size_ - offset)
        throw error(
            str("truncated: ", bytes, " bytes are expected at offset ", offset, ", but the file ends at ", size_));
    if (bytes > 0) read_some(offset, static_cast<char*>(to), bytes);
}

std::string Source::text(uint64_t offset, size_t bytes) const {
    if (offset > size_ || bytes > size_ - offset) read(offset, nullptr, bytes);  // throws before anything is allocated
    std::string result(bytes, '\0');
    read(offset, result.data(), bytes);
    return result;
}

std::unique_ptr<Source> memory_source(std::string name, std::string_view bytes) {
    return std::make_unique<MemorySource>(std::move(name), bytes);
}

std::unique_ptr<Source> open_source(const std::string& path) {
    check_path(path);
    // O_NONBLOCK: opening a pipe without a writer would wait for one.
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) throw file_error(path, "cannot be opened: " + reason(errno));
    struct stat info;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(file);
        throw file_error(path, "is " + kind_of(info.st_mode) + ", not a regular file");
    }
    return std::make_unique<FileSource>(path, static_cast<uint64_t>(info.st_size), file);
}

std::string read_file(const std::string& path, uint64_t limit) {
    auto source = open_source(path);
    if (source->size() > limit)
        throw source->error(str("has ", source->size(), " bytes; at most ", limit, " are read here"));
    return source->text(0, source->size());
}

void Sink::write(const void* bytes, size_t count) {
    write_some(static_cast<const char*>(bytes), count);
    written_ += count;
}

std::string folder_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

FileSink::FileSink(const std::string& path, Interrupts interrupts, unsigned permissions)
    : Sink(path), target_(path), interrupts_(interrupts) {
    check_path(path);
    // A symbolic link stays a link: the file that it names is replaced.
    if (char* resolved = realpath(path.c_str(), nullptr)) {
        target_ = resolved;
        std::free(resolved);
    }
    struct stat info;
    const bool exists = stat(target_.c_str(), &info) == 0;
    if (exists && S_ISCHR(info.st_mode)) {
        is_device_ = true;
        file_.reset(open(target_.c_str(), O_WRONLY | O_CLOEXEC));
        if (!file_) fail("cannot be opened for writing");
        return;
    }
    if (exists && !S_ISREG(info.st_mode))
        throw file_error(path, "is " + kind_of(info.st_mode) + ", not a regular file");
    if (exists && access(target_.c_str(), W_OK) != 0) fail("cannot be written");
    if (exists) lock_old();
    open_draft(permissions);
    if (exists && fchmod(file_.number(), info.st_mode & 07777) != 0)
        fail("cannot be given the permissions of the old file");
}

// The lock is on the old file. Before the lock was taken another writer may have replaced that file, so that the name
// belongs to a new one.
void FileSink::lock_old() {
    for (;;) {
        old_.reset(open(target_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
        if (!old_) return;  // a file that may not be read cannot be locked
        if (flock(old_.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
            throw file_error(name(), "is being written by another program or thread");
        struct stat ours, theirs;
        if (fstat(old_.number(), &ours) != 0 || stat(target_.c_str(), &theirs) != 0 ||
            (ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev))
            return;
    }
}

void FileSink::open_draft(unsigned permissions) {
    file_.reset(open(folder_of(target_).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, permissions));
    // The file gets its name through this path.
    if (file_ && access(path_of_descriptor(file_.number()).c_str(), F_OK) == 0) {
        flock(file_.number(), LOCK_EX | LOCK_NB);
        return;
    }
    draft_ = under_draft_name(target_, [&](const char* path) {
        file_.reset(open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, permissions));
        if (!file_) return -1;
        flock(file_.number(), LOCK_EX | LOCK_NB);
        // Another writer may have taken the file for an abandoned one before it was locked.
        struct stat info;
        if (fstat(file_.number(), &info) == 0 && info.st_nlink > 0) return file_.number();
        errno = EEXIST;
        return -1;
    });
    if (draft_.empty()) fail("cannot be written");
}

FileSink::~FileSink() {
    if (!draft_.empty()) unlink(draft_.c_str());
}

std::string FileSink::draft() const { return draft_.empty() ? path_of_descriptor(file_.number()) : draft_; }

void FileSink::fail(std::string_view doing) const {
    int code = errno;
    Error error = file_error(name(), str(doing, ": ", reason(code)));
    if (code == ENOENT) throw error.hint("does its directory exist?");
    throw error;
}

void FileSink::look() const {
    if (interrupts_ == Interrupts::noticed) poll_interrupt();
}

void FileSink::write_some(const char* bytes, size_t count) {
    while (count > 0) {
        look();
        ssize_t done = ::write(file_.number(), bytes, std::min(count, kChunk));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) fail("writing failed");
        bytes += done;
        count -= static_cast<size_t>(done);
        at_ += static_cast<uint64_t>(done);
        if (!is_device_ && at_ - begun_ >= kChunk) hurry();
    }
}

// Starts writing a little at a time to the disk: flushing all of a large file in commit() would take seconds in which
// no interrupt is noticed.
void FileSink::hurry() {
    constexpr uint64_t kUnderWay = 4 * kChunk;
    auto sync = [this](uint64_t from, uint64_t to, unsigned how) {
        if (sync_file_range(file_.number(), static_cast<off_t>(from), static_cast<off_t>(to - from), how) == 0) return;
        // An error reported here would not be reported again at the end; some file systems do not have this call.
        if (errno == EIO || errno == ENOSPC || errno == EDQUOT) fail("writing failed");
    };
    sync(begun_, at_, SYNC_FILE_RANGE_WRITE);
    begun_ = at_;
    while (begun_ - on_disk_ > kUnderWay) {
        look();
        sync(on_disk_, on_disk_ + kChunk,
             SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
        on_disk_ += kChunk;
    }
}

void StringSink::write_some(const char* bytes, size_t count) {
    if (count > text_.capacity() - text_.size()) text_.reserve(std::max(text_.size() + count, 2 * text_.capacity()));
    in_ranges(static_cast<int64_t>(count), static_cast<int64_t>(kChunk),
              [&](int64_t begin, int64_t end) { text_.append(bytes + begin, static_cast<size_t>(end - begin)); });
}

void FileSink::write_at(uint64_t offset, std::string_view bytes) {
    while (!bytes.empty()) {
        poll_interrupt();
        const size_t piece = std::min<size_t>(bytes.size(), 8 << 20);
        const ssize_t count = pwrite(file_.number(), bytes.data(), piece, static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail("writing failed");
        bytes.remove_prefix(static_cast<size_t>(count));
        offset += static_cast<uint64_t>(count);
    }
}

void FileSink::commit() {
    if (!is_device_) {
        if (fsync(file_.number()) != 0) fail("writing failed");
        if (draft_.empty())
            draft_ = under_draft_name(target_, [&](const char* path) {
                return linkat(AT_FDCWD, draft().c_str(), AT_FDCWD, path, AT_SYMLINK_FOLLOW);
            });
        if (draft_.empty() || rename(draft_.c_str(), target_.c_str()) != 0) fail("cannot be replaced");
        draft_.clear();
        // The rename is on the disk only once the folder is.
        const Descriptor folder(open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (folder) fsync(folder.number());
    }
    if (close(file_.release()) != 0) fail("writing failed");
}

void write_file(const std::string& path, std::string_view bytes) {
    FileSink sink(path);
    sink.write(bytes);
    sink.commit();
}

std::string make_temporary(std::string_view ending) {
    const std::string stem = temporary_stem();
    Descriptor made;
    std::string name = under_free_name(stem, ending, [&](const char* path) {
        made.reset(open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        return made.number();
    });
    if (name.empty()) throw file_error(stem, str("no file can be made beside it: ", reason(errno)));
    return name;
}

std::unique_ptr<FileSink> open_temporary() {
    return std::make_unique<FileSink>(str(temporary_stem(), ".", random_name()), FileSink::Interrupts::noticed, 0600);
}

}  // namespace lunaria
