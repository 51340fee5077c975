// Locations without keeping them: the parser stores none, so where a value stands is found by scanning the text
// again, only when there is an error to report. The scan may assume correct syntax, since parsing succeeded.
#include "runtime-lib/src/JsonDocument.h"

#include "runtime-lib/src/Text.h"

#include <algorithm>

namespace mcc::runtime {

/// Returns "path:line:column" of a byte offset; columns count bytes from 1.
static std::string placeOf(const std::string &path, const std::string &text, size_t offset, int64_t firstLine) {
  offset = std::min(offset, text.size());
  const auto begin = text.begin(), end = text.begin() + static_cast<ptrdiff_t>(offset);
  const size_t newline = offset == 0 ? std::string::npos : text.rfind('\n', offset - 1);
  return concat(path, ':', firstLine + std::count(begin, end, '\n'), ':',
                newline == std::string::npos ? offset + 1 : offset - newline);
}

namespace {

/// Walks a syntactically correct JSON text.
class Scanner {
public:
  explicit Scanner(std::string_view text) : text(text) { skipSpace(); }
  size_t offset() const { return at; }

  /// Moves from a container to the value at `step`; false (and no move) where there is none.
  bool enter(const JsonStep &step) {
    const size_t start = at;
    const bool object = peek() == '{';
    if (step.index == SIZE_MAX ? !object : peek() != '[')
      return false;
    size_t found = SIZE_MAX;
    advance();
    for (size_t index = 0; peek() != '}' && peek() != ']'; ++index) {
      std::string_view key;
      if (object) {
        const size_t quote = at;
        skipString();
        key = text.substr(quote + 1, at - quote - 2);
        skipSpace();
        advance();
      }
      // The last of equal keys is the one the parser keeps.
      if (object ? key == step.key : index == step.index)
        found = at;
      skipValue();
      skipSpace();
      if (peek() == ',')
        advance();
    }
    at = found == SIZE_MAX ? start : found;
    return found != SIZE_MAX;
  }

private:
  char peek() const { return at < text.size() ? text[at] : ']'; }
  void advance() {
    ++at;
    skipSpace();
  }
  void skipSpace() { at = std::min(text.find_first_not_of(" \t\r\n", at), text.size()); }
  void skipString() {
    for (++at; at < text.size() && text[at] != '"'; ++at)
      at += text[at] == '\\';
    ++at;
  }
  void skipValue() {
    size_t depth = 0;
    do {
      const char character = peek();
      if (character == '"') {
        skipString();
      } else if (character == '{' || character == '[') {
        ++depth;
        ++at;
      } else if (character == '}' || character == ']') {
        --depth;
        ++at;
      } else {
        at = std::min(text.find_first_of(depth > 0 ? "\"{}[]" : ",]} \t\r\n", at), text.size());
      }
    } while (depth > 0 && at < text.size());
  }

  std::string_view text;
  size_t at = 0;
};

/// Receives nothing but the first syntax error.
class ErrorFinder : public nlohmann::json_sax<nlohmann::json> {
public:
  size_t position = 0;
  std::string fact;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(string_t &) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t at, const std::string &, const nlohmann::detail::exception &error) override {
    position = at;
    fact = error.what();
    return false;
  }
};

} // namespace

/// Returns the fact of a parser message "[json...] parse error at line L, column C: FACT", without the rest.
static std::string bareFact(const std::string &message) {
  const size_t column = message.find("column ");
  const size_t colon = column == std::string::npos ? column : message.find(": ", column);
  return colon == std::string::npos ? message : message.substr(colon + 2);
}

Result<JsonDocument> JsonDocument::parse(std::string path, std::string text, int64_t firstLine) {
  JsonDocument document;
  document.path = std::move(path);
  document.text = std::move(text);
  document.firstLine = firstLine;
  document.value = nlohmann::json::parse(document.text, nullptr, /*allow_exceptions=*/false);
  if (!document.value.is_discarded())
    return document;
  ErrorFinder finder;
  nlohmann::json::sax_parse(document.text, &finder);
  const size_t offset = finder.position == 0 ? 0 : finder.position - 1;
  return Failure{concat(placeOf(document.path, document.text, offset, firstLine), ": error: ", bareFact(finder.fact))};
}

Failure JsonDocument::failure(std::span<const JsonStep> steps, std::string_view fact) const {
  Scanner scanner(text);
  for (const JsonStep &step : steps)
    if (!scanner.enter(step))
      break;
  return Failure{concat(placeOf(path, text, scanner.offset(), firstLine), ": error: ", fact)};
}

} // namespace mcc::runtime
