#include "comm/counting/counted_job.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "comm/backend.h"
#include "comm/group.h"

namespace plait::comm {

struct CountedJob::State {
  int ranks;
  GroupSizes sizes;
  std::map<std::int64_t, std::vector<std::byte>> latest;  // message sent, by its size in bytes
};

namespace {

constexpr char kWorld[] = "world";

// Complete when it is waited for, or at once.
class CountedWork final : public PendingWork {
 public:
  explicit CountedWork(bool done) : done_(done) {}
  bool Test() override { return done_; }
  void Wait() override { done_ = true; }

 private:
  bool done_;
};

void Copy(ConstBuffer in, Buffer out) {
  const std::int64_t bytes = std::min(in.bytes(), out.bytes());
  if (bytes > 0 && in.data != nullptr && out.data != nullptr) std::memmove(out.data, in.data, bytes);
}

// Copies `in` to every part of `out`.
void CopyToAll(ConstBuffer in, Buffer out) {
  const std::vector<std::byte> part(static_cast<const std::byte*>(in.data),
                                    static_cast<const std::byte*>(in.data) + in.bytes());
  for (std::int64_t first = 0; in.count > 0 && first + in.count <= out.count; first += in.count) {
    std::memcpy(Slice(out, first, in.count).data, part.data(), part.size());
  }
}

// An all-to-all in which every rank sends what this rank sends to itself.
void CopyOwnPart(const Request& request, int rank, int size) {
  const std::vector<std::int64_t> equal(size, request.in.count / size);
  const std::vector<std::int64_t>& sent = request.send_counts.empty() ? equal : request.send_counts;
  const std::vector<std::int64_t>& received = request.receive_counts.empty() ? equal : request.receive_counts;
  const std::int64_t first = std::accumulate(sent.begin(), sent.begin() + rank, std::int64_t{0});
  const ConstBuffer own = Slice(request.in, first, sent[rank]);
  const std::vector<std::byte> part(static_cast<const std::byte*>(own.data),
                                    static_cast<const std::byte*>(own.data) + own.bytes());
  std::int64_t next = 0;
  for (const std::int64_t count : received) {
    const Buffer to = Slice(request.out, next, count);
    if (count > 0) std::memcpy(to.data, part.data(), std::min<std::size_t>(to.bytes(), part.size()));
    next += count;
  }
}

bool IsMeta(const Request& request) {
  const auto lacks = [](ConstBuffer buffer) { return buffer.count > 0 && buffer.data == nullptr; };
  return lacks(request.in) || lacks(request.out);
}

template <typename State>
class CountingBackend final : public Backend {
 public:
  CountingBackend(std::shared_ptr<State> job, int rank, int size, std::string name)
      : job_(std::move(job)), rank_(rank), size_(size), name_(std::move(name)) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool takes_meta() const override { return true; }
  // Ranks of the group: their world ranks are unknown.
  std::vector<int> members() const override {
    std::vector<int> numbers(static_cast<std::size_t>(size_));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }

  void Run(const Request& request) override {
    if (!IsMeta(request)) Answer(request);
  }
  std::unique_ptr<PendingWork> Start(const Request& request) override {
    Run(request);
    // A caller may test a barrier for as long as it is not complete.
    const bool at_once = IsPointToPoint(request.operation) || request.operation == Operation::kBarrier;
    return std::make_unique<CountedWork>(at_once);
  }

  std::unique_ptr<Backend> Split(int color, int key) override { return SplitNamed(color, key, ""); }
  std::unique_ptr<Backend> SplitNamed(int color, int key, std::string_view name) override {
    const std::string part(name);
    if (color < 0) return std::make_unique<CountingBackend>(job_, 0, 1, part);
    const int size = SizeOf(part);
    PLAIT_CHECK(key >= 0 && key < size)
        << "key " << key << " in the group \"" << part << "\" of " << size << " ranks";
    return std::make_unique<CountingBackend>(job_, key, size, part);
  }

 private:
  int SizeOf(const std::string& part) {
    const bool is_all = part == name_ || (name_ != kWorld && part.rfind(name_ + "_", 0) == 0);
    if (is_all) return size_;
    const auto found = job_->sizes.find(part);
    PLAIT_CHECK(name_ == kWorld && found != job_->sizes.end())
        << "a counted job has no size for the group \"" << part << "\"";
    return found->second[std::min(splits_[part]++, found->second.size() - 1)];
  }

  void Answer(const Request& request) {
    switch (request.operation) {
      case Operation::kAllGather:
      case Operation::kGather:
        return CopyToAll(request.in, request.out);
      case Operation::kReduceScatter:
      case Operation::kScatter:
        if (request.in.count < request.out.count * size_) return;  // not the root
        return Copy(Slice(request.in, rank_ * request.out.count, request.out.count), request.out);
      case Operation::kAllToAll:
      case Operation::kAllToAllV:
        return CopyOwnPart(request, rank_, size_);
      case Operation::kReduce:
        return Copy(request.in, request.out);
      case Operation::kSend: {
        const auto* begin = static_cast<const std::byte*>(request.in.data);
        job_->latest[request.in.bytes()].assign(begin, begin + request.in.bytes());
        return;
      }
      case Operation::kReceive:
        return Receive(request.out);
      default:
        return;
    }
  }

  void Receive(Buffer out) {
    const auto found = job_->latest.find(out.bytes());
    PLAIT_CHECK(found != job_->latest.end()) << "a counted rank receives " << out.bytes()
                                             << " bytes that no rank has sent; run the sending ranks first";
    std::memcpy(out.data, found->second.data(), found->second.size());
  }

  std::shared_ptr<State> job_;
  int rank_, size_;
  std::string name_;
  std::map<std::string, std::size_t> splits_;  // so far, by name
};

}  // namespace

CountedJob::CountedJob(int ranks, GroupSizes sizes)
    : state_(std::make_shared<State>(State{ranks, std::move(sizes), {}})) {
  PLAIT_CHECK(ranks >= 1) << ranks << " ranks";
}

Communicator CountedJob::World(int rank) const {
  PLAIT_CHECK(rank >= 0 && rank < state_->ranks) << "rank " << rank << " of " << state_->ranks;
  return Communicator(
      MakeWorldGroup(std::make_unique<CountingBackend<State>>(state_, rank, state_->ranks, kWorld), kWorld,
                     std::make_shared<Journal>(/*capacity=*/32)));
}

}  // namespace plait::comm
