#include "tools/cnn_training/run.h"

#include <ATen/Parallel.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "comm/device_mesh.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/step_folders.h"
#include "parallel/plan/available_memory.h"
#include "parallel/plan/memory_plan.h"
#include "parallel/training_state/training_state.h"
#include "tools/cnn_training/images.h"
#include "tools/cnn_training/introduction.h"
#include "tools/cnn_training/outputs.h"
#include "tools/cnn_training/run_state.h"
#include "tools/cnn_training/sharded_cnn.h"
#include "tools/cnn_training/training.h"

namespace plait::cnn_training {
namespace {

using parallel::Checkpoint;

// Before any work: what only rank 0 touches.
absl::Status CheckPlaces(const Config& config) {
  if (!config.checkpoint_dir.empty()) {
    PLAIT_RETURN_IF_ERROR(
        base::Prefixed(base::ProbeWritableFolder(config.checkpoint_dir), "--checkpoint-dir"));
    if (config.resume.empty() && !parallel::CompleteSteps(config.checkpoint_dir).empty()) {
      return absl::AlreadyExistsError(absl::StrCat(
          "--checkpoint-dir: ", config.checkpoint_dir, " holds the checkpoints of an earlier run; ",
          "go on with --resume=", config.checkpoint_dir, ", or name another folder"));
    }
  }
  if (config.save_model.empty()) return absl::OkStatus();
  return base::Prefixed(base::ProbeWritableFolder(config.save_model), "--save-model");
}

// The checkpoint that --resume means: itself, or the newest in the folder.
absl::StatusOr<std::string> ResumeFolder(const std::string& resume, const comm::Communicator& world) {
  std::int64_t is_one[1] = {0};
  std::error_code ignored;
  if (world.rank() == 0 && std::filesystem::exists(resume + "/index.h5", ignored)) is_one[0] = 1;
  world.Broadcast(comm::BufferOf(absl::MakeSpan(is_one)), 0);
  if (is_one[0] == 1) return resume;
  absl::StatusOr<std::string> latest = parallel::FindLatestCheckpoint(world, resume);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(latest.status(), "--resume"));
  return latest;
}

// This rank's state from the checkpoint, checked as far as it can be without the network.
absl::StatusOr<RunState> OpenCheckpoint(const std::string& folder, const RunSettings& settings,
                                        const comm::Communicator& world,
                                        std::unique_ptr<Checkpoint>* opened) {
  PLAIT_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(folder));
  PLAIT_RETURN_IF_ERROR(CheckSettings(checkpoint, settings));
  PLAIT_ASSIGN_OR_RETURN(const RunState state, RunStateOf(checkpoint, world));
  *opened = std::make_unique<Checkpoint>(std::move(checkpoint));
  return state;
}

class Program {
 public:
  Program(const Config& config, const std::string& settings, comm::Session& session, comm::DeviceMesh mesh,
          base::Log log)
      : config_(config),
        settings_(settings),
        session_(session),
        world_(session.world()),
        mesh_(std::move(mesh)),
        log_(std::move(log)) {}

  absl::Status Run(bool* stopped);

 private:
  absl::Status Begin();
  absl::Status PlanMemory(const cnn::Cnn& model, int ranks_on_node);
  absl::Status MakeNetwork(cnn::Cnn model);
  absl::Status Train(Outputs& outputs, bool* stopped);

  const Config& config_;
  std::string settings_;
  comm::Session& session_;
  comm::Communicator world_;
  comm::DeviceMesh mesh_;
  base::Log log_;
  Place place_;
  Images images_;
  std::unique_ptr<Checkpoint> checkpoint_;  // until the network has its values
  RunState state_;
  std::unique_ptr<ShardedCnn> net_;
};

absl::Status Program::Begin() {
  place_ = Introduce(config_, mesh_, log_);
  PLAIT_RETURN_IF_ERROR(world_.Agree(world_.rank() == 0 ? CheckPlaces(config_) : absl::OkStatus()));
  PLAIT_ASSIGN_OR_RETURN(images_, OpenImages(config_, world_));
  log_.Info(DataLine(images_));
  if (config_.resume.empty()) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const std::string folder, ResumeFolder(config_.resume, world_));
  const absl::StatusOr<RunState> state =
      OpenCheckpoint(folder, SettingsOf(config_, world_.size(), images_.set), world_, &checkpoint_);
  PLAIT_RETURN_IF_ERROR(world_.Agree(state.status()));
  state_ = *state;
  return absl::OkStatus();
}

absl::Status Program::PlanMemory(const cnn::Cnn& model, int ranks_on_node) {
  PLAIT_ASSIGN_OR_RETURN(const MeshShape mesh, MeshOf(config_, world_.size()));
  const parallel::MemoryPlan plan = PlanOf(config_, mesh, model, images_.set);
  log_.Info("\n" + parallel::MemoryPlanText(plan));
  return world_.Agree(parallel::CheckFits(plan, parallel::AvailableMemory(), ranks_on_node));
}

absl::Status Program::MakeNetwork(cnn::Cnn model) {
  PLAIT_ASSIGN_OR_RETURN(net_, ShardedCnn::Create(config_, mesh_, std::move(model)));
  log_.Info(absl::StrCat("model=", net_->model().Description()));
  if (checkpoint_ == nullptr) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(parallel::Restore(*checkpoint_, net_->engine(), &net_->optimizer()));
  log_.Info(absl::StrFormat("resuming at epoch %d, sample %d, step %d: %s", state_.sampler.epoch + 1,
                            state_.sampler.position, state_.step, checkpoint_->folder()));
  checkpoint_.reset();
  return absl::OkStatus();
}

absl::Status Program::Train(Outputs& outputs, bool* stopped) {
  Training training(config_, settings_, session_, images_, *net_, outputs, log_);
  PLAIT_RETURN_IF_ERROR(training.Run(state_));
  // No step tells of a share that could not be read for the last evaluation.
  PLAIT_RETURN_IF_ERROR(world_.Agree(base::Prefixed(net_->engine().status(), "--offload")));
  *stopped = training.stopped();
  log_.Info(absl::StrFormat("%d %s took %.1fs", training.epochs_done(),
                            training.epochs_done() == 1 ? "epoch" : "epochs", training.seconds()));
  return absl::OkStatus();
}

absl::Status Program::Run(bool* stopped) {
  PLAIT_RETURN_IF_ERROR(Begin());
  PLAIT_ASSIGN_OR_RETURN(cnn::Cnn model, MetaModel(config_, images_.set));
  PLAIT_RETURN_IF_ERROR(PlanMemory(model, place_.job.local_size));
  PLAIT_ASSIGN_OR_RETURN(Outputs outputs, Outputs::Open(config_, FactsOf(config_, place_, settings_), world_,
                                                        checkpoint_ != nullptr ? state_.history_draws : -1));
  PLAIT_RETURN_IF_ERROR(MakeNetwork(std::move(model)));
  PLAIT_RETURN_IF_ERROR(Train(outputs, stopped));
  if (!config_.save_model.empty() && !*stopped) {
    PLAIT_RETURN_IF_ERROR(net_->SaveModel(config_.save_model, world_));
    log_.Info(absl::StrCat("model saved in ", config_.save_model, "/model.safetensors"));
  }
  if (world_.rank() == 0 && config_.plots && outputs.draws() > 0) outputs.Draw(log_);
  log_.Info(absl::StrCat("history saved in ", outputs.history_path()));
  return absl::OkStatus();
}

}  // namespace

absl::Status Run(const Config& config, const std::string& settings, comm::Session& session, bool* stopped) {
  at::set_num_threads(1);
  const comm::Communicator& world = session.world();
  PLAIT_ASSIGN_OR_RETURN(base::Log log,
                         base::MakeLog({.rank = world.rank(), .stream = base::LogStream::kStandardOutput}));
  PLAIT_ASSIGN_OR_RETURN(const MeshShape shape, MeshOf(config, world.size()));
  PLAIT_ASSIGN_OR_RETURN(
      comm::DeviceMesh mesh,
      comm::DeviceMesh::Create(world, {{"dp_replicate", shape.dp_replicate}, {"dp_shard", shape.dp_shard}}));
  return Program(config, settings, session, std::move(mesh), std::move(log)).Run(stopped);
}

}  // namespace plait::cnn_training
