// Writing logits to a safetensors file as they are computed.
#pragma once

#include "runtime-lib/src/Result.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

namespace mcc::runtime {

/// A safetensors file with `logits` f32 [rows, vocabulary], `tokens` and `prompt` i32. Rows are appended one by one;
/// the file appears under its name only when finish() succeeds, and nothing is left behind otherwise.
class LogitsFile {
public:
  /// Starts a temporary file beside `path`. Refuses to replace anything but a regular file.
  static Result<std::unique_ptr<LogitsFile>> create(const std::string &path, int64_t vocabulary);
  ~LogitsFile();
  LogitsFile(const LogitsFile &) = delete;
  LogitsFile &operator=(const LogitsFile &) = delete;

  /// Appends one row of `vocabulary` values. Returns false once a write has failed; finish() tells why.
  bool append(std::span<const float> row);

  /// Writes the ids and the header, and renames the file to its name.
  Status finish(std::span<const int32_t> tokens, std::span<const int32_t> prompt);

private:
  LogitsFile(std::string path, std::string temporary, int64_t vocabulary, std::FILE *stream)
      : path(std::move(path)), temporary(std::move(temporary)), vocabulary(vocabulary), stream(stream) {}
  bool put(const void *data, size_t bytes);

  std::string path, temporary;
  int64_t vocabulary;
  std::FILE *stream;
  int64_t rows = 0;
  int error = 0;
};

} // namespace mcc::runtime
