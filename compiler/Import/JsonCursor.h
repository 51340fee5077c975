// A strict pull parser for the small JSON texts around checkpoints: safetensors headers and shard indices.
//
// It builds no tree: the caller walks the text it expects, so memory stays proportional to what the caller keeps,
// and every error has a place. Stricter than most parsers: no duplicate keys, no lone surrogates, no trailing text.
#pragma once

#include "compiler/Support/Error.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace mcc {

/// A position in a JSON text.
class JsonCursor {
public:
  /// How errors name a place: `file:line:column`, or `file: header byte N` with N counted from the file's start.
  enum class Place { LineColumn, HeaderByte };

  /// `text` must outlive the cursor; `firstByte` is the offset of `text` in the file.
  JsonCursor(llvm::StringRef text, llvm::StringRef file, Place place, uint64_t firstByte = 0)
      : text(text), file(file), place(place), firstByte(firstByte) {}

  /// Refuses a text that is not UTF-8.
  llvm::Error checkUtf8();
  /// Reads an object; calls `member` with each key, which must read its value. Duplicate keys are refused.
  llvm::Error object(llvm::function_ref<llvm::Error(llvm::StringRef key)> member);
  /// Reads an array; calls `element` with each index, which must read the element.
  llvm::Error array(llvm::function_ref<llvm::Error(uint64_t index)> element);
  /// Reads a string into `out`.
  llvm::Error string(std::string &out);
  /// Reads an integer of 0 .. 2^64-1 into `out`: no sign, fraction or exponent.
  llvm::Error unsignedInteger(uint64_t &out);
  /// Reads any value, at most 64 deep.
  llvm::Error skipValue();
  /// Requires that only white space is left.
  llvm::Error end();

  /// Where the next token begins, as an error says it.
  std::string where();
  /// Returns an error at the next token.
  template <typename... Args>
  llvm::Error error(const char *format, Args &&...args) {
    return diagnose(where(), format, std::forward<Args>(args)...);
  }

private:
  void skipSpace();
  bool consume(char expected);
  llvm::Error unexpected(const char *wanted);
  llvm::Error escape(std::string &out);
  llvm::Error hexQuad(uint32_t &out);
  llvm::Error skipNumber();

  llvm::StringRef text;
  llvm::StringRef file;
  Place place;
  uint64_t firstByte;
  size_t position = 0;
  int depth = 0;
};

} // namespace mcc
