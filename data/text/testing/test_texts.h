// Texts and vocabularies for tests, the same as make_expected_tokens.py makes.
#ifndef PLAIT_DATA_TEXT_TESTING_TEST_TEXTS_H_
#define PLAIT_DATA_TEXT_TESTING_TEST_TEXTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace plait::data {

// A random mix of `picks` letters, digits, spaces and marks of many scripts.
std::string MixedText(int picks = 20000);

// "aCC1 " for every code point C below U+32000 except surrogates.
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

// Reference implementation: splits into pieces, then applies each merge in order, from left to right. Returns the
// bytes of each token.
std::vector<std::string> PlainTokens(const LearnedPairs& learned, const std::string& text);

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_TESTING_TEST_TEXTS_H_
