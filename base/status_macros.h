// Error propagation for functions that return absl::Status or absl::StatusOr<T>.
//
//   absl::StatusOr<Windows> ReadWindows(const std::string& folder) {
//     PLAIT_ASSIGN_OR_RETURN(const std::vector<int> labels, ReadLabels(folder + "/y_train.txt"));
//     PLAIT_RETURN_IF_ERROR(CheckLabels(labels));
//     ...
//
// An error message says on one line what failed, where, what was expected and what to do. Prefixed() adds where:
//
//   PLAIT_RETURN_IF_ERROR(Prefixed(ParseLine(line), path));     // "y_train.txt: expected a number"
//
// The left-hand side must not contain a comma outside parentheses, as in a structured binding or std::map<K, V>.
#ifndef PLAIT_BASE_STATUS_MACROS_H_
#define PLAIT_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace plait::base {

// The same code, "prefix: message". An OK status stays as it is.
inline absl::Status Prefixed(const absl::Status& status, absl::string_view prefix) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(prefix, ": ", status.message()));
}

namespace internal {

inline absl::Status StatusOf(absl::Status status) { return status; }

template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace internal
}  // namespace plait::base

#define PLAIT_INTERNAL_JOIN2(a, b) a##b
#define PLAIT_INTERNAL_JOIN(a, b) PLAIT_INTERNAL_JOIN2(a, b)

// Returns the error of a Status or StatusOr expression from the enclosing function.
#define PLAIT_RETURN_IF_ERROR(expression)                                                              \
  do {                                                                                                 \
    if (absl::Status plait_status = ::plait::base::internal::StatusOf(expression); !plait_status.ok()) \
      return plait_status;                                                                             \
  } while (false)

// Declares or assigns `lhs` from a StatusOr expression, or returns its error. Expands to several statements: needs
// braces after `if`.
#define PLAIT_ASSIGN_OR_RETURN(lhs, expression) \
  PLAIT_INTERNAL_ASSIGN_OR_RETURN(PLAIT_INTERNAL_JOIN(plait_result_, __LINE__), lhs, expression)

#define PLAIT_INTERNAL_ASSIGN_OR_RETURN(result, lhs, expression) \
  auto result = (expression);                                    \
  if (!result.ok()) return result.status();                      \
  lhs = *std::move(result)

#endif  // PLAIT_BASE_STATUS_MACROS_H_
