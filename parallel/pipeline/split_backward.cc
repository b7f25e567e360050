#include "parallel/pipeline/split_backward.h"

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>

namespace plait::parallel {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;

Edge EdgeOf(const at::Tensor& tensor) { return torch::autograd::impl::gradient_edge(tensor); }

// Finds the nodes of a graph that lead to one of its inputs.
class Paths {
 public:
  explicit Paths(const edge_list& inputs) {
    for (const Edge& input : inputs) leads_[input.function.get()] = true;
  }

  // Visits all nodes reachable from `root`: depth first, without recursion.
  void Follow(const std::shared_ptr<Node>& root) {
    std::vector<std::pair<std::shared_ptr<Node>, std::size_t>> stack;
    const auto enter = [&](const std::shared_ptr<Node>& node) {
      if (node != nullptr && leads_.try_emplace(node.get(), false).second) stack.emplace_back(node, 0);
    };
    enter(root);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < node->num_outputs()) {
        enter(std::shared_ptr<Node>(node->next_edge(next++).function));
        continue;
      }
      for (const Edge& edge : node->next_edges()) {
        if (LeadsToInput(edge)) leads_[node.get()] = true;
      }
      if (leads_[node.get()]) on_path_.push_back(node);
      stack.pop_back();
    }
  }

  bool LeadsToInput(const Edge& edge) const {
    const auto found = leads_.find(edge.function.get());
    return edge.is_valid() && found != leads_.end() && found->second;
  }
  // Without the inputs themselves.
  const std::vector<std::shared_ptr<Node>>& on_path() const { return on_path_; }

 private:
  std::unordered_map<const Node*, bool> leads_;
  std::vector<std::shared_ptr<Node>> on_path_;
};

bool MeetsParameter(const Paths& paths, const Node& node) {
  return std::any_of(node.next_edges().begin(), node.next_edges().end(),
                     [&](const Edge& edge) { return edge.is_valid() && !paths.LeadsToInput(edge); });
}

variable_list Execute(const edge_list& roots, const variable_list& gradients, bool keep_graph,
                      const edge_list& outputs) {
  return torch::autograd::Engine::get_default_engine().execute(roots, gradients, keep_graph,
                                                               /*create_graph=*/false,
                                                               /*accumulate_grad=*/outputs.empty(), outputs);
}

}  // namespace

struct SplitBackward::Cut {
  edge_list
      edges;  // where the graph is cut, and outputs that lead to no input; the gradients that arrive there
  variable_list gradients;
};

SplitBackward::SplitBackward() = default;
SplitBackward::~SplitBackward() = default;
SplitBackward::SplitBackward(SplitBackward&&) noexcept = default;
SplitBackward& SplitBackward::operator=(SplitBackward&&) noexcept = default;

std::vector<at::Tensor> SplitBackward::InputGradients(const std::vector<at::Tensor>& outputs,
                                                      const std::vector<at::Tensor>& gradients,
                                                      const std::vector<at::Tensor>& inputs) {
  edge_list roots, ends;
  variable_list given;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !outputs[i].requires_grad() || !gradients[i].defined()) continue;
    roots.push_back(EdgeOf(outputs[i]));
    given.push_back(gradients[i]);
  }
  for (const at::Tensor& input : inputs) {
    if (input.defined() && input.requires_grad()) ends.push_back(EdgeOf(input));
  }
  std::vector<at::Tensor> of_inputs(inputs.size());
  Paths paths(ends);
  for (const Edge& root : roots) paths.Follow(root.function);
  edge_list captured = ends;
  for (const std::shared_ptr<Node>& node : paths.on_path()) {
    if (!MeetsParameter(paths, *node)) continue;
    for (std::uint32_t nr = 0; nr < node->num_inputs(); ++nr) captured.emplace_back(node, nr);
  }
  cut_ = std::make_unique<Cut>();
  edge_list leading;
  variable_list given_to_leading;
  for (std::size_t i = 0; i < roots.size(); ++i) {
    const bool leads = paths.LeadsToInput(roots[i]);
    (leads ? leading : cut_->edges).push_back(roots[i]);
    (leads ? given_to_leading : cut_->gradients).push_back(given[i]);
  }
  if (leading.empty()) return of_inputs;
  const variable_list arrived = Execute(leading, given_to_leading, /*keep_graph=*/true, captured);
  for (const std::shared_ptr<Node>& node : paths.on_path()) {
    // A saved input of a layer keeps the previous nodes alive, but does not need them.
    if (!MeetsParameter(paths, *node)) node->release_variables();
    for (Edge& edge : node->next_edges()) {
      if (paths.LeadsToInput(edge)) edge = Edge();
    }
  }
  std::size_t end = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined() && inputs[i].requires_grad()) of_inputs[i] = arrived[end++];
  }
  for (std::size_t i = 0; i < captured.size(); ++i) {
    // The second part does not include leaves among the inputs, but the parameters behind other inputs.
    const bool is_leaf = i < ends.size() && captured[i].function->num_outputs() == 0;
    if (is_leaf || !arrived[i].defined()) continue;
    cut_->edges.push_back(captured[i]);
    cut_->gradients.push_back(arrived[i]);
  }
  return of_inputs;
}

void SplitBackward::WeightGradients() {
  if (cut_ == nullptr) return;
  const std::unique_ptr<Cut> cut = std::move(cut_);
  if (!cut->edges.empty()) Execute(cut->edges, cut->gradients, /*keep_graph=*/false, {});
}

}  // namespace plait::parallel
