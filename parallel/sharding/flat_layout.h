// Where the parameters of a unit are in a flat buffer, and which part of it each rank has.
//
//   const FlatLayout layout = FlatLayout::Make({{"w", {3, 5}, true}, {"b", {5}, false}}, /*ranks=*/2);
//   layout.count();                 // elements, with padding: a multiple of ranks
//   layout.shard_count();           // per rank: rank r has [r * shard_count(), (r + 1) * shard_count())
//   layout.Slices(1);               // the parts of parameters in rank 1's shard
//
// Parameters with weight decay come first, then the others, each in the order given: an optimizer then updates a shard
// in at most two pieces. Each begins at a multiple of kAlignment elements, for vectorized kernels. Gaps and the end are
// padding, which is always zero.
#ifndef PLAIT_PARALLEL_SHARDING_FLAT_LAYOUT_H_
#define PLAIT_PARALLEL_SHARDING_FLAT_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace plait::parallel {

struct FlatParameter {
  std::string name;
  std::vector<std::int64_t> shape;
  bool decays = true;
  std::int64_t count = 0;   // elements
  std::int64_t offset = 0;  // in the flat buffer
};

// The part of a parameter that lies in one shard.
struct FlatSlice {
  std::size_t parameter = 0;  // index into parameters()
  std::int64_t begin = 0;     // of the parameter's elements, row-major: [begin, end)
  std::int64_t end = 0;
  std::int64_t shard_offset = 0;  // where it begins in the shard
};

class FlatLayout {
 public:
  static constexpr std::int64_t kAlignment = 16;

  // Sets `count` and `offset` of the parameters. ranks >= 1.
  static FlatLayout Make(std::vector<FlatParameter> parameters, int ranks);

  // In the order given.
  const std::vector<FlatParameter>& parameters() const { return parameters_; }
  std::int64_t count() const { return shard_count_ * ranks_; }
  std::int64_t shard_count() const { return shard_count_; }
  int ranks() const { return ranks_; }
  // Elements of parameters, without padding.
  std::int64_t parameter_count() const;

  // By ascending offset in the shard.
  std::vector<FlatSlice> Slices(int rank) const;
  // Elements of rank's shard that belong to parameters with decay (or to padding among them): [0, this).
  std::int64_t DecayedCount(int rank) const;

 private:
  std::vector<FlatParameter> parameters_;
  std::vector<std::size_t> order_;  // by place
  std::int64_t decayed_end_ = 0;
  std::int64_t shard_count_ = 0;
  int ranks_ = 1;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_FLAT_LAYOUT_H_
