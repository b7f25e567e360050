#include "tools/report_parts/page_server.h"

#include <httplib.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace plait::report {
namespace {

constexpr char kHost[] = "127.0.0.1";
constexpr int kThreads = 32, kSilentSeconds = 1;
constexpr int kForbidden = 403, kMethodNotAllowed = 405, kNotModified = 304, kRangeNotSatisfiable = 416;
constexpr int kHttpPort = 80;

void Refuse(int status, const std::string& why, httplib::Response& response) {
  response.status = status;
  response.set_content(why, "text/plain; charset=utf-8");
}

// Threads that take the newest connection first. A silent one holds a thread until it is given up; a request that comes
// behind any number of them waits for the first thread that gives up, not for all.
class NewestFirst : public httplib::TaskQueue {
 public:
  explicit NewestFirst(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }

  void enqueue(std::function<void()> task) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  }

  void shutdown() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void Work() {
    for (std::function<void()> task; (task = Next()) != nullptr;) task();
  }

  // nullptr at the end.
  std::function<void()> Next() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
    if (tasks_.empty()) return nullptr;
    std::function<void()> task = std::move(tasks_.back());
    tasks_.pop_back();
    return task;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> tasks_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

bool IsOwnHost(absl::string_view host, int port) {
  if (!absl::ConsumeSuffix(&host, absl::StrCat(":", port)) && port != kHttpPort) return false;
  return host == kHost || host == "localhost";
}

absl::Status ServePage(int port, const std::function<ServedPage()>& page,
                       const std::function<void(const std::string&)>& ready) {
  httplib::Server server;
  // The library would set SO_REUSEPORT: a second server on this port would get part of its requests.
  socket_t listening = INVALID_SOCKET;
  server.set_socket_options([&](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    listening = socket;
  });
  server.set_payload_max_length(0);
  server.new_task_queue = [] { return new NewestFirst(kThreads); };
  // A connection that is kept takes a thread; a browser opens some without a request.
  server.set_keep_alive_max_count(1);
  server.set_keep_alive_timeout(kSilentSeconds);
  server.set_read_timeout(kSilentSeconds);
  const bool bound =
      port == 0 ? (port = server.bind_to_any_port(kHost)) > 0 : server.bind_to_port(kHost, port);
  if (!bound) {
    return absl::UnavailableError(
        absl::StrCat("port ", port, " of ", kHost,
                     " is taken or not allowed: choose another, or --port=0 for a free one"));
  }
  // Five may wait to be accepted, says the library; further ones would try again after a second.
  listen(listening, SOMAXCONN);
  const std::string authority = absl::StrCat(kHost, ":", port);
  server.set_pre_routing_handler([&](const httplib::Request& request, httplib::Response& response) {
    if (absl::StrContains(request.get_header_value("Range"), ',')) {
      // The library would answer with as many copies of the page as the request has ranges, and with as many of a
      // refusal's text.
      response.status = kRangeNotSatisfiable;
    } else if (!IsOwnHost(request.get_header_value("Host"), port)) {
      Refuse(kForbidden, absl::StrCat("expected the host ", authority, "\n"), response);
    } else if (request.method != "GET") {
      Refuse(kMethodNotAllowed, "expected GET\n", response);
    } else {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    return httplib::Server::HandlerResponse::Handled;
  });
  std::mutex one_at_a_time;
  server.Get("/", [&](const httplib::Request& request, httplib::Response& response) {
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    const ServedPage served = page();
    const std::string tag = absl::StrCat("\"", served.version, "\"");
    response.set_header("ETag", tag);
    response.set_header("Cache-Control", "no-cache");
    response.set_header("X-Content-Type-Options", "nosniff");
    if (request.get_header_value("If-None-Match") == tag) {
      response.status = kNotModified;
    } else {
      response.set_content(served.html, "text/html; charset=utf-8");
    }
  });
  ready(absl::StrCat("http://", authority, "/"));
  server.listen_after_bind();
  return absl::UnavailableError("the server has ended");
}

}  // namespace plait::report
