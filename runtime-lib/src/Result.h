// How the runtime reports failures: a message for the user, returned, never thrown.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace mcc::runtime {

/// What went wrong, as one line for the user (`WHERE: error: ...` is the caller's to complete).
struct Failure {
  std::string message;
};

/// Success, or a Failure.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Failure failure) : failure(std::move(failure.message)), isFailure(true) {}
  bool ok() const { return !isFailure; }
  /// Returns the message; empty on success.
  const std::string &message() const { return failure; }

private:
  std::string failure;
  bool isFailure = false;
};

/// A value, or a Failure.
template <typename T>
class [[nodiscard]] Result {
public:
  Result(T value) : state(std::in_place_index<0>, std::move(value)) {}
  Result(Failure failure) : state(std::in_place_index<1>, std::move(failure)) {}
  bool ok() const { return state.index() == 0; }
  /// Returns the value; only where ok().
  T &value() { return *std::get_if<0>(&state); }
  /// Returns the message; only where not ok().
  const std::string &message() const { return std::get_if<1>(&state)->message; }
  /// Returns the failure to pass it on; only where not ok().
  Failure failure() const { return *std::get_if<1>(&state); }

private:
  std::variant<T, Failure> state;
};

} // namespace mcc::runtime
