// Threads beside that of the program which do not share their work with the pool.
#pragma once

namespace lunaria {

// While it lives, parallel_for runs on the calling thread alone.
class LoneThread {
  public:
    LoneThread() { alone_ = true; }
    ~LoneThread() { alone_ = false; }
    LoneThread(const LoneThread&) = delete;
    LoneThread& operator=(const LoneThread&) = delete;
    static bool is_here() { return alone_; }

  private:
    static thread_local bool alone_;
};

}  // namespace lunaria
