#include "comm/mpi/mpi_backend.h"

#include <mpi.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "comm/mpi/call_check.h"
#include "comm/mpi/cores.h"
#include "comm/mpi/mpi_collectives.h"
#include "comm/mpi/mpi_types.h"
#include "comm/mpi/mpi_work.h"
#include "comm/mpi/node_segment.h"
#include "comm/mpi/progress.h"
#include "comm/mpi/shared_collective.h"
#include "comm/self_backend.h"

namespace plait::comm {
namespace {

// State shared by the communicators of a session.
struct Shared {
  MpiOptions options;
  std::vector<int> nodes;  // the first world rank on the node of each world rank
  std::shared_ptr<Progress> progress;
  InternalTags tags;
};

int SizeOf(MPI_Comm comm) {
  int size = 1;
  CheckMpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}

// Options decide which MPI calls an operation makes, so all ranks use the least value of any rank.
MpiOptions AgreedOptions(MpiOptions options) {
  std::int64_t numbers[] = {options.max_elements_per_message, options.shared_bytes_per_rank,
                            std::max<std::int64_t>(options.ring_bytes, 1), options.read_peers ? 1 : 0};
  CheckMpi(MPI_Allreduce(MPI_IN_PLACE, numbers, 4, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
  return {.max_elements_per_message = numbers[0],
          .shared_bytes_per_rank = numbers[1],
          .ring_bytes = numbers[2],
          .read_peers = numbers[3] != 0};
}

std::vector<int> FindNodes(MPI_Comm node) {
  int first = 0;
  CheckMpi(MPI_Comm_rank(MPI_COMM_WORLD, &first), "MPI_Comm_rank");
  CheckMpi(MPI_Bcast(&first, 1, MPI_INT, 0, node), "MPI_Bcast");
  std::vector<int> nodes(SizeOf(MPI_COMM_WORLD));
  CheckMpi(MPI_Allgather(&first, 1, MPI_INT, nodes.data(), 1, MPI_INT, MPI_COMM_WORLD), "MPI_Allgather");
  return nodes;
}

InternalTags FindTags() {
  int found = 0;
  int* largest = nullptr;
  CheckMpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &found), "MPI_Comm_get_attr");
  return InternalTagsUpTo(found != 0 ? *largest : 32767);
}

// Compares the ranks of a node with the union of their usable cores: bound ranks have different cores, unbound ones the
// same. The result may differ between nodes: it decides how a rank waits, not what it calls.
bool Oversubscribed(MPI_Comm node) {
  CoreSet cores = UsableCores();
  CheckMpi(
      MPI_Allreduce(MPI_IN_PLACE, cores.data(), static_cast<int>(cores.size()), MPI_UINT64_T, MPI_BOR, node),
      "MPI_Allreduce");
  return SizeOf(node) > std::min(CountOf(cores), CoreQuota());
}

// Collective.
std::shared_ptr<const Shared> FindShared(const MpiOptions& options) {
  MPI_Comm node = MPI_COMM_NULL;
  CheckMpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
           "MPI_Comm_split_type");
  auto shared = std::make_shared<Shared>(Shared{.options = AgreedOptions(options),
                                                .nodes = FindNodes(node),
                                                .progress = std::make_shared<Progress>(Oversubscribed(node)),
                                                .tags = FindTags()});
  CheckMpi(MPI_Comm_free(&node), "MPI_Comm_free");
  return shared;
}

class MpiBackend : public Backend {
 public:
  MpiBackend(MPI_Comm comm, std::shared_ptr<const Shared> shared)
      : comm_(comm), shared_(std::move(shared)), options_(shared_->options), size_(SizeOf(comm)) {
    CheckMpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    CheckMpi(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
    FindMembers();
    if (options_.shared_bytes_per_rank > 0 && OnOneNode()) {
      segment_ = NodeSegment::Make(comm_, options_.shared_bytes_per_rank, options_.read_peers);
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<int> members() const override { return members_; }

  void Run(const Request& request) override { Start(request)->Wait(); }
  void Advance() override { shared_->progress->Poll(); }

  std::unique_ptr<PendingWork> Start(const Request& request) override {
    if (IsPointToPoint(request.operation)) return Issue(request);
    const CallFingerprint call = FingerprintOf(request, ++collectives_);
    if (size_ == 1) return Issue(request);
    if (segment_ != nullptr && SharedCollective::Handles(request)) return StartShared(request, call);
    if (segment_ == nullptr && GoesRound(group(), request)) return StartRing(request, call);
    if (GoesInPairs(request)) return std::make_unique<CheckedWork>(StartCheck(call), Issue(request));
    return StartMpis(request, call);
  }

  std::unique_ptr<Backend> Split(int color, int key) override {
    // MPI_Comm_split blocks without advancing other operations. After this barrier all ranks are about to call it, so
    // it does not have to wait.
    Run({.operation = Operation::kSplit});
    MPI_Comm part = MPI_COMM_NULL;
    CheckMpi(MPI_Comm_split(comm_, color < 0 ? MPI_UNDEFINED : color, key, &part), "MPI_Comm_split");
    if (part == MPI_COMM_NULL) return nullptr;
    // Not freed: MPI_Comm_free is collective, and destructors do not communicate. MPI_Finalize frees it.
    auto backend = std::make_unique<MpiBackend>(part, shared_);
    return backend->size() == 1 ? MakeSelfBackend(members_[rank_]) : std::move(backend);
  }

 private:
  std::unique_ptr<PendingWork> StartShared(const Request& request, const CallFingerprint& call) {
    return std::make_unique<SharedCollective>(segment_, shared_->progress, request, call);
  }

  // The check of a call whose values do not go through shared memory: an empty post, or messages.
  std::unique_ptr<PendingWork> StartCheck(const CallFingerprint& call) {
    if (segment_ != nullptr) return StartShared({.operation = Operation::kBarrier}, call);
    auto check = std::make_unique<MpiWork>(shared_->progress);
    AddCallCheck(group(), call, CheckedRanks::kNeighbor, *check);
    check->Start();  // from now on any wait of this rank detects a difference
    return check;
  }

  // Needs no separate check: a rank receives values from the neighbour that it is compared with.
  std::unique_ptr<PendingWork> StartRing(const Request& request, const CallFingerprint& call) {
    auto work = std::make_unique<MpiWork>(shared_->progress);
    IssueOperation(group(), request, work.get(), call);
    return work;
  }

  // MPI's own collectives, in which any rank may send to any other: issued once all ranks are known to make the same
  // call, except for short ones. MPI matches them by their order, so they are issued in the order of their start.
  std::unique_ptr<PendingWork> StartMpis(const Request& request, const CallFingerprint& call) {
    auto operation = std::make_unique<MpiWork>(shared_->progress);
    const bool is_short = IsShort(group(), request);
    if (!is_short) AddCallCheck(group(), call, CheckedRanks::kAll, *operation);
    operation->AddStageWhen([order = order_, turn = order_->started++] { return order->issued == turn; },
                            [group = group(), request, order = order_](MpiWork& work) {
                              ++order->issued;
                              IssueOperation(group, request, &work);
                            });
    operation->Start();
    if (!is_short) return operation;
    return std::make_unique<CheckedWork>(StartCheck(call), std::move(operation));
  }

  MpiGroup group() const {
    return {
        comm_,        rank_,          size_,        options_.max_elements_per_message, options_.ring_bytes,
        collectives_, open_receives_, shared_->tags};
  }

  bool OnOneNode() const {
    return std::all_of(members_.begin(), members_.end(),
                       [this](int member) { return shared_->nodes[member] == shared_->nodes[members_[0]]; });
  }

  std::unique_ptr<PendingWork> Issue(const Request& request) {
    auto work = std::make_unique<MpiWork>(shared_->progress);
    IssueOperation(group(), request, work.get());
    return work;
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
  int size_;
  std::int64_t collectives_ = 0;
  struct Order {
    std::int64_t started = 0, issued = 0;
  };
  std::shared_ptr<Order> order_ = std::make_shared<Order>();  // of MPI's own collectives
  std::shared_ptr<std::vector<OpenReceive>> open_receives_ = std::make_shared<std::vector<OpenReceive>>();
  std::vector<int> members_;
};

}  // namespace

std::unique_ptr<Backend> MakeMpiWorldBackend(const MpiOptions& options) {
  return std::make_unique<MpiBackend>(MPI_COMM_WORLD, FindShared(options));
}

}  // namespace plait::comm
