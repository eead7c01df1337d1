#include "fit/catalogue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "card/config_reader.h"
#include "fit/fit_json.h"

extern "C" {
extern const char weir_catalogue_begin[], weir_catalogue_end[];
}

namespace weir::fit {

namespace {

using card::ConfigReader;

constexpr const char* kFile = "catalogue";
constexpr size_t kFormatsMax = 16;
constexpr int64_t kParametersMax = int64_t{1} << 50;

// One model, whose first error stays.
class ModelReader {
 public:
  ModelReader(JsonValue value, const std::string& path)
      : reader_(value, kFile, path), path_(path) {}

  Result<CatalogueModel> read() {
    CatalogueModel model;
    model.name = reader_.string_or("name", "");
    model.family = reader_.string_or("family", "");
    model.license = reader_.string_or("license", "");
    model.gated = reader_.bool_or("gated", false);
    model.context = reader_.require_int("context");
    WEIR_ASSIGN(model.parameters, count(reader_, "parameters"));
    WEIR_ASSIGN(model.active, count(reader_, "active"));
    WEIR_TRY(reader_.status());
    JsonArray list;
    const auto formats = reader_.value("formats");
    if (!formats || formats->get(list) != simdjson::SUCCESS || list.size() == 0 ||
        list.size() > kFormatsMax)
      return wrong("formats", "1 to " + std::to_string(kFormatsMax) + " of them");
    for (const JsonValue item : list) {
      WEIR_ASSIGN(CatalogueFormat format, read_format(item, model.formats.size()));
      model.formats.push_back(std::move(format));
    }
    return model;
  }

 private:
  tl::unexpected<Error> wrong(const std::string& key, const std::string& expected) const {
    return fail(ErrorCode::kConfig, std::string(kFile) + ": " + path_ + key + ": expected " +
                                        expected + ", found something else");
  }
  Result<int64_t> count(const ConfigReader& reader, const std::string& key) const {
    int64_t number = 0;
    const auto value = reader.value(key);
    if (!value || value->get(number) != simdjson::SUCCESS || number < 0 || number > kParametersMax)
      return wrong(key, "a count");
    return number;
  }

  Result<CatalogueFormat> read_format(JsonValue value, size_t index) const {
    const ConfigReader reader(value, kFile, path_ + "formats[" + std::to_string(index) + "].");
    CatalogueFormat format;
    format.id = reader.string_or("id", "");
    format.format = reader.string_or("format", "");
    format.commit = reader.string_or("sha", "");
    WEIR_TRY(reader.status());
    WEIR_ASSIGN(format.bytes, count(reader, "bytes"));
    if (reader.has("file_bytes")) {
      WEIR_ASSIGN(format.file_bytes, count(reader, "file_bytes"));
    }
    WEIR_ASSIGN(format.cost.weight_bytes, count(reader, "token_bytes"));
    WEIR_ASSIGN(format.cost.macs, count(reader, "token_macs"));
    const auto footprint = reader.value("footprint"), streamed = reader.value("streamed");
    if (!footprint) return wrong("footprint", "an object");
    WEIR_ASSIGN(format.model, read_footprint(*footprint));
    if (streamed) {
      WEIR_ASSIGN(format.streamed, read_footprint(*streamed));
    }
    return format;
  }

  const ConfigReader reader_;
  const std::string path_;
};

}  // namespace

Result<Catalogue> Catalogue::parse(std::string_view json) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(json, 16));
  const ConfigReader root(doc.root(), kFile);
  JsonArray list;
  const auto models = root.value("models");
  if (!models || models->get(list) != simdjson::SUCCESS)
    return fail(ErrorCode::kConfig,
                std::string(kFile) + ": models: expected a list, found something else");
  Catalogue catalogue;
  for (const JsonValue item : list) {
    const std::string path = "models[" + std::to_string(catalogue.models_.size()) + "].";
    WEIR_ASSIGN(CatalogueModel model, ModelReader(item, path).read());
    catalogue.models_.push_back(std::move(model));
  }
  return catalogue;
}

Catalogue Catalogue::built_in() {
  Result<Catalogue> read =
      parse({weir_catalogue_begin, static_cast<size_t>(weir_catalogue_end - weir_catalogue_begin)});
  CHECK(read);
  return *std::move(read);
}

const CatalogueFormat* Catalogue::find(std::string_view id) const {
  for (const CatalogueModel& model : models_)
    for (const CatalogueFormat& format : model.formats)
      if (format.id == id) return &format;
  return nullptr;
}

std::vector<Way> Catalogue::others(std::string_view id, const Options& options) const {
  std::vector<Way> ways;
  for (const CatalogueModel& model : models_) {
    if (std::ranges::find(model.formats, id, &CatalogueFormat::id) == model.formats.end()) continue;
    for (const CatalogueFormat& format : model.formats)
      if (format.id != id)
        ways.push_back({.options = options,
                        .model = format.model,
                        .flags = "--model " + format.id,
                        .less = true});
  }
  return ways;
}

Assessment assess(const Options& options, const MemoryLimit& limit, const CatalogueFormat& files,
                  const std::string& disk) {
  Options streamed = options;
  streamed.stream_experts = true;
  std::vector<Fit> fits = {judge({.options = options, .model = files.model}, limit)};
  if (fits[0].verdict == Verdict::kNo && files.streamed)
    fits.push_back(
        judge({.options = streamed, .model = *files.streamed, .flags = "--stream-experts"}, limit));
  const Fit& fit = best_of(fits);
  Assessment out = {.fit = fit, .speed = {}};
  if (fit.verdict == Verdict::kStreams) {
    if (const auto machine = load_read_speed(disk))
      out.speed =
          expected_speed({.bank_bytes = static_cast<uint64_t>(files.streamed->experts),
                          .cycle_bytes = static_cast<uint64_t>(files.streamed->expert_cycle),
                          .token_bytes = files.cost.weight_bytes,
                          .memory_bytes = static_cast<uint64_t>(fit.expert_bytes)},
                         *machine);
  } else if (fit.verdict != Verdict::kNo) {
    const bool exact = options.compute == model::Compute::kExact;
    if (const auto machine = load_machine_speed())
      out.speed = expected_speed(
          token_cost({.weight_bytes = files.cost.weight_bytes, .macs = files.cost.macs},
                     files.model, exact),
          *machine);
  }
  return out;
}

}  // namespace weir::fit
