// The cheapest values of many variables, where each term of the cost depends on one variable or on two. Variables are
// eliminated one after the other: what is left of the terms that hold one is the least of their sum over its values.
// The result is exact; how long it takes depends on how the terms connect the variables, not on how many there are.
//
// Equal parts of a problem (the layers of a network) give equal tables in the same order, which are computed once.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace lunaria::parallel {

// The cost of two variables together: cells[value of the first * columns + value of the second].
struct PairTable {
    size_t rows = 0, columns = 0;
    std::vector<double> cells;
};

struct Cheapest {
    std::vector<int> values;  // of each variable; empty: nothing is allowed
    double seconds = std::numeric_limits<double>::infinity();
    double bytes = 0;
    // No better values can take less time than this; smaller than `seconds` only where the search for values within a
    // limit of bytes was cut short, or where the terms connect so many variables that values were left out.
    double bound = 0;
    bool is_exact() const { return bound >= seconds * (1 - 1e-9); }
};

class Elimination {
  public:
    static constexpr double kForbidden = std::numeric_limits<double>::infinity();
    static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

    // A variable with one value for each entry: what it costs by itself. Variables of a lower rank are eliminated
    // first: those inside of layers before those between them.
    int add_variable(std::vector<double> seconds, std::vector<double> bytes, int rank = 0);
    // The variable stands for one more like it, with the same value.
    void repeat(int variable, const std::vector<double>& seconds, const std::vector<double>& bytes);
    // Tables that are the same object are known to be equal. The same pair may be added several times.
    void add_pair(int first, int second, const std::shared_ptr<const PairTable>& seconds);

    // The variable has this value.
    void fix(int variable, int value);

    size_t count() const { return variables_.size(); }
    double seconds_of(const std::vector<int>& values) const;
    double bytes_of(const std::vector<int>& values) const;

    // The values that take the least time among those that need at most so many bytes. `effort`: how many times the
    // problem may be divided to prove that.
    Cheapest solve(double most_bytes = kUnlimited, int effort = 2000) const;
    // The same by trying all values. For checks, and for costs that are not negative.
    Cheapest exhaustive(double most_bytes = kUnlimited) const;

  private:
    struct Variable {
        std::vector<double> seconds, bytes;
        int rank = 0;
    };
    struct Pair {
        int first = 0, second = 0;
        std::shared_ptr<const PairTable> table;
        double times = 1;
    };
    using Allowed = std::vector<std::vector<int>>;  // of each variable, the values that it may have
    friend class EliminationRun;

    struct Found {
        std::vector<int> values;
        double seconds = kForbidden, bytes = 0;
        bool is_narrowed = false;  // some values were left out
    };
    // The best for seconds + price * bytes; with the price kForbidden for bytes alone.
    Found relaxed(const Allowed& allowed, double price) const;
    // `over`: the cheapest values beyond the limit that the bound comes from; empty where the result is the best.
    Cheapest within(const Allowed& allowed, double most_bytes, int turns, std::vector<int>& over) const;
    void leave_out_dominated(Allowed& allowed) const;
    std::vector<int> cheaper_half(const Allowed& allowed, int variable) const;

    std::vector<Variable> variables_;
    std::vector<Pair> pairs_;
    std::map<std::tuple<int, int, const PairTable*>, size_t> known_pairs_;
};

}  // namespace lunaria::parallel
