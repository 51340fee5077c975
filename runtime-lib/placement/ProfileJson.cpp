// Profiles as JSON:
//   {"format": "mcc-machine-1",
//    "machine": {"cpu", "threads", "blas", "gpu", "driver", "link", "gpuBytes" or absent},
//    "cpu": DEVICE, "gpu": DEVICE or absent, "link": {"toGpu": {"pinned": CURVE, "pageable": CURVE}, "toCpu": ...}}
//   DEVICE = {"launchNs": [raw], "syncNs": [raw], "rows": CURVE, "attentionKeys": CURVE, "attentionMacs": CURVE,
//             "matrices": [{"format": "bf16", "gemv": CURVE, "gemm": TABLE}]}
//   CURVE = {"samples": [{"size": x, "rawNs": [raw]}], "fit": {...}}
//   TABLE = {"m": [...], "n": [...], "k": [...], "rawNs": [[raw] by cell, row-major], "fit": {...}}
// "fit" is written and never read.
#include "runtime-lib/placement/Profile.h"

#include "runtime-lib/src/JsonDocument.h"
#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <initializer_list>

namespace mcc::placement {

using runtime::concat;
using runtime::JsonDocument;
using runtime::JsonStep;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

static constexpr const char *formatName = "mcc-machine-1";
/// More samples, cells or formats than this are no calibration.
static constexpr size_t mostElements = 65536;

namespace {

/// Reads values and remembers the first failure; after it, everything read is empty.
class Reader {
public:
  explicit Reader(const JsonDocument &document) : document(document) {}
  Profile readAll();
  const std::optional<Failure> &failed() const { return failure; }

private:
  /// A value and the way to it.
  struct Place {
    const Json *value;
    std::vector<JsonStep> steps;
  };
  void fail(const Place &place, std::string fact) {
    if (!failure)
      failure = document.failure(place.steps, fact);
  }
  void checkObject(const Place &place, std::initializer_list<std::string_view> keys);
  bool has(const Place &place, const char *key) const {
    return !failure && place.value->is_object() && place.value->contains(key);
  }
  Place enter(const Place &place, const char *key);
  Place enter(const Place &place, size_t index) const;
  size_t arraySize(const Place &place);
  std::string text(const Place &place);
  std::vector<double> numbers(const Place &place);
  Curve curve(const Place &place);
  GemmTable table(const Place &place);
  MatrixTimes matrixTimes(const Place &place);
  DeviceProfile device(const Place &place);
  Link::Direction direction(const Place &place);
  Fingerprint fingerprint(const Place &place);

  const JsonDocument &document;
  const Json nothing;
  std::optional<Failure> failure;
};

} // namespace

/// Checks that the value is an object without other keys than `keys`.
void Reader::checkObject(const Place &place, std::initializer_list<std::string_view> keys) {
  if (failure)
    return;
  if (!place.value->is_object())
    return fail(place, concat("expected an object, found ", place.value->type_name()));
  for (const auto &[key, value] : place.value->items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      Place field = place;
      field.steps.emplace_back(std::string_view(key));
      return fail(field, concat("unknown field '", key, "'"));
    }
}

Reader::Place Reader::enter(const Place &place, const char *key) {
  if (!failure && !has(place, key))
    fail(place, concat("missing field '", key, "'"));
  Place field = place;
  field.steps.emplace_back(key);
  field.value = failure ? &nothing : &(*place.value)[key];
  return field;
}

Reader::Place Reader::enter(const Place &place, size_t index) const {
  Place element = place;
  element.steps.emplace_back(index);
  element.value = failure ? &nothing : &(*place.value)[index];
  return element;
}

/// Returns the size of an array; 0 after a failure.
size_t Reader::arraySize(const Place &place) {
  if (failure)
    return 0;
  if (!place.value->is_array()) {
    fail(place, concat("expected an array, found ", place.value->type_name()));
    return 0;
  }
  if (place.value->size() > mostElements) {
    fail(place, concat(place.value->size(), " elements; at most ", mostElements, " are read"));
    return 0;
  }
  return place.value->size();
}

std::string Reader::text(const Place &place) {
  if (failure)
    return {};
  if (!place.value->is_string()) {
    fail(place, concat("expected a string, found ", place.value->type_name()));
    return {};
  }
  return place.value->get<std::string>();
}

/// Reads positive numbers.
std::vector<double> Reader::numbers(const Place &place) {
  std::vector<double> result;
  for (size_t i = 0, size = arraySize(place); i < size; ++i) {
    const Place element = enter(place, i);
    if (!element.value->is_number()) {
      fail(element, concat("expected a number, found ", element.value->type_name()));
      return {};
    }
    const double number = element.value->get<double>();
    if (!(number > 0)) {
      fail(element, concat("expected a positive number, found ", number));
      return {};
    }
    result.push_back(number);
  }
  return result;
}

Curve Reader::curve(const Place &place) {
  checkObject(place, {"samples", "fit"});
  const Place list = enter(place, "samples");
  std::vector<Curve::Sample> samples;
  for (size_t i = 0, size = arraySize(list); i < size && !failure; ++i) {
    const Place sample = enter(list, i);
    checkObject(sample, {"size", "rawNs"});
    const Place x = enter(sample, "size");
    if (!failure && !x.value->is_number())
      fail(x, concat("expected a number, found ", x.value->type_name()));
    samples.push_back({failure ? 0 : x.value->get<double>(), numbers(enter(sample, "rawNs"))});
  }
  if (failure)
    return {};
  Result<Curve> made = Curve::make(std::move(samples));
  if (made.ok())
    return std::move(made.value());
  fail(list, made.message());
  return {};
}

GemmTable Reader::table(const Place &place) {
  checkObject(place, {"m", "n", "k", "rawNs", "fit"});
  std::array<GemmTable::Axis, 3> axes = {numbers(enter(place, "m")), numbers(enter(place, "n")),
                                         numbers(enter(place, "k"))};
  const Place list = enter(place, "rawNs");
  std::vector<RawNs> cells;
  for (size_t i = 0, size = arraySize(list); i < size && !failure; ++i)
    cells.push_back(numbers(enter(list, i)));
  if (failure)
    return {};
  Result<GemmTable> made = GemmTable::make(std::move(axes), std::move(cells));
  if (made.ok())
    return std::move(made.value());
  fail(place, made.message());
  return {};
}

MatrixTimes Reader::matrixTimes(const Place &place) {
  checkObject(place, {"format", "gemv", "gemm"});
  MatrixTimes times;
  const Place name = enter(place, "format");
  const std::string format = text(name);
  if (const std::optional<Format> known = parseFormat(format))
    times.format = *known;
  else
    fail(name, concat("unknown storage format '", format, "'"));
  times.gemv = curve(enter(place, "gemv"));
  if (has(place, "gemm"))
    times.gemm = table(enter(place, "gemm"));
  return times;
}

DeviceProfile Reader::device(const Place &place) {
  checkObject(place, {"launchNs", "syncNs", "rows", "attentionKeys", "attentionMacs", "matrices"});
  DeviceProfile device;
  device.launch = numbers(enter(place, "launchNs"));
  if (has(place, "syncNs"))
    device.sync = numbers(enter(place, "syncNs"));
  device.rows = curve(enter(place, "rows"));
  device.attentionKeys = curve(enter(place, "attentionKeys"));
  device.attentionMacs = curve(enter(place, "attentionMacs"));
  const Place list = enter(place, "matrices");
  for (size_t i = 0, size = arraySize(list); i < size && !failure; ++i)
    device.matrices.push_back(matrixTimes(enter(list, i)));
  if (device.matrices.empty())
    fail(list, "no matrix products; at least one storage format is needed");
  return device;
}

Link::Direction Reader::direction(const Place &place) {
  checkObject(place, {"pinned", "pageable"});
  return {curve(enter(place, "pinned")), curve(enter(place, "pageable"))};
}

Fingerprint Reader::fingerprint(const Place &place) {
  checkObject(place, {"cpu", "threads", "blas", "gpu", "driver", "link", "gpuBytes"});
  Fingerprint machine;
  machine.cpu = text(enter(place, "cpu"));
  const Place threads = enter(place, "threads");
  if (!failure && (!threads.value->is_number_integer() || *threads.value < 1 || *threads.value > 1 << 20))
    fail(threads, "expected a number of threads");
  machine.threads = failure ? 0 : threads.value->get<int64_t>();
  machine.blas = text(enter(place, "blas"));
  machine.gpu = text(enter(place, "gpu"));
  machine.driver = text(enter(place, "driver"));
  machine.link = text(enter(place, "link"));
  if (has(place, "gpuBytes")) {
    const Place bytes = enter(place, "gpuBytes");
    if (!bytes.value->is_number_unsigned())
      fail(bytes, "expected a whole number of bytes");
    else
      machine.gpuBytes = bytes.value->get<uint64_t>();
  }
  return machine;
}

Profile Reader::readAll() {
  const Place root{&document.root(), {}};
  checkObject(root, {"format", "machine", "cpu", "gpu", "link"});
  const Place format = enter(root, "format");
  if (const std::string found = text(format); found != formatName)
    fail(format, concat("format '", found, "'; this version reads '", formatName, "'"));
  Profile profile;
  profile.machine = fingerprint(enter(root, "machine"));
  profile.cpu = device(enter(root, "cpu"));
  if (!has(root, "gpu") && !has(root, "link"))
    return profile;
  profile.gpu = device(enter(root, "gpu"));
  const Place link = enter(root, "link");
  checkObject(link, {"toGpu", "toCpu"});
  Link::Direction toGpu = direction(enter(link, "toGpu"));
  profile.link = Link{std::move(toGpu), direction(enter(link, "toCpu"))};
  return profile;
}

Result<Profile> readProfile(std::string path, std::string text) {
  Result<JsonDocument> document = JsonDocument::parse(std::move(path), std::move(text));
  if (!document.ok())
    return document.failure();
  Reader reader(document.value());
  Profile profile = reader.readAll();
  if (reader.failed())
    return *reader.failed();
  return profile;
}

static OrderedJson toJson(const Curve &curve) {
  OrderedJson samples = OrderedJson::array();
  for (const Curve::Sample &sample : curve.samples())
    samples.push_back({{"size", sample.size}, {"rawNs", sample.rawNs}});
  const Fit &fit = curve.fit();
  return {{"samples", std::move(samples)},
          {"fit", {{"ns", fit.coefficients[0]}, {"nsPerUnit", fit.coefficients[1]}, {"residual", fit.residual}}}};
}

static OrderedJson toJson(const GemmTable &table) {
  const Fit &fit = table.fit();
  return {{"m", table.axes()[0]},
          {"n", table.axes()[1]},
          {"k", table.axes()[2]},
          {"rawNs", table.rawNs()},
          {"fit",
           {{"ns", fit.coefficients[0]},
            {"nsPerMultiplyAdd", fit.coefficients[1]},
            {"nsPerWeight", fit.coefficients[2]},
            {"residual", fit.residual}}}};
}

static OrderedJson toJson(const DeviceProfile &device) {
  OrderedJson matrices = OrderedJson::array();
  for (const MatrixTimes &times : device.matrices) {
    OrderedJson entry = {{"format", std::string(formatInfo(times.format).name)}, {"gemv", toJson(times.gemv)}};
    if (!times.gemm.empty())
      entry["gemm"] = toJson(times.gemm);
    matrices.push_back(std::move(entry));
  }
  OrderedJson result = {{"launchNs", device.launch}};
  if (!device.sync.empty())
    result["syncNs"] = device.sync;
  result["rows"] = toJson(device.rows);
  result["attentionKeys"] = toJson(device.attentionKeys);
  result["attentionMacs"] = toJson(device.attentionMacs);
  result["matrices"] = std::move(matrices);
  return result;
}

static OrderedJson toJson(const Link::Direction &direction) {
  return {{"pinned", toJson(direction.pinned)}, {"pageable", toJson(direction.pageable)}};
}

std::string writeProfile(const Profile &profile) {
  const Fingerprint &machine = profile.machine;
  OrderedJson root = {{"format", formatName},
                      {"machine",
                       {{"cpu", machine.cpu},
                        {"threads", machine.threads},
                        {"blas", machine.blas},
                        {"gpu", machine.gpu},
                        {"driver", machine.driver},
                        {"link", machine.link}}},
                      {"cpu", toJson(profile.cpu)}};
  if (machine.gpuBytes > 0)
    root["machine"]["gpuBytes"] = machine.gpuBytes;
  if (profile.gpu && profile.link) {
    root["gpu"] = toJson(*profile.gpu);
    root["link"] = {{"toGpu", toJson(profile.link->toGpu)}, {"toCpu", toJson(profile.link->toCpu)}};
  }
  return runtime::dumpJson(root, 1) + "\n";
}

} // namespace mcc::placement
