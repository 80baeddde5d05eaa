// The program `laneshift`: runs one verb, converts errors into one line and an exit code, and checks that the output
// was written completely.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "tools/command_line.h"
#include "tools/error_json.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/terminal.h"

namespace {

// What a program that reads standard output has not got must not look like success.
int Finish(int exit_code) {
  const bool failed_before = std::ferror(stdout) != 0;
  // Also when closing: some file systems report only then that earlier writes failed. A closed standard output is not a
  // failure.
  const bool failed = std::fflush(stdout) != 0 || (std::fclose(stdout) != 0 && errno != EBADF);
  if (!failed && !failed_before) return exit_code;
  laneshift::tools::Tell("error", failed ? std::string("standard output cannot be written: ") + std::strerror(errno)
                                         : std::string("standard output could not be written to its end"));
  return exit_code == laneshift::tools::kExitOk ? static_cast<int>(laneshift::tools::kExitFailure) : exit_code;
}

int Main(int argc, char** argv) {
  using namespace laneshift::tools;
  Settings settings = Settings::FromEnvironment();
  settings.version = LANESHIFT_VERSION;
  CommandLine command_line(settings);
  const laneshift::Result<int> code = command_line.Run(argc, argv);
  if (code) return Finish(*code);
  Tell("error", code.error().message);
  if (AsksForJson(argc, argv)) {
    const nlohmann::ordered_json object = {{"error", ErrorJson(code.error())}};
    std::printf("%s\n", JsonLine(object).c_str());
  }
  return Finish(ExitCodeOf(code.error().code));
}

}  // namespace

// Nothing of ours throws, but memory may run out below.
int main(int argc, char** argv) {
  // Beyond the limit on file sizes a write of ours fails with EFBIG, to standard output, too.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return Main(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "laneshift: error: %s; is there enough memory?\n", failure.what());
    return laneshift::tools::kExitFailure;
  }
}
