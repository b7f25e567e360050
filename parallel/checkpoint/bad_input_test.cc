// Damaged and foreign checkpoints: each gives a one-line error that says what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "comm/testing/world.h"
#include "data/hdf5/address_table.h"
#include "data/hdf5/addressed_file.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/checked_array.h"
#include "data/hdf5/file.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"
#include "parallel/checkpoint/step_folders.h"
#include "parallel/checkpoint/testing/testing_meshes.h"
#include "parallel/checkpoint/testing/testing_tensors.h"

namespace plait::parallel {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<TensorSpec> SmallTensors() {
  return {{"model", "weight", at::kFloat, {20, 15}},
          {"model", "bias", at::kBFloat16, {20}},
          {"optimizer/exp_avg", "weight", at::kFloat, {20, 15}},
          {"optimizer", "step", at::kLong, {}}};
}

CheckpointState SmallState() {
  return {.texts = {{"config", "a text"}}, .integers = {{"position", 5}}, .rank_state = {{"rng", "bytes"}}};
}

// Collective: saves one checkpoint of all ranks, with elements on every rank, as flat ranges of the tensors or of
// boxes.
void SaveSmall(const std::string& root, std::int64_t step, bool boxes) {
  const comm::Communicator& world = comm::testing::World();
  const auto cut = boxes ? testing::RandomMeshPieces : testing::RandomPieces;
  const testing::OwnedPieces own = cut(SmallTensors(), world.size(), world.rank(), 4, static_cast<int>(step));
  PLAIT_CHECK_OK(SaveCheckpoint(world, root, step, own.pieces, SmallState()).status());
}

// The folder of a fresh copy of the checkpoint for rank 0 alone to damage; the other ranks only save.
class BadInput : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const std::string root = ::testing::TempDir() + "/bad_input";
    if (comm::testing::World().rank() == 0) fs::remove_all(root);
    comm::testing::World().Barrier();
    SaveSmall(root, 1, GetParam());
    folder_ = root + "/copy";
    original_ = StepFolder(root, 1);
    if (comm::testing::World().rank() == 0) Restore();
  }
  void TearDown() override { comm::testing::World().Barrier(); }

  void Restore() {
    fs::remove_all(folder_);
    fs::copy(original_, folder_);
  }
  bool IsMine() const { return comm::testing::World().rank() == 0; }
  std::string LastShard() const {
    return absl::StrCat("rank-0000", comm::testing::World().size() - 1, ".h5");
  }
  // Opens it and reads all of it.
  absl::Status Read() const {
    absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(folder_);
    return checkpoint.ok() ? checkpoint->Verify() : checkpoint.status();
  }
  void ExpectError(absl::StatusCode code, std::vector<std::string> parts) const {
    const absl::Status status = Read();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
    for (const std::string& part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
  // Changes the index with HDF5, and appends an address table that matches.
  void ChangeIndex(const std::function<void(data::File&)>& change) const {
    const std::string path = folder_ + "/index.h5";
    fs::resize_file(path, data::AddressedFile::Open(path)->table().hdf5_bytes);
    data::File index = *data::File::Open(path, data::File::Mode::kReadWrite);
    change(index);
    PLAIT_CHECK_OK(index.Close());
    const data::AddressedFile changed = *data::AddressedFile::Open(path);
    data::AddressTable table = changed.table();
    table.structure_crc32 = *data::StructureCrc32(table, [&](std::int64_t offset, absl::Span<char> to) {
      return changed.bytes().ReadAt(to.data(), std::ssize(to), offset);
    });
    std::ofstream(path, std::ios::binary | std::ios::app) << *data::SerializeAddresses(table);
  }
  // Replaces the last occurrence of a text in /plait/contents.
  void ChangeContents(const std::string& from, const std::string& to) const {
    std::string contents = *data::AddressedFile::Open(folder_ + "/index.h5")->ReadBytes("/plait/contents");
    PLAIT_CHECK(contents.rfind(from) != std::string::npos) << from << " in " << contents;
    contents.replace(contents.rfind(from), from.size(), to);
    const std::vector<std::uint8_t> changed(contents.begin(), contents.end());
    ChangeIndex([&](data::File& index) {
      PLAIT_CHECK(H5Ldelete(index.id(), "/plait/contents", H5P_DEFAULT) >= 0);
      PLAIT_CHECK_OK(
          data::WriteChecked<std::uint8_t>(index, "/plait/contents", changed, {std::ssize(changed)}));
    });
  }
  void SetVersion(std::int64_t version) const {
    ChangeIndex([&](data::File& index) {
      PLAIT_CHECK_OK(data::SetAttribute(index, "/", "format_version", version));
    });
  }

  static void Replace(data::File& file, const char* name, const std::vector<std::int64_t>& values,
                      const std::vector<std::int64_t>& shape) {
    PLAIT_CHECK(H5Ldelete(file.id(), name, H5P_DEFAULT) >= 0) << name;
    PLAIT_CHECK_OK(data::WriteChecked<std::int64_t>(file, name, values, shape));
  }

  // Adds the fifth column, -1, to rows of four: pieces without boxes.
  static void AddColumn(std::vector<std::int64_t>& table) {
    for (std::ptrdiff_t end = 4; end <= std::ssize(table); end += 5) table.insert(table.begin() + end, -1);
  }

  std::string folder_, original_;
};

INSTANTIATE_TEST_SUITE_P(Formats, BadInput, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Boxes" : "FlatRanges"; });

TEST_P(BadInput, FilesThatAreMissingCutShortOrForeign) {
  if (!IsMine()) return;
  EXPECT_TRUE(Read().ok()) << Read();
  fs::remove(folder_ + "/" + LastShard());
  ExpectError(absl::StatusCode::kNotFound,
              {folder_, LastShard(), "No such file",
               absl::StrCat("consists of ", comm::testing::World().size(), " such files")});
  Restore();
  fs::resize_file(folder_ + "/" + LastShard(), fs::file_size(folder_ + "/" + LastShard()) - 1);
  ExpectError(absl::StatusCode::kDataLoss, {LastShard(), "truncated"});
  Restore();
  fs::remove(folder_ + "/index.h5");
  ExpectError(absl::StatusCode::kNotFound, {folder_, "no complete checkpoint", "index.h5"});
  std::ofstream(folder_ + "/index.h5") << "text";
  ExpectError(absl::StatusCode::kDataLoss, {"index.h5: not an HDF5 file"});
  fs::copy_file(original_ + "/rank-00000.h5", folder_ + "/index.h5", fs::copy_options::overwrite_existing);
  ExpectError(absl::StatusCode::kDataLoss, {"index.h5", "not the index of a checkpoint"});
  folder_ += "/absent";
  ExpectError(absl::StatusCode::kNotFound, {"/absent", "no complete checkpoint"});
}

TEST_P(BadInput, AFileOfAnotherSave) {
  SaveSmall(fs::path(original_).parent_path().string() + "/other", 2, GetParam());
  if (!IsMine()) return;
  const std::string other = StepFolder(fs::path(original_).parent_path().string() + "/other", 2);
  fs::copy_file(other + "/" + LastShard(), folder_ + "/" + LastShard(), fs::copy_options::overwrite_existing);
  const auto bytes_in = [&](const std::string& folder) {
    return absl::StrCat("\"bytes\":", fs::file_size(folder + "/" + LastShard()), ",");
  };
  if (bytes_in(original_) != bytes_in(other)) {
    ExpectError(absl::StatusCode::kDataLoss, {LastShard(), "from another checkpoint"});
    ChangeContents(bytes_in(original_), bytes_in(other));
  }
  ExpectError(absl::StatusCode::kDataLoss, {LastShard(), "of step 2", "expected step 1"});
}

TEST_P(BadInput, FormatsOfOtherVersions) {
  if (!IsMine()) return;
  SetVersion(4);
  ExpectError(absl::StatusCode::kDataLoss, {"format 4", "reads formats 1 to 3", "use the newer version"});
  SetVersion(0);
  ExpectError(absl::StatusCode::kDataLoss,
              {"format 0", "reads formats 1 to 3", "load it with the version that"});
}

// Other programs that open the files for writing truncate the address table.
TEST_P(BadInput, FilesThatHaveLostTheirTables) {
  if (!IsMine()) return;
  for (const std::string& name : {std::string("index.h5"), LastShard()}) {
    Restore();
    const std::string path = folder_ + "/" + name;
    fs::resize_file(path, data::AddressedFile::Open(path)->table().hdf5_bytes);
    EXPECT_TRUE(data::File::Open(path).ok());
    // Of the size that the index expects.
    fs::resize_file(path, fs::file_size(original_ + "/" + name));
    ExpectError(absl::StatusCode::kDataLoss,
                {name, "address table is missing", "modified by another program"});
  }
}

// One byte at a time, all over every file: HDF5's structures, elements, tables, gaps.
TEST_P(BadInput, EveryFlippedByteIsFound) {
  if (!IsMine()) return;
  int found = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(original_)) {
    const std::string name = entry.path().filename().string();
    const std::string bytes = *data::ReadWholeFile(entry.path().string());
    for (std::size_t place = 0; place < bytes.size(); place += 29) {
      std::string flipped = bytes;
      flipped[place] = static_cast<char>(flipped[place] ^ (1 << (place % 8)));
      std::ofstream(folder_ + "/" + name, std::ios::binary) << flipped;
      const absl::Status status = Read();
      EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(name), Not(HasSubstr("\n")))) << place;
      ++found;
    }
    Restore();
  }
  EXPECT_GT(found, 100);
}

TEST_P(BadInput, AFlippedElementNamesItsTensor) {
  if (!IsMine()) return;
  // Ten elements in a row, wherever a file has them together.
  constexpr std::int64_t kTogether = 10;
  for (std::int64_t first = 0; first + kTogether <= 300; ++first) {
    const std::vector<std::byte> some = testing::ElementsOf(SmallTensors()[0], first, first + kTogether, 1);
    for (const fs::directory_entry& entry : fs::directory_iterator(original_)) {
      std::string bytes = *data::ReadWholeFile(entry.path().string());
      const std::size_t place =
          bytes.find(std::string(reinterpret_cast<const char*>(some.data()), some.size()));
      if (place == std::string::npos) continue;
      bytes[place + 3] = static_cast<char>(bytes[place + 3] ^ 16);
      const std::string name = entry.path().filename().string();
      std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
      ExpectError(absl::StatusCode::kDataLoss, {name, "model/weight: checksum of elements [", "damaged"});
      return;
    }
  }
  FAIL() << "no file has ten elements together";
}

TEST_P(BadInput, TablesThatDoNotFitTogether) {
  if (!IsMine()) return;
  std::vector<std::vector<std::int64_t>> tables = {{},
                                                   {0, 0, 0, 301},
                                                   {9, 0, 0, 300},
                                                   {-1, 0, 0, 300},
                                                   {0, 9, 0, 300},
                                                   {0, 0, -1, 300},
                                                   {0, 0, 5, 5},
                                                   {1, 0, 0, 20, 0, 0, 0, 300}};
  constexpr std::int64_t kColumns = 5;
  for (std::vector<std::int64_t>& table : tables) AddColumn(table);
  if (GetParam()) {
    tables = {{},
              {0, 0, 0, 300, -2},                   // before the table of boxes
              {0, 0, 0, 300, 1},                    // reaches beyond it
              {0, 0, 0, 300, INT64_MAX},            // far beyond it
              {0, 0, 0, 140, 0},                    // a range beyond its box
              {0, 0, 0, 20, 4, 0, 0, 0, 300, -1}};  // a box outside the tensor
  }
  for (const std::vector<std::int64_t>& table : tables) {
    Restore();
    ChangeIndex([&](data::File& index) {
      Replace(index, "/plait/pieces", table, {std::ssize(table) / kColumns, kColumns});
      if (GetParam()) Replace(index, "/plait/boxes", {0, 0, 19, 7, 1, 1, 20, 1}, {8});
    });
    ExpectError(absl::StatusCode::kDataLoss, {"index.h5", "its parts are inconsistent"});
  }
}

// With correct checksums: wrong numbers must not cause large allocations.
TEST_P(BadInput, NumbersThatAreOutOfTheirBounds) {
  if (!IsMine()) return;
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"\"chunk_bytes\":1048576", "\"chunk_bytes\":9223372036854775800"},
      {"\"chunk_bytes\":1048576", "\"chunk_bytes\":0"},
      {"\"chunk_bytes\":1048576", "\"chunk_bytes\":1e300"},
      {"\"step\":1", "\"step\":-5"},
      {"\"ranks\":", "\"ranks\":4294967296"},
      {"\"shape\":[20,15]", "\"shape\":[-20,-15]"},
      {"\"shape\":[20,15]", "\"shape\":[4611686018427387904,4611686018427387904]"},
      {"\"shape\":[20,15]", "\"shape\":[1000000000,1000000000]"},
      {"\"shape\":[20,15]", "\"shape\":18446744073709551615"},
      {"\"name\":\"bias\"", "\"name\":\"weight\""},
      {"\"name\":\"bias\"", "\"name\":\"../bias\""},
      {"\"bytes\":", "\"bytes\":-1"},
      {"\"texts\":", "\"texts\":" + std::string(200'000, '[')},
      {"\"position\":5", "\"position\":5.5"}};
  for (const auto& [from, to] : changes) {
    Restore();
    ChangeContents(from, to);
    ExpectError(absl::StatusCode::kDataLoss, {"index.h5: its "});
  }
}

TEST_P(BadInput, AnArrayThatIsMissing) {
  if (!IsMine()) return;
  for (const char* name : {"/plait/contents", "/plait/pieces"}) {
    Restore();
    ChangeIndex(
        [&](data::File& index) { PLAIT_CHECK(H5Ldelete(index.id(), name, H5P_DEFAULT) >= 0) << name; });
    ExpectError(absl::StatusCode::kDataLoss, {"index.h5", name, "damaged"});
  }
  if (!GetParam()) return;
  Restore();
  ChangeIndex(
      [&](data::File& index) { PLAIT_CHECK(H5Ldelete(index.id(), "/plait/boxes", H5P_DEFAULT) >= 0); });
  ExpectError(absl::StatusCode::kDataLoss, {"index.h5", "its parts are inconsistent"});
}

// FindLatestCheckpoint reports what is wrong with a damaged checkpoint, not that there is none.
TEST_P(BadInput, TheSearchForTheNewestNamesTheDamage) {
  if (!IsMine()) return;
  const std::string root = fs::path(original_).parent_path().string() + "/damaged";
  const auto expect = [&](const std::string& given, std::vector<std::string> parts) {
    const absl::Status status = FindLatestCheckpoint(given).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
    for (const std::string& part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  };
  fs::remove_all(root);
  fs::create_directories(root);
  EXPECT_EQ(FindLatestCheckpoint(root).status().code(), absl::StatusCode::kNotFound);
  fs::copy(original_, StepFolder(root, 1));
  fs::copy(original_, StepFolder(root, 2));
  EXPECT_EQ(*FindLatestCheckpoint(root), StepFolder(root, 2));
  EXPECT_EQ(*FindLatestCheckpoint(StepFolder(root, 1)), StepFolder(root, 1)) << "a checkpoint itself";
  std::ofstream(StepFolder(root, 2) + "/index.h5") << "text";
  EXPECT_EQ(*FindLatestCheckpoint(root), StepFolder(root, 1));
  expect(StepFolder(root, 2), {StepFolder(root, 2) + "/index.h5: not an HDF5 file"});
  fs::remove(StepFolder(root, 1) + "/" + LastShard());
  expect(root, {StepFolder(root, 2) + "/index.h5: not an HDF5 file"});
  expect(StepFolder(root, 1), {LastShard(), "No such file"});
  fs::remove(StepFolder(root, 2) + "/index.h5");
  expect(root, {LastShard(), "No such file"});
}

TEST_P(BadInput, AnotherArchitecture) {
  if (!IsMine()) return;
  const Checkpoint checkpoint = *Checkpoint::Open(folder_);
  const auto error = [&](const std::vector<TensorSpec>& expected) {
    const absl::Status status = checkpoint.CheckTensors(expected);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(folder_), HasSubstr("another architecture")));
    return std::string(status.message());
  };
  std::vector<TensorSpec> expected = SmallTensors();
  EXPECT_TRUE(checkpoint.CheckTensors(expected).ok());
  EXPECT_TRUE(checkpoint.CheckTensors({expected[0], expected[1]}).ok()) << "the model without its optimizer";
  expected[0].shape = {15, 20};
  EXPECT_THAT(error(expected), HasSubstr("model/weight is float32 (20, 15) there and float32 (15, 20) here"));
  expected = SmallTensors();
  expected[1].dtype = at::kFloat;
  EXPECT_THAT(error(expected), HasSubstr("model/bias is bfloat16 (20) there and float32 (20) here"));
  expected = SmallTensors();
  expected.push_back({"model", "head", at::kFloat, {3}});
  EXPECT_THAT(error(expected), HasSubstr("it has no model/head"));
  EXPECT_THAT(error({SmallTensors()[0]}), HasSubstr("model/bias is not part of this model"));
  for (const char* name : {"a", "b", "c", "d"}) expected.push_back({"model", name, at::kBool, {}});
  EXPECT_THAT(error(expected),
              AllOf(HasSubstr("model/b"), HasSubstr(" and 2 more"), Not(HasSubstr("model/c"))));
}

TEST_P(BadInput, RangesThatTheTensorDoesNotHave) {
  if (!IsMine()) return;
  Checkpoint checkpoint = *Checkpoint::Open(folder_);
  std::vector<std::byte> bytes(8);
  const auto read = [&](const std::string& path, std::int64_t begin, std::int64_t end, std::size_t size) {
    return checkpoint.Read(path, begin, end, absl::MakeSpan(bytes.data(), size));
  };
  EXPECT_TRUE(read("model/weight", 298, 300, 8).ok());
  EXPECT_TRUE(read("model/weight", 300, 300, 0).ok());
  const auto read_box = [&](const models::Box& box, std::int64_t begin, std::int64_t end, std::size_t size) {
    return checkpoint.Read("model/weight", begin, end, absl::MakeSpan(bytes.data(), size), box);
  };
  EXPECT_TRUE(read_box({{18, 13}, {2, 2}}, 2, 4, 8).ok());
  for (const auto& [box, end, size] :
       std::vector<std::tuple<models::Box, std::int64_t, std::size_t>>{{{{18, 13}, {2, 3}}, 2, 8},
                                                                       {{{-1, 13}, {2, 2}}, 2, 8},
                                                                       {{{18}, {2}}, 2, 8},
                                                                       {{{18, 13}, {2}}, 2, 8},
                                                                       {{{18, 13}, {2, 2}}, 5, 20},
                                                                       {{{18, 13}, {2, 2}}, 2, 4}}) {
    const absl::Status status = read_box(box, 0, end, size);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("model/weight"), HasSubstr("of box [")));
  }
  EXPECT_EQ(read("model/absent", 0, 1, 4).code(), absl::StatusCode::kNotFound);
  for (const auto& [begin, end, size] :
       std::vector<std::array<std::int64_t, 3>>{{299, 301, 8}, {-1, 1, 8}, {2, 1, 0}, {0, 2, 4}, {0, 1, 8}}) {
    const absl::Status status = read("model/weight", begin, end, size);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("model/weight"));
  }
}

}  // namespace
}  // namespace plait::parallel
