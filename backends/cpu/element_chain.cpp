#include "backends/cpu/element_chain.h"

#include <algorithm>
#include <array>
#include <optional>

#include "backends/cpu/elementwise.h"
#include "core/operator/op.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

constexpr size_t kMostValues = 24;
constexpr size_t kMostBuffers = 8;
constexpr size_t kBufferBytes = 4096;

class LoopChain final : public ChainKernel {
  public:
    // Empty: an operator has no loop of its own for the dtype, or the chain is too long.
    static std::unique_ptr<const ChainKernel> make(const ElementChain& chain) {
        auto made = std::make_unique<LoopChain>();
        return made->build(chain) ? std::move(made) : nullptr;
    }

    void run(const void* const* in, const int64_t* step, void* const* out, int64_t count) const override {
        const int64_t part = kThreadWork / cost_;
        if (count <= part) return single_ ? single_(in, step, out[0], count) : blocks(in, step, out, 0, count);
        parallel_for(count, part, 64, [&](int64_t begin, int64_t end) { blocks(in, step, out, begin, end); });
    }

  private:
    struct Step {
        ElementLoop loop = nullptr;
        size_t operands = 0;
        std::array<size_t, kMostOperands> operand{};
        int output = -1;  // -1: it goes to a buffer
        size_t buffer = 0;
        int64_t size = 0;  // of an element of the result
    };

    bool build(const ElementChain& chain) {
        if (chain.steps.empty() || static_cast<size_t>(chain.inputs) + chain.steps.size() > kMostValues) return false;
        inputs_ = static_cast<size_t>(chain.inputs);
        block_ = static_cast<int64_t>(kBufferBytes / size_of(chain.dtype));
        sizes_.fill(static_cast<int64_t>(size_of(chain.dtype)));
        std::array<std::optional<bool>, kMostValues> mask{};
        size_t buffers = 0;
        int cost = 0;
        for (size_t k = 0; k < chain.steps.size(); ++k) {
            const ElementChain::Step& given = chain.steps[k];
            const OpLoops& loops = loops_of(*given.op);
            const OpLoops::Entry& entry = loops.by_dtype[static_cast<size_t>(chain.dtype)];
            const bool special = loops.takes_bools || loops.has_limits || loops.has_replacements;
            if (!entry.loop || special || static_cast<size_t>(entry.operands) != given.operands.size()) return false;
            Step step;
            step.loop = entry.loop;
            step.operands = given.operands.size();
            for (size_t i = 0; i < step.operands; ++i) {
                const auto value = static_cast<size_t>(given.operands[i]);
                step.operand[i] = value;
                // An input is a mask if the first operator that reads it takes a mask there; then it must be one
                // everywhere.
                const bool wanted = static_cast<int>(i) == entry.mask;
                if (mask[value].value_or(wanted) != wanted) return false;
                mask[value] = wanted;
                if (wanted) sizes_[value] = 1;
            }
            mask[inputs_ + k] = entry.boolean;
            step.size = sizes_[inputs_ + k] = entry.boolean ? 1 : static_cast<int64_t>(size_of(chain.dtype));
            const auto output = std::ranges::find(chain.outputs, static_cast<int>(k));
            if (output != chain.outputs.end())
                step.output = static_cast<int>(output - chain.outputs.begin());
            else
                step.buffer = buffers++;
            cost += entry.cost;
            steps_.push_back(step);
        }
        cost_ = cost;
        // A single step whose operands are the inputs in order needs no blocks.
        const Step& first = steps_[0];
        bool alike = steps_.size() == 1 && first.operands == inputs_ && first.output == 0;
        for (size_t i = 0; i < first.operands; ++i) alike &= first.operand[i] == i;
        if (alike) single_ = first.loop;
        return buffers <= kMostBuffers;
    }

    void blocks(const void* const* in, const int64_t* step, void* const* out, int64_t begin, int64_t end) const {
        alignas(64) char buffers[kMostBuffers][kBufferBytes];
        const void* value[kMostValues];
        int64_t steps[kMostValues];
        std::copy_n(step, inputs_, steps);
        std::fill_n(steps + inputs_, steps_.size(), 1);
        for (int64_t at = begin; at < end; at += block_) {
            const int64_t count = std::min(block_, end - at);
            for (size_t i = 0; i < inputs_; ++i) value[i] = static_cast<const char*>(in[i]) + at * steps[i] * sizes_[i];
            for (size_t k = 0; k < steps_.size(); ++k) {
                const Step& s = steps_[k];
                const void* from[kMostOperands];
                int64_t from_step[kMostOperands];
                for (size_t i = 0; i < s.operands; ++i) {
                    from[i] = value[s.operand[i]];
                    from_step[i] = steps[s.operand[i]];
                }
                void* to = s.output < 0 ? static_cast<void*>(buffers[s.buffer])
                                        : static_cast<char*>(out[s.output]) + at * s.size;
                s.loop(from, from_step, to, count);
                value[inputs_ + k] = to;
            }
        }
    }

    size_t inputs_ = 0;
    int64_t block_ = 0;                         // elements
    std::array<int64_t, kMostValues> sizes_{};  // of an element of each value
    std::vector<Step> steps_;
    ElementLoop single_ = nullptr;
    int cost_ = 1;
};

}  // namespace

std::unique_ptr<const ChainKernel> compile_element_chain(const ElementChain& chain) { return LoopChain::make(chain); }

}  // namespace lunaria::cpu
