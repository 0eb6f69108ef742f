#include "jit/codegen/thread_programs.h"

#include <vector>

#include "jit/codegen/code.h"
#include "jit/codegen/emission.h"
#include "jit/codegen/far_angles.h"
#include "jit/codegen/formulas.h"
#include "jit/codegen/loop_body.h"

namespace lunaria::codegen {

namespace {

using graph::ThreadInstruction;
using graph::ThreadProgram;
using Kind = ThreadInstruction::Kind;

class ThreadProgramWriter {
  public:
    ThreadProgramWriter(llvm::Module& module, const ThreadProgram& program, ThreadModel& model)
        : program_(program), e_(module, 1, 0), b_(e_.builder), model_(model), values_(program.code.size()) {
        e_.outside = far_angle;
        if (program.exact) b_.setFastMathFlags({});
    }

    bool run(const char* symbol) {
        const Writing writing(e_);
        words_ = model_.begin(b_, symbol, program_.words, program_.threads);
        entry_ = b_.GetInsertBlock();
        // The slots of variables come before all other code.
        llvm::BasicBlock* body = block("body");
        b_.CreateBr(body);
        b_.SetInsertPoint(body);
        for (size_t i = 0; i < program_.code.size(); ++i) {
            const ThreadInstruction& at = program_.code[i];
            e_.dtype = at.dtype;
            if (writes(at.kind)) {
                write(at);
                continue;
            }
            values_[i] = value(at);
            if (!values_[i]) return false;
        }
        b_.CreateRetVoid();
        return open_.empty();
    }

  private:
    struct Open {
        llvm::BasicBlock *head = nullptr, *done = nullptr;
        llvm::Value *counter = nullptr, *step = nullptr;  // of a loop
        int64_t together = 1;
    };

    static bool writes(Kind kind) {
        switch (kind) {
            case Kind::store:
            case Kind::add_to:
            case Kind::raise_to:
            case Kind::near_store:
            case Kind::barrier:
            case Kind::set:
            case Kind::fragment:
            case Kind::product:
            case Kind::condition:
            case Kind::end:
                return true;
            default:
                return false;
        }
    }

    llvm::BasicBlock* block(const char* name) {
        return llvm::BasicBlock::Create(e_.module.getContext(), name, b_.GetInsertBlock()->getParent());
    }
    llvm::Value* arg(const ThreadInstruction& at, size_t k) { return values_[at.args[k]]; }
    DType dtype(const ThreadInstruction& at, size_t k) const { return program_.code[at.args[k]].dtype; }
    llvm::Value* alone(llvm::Value* v) { return v ? b_.CreateExtractElement(v, uint64_t{0}) : nullptr; }
    llvm::Value* word(llvm::Value* v) { return b_.CreateSExt(v, b_.getInt64Ty()); }
    llvm::Type* memory_type(DType t) { return t == DType::boolean ? b_.getInt8Ty() : e_.lane_type(t); }

    llvm::Value* value(const ThreadInstruction& at) {
        switch (at.kind) {
            case Kind::constant:
                return alone(e_.constant(at.dtype, at.number, at.integer));
            case Kind::word:
                return b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), words_,
                                                                                    static_cast<uint64_t>(at.integer)));
            case Kind::thread:
                return model_.thread();
            case Kind::threads:
                return model_.threads();
            case Kind::block:
                return model_.block();
            case Kind::blocks:
                return model_.blocks();
            case Kind::formula:
                return formula(at);
            case Kind::cast:
                return alone(e_.convert(e_.spread(arg(at, 0)), dtype(at, 0), at.dtype));
            case Kind::widen:
                return b_.CreateZExt(arg(at, 0), b_.getInt64Ty());
            case Kind::bits:
                return b_.CreateBitCast(arg(at, 0), e_.lane_type(at.dtype));
            case Kind::load:
                return read(place(at), at);
            case Kind::near_load:
                return read(near_place(at), at);
            case Kind::exchange:
                return exchange(at);
            case Kind::power_of_2:
                return power_of_2(arg(at, 0));
            case Kind::pair:
                return model_.pair(arg(at, 0), arg(at, 1), at.integer == 1);
            case Kind::variable: {
                llvm::Value* slot = add_slot(e_.lane_type(at.dtype));
                b_.CreateStore(arg(at, 0), slot);
                return slot;
            }
            case Kind::get:
                return b_.CreateLoad(e_.lane_type(at.dtype), arg(at, 0));
            case Kind::loop:
                return begin_loop(at);
            default:
                return arithmetic(at);
        }
    }

    llvm::Value* add_slot(llvm::Type* type) {
        const llvm::IRBuilder<>::InsertPointGuard guard(b_);
        b_.SetInsertPoint(entry_, entry_->begin());
        return b_.CreateAlloca(type);
    }

    llvm::Value* arithmetic(const ThreadInstruction& at) {
        llvm::Value *x = arg(at, 0), *y = arg(at, 1);
        const bool floats = x->getType()->isFloatingPointTy(), sign = has_sign(dtype(at, 0));
        switch (at.kind) {
            case Kind::add:
                return floats ? b_.CreateFAdd(x, y) : b_.CreateAdd(x, y);
            case Kind::sub:
                return floats ? b_.CreateFSub(x, y) : b_.CreateSub(x, y);
            case Kind::mul:
                return floats ? b_.CreateFMul(x, y) : b_.CreateMul(x, y);
            case Kind::div:
                return b_.CreateFDiv(x, y);
            case Kind::quotient:
                return b_.CreateUDiv(x, y);
            case Kind::remainder:
                return b_.CreateURem(x, y);
            case Kind::bit_and:
                return b_.CreateAnd(x, y);
            case Kind::bit_or:
                return b_.CreateOr(x, y);
            case Kind::bit_xor:
                return b_.CreateXor(x, y);
            case Kind::shift_left:
                return b_.CreateShl(x, y);
            case Kind::shift_right:
                return b_.CreateLShr(x, y);
            case Kind::less:
                return floats ? b_.CreateFCmpOLT(x, y) : sign ? b_.CreateICmpSLT(x, y) : b_.CreateICmpULT(x, y);
            case Kind::equal:
                return floats ? b_.CreateFCmpOEQ(x, y) : b_.CreateICmpEQ(x, y);
            case Kind::select:
                return b_.CreateSelect(x, y, arg(at, 2));
            default:
                return nullptr;
        }
    }

    llvm::Value* formula(const ThreadInstruction& at) {
        std::vector<llvm::Value*> args;
        for (uint32_t a : at.args) args.push_back(e_.spread(values_[a]));
        e_.dtype = program_.code[at.args.back()].dtype;
        return alone(write_formula(at.name, args));
    }

    llvm::Value* power_of_2(llvm::Value* v) {
        if (llvm::Value* made = model_.power_of_2(v)) return made;
        constexpr double kNatural = 0.6931471805599453;  // ln(2)
        e_.dtype = DType::f32;
        const std::vector<llvm::Value*> args{
            e_.spread(b_.CreateFMul(v, llvm::ConstantFP::get(v->getType(), kNatural)))};
        return alone(write_formula("exp", args));
    }

    llvm::Value* exchange(const ThreadInstruction& at) {
        llvm::Value* v = arg(at, 0);
        llvm::Type* bits = b_.getIntNTy(static_cast<unsigned>(v->getType()->getPrimitiveSizeInBits()));
        llvm::Value* other = model_.exchange(b_.CreateBitCast(v, bits), static_cast<int>(at.integer));
        return b_.CreateBitCast(other, v->getType());
    }

    llvm::Value* place(const ThreadInstruction& at) {
        llvm::Value* start = b_.CreateIntToPtr(arg(at, 0), b_.getPtrTy(model_.tensor_space()));
        return b_.CreateGEP(memory_type(at.dtype), start, index(arg(at, 1)));
    }
    llvm::Value* near_place(const ThreadInstruction& at) {
        llvm::Value* start =
            b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), model_.near_memory(), static_cast<uint64_t>(at.integer));
        return b_.CreateGEP(memory_type(at.dtype), start, index(arg(at, 0)));
    }
    llvm::Value* index(llvm::Value* v) { return v->getType()->isIntegerTy(64) ? v : word(v); }
    llvm::Value* read(llvm::Value* from, const ThreadInstruction& at) {
        const DType t = at.dtype;
        const llvm::Align align(at.align ? at.align : size_of(t));
        llvm::Value* v = b_.CreateAlignedLoad(memory_type(t), from, align);
        return t == DType::boolean ? b_.CreateICmpNE(v, b_.getInt8(0)) : v;
    }
    void put(llvm::Value* to, llvm::Value* v, DType t) {
        if (t == DType::boolean) v = b_.CreateZExt(v, b_.getInt8Ty());
        b_.CreateAlignedStore(v, to, llvm::Align(size_of(t)));
    }

    void write(const ThreadInstruction& at) {
        switch (at.kind) {
            case Kind::store:
                return put(place(at), arg(at, 2), at.dtype);
            case Kind::near_store:
                return put(near_place(at), arg(at, 1), at.dtype);
            case Kind::add_to:
            case Kind::raise_to: {
                const bool floats = arg(at, 2)->getType()->isFloatingPointTy();
                const auto how = at.kind == Kind::raise_to ? llvm::AtomicRMWInst::Max
                                 : floats                  ? llvm::AtomicRMWInst::FAdd
                                                           : llvm::AtomicRMWInst::Add;
                b_.CreateAtomicRMW(how, place(at), arg(at, 2), llvm::MaybeAlign(size_of(at.dtype)),
                                   llvm::AtomicOrdering::Monotonic);
                return;
            }
            case Kind::barrier:
                return model_.barrier();
            case Kind::set:
                b_.CreateStore(arg(at, 1), arg(at, 0));
                return;
            case Kind::fragment: {
                llvm::Value* bytes = b_.CreateMul(index(arg(at, 0)), b_.getInt64(2));
                llvm::Value* start = b_.CreateAdd(bytes, b_.getInt64(static_cast<uint64_t>(at.integer)));
                return set_four(at, 1, model_.fragment(start, static_cast<int>(at.number), at.name == "turned"));
            }
            case Kind::product: {
                std::vector<llvm::Value*> factors;
                ThreadModel::Four sums;
                for (size_t k = 0; k < 6; ++k) factors.push_back(arg(at, k));
                for (size_t k = 0; k < sums.size(); ++k) sums[k] = b_.CreateLoad(b_.getFloatTy(), arg(at, 6 + k));
                return set_four(at, 6, model_.product(factors, sums, at.dtype == DType::bf16));
            }
            case Kind::condition: {
                llvm::BasicBlock *body = block("then"), *done = block("done");
                b_.CreateCondBr(arg(at, 0), body, done);
                b_.SetInsertPoint(body);
                open_.push_back({nullptr, done});
                return;
            }
            default:
                end();
        }
    }

    // Variables from operand `first` on.
    void set_four(const ThreadInstruction& at, size_t first, const ThreadModel::Four& values) {
        for (size_t k = 0; k < values.size(); ++k) b_.CreateStore(values[k], arg(at, first + k));
    }

    llvm::Value* begin_loop(const ThreadInstruction& at) {
        llvm::BasicBlock *before = b_.GetInsertBlock(), *head = block("loop"), *body = block("turn"),
                         *done = block("done");
        b_.CreateBr(head);
        b_.SetInsertPoint(head);
        llvm::PHINode* counter = b_.CreatePHI(arg(at, 0)->getType(), 2);
        counter->addIncoming(arg(at, 0), before);
        b_.CreateCondBr(b_.CreateICmpSLT(counter, arg(at, 1)), body, done);
        b_.SetInsertPoint(body);
        open_.push_back({head, done, counter, arg(at, 2), at.integer});
        return counter;
    }

    void end() {
        const Open last = open_.back();
        open_.pop_back();
        if (last.counter) {
            auto* counter = llvm::cast<llvm::PHINode>(last.counter);
            counter->addIncoming(b_.CreateAdd(counter, last.step, "", false, true), b_.GetInsertBlock());
            do_together(b_.CreateBr(last.head), last.together);
        } else {
            b_.CreateBr(last.done);
        }
        b_.SetInsertPoint(last.done);
    }

    const ThreadProgram& program_;
    Emission e_;
    llvm::IRBuilder<>& b_;
    ThreadModel& model_;
    std::vector<llvm::Value*> values_;
    std::vector<Open> open_;
    llvm::Value* words_ = nullptr;
    llvm::BasicBlock* entry_ = nullptr;
};

}  // namespace

bool write_thread_program(llvm::Module& module, const ThreadProgram& program, const char* symbol, ThreadModel& model) {
    return ThreadProgramWriter(module, program, model).run(symbol);
}

}  // namespace lunaria::codegen
