// Reading the objects of a tokenizer.json: every field is taken once, and what is left over is refused by name.
#pragma once

#include "compiler/Support/Error.h"
#include "compiler/Support/LocatedJson.h"
#include "compiler/Support/Suggest.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>

namespace mcc {

/// The first thing wrong in a document; later ones are not recorded.
class JsonProblem {
public:
  explicit JsonProblem(const JsonDocument &document) : document(document) {}
  /// Records a problem at `offset`; returns false.
  template <typename... Args>
  bool fail(uint64_t offset, const char *format, Args &&...args) {
    if (!text)
      where = document.where(offset), text = llvm::formatv(format, std::forward<Args>(args)...).str();
    return false;
  }
  bool ok() const { return !text; }
  llvm::Error take() { return text ? diagnose(where, "{0}", *text) : llvm::Error::success(); }
  const JsonDocument &document;

private:
  std::string where;
  std::optional<std::string> text;
};

/// The fields of one object. A missing or mistyped field is a problem unless a default is given; null counts as missing.
class JsonFields {
public:
  /// `what` names the object in messages.
  JsonFields(JsonProblem &problem, const JsonValue &value, std::string what)
      : problem(problem), value(value), what(std::move(what)) {
    if (!value.isObject())
      problem.fail(value.offset, "{0} is {1}; expected is an object", this->what, describeKind(value));
  }

  /// Returns the field's value, or null where it is missing or null.
  const JsonValue *find(llvm::StringRef key) {
    taken.push_back(key);
    const JsonMember *member = value.find(key);
    return member && !member->value.isNull() ? &member->value : nullptr;
  }
  const JsonValue *require(llvm::StringRef key) {
    const JsonValue *found = find(key);
    if (!found)
      problem.fail(value.offset, "{0} has no field '{1}'", what, key);
    return found;
  }
  std::string text(llvm::StringRef key, std::optional<std::string> otherwise = std::nullopt) {
    const JsonValue *found = otherwise ? find(key) : require(key);
    if (found && !found->isString())
      mistyped(*found, key, "a string");
    return found ? found->string : otherwise.value_or("");
  }
  bool flag(llvm::StringRef key, std::optional<bool> otherwise = std::nullopt) {
    const JsonValue *found = otherwise ? find(key) : require(key);
    if (found && found->kind != JsonValue::Kind::Bool)
      mistyped(*found, key, "true or false");
    return found ? found->boolean : otherwise.value_or(false);
  }
  /// A whole number from 0 to `most`.
  uint32_t number(llvm::StringRef key, uint32_t most, std::optional<uint32_t> otherwise = std::nullopt) {
    const JsonValue *found = otherwise ? find(key) : require(key);
    if (found && (found->kind != JsonValue::Kind::Integer || found->integer < 0 || found->integer > int64_t(most))) {
      problem.fail(found->offset, "'{0}' is {1}; expected is a whole number from 0 to {2}", key,
                   problem.document.quoted(*found), most);
      return 0;
    }
    return found ? uint32_t(found->integer) : otherwise.value_or(0);
  }
  /// Returns the elements of an array; an empty list where it is missing and may be.
  const std::vector<JsonValue> &array(llvm::StringRef key, bool required = true) {
    static const std::vector<JsonValue> none;
    const JsonValue *found = required ? require(key) : find(key);
    if (found && !found->isArray())
      mistyped(*found, key, "an array");
    return found ? found->elements : none;
  }
  /// Accepts a field without looking at it.
  void ignore(llvm::StringRef key) { taken.push_back(key); }
  /// Refuses every field not asked for; returns whether all is well.
  bool done() {
    for (const JsonMember &member : value.members)
      if (!llvm::is_contained(taken, member.key))
        problem.fail(member.offset, "{0} has the unknown field '{1}'{2}", what, member.key,
                     suggestName(member.key, taken));
    return problem.ok();
  }
  bool mistyped(const JsonValue &found, llvm::StringRef key, llvm::StringRef expected) {
    return problem.fail(found.offset, "'{0}' is {1}; expected is {2}", key, describeKind(found), expected);
  }

  JsonProblem &problem;
  const JsonValue &value;
  const std::string what;

private:
  llvm::SmallVector<llvm::StringRef, 12> taken;
};

} // namespace mcc
