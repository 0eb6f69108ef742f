// A program under watch: its operators as nodes of steps, the watchpoints that apply to their tensors, and what led to
// them.
//
// Operators are seen where run() runs them, in eager and in graph mode alike: while a watch is open, compiled functions
// keep to their records and run them operator by operator (Observer::sees_all), so that every node is there with its
// line. A node is called by its operator and how many of it the step had before: "conv2d-0", behind the layer of its
// parameters if it has one: "conv1/conv2d-0".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/run/observer.h"
#include "core/watch/watchpoint.h"

namespace lunaria::watch {

// Where an operand comes from.
struct Origin {
    int32_t node = -1;      // of this step; -1: from outside of it
    int32_t result = 0;     // of the node's results
    std::string parameter;  // its name, of an operand that is one
};

struct Node {
    const Op* op = nullptr;
    int32_t number = 0;  // among the step's nodes of this operator
    std::string layer;   // of its parameters; may be empty
    std::string place;   // "file:line"; may be empty
    std::vector<Origin> operands;
    bool is_looked_at = true;  // its results; a view's are when its operand is

    std::string name() const;
    // Whether it is meant by a text: its name, its layer or a part of it, its operator, its place or the end of that.
    bool is_called(std::string_view text) const;
};

struct Figures {
    std::string name;   // "result 0", "operand 1", "gradient of w", "parameter w"
    int32_t node = -1;  // that made it
    Shape shape;
    DType dtype = DType::f32;
    Statistics statistics;
    std::optional<double> value;  // of an operand: where the result has its first element that is not finite
};

struct Hit {
    size_t point = 0;
    size_t question = 0;
    double value = 0;
    int64_t step = 0;
    int32_t node = -1;  // -1: no operator of the step
    Figures tensor;
    std::vector<Figures> operands;                        // of the node
    int64_t element = -1;                                 // the first that is not finite, in row-major order
    bool is_known = false;                                // the same was found before: nothing more is told of it
    std::vector<std::pair<std::string, double>> numbers;  // among the node's arguments, by name
};

class Watch final : public Observer {
  public:
    enum class Event : uint8_t { hit, node, step };
    struct Options {
        std::vector<Watchpoint> points;
        std::function<std::string()> place;
        std::function<bool()> overflow;  // the device's flag; may be empty
        // Called after an operator, and at the end of steps; may throw.
        std::function<void(Event)> report;
        bool reports_nodes = false;  // every node is reported
        // Looks for the origin of a fault: operands from outside of the step are looked at as well, and those that an
        // operator writes before it runs.
        bool seeks_origin = false;
        std::vector<std::string> kept;  // nodes whose results are kept for comparisons with the step before
    };
    explicit Watch(Options options);

    // Operators run between these two belong to the step. Ending reports.
    // `is_call`: leave_step() is certain to be called, whatever error the step ends with.
    void begin_step(bool is_call = false);
    void end_step();
    // The step stays unfinished, after an error.
    void leave_step();
    bool is_in_step() const { return in_step_; }

    int64_t step() const { return step_; }
    // Nodes of the present or latest step.
    std::span<const Node> nodes() const { return {nodes_.data(), count_}; }
    // Hits since the last call.
    std::vector<Hit> take_hits() { return std::exchange(hits_, {}); }
    // While a node or a hit is reported: the results of the latest node, and the operands.
    std::vector<Figures> result_figures() const;
    std::vector<Figures> operand_figures() const;
    std::vector<Tensor> results() const;
    void set_reports_nodes(bool reports) { options_.reports_nodes = reports; }

    // A tensor that is kept: a result of a node, or a weight. Nothing known of the step before: `before` is empty.
    struct Kept {
        std::string name;
        Tensor now, before;
    };
    std::optional<Kept> kept(std::string_view name) const;
    std::vector<std::string> kept_names() const;

  private:
    struct Weight {
        Tensor tensor, before;             // of the step before
        int32_t reader = -1, writer = -1;  // nodes of this step
        bool is_new = true;                // not looked at yet

        const std::string& name() const { return tensor.parameter()->name; }
        // Where it was written last, or else read first.
        int32_t node() const { return writer >= 0 ? writer : reader; }
    };
    // Where the step's tensors were made, by body and by address: a table with open addressing, whose rows of earlier
    // steps are free.
    struct Made {
        const void* key = nullptr;
        const void* data = nullptr;
        size_t bytes = 0;
        int64_t step = 0;
        int32_t node = 0, result = 0;
    };
    // A call of an operator that runs.
    struct Running {
        size_t nodes, hits;  // when it began
        bool flag;           // of the device
        std::vector<Figures> operands, faulty;
    };

    void begin(const Op& op, std::span<const Value> args) override;
    void end(const Op& op, std::span<const Value> args, const Value* result) override;
    void after() override;

    int32_t next_number(const Op& op);
    int32_t add_node(const Op& op, std::span<const Value> args);
    void note_made(const Value& result, int32_t node);
    void note_made(const Tensor& t, int32_t node, int32_t result);
    // `by_any_handle`: the tensor may have come by another handle, as gradients do.
    const Made* made(const Tensor& t, bool by_any_handle = false) const;
    size_t row_of(const void* key) const;
    void note_inner_result(const Value& result, size_t first);
    void note_weights(std::span<const Value> args, bool writes);
    // Weights among the operands of a node are read or written there.
    void note_use(std::span<const Value> args, bool writes, int32_t node);
    void look_at_operands(const Op& op, std::span<const Value> args, Running& running);
    void add_faulty(const Running& running);
    void set_origin(Origin& origin, const Tensor& t, bool by_any_handle = false) const;
    Origin origin_of(const Tensor& t) const;
    void keep_earlier(Weight& w);
    void check_gradients(const Op& op, std::span<const Value> args);
    void check_results(const Op& op, std::span<const Value> args, const Value& result, const Running& running);
    void check_weights();
    // Asks the watchpoints for a target of a tensor, which what() names.
    template <class F>
    void check(Target target, Subject& subject, int32_t node, const F& what, bool at_start = false);
    void report(Event event);
    void report_hits();
    bool preserves(const Watchpoint& point, const Node& node) const;
    bool is_meant(const Watchpoint& point, int32_t node, const std::string& what) const;
    void add_hit(size_t point, const Subject::Answer& answer, Subject& subject, int32_t node, const std::string& what);
    void keep(const Value& result);
    std::vector<Figures> figures_of_operands(std::span<const Value> args, const Tensor* result = nullptr,
                                             int64_t element = -1) const;
    bool overflow() const { return options_.overflow && options_.overflow(); }

    Options options_;
    bool needs_earlier_ = false, in_step_ = false, wrote_weights_ = false;
    std::optional<Error> ended_;  // by a report, until the step is left
    bool is_call_ = false;
    bool is_reporting_ = false;  // what the report runs is not watched
    int64_t step_ = 0;
    std::vector<Node> nodes_;  // the first count_ are in use, so that their memory is used again
    size_t count_ = 0;
    std::vector<int32_t> numbers_;  // of the next node, by operator
    std::vector<Made> made_;        // a power of two
    size_t made_count_ = 0;
    std::unordered_set<const TensorBody*> seen_;  // from outside
    std::unordered_map<const TensorBody*, size_t> weight_at_;
    std::vector<Weight> weights_;
    std::vector<Running> running_;
    std::vector<Hit> hits_;
    size_t unreported_ = 0;
    std::unordered_set<std::string> known_;
    std::vector<Kept> kept_;
    // Of the node that is checked or reported.
    std::span<const Value> args_;
    const Value* result_ = nullptr;
    std::vector<Figures> operands_;  // taken before it ran
};

}  // namespace lunaria::watch
