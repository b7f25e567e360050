// index.h5: the contents of a checkpoint and where they are stored, and every tensor whole for other programs.
//
// File: /GROUP/NAME, each tensor at its own shape (virtual_tensor.h); /plait/contents, the UTF-8 text of one
// JSON object
//   {"step": 100, "ranks": 2, "chunk_bytes": 1048576,
//    "tensors": [{"group": "model", "name": "x", "dtype": "float32", "shape": [3, 4]}, ...],
//    "shards": [{"file": "rank-00000.h5", "bytes": 5120, "checksums_crc32": 305419896}, ...],
//    "texts": {"config": "..."}, "integers": {"sampler.position": 7}}
// (uint8) and /plait/pieces, int64 (pieces, 4): index of the tensor, rank, begin, end; each with attribute
// crc32. Root attributes: format = "plait checkpoint", format_version, step. Since version 3 a table of the arrays'
// offsets is appended (data/hdf5/address_table.h); the file is read with it.
//
// Since format version 2 /plait/pieces has a fifth column: the index in /plait/boxes (int64, with crc32; version 3:
// only if there are boxes) of the piece's box, its begins and then its sizes, one per dimension of the tensor; -1: the
// piece is a range of the whole tensor.
#ifndef PLAIT_PARALLEL_CHECKPOINT_INDEX_FILE_H_
#define PLAIT_PARALLEL_CHECKPOINT_INDEX_FILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/hdf5/addressed_file.h"
#include "parallel/checkpoint/layout.h"
#include "parallel/checkpoint/shard_file.h"

namespace plait::parallel {

inline constexpr char kIndexFile[] = "index.h5";
inline constexpr char kIndexFormat[] = "plait checkpoint";

struct CheckpointIndex {
  Layout layout;
  std::int64_t chunk_bytes = kChunkBytes;
  std::vector<ShardSummary> shards;  // by rank
  std::map<std::string, std::string> texts;
  std::map<std::string, std::int64_t> integers;
};

// /plait/pieces, rows of `columns` numbers, and /plait/boxes. Version 1 has four columns and no boxes.
struct PieceTables {
  std::int64_t columns = 5;
  std::vector<std::int64_t> pieces, boxes;
};

// INVALID_ARGUMENT if a text or name is not UTF-8; else errors as data::File's. Local.
absl::Status WriteIndex(const std::string& path, const CheckpointIndex& index);

// Parses /plait/contents and the tables without trusting them: all numbers are checked for consistency, and pieces
// against the recorded sizes of their files. DATA_LOSS, without a path. Local.
absl::StatusOr<CheckpointIndex> ParseIndex(const std::string& contents, const PieceTables& tables);

// DATA_LOSS if a file of version 3 has lost its address table.
absl::Status CheckHasTable(const data::AddressedFile& file);

// Reads all versions. DATA_LOSS, saying what to do, if the file is not an index, is damaged, or has an unsupported
// format version; NOT_FOUND and PERMISSION_DENIED as data::AddressedFile::Open. Local.
absl::StatusOr<CheckpointIndex> ReadIndex(const std::string& path);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_INDEX_FILE_H_
