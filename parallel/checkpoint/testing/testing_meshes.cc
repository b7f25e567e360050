#include "parallel/checkpoint/testing/testing_meshes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/seed.h"

namespace plait::parallel::testing {
namespace {

using models::Box;

std::int64_t Below(base::RandomStream& draw, std::int64_t bound) {
  return static_cast<std::int64_t>(draw.Below(static_cast<std::uint64_t>(bound)));
}

Box Whole(const TensorSpec& tensor) {
  return {std::vector<std::int64_t>(tensor.shape.size(), 0), tensor.shape};
}

std::int64_t Elements(const Box& box) {
  std::int64_t elements = 1;
  for (const std::int64_t size : box.size) elements *= size;
  return elements;
}

// `box`, cut along a dimension into `parts`, some of which may be empty.
std::vector<Box> Split(const Box& box, std::size_t dimension, int parts, std::uint64_t seed) {
  std::vector<Box> cut;
  for (const Range& range : RandomCuts(box.size[dimension], parts - 1, seed)) {
    cut.push_back(box);
    cut.back().begin[dimension] += range.begin;
    cut.back().size[dimension] = range.end - range.begin;
  }
  return cut;
}

// The boxes of each rank of a random mesh, before they are sharded flat.
std::vector<std::vector<Box>> RandomLocals(const TensorSpec& tensor, base::RandomStream& draw) {
  const std::int64_t kind = Below(draw, 5), dimensions = std::ssize(tensor.shape);
  const Box whole = Whole(tensor);
  if (kind == 0) return {{}};
  if (dimensions == 0) return {{whole}};
  const auto parts = static_cast<int>(1 + Below(draw, 4));
  const std::int64_t dimension = Below(draw, dimensions);
  std::vector<std::vector<Box>> locals(parts);
  if (kind == 1) {  // one dimension
    const std::vector<Box> cut = Split(whole, dimension, parts, draw.Below(1000));
    for (int i = 0; i < parts; ++i) locals[i] = {cut[i]};
  } else if (kind == 2) {  // query, key and value along one dimension
    for (const Box& fused : Split(whole, dimension, 3, draw.Below(1000))) {
      const std::vector<Box> cut = Split(fused, dimension, parts, draw.Below(1000));
      for (int i = 0; i < parts; ++i) locals[i].push_back(cut[i]);
    }
  } else if (kind == 3) {  // two dimensions, or one of them twice
    locals.clear();
    const std::int64_t other = Below(draw, dimensions);
    for (const Box& slab : Split(whole, dimension, parts, draw.Below(1000))) {
      for (const Box& box : Split(slab, other, 2, draw.Below(1000))) locals.push_back({box});
    }
  } else {  // boxes that are split again and again, wherever, and dealt out
    std::vector<Box> boxes = {whole};
    for (int i = 0; i < 7; ++i) {
      const auto at = boxes.begin() + Below(draw, std::ssize(boxes));
      const std::vector<Box> halves = Split(*at, Below(draw, dimensions), 2, draw.Below(1000));
      boxes.erase(at);
      boxes.insert(boxes.end(), halves.begin(), halves.end());
    }
    for (const Box& box : boxes) locals[Below(draw, parts)].push_back(box);
    std::erase(locals, std::vector<Box>());  // which would mean the whole tensor
  }
  return locals;
}

// Number in the tensor of element `number` of the box.
std::int64_t NumberInTensor(const TensorSpec& tensor, const Box& box, std::int64_t number) {
  std::int64_t in_tensor = 0, stride = 1;
  for (std::size_t d = tensor.shape.size(); d-- > 0;) {
    in_tensor += (box.begin[d] + number % box.size[d]) * stride;
    number /= box.size[d];
    stride *= tensor.shape[d];
  }
  return in_tensor;
}

// What the shard has of each box, as ranges of the boxes.
std::vector<std::pair<Box, Range>> RangesOf(const TensorSpec& tensor, const LocalShard& shard) {
  if (shard.boxes.empty()) return {{Whole(tensor), {shard.begin, shard.end}}};
  std::vector<std::pair<Box, Range>> ranges;
  std::int64_t first = 0;
  for (const Box& box : shard.boxes) {
    const std::int64_t end = first + Elements(box);
    const std::int64_t from = std::clamp(shard.begin, first, end), until = std::clamp(shard.end, first, end);
    ranges.push_back({box, {from - first, until - first}});
    first = end;
  }
  return ranges;
}

}  // namespace

std::vector<LocalShard> RandomMesh(const TensorSpec& tensor, std::uint64_t seed) {
  base::RandomStream draw(base::DeriveSeed(seed, PathOf(tensor)));
  std::vector<LocalShard> shards;
  for (const std::vector<Box>& boxes : RandomLocals(tensor, draw)) {
    std::int64_t elements = boxes.empty() ? ElementsOf(tensor) : 0;
    for (const Box& box : boxes) elements += Elements(box);
    const auto cuts = static_cast<int>(Below(draw, 4));
    for (const Range& range : RandomCuts(elements, cuts, draw.Below(1000))) {
      shards.push_back({boxes, range.begin, range.end});
    }
  }
  return shards;
}

std::vector<std::byte> ElementsOf(const TensorSpec& tensor, const LocalShard& shard,
                                  const std::vector<std::byte>& whole) {
  const std::int64_t size = ElementBytes(tensor.dtype);
  std::vector<std::byte> elements;
  for (const auto& [box, range] : RangesOf(tensor, shard)) {
    for (std::int64_t number = range.begin; number < range.end; ++number) {
      const auto from = whole.begin() + NumberInTensor(tensor, box, number) * size;
      elements.insert(elements.end(), from, from + size);
    }
  }
  return elements;
}

OwnedPieces RandomMeshPieces(const std::vector<TensorSpec>& tensors, int ranks, int rank, std::uint64_t seed,
                             int version) {
  OwnedPieces own;
  for (const TensorSpec& tensor : tensors) {
    const std::vector<std::byte> whole = ElementsOf(tensor, 0, ElementsOf(tensor), version);
    base::RandomStream deal(base::DeriveSeed(seed + 1, PathOf(tensor)));
    own.Add(tensor, 0, 0, version);
    for (const LocalShard& shard : RandomMesh(tensor, seed)) {
      if (Below(deal, ranks) != rank) continue;
      const std::byte* values = own.values.emplace_back(ElementsOf(tensor, shard, whole)).data();
      for (const auto& [box, range] : RangesOf(tensor, shard)) {
        own.pieces.push_back({tensor, range.begin, range.end, values, nullptr, box});
        values += own.pieces.back().bytes();
      }
    }
  }
  return own;
}

std::vector<TensorSpec> RandomTensors(int count, std::uint64_t seed) {
  constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf,
                                       at::kLong,  at::kInt,    at::kByte,     at::kBool};
  base::RandomStream draw(base::DeriveSeed(seed, "tensors"));
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < count; ++i) {
    std::vector<std::int64_t> shape(Below(draw, 5));
    for (std::int64_t& size : shape) size = Below(draw, 20) == 0 ? 0 : 1 + Below(draw, 7);
    tensors.push_back({"random", absl::StrCat("tensor.", i), kTypes[Below(draw, 8)], shape});
  }
  return tensors;
}

}  // namespace plait::parallel::testing
