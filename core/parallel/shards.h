// Checkpoints in pieces: each rank writes the pieces of tensors that it holds to a file of its own, and no rank waits
// for another. A file is a safetensors file whose metadata say of each tensor which region of a whole one it is, so
// that any number of ranks can read any region later, from the few bytes that it consists of.
//
// A folder of files rank-0000-of-0004.safetensors is one step. Ranks write to a folder with a name for this attempt,
// and the one that finds the files of all there marks it with a file `complete` and gives the folder its final name.
#pragma once

#include <map>
#include <span>

#include "core/io/safetensors.h"
#include "core/parallel/piece.h"

namespace lunaria::parallel {

struct Piece {
    std::string name;
    Tensor tensor;
    Shape whole, offsets;      // the shape of the whole tensor, and where in it the piece begins
    int64_t replica = 0;       // the number of the writer among the ranks that hold the same piece
    std::string mesh, layout;  // for readers of the file
};

// Which of `replicas` ranks with the same piece of a tensor writes it: by the name, so that the work is spread.
int64_t writer_of(std::string_view name, int64_t replicas);

// Writes the pieces to a rank's file. Those without elements are left out.
void write_pieces(Sink& sink, std::span<const Piece> pieces, const Metadata& metadata);

// The name of a rank's file, and the ranks and their number back; false where the name is none of such a file.
std::string shard_name(int64_t rank, int64_t ranks);
bool parse_shard_name(std::string_view name, int64_t& rank, int64_t& ranks);

// Called by a rank that has written its file to the folder `draft`: if the files of all ranks are there, and no other
// rank was first to see that, marks the folder as complete, calls it `final` (a folder of this name goes) and returns
// true. The files `draft` and `final` lie in one folder.
bool complete_step(const std::string& draft, const std::string& final, int64_t ranks);

// The pieces of all tensors in some files, by their headers. Files are opened again for their contents: there may be
// more of them than a process can hold open.
class Shards {
  public:
    // A folder of ranks' files, or one safetensors file; tensors of files that do not know about pieces are whole.
    explicit Shards(const std::string& path);
    explicit Shards(std::unique_ptr<Source> file);

    struct Part {
        size_t file = 0;
        Region place;
        uint64_t offset = 0;         // in the file
        std::vector<uint32_t> sums;  // of each block; empty: the file has none
        int64_t replica = 0;
    };
    struct Whole {
        DType dtype = DType::f32;
        Shape shape;
        std::string mesh, layout;
        std::vector<Part> parts;
    };
    struct File {
        std::string path;
        uint64_t size = 0;
        int64_t rank = 0;
        Metadata metadata;
    };
    const std::map<std::string, Whole>& tensors() const { return tensors_; }
    const std::vector<File>& files() const { return files_; }
    // How many ranks there were; 0 where the files do not say.
    int64_t ranks() const { return ranks_; }
    // Those whose files are not there.
    std::vector<int64_t> absent() const;

    // Whether sums are compared, for which whole blocks are read.
    enum class Check { sums, nothing };
    // The elements of a region. Throws when some of them are in no file, or a sum is wrong.
    Tensor read(const std::string& name, const Region& wanted, Check check) const;
    Tensor read(const std::string& name) const { return read(name, whole(at(name).shape), Check::sums); }
    const Whole& at(const std::string& name) const;
    // Elements of a tensor that are in no file.
    std::vector<Region> missing(const std::string& name) const;
    // Compares all sums of a file's pieces; throws at the first that is wrong.
    void verify(size_t file) const;
    // How many bytes of contents were read so far.
    uint64_t bytes_read() const { return bytes_read_; }

  private:
    void read_blocks(const Source& source, const std::string& name, const Part& part, uint64_t begin, uint64_t end,
                     char* to) const;
    void add(const SafetensorsFile& file, int64_t rank);
    const Source& open(size_t file, std::unique_ptr<Source>& opened) const;
    void copy(const std::string& name, const Part& part, const Region& area, const Region& wanted, Tensor& to,
              Check check) const;
    Error incomplete(const std::string& name, const std::vector<Region>& missing) const;

    std::string path_;
    std::unique_ptr<SafetensorsFile> only_;  // of the source given, which is not opened again
    std::vector<File> files_;
    std::map<std::string, Whole> tensors_;
    int64_t ranks_ = 0;
    mutable uint64_t bytes_read_ = 0;
};

}  // namespace lunaria::parallel
