// The part of Trainer that writes checkpoints and reads them.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "comm/flight_recorder.h"
#include "tools/revision/revision.h"
#include "tools/training/resume.h"
#include "tools/training/trainer.h"

namespace plait::training {
namespace {

absl::Status ReadLossScale(const parallel::Checkpoint& checkpoint, parallel::LossScaler& scaler) {
  parallel::LossScalerState state;
  PLAIT_ASSIGN_OR_RETURN(state.scale, checkpoint.Number("loss_scale"));
  PLAIT_ASSIGN_OR_RETURN(state.good_steps, checkpoint.Integer("loss_scale.good_steps"));
  return base::Prefixed(scaler.Restore(state), checkpoint.folder());
}

}  // namespace

absl::Status Trainer::RestoreSinceDraw(parallel::Checkpoint& checkpoint) {
  PLAIT_ASSIGN_OR_RETURN(const std::optional<SinceDraw> sums, ReadSinceDraw(checkpoint, run_.mesh));
  traffic_.Restore(sums);
  solver_control_.RestoreSums(sums);
  return absl::OkStatus();
}

absl::Status Trainer::Restore() {
  parallel::Checkpoint& checkpoint = *run_.checkpoint;
  absl::Status restored = model_->Restore(checkpoint);
  if (restored.ok()) restored = base::Prefixed(task_.Restore(checkpoint), "--resume");
  if (restored.ok()) restored = ReadLossScale(checkpoint, scaler_);
  if (restored.ok()) restored = base::Prefixed(solver_control_.Restore(checkpoint), "--resume");
  if (restored.ok()) restored = RestoreSinceDraw(checkpoint);
  model_->WaitForParameters();
  PLAIT_RETURN_IF_ERROR(run_.world.Agree(restored));
  step_ = checkpoint.step();
  PLAIT_ASSIGN_OR_RETURN(history_draws_, checkpoint.Integer("history.draws"));
  run_.log.Info(absl::StrCat("Resuming ", task_.Position(), ": ", checkpoint.folder()));
  LogSolverLine();
  run_.checkpoint.reset();
  return absl::OkStatus();
}

absl::Status Trainer::SaveOrStop(bool evaluated) {
  if (!policy_.has_value()) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(saved_);
  PLAIT_RETURN_IF_ERROR(PollSave());
  const parallel::SaveDecision decision = policy_->Decide(step_, run_.session.StopSignal());
  const bool by_evaluation = settings_.checkpoint_interval == 0 && evaluated;
  if (saver_.has_value() && (decision.save || by_evaluation || task_.done())) PLAIT_RETURN_IF_ERROR(Save());
  if (!decision.stop || task_.done()) return absl::OkStatus();
  run_.stopped = StoppedBy(decision.signal);
  const std::string kept = saver_.has_value()
                               ? "; resume with --resume=" + base::FromUser(settings_.checkpoint_dir)
                               : ", in a part of the run that has no checkpoints";
  run_.log.Warning(absl::StrCat("Stopped (", decision.reason, ") ", task_.Position(), kept));
  return absl::OkStatus();
}

absl::Status Trainer::SaveBefore(const absl::Status& error) {
  if (saver_.has_value() && !absl::IsOutOfRange(error)) Save().IgnoreError();
  return error;
}

absl::Status Trainer::Save() {
  const comm::PhaseScope phase(run_.world, "checkpoint");
  const BarScope bar(run_.console, "checkpoint");
  PLAIT_RETURN_IF_ERROR(LogSaved(saver_->Finish()));
  run_.log.Info(
      absl::StrCat("Saving checkpoint to: ", base::FromUser(settings_.checkpoint_dir), ", step ", step_));
  // Without room for the file the draws are in the journal: the checkpoint is saved all the same.
  const absl::Status flushed = outputs_.has_value() ? outputs_->history().Flush() : absl::OkStatus();
  parallel::CheckpointState state;
  KeepSettings(run_.program, run_.table.Kept(), Facts(), state);
  state.texts["settings"] = run_.settings_line();
  state.texts["revision"] = Revision();
  state.texts["mesh"] = run_.mesh.Describe();
  state.texts["loss_scale"] = absl::StrFormat("%a", scaler_.state().scale);
  state.integers = {{"step", step_},
                    {"optimizer.step", model_->optimizer().steps()},
                    {"history.draws", outputs_.has_value() ? outputs_->history().draws() : 0},
                    {"loss_scale.good_steps", scaler_.state().good_steps}};
  solver_control_.Save(state);
  SinceDraw sums;
  if (outputs_.has_value()) {
    traffic_.AddTo(sums);
    solver_control_.AddTo(sums);
  }
  SaveSinceDraw(sums, run_.mesh, state);
  task_.Save(state);
  // Names of classes and folders may be of another encoding, which a checkpoint refuses.
  for (auto& [name, text] : state.texts) text = base::ValidUtf8(text);
  const double begin = comm::FlightRecorder::Now();
  const absl::StatusOr<std::vector<parallel::TensorPiece>> pieces = model_->Pieces();
  pieces_seconds_ = comm::FlightRecorder::Now() - begin;
  PLAIT_RETURN_IF_ERROR(run_.world.Agree(pieces.status()));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(saver_->Start(step_, *pieces, state), "--checkpoint-dir"));
  return flushed;
}

absl::Status Trainer::PollSave() { return saver_.has_value() ? LogSaved(saver_->Poll()) : absl::OkStatus(); }

absl::Status Trainer::LogSaved(const absl::StatusOr<std::optional<parallel::SaveReport>>& saved) {
  PLAIT_RETURN_IF_ERROR(base::Prefixed(saved.status(), "--checkpoint-dir"));
  if (!saved->has_value()) return absl::OkStatus();
  const double seconds = pieces_seconds_ + saver_->seconds();
  policy_->NoteSave(seconds);
  run_.log.Info(absl::StrFormat("Saved model to: %s, %.1f MB in %.3f s in the background", (*saved)->folder,
                                1e-6 * static_cast<double>((*saved)->bytes), seconds));
  return absl::OkStatus();
}

}  // namespace plait::training
