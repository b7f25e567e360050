// Text that comes token by token and ends before one of some stop texts.
//
//   StopText text({"\\n\\n"});
//   write(text.Add("To be\\n"));   // "To be": the line break may be the beginning of the stop text
//   write(text.Add("\\nThat"));    // "", and text.stopped()
//   write(text.Rest());           // at the end of a text that was not stopped
//
// Local.
#ifndef PLAIT_TOOLS_TEXT_GENERATION_STOP_TEXT_H_
#define PLAIT_TOOLS_TEXT_GENERATION_STOP_TEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace plait::text_generation {

class StopText {
 public:
  // None of them empty.
  explicit StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // What is sure to be in front of a stop text, in whole UTF-8 characters. Nothing once it has stopped.
  std::string Add(absl::string_view bytes);
  // What was held back; empty where it has stopped.
  std::string Rest();
  bool stopped() const { return stopped_; }

 private:
  std::size_t SureBytes() const;

  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace plait::text_generation

#endif  // PLAIT_TOOLS_TEXT_GENERATION_STOP_TEXT_H_
