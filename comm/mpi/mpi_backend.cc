#include "comm/mpi/mpi_backend.h"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "comm/mpi/mpi_collectives.h"
#include "comm/mpi/mpi_types.h"
#include "comm/mpi/mpi_work.h"
#include "comm/self_backend.h"

namespace plait::comm {
namespace {

class MpiBackend : public Backend {
 public:
  MpiBackend(MPI_Comm comm, const MpiOptions& options) : comm_(comm), options_(options) {
    CheckMpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    CheckMpi(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
    CheckMpi(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
    FindMembers();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<int> members() const override { return members_; }

  void Run(const Request& request) override {
    MpiWork work(options_.oversubscribed);
    Issue(request, options_.oversubscribed ? Mode::kImmediate : Mode::kBlocking, &work);
    work.Wait();
  }

  std::unique_ptr<PendingWork> Start(const Request& request) override {
    auto work = std::make_unique<MpiWork>(options_.oversubscribed);
    Issue(request, Mode::kImmediate, work.get());
    return work;
  }

  std::unique_ptr<Backend> Split(int color, int key) override {
    MPI_Comm part = MPI_COMM_NULL;
    CheckMpi(MPI_Comm_split(comm_, color < 0 ? MPI_UNDEFINED : color, key, &part), "MPI_Comm_split");
    if (part == MPI_COMM_NULL) return nullptr;
    // Not freed: MPI_Comm_free is collective, and destructors do not communicate. MPI_Finalize takes it
    // along.
    auto backend = std::make_unique<MpiBackend>(part, options_);
    return backend->size() == 1 ? MakeSelfBackend(members_[rank_]) : std::move(backend);
  }

 private:
  void Issue(const Request& request, Mode mode, MpiWork* work) {
    // Messages between two ranks are no calls of all.
    if (request.operation != Operation::kSend && request.operation != Operation::kReceive) ++operations_;
    const MpiGroup group = {comm_,
                            rank_,
                            size_,
                            options_.max_elements_per_message,
                            std::max<std::int64_t>(options_.ring_bytes, 1),
                            operations_};
    IssueOperation(group, request, mode, work);
  }

  void FindMembers() {
    MPI_Group group, world;
    CheckMpi(MPI_Comm_group(comm_, &group), "MPI_Comm_group");
    CheckMpi(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
    std::vector<int> ranks(size_);
    std::iota(ranks.begin(), ranks.end(), 0);
    members_.resize(size_);
    CheckMpi(MPI_Group_translate_ranks(group, size_, ranks.data(), world, members_.data()),
             "MPI_Group_translate_ranks");
    MPI_Group_free(&group);
    MPI_Group_free(&world);
  }

  MPI_Comm comm_;
  MpiOptions options_;
  int rank_ = 0;
  int size_ = 1;
  std::int64_t operations_ = 0;
  std::vector<int> members_;
};

}  // namespace

std::unique_ptr<Backend> MakeMpiWorldBackend(const MpiOptions& options) {
  return std::make_unique<MpiBackend>(MPI_COMM_WORLD, options);
}

}  // namespace plait::comm
