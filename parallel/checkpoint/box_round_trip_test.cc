// Boxes saved by the ranks of one mesh are read back by those of any other, and compared with whole tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "comm/testing/world.h"
#include "data/hdf5/file.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"
#include "parallel/checkpoint/step_folders.h"
#include "parallel/checkpoint/testing/testing_meshes.h"

namespace plait::parallel {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const comm::Communicator& World() { return comm::testing::World(); }

std::string FreshFolder(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  if (World().rank() == 0) fs::remove_all(folder);
  World().Barrier();
  return folder;
}

// Random ones; once also those that are larger than a chunk.
std::vector<TensorSpec> Tensors(std::uint64_t seed) {
  std::vector<TensorSpec> tensors = testing::RandomTensors(40, seed);
  if (seed > 0) return tensors;
  const std::vector<TensorSpec> large = testing::ManyTensors();
  tensors.insert(tensors.end(), large.begin(), large.end());
  return tensors;
}

// Reads a local shard box by box into one buffer, as a rank of the mesh would.
absl::StatusOr<std::vector<std::byte>> ReadShard(Checkpoint& checkpoint, const TensorSpec& tensor,
                                                 const testing::LocalShard& shard) {
  std::vector<std::byte> elements((shard.end - shard.begin) * ElementBytes(tensor.dtype));
  std::vector<models::Box> boxes = shard.boxes;
  if (boxes.empty()) boxes.emplace_back();
  std::int64_t first = 0, done = 0;
  for (const models::Box& box : boxes) {
    std::int64_t size = box.size.empty() ? ElementsOf(tensor) : 1;
    for (const std::int64_t extent : box.size) size *= extent;
    const std::int64_t begin = std::max(shard.begin, first), end = std::min(shard.end, first + size);
    if (begin < end) {
      const std::int64_t bytes = (end - begin) * ElementBytes(tensor.dtype);
      const absl::Status read = checkpoint.Read(PathOf(tensor), begin - first, end - first,
                                                absl::MakeSpan(elements).subspan(done, bytes), box);
      if (!read.ok()) return read;
      done += bytes;
    }
    first += size;
  }
  return elements;
}

// "" if every shard of the mesh holds the elements of the whole tensors; else what differs.
std::string FirstDifferenceOfMesh(Checkpoint& checkpoint, const std::vector<TensorSpec>& tensors,
                                  std::uint64_t mesh, int version) {
  for (const TensorSpec& tensor : tensors) {
    const std::vector<std::byte> whole = testing::ElementsOf(tensor, 0, ElementsOf(tensor), version);
    for (const testing::LocalShard& shard : testing::RandomMesh(tensor, mesh)) {
      const absl::StatusOr<std::vector<std::byte>> read = ReadShard(checkpoint, tensor, shard);
      if (!read.ok()) return std::string(read.status().message());
      if (*read != testing::ElementsOf(tensor, shard, whole)) {
        return absl::StrCat(PathOf(tensor), " [", shard.begin, ", ", shard.end, ") of ", shard.boxes.size(),
                            " boxes: other elements");
      }
    }
  }
  return "";
}

TEST(BoxRoundTrip, AnyMeshToAnyOther) {
  for (int savers = 1; savers <= World().size(); savers *= 2) {
    const comm::Communicator comm = World().Split(World().rank() < savers ? 0 : -1, World().rank(), "savers");
    for (std::uint64_t mesh = 0; mesh < 4; ++mesh) {
      const std::string root = FreshFolder(absl::StrCat("boxes_", savers, "_", mesh));
      const std::vector<TensorSpec> tensors = Tensors(mesh);
      const auto version = static_cast<int>(mesh);
      if (World().rank() < savers) {
        const testing::OwnedPieces own =
            testing::RandomMeshPieces(tensors, savers, World().rank(), mesh, version);
        const absl::StatusOr<SaveReport> saved = SaveCheckpoint(comm, root, 1, own.pieces, {});
        EXPECT_TRUE(saved.ok()) << saved.status();
      }
      World().Barrier();
      absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(StepFolder(root, 1));
      EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
      if (checkpoint.ok()) {
        EXPECT_TRUE(checkpoint->CheckTensors(tensors).ok()) << checkpoint->CheckTensors(tensors);
        EXPECT_TRUE(checkpoint->Verify().ok()) << checkpoint->Verify();
        EXPECT_EQ(testing::FirstDifference(*checkpoint, tensors, 7 + World().rank(), version), "");
        // Every rank with meshes of its own, and the one that saved it.
        for (const std::uint64_t other : {mesh, 10 + mesh + 3 * World().rank(), 100 + mesh}) {
          EXPECT_EQ(FirstDifferenceOfMesh(*checkpoint, tensors, other, version), "") << mesh << " " << other;
        }
      }
      World().Barrier();
    }
  }
}

// A box of columns is read row by row from a piece's chunks; chunks that it does not touch are not read.
TEST(BoxRoundTrip, OnlyTheChunksOfTheBoxAreRead) {
  const std::string root = FreshFolder("box_chunks");
  const TensorSpec tensor{"model", "x", at::kByte, {6, 1 << 20}};
  // Two pieces of half the columns each; a chunk, 1 MiB, is two rows of a piece.
  const std::int64_t half = 1 << 19;
  const std::vector<std::byte> whole = testing::ElementsOf(tensor, 0, ElementsOf(tensor), 0);
  testing::OwnedPieces own;
  for (int side = 0; side < 2; ++side) {
    if (World().rank() != side % World().size()) continue;
    const models::Box box{{0, side * half}, {6, half}};
    own.values.push_back(testing::ElementsOf(tensor, {{box}, 0, 6 * half}, whole));
    own.pieces.push_back({tensor, 0, 6 * half, own.values.back().data(), nullptr, box});
  }
  EXPECT_TRUE(SaveCheckpoint(World(), root, 1, own.pieces, {}).ok());
  if (World().rank() == 0) {
    // One byte of the left half of row 2, the first of the second chunk.
    const std::string file = StepFolder(root, 1) + "/rank-00000.h5";
    const std::vector<std::byte> row = testing::ElementsOf(tensor, 2 << 20, (2 << 20) + half, 0);
    std::FILE* stream = std::fopen(file.c_str(), "r+");
    std::vector<char> bytes(fs::file_size(file));
    EXPECT_EQ(std::fread(bytes.data(), 1, bytes.size(), stream), bytes.size());
    const auto* wanted = reinterpret_cast<const char*>(row.data());
    const auto place = std::search(bytes.begin(), bytes.end(), wanted, wanted + row.size());
    EXPECT_NE(place, bytes.end());
    std::fseek(stream, place - bytes.begin() + 5, SEEK_SET);
    std::fputc(place[5] ^ 1, stream);
    std::fclose(stream);
  }
  World().Barrier();
  Checkpoint checkpoint = *Checkpoint::Open(StepFolder(root, 1));
  const auto read = [&](const models::Box& box) -> absl::Status {
    const testing::LocalShard shard{{box}, 0, box.size[0] * box.size[1]};
    const absl::StatusOr<std::vector<std::byte>> elements = ReadShard(checkpoint, tensor, shard);
    if (!elements.ok()) return elements.status();
    EXPECT_EQ(*elements, testing::ElementsOf(tensor, shard, whole));
    return absl::OkStatus();
  };
  EXPECT_TRUE(read({{0, 0}, {2, half}}).ok());
  EXPECT_TRUE(read({{0, half - 9}, {2, 30}}).ok()) << "rows 0 and 1 across both pieces";
  EXPECT_TRUE(read({{4, 0}, {2, 1 << 20}}).ok());
  EXPECT_TRUE(read({{0, half}, {6, half}}).ok());
  const absl::Status damaged = read({{1, half - 3}, {2, 7}});
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(damaged.message()),
              HasSubstr("model/x: checksum of elements [1048576, 2097152) of box [0:6, 0:524288]"));
  EXPECT_EQ(read({{1, half - 3}, {2, 7}}).code(), absl::StatusCode::kDataLoss) << "and again";
  World().Barrier();
}

// Pieces that are contiguous in their tensors, as after a split by rows, need no /plait/boxes.
TEST(BoxRoundTrip, OnlyBoxesNeedTheNewerFormat) {
  const TensorSpec tensor{"model", "x", at::kByte, {4, 6}};
  const std::vector<std::byte> whole = testing::ElementsOf(tensor, 0, 24, 0);
  const auto saved = [&](const std::string& name, const models::Box& first, const models::Box& second) {
    const std::string root = FreshFolder(name);
    testing::OwnedPieces own;
    for (const models::Box& box : {first, second}) {
      if (World().rank() != (box == first ? 0 : World().size() - 1)) continue;
      own.values.push_back(testing::ElementsOf(tensor, {{box}, 0, box.size[0] * box.size[1]}, whole));
      own.pieces.push_back({tensor, 0, box.size[0] * box.size[1], own.values.back().data(), nullptr, box});
    }
    EXPECT_TRUE(SaveCheckpoint(World(), root, 1, own.pieces, {}).ok());
    Checkpoint checkpoint = *Checkpoint::Open(StepFolder(root, 1));
    EXPECT_EQ(testing::FirstDifference(checkpoint, {tensor}, 1, 0), "");
    World().Barrier();
    return data::File::Open(StepFolder(root, 1) + "/index.h5")->Has("/plait/boxes");
  };
  EXPECT_FALSE(saved("rows", {{0, 0}, {3, 6}}, {{3, 0}, {1, 6}}));
  EXPECT_TRUE(saved("columns", {{0, 0}, {4, 2}}, {{0, 2}, {4, 4}}));
}

// Written on two ranks by earlier versions, before boxes (1) and before address tables (2): some tensors of
// testing_tensors.h.
class EarlierFormat : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Versions, EarlierFormat, ::testing::Values(1, 2));

TEST_P(EarlierFormat, StaysReadable) {
  absl::StatusOr<Checkpoint> checkpoint =
      Checkpoint::Open(absl::StrCat("parallel/checkpoint/testdata/format", GetParam()));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->ranks(), 2);
  EXPECT_EQ(checkpoint->step(), 12);
  EXPECT_EQ(*checkpoint->RankState(1, "rng"), "rank 1");
  const std::vector<TensorSpec> tensors = checkpoint->tensors();
  EXPECT_EQ(tensors.size(), GetParam() == 1 ? 7u : 11u);
  for (const TensorSpec& tensor : tensors) {
    const std::vector<TensorSpec> known = testing::ManyTensors();
    EXPECT_NE(std::find(known.begin(), known.end(), tensor), known.end()) << PathOf(tensor);
  }
  EXPECT_TRUE(checkpoint->Verify().ok());
  EXPECT_EQ(testing::FirstDifference(*checkpoint, tensors, 5, 0), "");
  for (std::uint64_t mesh = 0; mesh < 20; ++mesh) {
    EXPECT_EQ(FirstDifferenceOfMesh(*checkpoint, tensors, mesh, 0), "") << mesh;
  }
}

}  // namespace
}  // namespace plait::parallel
