#include "core/insight/answers/machine.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "core/io/json_text.h"

namespace lunaria::insight {

namespace {

constexpr double kShortest = 0.4;    // s between two samples: several windows that ask at once get the same one
constexpr size_t kLongest = 200;     // bytes of a command
constexpr size_t kMostBytes = 4096;  // of a file of a process

std::string first_bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text(kMostBytes, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(file.gcount()));
    return text;
}

struct Ticks {
    uint64_t busy = 0, all = 0;
};

struct Process {
    int id = 0;
    std::string command;
    uint64_t ticks = 0, memory = 0;  // of the processor since it began; bytes that are resident
};

// The first has all processors, the others one each.
std::vector<Ticks> processors() {
    std::vector<Ticks> list;
    std::ifstream file("/proc/stat");
    for (std::string line; std::getline(file, line) && line.starts_with("cpu");) {
        std::istringstream words(line.substr(line.find(' ')));
        Ticks ticks;
        uint64_t n = 0;
        // user, nice, system, idle, waiting for disks, interrupts, soft interrupts, taken by other machines
        for (int i = 0; i < 8 && words >> n; ++i) {
            ticks.all += n;
            if (i != 3 && i != 4) ticks.busy += n;
        }
        list.push_back(ticks);
    }
    return list;
}

bool read_process(int id, Process& process) {
    const std::string place = "/proc/" + std::to_string(id);
    struct stat info;
    if (::stat(place.c_str(), &info) != 0 || info.st_uid != geteuid()) return false;
    const std::string status = first_bytes(place + "/stat");
    const size_t open = status.find('('), end = status.rfind(')');
    if (end == std::string::npos || status.compare(open + 1, 7, "lunaria") != 0) return false;
    std::istringstream words(status.substr(end + 1));
    std::string word;
    uint64_t user = 0, system = 0, pages = 0;
    // Behind the name: the state is word 3 of the whole line, the two times are 14 and 15, the resident pages 24.
    for (int i = 3; i <= 24 && words >> word; ++i) {
        const auto number = [&] { return std::strtoull(word.c_str(), nullptr, 10); };
        if (i == 14) user = number();
        if (i == 15) system = number();
        if (i == 24) pages = number();
    }
    process.id = id;
    process.ticks = user + system;
    process.memory = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    process.command = first_bytes(place + "/cmdline").substr(0, kLongest);
    while (!process.command.empty() && process.command.back() == '\0') process.command.pop_back();
    std::ranges::replace(process.command, '\0', ' ');
    return true;
}

std::vector<Process> processes() {
    std::vector<Process> list;
    DIR* const folder = opendir("/proc");
    if (!folder) return list;
    while (const dirent* entry = readdir(folder)) {
        Process process;
        if (const int id = std::atoi(entry->d_name); id > 0 && read_process(id, process)) list.push_back(process);
    }
    closedir(folder);
    return list;
}

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Samples are differences to the one before.
class Machine {
  public:
    std::string sample(const std::string& base) {
        const std::lock_guard lock(mutex_);
        const double now = seconds_now();
        if (now - time_ < kShortest) return text_;
        JsonText json;
        json.open('{');
        put_processors(json);
        put_memory(json);
        struct statvfs disk;
        if (statvfs(base.c_str(), &disk) == 0) {
            json.key("disk").open('{').key("total").number(uint64_t{disk.f_blocks} * disk.f_frsize);
            json.key("available").number(uint64_t{disk.f_bavail} * disk.f_frsize).close('}');
        }
        put_processes(json, now - time_);
        time_ = now;
        return text_ = json.close('}').take();
    }

  private:
    void put_processors(JsonText& json) {
        const auto ticks = processors();
        const auto part = [&](size_t i) {
            const Ticks before = i < processors_.size() ? processors_[i] : Ticks();
            const uint64_t all = ticks[i].all - before.all;
            return all == 0 ? 0.0 : static_cast<double>(ticks[i].busy - before.busy) / static_cast<double>(all);
        };
        json.key("cpu").open('{');
        if (!ticks.empty()) {
            json.key("cores").number(ticks.size() - 1).key("used").number(part(0)).key("each").open('[');
            for (size_t i = 1; i < ticks.size(); ++i) json.number(part(i));
            json.close(']');
        }
        processors_ = ticks;
        double load[3];
        if (getloadavg(load, 3) == 3)
            json.key("load").open('[').number(load[0]).number(load[1]).number(load[2]).close(']');
        json.close('}');
    }

    static void put_memory(JsonText& json) {
        std::map<std::string, uint64_t> sizes;
        std::ifstream file("/proc/meminfo");
        std::string name, unit;
        for (uint64_t size = 0; file >> name >> size && std::getline(file, unit);) sizes[name] = size * 1024;
        const uint64_t total = sizes["MemTotal:"], available = std::min(sizes["MemAvailable:"], total);
        json.key("memory").open('{').key("total").number(total).key("available").number(available);
        json.key("used").number(total - available).close('}');
    }

    void put_processes(JsonText& json, double seconds) {
        std::map<int, uint64_t> ticks;
        const auto per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
        json.key("processes").open('[');
        for (const Process& process : processes()) {
            ticks[process.id] = process.ticks;
            const auto before = ticks_.find(process.id);
            // What a process did before it was seen first is not of this moment.
            const uint64_t done = before == ticks_.end() ? 0 : std::max(process.ticks, before->second) - before->second;
            json.open('{').key("pid").number(process.id).key("name").string(process.command);
            json.key("cpu").number(static_cast<double>(done) / per_second / seconds);
            json.key("memory").number(process.memory).close('}');
        }
        json.close(']');
        ticks_ = std::move(ticks);
    }

    std::mutex mutex_;
    double time_ = 0;
    std::vector<Ticks> processors_;
    std::map<int, uint64_t> ticks_;
    std::string text_;
};

}  // namespace

Answer machine_answer(const std::string& base) {
    static Machine machine;
    return json_answer(machine.sample(base));
}

}  // namespace lunaria::insight
