// State in a file against state in memory, bitwise; and error messages when the disk fails.
#include "parallel/offload/state_store.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace plait::parallel {
namespace {

namespace fs = std::filesystem;

std::string Folder() { return std::getenv("TEST_TMPDIR") != nullptr ? std::getenv("TEST_TMPDIR") : "/tmp"; }

// One of them longer than a piece of 4 MiB, one without elements, none a multiple of a block.
std::vector<StateSlot> Slots() {
  return {{.name = "a", .count = 1000},
          {.name = "b", .count = 1'300'001},
          {.name = "none", .count = 0},
          {.name = "c", .count = 7, .type = at::kDouble},
          {.name = "d", .count = 5000, .type = at::kBFloat16}};
}

std::unique_ptr<StateStore> Make(std::vector<StateSlot> slots, OffloadTarget place) {
  auto store = StateStore::Create(std::move(slots), {.target = place, .folder = Folder()});
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

// A step that combines the old state with new values, so that a lost or stale write shows.
void Step(at::Tensor state, std::size_t slot, int round) {
  const at::Tensor fresh = at::arange(state.numel(), state.options().dtype(at::kFloat)).add_(1.0 + slot);
  state.mul_(0.9).add_(fresh.mul_(1.0 / (1 + round)).to(state.scalar_type()));
}

enum class Guess { kNone, kRight, kWrong };

void RunRounds(StateStore& store, const std::vector<std::size_t>& order, int rounds,
               Guess guess = Guess::kRight) {
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t slot = order[i], next = order[(i + 1) % order.size()];
      auto state = store.Acquire(slot);
      ASSERT_TRUE(state.ok()) << state.status();
      if (guess != Guess::kNone) store.Prefetch(next);
      if (guess == Guess::kWrong) store.Prefetch((next + 1) % store.slots().size());
      ASSERT_EQ(state->numel(), store.slots()[slot].count);
      ASSERT_EQ(state->scalar_type(), store.slots()[slot].type);
      Step(*state, slot, round);
      ASSERT_TRUE(store.Release(slot).ok());
    }
  }
}

std::vector<at::Tensor> Contents(StateStore& store) {
  std::vector<at::Tensor> contents;
  for (std::size_t slot = 0; slot < store.slots().size(); ++slot) {
    const auto state = store.Acquire(slot);
    EXPECT_TRUE(state.ok()) << state.status();
    contents.push_back(state.ok() ? state->clone() : at::Tensor());
    EXPECT_TRUE(store.Release(slot, /*changed=*/false).ok());
  }
  return contents;
}

void ExpectSameAsMemory(OffloadTarget place, const std::vector<StateSlot>& slots,
                        const std::vector<std::size_t>& order) {
  for (const Guess guess : {Guess::kNone, Guess::kRight, Guess::kWrong}) {
    const auto memory = Make(slots, OffloadTarget::kMemory), other = Make(slots, place);
    RunRounds(*memory, order, 3);
    RunRounds(*other, order, 3, guess);
    const std::vector<at::Tensor> expected = Contents(*memory), actual = Contents(*other);
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      EXPECT_TRUE(actual[slot].equal(expected[slot])) << slots[slot].name;
    }
  }
}

TEST(StateStore, BeginsWithZeros) {
  for (const OffloadTarget place : {OffloadTarget::kMemory, OffloadTarget::kHost, OffloadTarget::kFile}) {
    for (const at::Tensor& state : Contents(*Make(Slots(), place))) {
      EXPECT_EQ(state.ne(0).sum().item<std::int64_t>(), 0);
    }
  }
}

TEST(StateStore, HasTheBitsOfMemory) {
  for (const OffloadTarget place : {OffloadTarget::kHost, OffloadTarget::kFile}) {
    ExpectSameAsMemory(place, Slots(), {0, 1, 2, 3, 4});
    ExpectSameAsMemory(place, Slots(), {4, 1, 1, 0, 3});  // in an order that nobody expects
    ExpectSameAsMemory(place, {{.count = 100}}, {0});
    ExpectSameAsMemory(place, {{.count = 100}, {.count = 300'000}}, {0, 1});
    ExpectSameAsMemory(place, {{.count = 100}, {.count = 300'000}}, {1, 0, 0, 1, 1});
  }
}

TEST(StateStore, CountsReadsThatNobodyExpected) {
  const auto store = Make(Slots(), OffloadTarget::kFile);
  RunRounds(*store, {0, 1, 2, 3, 4}, 2);
  EXPECT_EQ(store->unexpected_reads(), 1) << "the first";
  RunRounds(*store, {4, 0}, 1, Guess::kNone);
  EXPECT_EQ(store->unexpected_reads(), 3);
}

TEST(StateStore, WhatAReaderWritesDoesNotCount) {
  const auto store = Make(Slots(), OffloadTarget::kFile);
  RunRounds(*store, {0, 1, 2, 3, 4}, 1);
  const std::vector<at::Tensor> before = Contents(*store);
  const auto state = store->Acquire(0);
  ASSERT_TRUE(state.ok());
  state->fill_(5);
  ASSERT_TRUE(store->Release(0, /*changed=*/false).ok());
  EXPECT_TRUE(Contents(*store)[0].equal(before[0]));
}

TEST(StateStore, AFileTakesTwoBuffersAndNoName) {
  const fs::path folder = fs::path(Folder()) / "no_name";
  fs::create_directory(folder);
  auto store = StateStore::Create(Slots(), {.target = OffloadTarget::kFile, .folder = folder.string()});
  ASSERT_TRUE(store.ok()) << store.status();
  std::set<const void*> addresses;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t slot = 0; slot < Slots().size(); ++slot) {
      const auto state = (*store)->Acquire(slot);
      ASSERT_TRUE(state.ok());
      (*store)->Prefetch((slot + 1) % Slots().size());
      addresses.insert(state->const_data_ptr());
      ASSERT_TRUE((*store)->Release(slot).ok());
      EXPECT_TRUE(fs::is_empty(folder));
    }
  }
  addresses.erase(nullptr);
  EXPECT_LE(addresses.size(), 2u);
  // Blocks of 4096 bytes: 4000 -> 1, 5,200,004 -> 1270, 0, 56 -> 1, 10,000 -> 3.
  EXPECT_EQ((*store)->file_bytes(), 4096 * (1 + 1270 + 1 + 3));
  EXPECT_EQ((*store)->host_bytes(), 2 * 4096 * 1270);
  EXPECT_EQ((*store)->device_bytes(), 0);
}

TEST(StateStore, CountsItsBytes) {
  const auto memory = Make({{.count = 10}, {.count = 5, .type = at::kDouble}}, OffloadTarget::kMemory);
  EXPECT_EQ(memory->device_bytes(), 80);
  EXPECT_EQ(memory->host_bytes() + memory->file_bytes(), 0);
}

// A read that is prefetched right after a release sees the released values.
TEST(StateStore, AReadFollowsTheWriteBeforeIt) {
  const auto store = Make({{.count = 2'000'000}, {.count = 2'000'000}}, OffloadTarget::kFile);
  for (int round = 1; round <= 5; ++round) {
    for (const std::size_t slot : {0, 1, 0}) {
      auto state = store->Acquire(slot);
      ASSERT_TRUE(state.ok()) << state.status();
      state->add_(1);
      ASSERT_TRUE(store->Release(slot).ok());
      store->Prefetch(slot);
    }
  }
  const std::vector<at::Tensor> contents = Contents(*store);
  EXPECT_TRUE(contents[0].eq(10).all().item<bool>());
  EXPECT_TRUE(contents[1].eq(5).all().item<bool>());
}

TEST(StateStore, ErrorsNameWhatIsKept) {
  const auto store = StateStore::Create(
      Slots(), {.target = OffloadTarget::kFile, .folder = "/dev/null", .what = "parameters"});
  EXPECT_EQ(
      store.status().message(),
      "cannot keep parameters in /dev/null: Not a directory; name a folder that exists and takes files");
}

TEST(StateStore, AFolderThatIsNotThere) {
  const auto store =
      StateStore::Create(Slots(), {.target = OffloadTarget::kFile, .folder = "/no/such/folder"});
  EXPECT_EQ(store.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store.status().message(),
            "cannot keep optimizer state in /no/such/folder: No such file or directory; name a folder that "
            "exists and takes files");
}

// During its lifetime, files cannot grow beyond `bytes`, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_ = {};
};

TEST(StateStore, ADiskWithoutRoomIsToldAtOnce) {
  const FileSizeLimit limit(1 << 20);
  const auto store = StateStore::Create(Slots(), {.target = OffloadTarget::kFile, .folder = Folder()});
  EXPECT_EQ(store.status().code(), absl::StatusCode::kResourceExhausted);
  const std::string message(store.status().message());
  EXPECT_EQ(message.find("optimizer state: 0.005 GB are needed in " + Folder()), 0u) << message;
  EXPECT_NE(message.find("name a folder on a larger disk"), std::string::npos) << message;
}

TEST(StateStore, AWriteThatFailsComesOutOfALaterCallAndStays) {
  const auto store = Make(Slots(), OffloadTarget::kFile);
  ASSERT_TRUE(store->Acquire(1).ok());
  ASSERT_TRUE(store->Drain().ok());
  const FileSizeLimit limit(0);
  (void)store->Release(1);
  const absl::Status status = store->Drain();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()).find("optimizer state in " + Folder() + ": cannot write at byte "),
            0u)
      << status;
  EXPECT_NE(status.message().find("resume from a checkpoint"), absl::string_view::npos) << status;
  EXPECT_EQ(store->Acquire(0).status(), status);
  EXPECT_EQ(store->Acquire(2).status(), status);
}

// Found through /proc, because it has no name.
int OpenStateFile() {
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = fs::read_symlink(entry.path(), error).string();
    if (target.find("plait-state-") != std::string::npos) return open(entry.path().c_str(), O_RDWR);
  }
  return -1;
}

TEST(StateStore, AFileThatWasCutShortIsNoState) {
  const auto store = Make(Slots(), OffloadTarget::kFile);
  ASSERT_TRUE(store->Acquire(3).ok());
  store->Prefetch(4);
  ASSERT_TRUE(store->Drain().ok());
  const int file = OpenStateFile();
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, 4096 * 3), 0);
  close(file);
  ASSERT_TRUE(store->Release(3, /*changed=*/false).ok());
  EXPECT_TRUE(store->Acquire(0).ok()) << "it lies before the cut";
  (void)store->Release(0, /*changed=*/false);
  const absl::Status status = store->Acquire(1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "optimizer state in " + Folder() +
                                  ": the file ends at byte 12288 of 5222400, something has cut it short; go "
                                  "on from a checkpoint");
}

TEST(StateStoreDeathTest, OneSlotAtATime) {
  for (const OffloadTarget place : {OffloadTarget::kMemory, OffloadTarget::kFile}) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
          const auto store = Make(Slots(), place);
          (void)store->Acquire(0);
          (void)store->Acquire(1);
        },
        "slot 1 while another is acquired");
  }
}

}  // namespace
}  // namespace plait::parallel
