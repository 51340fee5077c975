// The pull parser of JsonCursor.h: RFC 8259, recursive only through skipValue() and bounded there.
#include "compiler/Import/JsonCursor.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/JSON.h"

namespace mcc {

constexpr int kDeepest = 64;

std::string JsonCursor::where() {
  skipSpace();
  if (place == Place::HeaderByte)
    return llvm::formatv("{0}: header byte {1}", file, firstByte + position).str();
  llvm::StringRef before = text.take_front(position);
  size_t lineStart = before.rfind('\n') + 1; // npos + 1 == 0
  return llvm::formatv("{0}:{1}:{2}", file, before.count('\n') + 1, position - lineStart + 1).str();
}

void JsonCursor::skipSpace() {
  while (position < text.size() && llvm::StringRef(" \t\n\r").contains(text[position]))
    ++position;
}

bool JsonCursor::consume(char expected) {
  skipSpace();
  if (position >= text.size() || text[position] != expected)
    return false;
  ++position;
  return true;
}

llvm::Error JsonCursor::unexpected(const char *wanted) {
  skipSpace();
  if (position >= text.size())
    return error("the text ends where {0} is needed", wanted);
  return error("{0} found where {1} is needed", quoted(text.substr(position, 1)), wanted);
}

llvm::Error JsonCursor::checkUtf8() {
  size_t broken = 0;
  if (llvm::json::isUTF8(text, &broken))
    return llvm::Error::success();
  position = broken;
  return error("byte {0} is not UTF-8", llvm::formatv("0x{0:X-2}", static_cast<uint8_t>(text[broken])).str());
}

llvm::Error JsonCursor::object(llvm::function_ref<llvm::Error(llvm::StringRef)> member) {
  if (!consume('{'))
    return unexpected("an object ('{')");
  if (consume('}'))
    return llvm::Error::success();
  llvm::StringSet<> seen;
  do {
    std::string key;
    std::string keyPlace = where();
    if (llvm::Error error = string(key))
      return error;
    if (!seen.insert(key).second)
      return diagnose(keyPlace, "key {0} occurs twice in one object", quoted(key));
    if (!consume(':'))
      return unexpected("':'");
    if (llvm::Error error = member(key))
      return error;
  } while (consume(','));
  return consume('}') ? llvm::Error::success() : unexpected("',' or '}'");
}

llvm::Error JsonCursor::array(llvm::function_ref<llvm::Error(uint64_t)> element) {
  if (!consume('['))
    return unexpected("an array ('[')");
  if (consume(']'))
    return llvm::Error::success();
  uint64_t index = 0;
  do {
    if (llvm::Error error = element(index++))
      return error;
  } while (consume(','));
  return consume(']') ? llvm::Error::success() : unexpected("',' or ']'");
}

llvm::Error JsonCursor::string(std::string &out) {
  out.clear();
  if (!consume('"'))
    return unexpected("a string");
  while (position < text.size()) {
    unsigned char byte = text[position];
    if (byte < 0x20)
      return error("control character {0} inside a string; it must be escaped", quoted(text.substr(position, 1)));
    ++position;
    if (byte == '"')
      return llvm::Error::success();
    if (byte != '\\') {
      out.push_back(static_cast<char>(byte));
      continue;
    }
    if (llvm::Error error = escape(out))
      return error;
  }
  return error("the text ends inside a string");
}

llvm::Error JsonCursor::hexQuad(uint32_t &out) {
  llvm::StringRef digits = text.substr(position, 4);
  if (digits.size() != 4 || !llvm::all_of(digits, llvm::isHexDigit))
    return error("'\\u' needs four hexadecimal digits");
  digits.getAsInteger(16, out);
  position += 4;
  return llvm::Error::success();
}

llvm::Error JsonCursor::escape(std::string &out) {
  if (position >= text.size())
    return error("the text ends inside a string");
  char kind = text[position++];
  static constexpr llvm::StringLiteral kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
  if (size_t index = kNames.find(kind); index != llvm::StringRef::npos) {
    out.push_back(kValues[index]);
    return llvm::Error::success();
  }
  if (kind != 'u')
    return error("unknown escape '\\{0}'", kind);
  uint32_t code = 0, low = 0;
  if (llvm::Error error = hexQuad(code))
    return error;
  if (code >= 0xd800 && code < 0xdc00 && text.substr(position).consume_front("\\u")) {
    position += 2;
    if (llvm::Error error = hexQuad(low))
      return error;
    if (low < 0xdc00 || low > 0xdfff)
      return error("'\\u' surrogate without its second half");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xd800 && code < 0xe000) {
    return error("'\\u' surrogate without its other half");
  }
  char buffer[UNI_MAX_UTF8_BYTES_PER_CODE_POINT];
  char *cursor = buffer;
  llvm::ConvertCodePointToUTF8(code, cursor);
  out.append(buffer, cursor);
  return llvm::Error::success();
}

llvm::Error JsonCursor::unsignedInteger(uint64_t &out) {
  skipSpace();
  llvm::StringRef digits = text.substr(position).take_while(llvm::isDigit);
  llvm::StringRef after = text.substr(position + digits.size()).take_front(1);
  if (digits.empty())
    return unexpected("an integer of 0 or more");
  if (after == "." || after == "e" || after == "E")
    return error("a number with a fraction or exponent found where an integer is needed");
  if (digits.size() > 1 && digits.front() == '0')
    return error("number {0} has a leading zero", quoted(digits));
  if (digits.getAsInteger(10, out))
    return error("number {0} does not fit 64 bits", quoted(digits));
  position += digits.size();
  return llvm::Error::success();
}

llvm::Error JsonCursor::skipNumber() {
  size_t cursor = position;
  auto at = [&](char c) { return cursor < text.size() && text[cursor] == c; };
  auto digits = [&] {
    size_t start = cursor;
    while (cursor < text.size() && llvm::isDigit(text[cursor]))
      ++cursor;
    return cursor - start;
  };
  cursor += at('-');
  bool leadingZero = at('0');
  size_t whole = digits();
  if (whole == 0 || (leadingZero && whole > 1))
    return unexpected("a value");
  if (at('.')) {
    ++cursor;
    if (digits() == 0)
      return error("a number ends after '.'");
  }
  if (at('e') || at('E')) {
    ++cursor;
    cursor += at('+') || at('-');
    if (digits() == 0)
      return error("a number has an exponent without digits");
  }
  position = cursor;
  return llvm::Error::success();
}

llvm::Error JsonCursor::skipValue() {
  skipSpace();
  llvm::StringRef rest = text.substr(position);
  for (llvm::StringRef word : {"true", "false", "null"})
    if (rest.starts_with(word)) {
      position += word.size();
      return llvm::Error::success();
    }
  if (rest.starts_with("\"")) {
    std::string ignored;
    return string(ignored);
  }
  if (!rest.starts_with("{") && !rest.starts_with("["))
    return skipNumber();
  if (depth == kDeepest)
    return error("values are nested more than {0} deep", kDeepest);
  ++depth;
  llvm::Error result = rest.front() == '{' ? object([&](llvm::StringRef) { return skipValue(); })
                                           : array([&](uint64_t) { return skipValue(); });
  --depth;
  return result;
}

llvm::Error JsonCursor::end() {
  skipSpace();
  return position == text.size() ? llvm::Error::success() : unexpected("the end of the text");
}

} // namespace mcc
