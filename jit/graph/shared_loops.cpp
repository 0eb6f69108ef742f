#include "jit/graph/shared_loops.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

namespace lunaria::graph {

namespace {

using Kind = LoopInstruction::Kind;

// The number of programs that differ only in numbers, from which on a shared kernel pays for reading them.
constexpr size_t kFewest = 4;

// The numbers that may come from memory. Powers are excluded: their code depends on the exponent.
std::vector<size_t> numbers_of(const LoopProgram& program) {
    std::set<size_t> exponents;
    for (const LoopInstruction& i : program.code)
        if (i.kind == Kind::formula && i.name.find("pow") != std::string::npos)
            exponents.insert(i.args.begin(), i.args.end());
    std::vector<size_t> numbers;
    for (size_t k = 0; k < program.code.size(); ++k) {
        const LoopInstruction& i = program.code[k];
        if (i.kind == Kind::constant && (i.dtype == DType::f32 || i.dtype == DType::f64) && !exponents.contains(k))
            numbers.push_back(k);
    }
    return numbers;
}

std::string text_without_numbers(LoopProgram program, const std::vector<size_t>& numbers) {
    for (size_t k : numbers) {
        program.code[k].number = 0;
        program.code[k].integer = 0;
    }
    return program.text();
}

// Numbers in memory, as operands of kernels.
class Numbers {
  public:
    // The position of a number among those of its dtype.
    int64_t place(DType dtype, double number) {
        auto& [values, places] = known_[dtype];
        auto [found, is_new] = places.try_emplace(std::bit_cast<uint64_t>(number), values.size());
        if (is_new) values.push_back(number);
        return static_cast<int64_t>(found->second);
    }
    // Adds the constants that hold the numbers to `graph`.
    std::map<DType, const ir::Node*> write(ir::Graph& graph) const {
        std::map<DType, const ir::Node*> nodes;
        for (const auto& [dtype, list] : known_) {
            const std::vector<double>& values = list.first;
            const Tensor wide = Tensor::from(std::span<const double>(values), {static_cast<int64_t>(values.size())});
            nodes[dtype] = graph.add_constant(Value(wide.cast(dtype)));
        }
        return nodes;
    }

  private:
    std::map<DType, std::pair<std::vector<double>, std::unordered_map<uint64_t, size_t>>> known_;
};

}  // namespace

void share_programs(std::vector<Loop>& loops, ir::Graph& graph) {
    std::vector<std::vector<size_t>> numbers;
    std::unordered_map<std::string, std::vector<size_t>> alike;
    for (size_t k = 0; k < loops.size(); ++k) {
        numbers.push_back(numbers_of(loops[k].program));
        if (!numbers[k].empty()) alike[text_without_numbers(loops[k].program, numbers[k])].push_back(k);
    }
    Numbers memory;
    struct Use {
        size_t loop, operand;
        DType dtype;
    };
    std::vector<Use> uses;
    for (const auto& [text, group] : alike) {
        std::set<std::string> different;
        for (size_t k : group) different.insert(loops[k].program.text());
        if (different.size() < kFewest) continue;
        const LoopProgram first = loops[group[0]].program;
        for (size_t n : numbers[group[0]]) {
            const bool same = std::all_of(group.begin(), group.end(), [&](size_t k) {
                return std::bit_cast<uint64_t>(loops[k].program.code[n].number) ==
                       std::bit_cast<uint64_t>(first.code[n].number);
            });
            if (same) continue;
            for (size_t k : group) {
                LoopProgram& program = loops[k].program;
                LoopInstruction& i = program.code[n];
                const int64_t place = memory.place(i.dtype, i.number);
                i = {.kind = Kind::load,
                     .dtype = i.dtype,
                     .row = true,
                     .index = static_cast<uint16_t>(program.operands.size())};
                uses.push_back({k, program.operands.size(), i.dtype});
                program.operands.push_back({i.dtype, LoopOperand::Step::none, false});
                loops[k].operands.push_back({nullptr, place, false});
                loops[k].sizes.insert(loops[k].sizes.end(), program.count_of_strides(program.operands.size() - 1), 0);
            }
        }
    }
    const auto nodes = memory.write(graph);
    for (const Use& use : uses) loops[use.loop].operands[use.operand].root = nodes.at(use.dtype);
}

}  // namespace lunaria::graph
