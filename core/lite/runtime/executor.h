// A light model that is ready to run: memory for its values, and its steps with the sizes of the present inputs.
//
// Memory is taken when a model is built or resized: the arena, results, scratch memory for each thread. A run takes
// none. Models of one group share the arena and the scratch memory, and run one after the other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/lite/format/file.h"
#include "core/lite/runtime/loop_code.h"
#include "core/lite/runtime/step.h"
#include "core/lite/runtime/threads.h"

namespace lunaria::lite {

// Memory that begins at a multiple of 64 bytes; it only grows.
class Memory {
  public:
    // False: there is not as much. What it held is lost where it grows.
    bool reserve(size_t bytes);
    char* data() const { return data_; }
    size_t size() const { return size_; }

    Memory() = default;
    Memory(Memory&& other) noexcept;
    Memory& operator=(Memory&& other) noexcept;
    ~Memory();

  private:
    char* data_ = nullptr;
    size_t size_ = 0;
};

// The arena and scratch memory of models that do not run at the same time.
struct Workspace {
    Memory arena, scratch;
    size_t arena_bytes = 0, scratch_bytes = 0;  // that its models need
    std::mutex turn;                            // of the model that runs
};

// What is called around each step; false ends the run.
struct Observer {
    bool (*before)(void* context, size_t step) = nullptr;
    bool (*after)(void* context, size_t step) = nullptr;
    void* context = nullptr;
};

// Writes the file of a model: complete under its name, or not there at all, whenever the program ends.
bool write_file(const Model& model, const std::string& path, std::string& fault);

class Executor {
  public:
    // The bytes of the file have to live as long; they are aligned to 64 bytes. Null and a message in `fault` where the
    // file is damaged, or has something that the runtime does not know.
    static std::unique_ptr<Executor> make(std::span<const std::byte> file, std::shared_ptr<Threads> threads,
                                          std::shared_ptr<Workspace> workspace, std::string& fault);

    const Model& model() const { return model_; }
    const std::vector<int64_t>& shape(uint32_t value) const { return shapes_[value]; }
    size_t bytes(uint32_t value) const { return bytes_[value]; }

    // False and a message: the shapes do not fit, and the model is as before.
    bool resize(std::span<const std::vector<int64_t>> shapes, std::string& fault);

    // `inputs`, `outputs`: memory of the caller, or null for the model's own.
    bool run(std::span<const void* const> inputs, std::span<void* const> outputs, const Observer& observer,
             std::string& fault);
    // The model's own memory of an input or output: there on first use.
    void* memory(uint32_t value);
    const char* address(uint32_t value) const { return addresses_[value]; }

    // The elements of a variable, between runs.
    char* state(uint32_t value) { return own_[value].data(); }
    // Sets the elements of constants or variables by name.
    bool update(std::string_view name, const void* data, size_t bytes, std::string& fault);

    // The file of the model with its present weights and states: complete under its name, or not there at all, whenever
    // the program ends.
    bool save(const std::string& path, std::string& fault) const;
    // The same with variables as constants: steps that read nothing else are done now, and their results stored.
    bool save_fixed(const std::string& path, std::string& fault);

    size_t arena_bytes() const { return placement_bytes_; }
    size_t scratch_bytes() const { return scratch_bytes_; }
    // Of the model's own: results, variables, inputs.
    size_t own_bytes() const;
    Threads& threads() const { return *threads_; }
    const std::shared_ptr<Threads>& shared_threads() const { return threads_; }

  private:
    struct ReadyStep {
        std::unique_ptr<Work> work;
        std::unique_ptr<LoopCode> loop;
        std::vector<uint32_t> in, out;       // values
        std::vector<int64_t> in_at, out_at;  // in bytes
        std::vector<uint32_t> written;       // of a loop: which operands are results
        int parts = 1;
    };
    struct Layout {
        std::vector<int64_t> dimensions;
        std::vector<std::vector<int64_t>> shapes;
        std::vector<size_t> bytes;
        std::vector<uint64_t> offsets;
        std::vector<ReadyStep> steps;
        size_t arena = 0, scratch = 0, most_operands = 0;
    };

    Executor() = default;
    bool lay_out(std::vector<int64_t> dimensions, Layout& layout, std::string& fault) const;
    bool prepare(const Step& step, const Layout& layout, ReadyStep& ready, size_t& scratch, std::string& fault) const;
    bool prepare_loop(const Step& step, const Layout& layout, ReadyStep& ready, std::string& fault) const;
    bool take(Layout layout, std::string& fault);
    bool operand_of(const View& view, const Layout& layout, Operand& operand) const;
    void run_step(const ReadyStep& step, const kernels::Workers& workers, std::atomic<const char*>& fault);
    kernels::Workers workers() const;
    bool run_fixed(std::vector<bool>& is_fixed, std::vector<bool>& is_done, std::vector<Memory>& results,
                   std::string& fault);

    Model model_;
    std::shared_ptr<Threads> threads_;
    std::shared_ptr<Workspace> workspace_;  // owned by the models of a group
    std::vector<int64_t> dimensions_;
    std::vector<std::vector<int64_t>> shapes_;
    std::vector<size_t> bytes_;
    std::vector<uint64_t> offsets_;
    std::vector<ReadyStep> steps_;
    std::vector<const char*> addresses_;  // of values in the present run
    std::vector<Memory> own_;             // of values
    std::vector<char*> pointers_;         // of the operands of a step
    size_t placement_bytes_ = 0, scratch_bytes_ = 0;
};

}  // namespace lunaria::lite
