#include "core/parallel/traffic.h"

#include <algorithm>
#include <mutex>

#include "core/base/error.h"
#include "core/base/program_place.h"
#include "core/base/warning.h"
#include "core/operator/op.h"
#include "core/parallel/redistribution.h"
#include "core/parallel/rule.h"

namespace lunaria::parallel {

namespace {

struct Record {
    std::mutex mutex;
    std::vector<MovementTotal> list;
    OnReshard mode = OnReshard::silent;
};
Record& record() {
    static auto* all = new Record;
    return *all;
}

// The name of the operand in the operator's signature.
std::string operand_name(const Cause& cause) {
    if (!cause.rule) return {};
    const Operand& operand = cause.rule->operands[cause.operand];
    const std::string name(cause.op->signature.params[operand.argument].name);
    return operand.item < 0 ? name : str(name, '[', operand.item + 1, ']');
}

// The axes of a step in the words of the program's mesh, of which the step's may be a finer one: dp for dp_0.dp_1.
std::string axes_text(const Step& step, const Mesh& mesh) {
    const Mesh& finer = step.from->mesh();
    if (&finer == &mesh) return mesh.names_of(step.axes);
    AxisSet rest = step.axes;
    std::string text;
    for (const std::string& name : mesh.names()) {
        AxisSet parts = 0;
        for (int m = 0; m < finer.axes(); ++m)
            if (finer.name(m) == name || finer.name(m).starts_with(name + "_")) parts |= axis_bit(m);
        if (!parts || (parts & ~rest)) continue;
        rest &= ~parts;
        text += (text.empty() ? "" : ".") + name;
    }
    if (rest) text += (text.empty() ? "" : ".") + finer.names_of(rest);
    return text;
}

std::string path_of(const Plan& plan) {
    std::string text;
    for (const Step& step : plan.steps)
        text += str(text.empty() ? "" : " ", name_of(step.kind), '(', axes_text(step, plan.from->mesh()), ')');
    return text;
}

// Whether elements of pieces move that are complete: sums that have to be completed belong to what was asked for.
bool moves_pieces(const Distribution& from, const Distribution& to) {
    if (&from.mesh() != &to.mesh()) return true;
    for (int a = 0; a < from.rank(); ++a) {
        const auto before = from.cuts(a), after = to.cuts(a);
        if (before.size() > after.size() || !std::equal(before.begin(), before.end(), after.begin())) return true;
    }
    return false;
}

}  // namespace

void set_on_reshard(OnReshard mode) {
    std::lock_guard lock(record().mutex);
    record().mode = mode;
}
OnReshard on_reshard() {
    std::lock_guard lock(record().mutex);
    return record().mode;
}

std::vector<MovementTotal> movements() {
    std::lock_guard lock(record().mutex);
    return record().list;
}
void forget_movements() {
    std::lock_guard lock(record().mutex);
    record().list.clear();
}

Move move_of(const Laid& x, const Plan& plan) {
    return {x.layout->text(x.dtype, x.shape), plan.to->text(x.dtype, x.shape), path_of(plan), plan.total_bytes,
            moves_pieces(*x.layout, *plan.to)};
}

void check_movement(const Move& move, const Cause& cause) {
    const OnReshard mode = on_reshard();
    if (mode == OnReshard::silent || !cause.op || !move.bytes || !move.moves_pieces) return;
    const std::string operand = operand_name(cause);
    const std::string text = str(operand.empty() ? "an operand" : operand, " is ", move.from, " and is needed as ",
                                 move.to, ": ", move.path, ", ", move.bytes, " bytes");
    const std::string hint =
        "lay it out so before with ms.reshard, or allow it: ms.set_parallel { on_reshard = \"silent\" }";
    if (mode == OnReshard::error) throw state_error(cause.op->name(), text).hint(hint);
    warn(program_place(), str(cause.op->name(), ": ", text), hint);
}

void note_movement(const Move& move, const Cause& cause, int64_t bytes) {
    if (!move.bytes) return;
    MovementTotal m{program_place(),
                    cause.op ? std::string(cause.op->name()) : "",
                    operand_name(cause),
                    move.from,
                    move.to,
                    move.path,
                    cause.rule ? describe(*cause.rule) : std::string(cause.why),
                    0,
                    0,
                    cause.op && move.moves_pieces};
    Record& all = record();
    std::lock_guard lock(all.mutex);
    auto same = std::ranges::find_if(all.list, [&](const MovementTotal& o) {
        return o.place == m.place && o.operation == m.operation && o.operand == m.operand && o.from == m.from &&
               o.to == m.to && o.path == m.path;
    });
    if (same == all.list.end()) same = all.list.insert(same, std::move(m));
    ++same->calls;
    same->bytes += bytes;
}

}  // namespace lunaria::parallel
