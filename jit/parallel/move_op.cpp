#include "jit/parallel/move_op.h"

#include <algorithm>

#include "core/base/program_place.h"
#include "core/operator/infer.h"

namespace lunaria::parallel {

MoveOp::MoveOp(Laid from, const Cause& cause, std::string place)
    : Op("redistribute(pieces: tensors, how: string)", registry()),
      from_(std::move(from)),
      cause_(cause),
      place_(std::move(place)) {
    view([](const Call& c) { return static_cast<const MoveOp&>(c.op).run(c.args[0]); });
    strided();
    half_native();
    effect(Effect::ordered);
    method(false);
}

std::unique_ptr<MoveOp> MoveOp::to_layout(Laid from, const Distribution& to, const Cause& cause, std::string place) {
    std::unique_ptr<MoveOp> op(new MoveOp(std::move(from), cause, std::move(place)));
    const Laid& x = op->from_;
    op->plan_ = plan_redistribution(*x.layout, to, x.shape, x.dtype);
    op->bytes_ = op->plan_.total_bytes;
    if (op->bytes_) op->move_ = move_of(x, op->plan_);
    op->described_ = str(x.layout->text(x.dtype, x.shape), " -> ", to.text(x.dtype, x.shape));
    if (op->bytes_) op->described_ += str(", ", op->move_.path, ", ", op->bytes_, " bytes");
    return op;
}

std::unique_ptr<MoveOp> MoveOp::to_parts(Laid from, std::vector<Region> needed, const Cause& cause, std::string place) {
    std::unique_ptr<MoveOp> op(new MoveOp(std::move(from), cause, std::move(place)));
    op->bytes_ = 1;
    op->needed_ = std::move(needed);
    op->described_ = op->from_.layout->text(op->from_.dtype, op->from_.shape) + " -> parts of others";
    return op;
}

bool MoveOp::only_slices() const {
    return needed_.empty() && &plan_.from->mesh() == &plan_.to->mesh() &&
           std::ranges::all_of(plan_.steps, [](const Step& s) { return s.kind == StepKind::slice; });
}

Value MoveOp::run(const Value& pieces) const {
    Laid x = from_;
    for (const Value& v : pieces.items()) x.pieces.push_back(v.tensor());
    const ProgramPlaceScope line(place_);
    const std::vector<Tensor> moved =
        needed_.empty() ? carry_out(x, plan_, move_, cause_).pieces : parts_of(x, needed_, cause_);
    return Value::list(std::vector<Value>(moved.begin(), moved.end()));
}

}  // namespace lunaria::parallel
