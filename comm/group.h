// The state behind a Communicator, shared by its copies: transport and name. Private to comm.
#ifndef PLAIT_COMM_GROUP_H_
#define PLAIT_COMM_GROUP_H_

#include <memory>
#include <source_location>
#include <string>

#include "absl/strings/string_view.h"
#include "comm/backend.h"

namespace plait::comm {

class Group {
 public:
  Group(std::unique_ptr<Backend> backend, std::string name);

  Backend& backend() const { return *backend_; }
  const std::string& name() const { return name_; }

  void Run(const Request& request, const std::source_location& site);
  std::unique_ptr<PendingWork> Start(const Request& request, const std::source_location& site);
  std::shared_ptr<Group> Split(int color, int key, absl::string_view name, const std::source_location& site);

 private:
  std::unique_ptr<Backend> backend_;
  std::string name_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_GROUP_H_
