// A recursive-descent JSON reader that keeps the byte offset of every key and value.
//
// Recursion is bounded by `maxDepth`, every loop by the text, and the first thing wrong ends the parse with its
// place and what was expected there. Numbers follow the grammar exactly and are converted by std::from_chars, so
// they do not depend on the locale; strings are checked to be UTF-8 and escapes are decoded with their surrogates.
#include "compiler/Support/LocatedJson.h"

#include "compiler/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace mcc {

static constexpr unsigned maxDepth = 256;
static constexpr uint64_t maxFileBytes = uint64_t(64) << 20;

namespace {

/// What is wrong, and at which byte.
struct Fault {
  uint64_t offset;
  std::string text;
};

class Parser {
public:
  explicit Parser(llvm::StringRef text) : text(text) {}

  std::optional<Fault> fault;

  bool parseDocument(JsonValue &root) {
    // A byte order mark is not JSON, but editors on Windows add one.
    if (text.starts_with("\xEF\xBB\xBF"))
      at = 3;
    if (!parseValue(root, 0))
      return false;
    skipSpace();
    return at == text.size() || fail(at, "the document ends here, but " + found() + " follows");
  }

private:
  llvm::StringRef text;
  uint64_t at = 0;

  bool fail(uint64_t offset, std::string what) {
    fault = Fault{offset, std::move(what)};
    return false;
  }

  void skipSpace() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t'))
      ++at;
  }

  bool take(char c) {
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }

  /// Names the token at the cursor.
  std::string found() const {
    if (at >= text.size())
      return "the end of the file";
    unsigned char c = text[at];
    if (c < 0x20 || c >= 0x7f)
      return "byte 0x" + llvm::utohexstr(c, /*LowerCase=*/true, 2);
    llvm::StringRef word = text.substr(at, 24).take_while([](char d) { return llvm::isAlnum(d) || d == '_'; });
    return "'" + (word.empty() ? text.substr(at, 1) : word).str() + "'";
  }

  bool parseValue(JsonValue &value, unsigned depth) {
    skipSpace();
    value.offset = at;
    if (at >= text.size())
      return fail(at, "expected a value; found the end of the file");
    switch (text[at]) {
    case '{':
      return parseObject(value, depth);
    case '[':
      return parseArray(value, depth);
    case '"':
      value.kind = JsonValue::Kind::String;
      return parseString(value.string);
    default:
      return llvm::isDigit(text[at]) || text[at] == '-' ? parseNumber(value) : parseLiteral(value);
    }
  }

  bool tooDeep(unsigned depth) {
    return depth >= maxDepth && !fail(at, llvm::formatv("more than {0} nested arrays and objects", maxDepth).str());
  }

  bool parseObject(JsonValue &value, unsigned depth) {
    value.kind = JsonValue::Kind::Object;
    if (tooDeep(depth))
      return false;
    ++at;
    skipSpace();
    if (take('}'))
      return true;
    llvm::StringSet<> keys;
    while (true) {
      skipSpace();
      JsonMember member;
      member.offset = at;
      if (at >= text.size() || text[at] != '"')
        return fail(at, "expected a key in double quotes; found " + found());
      if (!parseString(member.key))
        return false;
      if (!keys.insert(member.key).second)
        return fail(member.offset, "the key " + quoteJson(member.key) + " occurs twice in one object");
      skipSpace();
      if (!take(':'))
        return fail(at, "expected ':' after the key " + quoteJson(member.key) + "; found " + found());
      if (!parseValue(member.value, depth + 1))
        return false;
      value.members.push_back(std::move(member));
      skipSpace();
      if (take('}'))
        return true;
      if (!take(','))
        return fail(at, "expected ',' or '}' in an object; found " + found());
    }
  }

  bool parseArray(JsonValue &value, unsigned depth) {
    value.kind = JsonValue::Kind::Array;
    if (tooDeep(depth))
      return false;
    ++at;
    skipSpace();
    if (take(']'))
      return true;
    while (true) {
      JsonValue element;
      if (!parseValue(element, depth + 1))
        return false;
      value.elements.push_back(std::move(element));
      skipSpace();
      if (take(']'))
        return true;
      if (!take(','))
        return fail(at, "expected ',' or ']' in an array; found " + found());
    }
  }

  bool parseLiteral(JsonValue &value) {
    auto literal = [&](llvm::StringRef word) {
      if (!text.substr(at).starts_with(word) ||
          (at + word.size() < text.size() && llvm::isAlnum(text[at + word.size()])))
        return false;
      at += word.size();
      return true;
    };
    if (literal("null"))
      return true;
    value.kind = JsonValue::Kind::Bool;
    value.boolean = literal("true");
    if (value.boolean || literal("false"))
      return true;
    value.kind = JsonValue::Kind::Real;
    value.real = std::numeric_limits<double>::infinity();
    if (literal("Infinity"))
      return true;
    value.real = std::numeric_limits<double>::quiet_NaN();
    return literal("NaN") || fail(at, "expected a value; found " + found());
  }

  uint64_t digitsFrom(uint64_t from) const {
    while (from < text.size() && llvm::isDigit(text[from]))
      ++from;
    return from;
  }

  bool parseNumber(JsonValue &value) {
    uint64_t start = at, end = at + (text[at] == '-' ? 1 : 0);
    if (text.substr(end).starts_with("Infinity")) {
      at = end + 8;
      value.kind = JsonValue::Kind::Real;
      value.real = -std::numeric_limits<double>::infinity();
      return true;
    }
    uint64_t whole = digitsFrom(end);
    if (whole == end)
      return fail(start, "expected a digit after '-'");
    if (text[end] == '0' && whole > end + 1)
      return fail(start, "a number does not start with 0 and a digit");
    bool isInteger = true;
    end = whole;
    if (end < text.size() && text[end] == '.') {
      isInteger = false;
      whole = digitsFrom(end + 1);
      if (whole == end + 1)
        return fail(start, "expected a digit after the decimal point");
      end = whole;
    }
    if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
      isInteger = false;
      uint64_t exponent = end + 1;
      if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-'))
        ++exponent;
      end = digitsFrom(exponent);
      if (end == exponent)
        return fail(start, "expected a digit in the exponent");
    }
    at = end;
    return convert(value, text.slice(start, end), start, isInteger);
  }

  bool convert(JsonValue &value, llvm::StringRef digits, uint64_t start, bool isInteger) {
    value.kind = JsonValue::Kind::Real;
    std::from_chars_result result = std::from_chars(digits.begin(), digits.end(), value.real);
    // The standard leaves the value alone both where it is too large and where it is too small.
    if (result.ec == std::errc::result_out_of_range)
      value.real = std::strtod(digits.str().c_str(), nullptr);
    if (std::isinf(value.real))
      return fail(start, "the number " + digits.take_front(24).str() + " is larger than a double can hold");
    if (isInteger && std::from_chars(digits.begin(), digits.end(), value.integer).ec == std::errc())
      value.kind = JsonValue::Kind::Integer;
    return true;
  }

  bool parseString(std::string &out) {
    uint64_t start = at++;
    while (true) {
      uint64_t plain = at;
      while (at < text.size() && text[at] != '"' && text[at] != '\\' && static_cast<unsigned char>(text[at]) >= 0x20)
        ++at;
      llvm::StringRef run = text.slice(plain, at);
      if (!checkUtf8(run, plain))
        return false;
      out.append(run.begin(), run.end());
      if (at >= text.size())
        return fail(start, "the string that starts here has no closing quote");
      if (take('"'))
        return true;
      if (text[at] != '\\')
        return fail(at, "a string contains the control character " + found() + "; write it as \\u00XX");
      if (!parseEscape(out))
        return false;
    }
  }

  bool checkUtf8(llvm::StringRef run, uint64_t offset) {
    const auto *begin = reinterpret_cast<const llvm::UTF8 *>(run.begin()), *from = begin;
    if (llvm::isLegalUTF8String(&from, reinterpret_cast<const llvm::UTF8 *>(run.end())))
      return true;
    return fail(offset + (from - begin), "a string contains bytes that are not UTF-8");
  }

  bool parseHex4(uint32_t &unit) {
    llvm::StringRef digits = text.substr(at, 4);
    if (digits.size() != 4 || !llvm::all_of(digits, [](char c) { return llvm::isHexDigit(c); }))
      return fail(at, "expected four hexadecimal digits after \\u");
    at += 4;
    return !digits.getAsInteger(16, unit);
  }

  bool parseEscape(std::string &out) {
    static constexpr llvm::StringRef names = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    uint64_t start = at++;
    if (at >= text.size())
      return fail(start, "the file ends inside an escape");
    char c = text[at++];
    if (size_t index = names.find(c); index != llvm::StringRef::npos) {
      out += meanings[index];
      return true;
    }
    if (c != 'u')
      return fail(start, "an escape is one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    uint32_t point = 0;
    if (!parseHex4(point))
      return false;
    if (point >= 0xD800 && point < 0xDC00) {
      uint32_t low = 0;
      if (!take('\\') || !take('u') || !parseHex4(low) || low < 0xDC00 || low > 0xDFFF)
        return fail(start, "a high surrogate is not followed by a low one");
      point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
    } else if (point >= 0xDC00 && point < 0xE000) {
      return fail(start, "a low surrogate stands alone");
    }
    char buffer[4], *end = buffer;
    llvm::ConvertCodePointToUTF8(point, end);
    out.append(buffer, end);
    return true;
  }
};

} // namespace

const JsonMember *JsonValue::find(llvm::StringRef key) const {
  for (const JsonMember &member : members)
    if (member.key == key)
      return &member;
  return nullptr;
}

llvm::StringRef describeKind(const JsonValue &value) {
  switch (value.kind) {
  case JsonValue::Kind::Null:
    return "null";
  case JsonValue::Kind::Bool:
    return value.boolean ? "true" : "false";
  case JsonValue::Kind::Integer:
    return "an integer";
  case JsonValue::Kind::Real:
    return "a number";
  case JsonValue::Kind::String:
    return "a string";
  case JsonValue::Kind::Array:
    return "an array";
  case JsonValue::Kind::Object:
    return "an object";
  }
  return "a value";
}

llvm::Expected<JsonDocument> JsonDocument::parse(llvm::StringRef text, llvm::StringRef file) {
  JsonDocument document;
  document.fileName = file.str();
  document.source = text.str();
  document.lineStarts.push_back(0);
  for (uint64_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n')
      document.lineStarts.push_back(i + 1);
  Parser parser(document.source);
  if (!parser.parseDocument(document.root))
    return diagnose(document.where(parser.fault->offset), "{0}", parser.fault->text);
  return document;
}

llvm::Expected<JsonDocument> JsonDocument::read(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return diagnose(path.str(), "cannot read the file: {0}", buffer.getError().message());
  if ((*buffer)->getBufferSize() > maxFileBytes)
    return diagnose(path.str(), "the file has {0} bytes; at most {1} are read as JSON", (*buffer)->getBufferSize(),
                    maxFileBytes);
  return parse((*buffer)->getBuffer(), path);
}

std::string JsonDocument::where(uint64_t offset) const {
  auto line = std::upper_bound(lineStarts.begin(), lineStarts.end(), offset) - 1;
  return llvm::formatv("{0}:{1}:{2}", fileName, line - lineStarts.begin() + 1, offset - *line + 1).str();
}

std::string JsonDocument::quoted(const JsonValue &value) const {
  if (value.isString())
    return quoteJson(value.string.size() <= 40 ? value.string : value.string.substr(0, 37) + "...");
  if (value.isArray() || value.isObject())
    return describeKind(value).str();
  llvm::StringRef rest = llvm::StringRef(source).substr(value.offset, 40);
  return rest.take_until([](char c) { return c == ',' || c == '}' || c == ']' || llvm::isSpace(c); }).str();
}

std::string quoteJson(llvm::StringRef text) {
  static constexpr char hex[] = "0123456789abcdef";
  const auto *at = reinterpret_cast<const llvm::UTF8 *>(text.begin());
  const auto *end = reinterpret_cast<const llvm::UTF8 *>(text.end());
  std::string out = "\"";
  while (at != end) {
    unsigned char c = *at;
    unsigned length = llvm::getNumBytesForUTF8(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += char(*at++);
    } else if (c == '\n') {
      out += "\\n";
      ++at;
    } else if (c < 0x20) {
      out += {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
      ++at;
    } else if (length <= unsigned(end - at) && llvm::isLegalUTF8Sequence(at, at + length)) {
      out.append(reinterpret_cast<const char *>(at), length);
      at += length;
    } else {
      out += "\xEF\xBF\xBD";
      ++at;
    }
  }
  return out + "\"";
}

std::string printNumber(double value) {
  char buffer[40];
  bool whole = std::abs(value) < 1e15 && value == std::trunc(value) && !(value == 0 && std::signbit(value));
  std::to_chars_result result = whole ? std::to_chars(buffer, buffer + sizeof buffer, static_cast<int64_t>(value))
                                      : std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, result.ptr);
}

} // namespace mcc
