// The kernel's messages about itself. They go to the standard error that it was started with, where Jupyter shows it;
// the process's own is captured for the notebook.
#pragma once

#include <string_view>

namespace lunaria::jupyter {

class Log {
  public:
    // Keeps a copy of standard error as it is now.
    Log();
    ~Log();
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;

    // One line, from any thread.
    void line(std::string_view text) const;
    int file() const { return file_; }

  private:
    int file_;
};

}  // namespace lunaria::jupyter
