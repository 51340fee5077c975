// Reads mcc's spec JSON into a ModelSpec by walking the field lists of SpecFields.h.
//
// The first error stops the walk: it is kept with its place, and everything after it is skipped. `path` is the path of
// the value being read, as messages name it. `layers` names blocks, so it is resolved after the rest.
#include "compiler/Import/SpecFields.h"
#include "compiler/Import/SpecJson.h"
#include "compiler/Support/Error.h"
#include "compiler/Support/Suggest.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <type_traits>

namespace mcc {

using namespace specjson;

static constexpr uint64_t maxLayers = 1 << 16;

namespace {

/// Collects the names of a struct's fields.
struct NameCollector {
  std::vector<llvm::StringRef> names;
  template <typename M>
  void operator()(llvm::StringRef name, M, Limits, const char *) {
    names.push_back(name);
  }
  template <typename M>
  void layers(llvm::StringRef name, M, const char *) {
    names.push_back(name);
  }
};

class Reader {
public:
  explicit Reader(const JsonDocument &document) : document(document) {}

  llvm::Expected<ModelSpec> run() {
    ModelSpec spec;
    readKind();
    if (!failed)
      readStruct(document.root, spec, "kind");
    if (!failed)
      resolveLayers(spec);
    if (!failed)
      if (auto problem = findProblem(spec))
        fail(locate(problem->field), llvm::formatv("field '{0}' {1}", problem->field, problem->what));
    if (failed)
      return diagnose(where, "{0}", what);
    return spec;
  }

private:
  const JsonDocument &document;
  std::string path;
  bool failed = false;
  std::string where, what;

  void fail(uint64_t offset, std::string text) {
    if (failed)
      return;
    failed = true;
    where = document.where(offset);
    what = std::move(text);
  }
  void expected(const JsonValue &value, llvm::StringRef kind) {
    bool bare = value.isNull() || value.kind == JsonValue::Kind::Bool || value.isArray() || value.isObject();
    fail(value.offset, llvm::formatv("field '{0}' is {1}{2}; expected {3}", path, describeKind(value),
                                     bare ? "" : ", " + document.quoted(value), kind));
  }

  void readKind() {
    if (!document.root.isObject())
      return fail(document.root.offset, ("a spec is an object; found " + describeKind(document.root)).str());
    const JsonMember *kind = document.root.find("kind");
    if (!kind)
      return fail(document.root.offset, "field 'kind' is missing; expected \"decoder\"");
    if (!kind->value.isString() || kind->value.string != "decoder")
      fail(kind->value.offset, "field 'kind' is " + document.quoted(kind->value) + "; expected \"decoder\"");
  }

  /// Runs `read` with `suffix` added to the path.
  template <typename F>
  void within(const std::string &suffix, F read) {
    size_t length = path.size();
    path += suffix;
    read();
    path.resize(length);
  }
  void withinField(llvm::StringRef name, llvm::function_ref<void()> read) {
    within((path.empty() ? "" : ".") + name.str(), read);
  }

  template <typename S>
  void readStruct(const JsonValue &value, S &out, llvm::StringRef alsoKnown = "") {
    if (!value.isObject())
      return expected(value, "an object");
    NameCollector known;
    describeFields(known, Tag<S>{});
    for (const JsonMember &member : value.members)
      if (member.key != alsoKnown && !llvm::is_contained(known.names, member.key))
        return withinField(member.key, [&] {
          fail(member.offset, "unknown field '" + path + "'" + suggestName(member.key, known.names));
        });
    FieldReader<S> fields{*this, value, out};
    describeFields(fields, Tag<S>{});
  }

  template <typename S>
  struct FieldReader {
    Reader &reader;
    const JsonValue &object;
    S &out;
    template <typename T>
    void operator()(llvm::StringRef name, T S::*member, Limits limits, const char *) {
      if (reader.failed)
        return;
      const JsonMember *found = object.find(name);
      reader.withinField(name, [&] {
        if (found)
          reader.read(found->value, out.*member, limits);
        else if (limits.required)
          reader.fail(object.offset, "field '" + reader.path + "' is missing");
      });
    }
    template <typename M>
    void layers(llvm::StringRef name, M, const char *) {
      if (!object.find(name))
        reader.fail(object.offset, "field '" + name.str() + "' is missing");
    }
  };

  void read(const JsonValue &value, bool &out, Limits) {
    if (value.kind != JsonValue::Kind::Bool)
      return expected(value, "true or false");
    out = value.boolean;
  }

  void read(const JsonValue &value, std::string &out, Limits) {
    if (!value.isString())
      return expected(value, "a string");
    out = value.string;
  }

  bool inRange(const JsonValue &value, Limits limits) {
    double number = value.real;
    if ((limits.lowExcluded ? number > limits.low : number >= limits.low) && number <= limits.high)
      return true;
    fail(value.offset, llvm::formatv("field '{0}' is {1}; expected {2} {3} and at most {4}", path,
                                     document.quoted(value), limits.lowExcluded ? "more than" : "at least",
                                     printNumber(limits.low), printNumber(limits.high)));
    return false;
  }

  template <typename T>
    requires(std::is_same_v<T, int64_t> || std::is_same_v<T, int32_t>)
  void read(const JsonValue &value, T &out, Limits limits) {
    if (value.kind != JsonValue::Kind::Integer)
      return expected(value, "an integer");
    if (inRange(value, limits))
      out = static_cast<T>(value.integer);
  }

  void read(const JsonValue &value, double &out, Limits limits) {
    if (!value.isNumber())
      return expected(value, "a number");
    if (inRange(value, limits))
      out = value.real;
  }

  void unknownName(const JsonValue &value, llvm::ArrayRef<llvm::StringRef> names) {
    fail(value.offset, llvm::formatv("field '{0}' is {1}; expected {2}{3}", path, document.quoted(value),
                                     "one of " + quotedList(names), suggestName(value.string, names)));
  }

  template <typename E>
    requires std::is_enum_v<E>
  void read(const JsonValue &value, E &out, Limits) {
    if (!value.isString())
      return expected(value, "a string");
    std::vector<llvm::StringRef> names;
    for (const auto &entry : enumNames(Tag<E>{})) {
      if (entry.name == value.string) {
        out = entry.value;
        return;
      }
      names.push_back(entry.name);
    }
    unknownName(value, names);
  }

  void read(const JsonValue &value, Format &out, Limits) {
    if (!value.isString())
      return expected(value, "a string");
    if (std::optional<Format> format = parseFormat(value.string)) {
      out = *format;
      return;
    }
    std::vector<llvm::StringRef> names;
#define MCC_FORMAT(enumerator, text, elems, bytes, ggufId) names.push_back(text);
#include "kernels/FormatTable.def"
    unknownName(value, names);
  }

  template <typename T>
  void read(const JsonValue &value, std::optional<T> &out, Limits limits) {
    if (value.isNull()) {
      out.reset();
      return;
    }
    read(value, out.emplace(), limits);
  }

  template <typename T>
  void read(const JsonValue &value, std::vector<T> &out, Limits limits) {
    if (!value.isArray())
      return expected(value, "an array");
    out.clear();
    for (size_t i = 0; i < value.elements.size() && !failed; ++i)
      within("[" + std::to_string(i) + "]", [&] { read(value.elements[i], out.emplace_back(), limits); });
  }

  void read(const JsonValue &value, std::map<std::string, std::string> &out, Limits limits) {
    if (!value.isObject())
      return expected(value, "an object");
    out.clear();
    for (const JsonMember &member : value.members)
      withinField(member.key, [&] { read(member.value, out[member.key], limits); });
  }

  template <typename S>
    requires std::is_class_v<S>
  void read(const JsonValue &value, S &out, Limits) {
    readStruct(value, out);
  }

  void resolveLayers(ModelSpec &spec) {
    path = "layers";
    const JsonValue &value = document.root.find("layers")->value;
    if (!value.isArray())
      return expected(value, "an array");
    for (size_t i = 0; i < value.elements.size() && !failed; ++i)
      within("[" + std::to_string(i) + "]", [&] {
        const JsonValue &element = value.elements[i];
        if (element.isObject())
          repeatLayers(spec, element);
        else
          addLayer(spec, element);
      });
  }

  void addLayer(ModelSpec &spec, const JsonValue &value) {
    if (!value.isString())
      return expected(value, "the name of a block, or {\"repeat\": [names], \"times\": n}");
    std::vector<llvm::StringRef> names;
    for (size_t i = 0; i < spec.blocks.size(); ++i) {
      if (spec.blocks[i].name == value.string) {
        if (spec.layers.size() >= maxLayers)
          return fail(value.offset, llvm::formatv("more than {0} layers", maxLayers));
        spec.layers.push_back(static_cast<int32_t>(i));
        return;
      }
      names.push_back(spec.blocks[i].name);
    }
    fail(value.offset, llvm::formatv("field '{0}' is {1}; no block has that name{2}", path, document.quoted(value),
                                     suggestName(value.string, names)));
  }

  void repeatLayers(ModelSpec &spec, const JsonValue &value) {
    static constexpr llvm::StringRef keys[] = {"repeat", "times"};
    for (const JsonMember &member : value.members)
      if (!llvm::is_contained(keys, member.key))
        return fail(member.offset, "unknown field '" + path + "." + member.key + "'" + suggestName(member.key, keys));
    const JsonMember *repeat = value.find("repeat"), *times = value.find("times");
    if (!repeat || !times)
      return fail(value.offset, "field '" + path + "' has no '" + (repeat ? "times" : "repeat") + "'");
    int64_t count = 0;
    within(".times", [&] { read(times->value, count, Limits{.low = 1, .high = double(maxLayers)}); });
    if (failed)
      return;
    if (!repeat->value.isArray())
      return within(".repeat", [&] { expected(repeat->value, "an array"); });
    size_t first = spec.layers.size(), names = repeat->value.elements.size();
    if (uint64_t(count) * names > maxLayers)
      return fail(value.offset, llvm::formatv("field '{0}' makes {1} layers; at most {2} are supported", path,
                                              uint64_t(count) * names, maxLayers));
    for (size_t i = 0; i < names && !failed; ++i)
      within(".repeat[" + std::to_string(i) + "]", [&] { addLayer(spec, repeat->value.elements[i]); });
    for (int64_t i = 1; i < count && !failed; ++i)
      for (size_t j = 0; j < names; ++j)
        spec.layers.push_back(spec.layers[first + j]);
  }

  /// Returns the offset of the deepest value that the file has along `field`.
  uint64_t locate(llvm::StringRef field) const {
    const JsonValue *at = &document.root;
    while (!field.empty()) {
      field.consume_front(".");
      if (field.consume_front("[")) {
        size_t index = 0;
        if (field.consumeInteger(10, index) || !field.consume_front("]") || !at->isArray() ||
            index >= at->elements.size())
          break;
        at = &at->elements[index];
        continue;
      }
      llvm::StringRef name = field.take_until([](char c) { return c == '.' || c == '['; });
      const JsonMember *member = at->find(name);
      if (name.empty() || !member)
        break;
      at = &member->value;
      field = field.drop_front(name.size());
    }
    return at->offset;
  }
};

} // namespace

bool isSpecJson(const JsonDocument &document) { return document.root.isObject() && document.root.find("kind"); }

llvm::Expected<ModelSpec> readSpec(const JsonDocument &document) { return Reader(document).run(); }

} // namespace mcc
