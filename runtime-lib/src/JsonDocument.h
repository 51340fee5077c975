// A JSON text that can say where in its file any of its values stands.
#pragma once

#include "runtime-lib/src/Json.h"
#include "runtime-lib/src/Result.h"

#include <span>
#include <string>
#include <string_view>

namespace mcc::runtime {

/// One step from a JSON value to a value inside it: a key of an object or an index of an array.
struct JsonStep {
  JsonStep(const char *key) : key(key) {}
  JsonStep(std::string_view key) : key(key) {}
  JsonStep(size_t index) : index(index) {}
  std::string_view key;
  size_t index = SIZE_MAX; ///< SIZE_MAX: a key
};

/// A parsed text with its origin.
class JsonDocument {
public:
  /// Parses `text`, which came from line `firstLine` of `path`. The message of a syntax error begins with
  /// path:line:column.
  static Result<JsonDocument> parse(std::string path, std::string text, int64_t firstLine = 1);

  const nlohmann::json &root() const { return value; }

  /// Returns a failure "path:line:column: error: fact" at the value that `steps` lead to from the root (or at the
  /// last one of them that exists).
  Failure failure(std::span<const JsonStep> steps, std::string_view fact) const;

private:
  std::string path, text;
  int64_t firstLine = 1;
  nlohmann::json value;
};

} // namespace mcc::runtime
