// Answers to questions about one graph: what its page asks, and programs for the reference product.
#pragma once

#include <mutex>

#include "core/insight/graph/drawing.h"
#include "core/io/json_text.h"
#include "core/io/question.h"

namespace lunaria::insight {

class GraphPage {
  public:
    GraphPage(OperatorGraph graph, std::string name);

    const GraphModel& model() const { return model_; }

    // The path begins behind that of the graph:
    //   (nothing)       what there is to choose: names, counts of marks, the grouping that is shown first
    //   view            the picture, as bytes_of() has it; names?q=&limit=  nodes by name, type or scope
    //   nodes/N         attributes, inputs, users, equal nodes; groups/N  operators by type, equal groups
    //   reach?node=&way=up|down   the items of the view that a node depends on, or that depend on it
    //   route?from=&to=           the nodes on the shortest way
    //   parts           the equal parts; svg  the picture as a file; json  the whole graph
    //   overlay         POST {name: number ...}: the numbers of nodes and the sums of groups
    // A picture is chosen by the parameters by=scopes|file|parts|none,
    // hide=gradients,optimizer,plumbing,constants,parameters, inputs and open=auto|all|N,N-N ...; nodes and groups are
    // numbers. Throws a Refusal.
    Answer answer(const Question& question);
    // diff?…: this graph before, another one after; {"added", "removed", "changed"}, by number of the graph each is in.
    Answer difference(const GraphModel& after) const;
    // What the reference product has below datavisual/graphs: nodes?name=, nodes/names?search=&offset=&limit=,
    // nodes/all, single-node?name=; mode=optimized leaves out gradients, the optimizer and plumbing.
    Answer reference_answer(const Question& question) const;

    // For pictures that are no answers. `f(scene, view)`.
    template <class F>
    auto with_view(const Question& question, const F& f) {
        const std::lock_guard lock(mutex_);
        Scene& scene = scene_of(question);
        return f(scene, scene.view(open_in(question, scene)));
    }

  private:
    Grouping grouping_of(const Question& question) const;
    uint8_t hidden_in(const Question& question) const;
    Scene& scene_of(const Question& question);
    std::set<int32_t> open_in(const Question& question, Scene& scene) const;
    int32_t node_in(std::string_view text) const;
    // Repaired where that is known.
    const std::string& shown_scope(int32_t node) const;
    void put_node(JsonText& json, const Tree& tree, int32_t node) const;
    Answer about();
    Answer whole(const Question& question);
    Answer names(const Question& question);
    Answer node(const Question& question);
    Answer group(const Question& question);
    Answer reach(const Question& question);
    Answer route(const Question& question);
    Answer parts(const Question& question);
    Answer overlay(const Question& question);

    const GraphModel model_;
    std::mutex mutex_;  // of the scenes
    std::map<std::pair<Grouping, uint8_t>, std::unique_ptr<Scene>> scenes_;
};

}  // namespace lunaria::insight
