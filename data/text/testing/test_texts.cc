#include "data/text/testing/test_texts.h"

#include <zlib.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "base/seed.h"
#include "base/text.h"
#include "data/text/byte_pair_tokenizer.h"
#include "data/text/pieces.h"
#include "nlohmann/json.hpp"

namespace plait::data {
namespace {

using Pair = std::pair<std::string, std::string>;

std::string AsPrintable(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) base::AppendUtf8(CharacterOfByte(static_cast<std::uint8_t>(byte)), text);
  return text;
}

std::vector<std::string> Bytes(absl::string_view piece) {
  std::vector<std::string> bytes;
  for (const char byte : piece) bytes.emplace_back(1, byte);
  return bytes;
}

std::vector<std::vector<std::string>> PiecesAsBytes(absl::string_view text) {
  std::vector<std::vector<std::string>> pieces;
  while (!text.empty()) {
    pieces.push_back(Bytes(NextPiece(text)));
    text.remove_prefix(pieces.back().size());
  }
  return pieces;
}

void Join(std::vector<std::string>& tokens, const Pair& pair) {
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i] != pair.first || tokens[i + 1] != pair.second) continue;
    tokens[i] += tokens[i + 1];
    tokens.erase(tokens.begin() + i + 1);
  }
}

Pair MostFrequent(const std::vector<std::vector<std::string>>& pieces) {
  std::map<Pair, int> counts;
  for (const auto& piece : pieces) {
    for (std::size_t i = 0; i + 1 < piece.size(); ++i) ++counts[{piece[i], piece[i + 1]}];
  }
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  return std::max_element(counts.begin(), counts.end(), fewer)->first;
}

}  // namespace

std::string MixedText(int picks) {
  const std::vector<std::string> alphabet = {"a",         "B",
                                             "s",         "t",
                                             "re",        "ll",
                                             "é",         "Ж",
                                             "中",        "ʰ",
                                             "1",         "7",
                                             "٣",         "½",
                                             "Ⅷ",         " ",
                                             " ",         " ",
                                             "  ",        "\n",
                                             "\t",        "\r\n",
                                             "\u00a0",    "\u2003",
                                             "\u3000",    "\u0085",
                                             "'",         "'",
                                             "'s",        "'ve",
                                             "-",         "...",
                                             "_",         "🙂",
                                             "\u0301",    "\u200b",
                                             "\ufffd",    std::string(1, '\0'),
                                             "\x1c",      "the",
                                             "ing",       "\U00010400",
                                             "\U000f0000"};
  base::RandomStream numbers(7);
  std::string text;
  for (int i = 0; i < picks; ++i) text += alphabet[numbers() % alphabet.size()];
  return text;
}

std::string EveryCharacter() {
  std::string text;
  for (std::int32_t c = 0; c < 0x32000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    text += 'a';
    base::AppendUtf8(c, text);
    base::AppendUtf8(c, text);
    text += "1 ";
  }
  return text;
}

std::uint32_t CrcOf(const std::vector<std::int32_t>& numbers) {
  return crc32_z(0, reinterpret_cast<const Bytef*>(numbers.data()), numbers.size() * sizeof(numbers[0]));
}

LearnedPairs LearnPairs(const std::string& text, int merges) {
  LearnedPairs learned;
  nlohmann::json vocabulary;
  for (int byte = 0; byte < 256; ++byte)
    vocabulary[AsPrintable(std::string(1, static_cast<char>(byte)))] = byte;
  learned.merges = "#version: 0.2\n";
  auto pieces = PiecesAsBytes(text);
  for (int merge = 0; merge < merges; ++merge) {
    const Pair best = MostFrequent(pieces);
    for (auto& piece : pieces) Join(piece, best);
    learned.pairs.push_back(best);
    vocabulary[AsPrintable(best.first + best.second)] = 256 + merge;
    absl::StrAppend(&learned.merges, AsPrintable(best.first), " ", AsPrintable(best.second), "\n");
  }
  learned.vocabulary = vocabulary.dump();
  return learned;
}

std::vector<std::string> PlainTokens(const LearnedPairs& learned, const std::string& text) {
  std::vector<std::string> tokens;
  for (auto& piece : PiecesAsBytes(text)) {
    for (const Pair& pair : learned.pairs) Join(piece, pair);
    tokens.insert(tokens.end(), piece.begin(), piece.end());
  }
  return tokens;
}

}  // namespace plait::data
