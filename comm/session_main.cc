#include "comm/session_main.h"

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "base/terminal.h"
#include "comm/flight_recorder.h"
#include "comm/watchdog/verdict.h"

namespace plait::comm {
namespace {

// As other programs of the system do: "train_gru: cannot read ...".
void PrintError(const char* program, const absl::Status& status) {
  const std::string path = program;
  std::fflush(stdout);
  base::WriteError(path.substr(path.rfind('/') + 1) + ": " + std::string(status.message()));
}

// A separate group, so that the agreement cannot be matched with a collective of ranks that are still in the program.
absl::Status RunAndAgree(Session& session, const std::function<absl::Status(Session&)>& program) {
  const Communicator verdict = session.world().Split(0, session.world().rank(), kVerdictGroup);
  const absl::Status mine = program(session);
  const PhaseScope phase(session.world(), mine.ok() ? "end of main" : "end of main with " + mine.ToString());
  return verdict.Agree(mine);
}

}  // namespace

int RunMain(int argc, char** argv, const SessionOptions& options,
            const std::function<absl::Status(Session&)>& program) {
  absl::StatusOr<Session> session = Session::Start(&argc, &argv, options);
  if (!session.ok()) {
    PrintError(argv[0], session.status());
    return 1;
  }
  try {
    const absl::Status status = RunAndAgree(*session, program);
    if (!status.ok() && session->world().rank() == 0) PrintError(argv[0], status);
    session->Finish();
    return status.ok() ? 0 : 1;
  } catch (const std::bad_alloc&) {
    session->Fail("out of memory (std::bad_alloc); choose smaller sizes, or more hosts");
  } catch (const std::exception& error) {
    // Text of several lines (a stack trace of LibTorch) would hide which rank it was.
    const std::string text = error.what();
    session->Fail(text.substr(0, text.find('\n')));
  } catch (...) {
    session->Fail("an exception not derived from std::exception");
  }
}

}  // namespace plait::comm
