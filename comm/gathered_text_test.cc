// GatherText, BroadcastText, RankRanges and ByteReader.
#include "comm/gathered_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "comm/byte_stream.h"
#include "comm/testing/world.h"

namespace plait::comm {
namespace {

using testing::World;

TEST(GatherText, KeepsLengthsAndBytes) {
  const std::string mine(World().rank() * 3, static_cast<char>('a' + World().rank()));
  const std::vector<std::string> all = GatherText(World(), mine);
  ASSERT_EQ(all.size(), static_cast<std::size_t>(World().size()));
  for (int rank = 0; rank < World().size(); ++rank) {
    EXPECT_EQ(all[rank], std::string(rank * 3, static_cast<char>('a' + rank)));
  }
  EXPECT_EQ(GatherText(World(), ""), std::vector<std::string>(World().size()));
}

TEST(RankRanges, JoinsNeighbours) {
  EXPECT_EQ(RankRanges({0, 1, 2, 7}), "0-2,7");
  EXPECT_EQ(RankRanges({3}), "3");
  EXPECT_EQ(RankRanges({0, 2, 4, 6}, 2), "0,2 and 2 more");
}

TEST(BroadcastText, IsTheRootsWithAllItsBytes) {
  const std::string mine(5 * World().rank(), static_cast<char>(World().rank()));  // rank 0's is empty
  for (int root = 0; root < World().size(); ++root) {
    EXPECT_EQ(BroadcastText(World(), mine, root), std::string(5 * root, static_cast<char>(root)));
  }
}

TEST(ByteStream, ReadsBackWhatWasWritten) {
  const std::vector<std::int64_t> numbers = {-1, 0, std::int64_t{1} << 62};
  ByteWriter writer;
  writer.Write(2.5);
  writer.WriteText(std::string("a\0b", 3));
  writer.WriteNumbers(numbers);
  const std::string bytes = writer.Take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.Read<double>(), 2.5);
  EXPECT_EQ(reader.ReadText(), std::string("a\0b", 3));
  EXPECT_EQ(reader.ReadNumbers<std::int64_t>(), numbers);
  EXPECT_TRUE(reader.ok() && reader.at_end());
}

// A count that exceeds the remaining bytes must be rejected: the other end may be another program.
TEST(ByteStream, CutShortIsNotOk) {
  ByteWriter writer;
  writer.WriteNumbers(std::vector<std::int64_t>{1, 2, 3});
  const std::string bytes = writer.Take();
  ByteReader reader(absl::string_view(bytes).substr(0, bytes.size() - 1));
  reader.ReadNumbers<std::int64_t>();
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace plait::comm
