// Result<T>: a value or an Error. Status is Result<void>.
//
// A failure caused by a caller, a file, a driver, a device or a chosen schedule is an Error; a defect of laneshift
// aborts (base/check.h). Nothing here throws. Member names follow C++23's std::expected.
//
// Thread-safety: values; no shared state.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace laneshift {

enum class ErrorCode {
  kInvalidArgument,    // the caller's input is wrong; the message says what would be right
  kUnsupported,        // a valid request that this target, schedule or build cannot serve
  kResourceExhausted,  // does not fit: which resource, how much over
  kNotFound,           // no such device, file, kernel or symbol
  kCorrupt,            // stored bytes are not what was written
  kDriver,             // the CUDA driver, an assembler or a library reported a failure
  kTimeout,            // a deadline passed
  kWrongResult,        // a kernel ran and its numbers or its synchronisation are wrong
  kInternal,           // a defect of laneshift that could be reported instead of aborting
};

// The code's name as printed: "invalid argument", "unsupported", …
std::string_view ErrorCodeName(ErrorCode code);

// What went wrong (one line, no trailing period) and where it was noticed.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  const char* file = "";
  int line = 0;

  // The same error with the context of the layer above in front: "compiling gemm …: <message>".
  Error Within(std::string_view context) const {
    Error e = *this;
    e.message = std::string(context) + ": " + message;
    return e;
  }
};

// The one place where errors are made, so that one breakpoint sees them all.
Error MakeError(ErrorCode code, std::string message, const char* file = __builtin_FILE(), int line = __builtin_LINE());

template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T held) : state_(std::in_place_index<0>, std::move(held)) {}        // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & { return Get(); }
  const T& value() const& { return const_cast<Result*>(this)->Get(); }
  T&& value() && { return std::move(Get()); }
  T& operator*() & { return Get(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(Get()); }
  T* operator->() { return &Get(); }
  const T* operator->() const { return &value(); }
  // REQUIRES: !has_value().
  const Error& error() const& { return *std::get_if<1>(&state_); }
  Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
  T& Get() {
    if (T* v = std::get_if<0>(&state_)) return *v;
    std::fprintf(stderr, "laneshift: value() of a failed Result: %s\n", error().message.c_str());
    std::abort();
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  // REQUIRES: !has_value().
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;
inline Status Ok() { return {}; }

// LS_TRY(status_expression): returns the error to the caller, if there is one.
#define LS_TRY(...)                                               \
  do {                                                            \
    if (auto ls_status = (__VA_ARGS__); !ls_status.has_value()) { \
      return std::move(ls_status).error();                        \
    }                                                             \
  } while (false)

#define LS_CONCAT_INNER(a, b) a##b
#define LS_CONCAT(a, b) LS_CONCAT_INNER(a, b)
// LS_ASSIGN(auto x, result_expression): declares or assigns the value, or returns the error to the caller.
#define LS_ASSIGN(declaration, ...) LS_ASSIGN_INNER(LS_CONCAT(ls_result_, __LINE__), declaration, __VA_ARGS__)
#define LS_ASSIGN_INNER(result, declaration, ...)            \
  auto result = (__VA_ARGS__);                               \
  if (!result.has_value()) return std::move(result).error(); \
  declaration = std::move(result).value()

}  // namespace laneshift
