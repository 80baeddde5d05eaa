// LS_LOG(kStore, warn, "text ", value, …): one line on stderr, for people.
//
// Levels: debug, info, warn, error. Arguments are evaluated only if the level is enabled. Warnings and errors are on by
// default. Results, rejected candidates and failures that a caller receives are values, not log lines; headers, passes
// and pure functions do not log. log.cc is the only includer of spdlog.
//
// Thread-safety: everything here may be called from any thread. The level is the only global state of laneshift.
#pragma once

#include <string>
#include <string_view>

#include "base/text.h"

namespace laneshift::base {

enum class LogChannel { kCompile, kDevice, kEmulator, kStore, kTune, kRuntime, kTool };
enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };

std::string_view LogChannelName(LogChannel channel);

// Lines below `level` are dropped, on every channel.
void SetLogLevel(LogLevel level);
LogLevel CurrentLogLevel();
bool LogEnabled(LogLevel level);

void WriteLogLine(LogChannel channel, LogLevel level, const std::string& text);

}  // namespace laneshift::base

#define LS_LOG_LEVEL_debug kDebug
#define LS_LOG_LEVEL_info kInfo
#define LS_LOG_LEVEL_warn kWarn
#define LS_LOG_LEVEL_error kError
#define LS_LOG(channel, level, ...)                                                         \
  do {                                                                                      \
    if (::laneshift::base::LogEnabled(::laneshift::base::LogLevel::LS_LOG_LEVEL_##level)) { \
      ::laneshift::base::WriteLogLine(::laneshift::base::LogChannel::channel,               \
                                      ::laneshift::base::LogLevel::LS_LOG_LEVEL_##level,    \
                                      ::laneshift::base::Cat(__VA_ARGS__));                 \
    }                                                                                       \
  } while (false)
