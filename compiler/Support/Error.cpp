#include "compiler/Support/Error.h"

#include "llvm/Support/raw_ostream.h"

namespace mcc {

char Diagnosed::ID = 0;

void Diagnosed::log(llvm::raw_ostream &os) const {
  if (!where.empty())
    os << where << ": ";
  os << "error: " << what;
}

std::error_code Diagnosed::convertToErrorCode() const { return llvm::inconvertibleErrorCode(); }

} // namespace mcc
