// Reading and checking the two files of a byte-pair tokenizer.
#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/json_depth.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/checked_array.h"
#include "data/text/byte_pair_tokenizer.h"
#include "data/text/tokenizer_settings.h"
#include "nlohmann/json.hpp"

namespace plait::data {
namespace {

// Largest file; GPT-2's have up to a megabyte.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 28;
constexpr char kEndOfText[] = "<|endoftext|>";

absl::Status Damaged(const std::string& file, const std::string& what) {
  return absl::DataLossError(absl::StrCat(file, ": ", what));
}

// Whether a token may be one that was added beside the merges: "<|endoftext|>", "<pad>", "[MASK]".
bool MayBeSpecial(absl::string_view token) {
  return (absl::StartsWith(token, "<") && absl::EndsWith(token, ">")) ||
         (absl::StartsWith(token, "[") && absl::EndsWith(token, "]"));
}

// Quotes a token for messages, truncated, as a hostile file may have long ones.
std::string Quoted(absl::string_view token) {
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(token.substr(0, 40)), "\"");
}

const absl::flat_hash_map<std::int32_t, char>& BytesOfCharacters() {
  static const auto& bytes = *new absl::flat_hash_map<std::int32_t, char>([] {
    absl::flat_hash_map<std::int32_t, char> made;
    for (int byte = 0; byte < 256; ++byte) made[CharacterOfByte(byte)] = static_cast<char>(byte);
    return made;
  }());
  return bytes;
}

}  // namespace

std::int32_t CharacterOfByte(std::uint8_t byte) {
  const auto printable = [](int b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  if (printable(byte)) return byte;
  std::int32_t others = 0;
  for (int b = 0; b < byte; ++b) others += !printable(b);
  return 0x100 + others;
}

// Fills a tokenizer step by step.
class BytePairReader {
 public:
  BytePairReader(const std::string& vocabulary_name, const std::string& merges_name)
      : vocabulary_name_(vocabulary_name), merges_name_(merges_name), byte_of_(BytesOfCharacters()) {}

  absl::StatusOr<BytePairTokenizer> Read(const std::string& vocabulary, const std::string& merges) {
    PLAIT_RETURN_IF_ERROR(ReadVocabulary(vocabulary));
    PLAIT_RETURN_IF_ERROR(FindBytes());
    PLAIT_RETURN_IF_ERROR(ReadMerges(merges));
    PLAIT_RETURN_IF_ERROR(CheckAllAreMerged());
    for (const std::string& bytes : made_.bytes_of_) Digest<char>({bytes.c_str(), bytes.size() + 1});
    return std::move(made_);
  }

 private:
  template <typename T>
  void Digest(absl::Span<const T> values) {
    made_.digest_ = Crc32(values.data(), std::ssize(values) * std::int64_t{sizeof(T)}, made_.digest_);
  }

  // The bytes of a token; nullopt if one of its characters represents no byte.
  std::optional<std::string> BytesOf(absl::string_view token) const {
    std::string bytes;
    while (!token.empty()) {
      const base::CodePoint point = base::FirstCodePoint(token);
      const auto found = byte_of_.find(point.value);
      if (found == byte_of_.end()) return std::nullopt;
      bytes += found->second;
      token.remove_prefix(point.bytes);
    }
    return bytes;
  }

  absl::Status ReadVocabulary(const std::string& text) {
    // The object is not nested; dump() in the messages below would recurse.
    const nlohmann::json json = base::JsonDepth(text) > 1
                                    ? nlohmann::json()
                                    : nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || json.empty()) {
      return Damaged(vocabulary_name_, absl::StrCat("expected a JSON object of tokens and ids; the file of ",
                                                    text.size(), " bytes is damaged or another one"));
    }
    made_.bytes_of_.resize(json.size());
    merged_.resize(json.size());
    std::vector<bool> taken(json.size());
    for (const auto& [token, value] : json.items()) {
      const std::int64_t id = value.is_number_integer() ? value.get<std::int64_t>() : -1;
      if (id < 0 || id >= static_cast<std::int64_t>(json.size()) || taken[id]) {
        return Damaged(vocabulary_name_,
                       absl::StrCat("token ", Quoted(token), " has id ", value.dump().substr(0, 40),
                                    ", expected each of 0..", json.size() - 1, " once"));
      }
      taken[id] = true;
      PLAIT_RETURN_IF_ERROR(AddToken(token, id));
    }
    return absl::OkStatus();
  }

  absl::Status AddToken(const std::string& token, std::int32_t id) {
    std::optional<std::string> bytes = BytesOf(token);
    if (!bytes)
      return Damaged(vocabulary_name_,
                     absl::StrCat("token ", Quoted(token), " has a character that represents no byte"));
    if (token == kEndOfText) made_.end_of_text_ = id;
    id_of_[*bytes] = id;
    made_.bytes_of_[id] = *std::move(bytes);
    return absl::OkStatus();
  }

  absl::Status FindBytes() {
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = id_of_.find(std::string(1, static_cast<char>(byte)));
      if (found == id_of_.end())
        return Damaged(vocabulary_name_, absl::StrCat("byte ", byte, " has no token"));
      made_.id_of_byte_[byte] = found->second;
    }
    return absl::OkStatus();
  }

  absl::Status ReadMerges(const std::string& text) {
    int number = 0;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number;
      line = absl::StripSuffix(line, "\r");
      if (line.empty() || (number == 1 && absl::StartsWith(line, "#version"))) continue;
      const absl::Status status = AddMerge(line);
      if (!status.ok())
        return Damaged(absl::StrCat(merges_name_, ":", number), std::string(status.message()));
    }
    return absl::OkStatus();
  }

  absl::Status AddMerge(absl::string_view line) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() != 2) {
      return absl::DataLossError(
          absl::StrCat("expected two tokens with a blank between, found ", Quoted(line)));
    }
    std::int32_t ids[3];
    const std::string tokens[] = {words[0], words[1], words[0] + words[1]};
    for (int i = 0; i < 3; ++i) {
      const std::optional<std::string> bytes = BytesOf(tokens[i]);
      const auto found = bytes ? id_of_.find(*bytes) : id_of_.end();
      if (found == id_of_.end()) {
        return absl::DataLossError(
            absl::StrCat("token ", Quoted(tokens[i]), " is not in ", vocabulary_name_));
      }
      ids[i] = found->second;
    }
    Digest<std::int32_t>(ids);
    merged_[ids[2]] = true;
    const std::int32_t rank = made_.merges_.size();
    if (!made_.merges_
             .emplace(BytePairTokenizer::Pair(ids[0], ids[1]), BytePairTokenizer::Merge{rank, ids[2]})
             .second) {
      return absl::DataLossError(absl::StrCat("duplicate merge ", Quoted(line)));
    }
    return absl::OkStatus();
  }

  // With merges cut short, texts would fall apart into smaller tokens than the model knows.
  absl::Status CheckAllAreMerged() const {
    for (std::size_t id = 0; id < merged_.size(); ++id) {
      const std::string& bytes = made_.bytes_of_[id];
      if (bytes.size() < 2 || merged_[id] || MayBeSpecial(bytes)) continue;
      return Damaged(merges_name_,
                     absl::StrCat("no merge makes token ", Quoted(bytes), " of ", vocabulary_name_,
                                  "; the file is cut short or another one's"));
    }
    return absl::OkStatus();
  }

  const std::string vocabulary_name_, merges_name_;
  const absl::flat_hash_map<std::int32_t, char>& byte_of_;
  absl::flat_hash_map<std::string, std::int32_t> id_of_;
  std::vector<bool> merged_;  // by id: whether a merge makes the token
  BytePairTokenizer made_;
};

absl::StatusOr<BytePairTokenizer> BytePairTokenizer::Parse(const std::string& vocabulary,
                                                           const std::string& merges,
                                                           const std::string& vocabulary_name,
                                                           const std::string& merges_name) {
  return BytePairReader(vocabulary_name, merges_name).Read(vocabulary, merges);
}

absl::StatusOr<BytePairTokenizer> BytePairTokenizer::Load(const std::string& folder) {
  constexpr std::pair<const char*, const char*> kNames[] = {{"vocab.json", "merges.txt"},
                                                            {"encoder.json", "vocab.bpe"}};
  for (const auto& [vocabulary_file, merges_file] : kNames) {
    const std::string vocabulary_path = absl::StrCat(folder, "/", vocabulary_file);
    const std::string merges_path = absl::StrCat(folder, "/", merges_file);
    std::error_code ignored;
    if (!std::filesystem::exists(vocabulary_path, ignored)) continue;
    PLAIT_RETURN_IF_ERROR(CheckCutsAsGpt2(absl::StrCat(folder, "/", kPipelineFile)));
    for (const char* key : {"add_prefix_space", "add_bos_token", "add_eos_token"}) {
      PLAIT_RETURN_IF_ERROR(CheckAdds(absl::StrCat(folder, "/", kSettingsFile), key, false));
    }
    PLAIT_ASSIGN_OR_RETURN(const std::string vocabulary, ReadWholeFile(vocabulary_path, kMostBytes));
    PLAIT_ASSIGN_OR_RETURN(const std::string merges, ReadWholeFile(merges_path, kMostBytes));
    return Parse(vocabulary, merges, vocabulary_path, merges_path);
  }
  return absl::NotFoundError(absl::StrCat(
      folder,
      ": neither vocab.json with merges.txt nor encoder.json with vocab.bpe is there; GPT-2's come with any "
      "copy of its model, or take the tokenizer of characters"));
}

}  // namespace plait::data
