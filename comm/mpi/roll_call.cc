#include "comm/mpi/roll_call.h"

#include <mpi.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm/mpi/backoff.h"
#include "comm/mpi/mpi_types.h"

namespace plait::comm {
namespace {

constexpr int kTag = 0;

// Empty messages between rank 0 and each of the others.
class Messages {
 public:
  explicit Messages(int size) : requests_(size, MPI_REQUEST_NULL) {}

  void Send(int to) {
    CheckMpi(MPI_Isend(nullptr, 0, MPI_BYTE, to, kTag, MPI_COMM_WORLD, &requests_[to]), "MPI_Isend");
  }
  void Receive(int from) {
    CheckMpi(MPI_Irecv(nullptr, 0, MPI_BYTE, from, kTag, MPI_COMM_WORLD, &requests_[from]), "MPI_Irecv");
  }
  void WaitUntil(double deadline) {
    for (Backoff backoff(/*oversubscribed=*/true); !Complete() && MPI_Wtime() < deadline;) backoff.Pause();
  }
  // Ranks whose message is still under way.
  std::vector<int> Missing() const {
    std::vector<int> missing;
    for (std::size_t rank = 0; rank < requests_.size(); ++rank) {
      if (requests_[rank] != MPI_REQUEST_NULL) missing.push_back(static_cast<int>(rank));
    }
    return missing;
  }

 private:
  bool Complete() {
    int complete = 1, one = 0;
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      CheckMpi(MPI_Test(&request, &one, MPI_STATUS_IGNORE), "MPI_Test");
      complete &= one;
    }
    return complete != 0;
  }

  std::vector<MPI_Request> requests_;
};

std::string NameRanks(const std::vector<int>& ranks) {
  constexpr std::size_t kMost = 16;
  const std::size_t shown = std::min(ranks.size(), kMost);
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                      shown < ranks.size() ? ", ..." : "", ranks.size() == 1 ? " has" : " have");
}

}  // namespace

absl::Status RollCall(double timeout_seconds) {
  int rank = 0, size = 1;
  CheckMpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  CheckMpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  constexpr double kForever = 1e300;
  if (rank > 0) {
    Messages report(size), answer(size);
    report.Send(0);
    answer.Receive(0);
    answer.WaitUntil(kForever);
    report.WaitUntil(kForever);
    return absl::OkStatus();
  }
  Messages reports(size), answers(size);
  for (int other = 1; other < size; ++other) reports.Receive(other);
  reports.WaitUntil(MPI_Wtime() + timeout_seconds);
  if (const std::vector<int> missing = reports.Missing(); !missing.empty()) {
    return absl::UnavailableError(absl::StrCat(NameRanks(missing), " not reported to rank 0 within ",
                                               timeout_seconds, " s of the start"));
  }
  for (int other = 1; other < size; ++other) answers.Send(other);
  answers.WaitUntil(kForever);
  return absl::OkStatus();
}

}  // namespace plait::comm
