// A tokenized text in one HDF5 file, written once and read independently by every rank.
//
//   PLAIT_ASSIGN_OR_RETURN(const TextInput input, ReadText(path));
//   PLAIT_ASSIGN_OR_RETURN(const PreparedText made, TokenizeCharacters(input));
//   PLAIT_RETURN_IF_ERROR(WritePreparedText(file, made, key));                  // one process
//   PLAIT_ASSIGN_OR_RETURN(const PreparedText text, ReadPreparedText(file));  // every rank
//
// The first nine tenths of the characters (rounded down) are for training, the rest for validation, as in
// nanoGPT (Karpathy 2022); each part is tokenized by itself.
//
//   /train, /validation   uint16 (tokens)       attribute crc32: zlib's, of the bytes, little-endian
//   /code_points          int32 (characters)    code points of ids 0, 1, ...; tokenizer "characters" only
//   root attributes: format = "plait text", format_version = 1, source (human-readable), tokenizer (its name),
//   vocabulary_size, tokenizer_digest, characters (of the whole text), key (identifies the input)
//
// HDF5 rather than a folder of raw files as nanoGPT's: one file is written atomically, contains its vocabulary
// and checksums, and can be read with h5py; the arrays are as compact (2 bytes per token).
#ifndef PLAIT_DATA_TEXT_PREPARED_TEXT_H_
#define PLAIT_DATA_TEXT_PREPARED_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/text/text_files.h"
#include "data/text/tokenizer.h"

namespace plait::data {

struct PreparedText {
  std::vector<std::uint16_t> train, validation;
  std::string source;
  std::string tokenizer;  // Tokenizer::name()
  std::int32_t vocabulary_size = 0;
  std::uint32_t tokenizer_digest = 0;
  std::int64_t characters = 0;            // number of code points; a byte that is not UTF-8 counts as one
  std::vector<std::int32_t> code_points;  // of a CharacterTokenizer; else empty

  // "1,115,394 characters; vocabulary 65 (characters); 1,003,854 tokens for training, 111,540 for validation"
  std::string Summary() const;
};

// Splits and tokenizes a text. Errors of the tokenizer; InvalidArgument if the text is too short for both parts, or
// the vocabulary has more than 65,536 tokens. Local.
absl::StatusOr<PreparedText> Tokenize(const TextInput& input, const Tokenizer& tokenizer);
// The same with a CharacterTokenizer of the text's own characters.
absl::StatusOr<PreparedText> TokenizeCharacters(const TextInput& input);

// Identifies text and tokenizer by length and checksums. `tokenizer_digest` is Tokenizer::digest(), or 0 for the
// characters of the text itself.
std::string PreparedTextKey(const std::string& text, std::uint32_t tokenizer_digest);

// Atomic. Errors of WriteAtomically.
absl::Status WritePreparedText(const std::string& path, const PreparedText& text, const std::string& key);

// NotFound; DataLoss, one line, if the file is not HDF5, is truncated, has another format or version, lacks a
// part, or has a token outside the vocabulary or a wrong checksum.
absl::StatusOr<PreparedText> ReadPreparedText(const std::string& path);
absl::StatusOr<std::string> ReadPreparedTextKey(const std::string& path);

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_PREPARED_TEXT_H_
