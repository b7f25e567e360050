#include "comm/mpi/mpi_backend.h"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "comm/mpi/mpi_collectives.h"
#include "comm/mpi/mpi_types.h"
#include "comm/mpi/mpi_work.h"
#include "comm/mpi/node_segment.h"
#include "comm/mpi/progress.h"
#include "comm/mpi/shared_collective.h"
#include "comm/self_backend.h"

namespace plait::comm {
namespace {

// The first world rank on the node of each world rank. Collective.
std::vector<int> FindNodes() {
  int rank = 0, size = 1;
  CheckMpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  CheckMpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  MPI_Comm node = MPI_COMM_NULL;
  CheckMpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node),
           "MPI_Comm_split_type");
  int first = rank;
  CheckMpi(MPI_Bcast(&first, 1, MPI_INT, 0, node), "MPI_Bcast");
  CheckMpi(MPI_Comm_free(&node), "MPI_Comm_free");
  std::vector<int> nodes(size);
  CheckMpi(MPI_Allgather(&first, 1, MPI_INT, nodes.data(), 1, MPI_INT, MPI_COMM_WORLD), "MPI_Allgather");
  return nodes;
}

// What the communicators of a session have in common.
struct Shared {
  MpiOptions options;
  std::vector<int> nodes;  // by world rank
  std::shared_ptr<Progress> progress = std::make_shared<Progress>();
};

class MpiBackend : public Backend {
 public:
  MpiBackend(MPI_Comm comm, std::shared_ptr<const Shared> shared)
      : comm_(comm), shared_(std::move(shared)), options_(shared_->options) {
    CheckMpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    CheckMpi(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
    CheckMpi(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
    FindMembers();
    if (options_.shared_bytes_per_rank > 0 && OnOneNode()) {
      segment_ = NodeSegment::Make(comm_, options_.shared_bytes_per_rank);
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<int> members() const override { return members_; }

  void Run(const Request& request) override {
    // An all-gather that blocks is copied once by MPI, from memory to memory.
    const bool by_mpi = request.operation == Operation::kAllGather && !options_.oversubscribed;
    if (GoesThroughSharedMemory(request) && !by_mpi) {
      return SharedCollective(segment_, shared_->progress, request, options_.oversubscribed).Wait();
    }
    const bool alone = IsPointToPoint(request.operation);
    // While MPI blocks, operations under way do not move; a blocking message is the same to its other end.
    const bool immediate = options_.oversubscribed || (alone && !shared_->progress->idle());
    if (!alone) AwaitArrivals();
    MpiWork work(shared_->progress, options_.oversubscribed);
    Issue(request, immediate ? Mode::kImmediate : Mode::kBlocking, &work);
    work.Wait();
  }

  std::unique_ptr<PendingWork> Start(const Request& request) override {
    if (GoesThroughSharedMemory(request)) {
      return std::make_unique<SharedCollective>(segment_, shared_->progress, request,
                                                options_.oversubscribed);
    }
    auto work = std::make_unique<MpiWork>(shared_->progress, options_.oversubscribed);
    Issue(request, Mode::kImmediate, work.get());
    return work;
  }

  std::unique_ptr<Backend> Split(int color, int key) override {
    AwaitArrivals();
    MPI_Comm part = MPI_COMM_NULL;
    CheckMpi(MPI_Comm_split(comm_, color < 0 ? MPI_UNDEFINED : color, key, &part), "MPI_Comm_split");
    if (part == MPI_COMM_NULL) return nullptr;
    // Not freed: MPI_Comm_free is collective, and destructors do not communicate. MPI_Finalize takes it
    // along.
    auto backend = std::make_unique<MpiBackend>(part, shared_);
    return backend->size() == 1 ? MakeSelfBackend(members_[rank_]) : std::move(backend);
  }

 private:
  bool GoesThroughSharedMemory(const Request& request) const {
    return segment_ != nullptr && SharedCollective::Handles(request.operation);
  }

  bool OnOneNode() const {
    return std::all_of(members_.begin(), members_.end(),
                       [this](int member) { return shared_->nodes[member] == shared_->nodes[members_[0]]; });
  }

  // A rank with operations under way enters a blocking call of MPI's, in which they do not move, only when
  // the call does not wait for anybody any more. Ranks without any go ahead.
  void AwaitArrivals() {
    if (segment_ == nullptr) return;
    segment_->Arrive();
    if (shared_->progress->idle()) return;
    Arrivals arrivals(*segment_);
    shared_->progress->WaitFor(arrivals, options_.oversubscribed);
  }
  class Arrivals : public Progress::Task {
   public:
    explicit Arrivals(const NodeSegment& segment) : segment_(segment) {}
    bool Advance() override { return false; }
    bool complete() const override { return segment_.AllArrived(); }

   private:
    const NodeSegment& segment_;
  };

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
  std::shared_ptr<const Shared> shared_;
  const MpiOptions& options_;
  std::shared_ptr<NodeSegment> segment_;  // null: through messages
  int rank_ = 0;
  int size_ = 1;
  std::int64_t operations_ = 0;
  std::vector<int> members_;
};

}  // namespace

std::unique_ptr<Backend> MakeMpiWorldBackend(const MpiOptions& options) {
  auto shared = std::make_shared<Shared>(Shared{.options = options, .nodes = FindNodes()});
  return std::make_unique<MpiBackend>(MPI_COMM_WORLD, std::move(shared));
}

}  // namespace plait::comm
