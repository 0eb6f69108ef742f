#include "core/insight/answers/profiles.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>

#include "core/insight/answers/records.h"
#include "core/io/file.h"

namespace lunaria::insight {

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 28;  // a browser gets no further with more

struct Profile {
    std::string name;  // below the run's folder
    std::string place;
    uint64_t bytes = 0;
};

bool is_profile(std::string_view name) {
    const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    return name.ends_with(".json") && (has("trace") || has("profile") || has("timeline"));
}

// Links are left out: a file elsewhere is no part of the run.
void add_profiles(const std::string& place, const std::string& prefix, std::vector<Profile>& list) {
    struct stat info;
    if (lstat(place.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return;
    DIR* const folder = opendir(place.c_str());
    if (!folder) return;
    while (const dirent* entry = readdir(folder)) {
        const std::string name = entry->d_name, full = place + "/" + name;
        if (!is_profile(name) || lstat(full.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
        list.push_back({prefix + name, full, static_cast<uint64_t>(info.st_size)});
    }
    closedir(folder);
}

std::vector<Profile> profiles_in(const std::string& place) {
    std::vector<Profile> list;
    add_profiles(place, "", list);
    add_profiles(place + "/profiler", "profiler/", list);
    std::ranges::sort(list, {}, &Profile::name);
    return list;
}

}  // namespace

size_t count_of_profiles(const Run& run) { return profiles_in(run.place).size(); }

Answer profile_answer(const Store& store, const Question& question) {
    const std::string place = run_of(store.view(), question.part(1)).place;
    const auto profiles = profiles_in(place);
    if (question.path.size() == 3) {
        JsonText json;
        json.open('{').key("traces").open('[');
        for (const Profile& profile : profiles) {
            json.open('{').key("id").string(id_of(profile.name)).key("name").string(profile.name);
            json.key("bytes").number(profile.bytes).close('}');
        }
        json.close(']').close('}');
        return json_answer(json.take());
    }
    const auto found =
        std::ranges::find_if(profiles, [&](const Profile& p) { return id_of(p.name) == question.part(3); });
    if (question.path.size() != 4 || found == profiles.end()) throw Refusal{404, "there is no such profile"};
    if (found->bytes > kMostBytes) throw Refusal{413, "the profile has more than 256 MiB"};
    return json_answer(read_file(found->place, kMostBytes));
}

}  // namespace lunaria::insight
