#include "core/io/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/base/interrupt.h"
#include "tests/core/io/scratch.h"

namespace lunaria {
namespace {

using test::error_of;
using test::Scratch;

int64_t files_in(const Scratch& scratch) {
    return std::distance(std::filesystem::directory_iterator(scratch.folder()), {});
}

TEST(Source, refuses_what_is_not_a_regular_file) {
    Scratch scratch;
    mkfifo(scratch.path("pipe").c_str(), 0600);
    error_of([&] { open_source(scratch.folder()); }, "directory");
    error_of([&] { open_source(scratch.path("pipe")); }, "pipe");
    error_of([] { open_source("/dev/zero"); }, "device");
    error_of([] { open_source("/proc/no/such/file"); }, "No such file");
    error_of([] { open_source(std::string("a\0b", 3)); }, "NUL");
    error_of([] { open_source(""); }, "empty");
}

TEST(Source, reads_within_its_bounds_only) {
    auto source = memory_source("m", "abcdef");
    EXPECT_EQ(source->text(2, 3), "cde");
    EXPECT_EQ(source->text(6, 0), "");
    error_of([&] { source->text(4, 3); }, "truncated");
    error_of([&] { source->text(UINT64_MAX, 1); }, "truncated");
    error_of([&] { source->text(1, SIZE_MAX); }, "truncated");
}

TEST(Source, notices_a_file_that_shrinks) {
    Scratch scratch;
    write_file(scratch.path("f"), std::string(100, 'x'));
    auto source = open_source(scratch.path("f"));
    ASSERT_EQ(truncate(scratch.path("f").c_str(), 10), 0);
    error_of([&] { source->text(0, 100); }, "shorter");
}

TEST(read_file, keeps_to_its_limit) {
    Scratch scratch;
    write_file(scratch.path("f"), "12345");
    EXPECT_EQ(read_file(scratch.path("f"), 5), "12345");
    error_of([&] { read_file(scratch.path("f"), 4); }, "at most 4");
}

TEST(FileSink, leaves_the_old_file_unless_committed) {
    Scratch scratch;
    std::string path = scratch.path("f");
    write_file(path, "old");
    {
        FileSink sink(path);
        sink.write("half of the ne");
    }
    EXPECT_EQ(read_file(path), "old");
    EXPECT_EQ(files_in(scratch), 1);
    write_file(path, "new");
    EXPECT_EQ(read_file(path), "new");
    EXPECT_EQ(files_in(scratch), 1);
}

TEST(FileSink, keeps_permissions_and_links) {
    Scratch scratch;
    std::string path = scratch.path("f"), link = scratch.path("link");
    write_file(path, "old");
    chmod(path.c_str(), 0640);
    ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
    write_file(link, "new");
    EXPECT_EQ(read_file(path), "new");
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    struct stat info;
    stat(path.c_str(), &info);
    EXPECT_EQ(info.st_mode & 0777u, 0640u);
}

TEST(FileSink, refuses_a_second_writer_of_a_file) {
    Scratch scratch;
    std::string path = scratch.path("f");
    write_file(path, "old");
    FileSink first(path);
    error_of([&] { FileSink second(path); }, "being written");
    first.write("ok");
    first.commit();
    EXPECT_EQ(read_file(path), "ok");
    FileSink other(scratch.path("new")), another(scratch.path("new"));
    other.write("1");
    another.write("2");
    another.commit();
    other.commit();
    EXPECT_EQ(read_file(scratch.path("new")), "1");
    EXPECT_EQ(files_in(scratch), 2);
}

// Whatever a user's files are called, a draft is none of them.
TEST(FileSink, leaves_the_files_beside_it_alone) {
    Scratch scratch;
    const std::string path = scratch.path("f");
    for (const char* name : {".tmp", ".part", ".new", ".draft", "~"}) write_file(path + name, "mine");
    write_file(path, "first");
    write_file(path, "second");
    FileSink reading(path);
    reading.write("third");
    EXPECT_EQ(read_file(reading.draft()), "third");
    for (const char* name : {".tmp", ".part", ".new", ".draft", "~"}) EXPECT_EQ(read_file(path + name), "mine");
    EXPECT_EQ(files_in(scratch), 6);
}

// A process that is killed between a draft's name and its place leaves the draft under the name that is tried first.
TEST(FileSink, removes_what_a_killed_writer_left_and_no_living_writers_draft) {
    Scratch scratch;
    const std::string path = scratch.path("f"), left = path + ".lunaria.part";
    write_file(left, "left");
    write_file(path, "first");
    EXPECT_EQ(files_in(scratch), 1);
    write_file(left, "alive");
    const Descriptor writer(open(left.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(flock(writer.number(), LOCK_EX | LOCK_NB), 0);
    write_file(path, "second");
    EXPECT_EQ(read_file(left), "alive");
    EXPECT_EQ(read_file(path), "second");
    EXPECT_EQ(files_in(scratch), 2);
}

TEST(Temporary, files_are_for_this_user_and_have_names_of_their_own_or_none) {
    const auto draft = open_temporary();
    draft->write("plain");
    struct stat hidden;
    ASSERT_EQ(stat(draft->draft().c_str(), &hidden), 0);
    EXPECT_EQ(hidden.st_mode & 0777u, 0600u);
    EXPECT_EQ(read_file(draft->draft()), "plain");
    const std::string temporary = make_temporary(".lua");
    struct stat info;
    stat(temporary.c_str(), &info);
    EXPECT_EQ(info.st_mode & 0777u, 0600u);
    std::filesystem::remove(temporary);
}

TEST(FileSink, says_why_it_cannot_write) {
    Scratch scratch;
    error_of([&] { FileSink sink(scratch.path("no/such/f")); }, "No such file or directory");
    error_of([&] { FileSink sink(scratch.folder()); }, "directory");
    FileSink full("/dev/full");
    error_of([&] { full.write(std::string(100000, 'x')); }, "No space left");
}

TEST(FileSink, stops_when_interrupted_and_leaves_nothing) {
    Scratch scratch;
    std::string path = scratch.path("f");
    write_file(path, "old");
    request_interrupt();
    error_of([&] { write_file(path, std::string(100, 'x')); }, "interrupt");
    clear_interrupt();
    EXPECT_EQ(read_file(path), "old");
    EXPECT_EQ(files_in(scratch), 1);
}

// The promise of the format writers: whenever the process dies, the file is the old one or the new one, whole.
TEST(FileSink, survives_a_kill_at_any_moment) {
    Scratch scratch;
    std::string path = scratch.path("f");
    const size_t size = 200000;
    write_file(path, std::string(size, 'a'));
    for (int attempt = 0; attempt < 60; ++attempt) {
        pid_t child = fork();
        if (child == 0) {
            for (char c = 'a';; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) write_file(path, std::string(size, c));
        }
        usleep(static_cast<useconds_t>(500 + attempt * 137));
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        std::string content = read_file(path);
        ASSERT_EQ(content, std::string(size, content.at(0)));
    }
    write_file(path, "done");
    EXPECT_EQ(read_file(path), "done");
    // A kill between the name and the renaming leaves a file; each other one leaves nothing.
    EXPECT_LE(files_in(scratch), 1 + 6);
}

}  // namespace
}  // namespace lunaria
