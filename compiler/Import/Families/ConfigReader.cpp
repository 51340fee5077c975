// See ConfigReader.h. Every message has the form "field 'PATH' is VALUE; expected ...", at the value's place.
#include "compiler/Import/Families/ConfigReader.h"

#include "compiler/Support/Error.h"
#include "compiler/Support/Suggest.h"

#include <algorithm>
#include <limits>

namespace mcc {

static constexpr int64_t maxInteger = int64_t(1) << 40;

const JsonMember *ConfigReader::lookup(llvm::StringRef keys) const {
  while (!keys.empty()) {
    auto [key, rest] = keys.split('|');
    if (const JsonMember *member = object.find(key))
      return member;
    keys = rest;
  }
  return nullptr;
}

const JsonMember *ConfigReader::find(llvm::StringRef keys) {
  for (llvm::StringRef rest = keys; !rest.empty();) {
    auto [key, next] = rest.split('|');
    askedKeys.insert(key);
    rest = next;
  }
  return lookup(keys);
}

bool ConfigReader::has(llvm::StringRef keys) const {
  const JsonMember *member = lookup(keys);
  return member && !member->value.isNull();
}

std::string ConfigReader::pathOf(llvm::StringRef keys) const {
  const JsonMember *member = lookup(keys);
  return path + (member ? member->key : keys.split('|').first.str());
}

void ConfigReader::fail(uint64_t offset, std::string what) {
  if (!error)
    error = {document.where(offset), std::move(what)};
}

void ConfigReader::report(llvm::StringRef keys, std::string what) {
  const JsonMember *member = lookup(keys);
  fail(member ? member->value.offset : object.offset, "field '" + pathOf(keys) + "' " + what);
}

void ConfigReader::wrongType(llvm::StringRef key, const JsonValue &value, llvm::StringRef expected) {
  fail(value.offset, "field '" + path + key.str() + "' is " + document.quoted(value) + "; expected " + expected.str());
}

void ConfigReader::unknownName(llvm::StringRef keys, llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> names) {
  report(keys, "is " + quoteJson(name.take_front(60)) + ", which is not supported; known are " + quotedList(names) +
                   suggestName(name, names));
}

std::optional<double> ConfigReader::toNumber(const JsonValue &value) const {
  if (value.isNumber())
    return value.real;
  // transformers 5 writes an infinite float as {"__float__": "Infinity"}.
  const JsonMember *member = value.isObject() ? value.find("__float__") : nullptr;
  if (member && member->value.string == "Infinity")
    return std::numeric_limits<double>::infinity();
  if (member && member->value.string == "-Infinity")
    return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::optional<int64_t> ConfigReader::optionalInteger(llvm::StringRef keys, std::optional<int64_t> fallback,
                                                     int64_t low) {
  const JsonMember *member = find(keys);
  if (!member || failed())
    return fallback;
  if (member->value.isNull())
    return std::nullopt;
  // Python takes 4096.0 for 4096 nowhere, but some published files spell integers so.
  const JsonValue &value = member->value;
  bool whole = value.isNumber() && value.real == double(int64_t(std::clamp(value.real, -1e15, 1e15)));
  if (!whole) {
    wrongType(member->key, value, "an integer");
    return fallback;
  }
  int64_t number = value.kind == JsonValue::Kind::Integer ? value.integer : int64_t(value.real);
  if (number < low || number > maxInteger) {
    wrongType(member->key, value, llvm::formatv("at least {0} and at most {1}", low, maxInteger).str());
    return fallback;
  }
  return number;
}

int64_t ConfigReader::integer(llvm::StringRef keys, int64_t fallback, int64_t low) {
  if (const JsonMember *member = find(keys); member && member->value.isNull())
    wrongType(member->key, member->value, "an integer");
  return optionalInteger(keys, fallback, low).value_or(fallback);
}

std::optional<double> ConfigReader::optionalNumber(llvm::StringRef keys, std::optional<double> fallback) {
  const JsonMember *member = find(keys);
  if (!member || failed())
    return fallback;
  if (member->value.isNull())
    return std::nullopt;
  std::optional<double> number = toNumber(member->value);
  if (!number)
    wrongType(member->key, member->value, "a number");
  return number ? number : fallback;
}

double ConfigReader::number(llvm::StringRef keys, double fallback) {
  if (const JsonMember *member = find(keys); member && member->value.isNull())
    wrongType(member->key, member->value, "a number");
  return optionalNumber(keys, fallback).value_or(fallback);
}

bool ConfigReader::flag(llvm::StringRef keys, bool fallback) {
  const JsonMember *member = find(keys);
  if (!member || failed())
    return fallback;
  if (member->value.isNull())
    return false;
  if (member->value.kind != JsonValue::Kind::Bool) {
    wrongType(member->key, member->value, "true or false");
    return fallback;
  }
  return member->value.boolean;
}

std::string ConfigReader::text(llvm::StringRef keys, llvm::StringRef fallback) {
  const JsonMember *member = find(keys);
  if (!member || failed())
    return fallback.str();
  if (!member->value.isString()) {
    wrongType(member->key, member->value, "a string");
    return fallback.str();
  }
  return member->value.string;
}

std::optional<std::vector<std::string>> ConfigReader::texts(llvm::StringRef keys) {
  const JsonMember *member = find(keys);
  if (!member || member->value.isNull() || failed())
    return std::nullopt;
  if (!member->value.isArray()) {
    wrongType(member->key, member->value, "an array of strings");
    return std::nullopt;
  }
  std::vector<std::string> list;
  for (const JsonValue &element : member->value.elements) {
    if (!element.isString())
      wrongType(member->key + "[" + std::to_string(list.size()) + "]", element, "a string");
    list.push_back(element.string);
  }
  return list;
}

std::optional<std::vector<double>> ConfigReader::numbers(llvm::StringRef keys) {
  const JsonMember *member = find(keys);
  if (!member || member->value.isNull() || failed())
    return std::nullopt;
  if (!member->value.isArray()) {
    wrongType(member->key, member->value, "an array of numbers");
    return std::nullopt;
  }
  std::vector<double> list;
  for (const JsonValue &element : member->value.elements) {
    std::optional<double> number = toNumber(element);
    if (!number)
      wrongType(member->key + "[" + std::to_string(list.size()) + "]", element, "a number");
    list.push_back(number.value_or(0));
  }
  return list;
}

std::optional<std::vector<int64_t>> ConfigReader::integers(llvm::StringRef keys) {
  const JsonMember *member = find(keys);
  if (!member || member->value.isNull() || failed())
    return std::nullopt;
  if (!member->value.isArray()) {
    wrongType(member->key, member->value, "an array of integers");
    return std::nullopt;
  }
  std::vector<int64_t> list;
  for (const JsonValue &element : member->value.elements) {
    if (element.kind != JsonValue::Kind::Integer)
      wrongType(member->key + "[" + std::to_string(list.size()) + "]", element, "an integer");
    list.push_back(element.integer);
  }
  return list;
}

std::optional<ConfigReader> ConfigReader::nested(llvm::StringRef keys) {
  const JsonMember *member = find(keys);
  if (!member || member->value.isNull() || failed())
    return std::nullopt;
  if (!member->value.isObject()) {
    wrongType(member->key, member->value, "an object");
    return std::nullopt;
  }
  ConfigReader inner(document, member->value);
  inner.path = path + member->key + ".";
  return inner;
}

void ConfigReader::requireFalse(llvm::StringRef keys) {
  if (flag(keys, false))
    report(keys, "is true, which is not supported");
}

void ConfigReader::requireNumber(llvm::StringRef keys, double neutral) {
  double value = optionalNumber(keys, neutral).value_or(neutral);
  if (value != neutral)
    report(keys, "is " + printNumber(value) + "; only " + printNumber(neutral) + " is supported");
}

llvm::Error ConfigReader::takeError() {
  return error ? diagnose(error->first, "{0}", error->second) : llvm::Error::success();
}

void ConfigReader::adopt(const ConfigReader &other) {
  if (!error)
    error = other.error;
}

void ConfigReader::ignore(llvm::ArrayRef<llvm::StringRef> keys) {
  for (llvm::StringRef key : keys)
    askedKeys.insert(key);
}

std::vector<const JsonMember *> ConfigReader::unread() const {
  std::vector<const JsonMember *> members;
  for (const JsonMember &member : object.members)
    if (!askedKeys.contains(member.key))
      members.push_back(&member);
  return members;
}

std::vector<llvm::StringRef> ConfigReader::asked() const {
  std::vector<llvm::StringRef> keys(askedKeys.keys().begin(), askedKeys.keys().end());
  llvm::sort(keys);
  return keys;
}

} // namespace mcc
