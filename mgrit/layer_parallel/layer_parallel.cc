#include "mgrit/layer_parallel/layer_parallel.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm/gathered_text.h"
#include "mgrit/layer_parallel/block_step.h"
#include "mgrit/layer_parallel/engine.h"

namespace plait::mgrit {

// The two solves as one autograd function of u_0, conditioning and parameters.
class LayerParallel::Function : public torch::autograd::Function<LayerParallel::Function> {
 public:
  // Owned by the autograd node. Returns the solve to the pool when the node is destroyed, or after a backward that
  // frees the graph.
  class Holder final : public torch::CustomClassHolder {
   public:
    Holder(std::shared_ptr<Engine> engine, std::unique_ptr<NetworkSolve> solve)
        : engine_(std::move(engine)), solve_(std::move(solve)) {}
    ~Holder() override { Release(); }
    void Release() {
      if (solve_ != nullptr) engine_->Return(std::move(solve_));
    }
    Engine& engine() { return *engine_; }
    NetworkSolve* solve() { return solve_.get(); }

   private:
    std::shared_ptr<Engine> engine_;
    std::unique_ptr<NetworkSolve> solve_;
  };

  // `anchor` requires a gradient, so that all ranks take part in the backward, even if nothing on this rank requires
  // one.
  static at::Tensor forward(torch::autograd::AutogradContext* context, const std::shared_ptr<Engine>& engine,
                            const at::Tensor& u_0, const Engine::Surroundings& surroundings,
                            const at::Tensor& /*anchor*/, at::TensorList leaves) {
    std::unique_ptr<NetworkSolve> solve = engine->Take(u_0, /*recorded=*/true);
    const at::Tensor end = engine->Forward(*solve, u_0, surroundings);
    context->save_for_backward(leaves.vec());
    context->saved_data["wants_input_gradient"] = u_0.requires_grad();
    context->saved_data["solve"] =
        c10::IValue::make_capsule(c10::make_intrusive<Holder>(engine, std::move(solve)));
    return end;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list output_gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(),
                "LayerParallel: the backward pass cannot be differentiated again; call backward without "
                "create_graph");
    const auto capsule = context->saved_data["solve"].toCapsule();
    Holder& holder = *static_cast<Holder*>(capsule.get());
    TORCH_CHECK(holder.solve() != nullptr,
                "LayerParallel: backward through the same graph a second time; the first call needs "
                "retain_graph");
    // Throws if one of them was modified since forward.
    const torch::autograd::variable_list leaves = context->get_saved_variables();
    torch::autograd::variable_list gradients = holder.engine().Backward(
        *holder.solve(), output_gradients[0], context->saved_data["wants_input_gradient"].toBool(), leaves);
    if (!torch::autograd::get_current_graph_task_keep_graph()) holder.Release();
    gradients.insert(gradients.begin(), at::Tensor());         // the engine
    gradients.insert(gradients.begin() + 2, 2, at::Tensor());  // the surroundings and the anchor
    return gradients;
  }
};

LayerParallelOptions MakeLayerParallelOptions(int levels, int cfactor, int forward_iterations,
                                              int backward_iterations) {
  LayerParallelOptions options;
  options.forward.max_levels = levels;
  options.forward.cfactors = {cfactor};
  options.forward.cf_sweeps = {0, 1};
  options.forward.skip_downcycle = true;
  options.backward = options.forward;
  options.forward.max_iterations = forward_iterations;
  options.backward.max_iterations = backward_iterations;
  return options;
}

namespace {

// Collective. OK if all ranks name the same tied parameters.
absl::Status AgreeOnTied(const comm::Communicator& communicator, const LayerParallel::TiedParameters& tied) {
  std::ostringstream text;
  for (const auto& [name, tensor] : tied) text << name << " " << tensor.toString() << tensor.sizes() << "; ";
  const std::string mine = text.str();
  const std::string first = comm::BroadcastText(communicator, mine);
  if (first == mine) return absl::OkStatus();
  return absl::InvalidArgumentError("LayerParallel: ranks name different tied parameters: rank 0 \"" + first +
                                    "\", rank " + std::to_string(communicator.rank()) + " \"" + mine + "\"");
}

}  // namespace

LayerParallel::LayerParallel(comm::Communicator communicator, const BlockFactory& make_block,
                             std::int64_t steps, double final_time, const LayerParallelOptions& options,
                             const TiedParameters& tied) {
  const auto step = std::make_shared<BlockStep>(make_block, tied, options.recomputes);
  engine_ = std::make_shared<Engine>(communicator, step, steps, final_time, options);
  absl::Status status = AgreeOnTied(communicator, tied);
  status.Update(step->status());
  status.Update(step->CheckOtherRanks(communicator));
  status = communicator.Agree(status);
  TORCH_CHECK(status.ok(), std::string(status.message()));
}

LayerParallel::LayerParallel(comm::Communicator communicator, std::shared_ptr<models::Block> shared_block,
                             std::int64_t steps, double final_time, const LayerParallelOptions& options)
    : LayerParallel(std::move(communicator),
                    std::make_shared<BlockStep>(std::move(shared_block), options.recomputes), steps,
                    final_time, options) {}

LayerParallel::LayerParallel(comm::Communicator communicator, std::shared_ptr<TensorStep> step,
                             std::int64_t steps, double final_time, const LayerParallelOptions& options)
    : engine_(
          std::make_shared<Engine>(std::move(communicator), std::move(step), steps, final_time, options)) {}

LayerParallel::~LayerParallel() = default;

absl::Status LayerParallel::Check(const LayerParallelOptions& options, std::int64_t steps) {
  if (options.forward.cfactors != options.backward.cfactors ||
      options.forward.max_levels != options.backward.max_levels) {
    return absl::InvalidArgumentError("the forward and the backward solve need the same levels and factors");
  }
  for (const Options* one : {&options.forward, &options.backward}) {
    if (one->periodic) {
      return absl::InvalidArgumentError("periodic: networks start from their input; expected false");
    }
    if (one->delta_rank != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("delta_rank is ", one->delta_rank, "; blocks have no tangents for it; expected 0"));
    }
  }
  const absl::Status forward = Validate(options.forward, steps);
  return forward.ok() ? Validate(options.backward, steps) : forward;
}

at::Tensor LayerParallel::Forward(const at::Tensor& u_0, const models::BlockContext& context,
                                  const std::vector<at::Tensor>& conditioning) {
  const Engine::Surroundings surroundings = {context, conditioning};
  // Another rank's parameters may require gradients, so all ranks record.
  if (at::GradMode::is_enabled()) {
    std::vector<at::Tensor> leaves;
    std::copy_if(conditioning.begin(), conditioning.end(), std::back_inserter(leaves),
                 [](const at::Tensor& tensor) { return tensor.requires_grad(); });
    for (const at::Tensor& parameter : Parameters()) leaves.push_back(parameter);
    const at::Tensor anchor = at::empty({0}).requires_grad_(true);
    return Function::apply(engine_, u_0, surroundings, anchor, at::TensorList(leaves));
  }
  std::unique_ptr<NetworkSolve> solve = engine_->Take(u_0, /*recorded=*/false);
  const at::Tensor end = engine_->Forward(*solve, u_0, surroundings);
  engine_->Return(std::move(solve));
  return end;
}

std::vector<at::Tensor> LayerParallel::Parameters() const { return engine_->step().Parameters(); }
std::int64_t LayerParallel::steps() const { return engine_->steps(); }
std::int64_t LayerParallel::first_step() const { return engine_->first_step(); }
std::int64_t LayerParallel::last_step() const { return engine_->last_step(); }
const Solution& LayerParallel::last_forward() const { return engine_->last_forward(); }
const Solution& LayerParallel::last_backward() const { return engine_->last_backward(); }

std::int64_t LayerParallel::shared_parameters() const { return engine_->step().SharedParameters(); }
bool LayerParallel::linearises_ahead() const { return engine_->step().LinearisesAhead(); }

absl::Status LayerParallel::SetOptions(const LayerParallelOptions& options) {
  const absl::Status fits = engine_->CheckOptions(options);
  if (fits.ok()) engine_->SetOptions(options);
  return fits;
}

absl::Status LayerParallel::CheckOptions(const LayerParallelOptions& options) const {
  return engine_->CheckOptions(options);
}

void LayerParallel::set_iterations(int forward, int backward) { engine_->set_iterations(forward, backward); }
void LayerParallel::set_propagation(Propagation propagation) { engine_->set_propagation(propagation); }
std::int64_t LayerParallel::diverged_solves() const { return engine_->diverged_solves(); }
WorkTimes LayerParallel::work_times() const { return engine_->step().times(); }
void LayerParallel::ResetWorkTimes() { engine_->step().Reset(); }
void LayerParallel::set_work_clock(std::function<double()> clock) {
  engine_->step().set_clock(std::move(clock));
}
void LayerParallel::KeepPasses() { engine_->KeepPasses(); }
void LayerParallel::ContinueKeptPasses() { engine_->ContinueKeptPasses(); }

}  // namespace plait::mgrit
