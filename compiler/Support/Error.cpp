#include "compiler/Support/Error.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace mcc {

char Diagnosed::ID = 0;

void Diagnosed::log(llvm::raw_ostream &os) const {
  if (!where.empty())
    os << where << ": ";
  os << "error: " << what;
}

std::string quoted(llvm::StringRef text) {
  constexpr size_t kLongest = 120;
  bool cut = text.size() > kLongest;
  text = text.take_front(kLongest);
  // A cut never leaves half a character behind: its continuation bytes go, and their lead byte.
  while (cut && !text.empty() && (text.back() & 0xc0) == 0x80)
    text = text.drop_back();
  if (cut && !text.empty() && (text.back() & 0xc0) == 0xc0)
    text = text.drop_back();
  bool escapeAll = !llvm::json::isUTF8(text);
  std::string result = "'";
  llvm::raw_string_ostream os(result);
  for (unsigned char byte : text.bytes()) {
    if (byte < 0x20 || byte == 0x7f || (escapeAll && byte >= 0x80))
      os << "\\x" << llvm::format_hex_no_prefix(byte, 2);
    else
      os << byte;
  }
  os << (cut ? "...'" : "'");
  return result;
}

std::error_code Diagnosed::convertToErrorCode() const { return llvm::inconvertibleErrorCode(); }

} // namespace mcc
