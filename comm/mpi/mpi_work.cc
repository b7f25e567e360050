#include "comm/mpi/mpi_work.h"

#include "comm/mpi/mpi_types.h"

namespace plait::comm {
std::byte* MpiWork::AddScratch(std::int64_t bytes) {
  return scratch_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(bytes)).get();
}

void MpiWork::AddToProgress() {
  if (!in_progress_) progress_->Add(this);
  in_progress_ = true;
}

void MpiWork::Start() {
  AddToProgress();
  if (requests_.empty()) Advance();
}

bool MpiWork::Advance() {
  if (complete_) return false;
  int done = 1;
  CheckMpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
           "MPI_Testall");
  if (!done) return false;
  requests_.clear();
  if (next_stage_ < stages_.size()) {
    const Stage& next = stages_[next_stage_];
    if (next.ready && !next.ready()) return false;
    ++next_stage_;
    next.step(*this);
  } else if (!late_requests_.empty()) {
    requests_.swap(late_requests_);
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

void MpiWork::Finish() {
  complete_ = true;
  for (auto step = last_steps_.rbegin(); step != last_steps_.rend(); ++step) (*step)();
}

}  // namespace plait::comm
