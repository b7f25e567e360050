#include "comm/group.h"

#include <utility>

#include "comm/request_check.h"
#include "comm/self_backend.h"

namespace plait::comm {

Group::Group(std::unique_ptr<Backend> backend, std::string name)
    : backend_(std::move(backend)), name_(std::move(name)) {}

void Group::Run(const Request& request, const std::source_location&) {
  CheckRequest(request, backend_->rank(), backend_->size(), backend_->device());
  backend_->Run(request);
}

std::unique_ptr<PendingWork> Group::Start(const Request& request, const std::source_location&) {
  CheckRequest(request, backend_->rank(), backend_->size(), backend_->device());
  return backend_->Start(request);
}

std::shared_ptr<Group> Group::Split(int color, int key, absl::string_view name, const std::source_location&) {
  std::unique_ptr<Backend> part = backend_->Split(color, key);
  if (part == nullptr) part = MakeSelfBackend(backend_->members()[backend_->rank()]);
  return std::make_shared<Group>(std::move(part), std::string(name));
}

}  // namespace plait::comm
