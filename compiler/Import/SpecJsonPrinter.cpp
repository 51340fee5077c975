// Prints a ModelSpec as JSON, and the JSON Schema of that form, by walking the field lists of SpecFields.h.
//
// An object or array stands on one line where it fits in 100 columns and holds no other that does not; `tensors`
// always takes a line per name. Fields at their default are left out, so that a printed spec shows what is special
// about the model. `layers` is printed as its smallest period, repeated, and the rest.
#include "compiler/Import/SpecFields.h"
#include "compiler/Import/SpecJson.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <type_traits>

namespace mcc {

using namespace specjson;

static constexpr size_t lineWidth = 100;

/// Joins rendered items between brackets, on one line where they fit at `indent`.
static std::string bracket(char open, char close, const std::vector<std::string> &items, size_t indent,
                           bool alwaysBreak = false) {
  size_t length = indent + 2;
  for (const std::string &item : items) {
    length += item.size() + 2;
    alwaysBreak |= item.find('\n') != std::string::npos;
  }
  if (items.empty() || (!alwaysBreak && length <= lineWidth))
    return open + llvm::join(items, ", ") + close;
  std::string pad = "\n" + std::string(indent + 2, ' ');
  return open + pad + llvm::join(items, "," + pad) + "\n" + std::string(indent, ' ') + close;
}

static std::string member(llvm::StringRef name, const std::string &value) { return quoteJson(name) + ": " + value; }

//===-- Specs ---------------------------------------------------------------------------------------------------===//

static std::string render(bool value, size_t) { return value ? "true" : "false"; }
static std::string render(int64_t value, size_t) { return std::to_string(value); }
static std::string render(int32_t value, size_t) { return std::to_string(value); }
static std::string render(double value, size_t) { return printNumber(value); }
static std::string render(const std::string &value, size_t) { return quoteJson(value); }
static std::string render(Format value, size_t) { return quoteJson(formatInfo(value).name); }

template <typename E>
  requires std::is_enum_v<E>
static std::string render(E value, size_t) {
  for (const auto &entry : enumNames(Tag<E>{}))
    if (entry.value == value)
      return quoteJson(entry.name);
  llvm_unreachable("every enumerator has a name");
}

template <typename S>
  requires std::is_class_v<S>
static std::string render(const S &value, size_t indent);

template <typename T>
static std::string render(const std::optional<T> &value, size_t indent) {
  return value ? render(*value, indent) : "null";
}

template <typename T>
static std::string render(const std::vector<T> &value, size_t indent) {
  std::vector<std::string> items;
  for (const T &element : value)
    items.push_back(render(element, indent + 2));
  return bracket('[', ']', items, indent);
}

static std::string render(const std::map<std::string, std::string> &value, size_t indent) {
  std::vector<std::string> items;
  for (const auto &[key, text] : value)
    items.push_back(member(key, quoteJson(text)));
  return bracket('{', '}', items, indent, /*alwaysBreak=*/true);
}

/// Returns the smallest p such that the list repeats after p elements, or its size.
static size_t smallestPeriod(const std::vector<int32_t> &list) {
  for (size_t period = 1; 2 * period <= list.size(); ++period) {
    size_t i = period;
    while (i < list.size() && list[i] == list[i - period])
      ++i;
    if (i == list.size())
      return period;
  }
  return list.size();
}

static std::string renderLayers(const ModelSpec &spec, size_t indent) {
  auto name = [&](size_t layer) { return quoteJson(spec.block(layer).name); };
  std::vector<std::string> items, repeated;
  size_t period = smallestPeriod(spec.layers), done = 0;
  if (period < spec.layers.size()) {
    size_t times = spec.layers.size() / period;
    for (size_t i = 0; i < period; ++i)
      repeated.push_back(name(i));
    items.push_back(bracket(
        '{', '}', {member("repeat", bracket('[', ']', repeated, indent + 4)), member("times", std::to_string(times))},
        indent + 2));
    done = times * period;
  }
  for (; done < spec.layers.size(); ++done)
    items.push_back(name(done));
  return bracket('[', ']', items, indent);
}

namespace {

template <typename S>
struct FieldPrinter {
  const S &value;
  size_t indent;
  std::vector<std::string> items;
  S defaults = {};

  template <typename T>
  void operator()(llvm::StringRef name, T S::*field, Limits limits, const char *) {
    if (limits.required || limits.shown || !(value.*field == defaults.*field))
      items.push_back(member(name, render(value.*field, indent + 2)));
  }
  template <typename M>
  void layers(llvm::StringRef name, M, const char *) {
    if constexpr (std::is_same_v<S, ModelSpec>)
      items.push_back(member(name, renderLayers(value, indent + 2)));
  }
};

} // namespace

template <typename S>
  requires std::is_class_v<S>
static std::string render(const S &value, size_t indent) {
  FieldPrinter<S> printer{value, indent, {}};
  describeFields(printer, Tag<S>{});
  return bracket('{', '}', printer.items, indent);
}

std::string printSpec(const ModelSpec &spec) {
  FieldPrinter<ModelSpec> printer{spec, 0, {member("kind", "\"decoder\"")}};
  describeFields(printer, Tag<ModelSpec>{});
  return bracket('{', '}', printer.items, 0, /*alwaysBreak=*/true) + "\n";
}

//===-- Sizes ---------------------------------------------------------------------------------------------------===//

static std::string grouped(int64_t value) {
  std::string digits = std::to_string(value), text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0)
      text += ',';
    text += digits[i];
  }
  return text;
}

std::string describeSize(const ModelSpec &spec) {
  ModelSize size = modelSize(spec);
  std::string text = "parameters: " + grouped(size.parameters) + "\n";
  if (size.activeParameters != size.parameters)
    text += "parameters read per token: " + grouped(size.activeParameters) + "\n";
  for (Format format : {Format::F32, Format::F16, Format::BF16, Format::Q8_0, Format::Q4_0})
    text += llvm::formatv("bytes as {0}: {1}{2}\n", formatInfo(format).name, grouped(weightBytes(spec, format)),
                          format == spec.dtype && !spec.quantization ? " (as stored)" : "");
  // 4 and 2: caches of f32 and of f16.
  text += llvm::formatv("cache bytes per position: {0} as f32, {1} as f16\n", grouped(4 * size.cacheElems),
                        grouped(2 * size.cacheElems));
  if (size.windowedCacheElems != 0)
    text += llvm::formatv("of these within a window: {0} as f32, {1} as f16\n", grouped(4 * size.windowedCacheElems),
                          grouped(2 * size.windowedCacheElems));
  if (size.stateElems != 0)
    text += llvm::formatv("state bytes per sequence: {0} as f32\n", grouped(4 * size.stateElems));
  return text;
}

//===-- Schema --------------------------------------------------------------------------------------------------===//

namespace {

/// Renders the schema of one type: the keywords that say what the value may be.
class SchemaWriter {
public:
  std::string run() {
    std::vector<std::string> root = objectKeywords<ModelSpec>(/*isRoot=*/true);
    std::vector<std::string> definitions;
    for (const auto &[name, text] : defined)
      definitions.push_back(member(name, text));
    std::vector<std::string> items = {member("$schema", "\"https://json-schema.org/draft/2020-12/schema\""),
                                      member("title", "\"mcc decoder spec\""),
                                      member("$defs", bracket('{', '}', definitions, 2, true))};
    items.insert(items.end(), root.begin(), root.end());
    return bracket('{', '}', items, 0, true) + "\n";
  }

private:
  std::map<std::string, std::string> defined;

  template <typename S>
  struct Properties {
    SchemaWriter &writer;
    std::vector<std::string> items, required;
    S defaults = {};
    template <typename T>
    void operator()(llvm::StringRef name, T S::*field, Limits limits, const char *doc) {
      std::vector<std::string> keywords = writer.keywords(static_cast<const T *>(nullptr), limits);
      if (limits.required)
        required.push_back(quoteJson(name));
      else if constexpr (!std::is_class_v<T>)
        keywords.push_back(member("default", render(defaults.*field, 0)));
      keywords.push_back(member("description", quoteJson(doc)));
      items.push_back(member(name, bracket('{', '}', keywords, 8)));
    }
    template <typename M>
    void layers(llvm::StringRef name, M, const char *doc) {
      std::string names = "{\"type\": \"array\", \"items\": {\"type\": \"string\"}}";
      std::string repeat =
          "{\"type\": \"object\", \"properties\": {\"repeat\": " + names +
          ", \"times\": {\"type\": \"integer\", \"minimum\": 1}}, \"required\": [\"repeat\", \"times\"], "
          "\"additionalProperties\": false}";
      required.push_back(quoteJson(name));
      std::string either = bracket('[', ']', {"{\"type\": \"string\"}", repeat}, 12);
      items.push_back(member(name, bracket('{', '}',
                                           {member("type", "\"array\""), member("items", "{\"anyOf\": " + either + "}"),
                                            member("description", quoteJson(doc))},
                                           8)));
    }
  };

  template <typename S>
  std::vector<std::string> objectKeywords(bool isRoot) {
    Properties<S> properties{*this, {}, {}};
    if (isRoot) {
      properties.items.push_back(member("kind", "{\"const\": \"decoder\"}"));
      properties.required.push_back("\"kind\"");
    }
    describeFields(properties, Tag<S>{});
    size_t indent = isRoot ? 0 : 4;
    std::vector<std::string> items = {member("type", "\"object\""),
                                      member("properties", bracket('{', '}', properties.items, indent + 2, true))};
    if (!properties.required.empty())
      items.push_back(member("required", bracket('[', ']', properties.required, indent + 2)));
    items.push_back(member("additionalProperties", "false"));
    return items;
  }

  std::vector<std::string> keywords(const bool *, Limits) { return {member("type", "\"boolean\"")}; }
  std::vector<std::string> keywords(const std::string *, Limits) { return {member("type", "\"string\"")}; }
  std::vector<std::string> number(llvm::StringRef type, Limits limits) {
    std::vector<std::string> result = {member("type", quoteJson(type))};
    result.push_back(member(limits.lowExcluded ? "exclusiveMinimum" : "minimum", printNumber(limits.low)));
    result.push_back(member("maximum", printNumber(limits.high)));
    return result;
  }
  std::vector<std::string> keywords(const int64_t *, Limits limits) { return number("integer", limits); }
  std::vector<std::string> keywords(const int32_t *, Limits limits) { return number("integer", limits); }
  std::vector<std::string> keywords(const double *, Limits limits) { return number("number", limits); }

  std::vector<std::string> keywords(const Format *, Limits) {
    std::vector<std::string> names;
#define MCC_FORMAT(enumerator, text, elems, bytes, ggufId) names.push_back(quoteJson(text));
#include "kernels/FormatTable.def"
    return {member("enum", bracket('[', ']', names, 10))};
  }
  template <typename E>
    requires std::is_enum_v<E>
  std::vector<std::string> keywords(const E *, Limits) {
    std::vector<std::string> names;
    for (const auto &entry : enumNames(Tag<E>{}))
      names.push_back(quoteJson(entry.name));
    return {member("enum", bracket('[', ']', names, 10))};
  }

  template <typename T>
  std::vector<std::string> keywords(const std::optional<T> *, Limits limits) {
    std::string inner = bracket('{', '}', keywords(static_cast<const T *>(nullptr), limits), 10);
    return {member("anyOf", "[" + inner + ", {\"type\": \"null\"}]")};
  }
  template <typename T>
  std::vector<std::string> keywords(const std::vector<T> *, Limits limits) {
    return {member("type", "\"array\""),
            member("items", bracket('{', '}', keywords(static_cast<const T *>(nullptr), limits), 10))};
  }
  std::vector<std::string> keywords(const std::map<std::string, std::string> *, Limits) {
    return {member("type", "\"object\""), member("additionalProperties", "{\"type\": \"string\"}")};
  }
  template <typename S>
    requires std::is_class_v<S>
  std::vector<std::string> keywords(const S *, Limits) {
    std::string name = nameOf(Tag<S>{});
    if (!defined.count(name)) {
      defined[name] = "";
      defined[name] = bracket('{', '}', objectKeywords<S>(/*isRoot=*/false), 4, true);
    }
    return {member("$ref", quoteJson("#/$defs/" + name))};
  }

  static std::string nameOf(Tag<NormSpec>) { return "norm"; }
  static std::string nameOf(Tag<RopeSpec>) { return "rope"; }
  static std::string nameOf(Tag<AlibiSpec>) { return "alibi"; }
  static std::string nameOf(Tag<LatentSpec>) { return "latent"; }
  static std::string nameOf(Tag<AttentionSpec>) { return "attention"; }
  static std::string nameOf(Tag<MlpSpec>) { return "mlp"; }
  static std::string nameOf(Tag<MoeSpec>) { return "moe"; }
  static std::string nameOf(Tag<MambaSpec>) { return "mamba"; }
  static std::string nameOf(Tag<Mamba2Spec>) { return "mamba2"; }
  static std::string nameOf(Tag<ShortConvSpec>) { return "short_conv"; }
  static std::string nameOf(Tag<DeltaNetSpec>) { return "delta_net"; }
  static std::string nameOf(Tag<QuantizationSpec>) { return "quantization"; }
  static std::string nameOf(Tag<BlockSpec>) { return "block"; }
};

} // namespace

std::string specSchema() { return SchemaWriter().run(); }

} // namespace mcc
