// Shared memory of a communicator whose ranks are on one node: an outbox per rank, which the others read.
// Private to comm/mpi.
//
//   std::shared_ptr<NodeSegment> segment =
//       NodeSegment::Make(comm, /*bytes_per_rank=*/4 << 20, /*read_peers=*/true);
//   const std::int64_t post = segment->TakePosts(1);
//   if (segment->CanWrite(post)) {                     // false until all others have read the slot's previous post
//     std::memcpy(segment->Data(rank, post), ...);
//     segment->Publish(post, call);
//   }
//   if (segment->IsPublished(other, post, call)) {
//     std::memcpy(..., segment->Data(other, post), ...);
//     segment->MarkRead(other, post);
//   }
//
// Posts are numbered, the same on all ranks: operations take them in the order of their start. Post p is in slot
// p mod slots(), and each of the size - 1 other ranks reads it exactly once. Each post carries the fingerprint of
// its call, in the cache line of its flag.
//
// Where the kernel permits all ranks to read each other's memory, a post may contain the address of the values instead:
// they are then copied once (process_vm_readv(2)).
//
// The memory has no name in a file system (memfd_create): the other ranks open it through /proc of rank 0, and the
// kernel frees it when the last process that maps it ends. Pages are allocated when first written.
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
  // Collective. Null on all ranks if one of them cannot map the memory, if there is only one rank, or if bytes_per_rank
  // is too small for so many ranks. `read_peers`: test whether they may read each other's memory. Throws
  // TransportError.
  static std::shared_ptr<NodeSegment> Make(MPI_Comm comm, std::int64_t bytes_per_rank, bool read_peers);
  ~NodeSegment();
  NodeSegment(const NodeSegment&) = delete;
  NodeSegment& operator=(const NodeSegment&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::int64_t slots() const { return layout_.slots; }
  std::int64_t slot_bytes() const { return layout_.slot_bytes; }

  // Reserves the next `count` posts and returns the first.
  std::int64_t TakePosts(std::int64_t count) { return std::exchange(next_post_, next_post_ + count); }
  bool CanWrite(std::int64_t post) const;  // this rank's own post
  void Publish(std::int64_t post, const CallFingerprint& call);
  // Throws TransportError if the post of `rank` belongs to another call than `mine`.
  bool IsPublished(int rank, std::int64_t post, const CallFingerprint& mine) const;
  void MarkRead(int rank, std::int64_t post);
  std::byte* Data(int rank, std::int64_t post) const;

  // Whether every rank may read every other rank's memory; the same on all of them.
  bool reads_peers() const { return !processes_.empty(); }
  // Copies from an address in another rank's process. Throws TransportError.
  void ReadFrom(int rank, const std::byte* address, void* to, std::int64_t bytes) const;
  // Whether all other ranks have read this rank's post, so that the memory it refers to may be changed.
  bool HasBeenRead(std::int64_t post) const;

 private:
  struct Slot {
    alignas(64) std::atomic<std::uint64_t> published;  // 1 + the post in this slot
    CallFingerprint call;                              // of that post
    alignas(64) std::atomic<std::uint64_t> read;       // how often posts in this slot have been read
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
  // Value of Slot::read once all others have read the slot's earlier posts.
  std::uint64_t ReadsBefore(std::int64_t post) const {
    return static_cast<std::uint64_t>(post / layout_.slots * (size_ - 1));
  }
  std::byte* Outbox(int rank) const;
  Slot& SlotOf(int rank, std::int64_t post) const;

  int rank_ = 0, size_ = 1;
  Layout layout_{};
  std::byte* memory_ = nullptr;
  std::int64_t next_post_ = 0;
  std::vector<std::int64_t> processes_;  // process ids of all ranks; empty if their memory cannot be read
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_NODE_SEGMENT_H_
