// A model of the SentencePiece library, in the standard library's types: the library's header defines absl::string_view
// anew and cannot be included beside Abseil's. Private to data/text.
#ifndef PLAIT_DATA_TEXT_SENTENCE_PIECE_MODEL_H_
#define PLAIT_DATA_TEXT_SENTENCE_PIECE_MODEL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace plait::data {

class SentencePieceModel {
 public:
  // Of the bytes of a model file; none, and why in `error`, where they are damaged.
  static std::unique_ptr<const SentencePieceModel> Parse(const std::string& bytes, std::string& error);
  virtual ~SentencePieceModel() = default;

  virtual int size() const = 0;
  virtual int begin_id() const = 0;  // of the token before a text; negative: none
  virtual std::vector<int> Encode(const std::string& text) const = 0;
  // Bytes that a token stands for, with the space before a word; none for control tokens.
  virtual std::string BytesOf(int id) const = 0;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_SENTENCE_PIECE_MODEL_H_
