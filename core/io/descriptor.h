#pragma once

#include <unistd.h>

#include <utility>

namespace lunaria {

// Owns a file descriptor; -1: none.
class Descriptor {
  public:
    explicit Descriptor(int number = -1) : number_(number) {}
    ~Descriptor() { reset(-1); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    explicit operator bool() const { return number_ >= 0; }
    int number() const { return number_; }
    int release() { return std::exchange(number_, -1); }
    void reset(int number) {
        if (number_ >= 0) close(number_);
        number_ = number;
    }

  private:
    int number_;
};

}  // namespace lunaria
