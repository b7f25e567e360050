// Texts and vocabularies for tests, the same as make_expected_tokens.py makes.
#ifndef PLAIT_DATA_TEXT_TESTING_TEST_TEXTS_H_
#define PLAIT_DATA_TEXT_TESTING_TEST_TEXTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace plait::data {

// Letters, digits, blanks, marks of many scripts, mixed at random: `picks` of them.
std::string MixedText(int picks = 20000);

// Every character of planes 0 to 2 (surrogates left out), each between a letter, itself and a digit.
std::string EveryCharacter();

// zlib's crc32 of the numbers as 32-bit little-endian integers.
std::uint32_t CrcOf(const std::vector<std::int32_t>& numbers);

// The two files of a byte-pair tokenizer and its merges in order, learned from a text as Sennrich et al.
// (2016) do: the most frequent pair within pieces is merged, again and again.
struct LearnedPairs {
  std::string vocabulary;
  std::string merges;
  std::vector<std::pair<std::string, std::string>> pairs;  // as bytes
};
LearnedPairs LearnPairs(const std::string& text, int merges);

// Slow and plain: cuts into pieces, then for each merge in order joins all its pairs from the left. Gives the
// tokens' bytes.
std::vector<std::string> PlainTokens(const LearnedPairs& learned, const std::string& text);

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_TESTING_TEST_TEXTS_H_
