// Files as the format readers see them. A reader never trusts a number in a file: it asks how many bytes are there
// before it allocates for them, and it reads with pread rather than by mapping, so that a file that shrinks meanwhile
// is an error and not a signal. Writers replace a file whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/io/descriptor.h"

namespace lunaria {

// Bytes at random positions: a file, or memory (tests, fuzzing, downloads).
class Source {
  public:
    virtual ~Source() = default;
    // Exactly `bytes` bytes from `offset`; throws file_error when they are not there.
    void read(uint64_t offset, void* to, size_t bytes) const;
    std::string text(uint64_t offset, size_t bytes) const;
    uint64_t size() const { return size_; }
    // The file's name in messages: the path.
    const std::string& name() const { return name_; }
    // "name: message", to be thrown.
    Error error(std::string_view message) const { return file_error(name_, message); }

  protected:
    Source(std::string name, uint64_t size) : name_(std::move(name)), size_(size) {}

  private:
    virtual void read_some(uint64_t offset, char* to, size_t bytes) const = 0;
    std::string name_;
    uint64_t size_;
};

// The bytes must outlive the source.
std::unique_ptr<Source> memory_source(std::string name, std::string_view bytes);
// Regular files only: a directory, a pipe or a device is refused (opening a pipe would wait, a device may never end).
std::unique_ptr<Source> open_source(const std::string& path);
// The contents of a file of at most `limit` bytes.
std::string read_file(const std::string& path, uint64_t limit = uint64_t{1} << 31);

// The destination of a writer's bytes, front to back.
class Sink {
  public:
    virtual ~Sink() = default;
    void write(const void* bytes, size_t count);
    void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
    uint64_t written() const { return written_; }
    const std::string& name() const { return name_; }

  protected:
    explicit Sink(std::string name) : name_(std::move(name)) {}

  private:
    virtual void write_some(const char* bytes, size_t count) = 0;
    std::string name_;
    uint64_t written_ = 0;
};

class StringSink final : public Sink {
  public:
    explicit StringSink(std::string name = "memory") : Sink(std::move(name)) {}
    const std::string& text() const { return text_; }

  private:
    void write_some(const char* bytes, size_t count) override;
    std::string text_;
};

// Counts the bytes and drops them, for a writer that must know beforehand whether something can be written, and its
// length.
class NullSink final : public Sink {
  public:
    explicit NullSink(std::string name) : Sink(std::move(name)) {}

  private:
    void write_some(const char*, size_t) override {}
};

// Writes a file without a name (where the file system has none such: with a unique one) and puts it in the place of
// PATH in commit(), after fsync. A reader that opens PATH gets the old file or the new one, complete, even after a
// crash, and a writer that is killed leaves nothing behind. Without commit() PATH stays as it was. A second writer of
// the same file gets an error; of two that make a new file, the one that commits last wins. An existing character
// device (/dev/null, /dev/full) is written directly.
class FileSink final : public Sink {
  public:
    // Whether Ctrl-C ends the writing. A thread that writes beside the program goes on: the file was asked for earlier.
    enum class Interrupts { noticed, ignored };
    // `permissions` of a new file, less what umask takes.
    explicit FileSink(const std::string& path, Interrupts interrupts = Interrupts::noticed,
                      unsigned permissions = 0666);
    ~FileSink() override;
    // Writes bytes at a given place, for formats whose beginning is known last. All other bytes stay where they are.
    void write_at(uint64_t offset, std::string_view bytes);
    // A path by which this process can read the bytes written so far.
    std::string draft() const;
    bool is_device() const { return is_device_; }
    void commit();

  private:
    void write_some(const char* bytes, size_t count) override;
    void lock_old();
    void open_draft(unsigned permissions);
    void hurry();
    void look() const;
    [[noreturn]] void fail(std::string_view doing) const;

    std::string target_;  // the path with its last symbolic links resolved
    std::string draft_;   // the draft's path; empty for a device, and for a draft without a name
    Interrupts interrupts_;
    bool is_device_ = false;
    Descriptor old_, file_;                      // the existing file, locked, and the new one
    uint64_t at_ = 0, begun_ = 0, on_disk_ = 0;  // bytes written, sent towards the disk, and on the disk
};

// Replaces the file by `bytes`.
void write_file(const std::string& path, std::string_view bytes);

// The folder of a file, "." where its path has none.
std::string folder_of(const std::string& path);

// Files in the folder for temporary files (TMPDIR, or /tmp), for this user alone. The first returns the name of a new
// empty file; the second is a file that is read by its draft() and never committed.
std::string make_temporary(std::string_view ending);
std::unique_ptr<FileSink> open_temporary();

}  // namespace lunaria
