#include "jit/codegen/loop_body.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/loops/small_product.h"
#include "jit/codegen/code.h"
#include "jit/codegen/formulas.h"

namespace lunaria::codegen {

using graph::LoopInstruction;
using graph::LoopOperand;
using graph::LoopProgram;

uint64_t widest_bytes(const LoopProgram& program) {
    uint64_t widest = 4;
    for (const LoopInstruction& i : program.code) widest = std::max({widest, size_of(i.dtype), size_of(i.operand)});
    return widest;
}

LoopBody::LoopBody(llvm::Module& module, const LoopProgram& program, int lanes, int register_bytes)
    : program_(program),
      e_(module, lanes, register_bytes),
      b_(e_.builder),
      passes_(graph::passes_of(program)),
      kept_(graph::scratch_values(program)),
      row_values_(program.code.size(), nullptr),
      accumulators_(program.code.size(), nullptr) {}

llvm::BasicBlock* LoopBody::block(const char* name) {
    return llvm::BasicBlock::Create(e_.module.getContext(), name, function_);
}

void LoopBody::make_accumulators() {
    for (size_t i = 0; i < program_.code.size(); ++i)
        if (program_.code[i].kind == Kind::reduce)
            accumulators_[i] = b_.CreateAlloca(e_.vector_type(program_.code[i].dtype));
}

llvm::Value* LoopBody::size_at(size_t i) {
    llvm::Value* at = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), sizes_, i);
    return b_.CreateLoad(b_.getInt64Ty(), at);
}

size_t LoopBody::load_sizes() {
    const auto outer = static_cast<size_t>(program_.outer_rank);
    for (size_t i = 0; i < outer; ++i) outer_.push_back(size_at(i));
    inner_ = size_at(outer);
    size_t next = outer + 1;
    for (int64_t size : program_.depth) {
        depth_.push_back(size ? b_.getInt64(static_cast<uint64_t>(size)) : size_at(next));
        ++next;
    }
    for (size_t k = 0; k < program_.operands.size(); ++k) {
        const LoopOperand& o = program_.operands[k];
        llvm::Value* at = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), pointers_, k);
        bases_.push_back(b_.CreateLoad(b_.getPtrTy(), at));
        strides_.emplace_back();
        for (size_t i = 0; i < outer; ++i) strides_.back().push_back(size_at(next++));
        wide_.push_back(o.step == LoopOperand::Step::wide ? size_at(next++) : nullptr);
        distances_.emplace_back();
        for (size_t i = 0; i < depth_.size(); ++i)
            distances_.back().push_back(b_.CreateMul(size_at(next++), b_.getInt64(size_of(o.dtype))));
    }
    return next;
}

void LoopBody::find_row(llvm::Value* row) {
    std::vector<llvm::Value*> index(outer_.size());
    llvm::Value* rest = row;
    for (size_t i = outer_.size(); i-- > 1;) {
        llvm::Value* whole = quotient(rest, outer_[i]);
        index[i] = b_.CreateSub(rest, b_.CreateMul(whole, outer_[i]));
        rest = whole;
    }
    if (!outer_.empty()) index[0] = rest;
    at_row_ = bases_;
    for (size_t k = 0; k < bases_.size(); ++k) {
        llvm::Value* offset = nullptr;
        for (size_t i = 0; i < index.size(); ++i) {
            llvm::Value* part = b_.CreateMul(index[i], strides_[k][i]);
            offset = offset ? b_.CreateAdd(offset, part) : part;
        }
        if (offset) at_row_[k] = element(bases_[k], offset, program_.operands[k].dtype);
    }
    // Of the rows that add to one place, the first is the one with index 0 along all axes that do not move the place.
    is_first_.assign(bases_.size(), nullptr);
    for (const LoopInstruction& i : program_.code) {
        if (i.kind != Kind::add) continue;
        llvm::Value* first = b_.getTrue();
        for (size_t axis = 0; axis < index.size(); ++axis) {
            llvm::Value* moves = b_.CreateICmpNE(strides_[i.index][axis], b_.getInt64(0));
            llvm::Value* starts = b_.CreateICmpEQ(index[axis], b_.getInt64(0));
            first = b_.CreateAnd(first, b_.CreateOr(moves, starts));
        }
        is_first_[i.index] = starts_sum(first);
    }
}

llvm::Value* LoopBody::element(llvm::Value* base, llvm::Value* index, DType t) {
    return b_.CreateGEP(b_.getInt8Ty(), base, b_.CreateMul(index, b_.getInt64(size_of(t))));
}

bool LoopBody::write_row(llvm::Value* row) {
    find_row(row);
    const int last = passes_.empty() ? 0 : *std::max_element(passes_.begin(), passes_.end());
    for (int pass = 0; pass <= last; ++pass) {
        if (!write_row_values(pass)) return false;
        const std::vector<size_t> wanted = targets(pass);
        if (wanted.empty()) continue;
        for (size_t i : wanted)
            if (program_.code[i].kind == Kind::reduce && !adds_in_lanes(program_.code[i]))
                b_.CreateStore(identity(program_.code[i]), accumulators_[i]);
        if (!write_columns(pass, wanted)) return false;
        for (size_t i : wanted)
            if (program_.code[i].kind == Kind::reduce) row_values_[i] = across(i);
    }
    return true;
}

// Values per row that depend on nothing in this pass over the row.
bool LoopBody::write_row_values(int pass) {
    for (size_t i = 0; i < program_.code.size(); ++i) {
        const LoopInstruction& at = program_.code[i];
        if (!at.row || passes_[i] != pass || at.kind == Kind::reduce || at.kind == Kind::add) continue;
        if (at.kind == Kind::store) {
            llvm::Value* lane = b_.CreateExtractElement(row_values_[at.args[0]], uint64_t{0});
            store_row_value(to_memory(lane, at.dtype), at_row_[at.index], llvm::Align(size_of(at.dtype)));
            continue;
        }
        row_values_[i] = at.kind == Kind::load ? load_one(at) : compute(i, row_values_);
        if (!row_values_[i]) return false;
    }
    return true;
}

// Booleans are bytes in memory.
llvm::Value* LoopBody::to_memory(llvm::Value* v, DType t) {
    if (t != DType::boolean) return v;
    llvm::Type* type = b_.getInt8Ty();
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType()))
        type = llvm::FixedVectorType::get(type, vector->getNumElements());
    return b_.CreateZExt(v, type);
}

llvm::Value* LoopBody::load_one(const LoopInstruction& at) {
    llvm::Value* one = b_.CreateAlignedLoad(memory_lane(at.dtype), at_row_[at.index], llvm::Align(size_of(at.dtype)));
    if (at.dtype == DType::boolean) one = b_.CreateICmpNE(one, b_.getInt8(0));
    return e_.spread(one);
}

llvm::Value* LoopBody::frame(llvm::Type* type, int64_t count) {
    const llvm::IRBuilder<>::InsertPointGuard guard(b_);
    llvm::BasicBlock& entry = function_->getEntryBlock();
    b_.SetInsertPoint(&entry, entry.begin());
    llvm::AllocaInst* memory = b_.CreateAlloca(llvm::ArrayType::get(type, static_cast<uint64_t>(count)));
    memory->setAlignment(llvm::Align(64));
    return memory;
}

void LoopBody::call_loop(const LoopInstruction& at, std::span<const LoopArgument> args, llvm::Value* result,
                         llvm::Value* count) {
    llvm::Type *pointer = b_.getPtrTy(), *word = b_.getInt64Ty();
    llvm::Value* operands = frame(pointer, static_cast<int64_t>(args.size()));
    llvm::Value* steps = frame(word, static_cast<int64_t>(args.size()));
    for (size_t k = 0; k < args.size(); ++k) {
        b_.CreateStore(args[k].from, b_.CreateConstInBoundsGEP1_64(pointer, operands, k));
        b_.CreateStore(b_.getInt64(static_cast<uint64_t>(args[k].step)), b_.CreateConstInBoundsGEP1_64(word, steps, k));
    }
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, pointer, word}, false);
    const std::string name = str(graph::kLoopPrefix, name_of(at.operand), '_', at.name);
    b_.CreateCall(e_.module.getOrInsertFunction(name, type), {operands, steps, result, count});
}

// Calls the loop on the lanes of a register.
llvm::Value* LoopBody::by_loop(const LoopInstruction& at, std::span<llvm::Value* const> args) {
    llvm::Type* vector = e_.vector_type(at.operand);
    std::vector<LoopArgument> places;
    for (llvm::Value* v : args) {
        places.push_back({frame(vector)});
        b_.CreateStore(v, places.back().from);
    }
    llvm::Value* result = frame(vector);
    call_loop(at, places, result, b_.getInt64(static_cast<uint64_t>(e_.lanes)));
    return b_.CreateLoad(vector, result);
}

llvm::Value* LoopBody::compute(size_t i, const std::vector<llvm::Value*>& values) {
    const LoopInstruction& at = program_.code[i];
    if (at.kind == Kind::constant) return e_.constant(at.dtype, at.number, at.integer);
    if (at.kind == Kind::cast) return e_.convert(values[at.args[0]], at.operand, at.dtype);
    std::vector<llvm::Value*> args;
    for (uint16_t a : at.args) args.push_back(values[a]);
    e_.dtype = at.operand;
    if (graph::is_done_by_loop(at.name, at.operand)) return e_.register_bytes > 0 ? by_loop(at, args) : nullptr;
    llvm::Value* result = write_formula(at.name, args);
    // Products and sums within a formula are fused, as in the vector loops of single operators. The result is rounded,
    // so that operators give the same bits together and alone.
    return result ? alone(result).v : nullptr;
}

bool LoopBody::is_kept(size_t i) const { return std::find(kept_.begin(), kept_.end(), i) != kept_.end(); }

llvm::Value* LoopBody::kept_at(size_t i, llvm::Value* column) {
    return scratch_at(static_cast<size_t>(std::find(kept_.begin(), kept_.end(), i) - kept_.begin()), column);
}

// The instructions for which the loop of a pass runs.
std::vector<size_t> LoopBody::targets(int pass) const {
    std::vector<size_t> list;
    for (size_t i = 0; i < program_.code.size(); ++i) {
        const LoopInstruction& at = program_.code[i];
        const bool stores = ((at.kind == Kind::store && !at.row) || at.kind == Kind::add) && passes_[i] == pass;
        const bool reduces = at.kind == Kind::reduce && program_.depth.empty() && passes_[i] - 1 == pass;
        const bool keeps = is_kept(i) && passes_[i] == pass;
        if (stores || reduces || keeps) list.push_back(i);
    }
    return list;
}

llvm::Value* LoopBody::lane_numbers(llvm::Type* type) {
    std::vector<llvm::Constant*> numbers;
    for (int i = 0; i < e_.lanes; ++i) numbers.push_back(llvm::ConstantInt::get(type, static_cast<uint64_t>(i)));
    return llvm::ConstantVector::get(numbers);
}

bool LoopBody::write_elements(int pass, const std::vector<size_t>& wanted, llvm::Value* column, llvm::Value* mask) {
    std::vector<llvm::Value*> values = row_values_;
    // All operands are read before any result is written: a result may take the memory of an operand.
    for (size_t i : wanted)
        if (!element_value(source_of(i), pass, values, column, mask)) return false;
    for (size_t i : wanted) {
        const LoopInstruction& at = program_.code[i];
        llvm::Value* v = values[source_of(i)];
        if (at.kind == Kind::store) {
            store(v, at, column, mask);
        } else if (at.kind == Kind::add) {
            add_row(at, v, column, mask);
        } else if (adds_in_lanes(at)) {
            add_step(i, v, mask);
        } else if (at.kind == Kind::reduce) {
            v = reduced(at, v);
            llvm::Value* sum = b_.CreateLoad(v->getType(), accumulators_[i]);
            llvm::Value* more = combine(at, sum, v);
            // Lanes past the end of the row keep their value.
            b_.CreateStore(mask ? b_.CreateSelect(mask, more, sum) : more, accumulators_[i]);
        } else {
            b_.CreateAlignedStore(v, place_to_keep(i, column), llvm::Align(8));
        }
    }
    return true;
}

void LoopBody::add_row(const LoopInstruction& at, llvm::Value* v, llvm::Value* column, llvm::Value* mask) {
    llvm::Value* sum = load(at, column, mask);
    v = reduced(at, v);
    store(b_.CreateFAdd(b_.CreateSelect(is_first_[at.index], zero_of(sum), sum), v), at, column, mask);
}

// Values are written in the order of the program, after the values from which they are computed.
bool LoopBody::element_value(size_t i, int pass, std::vector<llvm::Value*>& values, llvm::Value* column,
                             llvm::Value* mask) {
    std::vector<size_t> open{i};
    while (!open.empty()) {
        const size_t at = open.back();
        if (values[at]) {
            open.pop_back();
            continue;
        }
        const LoopInstruction& instruction = program_.code[at];
        if (llvm::Value* place = place_of(at, pass, column)) {
            values[at] = b_.CreateAlignedLoad(e_.vector_type(instruction.dtype), place, llvm::Align(8));
        } else if (instruction.kind == Kind::load) {
            const bool is_one = program_.operands[instruction.index].step == LoopOperand::Step::none;
            values[at] = is_one ? load_one(instruction) : load(instruction, column, mask);
        } else if (instruction.kind == Kind::reduce) {
            bool ready = true;
            for (size_t a : read_at_points(at)) {
                if (values[a]) continue;
                open.push_back(a);
                ready = false;
            }
            if (!ready) continue;
            if (!over_points(at, pass, values, column, mask)) return false;
        } else if (instruction.kind == Kind::product) {
            values[at] = product(instruction, column, mask);
        } else {
            bool ready = true;
            for (uint16_t a : instruction.args) {
                if (values[a]) continue;
                open.push_back(a);
                ready = false;
            }
            if (!ready) continue;
            values[at] = compute(at, values);
        }
        if (!values[at]) return false;
        open.pop_back();
    }
    return true;
}

// The values per element, or per row, that a reduction over points reads: they are computed before the points.
std::vector<size_t> LoopBody::read_at_points(size_t reduction) const {
    std::vector<size_t> outside, open(program_.code[reduction].args.begin(), program_.code[reduction].args.end());
    std::vector<bool> seen(program_.code.size(), false);
    while (!open.empty()) {
        const size_t at = open.back();
        open.pop_back();
        if (seen[at]) continue;
        seen[at] = true;
        if (!program_.code[at].point)
            outside.push_back(at);
        else
            open.insert(open.end(), program_.code[at].args.begin(), program_.code[at].args.end());
    }
    return outside;
}

// Reduces the points of neighbouring elements, one point after the other.
bool LoopBody::over_points(size_t reduction, int pass, std::vector<llvm::Value*>& values, llvm::Value* column,
                           llvm::Value* mask) {
    const LoopInstruction& at = program_.code[reduction];
    const bool in_lanes = adds_in_lanes(at);
    PointLanes lanes(*this, at);
    if (!in_lanes) b_.CreateStore(identity(at), accumulators_[reduction]);
    if (in_lanes && program_.depth[0] == 0) lanes.make();
    const std::vector<llvm::Value*> row = at_row_;
    const bool good = write_points(0, [&] {
        std::vector<llvm::Value*> here = values;
        const size_t source = at.args[0];
        if (!element_value(source, pass, here, column, mask)) return false;
        llvm::Value* const v = here[source];
        if (in_lanes) {
            lanes.add(v);
            return true;
        }
        // Only the sum uses this product; fusing the two only makes the result more accurate.
        if (auto* product = llvm::dyn_cast<llvm::BinaryOperator>(v);
            product && product->getOpcode() == llvm::Instruction::FMul && at.name == "sum")
            product->setHasAllowContract(true);
        llvm::Value *const so_far = accumulators_[reduction], *const more = reduced(at, v);
        b_.CreateStore(combine(at, b_.CreateLoad(more->getType(), so_far), more), so_far);
        return true;
    });
    at_row_ = row;
    values[reduction] = in_lanes ? lanes.total() : b_.CreateLoad(e_.vector_type(at.dtype), accumulators_[reduction]);
    return good;
}

// Where points are written one by one, lanes are registers; where loops go through the points, they are memory.
void LoopBody::PointLanes::make() {
    llvm::IRBuilder<>& b = body_.b_;
    llvm::Type *wide = body_.e_.vector_type(at_.dtype), *own = body_.e_.vector_type(at_.operand);
    sums_ = body_.frame(wide, kSumLanes);
    pairs_ = body_.frame(own, kSumLanes);
    singles_ = body_.frame(own, kSumLanes);
    count_ = body_.frame(b.getInt64Ty());
    b.CreateStore(b.getInt64(0), count_);
    for (uint64_t lane = 0; lane < kSumLanes; ++lane) {
        b.CreateStore(llvm::Constant::getNullValue(wide), place(sums_, at_.dtype, b.getInt64(lane)));
        b.CreateStore(llvm::Constant::getNullValue(own), place(pairs_, at_.operand, b.getInt64(lane)));
        b.CreateStore(llvm::Constant::getNullValue(own), place(singles_, at_.operand, b.getInt64(lane)));
    }
}

llvm::Value* LoopBody::PointLanes::place(llvm::Value* memory, DType t, llvm::Value* lane) {
    return body_.b_.CreateGEP(body_.e_.vector_type(t), memory, lane);
}
llvm::Value* LoopBody::PointLanes::widened(llvm::Value* v) { return body_.e_.convert(v, at_.operand, at_.dtype); }

void LoopBody::PointLanes::add(llvm::Value* v) {
    llvm::IRBuilder<>& b = body_.b_;
    if (!sums_) {
        steps_[points_++ % kSumLanes].push_back(v);
        return;
    }
    llvm::Value* number = b.CreateLoad(b.getInt64Ty(), count_);
    b.CreateStore(b.CreateAdd(number, b.getInt64(1)), count_);
    llvm::Value* lane = b.CreateAnd(number, b.getInt64(kSumLanes - 1));
    llvm::Value* step = b.CreateAnd(b.CreateUDiv(number, b.getInt64(kSumLanes)), b.getInt64(kSumLeaf - 1));
    llvm::Value* pairs = b.CreateICmpNE(b.CreateAnd(step, b.getInt64(1)), b.getInt64(0));
    llvm::Value* ends = b.CreateICmpEQ(step, b.getInt64(kSumLeaf - 1));
    llvm::Value *to_single = place(singles_, at_.operand, lane), *to_pair = place(pairs_, at_.operand, lane),
                *to_sum = place(sums_, at_.dtype, lane);
    llvm::Value* zero = body_.zero_of(v);
    llvm::Value* single = b.CreateFAdd(b.CreateLoad(v->getType(), to_single), v);
    llvm::Value* before = b.CreateLoad(v->getType(), to_pair);
    llvm::Value* pair = b.CreateFAdd(before, single);
    b.CreateStore(b.CreateSelect(pairs, zero, single), to_single);
    b.CreateStore(b.CreateSelect(ends, zero, b.CreateSelect(pairs, pair, before)), to_pair);
    llvm::Value* wide = widened(b.CreateSelect(ends, pair, zero));
    b.CreateStore(b.CreateFAdd(b.CreateLoad(wide->getType(), to_sum), wide), to_sum);
}

llvm::Value* LoopBody::PointLanes::total() {
    llvm::IRBuilder<>& b = body_.b_;
    llvm::Type *wide = body_.e_.vector_type(at_.dtype), *own = body_.e_.vector_type(at_.operand);
    std::array<llvm::Value*, kSumLanes> lanes;
    for (size_t i = 0; i < kSumLanes; ++i) {
        if (sums_) {
            llvm::Value* lane = b.getInt64(i);
            llvm::Value* rest = b.CreateFAdd(b.CreateLoad(own, place(pairs_, at_.operand, lane)),
                                             b.CreateLoad(own, place(singles_, at_.operand, lane)));
            lanes[i] = b.CreateFAdd(b.CreateLoad(wide, place(sums_, at_.dtype, lane)), widened(rest));
            continue;
        }
        lanes[i] = llvm::Constant::getNullValue(wide);
        const std::vector<llvm::Value*>& steps = steps_[i];
        for (size_t k = 0; k < steps.size(); k += kSumLeaf)
            lanes[i] = b.CreateFAdd(lanes[i], widened(body_.leaf(std::span(steps).subspan(k))));
    }
    join_lanes(lanes.data(), kSumLanes, 1, [&](llvm::Value* x, llvm::Value* y) { return b.CreateFAdd(x, y); });
    return lanes[0];
}

llvm::Value* LoopBody::leaf(std::span<llvm::Value* const> steps) {
    llvm::Value* sum = steps[0];
    if (steps.size() > 1) sum = b_.CreateFAdd(sum, steps[1]);
    if (steps.size() > 2) sum = b_.CreateFAdd(sum, steps.size() > 3 ? b_.CreateFAdd(steps[2], steps[3]) : steps[2]);
    return sum;
}

// The points from this axis of the depth on, with the operands' addresses of a point in at_row_. Sizes that the program
// knows are small: their points are written one by one.
bool LoopBody::write_points(size_t axis, const std::function<bool()>& at_point) {
    if (axis == depth_.size()) return at_point();
    const std::vector<llvm::Value*> from = at_row_;
    if (const int64_t size = program_.depth[axis]; size > 0) {
        for (int64_t i = 0; i < size; ++i) {
            step_to_points(axis, b_.getInt64(static_cast<uint64_t>(i)), from);
            if (!write_points(axis + 1, at_point)) return false;
        }
        at_row_ = from;
        return true;
    }
    auto* body = block("points");
    auto* done = block("points.done");
    llvm::BasicBlock* before = b_.GetInsertBlock();
    b_.CreateCondBr(b_.CreateICmpSGT(depth_[axis], b_.getInt64(0)), body, done);
    b_.SetInsertPoint(body);
    llvm::PHINode* number = b_.CreatePHI(b_.getInt64Ty(), 2);
    number->addIncoming(b_.getInt64(0), before);
    std::vector<llvm::PHINode*> moving(from.size(), nullptr);
    for (size_t k = 0; k < from.size(); ++k) {
        if (program_.operands[k].written) continue;
        moving[k] = b_.CreatePHI(b_.getPtrTy(), 2);
        moving[k]->addIncoming(from[k], before);
        at_row_[k] = moving[k];
    }
    if (!write_points(axis + 1, at_point)) return false;
    for (size_t k = 0; k < from.size(); ++k)
        if (moving[k])
            moving[k]->addIncoming(b_.CreateGEP(b_.getInt8Ty(), moving[k], distances_[k][axis]), b_.GetInsertBlock());
    llvm::Value* next = b_.CreateAdd(number, b_.getInt64(1));
    number->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpSLT(next, depth_[axis]), body, done);
    b_.SetInsertPoint(done);
    at_row_ = from;
    return true;
}

void LoopBody::step_to_points(size_t axis, llvm::Value* number, const std::vector<llvm::Value*>& from) {
    for (size_t k = 0; k < from.size(); ++k) {
        if (program_.operands[k].written) continue;
        at_row_[k] = b_.CreateGEP(b_.getInt8Ty(), from[k], b_.CreateMul(number, distances_[k][axis]));
    }
}

// Neighbouring columns of a row times a matrix. Sums of every fourth product are computed side by side: a single sum
// would wait for each addition.
llvm::Value* LoopBody::product(const LoopInstruction& at, llvm::Value* column, llvm::Value* mask) {
    constexpr int64_t kSums = kProductSums, kTurn = 16;
    llvm::Type* type = e_.vector_type(at.dtype);
    llvm::Type* lane = e_.lane_type(at.dtype);
    const llvm::Align align(size_of(at.dtype));
    llvm::Value* zero = llvm::Constant::getNullValue(type);
    llvm::Value* columns = element(at_row_[at.matrix], column, at.dtype);
    std::vector<llvm::Value*> sums(kSums, zero);
    auto step = [&](llvm::Value* x, llvm::Value* y, int64_t k) {
        llvm::Value* left = b_.CreateAlignedLoad(lane, element(x, b_.getInt64(k), at.dtype), align);
        llvm::Value* from = element(y, b_.getInt64(k * at.stride), at.dtype);
        llvm::Value* right = mask ? static_cast<llvm::Value*>(b_.CreateMaskedLoad(type, from, align, mask, zero))
                                  : b_.CreateAlignedLoad(type, from, align);
        llvm::Value*& sum = sums[static_cast<size_t>(k % kSums)];
        sum = b_.CreateFAdd(sum, b_.CreateFMul(e_.spread(left), right));
    };
    const int64_t turns = at.depth / kTurn;
    llvm::Value* row = at_row_[at.index];
    if (turns > 0) {
        auto* body = block("product");
        auto* done = block("product.done");
        llvm::BasicBlock* before = b_.GetInsertBlock();
        b_.CreateBr(body);
        b_.SetInsertPoint(body);
        llvm::PHINode* turn = b_.CreatePHI(b_.getInt64Ty(), 2);
        turn->addIncoming(b_.getInt64(0), before);
        std::vector<llvm::PHINode*> carried;
        for (llvm::Value*& sum : sums) {
            carried.push_back(b_.CreatePHI(type, 2));
            carried.back()->addIncoming(zero, before);
            sum = carried.back();
        }
        llvm::Value* k = b_.CreateMul(turn, b_.getInt64(kTurn));
        llvm::Value* x = element(row, k, at.dtype);
        llvm::Value* y = element(columns, b_.CreateMul(k, b_.getInt64(at.stride)), at.dtype);
        for (int64_t i = 0; i < kTurn; ++i) step(x, y, i);
        llvm::Value* next = b_.CreateAdd(turn, b_.getInt64(1));
        turn->addIncoming(next, body);
        for (size_t i = 0; i < sums.size(); ++i) carried[i]->addIncoming(sums[i], body);
        b_.CreateCondBr(b_.CreateICmpSLT(next, b_.getInt64(turns)), body, done);
        b_.SetInsertPoint(done);
    }
    for (int64_t k = turns * kTurn; k < at.depth; ++k) step(row, columns, k);
    return b_.CreateFAdd(b_.CreateFAdd(sums[0], sums[1]), b_.CreateFAdd(sums[2], sums[3]));
}

llvm::Value* LoopBody::lane_addresses(const LoopInstruction& at, llvm::Value* column) {
    llvm::Value* index = b_.CreateAdd(e_.spread(column), lane_numbers(b_.getInt64Ty()));
    llvm::Value* step = b_.CreateMul(wide_[at.index], b_.getInt64(size_of(at.dtype)));
    return b_.CreateGEP(b_.getInt8Ty(), at_row_[at.index], b_.CreateMul(index, e_.spread(step)));
}

llvm::Value* LoopBody::load_neighbours(llvm::Value* from, llvm::Type* type, DType t, llvm::Value* mask) {
    if (!mask) return b_.CreateAlignedLoad(type, from, vector_align(t));
    return b_.CreateMaskedLoad(type, from, llvm::Align(size_of(t)), mask, llvm::Constant::getNullValue(type));
}

llvm::Value* LoopBody::load(const LoopInstruction& at, llvm::Value* column, llvm::Value* mask) {
    llvm::Type* type = llvm::FixedVectorType::get(memory_lane(at.dtype), static_cast<unsigned>(e_.lanes));
    llvm::Value* zero = llvm::Constant::getNullValue(type);
    llvm::Value* v = nullptr;
    if (program_.operands[at.index].step == LoopOperand::Step::wide) {
        llvm::Value* all =
            llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(static_cast<unsigned>(e_.lanes)), b_.getTrue());
        v = b_.CreateMaskedGather(type, lane_addresses(at, column), llvm::Align(size_of(at.dtype)), mask ? mask : all,
                                  zero);
    } else {
        v = load_neighbours(element(at_row_[at.index], column, at.dtype), type, at.dtype, mask);
    }
    return at.dtype == DType::boolean ? b_.CreateICmpNE(v, zero) : v;
}

void LoopBody::store(llvm::Value* v, const LoopInstruction& at, llvm::Value* column, llvm::Value* mask) {
    v = to_memory(v, at.dtype);
    llvm::Value* to = element(at_row_[at.index], column, at.dtype);
    if (mask)
        b_.CreateMaskedStore(v, to, llvm::Align(size_of(at.dtype)), mask);
    else
        store_all(v, to, at.dtype);
}

// The summand, in the dtype of the sum, where threads add one after the other.
llvm::Value* LoopBody::reduced(const LoopInstruction& at, llvm::Value* v) {
    if (at.operand != at.dtype) v = e_.convert(v, at.operand, at.dtype);
    return at.name == "squares" ? b_.CreateFMul(v, v) : v;
}

llvm::Value* LoopBody::identity(const LoopInstruction& at) {
    const double infinity = std::numeric_limits<double>::infinity();
    const double number = at.name == "max" ? -infinity : at.name == "min" ? infinity : 0.0;
    return e_.constant(at.dtype, number, 0);
}

llvm::Value* LoopBody::combine(const LoopInstruction& at, llvm::Value* a, llvm::Value* b) {
    e_.dtype = at.dtype;
    if (at.name == "sum" || at.name == "squares") return b_.CreateFAdd(a, b);
    llvm::Value* args[] = {a, b};
    return write_formula(at.name == "max" ? "maximum" : "minimum", args);
}

llvm::Value* LoopBody::lane_total(size_t i) {
    const LoopInstruction& at = program_.code[i];
    llvm::Value* v = b_.CreateLoad(e_.vector_type(at.dtype), accumulators_[i]);
    for (int half = e_.lanes / 2; half >= 1; half /= 2) {
        std::vector<int> order;
        for (int lane = 0; lane < e_.lanes; ++lane) order.push_back(lane ^ half);
        v = combine(at, v, b_.CreateShuffleVector(v, order));
    }
    return b_.CreateExtractElement(v, uint64_t{0});
}

}  // namespace lunaria::codegen
