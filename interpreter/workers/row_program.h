// A function of rows that consists of operators: they run without Lua, on any thread, with the bits of the function's
// results. Where no operator adds up floats they run as one executable, and for several rows at once where each has a
// rule for batches; otherwise they run one by one, as Lua would call them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/data/node.h"
#include "core/ir/graph.h"
#include "jit/graph/executable.h"

namespace lunaria {

class RowProgram {
  public:
    // The graph has tensors of known types as parameters and a list of tensors as result.
    explicit RowProgram(std::unique_ptr<ir::Graph> graph);

    // Whether these are tensors of the types for which it was made.
    bool takes(std::span<const Value> in) const;
    size_t results() const { return graph_->result.items().size(); }
    // Throws the errors of operators.
    data::Row run(std::span<const Value> in) const;
    // The results of several rows, whose values it takes. False: they have to be run one by one.
    bool run_together(std::span<const data::Row> in, std::span<data::Row> out) const;

    // Whether it runs compiled, and whether it does so for several rows.
    bool is_compiled() const { return compiled_ != nullptr; }
    bool is_batched() const { return batchable_; }

  private:
    using Executables = std::map<size_t, std::unique_ptr<graph::Executable>>;
    const graph::Executable* for_rows(size_t count) const;

    std::unique_ptr<ir::Graph> graph_, expanded_;  // as it was recorded, and without composite operators
    std::vector<TensorType> types_;                // of the parameters
    std::vector<Shape> shapes_;                    // of the results
    std::unique_ptr<graph::Executable> compiled_;
    bool batchable_ = false;
    mutable std::mutex mutex_;
    mutable Executables together_;  // under mutex_: by numbers of rows; null: it cannot be compiled
};

}  // namespace lunaria
