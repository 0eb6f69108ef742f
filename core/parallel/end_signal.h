// SIGTERM to a rank that another program has started: mpirun ends all ranks when one of them is lost, before these have
// noticed. A rank that is ended so tells first which one was lost, and then ends by the signal.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace lunaria::parallel {

class EndSignal {
  public:
    // `reason` is asked some times for why the signal may have come (empty: nothing is known yet); `ends` is told it
    // before the process ends. Both are called by a thread of this object. Nothing is done where the program handles
    // the signal in a way of its own. One object at a time.
    EndSignal(std::function<std::string()> reason, std::function<void(const std::string&)> ends);
    ~EndSignal();
    EndSignal(const EndSignal&) = delete;
    EndSignal& operator=(const EndSignal&) = delete;

  private:
    void watch();
    const std::function<std::string()> reason_;
    const std::function<void(const std::string&)> ends_;
    int file_ = -1;  // the handler writes to it
    std::thread thread_;
};

}  // namespace lunaria::parallel
