#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>

#include "base/check.h"

namespace laneshift::base {
namespace {

std::atomic<LogLevel> current_level{LogLevel::kWarn};

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  LS_CHECK(false, "log level out of range: ", static_cast<int>(level));
}

// Not registered with spdlog: a program that links laneshift keeps its own registry and default logger.
// Never destroyed, so that destructors of static objects may still log.
spdlog::logger& Logger() {
  static spdlog::logger& logger = *[] {
    auto* made = new spdlog::logger("laneshift", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("[%H:%M:%S.%e] %l %v");
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return logger;
}

}  // namespace

std::string_view LogChannelName(LogChannel channel) {
  switch (channel) {
    case LogChannel::kCompile:
      return "compile";
    case LogChannel::kDevice:
      return "device";
    case LogChannel::kEmulator:
      return "emulator";
    case LogChannel::kStore:
      return "store";
    case LogChannel::kTune:
      return "tune";
    case LogChannel::kRuntime:
      return "runtime";
    case LogChannel::kTool:
      return "tool";
  }
  LS_CHECK(false, "log channel out of range: ", static_cast<int>(channel));
}

void SetLogLevel(LogLevel level) { current_level.store(level, std::memory_order_relaxed); }
LogLevel CurrentLogLevel() { return current_level.load(std::memory_order_relaxed); }
bool LogEnabled(LogLevel level) { return level != LogLevel::kOff && level >= CurrentLogLevel(); }

void WriteLogLine(LogChannel channel, LogLevel level, const std::string& text) {
  // A line may quote what a caller passed, such as a path of megabytes.
  constexpr size_t kMostBytes = 4096;
  const bool whole = text.size() <= kMostBytes;
  Logger().log(SpdlogLevel(level), "{}: {}{}", LogChannelName(channel), std::string_view(text).substr(0, kMostBytes),
               whole ? "" : " [cut]");
}

}  // namespace laneshift::base
