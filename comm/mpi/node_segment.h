// Shared memory of the ranks of one communicator on one node: an outbox per rank, which the others read.
// Private to comm/mpi.
//
//   std::shared_ptr<NodeSegment> segment = NodeSegment::Make(comm, /*bytes_per_rank=*/4 << 20);
//   const std::int64_t post = segment->TakePosts(1);
//   if (segment->CanWrite(post)) {                     // until all others have read what lay there before
//     std::memcpy(segment->Data(rank, post), ...);
//     segment->Publish(post, call);
//   }
//   if (segment->IsPublished(other, post, call)) {
//     std::memcpy(..., segment->Data(other, post), ...);
//     segment->MarkRead(other, post);
//   }
//
// Posts are counted, the same on all ranks: operations take them in the order of their start. Post p lies in
// slot p mod slots, and all size - 1 other ranks read it exactly once. Each post carries the fingerprint of
// the call that made it, in the cache line of its flag.
//
// Where the kernel lets all ranks read each other's memory, a post may as well tell where its values lie: then they
// are copied once (process_vm_readv(2)).
//
// The memory has no name in a file system: it is opened through the process that created it, and freed when
// the last process that has mapped it ends, however it ends. Pages are allocated when first written.
#ifndef PLAIT_COMM_MPI_NODE_SEGMENT_H_
#define PLAIT_COMM_MPI_NODE_SEGMENT_H_

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "comm/call_fingerprint.h"

namespace plait::comm {

class NodeSegment {
 public:
  // Collective. Null on all ranks if one of them cannot reach the memory, or if there is too little of it for
  // so many ranks. `read_peers`: find out whether they may read each other's memory. Throws TransportError.
  static std::shared_ptr<NodeSegment> Make(MPI_Comm comm, std::int64_t bytes_per_rank, bool read_peers);
  ~NodeSegment();
  NodeSegment(const NodeSegment&) = delete;
  NodeSegment& operator=(const NodeSegment&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::int64_t slots() const { return layout_.slots; }
  std::int64_t slot_bytes() const { return layout_.slot_bytes; }

  // The first of `count` posts that follow those taken before.
  std::int64_t TakePosts(std::int64_t count) { return std::exchange(next_post_, next_post_ + count); }
  bool CanWrite(std::int64_t post) const;  // of this rank
  void Publish(std::int64_t post, const CallFingerprint& call);
  // Throws TransportError if the post of `rank` belongs to another call than `mine`.
  bool IsPublished(int rank, std::int64_t post, const CallFingerprint& mine) const;
  void MarkRead(int rank, std::int64_t post);
  std::byte* Data(int rank, std::int64_t post) const;

  // Every rank may read every other one's memory; the same on all of them.
  bool reads_peers() const { return !processes_.empty(); }
  // Copies what lies at an address of another rank's process. Throws TransportError.
  void ReadFrom(int rank, const std::byte* address, void* to, std::int64_t bytes) const;
  // Of this rank's post: all others have read it, so what it told of is theirs no more.
  bool HasBeenRead(std::int64_t post) const;

 private:
  struct Slot {
    alignas(64) std::atomic<std::uint64_t> published;  // 1 + the post that lies here
    CallFingerprint call;                              // of that post
    alignas(64) std::atomic<std::uint64_t> read;       // how often posts have been read from here
  };
  struct Layout {
    std::int64_t slots, slot_bytes, data_offset, bytes_per_rank, bytes;
  };

  NodeSegment(MPI_Comm comm, std::int64_t bytes_per_rank);
  static Layout LayoutFor(int size, std::int64_t bytes_per_rank);
  bool Create(int* file, std::uint64_t key);
  bool Open(std::int64_t process, std::int64_t file, std::uint64_t key);
  bool Map(int file);
  void FindReadablePeers(MPI_Comm comm);
  // How often the slot of `post` has been read once all others have read what lay there before.
  std::uint64_t ReadsBefore(std::int64_t post) const {
    return static_cast<std::uint64_t>(post / layout_.slots * (size_ - 1));
  }
  std::byte* Outbox(int rank) const;
  Slot& SlotOf(int rank, std::int64_t post) const;

  int rank_ = 0, size_ = 1;
  Layout layout_{};
  std::byte* memory_ = nullptr;
  std::int64_t next_post_ = 0;
  std::vector<std::int64_t> processes_;  // of all ranks; empty if they cannot be read
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_NODE_SEGMENT_H_
