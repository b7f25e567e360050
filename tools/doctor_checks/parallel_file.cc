#include "tools/doctor_checks/parallel_file.h"

#include <hdf5.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "comm/gathered_text.h"
#include "data/hdf5/handle.h"

namespace plait::doctor {
namespace {

constexpr hsize_t kElementsPerRank = 8192;  // 64 KiB

using data::Handle;

bool UsesMpi() {
  int started = 0;
  MPI_Initialized(&started);
  return started != 0;
}

Handle FileAccess() {
  Handle access(H5Pcreate(H5P_FILE_ACCESS));
  if (UsesMpi()) H5Pset_fapl_mpio(access.id(), MPI_COMM_WORLD, MPI_INFO_NULL);
  return access;
}

Handle CollectiveTransfer() {
  Handle transfer(H5Pcreate(H5P_DATASET_XFER));
  if (UsesMpi()) H5Pset_dxpl_mpio(transfer.id(), H5FD_MPIO_COLLECTIVE);
  return transfer;
}

// The part of `rank` in a data set, and as many elements in memory.
void Select(const Handle& file_space, int rank) {
  const hsize_t start = kElementsPerRank * static_cast<hsize_t>(rank), count = kElementsPerRank;
  H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, &start, nullptr, &count, nullptr);
}

std::vector<std::int64_t> Pattern(int rank) {
  std::vector<std::int64_t> values(kElementsPerRank);
  std::int64_t value = std::int64_t{rank} * 1'000'003;
  for (std::int64_t& element : values) element = value += 7;
  return values;
}

// Collective steps: all ranks stop at the first one that fails on any of them.
class Trial {
 public:
  explicit Trial(const comm::Communicator& world) : world_(world), failures_(world.size()) {}

  // Collective: whether the step succeeded on all ranks.
  bool Went(bool well, const std::string& failure) {
    failures_ = comm::GatherText(world_, well ? "" : failure);
    return std::all_of(failures_.begin(), failures_.end(),
                       [](const std::string& text) { return text.empty(); });
  }
  const std::vector<std::string>& failures() const { return failures_; }  // by rank

 private:
  const comm::Communicator& world_;
  std::vector<std::string> failures_;
};

bool Write(const std::string& path, const comm::Communicator& world, Trial& trial) {
  const Handle access = FileAccess(), transfer = CollectiveTransfer();
  Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()));
  if (!trial.Went(file.ok(), "cannot create a file")) return false;
  const hsize_t all = kElementsPerRank * static_cast<hsize_t>(world.size()), mine = kElementsPerRank;
  Handle file_space(H5Screate_simple(1, &all, nullptr));
  Handle space(H5Screate_simple(1, &mine, nullptr));
  Handle set(H5Dcreate2(file.id(), "values", H5T_NATIVE_INT64, file_space.id(), H5P_DEFAULT, H5P_DEFAULT,
                        H5P_DEFAULT));
  if (!trial.Went(set.ok(), "cannot create a data set")) return false;
  Select(file_space, world.rank());
  const std::vector<std::int64_t> values = Pattern(world.rank());
  const bool written =
      H5Dwrite(set.id(), H5T_NATIVE_INT64, space.id(), file_space.id(), transfer.id(), values.data()) >= 0;
  const bool closed = H5Dclose(set.Release()) >= 0 && H5Fclose(file.Release()) >= 0;
  return trial.Went(written && closed, "cannot write");
}

bool ReadBack(const std::string& path, const comm::Communicator& world, Trial& trial) {
  const Handle access = FileAccess(), transfer = CollectiveTransfer();
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()));
  if (!trial.Went(file.ok(), "cannot open the file again")) return false;
  Handle set(H5Dopen2(file.id(), "values", H5P_DEFAULT));
  if (!trial.Went(set.ok(), "cannot open the data set again")) return false;
  const hsize_t part = kElementsPerRank;
  Handle file_space(H5Dget_space(set.id())), space(H5Screate_simple(1, &part, nullptr));
  const int next = (world.rank() + 1) % world.size();
  Select(file_space, next);
  std::vector<std::int64_t> values(kElementsPerRank);
  const bool read =
      H5Dread(set.id(), H5T_NATIVE_INT64, space.id(), file_space.id(), transfer.id(), values.data()) >= 0;
  const bool closed = H5Dclose(set.Release()) >= 0 && H5Fclose(file.Release()) >= 0;
  if (!trial.Went(read && closed, "cannot read back")) return false;
  return trial.Went(values == Pattern(next), absl::StrCat("reads other values than rank ", next, " wrote"));
}

std::string PathOfTrial(const comm::Communicator& world, const std::string& folder) {
  std::int64_t number = getpid();
  world.Broadcast(comm::BufferOf(absl::MakeSpan(&number, 1)), 0);
  return absl::StrCat(folder, "/.doctor-", number, ".h5");
}

// The folder is checked first: a rank that does not see it would leave the others waiting in a collective H5Fcreate.
void Try(const comm::Communicator& world, const std::string& folder, const std::string& path, Trial& trial) {
  std::error_code error;
  if (!trial.Went(std::filesystem::is_directory(folder, error), "there is no such folder")) return;
  if (!trial.Went(access(folder.c_str(), W_OK | X_OK) == 0, "may not write there")) return;
  if (Write(path, world, trial)) ReadBack(path, world, trial);
}

}  // namespace

Finding CheckParallelFile(const comm::Communicator& world, const std::vector<RankFacts>& ranks,
                          const std::string& folder) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const std::string path = PathOfTrial(world, folder);
  const auto begin = std::chrono::steady_clock::now();
  Trial trial(world);
  Try(world, folder, path, trial);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::error_code ignored;
  if (world.rank() == 0) std::filesystem::remove(path, ignored);
  const std::string fine =
      absl::StrFormat("%d %s wrote one file in %s and read it back in %.2f s", world.size(),
                      world.size() == 1 ? "rank" : "ranks", folder, seconds);
  return Judge("HDF5", fine, ranks, [&](const RankFacts& rank) -> std::optional<Complaint> {
    const std::string& failure = trial.failures()[rank.rank];
    if (failure.empty()) return std::nullopt;
    return Complaint{
        Severity::kError, absl::StrCat(failure, " (", folder, ")"),
        "name a folder with --folder that all ranks may write, on a file system that all hosts share"};
  });
}

}  // namespace plait::doctor
