// Typed reads of one config.json object that remember what was read and what went wrong first.
//
// Getters never fail: after the first error, or where a key is absent, they return the fallback, and the importer
// asks `takeError()` once at the end. A key may be given as alternatives, "n_embd|hidden_size": the first one present
// counts.
#pragma once

#include "compiler/Support/LocatedJson.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

#include <optional>
#include <string>
#include <vector>

namespace mcc {

class ConfigReader {
public:
  ConfigReader(const JsonDocument &document, const JsonValue &object) : document(document), object(object) {}

  /// Returns the member of the first alternative that is present, null-valued or not; marks it read.
  const JsonMember *find(llvm::StringRef keys);
  /// Whether one of the alternatives is present and not null; marks nothing.
  bool has(llvm::StringRef keys) const;

  /// Each returns `fallback` where the key is absent. Null counts as absent only for `flag`, where it is false.
  int64_t integer(llvm::StringRef keys, int64_t fallback, int64_t low = 0);
  double number(llvm::StringRef keys, double fallback);
  bool flag(llvm::StringRef keys, bool fallback);
  std::string text(llvm::StringRef keys, llvm::StringRef fallback);
  /// As above for keys that may be null: absent gives `fallback`, null gives nothing.
  std::optional<int64_t> optionalInteger(llvm::StringRef keys, std::optional<int64_t> fallback, int64_t low = 0);
  std::optional<double> optionalNumber(llvm::StringRef keys, std::optional<double> fallback);
  /// Lists; nothing where absent or null.
  std::optional<std::vector<std::string>> texts(llvm::StringRef keys);
  std::optional<std::vector<double>> numbers(llvm::StringRef keys);
  std::optional<std::vector<int64_t>> integers(llvm::StringRef keys);

  /// The values that a text may have and what they stand for; an unknown one is an error that lists and suggests.
  template <typename E>
  struct Choice {
    llvm::StringRef name;
    E value;
  };
  template <typename E>
  E choice(llvm::StringRef keys, llvm::StringRef fallback, llvm::ArrayRef<Choice<E>> choices) {
    std::string name = text(keys, fallback);
    std::vector<llvm::StringRef> names;
    for (const Choice<E> &entry : choices) {
      if (entry.name == name)
        return entry.value;
      names.push_back(entry.name);
    }
    unknownName(keys, name, names);
    return choices.front().value;
  }

  /// A reader of a nested object; `report` and reads of it count as this reader's. Null where absent or null.
  std::optional<ConfigReader> nested(llvm::StringRef keys);

  /// Refuses the config for what `keys` says: "field 'x' WHAT", at the key's place, or the object's where absent.
  template <typename... Args>
  void refuse(llvm::StringRef keys, const char *format, Args &&...args) {
    report(keys, llvm::formatv(format, std::forward<Args>(args)...).str());
  }
  /// Refuses a flag that is true, or a number that is not `neutral`: a feature that is not understood.
  void requireFalse(llvm::StringRef keys);
  void requireNumber(llvm::StringRef keys, double neutral);

  bool failed() const { return error.has_value(); }
  llvm::Error takeError();
  /// Takes over the first error of a nested reader.
  void adopt(const ConfigReader &other);

  /// Marks keys as read.
  void ignore(llvm::ArrayRef<llvm::StringRef> keys);
  /// Members that nobody has read.
  std::vector<const JsonMember *> unread() const;
  /// Every key that was asked for, present or not.
  std::vector<llvm::StringRef> asked() const;

  const JsonDocument &document;
  const JsonValue &object;

private:
  std::string path;
  llvm::StringSet<> askedKeys;
  std::optional<std::pair<std::string, std::string>> error;

  std::string pathOf(llvm::StringRef keys) const;
  void report(llvm::StringRef keys, std::string what);
  void fail(uint64_t offset, std::string what);
  void wrongType(llvm::StringRef key, const JsonValue &value, llvm::StringRef expected);
  void unknownName(llvm::StringRef keys, llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> names);
  const JsonMember *lookup(llvm::StringRef keys) const;
  std::optional<double> toNumber(const JsonValue &value) const;
};

} // namespace mcc
