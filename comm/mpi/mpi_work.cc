#include "comm/mpi/mpi_work.h"

#include "absl/strings/str_cat.h"
#include "comm/mpi/mpi_types.h"
#include "comm/transport_error.h"

namespace plait::comm {
namespace {

// A message of `count` elements arrived as `status` says; throws TransportError if the sender sent fewer.
void CheckCount(const MPI_Status& status, int count, MPI_Datatype type, int peer) {
  int received = 0;
  CheckMpi(MPI_Get_count(&status, type, &received), "MPI_Get_count");
  if (received == count) return;
  throw TransportError(
      absl::StrCat("receive from rank ", peer, ": ", received, " elements came, ", count, " were expected"));
}

}  // namespace

void MpiWork::ExpectCount(int count, MPI_Datatype type, int peer) {
  expectations_.push_back({requests_.size() - 1, count, type, peer});
}

std::byte* MpiWork::AddScratch(std::int64_t bytes) {
  return scratch_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(bytes)).get();
}

void MpiWork::RunStage() {
  if (next_stage_ == stages_.size()) return;
  requests_.clear();
  expectations_.clear();
  stages_[next_stage_++](*this);
}

void MpiWork::AddToProgress() {
  if (!in_progress_) progress_->Add(this);
  in_progress_ = true;
}

void MpiWork::Start() {
  if (requests_.empty()) RunStage();
  AddToProgress();
}

bool MpiWork::Advance() {
  if (complete_) return false;
  int done = 1;
  std::vector<MPI_Status> statuses(expectations_.empty() ? 0 : requests_.size());
  MPI_Status* where = statuses.empty() ? MPI_STATUSES_IGNORE : statuses.data();
  CheckMpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, where), "MPI_Testall");
  if (!done) return false;
  CheckReceived(statuses);
  if (next_stage_ < stages_.size()) {
    RunStage();
  } else {
    Finish();
  }
  return true;
}

bool MpiWork::Test() {
  if (!in_progress_) Advance();
  if (!complete_) progress_->AdvanceAll();
  return complete_;
}

void MpiWork::Wait() {
  if (!in_progress_) Advance();
  if (complete_) return;
  AddToProgress();
  progress_->WaitFor(*this);
}

void MpiWork::CheckReceived(const std::vector<MPI_Status>& statuses) const {
  for (const Expectation& e : expectations_) CheckCount(statuses[e.request], e.count, e.type, e.peer);
}

void MpiWork::Finish() {
  complete_ = true;
  for (auto step = last_steps_.rbegin(); step != last_steps_.rend(); ++step) (*step)();
}

}  // namespace plait::comm
