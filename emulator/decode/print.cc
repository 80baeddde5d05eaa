// vprintf and __assertfail: the functions of the CUDA runtime that compilers call from kernels.

#include <bit>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/text.h"
#include "emulator/decode/calls.h"
#include "emulator/machine/access.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

constexpr size_t kMaxString = 4096;   // bytes of one string that a kernel prints
constexpr int kMaxFieldWidth = 1024;  // of one conversion

// A zero-terminated string at a generic address. False after a fault.
bool ReadString(Warp& w, int lane, uint64_t address, std::string& text) {
  for (size_t n = 0; n < kMaxString; ++n) {
    Located at;
    if (!LocateQuietly(w, StateSpace::kGeneric, address + n, 1, lane, at)) return false;
    if (*at.host == 0) return true;
    text += static_cast<char>(*at.host);
  }
  return true;
}

// The values after a format: each aligned to its own size.
class Arguments {
 public:
  Arguments(Warp& warp, int lane, uint64_t address) : warp_(warp), lane_(lane), address_(address) {}
  bool Next(uint32_t bytes, uint64_t& bits) {
    address_ = (address_ + bytes - 1) / bytes * bytes;
    Located at;
    if (!LocateQuietly(warp_, StateSpace::kGeneric, address_, bytes, lane_, at)) return false;
    bits = 0;
    std::memcpy(&bits, at.host, bytes);
    address_ += bytes;
    ++count_;
    return true;
  }
  uint32_t count() const { return count_; }

 private:
  Warp& warp_;
  int lane_;
  uint64_t address_;
  uint32_t count_ = 0;
};

template <typename T>
std::string Formatted(const std::string& spec, T value) {
  char text[kMaxFieldWidth * 2 + 512];
  const int n = std::snprintf(text, sizeof text, spec.c_str(), value);
  return n < 0 ? "" : std::string(text, std::min(static_cast<size_t>(n), sizeof text - 1));
}

// One conversion: "%-8.3lld" at `at`. Appends its text and advances `at` past it. False after a fault.
bool Convert(Warp& w, int lane, const std::string& format, size_t& at, Arguments& arguments, std::string& text) {
  const size_t start = at++;
  std::string spec = "%";
  uint64_t bits = 0;
  int longs = 0, width = 0;
  for (; at < format.size() && std::strchr("-+ #0123456789.*hljztL", format[at]) != nullptr; ++at) {
    const char c = format[at];
    if (c == '*') {
      if (!arguments.Next(4, bits)) return false;
      width = std::clamp(static_cast<int>(bits), -kMaxFieldWidth, kMaxFieldWidth);
      spec += std::to_string(width);
      width = 0;
    } else if (std::strchr("hljztL", c) != nullptr) {
      longs += c == 'h' ? 0 : c == 'l' ? 1 : 2;
    } else {
      width = c >= '0' && c <= '9' ? std::min(width * 10 + (c - '0'), kMaxFieldWidth + 1) : 0;
      if (width <= kMaxFieldWidth) spec += c;
    }
  }
  const char kind = at < format.size() ? format[at++] : '\0';
  if (kind == '%') return text += '%', true;
  if (kind != '\0' && std::strchr("diouxXc", kind) != nullptr) {
    const bool wide = longs > 0 && kind != 'c';
    if (!arguments.Next(wide ? 8 : 4, bits)) return false;
    text += wide ? Formatted(spec + "ll" + kind, bits) : Formatted(spec + kind, static_cast<uint32_t>(bits));
  } else if (kind != '\0' && std::strchr("aAeEfFgG", kind) != nullptr) {
    if (!arguments.Next(8, bits)) return false;
    text += Formatted(spec + kind, std::bit_cast<double>(bits));
  } else if (kind == 'p') {
    if (!arguments.Next(8, bits)) return false;
    text += Formatted(spec + "p", reinterpret_cast<void*>(bits));
  } else if (kind == 's') {
    std::string value;
    if (!arguments.Next(8, bits) || !ReadString(w, lane, bits, value)) return false;
    text += Formatted(spec + "s", value.c_str());
  } else {
    text += format.substr(start, at - start);  // not a conversion: printed unchanged
  }
  return true;
}

// The 64-bit value of a .param variable of the caller.
uint64_t Parameter(Warp& w, const DecodedOperand& address, int lane, size_t bytes) {
  uint64_t value = 0;
  const uint64_t at = w.AddressOf(address, lane);
  if (at + bytes <= w.local_bytes()) std::memcpy(&value, w.Local(lane) + at, bytes);
  return value;
}

}  // namespace

Outcome ExecutePrint(Warp& w, const Instruction& i, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::string format, text;
    if (!ReadString(w, lane, Parameter(w, i[1], lane, 8), format)) return Outcome::kFault;
    Arguments arguments(w, lane, Parameter(w, i[2], lane, 8));
    for (size_t at = 0; at < format.size();) {
      if (format[at] != '%') {
        text += format[at++];
      } else if (!Convert(w, lane, format, at, arguments, text)) {
        return Outcome::kFault;
      }
    }
    const uint32_t count = arguments.count();
    const uint64_t at = w.AddressOf(i[0], lane);
    if (i[0].slot != kNoSlot && at + 4 <= w.local_bytes()) std::memcpy(w.Local(lane) + at, &count, 4);
    w.cta().cluster().NoteChange();
    PrintLog* prints = w.cta().cluster().machine().prints;
    if (prints != nullptr && !prints->Add(text)) return w.cta().cluster().EndAtLimit(w, FaultKind::kOutputLimit, lane);
  }
  return Outcome::kNext;
}

Outcome ExecuteAssertFail(Warp& w, const Instruction& i, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  std::string message, file, function;
  if (!ReadString(w, lane, Parameter(w, i[0], lane, 8), message) ||
      !ReadString(w, lane, Parameter(w, i[1], lane, 8), file) ||
      !ReadString(w, lane, Parameter(w, i[3], lane, 8), function)) {
    return Outcome::kFault;
  }
  return w.Fault(FaultKind::kLaunchFailure, lane,
                 Cat(file, ":", Parameter(w, i[2], lane, 4), ": ", function, ": assertion '", message, "' failed"));
}

}  // namespace laneshift::emulator
