// Where the parameters of a unit lie in one flat buffer, and which part of it is whose.
//
//   const FlatLayout layout = FlatLayout::Make({{"w", {3, 5}, true}, {"b", {5}, false}}, /*ranks=*/2);
//   layout.count();                 // elements, with padding: a multiple of ranks
//   layout.shard_count();           // of one rank: rank r has [r * shard_count(), (r + 1) * shard_count())
//   layout.Slices(1);               // what rank 1 has of which parameter
//
// Parameters with weight decay come first, the others behind them, in the order given: a shard is then at
// most two pieces for an optimizer. Each begins at a multiple of kAlignment elements, as vector kernels like
// it. Gaps and the end are padding: zero in every buffer, always.
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

  // `count` and `offset` of the parameters given are not read. ranks >= 1.
  static FlatLayout Make(std::vector<FlatParameter> parameters, int ranks);

  // In the order given.
  const std::vector<FlatParameter>& parameters() const { return parameters_; }
  std::int64_t count() const { return shard_count_ * ranks_; }
  std::int64_t shard_count() const { return shard_count_; }
  int ranks() const { return ranks_; }
  // Elements of parameters, without padding.
  std::int64_t parameter_count() const;

  // In order of their place.
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
