#include "jit/codegen/loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "jit/codegen/code.h"
#include "jit/codegen/loop_body.h"

namespace lunaria::codegen {

namespace {

using graph::LoopProgram;

// The number of lanes in a program's registers. Sums along rows have fixed lanes, whatever the register.
int lanes_for(const LoopProgram& program, int register_bytes) {
    const bool sums = std::ranges::any_of(program.code, [](const graph::LoopInstruction& i) {
        return adds_along_row(i) || i.kind == graph::LoopInstruction::Kind::add;
    });
    if (sums && program.in_order && program.depth.empty()) return kSumLanes;
    return program.tile * register_bytes / static_cast<int>(widest_bytes(program));
}

class LoopWriter : public LoopBody {
  public:
    LoopWriter(llvm::Module& module, const LoopProgram& program, int register_bytes)
        : LoopBody(module, program, lanes_for(program, register_bytes), register_bytes) {}

    bool run(const char* symbol) {
        const Writing writing(e_);
        begin_function(symbol);
        load_sizes();
        make_accumulators();
        bool good = true;
        count_up(row_begin_, row_end_, b_.getInt64(1), [&](llvm::Value* row) {
            good = program_.has_sums && program_.in_order ? write_turns(row) : write_row(row);
        });
        // Stores past the caches are not ordered with later ones by themselves.
        if (program_.streams) b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
        b_.CreateRetVoid();
        return good;
    }

  private:
    void begin_function(const char* symbol) {
        llvm::Type* pointer = b_.getPtrTy();
        llvm::Type* word = b_.getInt64Ty();
        auto* type =
            llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, word, word, word, word, pointer}, false);
        function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, e_.module);
        function_->addFnAttr(llvm::Attribute::NoUnwind);
        // No loop may become a call of memset or memcpy: generated code has no addresses of them.
        function_->addFnAttr("no-builtins");
        function_->addFnAttr("prefer-vector-width", "512");
        function_->addFnAttr("min-legal-vector-width", "512");
        b_.SetInsertPoint(block("entry"));
        pointers_ = function_->getArg(0);
        sizes_ = function_->getArg(1);
        row_begin_ = function_->getArg(2);
        row_end_ = function_->getArg(3);
        column_begin_ = function_->getArg(4);
        column_end_ = function_->getArg(5);
        scratch_ = function_->getArg(6);
    }

    // A row that adds to others is kept, paired with the one before it, or ends a leaf (core/loops/sum_order.h).
    bool write_turns(llvm::Value* row) {
        llvm::Value* turn = b_.CreateAnd(b_.CreateSub(row, row_begin_), b_.getInt64(kSumLeaf - 1));
        auto* done = block("turn.done");
        auto* other = block("turn.other");
        llvm::SwitchInst* choice = b_.CreateSwitch(turn, other, 2);
        bool good = true;
        for (const Turn t : {Turn::kept, Turn::paired, Turn::ended}) {
            auto* here = t == Turn::kept ? other : block("turn");
            if (t == Turn::paired) choice->addCase(b_.getInt64(1), here);
            if (t == Turn::ended) choice->addCase(b_.getInt64(kSumLeaf - 1), here);
            b_.SetInsertPoint(here);
            turn_ = t;
            good = good && write_row(row);
            b_.CreateBr(done);
        }
        b_.SetInsertPoint(done);
        return good;
    }
    void add_row(const graph::LoopInstruction& at, llvm::Value* v, llvm::Value* column, llvm::Value* mask) override {
        if (!program_.in_order) return LoopBody::add_row(at, v, column, mask);
        size_t which = 0;
        for (const graph::LoopInstruction* i = program_.code.data(); i != &at; ++i) which += i->kind == Kind::add;
        auto place = [&](size_t k) {
            llvm::Value* length = b_.CreateAdd(inner_, b_.getInt64(64));
            llvm::Value* start = b_.CreateGEP(b_.getInt64Ty(), scratch_, b_.CreateMul(length, b_.getInt64(k)));
            return element(start, column, at.operand);
        };
        auto load = [&](llvm::Value* from) { return b_.CreateAlignedLoad(v->getType(), from, llvm::Align(4)); };
        llvm::Value *single = place(2 * which), *pair = place(2 * which + 1);
        // The buffer has room past the end of a row.
        if (turn_ == Turn::kept) {
            b_.CreateAlignedStore(v, single, llvm::Align(4));
            return;
        }
        llvm::Value* two = b_.CreateFAdd(load(single), v);
        if (turn_ == Turn::paired) {
            b_.CreateAlignedStore(two, pair, llvm::Align(4));
            return;
        }
        llvm::Value* four = e_.convert(b_.CreateFAdd(load(pair), two), at.operand, at.dtype);
        store(b_.CreateFAdd(LoopBody::load(at, column, mask), four), at, column, mask);
    }

    // Adds the next numbers to a sum along a row. In the last, incomplete part of a block they are collected in memory.
    void add_step(size_t i, llvm::Value* v, llvm::Value* mask) override {
        const graph::LoopInstruction& at = program_.code[i];
        DType t = at.operand;
        const bool squares = at.name == "squares";
        if (squares && wide_squares_) v = e_.convert(v, t, at.dtype), t = at.dtype;
        if (squares) v = alone(b_.CreateFMul(v, v)).v;
        if (mask) v = b_.CreateSelect(mask, v, zero_of(v));
        if (rest_.is_open) {
            llvm::Value *single = rest_.singles.at(i), *pair = rest_.pairs.at(i);
            llvm::Value* two = b_.CreateFAdd(b_.CreateLoad(v->getType(), single), v);
            b_.CreateStore(b_.CreateSelect(rest_.pairs_up, zero_of(v), two), single);
            b_.CreateStore(b_.CreateSelect(rest_.pairs_up, two, b_.CreateLoad(v->getType(), pair)), pair);
            return;
        }
        std::vector<llvm::Value*>& steps = steps_[i];
        steps.push_back(v);
        if (steps.size() < kSumLeaf) return;
        add_leaf(i, leaf(steps), t);
        steps.clear();
    }
    void add_leaf(size_t i, llvm::Value* v, DType t) {
        llvm::Value* wide = e_.convert(v, t, program_.code[i].dtype);
        b_.CreateStore(b_.CreateFAdd(b_.CreateLoad(wide->getType(), accumulators_[i]), wide), accumulators_[i]);
    }
    DType step_dtype(size_t i) const {
        const graph::LoopInstruction& at = program_.code[i];
        return at.name == "squares" && wide_squares_ ? at.dtype : at.operand;
    }

    // Sums are computed block by block.
    bool write_columns(int pass, const std::vector<size_t>& wanted) override {
        std::vector<size_t> sums;
        for (size_t i : wanted)
            if (adds_in_lanes(program_.code[i])) sums.push_back(i);
        if (sums.empty()) return write_part(pass, wanted, column_begin_, column_end_);
        bool good = write_blocks(pass, wanted, sums);
        for (size_t i : sums) {
            const graph::LoopInstruction& at = program_.code[i];
            if (at.name != "squares" || at.operand == at.dtype) continue;
            // If squares leave the range of their dtype, the sum is computed again.
            auto* again = block("squares.again");
            auto* done = block("squares.done");
            llvm::Type* number = e_.lane_type(at.dtype);
            llvm::Value* limit = llvm::ConstantFP::getInfinity(number);
            b_.CreateCondBr(b_.CreateFCmpOLT(b_.CreateLoad(number, totals_[i]), limit), done, again);
            b_.SetInsertPoint(again);
            wide_squares_ = true;
            good = good && write_blocks(pass, {i}, {i});
            wide_squares_ = false;
            b_.CreateBr(done);
            b_.SetInsertPoint(done);
        }
        return good;
    }
    bool write_blocks(int pass, const std::vector<size_t>& wanted, const std::vector<size_t>& sums) {
        for (size_t i : sums) {
            llvm::Type* number = e_.lane_type(program_.code[i].dtype);
            if (!totals_.contains(i)) totals_[i] = frame(number);
            b_.CreateStore(llvm::Constant::getNullValue(number), totals_[i]);
        }
        bool good = true;
        llvm::Value* size = b_.getInt64(static_cast<uint64_t>(kSumBlock));
        count_up(column_begin_, column_end_, size, [&](llvm::Value* begin) {
            for (size_t i : sums)
                b_.CreateStore(llvm::Constant::getNullValue(e_.vector_type(program_.code[i].dtype)), accumulators_[i]);
            llvm::Value* end = b_.CreateAdd(begin, at_most(size, b_.CreateSub(column_end_, begin)));
            good = write_part(pass, wanted, begin, end);
            for (size_t i : sums) {
                llvm::Value* so_far = b_.CreateLoad(e_.lane_type(program_.code[i].dtype), totals_[i]);
                b_.CreateStore(b_.CreateFAdd(so_far, lane_total(i)), totals_[i]);
            }
        });
        return good;
    }
    llvm::Value* across(size_t i) override {
        if (!adds_in_lanes(program_.code[i])) return LoopBody::across(i);
        return e_.spread(b_.CreateLoad(e_.lane_type(program_.code[i].dtype), totals_.at(i)));
    }
    llvm::Value* at_most(llvm::Value* most, llvm::Value* count) {
        return b_.CreateSelect(b_.CreateICmpSLT(count, most), count, most);
    }

    bool write_part(int pass, const std::vector<size_t>& wanted, llvm::Value* from, llvm::Value* to) {
        const std::vector<LoopStage> stages = stages_of(pass, wanted);
        if (stages.empty()) return write_range(pass, wanted, from, to);
        bool good = true;
        llvm::Value* size = b_.getInt64(kBlock);
        count_up(from, to, size, [&](llvm::Value* begin) {
            block_begin_ = begin;
            llvm::Value* count = at_most(size, b_.CreateSub(to, begin));
            llvm::Value* end = b_.CreateAdd(begin, count);
            for (const LoopStage& stage : stages) {
                fills_buffers_ = true;
                for (size_t i : stage.kept) make_buffer(i);
                good = good && (stage.kept.empty() || write_range(pass, stage.kept, begin, end));
                fills_buffers_ = false;
                is_full_.insert(stage.kept.begin(), stage.kept.end());
                for (size_t i : stage.loops) write_call(i, begin, count);
                is_full_.insert(stage.loops.begin(), stage.loops.end());
            }
            good = good && write_range(pass, wanted, begin, end);
        });
        is_full_.clear();
        return good;
    }

    // Whole vectors, in groups as large as a leaf where there is a sum, then the rest.
    bool write_range(int pass, const std::vector<size_t>& wanted, llvm::Value* begin, llvm::Value* end) {
        std::vector<size_t> sums;
        for (size_t i : wanted)
            if (adds_in_lanes(program_.code[i])) sums.push_back(i);
        const int steps = sums.empty() ? 1 : kSumLeaf;
        const auto lanes = static_cast<uint64_t>(e_.lanes);
        auto* head = block("whole");
        auto* body = block("whole.body");
        auto* rest = block("rest");
        auto* done = block("pass.done");
        llvm::BasicBlock* before = b_.GetInsertBlock();
        b_.CreateBr(head);
        b_.SetInsertPoint(head);
        llvm::PHINode* at = b_.CreatePHI(b_.getInt64Ty(), 2);
        at->addIncoming(begin, before);
        llvm::Value* next = b_.CreateAdd(at, b_.getInt64(lanes * static_cast<uint64_t>(steps)));
        b_.CreateCondBr(b_.CreateICmpSLE(next, end), body, rest);
        b_.SetInsertPoint(body);
        for (int step = 0; step < steps; ++step) {
            llvm::Value* column = step ? b_.CreateAdd(at, b_.getInt64(lanes * static_cast<uint64_t>(step))) : at;
            if (!write_elements(pass, wanted, column, nullptr)) return false;
        }
        at->addIncoming(next, b_.GetInsertBlock());
        b_.CreateBr(head);

        b_.SetInsertPoint(rest);
        const bool good =
            sums.empty() ? write_rest(pass, wanted, at, end) : write_rest_of_sums(pass, wanted, sums, at, end);
        b_.CreateBr(done);
        b_.SetInsertPoint(done);
        return good;
    }
    llvm::Value* mask_of(llvm::Value* at, llvm::Value* end) {
        llvm::Value* count = e_.spread(b_.CreateTrunc(b_.CreateSub(end, at), b_.getInt32Ty()));
        return b_.CreateICmpULT(lane_numbers(b_.getInt32Ty()), count);
    }
    bool write_rest(int pass, const std::vector<size_t>& wanted, llvm::Value* at, llvm::Value* end) {
        auto* body = block("rest.body");
        auto* done = block("rest.done");
        b_.CreateCondBr(b_.CreateICmpSLT(at, end), body, done);
        b_.SetInsertPoint(body);
        const bool good = write_elements(pass, wanted, at, mask_of(at, end));
        b_.CreateBr(done);
        b_.SetInsertPoint(done);
        return good;
    }
    // Fewer vectors than a leaf has, or an incomplete one.
    bool write_rest_of_sums(int pass, const std::vector<size_t>& wanted, const std::vector<size_t>& sums,
                            llvm::Value* at, llvm::Value* end) {
        for (size_t i : sums) {
            llvm::Type* type = e_.vector_type(step_dtype(i));
            rest_.singles[i] = frame(type);
            rest_.pairs[i] = frame(type);
            b_.CreateStore(llvm::Constant::getNullValue(type), rest_.singles[i]);
            b_.CreateStore(llvm::Constant::getNullValue(type), rest_.pairs[i]);
        }
        bool good = true;
        llvm::Value* lanes = b_.getInt64(static_cast<uint64_t>(e_.lanes));
        count_up(at, end, lanes, [&](llvm::Value* column) {
            rest_.is_open = true;
            rest_.pairs_up = b_.CreateICmpEQ(b_.CreateSub(column, at), lanes);
            good = write_elements(pass, wanted, column, mask_of(column, end));
            rest_.is_open = false;
        });
        for (size_t i : sums) {
            const DType t = step_dtype(i);
            llvm::Value* pair = b_.CreateLoad(e_.vector_type(t), rest_.pairs[i]);
            add_leaf(i, b_.CreateFAdd(pair, b_.CreateLoad(e_.vector_type(t), rest_.singles[i])), t);
        }
        return good;
    }

    // Rows of the scratch memory are longer than those of the operands, since whole vectors are stored.
    llvm::Value* scratch_at(size_t which, llvm::Value* column) override {
        llvm::Value* length = b_.CreateAdd(inner_, b_.getInt64(64));
        llvm::Value* start = b_.CreateMul(length, b_.getInt64(which));
        return b_.CreateGEP(b_.getInt64Ty(), scratch_, b_.CreateAdd(start, column));
    }

    void store_all(llvm::Value* v, llvm::Value* to, DType t) override {
        if (!program_.streams) {
            LoopBody::store_all(v, to, t);
            return;
        }
        // Results start at a multiple of 64 bytes, and parts of a row at a multiple of 64 elements.
        const uint64_t bytes = std::min<uint64_t>(64, size_of(t) * static_cast<uint64_t>(e_.lanes));
        llvm::StoreInst* streamed = b_.CreateAlignedStore(v, to, llvm::Align(bytes));
        llvm::Metadata* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
        streamed->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(e_.module.getContext(), {one}));
    }

    // A stage of a pass over a block of a row: values are stored for eager mode's loops, which are then called.
    struct LoopStage {
        std::vector<size_t> kept, loops;
    };
    // The stages that compute the wanted values of a pass, without the last one, which stores nothing for loops and
    // calls none.
    std::vector<LoopStage> stages_of(int pass, const std::vector<size_t>& wanted) const;
    bool is_by_loop(size_t i) const {
        const graph::LoopInstruction& at = program_.code[i];
        return at.kind == Kind::formula && !at.row && graph::is_done_by_loop(at.name, at.operand);
    }
    // Whether the loops read a value directly from an operand.
    bool is_read_in_place(size_t i) const {
        const graph::LoopInstruction& at = program_.code[i];
        return at.kind == Kind::load && program_.operands[at.index].step == graph::LoopOperand::Step::dense;
    }
    llvm::Value* place_of(size_t i, int pass, llvm::Value* column) override {
        return is_full_.contains(i) ? buffer_at(i, column) : LoopBody::place_of(i, pass, column);
    }
    llvm::Value* place_to_keep(size_t i, llvm::Value* column) override {
        return fills_buffers_ ? buffer_at(i, column) : LoopBody::place_to_keep(i, column);
    }
    // Room past the end of a block, since whole vectors are stored.
    void make_buffer(size_t i) {
        const DType t = program_.code[i].dtype;
        if (!buffers_.contains(i))
            buffers_[i] = frame(b_.getInt8Ty(), (kBlock + 64) * static_cast<int64_t>(size_of(t)));
    }
    llvm::Value* buffer_at(size_t i, llvm::Value* column) {
        return element(buffers_.at(i), b_.CreateSub(column, block_begin_), program_.code[i].dtype);
    }
    void write_call(size_t i, llvm::Value* begin, llvm::Value* count) {
        const graph::LoopInstruction& at = program_.code[i];
        std::vector<LoopArgument> args;
        for (uint16_t a : at.args) {
            const graph::LoopInstruction& arg = program_.code[a];
            if (is_one_value(a)) {
                llvm::Value* spread = row_values_[a] ? row_values_[a] : compute(a, row_values_);
                llvm::Value* one = frame(e_.lane_type(arg.dtype));
                b_.CreateStore(b_.CreateExtractElement(spread, uint64_t{0}), one);
                args.push_back({one, 0});
            } else if (is_read_in_place(a)) {
                args.push_back({element(at_row_[arg.index], begin, arg.dtype)});
            } else {
                args.push_back({buffers_.at(a)});
            }
        }
        make_buffer(i);
        call_loop(at, args, buffers_.at(i), count);
    }
    bool is_one_value(size_t i) const { return program_.code[i].row || program_.code[i].kind == Kind::constant; }

    // The number of elements for which the loops are called at a time: a call costs little beside them, and their data
    // stays in the first cache.
    static constexpr int64_t kBlock = 256;

    enum class Turn { kept, paired, ended };
    Turn turn_ = Turn::kept;                             // of the present row
    std::map<size_t, llvm::Value*> totals_;              // of a row's sums so far, by instruction
    std::map<size_t, std::vector<llvm::Value*>> steps_;  // of a leaf that is not complete, by instruction
    bool wide_squares_ = false;
    struct {
        bool is_open = false;
        llvm::Value* pairs_up = nullptr;  // this step makes a pair of the first two
        std::map<size_t, llvm::Value*> singles, pairs;
    } rest_;
    std::map<size_t, llvm::Value*> buffers_;  // of a block, by instruction
    std::set<size_t> is_full_;                // the buffers that hold values of the current block
    bool fills_buffers_ = false;
    llvm::Value* block_begin_ = nullptr;
    llvm::Value *row_begin_ = nullptr, *row_end_ = nullptr, *column_begin_ = nullptr, *column_end_ = nullptr,
                *scratch_ = nullptr;
};

// From the last instruction to the first, so that the stages that read an instruction are known before it.
std::vector<LoopWriter::LoopStage> LoopWriter::stages_of(int pass, const std::vector<size_t>& wanted) const {
    if (!program_.depth.empty()) return {};
    const size_t size = program_.code.size();
    std::vector<size_t> ready(size, 0);  // the first stage in which the values can be computed
    auto is_called = [&](size_t i) { return is_by_loop(i) && !is_from_earlier(i, pass); };
    auto complete = [&](size_t i) { return ready[i] + (is_called(i) ? 1 : 0); };
    for (size_t i = 0; i < size; ++i)
        if (!is_one_value(i) && !is_from_earlier(i, pass))
            for (uint16_t a : program_.code[i].args) ready[i] = std::max(ready[i], complete(a));
    size_t last = 0;
    for (size_t i : wanted) last = std::max(last, complete(source_of(i)));
    std::vector<LoopStage> stages(last);
    std::vector<std::set<size_t>> uses(size);
    std::vector<bool> is_passed(size, false);  // passed to a loop
    for (size_t i : wanted) uses[source_of(i)].insert(last);
    for (size_t i = size; i-- > 0;) {
        const graph::LoopInstruction& at = program_.code[i];
        if (uses[i].empty() || is_one_value(i)) continue;
        const size_t first = *uses[i].begin();
        if (is_called(i)) {
            stages[ready[i]].loops.push_back(i);
            for (uint16_t a : at.args) {
                is_passed[a] = !is_called(a) && !is_read_in_place(a);
                uses[a].insert(ready[i]);
            }
            continue;
        }
        const bool keeps = is_passed[i] || (uses[i].size() > 1 && graph::is_expensive(at));
        if (keeps) stages[first].kept.push_back(i);
        if (is_from_earlier(i, pass)) continue;
        for (uint16_t a : at.args) {
            if (keeps)
                uses[a].insert(first);
            else
                uses[a].insert(uses[i].begin(), uses[i].end());
        }
    }
    return stages;
}

}  // namespace

bool write_loop(llvm::Module& module, const graph::LoopProgram& program, const char* symbol, int register_bytes) {
    return LoopWriter(module, program, register_bytes).run(symbol);
}

}  // namespace lunaria::codegen
