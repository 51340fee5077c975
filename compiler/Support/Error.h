// User-facing errors of the compiler: one line that says where, what was found, and what to do.
//
// Anything that reads a user's file or the environment returns llvm::Expected / llvm::Error made here;
// only the Driver prints. The text is `WHERE: error: FACT; HINT` (style: lower case, no final period,
// code in 'quotes', both numbers).
#pragma once

#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

#include <string>

namespace mcc {

/// A diagnosed error in the user's input or environment.
class Diagnosed : public llvm::ErrorInfo<Diagnosed> {
public:
  static char ID;
  Diagnosed(std::string where, std::string what) : where(std::move(where)), what(std::move(what)) {}
  /// Prints `where: error: what` without a newline.
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;
  /// `file`, `file:line:column` or `file: tensor 'x'`; empty where there is no place.
  const std::string where;
  const std::string what;
};

/// Returns an error at `where` with a formatv text.
template <typename... Args>
llvm::Error diagnose(std::string where, const char *format, Args &&...args) {
  return llvm::make_error<Diagnosed>(std::move(where), llvm::formatv(format, std::forward<Args>(args)...).str());
}

/// Returns `text` in single quotes for a message: control characters and broken UTF-8 as \xNN, cut at 120 bytes.
std::string quoted(llvm::StringRef text);

} // namespace mcc
