// An AI core that carries out a program: its results, the start and end of each instruction, and faults of the program.
// A pipe takes its instructions in order; between pipes only flags and barriers make an order. Times follow from that
// order alone, so that one pass over the program's text is enough: an instruction whose pipe waits for a flag that is
// not set yet is deferred until it is.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/ascend/instruction.h"
#include "backends/ascend/memory.h"

namespace lunaria::ascend {

// The properties of a core; the program reads the numbers from its file of parameters. Rates in bytes per cycle, times
// in cycles.
struct CoreSettings {
    std::array<int64_t, kSpaces> bytes{};  // of the buffers
    double l1_to_l0a = 512, l1_to_l0b = 256, l0c_to_ub = 256, ub_to_l1 = 128, vector = 256;
    double gm = 80;               // global memory to one core, and as much back
    double channel = 1e9;         // a core's share of the channel that all cores share, both ways together
    int64_t gm_read_head = 700;   // until the first byte comes
    int64_t gm_write_head = 150;  // until the last one is there
    int64_t transfers = 4;        // transfers of one engine that may be under way
    int64_t burst = 512;          // shorter bursts of global memory take as long as this one
    int64_t issue = 1, decode = 4, queue = 32;
    int64_t move_head = 16, cube_head = 16, vector_head = 6, slow_vector_head = 12, reduce_head = 9, scalar = 4;
    int64_t events = 8;       // numbers of flags between two pipes
    bool saturate = true;     // of float16: overflow gives the largest number and NaN gives 0
    bool divides = false;     // vdiv and vsqrt exist
    bool compute = true;      // false: times alone
    int64_t trace_limit = 0;  // instructions whose times are kept
};

struct GlobalTensor {
    std::string name;
    Memory memory;
    std::vector<int32_t> writers, readers;  // by 32 bytes: the block (of the kernel) that did; -1: none
    std::vector<uint32_t> lines;            // by 512 bytes: when it came to the on-chip cache; 0: never
    // Without data only the lines are kept: for programs of which only the times are wanted.
    GlobalTensor(std::string name, uint8_t* data, int64_t bytes, bool written);
};

// The cache between the cores and global memory: first in, first out, by lines.
struct Cache {
    int64_t lines = 65536;
    uint32_t clock = 0;
    double hbm_bytes = 0, moved_bytes = 0;
};

struct Fault {
    std::string kind;  // "overflow", "misaligned", "uninitialised", "race", "deadlock", "flag", "illegal", "cores"
    std::string text;
    int block = 0;
    size_t instruction = 0;
    std::string place;
};

struct TraceRow {
    uint32_t instruction;
    Pipe pipe;
    int64_t start, end;
};

struct CoreResult {
    int64_t cycles = 0;
    std::array<int64_t, kPipes> busy{}, instructions{};
    bool overflowed = false;  // a float16 result was too large, or not a number
    std::vector<Fault> faults;
    std::vector<TraceRow> trace;
};

class Core {
  public:
    Core(const CoreSettings& settings, std::vector<GlobalTensor>& tensors, Cache& cache);
    // One block of a kernel, from empty buffers. Stops early after too many faults.
    CoreResult run(const Program& program, int block);

  private:
    struct Waiting {
        size_t index;
        int64_t issued;
        Clock after;  // the scalar unit's clock then
        float number;
    };
    struct Flag {
        int64_t time;
        Clock clock;
    };
    // The last values of a row, at most 64 of them.
    class Recent {
      public:
        int64_t size() const { return size_; }
        int64_t front() const { return values_[static_cast<size_t>(first_)]; }
        void push_back(int64_t value) { values_[static_cast<size_t>((first_ + size_++) % kMost)] = value; }
        void pop_front() {
            first_ = (first_ + 1) % kMost;
            --size_;
        }
        static constexpr int64_t kMost = 64;

      private:
        std::array<int64_t, kMost> values_{};
        int64_t first_ = 0, size_ = 0;
    };
    struct Queue {
        int64_t free = 0, done = 0;  // next start, end of everything so far
        Recent starts, ends;         // of the last ones: for the queue's length, and for transfers under way
        std::deque<Waiting> aside;
        Clock clock{};
    };

    void dispatch(size_t index);
    bool is_blocked(const Instruction& i) const;
    const Instruction& resolve(const Waiting& w, Instruction& moved) const;
    void carry_out(const Waiting& w);
    void release(Pipe pipe);
    void synchronise(const Instruction& i, int64_t start, Queue& queue);
    int64_t duration(const Instruction& i, int64_t& latency);
    int64_t move_duration(const Instruction& i, int64_t& latency);
    int64_t vector_duration(const Instruction& i) const;
    void access(const Instruction& i, const Waiting& w);
    bool touch(const Instruction& i, const Operand& o, int64_t offset, int64_t bytes, bool writes);
    bool touch_all(const Instruction& i);
    bool touch_move(const Instruction& i);
    bool touch_cube(const Instruction& i);
    bool touch_vector(const Instruction& i);
    bool touch_dense(const Instruction& i, const Operand& o, int64_t bytes, bool writes);
    bool walk(const Instruction& i, const Operand& o, int64_t stride, int64_t bytes, bool writes);
    bool is_aligned(const Instruction& i, const Operand& o, int64_t address);
    bool is_legal(const Instruction& i);
    void share(const Instruction& i, const Operand& o, int64_t from, int64_t bytes, bool writes);
    void cache_lines(const Operand& o, int64_t from, int64_t bytes);
    void fault(const char* kind, std::string text);
    const Window& window(const Instruction& i) const { return program_->windows[static_cast<size_t>(i.n[0])]; }
    Memory& memory(const Operand& o);
    uint8_t* at(const Operand& o, int64_t offset = 0) { return memory(o).data() + o.address + offset; }
    Flag* flag_of(const Instruction& i);

    // Arithmetic of instructions (arithmetic.cpp).
    void compute(const Instruction& i, float number);
    void do_move(const Instruction& i);
    void do_load2d(const Instruction& i);
    void do_load3d(const Instruction& i);
    void do_mmad(const Instruction& i);
    void do_integer_mmad(const Instruction& i);
    void do_drain(const Instruction& i);
    int64_t repeats_at_once(const Instruction& i, DType to);
    void do_elements(const Instruction& i, float number);
    void do_compare(const Instruction& i);
    void do_select(const Instruction& i);
    void do_reduce(const Instruction& i);
    void do_transpose(const Instruction& i);
    void do_scalar(const Instruction& i);
    void store(DType type, uint8_t* to, const float* from, int64_t count);

    CoreSettings settings_;
    std::vector<GlobalTensor>& tensors_;
    Cache& cache_;
    std::vector<std::unique_ptr<Memory>> buffers_;
    const Program* program_ = nullptr;
    int block_ = 0;
    size_t current_ = 0;
    Clock clock_{};  // of the present instruction
    std::array<Queue, kPipes> queues_;
    std::array<std::array<std::array<std::vector<Flag>, 16>, kPipes>, kPipes> flags_;
    std::array<float, 32> registers_{};
    int64_t dispatched_ = 0;
    double transferred_ = 0;  // bytes to and from global memory
    bool stopped_ = false;
    CoreResult result_;
};

}  // namespace lunaria::ascend
