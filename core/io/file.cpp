#include "core/io/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "core/interrupt.h"

namespace lunaria {
namespace {

// Between two looks at the interrupt flag: some milliseconds of work.
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
    ~FileSource() override { close(file_); }

  private:
    void read_some(uint64_t offset, char* to, size_t bytes) const override {
        while (bytes > 0) {
            poll_interrupt();
            ssize_t got = pread(file_, to, std::min(bytes, kChunk), static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) throw error("cannot be read: " + reason(errno));
            if (got == 0) throw error("became shorter while it was being read");
            to += got;
            offset += static_cast<uint64_t>(got);
            bytes -= static_cast<size_t>(got);
        }
    }
    int file_;
};

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

FileSink::FileSink(const std::string& path, Interrupts interrupts)
    : Sink(path), target_(path), interrupts_(interrupts) {
    check_path(path);
    // A symbolic link stays a link: the file that it names is replaced.
    if (char* resolved = realpath(path.c_str(), nullptr)) {
        target_ = resolved;
        std::free(resolved);
    }
    struct stat info;
    bool exists = stat(target_.c_str(), &info) == 0;
    if (exists && S_ISCHR(info.st_mode)) {
        file_ = open(target_.c_str(), O_WRONLY | O_CLOEXEC);
        if (file_ < 0) fail("cannot be opened for writing");
        return;
    }
    if (exists && !S_ISREG(info.st_mode))
        throw file_error(path, "is " + kind_of(info.st_mode) + ", not a regular file");
    if (exists && access(target_.c_str(), W_OK) != 0) fail("cannot be written");
    open_temporary();
    if (exists && fchmod(file_, info.st_mode & 07777) != 0) fail("cannot be given the permissions of the old file");
}

void FileSink::open_temporary() {
    std::string temporary = target_ + ".tmp";
    for (;;) {
        file_ = open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (file_ < 0) fail("cannot be written");
        struct stat ours, theirs;
        bool locked = flock(file_, LOCK_EX | LOCK_NB) == 0;
        // Another writer may have renamed the file between our open and our lock; then the name is free again.
        bool still_there = fstat(file_, &ours) == 0 && stat(temporary.c_str(), &theirs) == 0 &&
                           ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
        if (locked && still_there && S_ISREG(ours.st_mode)) break;
        close(file_);
        file_ = -1;
        if (still_there) throw file_error(name(), "is being written by another program or thread");
    }
    temporary_ = std::move(temporary);
    // What a killed writer left behind is dropped here.
    if (ftruncate(file_, 0) != 0) fail("cannot be written");
}

FileSink::~FileSink() {
    if (file_ < 0) return;
    if (!temporary_.empty()) unlink(temporary_.c_str());
    close(file_);
}

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
        ssize_t done = ::write(file_, bytes, std::min(count, kChunk));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) fail("writing failed");
        bytes += done;
        count -= static_cast<size_t>(done);
        at_ += static_cast<uint64_t>(done);
        if (!temporary_.empty() && at_ - begun_ >= kChunk) hurry();
    }
}

// Sends what is written on its way to the disk, a little of it at a time: all of a large file in commit() would be
// seconds in which no interrupt is noticed.
void FileSink::hurry() {
    constexpr uint64_t kUnderWay = 4 * kChunk;
    auto sync = [this](uint64_t from, uint64_t to, unsigned how) {
        if (sync_file_range(file_, static_cast<off_t>(from), static_cast<off_t>(to - from), how) == 0) return;
        // Told here, it would not be told again at the end; some file systems have no such call.
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
        const ssize_t count = pwrite(file_, bytes.data(), piece, static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail("writing failed");
        bytes.remove_prefix(static_cast<size_t>(count));
        offset += static_cast<uint64_t>(count);
    }
}

void FileSink::commit() {
    if (!temporary_.empty()) {
        if (fsync(file_) != 0) fail("writing failed");
        if (rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot be replaced");
        temporary_.clear();
        // The rename itself is on the disk only when the folder is.
        size_t slash = target_.rfind('/');
        std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : target_.substr(0, slash);
        int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory >= 0) {
            fsync(directory);
            close(directory);
        }
    }
    int file = std::exchange(file_, -1);
    if (close(file) != 0) fail("writing failed");
}

void write_file(const std::string& path, std::string_view bytes) {
    FileSink sink(path);
    sink.write(bytes);
    sink.commit();
}

}  // namespace lunaria
