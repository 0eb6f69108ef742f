// A saved program (.mindir) that is loaded and run without an interpreter: its calls are recorded, compiled and run
// from their records as in graph mode (jit/trace).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/io/file.h"
#include "core/ir/graph.h"

namespace lunaria::runtime {

// An input, a result or a weight; `type` as far as the file says.
struct Described {
    std::string name;
    ir::NodeType type;
};

struct Signature {
    std::vector<Described> inputs, outputs, weights;
    bool takes_more = false;             // any number of further inputs
    bool gives_any = false;              // how many results there are is known only when it has run
    std::vector<std::string> functions;  // other functions of the file, which the program calls
};

// What has happened so far.
struct Counts {
    int64_t recorded = 0, from_records = 0, graphs = 0;
    size_t kernels = 0;   // read from the cache
    std::string refusal;  // why the program is not compiled; empty where it is
};

// Not safe from several threads at once. Values are tensors, numbers, booleans, texts, nil and, as tables, those of
// table(). Tables and functions that it gives live as long as the program.
class Program {
  public:
    // Throws file_error for a file that is no program, or needs what only the full program has.
    explicit Program(const Source& source);
    ~Program();
    Program(const Program&) = delete;

    const Signature& signature() const;
    // The results of a call. Throws Error with the place in the program that was saved, as the program raises it.
    std::vector<Value> run(std::span<const Value> inputs);
    Counts counts() const;

    // A table as an input; and what a table has, in its order. Null: the value is no table.
    static Value table(std::vector<std::pair<Value, Value>> fields);
    static std::optional<std::vector<std::pair<Value, Value>>> fields(const Value& v);
    // A value as the program's own print() shows it; of tables all that is in them.
    static std::string text(const Value& v);

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace lunaria::runtime
