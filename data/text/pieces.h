// GPT-2's pre-tokenization: splits a text into pieces (words, numbers, punctuation, white space) that merges never
// cross.
//
//   while (!text.empty()) {
//     const absl::string_view piece = NextPiece(text);
//     text.remove_prefix(piece.size());
//   }
//
// The pieces are the matches of the pattern of Radford, Wu, Child, Luan, Amodei, Sutskever, "Language Models
// are Unsupervised Multitask Learners", 2019 (their program):
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// by a lexer: linear time, no regular expressions. The pattern is defined on characters only; a byte that is
// not UTF-8 counts as a character that is neither space, letter nor number.
#ifndef PLAIT_DATA_TEXT_PIECES_H_
#define PLAIT_DATA_TEXT_PIECES_H_

#include "absl/strings/string_view.h"

namespace plait::data {

// Returns the first piece of a non-empty text, at least one character. Pass the whole rest of the text, as pieces
// depend on what follows (white space before a word differs from that at the end).
absl::string_view NextPiece(absl::string_view text);

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_PIECES_H_
