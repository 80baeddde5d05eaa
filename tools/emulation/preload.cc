// The entry of liblaneshift_emulator.so: reads the environment when the library is loaded, and writes the report when
// the program ends. The exported functions are the emulated driver's own.
//
// Thread-safety: runs before and after everything else.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/output_file.h"
#include "tools/emulation/emulator_settings.h"
#include "tools/emulation/launch_recorder.h"
#include "tools/emulation/report_json.h"

namespace laneshift::tools {
namespace {

void Print(const std::string& line) { std::fprintf(stderr, "laneshift emulator: %s\n", line.c_str()); }

struct Session {
  emulator::Options options;
  std::string report;
  std::unique_ptr<LaunchRecorder> recorder;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};
Session& TheSession() {
  // Never destroyed: programs call the driver from their own destructors.
  static auto* session = new Session;
  return *session;
}

__attribute__((constructor)) void Begin() {
  auto settings = EmulatorSettings::FromEnvironment();
  if (!settings.has_value()) {
    Print(settings.error().message);
    std::_Exit(2);
  }
  if (!settings->quiet) settings->options.notice = settings->options.progress = Print;
  if (!settings->record.empty()) {
    TheSession().recorder =
        std::make_unique<LaunchRecorder>(settings->record, settings->record_kernels, settings->options.notice);
    settings->options.observer = TheSession().recorder.get();
  }
  TheSession().options = settings->options;
  TheSession().report = settings->report;
  emulator::Configure(settings->options);
}

__attribute__((destructor)) void End() {
  const Session& session = TheSession();
  // A program that only starts others, as `timeout` does, has nothing to say, and would write over what they said.
  if (session.report.empty() || !emulator::DriverIsUsed()) return;
  nlohmann::ordered_json json = ReportJson(emulator::TakeReport(), session.options);
  json["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - session.begin).count();
  const std::string text = json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  if (const Status written = base::WriteFile(session.report, text); !written) Print(written.error().message);
}

}  // namespace
}  // namespace laneshift::tools
