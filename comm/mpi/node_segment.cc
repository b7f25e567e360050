#include "comm/mpi/node_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "comm/mpi/mpi_types.h"
#include "comm/transport_error.h"

namespace plait::comm {
namespace {

constexpr std::int64_t kPageBytes = 4096;
// Fits into a core's L2 cache together with the values that are copied, and is large enough to amortise the flags.
constexpr std::int64_t kSlotBytes = 256 << 10;
constexpr std::int64_t kFewestSlots = 4;  // an all-reduce has two in use while it fills the next
constexpr std::int64_t kLineBytes = 64;

std::int64_t RoundUp(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

// Beyond the limit (ulimit -f), which holds for memory too, ftruncate ends the process by SIGXFSZ.
bool FilesMayHave(std::int64_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(bytes);
}

// What rank 0 broadcasts.
struct Invitation {
  std::int64_t made, process, file;
  std::uint64_t key;
};

// The kernel copies at most 2 GiB at a time.
bool TryRead(std::int64_t process, const std::byte* address, void* to, std::int64_t bytes) {
  auto* here = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const iovec local = {here, static_cast<std::size_t>(bytes)};
    const iovec remote = {const_cast<std::byte*>(address), local.iov_len};
    const std::int64_t copied = process_vm_readv(static_cast<pid_t>(process), &local, 1, &remote, 1, 0);
    if (copied <= 0) return false;
    here += copied;
    address += copied;
    bytes -= copied;
  }
  return true;
}

}  // namespace

NodeSegment::Layout NodeSegment::LayoutFor(int size, std::int64_t bytes_per_rank) {
  Layout layout{};
  layout.slots = std::max(bytes_per_rank / kSlotBytes, kFewestSlots);
  layout.slot_bytes = std::min(kSlotBytes, bytes_per_rank / layout.slots) / kLineBytes * kLineBytes;
  const std::int64_t flags = layout.slots * static_cast<std::int64_t>(sizeof(Slot));
  layout.data_offset = RoundUp(flags, kPageBytes);
  layout.bytes_per_rank = RoundUp(layout.data_offset + layout.slots * layout.slot_bytes, kPageBytes);
  layout.bytes = kPageBytes + size * layout.bytes_per_rank;
  return layout;
}

NodeSegment::NodeSegment(MPI_Comm comm, std::int64_t bytes_per_rank) {
  CheckMpi(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
  CheckMpi(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
  layout_ = LayoutFor(size_, bytes_per_rank);
}

NodeSegment::~NodeSegment() {
  if (memory_ != nullptr) munmap(memory_, layout_.bytes);
}

bool NodeSegment::Map(int file) {
  void* memory = mmap(nullptr, layout_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (memory != MAP_FAILED) memory_ = static_cast<std::byte*>(memory);
  return memory != MAP_FAILED;
}

bool NodeSegment::Create(int* file, std::uint64_t key) {
  if (!FilesMayHave(layout_.bytes)) return false;
  *file = memfd_create("plait_node_segment", MFD_CLOEXEC);
  if (*file < 0 || ftruncate(*file, layout_.bytes) != 0 || !Map(*file)) return false;
  *reinterpret_cast<std::uint64_t*>(memory_) = key;
  return true;
}

// The key verifies that it is the right memory: containers on one node may have separate process ids.
bool NodeSegment::Open(std::int64_t process, std::int64_t file, std::uint64_t key) {
  const int opened = open(absl::StrCat("/proc/", process, "/fd/", file).c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0) return false;
  struct stat status {};
  const bool mapped = fstat(opened, &status) == 0 && status.st_size == layout_.bytes && Map(opened);
  close(opened);
  return mapped && *reinterpret_cast<const std::uint64_t*>(memory_) == key;
}

// Every rank reads a word of every other one's memory; its value verifies that it was the right process, as in Open.
void NodeSegment::FindReadablePeers(MPI_Comm comm) {
  struct Word {
    std::int64_t process;
    const std::byte* address;
    std::uint64_t key;
  };
  const std::uint64_t key =
      *reinterpret_cast<const std::uint64_t*>(memory_) + static_cast<std::uint64_t>(rank_);
  const Word mine = {getpid(), reinterpret_cast<const std::byte*>(&key), key};
  std::vector<Word> words(size_);
  CheckMpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, words.data(), sizeof mine, MPI_BYTE, comm),
           "MPI_Allgather");
  for (const Word& word : words) processes_.push_back(word.process);
  int readable = 1;
  for (int rank = 0; rank < size_ && readable != 0; ++rank) {
    std::uint64_t found = 0;
    if (rank == rank_) continue;
    readable =
        TryRead(processes_[rank], words[rank].address, &found, sizeof found) && found == words[rank].key;
  }
  // Also a barrier: all ranks have read `key`, which ends with this function.
  CheckMpi(MPI_Allreduce(MPI_IN_PLACE, &readable, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
  if (readable == 0) processes_.clear();
}

void NodeSegment::ReadFrom(int rank, const std::byte* address, void* to, std::int64_t bytes) const {
  if (TryRead(processes_[rank], address, to, bytes)) return;
  throw TransportError(
      absl::StrCat("memory of rank ", rank, " of the group cannot be read: ", strerror(errno)));
}

std::shared_ptr<NodeSegment> NodeSegment::Make(MPI_Comm comm, std::int64_t bytes_per_rank, bool read_peers) {
  std::shared_ptr<NodeSegment> segment(new NodeSegment(comm, bytes_per_rank));
  if (segment->size_ < 2 || segment->slot_bytes() / (segment->size_ - 1) < kLineBytes) return nullptr;
  Invitation invitation{};
  int file = -1;
  if (segment->rank_ == 0) {
    std::random_device random;
    invitation.key = (std::uint64_t{random()} << 32) | random();
    invitation.made = segment->Create(&file, invitation.key);
    invitation.process = getpid();
    invitation.file = file;
  }
  CheckMpi(MPI_Bcast(&invitation, sizeof invitation, MPI_BYTE, 0, comm), "MPI_Bcast");
  int usable = static_cast<int>(invitation.made);
  if (segment->rank_ != 0 && usable != 0) {
    usable = segment->Open(invitation.process, invitation.file, invitation.key);
  }
  CheckMpi(MPI_Allreduce(MPI_IN_PLACE, &usable, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
  if (file >= 0) close(file);
  if (usable == 0) return nullptr;
  if (read_peers) segment->FindReadablePeers(comm);
  return segment;
}

std::byte* NodeSegment::Outbox(int rank) const {
  return memory_ + kPageBytes + rank * layout_.bytes_per_rank;
}

// New memory is zero: nothing published, nothing read.
NodeSegment::Slot& NodeSegment::SlotOf(int rank, std::int64_t post) const {
  return reinterpret_cast<Slot*>(Outbox(rank))[post % layout_.slots];
}

std::byte* NodeSegment::Data(int rank, std::int64_t post) const {
  return Outbox(rank) + layout_.data_offset + post % layout_.slots * layout_.slot_bytes;
}

bool NodeSegment::CanWrite(std::int64_t post) const {
  const std::uint64_t reads = SlotOf(rank_, post).read.load(std::memory_order_acquire);
  return reads == ReadsBefore(post);
}

bool NodeSegment::HasBeenRead(std::int64_t post) const {
  return SlotOf(rank_, post).read.load(std::memory_order_acquire) >= ReadsBefore(post + layout_.slots);
}

void NodeSegment::Publish(std::int64_t post, const CallFingerprint& call) {
  Slot& slot = SlotOf(rank_, post);
  slot.call = call;
  slot.published.store(post + 1, std::memory_order_release);
}

bool NodeSegment::IsPublished(int rank, std::int64_t post, const CallFingerprint& mine) const {
  const Slot& slot = SlotOf(rank, post);
  if (slot.published.load(std::memory_order_acquire) != static_cast<std::uint64_t>(post + 1)) return false;
  CheckSameCall(mine, rank_, slot.call, rank);
  return true;
}

void NodeSegment::MarkRead(int rank, std::int64_t post) {
  std::atomic<std::uint64_t>& read = SlotOf(rank, post).read;
  if (size_ == 2) {
    // The only reader knows the new value: unlike fetch_add, a store does not wait for the other core's cache line.
    read.store(static_cast<std::uint64_t>(post / layout_.slots + 1), std::memory_order_release);
  } else {
    read.fetch_add(1, std::memory_order_release);
  }
}

}  // namespace plait::comm
