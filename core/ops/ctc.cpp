// Operators: connectionist temporal classification.
// ctc_path does the part over integers: the labels with blanks between them, the states that may be reached by skipping
// a blank, the states that end a sequence, and the time steps that count. The forward recursion over time is then made
// of elementary operators in logarithms, so that derivatives of any order are those of logsumexp.
#include <limits>

#include "core/operator/infer.h"
#include "core/ops/loss.h"

namespace lunaria {

namespace {

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

// ctc_path(targets, input_lengths, target_lengths, time, classes, blank) -> (path, skip, last, active)
Types infer_ctc_path(const Call& call) {
    Shape targets = call.shape(0);
    int64_t time = call.integer(3), classes = call.integer(4), blank = call.integer(5);
    if (targets.rank() != 2)
        throw shape_error(call.name(), str("targets has shape ", targets,
                                           ": it must be (batch, longest target), one row per sample"));
    if (time < 0 || classes < 0 || time > (int64_t{1} << 40))
        throw value_error(call.name(), str("there are ", time, " time steps and ", classes, " classes"));
    if (blank < 0 || blank >= classes)
        throw index_error(call.name(), str("blank ", blank, " is out of range: classes are 0 .. ", classes - 1));
    for (size_t i : {size_t{1}, size_t{2}}) {
        expect_rank(call, i, 1);
        if (call.shape(i)[0] != targets[0] && call.shape(i).known() && targets.known())
            throw shape_error(call.name(), str(param_name(call, i), " has ", call.shape(i)[0],
                                               " lengths for a batch of ", targets[0]));
    }
    Shape states{targets[0], targets[1] < 0 ? kUnknownDim : 2 * targets[1] + 1};
    return {{DType::i64, states},
            {DType::boolean, states},
            {DType::boolean, states},
            {DType::boolean, {time, targets[0], 1}}};
}

// One step of the recursion: a state is reached from itself, from the state before it, and from the second state before
// it where no blank is needed between.
Expr step(const Expr& alpha, const Expr& skip, const Expr& nowhere) {
    int64_t states = alpha.shape()[1];
    auto delayed = [&](int64_t by) {
        Expr head = call("narrow", {nowhere, 1, 0, std::min(by, states)});
        if (by >= states) return head;
        return call("concat", {alpha.builder().list({{head, call("narrow", {alpha, 1, 0, states - by})}}), 1});
    };
    Expr skipped = call("where", {skip, delayed(2), nowhere});
    return call("logsumexp", {call("stack", {alpha.builder().list({{alpha, delayed(1), skipped}}), 0}), 0});
}

// (log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
Expr expand_ctc(const ExpandCall& c) {
    if (c.rank(0) != 3)
        throw shape_error(c.name(), str("log_probs must have the axes (time, batch, classes), not shape ", c.shape(0)));
    Shape shape = c.shape(0);
    int64_t time = shape[0], batch = shape[1];
    if (c.rank(1) != 2 || c.shape(1)[0] != batch)
        throw shape_error(c.name(), str("targets has shape ", c.shape(1), ": it must be (", batch,
                                        ", longest target), one row per sample of log_probs, whose shape is ", shape));
    // Bounds the number of steps: each is several operators of the graph.
    constexpr int64_t kMostSteps = int64_t{1} << 20;
    if (time > kMostSteps && batch > 0)
        throw shape_error(c.name(),
                          str("log_probs has shape ", shape, ": there may be at most ", kMostSteps, " steps"));
    Expr checked = call("ctc_path", {c.in(1), c.in(2), c.in(3), time, shape[2], c.args[4]});
    Expr path = checked[0], skip = checked[1], last = checked[2], active = checked[3];
    int64_t states = path.shape()[1];
    Expr index = path.reshape({1, batch, states}).broadcast_to({time, batch, states});
    Expr emitted = call("gather_elements", {c.in(0), 2, index});
    Expr nowhere = c.call("full", {Shape{batch, states}, kMinusInf, {"dtype", emitted.dtype()}});
    // Before the first step all probability is at the leading blank, from which the first two states can be reached.
    Expr alpha = c.call("full", {Shape{batch, 1}, 0.0, {"dtype", emitted.dtype()}});
    if (states > 1) {
        std::vector<Expr> parts{alpha, call("narrow", {nowhere, 1, 1, states - 1})};
        alpha = call("concat", {c.builder.list(parts), 1});
    }
    auto at = [&](const Expr& e, int64_t t) { return call("narrow", {e, 0, t, 1}).reshape({batch, e.shape()[2]}); };
    for (int64_t t = 0; t < time && batch > 0; ++t)
        alpha = call("where", {at(active, t), step(alpha, skip, nowhere) + at(emitted, t), alpha});
    Expr loss = -call("logsumexp", {call("where", {last, alpha, nowhere}), 1});
    if (c.boolean(6)) loss = call("where", {call("isinf", {loss}), c.builder.zeros_like(loss), loss});
    if (c.string(5) == "mean") {
        // Each loss is first divided by the length of its target.
        loss = loss / call("maximum", {c.in(3), 1}).cast(loss.dtype());
    }
    return reduced(loss, c.string(5));
}

// ctc_greedy_decoder(inputs, sequence_length, merge_repeated)
Expr expand_greedy(const ExpandCall& c) {
    expect_rank(c, 0, 3);
    expect_rank(c, 1, 1);
    const Shape shape = c.shape(0);
    const int64_t time = shape[0], batch = shape[1], classes = shape[2];
    if (c.shape(1)[0] != batch || classes == 0)
        throw shape_error(c.name(), str("inputs is ", shape, " and sequence_length is ", c.shape(1),
                                        ": there must be a length for each of the ", batch, " samples, and a class"));
    const Expr largest = call("max", {c.in(0), 2});
    const Expr best = largest[1].transpose({1, 0});  // (batch, time)
    const Expr steps = c.call("arange", {int64_t{0}, time, int64_t{1}, {"dtype", DType::i64}}).reshape({1, time});
    const Expr active = call("less", {steps, c.in(1).cast(DType::i64).reshape({batch, 1})});
    Expr kept = call("logical_and", {active, call("not_equal", {best, classes - 1})});
    if (c.boolean(2) && time > 1) {
        const Expr none = c.call("full", {Shape{batch, 1}, int64_t{-1}, {"dtype", DType::i64}});
        const Expr shifted[] = {none, call("narrow", {best, 1, 0, time - 1})};
        kept = call("logical_and", {kept, call("not_equal", {best, call("concat", {c.builder.list(shifted), 1})})});
    }
    const Expr counts = kept.cast(DType::i64);
    const Expr places = call("argwhere", {kept});
    const Expr within = call("gather_nd", {call("cumsum", {counts, 1}) - 1.0, places}).cast(DType::i64);
    const Expr both[] = {call("narrow", {places, 1, 0, 1}), call("expand_dims", {within, 1})};
    const Expr longest = batch > 0 && time > 0 ? call("amax", {call("sum", {counts, 1})}).cast(DType::i64).reshape({1})
                                               : c.call("zeros", {Shape{1}, {"dtype", DType::i64}});
    const Expr sizes[] = {c.call("full", {Shape{1}, batch, {"dtype", DType::i64}}), longest};
    const Expr seen = call("where", {active.transpose({1, 0}), largest[0], 0.0});
    return {c.builder,
            c.builder.tuple(
                {call("concat", {c.builder.list(both), 1}).value(), call("gather_nd", {best, places}).value(),
                 call("concat", {c.builder.list(sizes), 0}).value(), (-seen.sum({0})).reshape({batch, 1}).value()})};
}

}  // namespace

void add_ctc_ops(Registry& ops) {
    ops.add(
           "ctc_greedy_decoder(inputs: float, sequence_length: index, merge_repeated: bool = true) -> "
           "(decoded_indices, decoded_values, decoded_shape, log_probability)")
        .doc(
            "The labels that are best at each step of inputs (time, batch, classes), without blanks, which are the "
            "last "
            "class, and, with merge_repeated, without those that follow themselves: where they stand (sample, "
            "position), "
            "the labels, the shape of the matrix of them, and of each sample the negative sum of the best inputs.")
        .example("ctc_greedy_decoder(tensor{{{0.9, 0.1}}, {{0.6, 0.1}}}, tensor{2})", "tensor{{0, 0}}")
        .expand(expand_greedy)
        .method(false)
        .wide()
        .sample("f32[5,2,4], i64[2]:(1,6)")
        .sample("f32[4,3,2], i64[3]:(0,5), false");
    ops.add(
           "ctc_path(targets: index, input_lengths: index, target_lengths: index, time: int, classes: int, blank: int "
           "= 0) -> (path, skip, last, active)")
        .doc(
            "Checks the labels and lengths of ctc_loss and spells out its states: labels between blanks, which of them "
            "may follow each other without a blank, which end a sequence, and which time steps count.")
        .example("ctc_path(tensor{{1}}, tensor{1}, tensor{1}, 1, 2)", "tensor{{0, 1, 0}}")
        .infer(infer_ctc_path)
        .no_grad("labels and lengths are integers")
        .method(false)
        .raises()
        .cut("b!n,b,b->b!s,b!s,b!s,!tb!o")
        .sample("i64[2,2]:(1,4), i64[2]:(5,6), i64[2]:(1,3), 5, 4")
        .sample("i64[1,3]:(1,3), i64[1]:(7,8), i64[1]:(2,3), 7, 3");
    ops.add(
           "ctc_loss(log_probs: float, targets: index, input_lengths: index, target_lengths: index, blank: int = 0, "
           "reduction: \"mean\"|\"sum\"|\"none\" = \"mean\", zero_infinity: bool = false)")
        .doc(
            "Connectionist temporal classification: negative log-likelihood of label sequences (batch, longest) given "
            "log-probabilities (time, batch, classes), of at most 2^20 steps.")
        .source("Graves et al.: Connectionist Temporal Classification, 2006")
        .example("ctc_loss(tensor{{{-0.6931, -0.6931}}}, tensor{{1}}, tensor{1}, tensor{1})", "tensor(0.6931)")
        .expand(expand_ctc)
        .wide()
        .sample("f32[5,2,4], i64[2,2]:(1,4), i64[2]:(5,6), i64[2]:(1,3)")
        .sample("f32[7,1,3], i64[1,3]:(1,3), i64[1]:(7,8), i64[1]:(2,3), reduction=\"sum\"");
}

}  // namespace lunaria
