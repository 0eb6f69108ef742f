// The common base of both forms of a tree as text: literals, and writing piece by piece.
#pragma once

#include <string>

#include "jit/frontend/ast.h"
#include "jit/frontend/literals.h"

namespace lunaria::lua {

// Self must have a piece() for each kind of node and list.
template <class Self>
class TreeText {
  public:
    std::string take() { return std::move(out_); }

    void operator()(const Nil&) { out_ += "nil"; }
    void operator()(const Boolean& e) { out_ += e.value ? "true" : "false"; }
    void operator()(const Integer& e) { out_ += write_number(e.value); }
    void operator()(const Number& e) { out_ += write_number(e.value); }
    void operator()(const String& e) { out_ += write_string(e.value); }
    void operator()(const Vararg&) { out_ += "..."; }

  protected:
    template <class... Piece>
    void put(const Piece&... pieces) {
        (put_one(pieces), ...);
    }
    std::string out_;

  private:
    template <class Piece>
    void put_one(const Piece& piece) {
        if constexpr (std::is_same_v<Piece, char>)
            out_ += piece;
        else if constexpr (std::is_convertible_v<Piece, std::string_view>)
            out_ += std::string_view(piece);
        else
            static_cast<Self&>(*this).piece(piece);
    }
};

}  // namespace lunaria::lua
