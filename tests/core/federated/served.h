// A desk of jobs with clocks that tests set, and clients that say what they want.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "core/federated/server/desk.h"

namespace lunaria::federated::tested {

// A folder of its own, which is removed.
class Folder {
  public:
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "federatedXXXXXX").string();
        path_ = mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  private:
    std::string path_;
};

inline messages::Feature feature(std::string name, const std::vector<float>& values) {
    messages::Feature feature;
    feature.name = std::move(name);
    feature.shape = {static_cast<int64_t>(values.size())};
    feature.data.resize(values.size() * sizeof(float));
    std::memcpy(feature.data.data(), values.data(), feature.data.size());
    return feature;
}
inline std::vector<float> values_of(const messages::Feature& feature) {
    std::vector<float> values(feature.data.size() / sizeof(float));
    std::memcpy(values.data(), feature.data.data(), feature.data.size());
    return values;
}

inline JobOptions options(int64_t clients, int64_t iterations = 3) {
    JobOptions options;
    options.rounds.iterations = iterations;
    options.rounds.start_threshold = clients;
    options.rounds.start_window = options.rounds.update_window = 1000;
    options.rounds.global_window = 10'000;
    return options;
}

inline std::string model(const std::vector<float>& values, int64_t version = 0) {
    messages::FeatureMap map;
    map.features.push_back(feature("w", values));
    map.version = version;
    return messages::written(map);
}

inline std::string plan() {
    messages::Plan plan;
    plan.iterations = 3;
    return messages::written(plan);
}

// A desk whose work is the mean of the updates by samples.
struct Served {
    Served(const std::string& store, const JobOptions& options, int64_t most_bytes = 0)
        : desk({store, most_bytes, false, [this] { return wall.load(); }, [this] { return steady.load(); }}) {
        desk.add("job", options);
        desk.in("job", [&](Job& job) {
            if (!job.has_model()) job.put_model(model({1, 2, 3}), "state 0");
        });
    }

    messages::Reply ask(std::string_view endpoint, const std::string& client, const std::string& content,
                        int64_t iteration = 0) {
        messages::Envelope envelope;
        envelope.job = "job";
        envelope.client = client;
        envelope.iteration = iteration;
        envelope.timestamp = wall;
        envelope.content = content;
        return desk.ask(endpoint, messages::written(envelope));
    }
    messages::Reply start(const std::string& client, int64_t samples = 1) {
        messages::StartFLJob start;
        start.samples = samples;
        return ask(messages::kStartFLJob, client, messages::written(start));
    }
    messages::Reply update(const std::string& client, int64_t iteration, const std::vector<float>& values,
                           int64_t samples = 1) {
        messages::UpdateModel update;
        update.samples = samples;
        update.features.push_back(feature("w", values));
        return ask(messages::kUpdateModel, client, messages::written(update), iteration);
    }
    // Does the work that there is; false where none comes.
    bool work(double seconds = 5) {
        const Work work = desk.next(seconds);
        if (work.kind == Work::Kind::none) return false;
        desk.in("job", [&](Job& job) {
            if (work.kind == Work::Kind::plan) return job.plan(work.iteration, plan());
            std::vector<double> sum;
            double samples = 0;
            for (const UpdateRow& row : desk.store().updates(job.number(), work.iteration)) {
                const auto update = messages::parsed<messages::UpdateModel>(
                    desk.store().update(job.number(), work.iteration, row.client), "update");
                const auto values = values_of(update.features[0]);
                sum.resize(values.size());
                for (size_t i = 0; i < values.size(); ++i) sum[i] += static_cast<double>(row.samples) * values[i];
                samples += static_cast<double>(row.samples);
            }
            std::vector<float> mean;
            for (const double x : sum) mean.push_back(static_cast<float>(x / samples));
            job.finish(work.iteration, model(mean, work.iteration), "state", plan(), "", "{}");
        });
        return true;
    }
    std::vector<float> weights() {
        std::string bytes;
        desk.in("job", [&](Job& job) { bytes = desk.store().model(job.number(), job.row().model_version); });
        return values_of(messages::parsed<messages::FeatureMap>(bytes, "model").features[0]);
    }
    // Time goes by, and the desk has seen it.
    void wait(int64_t milliseconds) {
        steady += milliseconds;
        wall += milliseconds;
        desk.in("job", [](Job&) {});
    }

    std::atomic<int64_t> wall = 1'000'000, steady = 0;
    Desk desk;
};

}  // namespace lunaria::federated::tested
