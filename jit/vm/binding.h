// The arguments of a call as the values of an operator's parameters: by position, sizes and tensors one after the
// other, by name in a trailing table, defaults. The rules are the same whatever holds the arguments.
#pragma once

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/operator/op.h"
#include "jit/vm/host.h"

namespace lunaria::vm {

// A Source has the arguments as Items:
//   size_t count();  Item at(size_t i);
//   bool is_options(Item);      // a table whose fields name arguments
//   bool is_empty_table(Item);
//   std::optional<int64_t> size(Item);   // of an integer
//   const Tensor* tensor(Item);          // null: it is none
//   Value converted(Item, const Param&);
//   std::vector<Path> paths_of(Item, const Param&, const Value& converted, Path);
//   void for_each_option(Item, f);       // f(name of the parameter, name in the table, Item)
//   [[noreturn]] void unknown_name(std::string_view);
template <class Source>
class Binding {
  public:
    using Item = typename Source::Item;
    using Path = Host::Bound::Path;
    using Paths = std::vector<std::vector<Path>>;

    // `paths`: gets the source of each argument; null: they are not needed.
    Binding(const Op& op, Source& source, Paths* paths)
        : op_(op), source_(source), paths_(paths), args_(params().size()), given_(params().size()) {
        if (paths) paths->assign(params().size(), {});
    }

    std::vector<Value> run() {
        size_t last = source_.count();
        const auto by_position =
            static_cast<size_t>(std::ranges::count_if(params(), [](const Param& p) { return !p.by_name_only; }));
        bool has_options = false;
        if (last > 0 && source_.is_options(source_.at(last - 1))) {
            has_options = true;
            --last;
        } else if (last > by_position && source_.is_empty_table(source_.at(last - 1))) {
            --last;
        }
        size_t index = 0;
        for (size_t next = 0; index < last && next < by_position; ++next) {
            given_[next] = true;
            if (takes_sizes(next, index, last, by_position) || takes_tensors(next, index, last)) continue;
            put(next, source_.at(index), index, {});
            ++index;
        }
        if (index < last)
            throw argument_error(op_.name(), str("takes at most ", by_position, " arguments by position, got ", last))
                .hint(str("the signature is ", op_.signature.text));
        if (has_options) bind_names(last);
        set_defaults();
        return std::move(args_);
    }

    // The position of the parameter of that name; -1: there is none. `end` is a reserved word in Lua, so `stop` stands
    // for it as well.
    static int find_parameter(const Op& op, std::string_view key) {
        int i = op.signature.find(key);
        if (i < 0 && key == "stop") i = op.signature.find("end");
        if (i < 0 && key == "end") i = op.signature.find("stop");
        return i;
    }

  private:
    const std::vector<Param>& params() const { return op_.signature.params; }

    // Sizes may be separate arguments if all that follow belong to them: reshape(x, 2, 3).
    bool takes_sizes(size_t next, size_t& index, size_t last, size_t by_position) {
        const ArgType type = params()[next].type;
        if ((type != ArgType::shape && type != ArgType::ints) || index + 1 >= last) return false;
        const bool needs_more = std::any_of(params().begin() + static_cast<ptrdiff_t>(next) + 1, params().end(),
                                            [](const Param& p) { return !p.has_default && !p.by_name_only; });
        const bool overflows = last - index > by_position - next;
        if (needs_more || !(type == ArgType::shape || overflows)) return false;
        std::vector<int64_t> sizes;
        for (size_t i = index; i < last; ++i) {
            const std::optional<int64_t> size = source_.size(source_.at(i));
            if (!size) break;
            sizes.push_back(*size);
        }
        if (sizes.size() < 2) return false;
        add_paths(next, index, sizes.size());
        index += sizes.size();
        args_[next] = Value::ints(sizes);
        return true;
    }

    // Tensors one after the other where a list of them is expected.
    bool takes_tensors(size_t next, size_t& index, size_t last) {
        if (params()[next].type != ArgType::tensors) return false;
        std::vector<Value> items;
        for (size_t i = index; i < last; ++i) {
            const Tensor* t = source_.tensor(source_.at(i));
            if (!t) break;
            items.emplace_back(*t);
        }
        if (items.empty()) return false;
        add_paths(next, index, items.size());
        index += items.size();
        args_[next] = Value::list(std::move(items));
        return true;
    }

    void add_paths(size_t next, size_t index, size_t count) {
        for (size_t i = 0; paths_ && i < count; ++i) (*paths_)[next].push_back({.argument = index + i});
    }

    void bind_names(size_t argument) {
        source_.for_each_option(source_.at(argument), [&](std::string_view name, std::string_view key, Item item) {
            const int i = find_parameter(op_, name);
            if (i < 0) source_.unknown_name(name);
            const auto at = static_cast<size_t>(i);
            if (given_[at]) throw argument_error(op_.name(), str(params()[at].name, " is given twice"));
            given_[at] = true;
            put(at, item, argument, key);
        });
    }

    // `key`: the name in the table there; empty: the argument itself.
    void put(size_t at, Item item, size_t argument, std::string_view key) {
        const Param& param = params()[at];
        args_[at] = source_.converted(item, param);
        if (!paths_) return;
        Path path{.argument = argument};
        if (!key.empty()) path.name = Value(key);
        (*paths_)[at] = source_.paths_of(item, param, args_[at], std::move(path));
    }

    void set_defaults() {
        for (size_t i = 0; i < params().size(); ++i) {
            if (given_[i]) continue;
            if (!params()[i].has_default)
                throw argument_error(op_.name(),
                                     str("missing argument ", i + 1, ": ", params()[i].name, " is expected"))
                    .hint(str("the signature is ", op_.signature.text));
            args_[i] = params()[i].default_value;
        }
    }

    const Op& op_;
    Source& source_;
    Paths* const paths_;
    std::vector<Value> args_;
    std::vector<bool> given_;
};

}  // namespace lunaria::vm
