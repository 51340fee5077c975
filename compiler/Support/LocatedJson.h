// JSON whose every key and value knows where it stands, so that a wrong field is named at file:line:column.
//
// Strict RFC 8259 with three differences: duplicate keys are refused, nesting is limited, and the literals
// `NaN`, `Infinity` and `-Infinity` are numbers, since Python writes them into published configs.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mcc {

struct JsonMember;

/// One value of a document. Owns its children; offsets point into the document's text.
class JsonValue {
public:
  enum class Kind { Null, Bool, Integer, Real, String, Array, Object };
  Kind kind = Kind::Null;
  uint64_t offset = 0; ///< byte of the value's first character
  bool boolean = false;
  int64_t integer = 0; ///< Kind::Integer: a number without fraction or exponent that fits
  double real = 0;     ///< Kind::Integer and Kind::Real
  std::string string;  ///< UTF-8
  std::vector<JsonValue> elements;
  std::vector<JsonMember> members; ///< in the order of the file

  bool isNull() const { return kind == Kind::Null; }
  bool isNumber() const { return kind == Kind::Integer || kind == Kind::Real; }
  bool isObject() const { return kind == Kind::Object; }
  bool isArray() const { return kind == Kind::Array; }
  bool isString() const { return kind == Kind::String; }
  /// Returns the member called `key`, or null; linear in the number of members.
  const JsonMember *find(llvm::StringRef key) const;
};

/// One `key: value` of an object.
struct JsonMember {
  std::string key;
  uint64_t offset = 0; ///< byte of the key's opening quote
  JsonValue value;
};

/// Returns "an object", "a string", "an integer", ...: what messages call the value.
llvm::StringRef describeKind(const JsonValue &value);

/// A parsed file.
class JsonDocument {
public:
  JsonValue root;

  /// Parses `text`; `file` is what messages call it. Errors are `file:line:column: error: ...`.
  static llvm::Expected<JsonDocument> parse(llvm::StringRef text, llvm::StringRef file);
  /// Reads and parses the file at `path`, at most 64 MiB of it.
  static llvm::Expected<JsonDocument> read(llvm::StringRef path);

  /// Returns `file:line:column` of a byte; lines and columns count from 1, columns in bytes.
  std::string where(uint64_t offset) const;
  std::string where(const JsonValue &value) const { return where(value.offset); }
  const std::string &file() const { return fileName; }
  /// Returns the value as the file writes it, shortened to about 40 characters: for messages.
  std::string quoted(const JsonValue &value) const;

private:
  std::string fileName;
  std::string source;
  std::vector<uint64_t> lineStarts;
};

/// Returns `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string quoteJson(llvm::StringRef text);

/// Returns the shortest decimal form that reads back as `value`; whole numbers below 1e15 without exponent.
std::string printNumber(double value);

} // namespace mcc
