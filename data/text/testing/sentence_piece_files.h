// A small SentencePiece model, trained by the library itself.
#ifndef PLAIT_DATA_TEXT_TESTING_SENTENCE_PIECE_FILES_H_
#define PLAIT_DATA_TEXT_TESTING_SENTENCE_PIECE_FILES_H_

#include <string>
#include <vector>

namespace plait::data::testing {

inline constexpr int kSentencePieces = 300;

// folder/tokenizer.model: byte pairs with the 256 bytes, as Llama's. Ends the process where that fails.
void WriteSentencePieceModel(const std::string& folder);
std::vector<int> IdsByLibrary(const std::string& folder, const std::string& text);

}  // namespace plait::data::testing

#endif  // PLAIT_DATA_TEXT_TESTING_SENTENCE_PIECE_FILES_H_
