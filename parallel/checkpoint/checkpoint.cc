#include "parallel/checkpoint/checkpoint.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "data/hdf5/addressed_file.h"
#include "parallel/checkpoint/index_file.h"
#include "parallel/checkpoint/shard_reader.h"

namespace plait::parallel {
namespace {

namespace fs = std::filesystem;

absl::Status CheckShards(const std::string& folder, const CheckpointIndex& index) {
  for (int rank = 0; rank < index.layout.ranks; ++rank) {
    const std::string path = absl::StrCat(folder, "/", ShardFileName(rank));
    std::error_code missing;
    const std::uintmax_t bytes = fs::file_size(path, missing);
    if (missing) {
      return absl::NotFoundError(absl::StrCat(path, ": ", missing.message(), "; the checkpoint consists of ",
                                              index.layout.ranks, " such files"));
    }
    if (static_cast<std::int64_t>(bytes) != index.shards[rank].bytes) {
      return absl::DataLossError(absl::StrCat(path, ": has ", bytes, " bytes, expected ",
                                              index.shards[rank].bytes,
                                              ": truncated, or from another checkpoint"));
    }
  }
  return absl::OkStatus();
}

// "a; b; c and 4 more"
std::string FirstOf(const std::vector<std::string>& findings) {
  constexpr std::size_t kShown = 3;
  if (findings.size() <= kShown) return absl::StrJoin(findings, "; ");
  return absl::StrCat(absl::StrJoin(findings.begin(), findings.begin() + kShown, "; "), " and ",
                      findings.size() - kShown, " more");
}

}  // namespace

Checkpoint::Checkpoint(std::string folder, std::unique_ptr<CheckpointIndex> index)
    : folder_(std::move(folder)), index_(std::move(index)), readers_(index_->layout.ranks) {
  for (std::size_t t = 0; t < tensors().size(); ++t) by_path_.emplace(PathOf(tensors()[t]), t);
}

Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kIndexFile);
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat(path, ": cannot be opened"));
    return absl::NotFoundError(absl::StrCat(folder, ": no complete checkpoint: it has no ", kIndexFile));
  }
  PLAIT_ASSIGN_OR_RETURN(CheckpointIndex index, ReadIndex(path));
  PLAIT_RETURN_IF_ERROR(CheckShards(folder, index));
  return Checkpoint(folder, std::make_unique<CheckpointIndex>(std::move(index)));
}

std::int64_t Checkpoint::step() const { return index_->layout.step; }
int Checkpoint::ranks() const { return index_->layout.ranks; }
const std::vector<TensorSpec>& Checkpoint::tensors() const { return index_->layout.tensors; }
const std::map<std::string, std::string>& Checkpoint::texts() const { return index_->texts; }
const std::map<std::string, std::int64_t>& Checkpoint::integers() const { return index_->integers; }

const TensorSpec* Checkpoint::Find(const std::string& path) const {
  const auto found = by_path_.find(path);
  return found == by_path_.end() ? nullptr : &tensors()[found->second];
}

Checkpoint::Totals Checkpoint::TotalsOf(const std::string& group) const {
  Totals totals;
  for (const TensorSpec& tensor : tensors()) {
    if (tensor.group != group) continue;
    ++totals.tensors;
    totals.elements += ElementsOf(tensor);
  }
  return totals;
}

absl::StatusOr<std::string> Checkpoint::Text(const std::string& name) const {
  const auto found = index_->texts.find(name);
  if (found != index_->texts.end()) return found->second;
  return absl::NotFoundError(absl::StrCat(folder_, ": no text named ", name));
}

absl::StatusOr<std::int64_t> Checkpoint::Integer(const std::string& name) const {
  const auto found = index_->integers.find(name);
  if (found != index_->integers.end()) return found->second;
  return absl::NotFoundError(absl::StrCat(folder_, ": no integer named ", name));
}

absl::StatusOr<double> Checkpoint::Number(const std::string& name) const {
  PLAIT_ASSIGN_OR_RETURN(const std::string text, Text(name));
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0') return number;
  return absl::DataLossError(absl::StrCat(folder_, ": ", name, "=", text, " is no number"));
}

absl::StatusOr<ShardReader*> Checkpoint::ReaderOf(int rank) {
  if (rank < 0 || rank >= ranks()) {
    return absl::NotFoundError(absl::StrCat(folder_, ": rank ", rank, " of ", ranks()));
  }
  if (readers_[rank] == nullptr) {
    // The number of open files is limited: close all when there are too many.
    constexpr std::ptrdiff_t kOpenFiles = 32;
    if (std::ssize(readers_) - std::count(readers_.begin(), readers_.end(), nullptr) >= kOpenFiles) {
      for (std::unique_ptr<ShardReader>& reader : readers_) reader.reset();
    }
    PLAIT_ASSIGN_OR_RETURN(ShardReader reader, ShardReader::Open(folder_, *index_, rank));
    readers_[rank] = std::make_unique<ShardReader>(std::move(reader));
  }
  return readers_[rank].get();
}

absl::StatusOr<std::string> Checkpoint::RankState(int rank, const std::string& name) {
  PLAIT_ASSIGN_OR_RETURN(ShardReader * reader, ReaderOf(rank));
  return reader->RankState(name);
}

absl::Status Checkpoint::CheckTensors(absl::Span<const TensorSpec> expected) const {
  std::vector<std::string> findings;
  std::set<std::string> paths, groups;
  for (const TensorSpec& tensor : expected) {
    const std::string path = PathOf(tensor);
    paths.insert(path);
    groups.insert(tensor.group);
    const auto found = by_path_.find(path);
    if (found == by_path_.end()) {
      findings.push_back(absl::StrCat("it has no ", path));
    } else if (!(tensors()[found->second] == tensor)) {
      findings.push_back(absl::StrCat(path, " is ", TypeAndShapeOf(tensors()[found->second]), " there and ",
                                      TypeAndShapeOf(tensor), " here"));
    }
  }
  for (const TensorSpec& tensor : tensors()) {
    if (groups.count(tensor.group) > 0 && paths.count(PathOf(tensor)) == 0) {
      findings.push_back(absl::StrCat(PathOf(tensor), " is not part of this model"));
    }
  }
  if (findings.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(folder_, ": checkpoint of another architecture: ", FirstOf(findings)));
}

absl::Status Checkpoint::Read(const std::string& path, std::int64_t begin, std::int64_t end,
                              absl::Span<std::byte> to, const models::Box& box) {
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return absl::NotFoundError(absl::StrCat(folder_, ": no tensor named ", path));
  const TensorSpec& tensor = tensors()[found->second];
  const std::int64_t element = ElementBytes(tensor.dtype);
  const bool is_whole = box == models::Box();
  if ((!is_whole && !IsInside(box, tensor.shape)) || begin < 0 || begin > end ||
      end > ElementsOf(is_whole ? tensor.shape : box.size) || std::ssize(to) != (end - begin) * element) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder_, ": ", path, ": elements [", begin, ", ", end, ")", is_whole ? "" : " of box ",
        is_whole ? "" : TextOf(box), " of ", TypeAndShapeOf(tensor), " into ", to.size(), " bytes"));
  }
  const BoxRange wanted = Normalized(tensor.shape, {box, begin, end});
  for (const LayoutPiece& piece : index_->layout.PiecesOfTensor(static_cast<std::int64_t>(found->second))) {
    const std::size_t number = &piece - index_->layout.pieces.data();
    PLAIT_RETURN_IF_ERROR(ForEachSharedRun(
        wanted, piece.range,
        [&](std::int64_t in_wanted, std::int64_t in_piece, std::int64_t count) -> absl::Status {
          PLAIT_ASSIGN_OR_RETURN(ShardReader * reader, ReaderOf(static_cast<int>(piece.rank)));
          return reader->Read(number, in_piece, in_piece + count,
                              to.data() + (in_wanted - wanted.begin) * element);
        }));
  }
  return absl::OkStatus();
}

absl::Status Checkpoint::VerifyRank(int rank, std::vector<std::byte>& buffer) {
  PLAIT_ASSIGN_OR_RETURN(ShardReader * reader, ReaderOf(rank));
  PLAIT_RETURN_IF_ERROR(reader->CheckStructure());
  for (const std::string& name : reader->RankStateNames())
    PLAIT_RETURN_IF_ERROR(reader->RankState(name).status());
  for (std::size_t p = 0; p < index_->layout.pieces.size(); ++p) {
    const LayoutPiece& piece = index_->layout.pieces[p];
    if (piece.rank != rank) continue;
    const std::int64_t step = index_->chunk_bytes / ElementBytes(index_->layout.tensors[piece.tensor].dtype);
    for (std::int64_t from = piece.range.begin; from < piece.range.end; from += step) {
      PLAIT_RETURN_IF_ERROR(reader->Read(p, from, std::min(from + step, piece.range.end), buffer.data()));
    }
  }
  return absl::OkStatus();
}

absl::Status Checkpoint::Verify() {
  PLAIT_ASSIGN_OR_RETURN(const data::AddressedFile file,
                         data::AddressedFile::Open(absl::StrCat(folder_, "/", kIndexFile)));
  PLAIT_RETURN_IF_ERROR(file.CheckStructure());
  std::vector<std::byte> buffer(index_->chunk_bytes);
  for (int rank = 0; rank < ranks(); ++rank) PLAIT_RETURN_IF_ERROR(VerifyRank(rank, buffer));
  return absl::OkStatus();
}

}  // namespace plait::parallel
