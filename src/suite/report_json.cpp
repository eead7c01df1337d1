// The report as JSON, and back.
#include <array>
#include <cmath>
#include <optional>

#include "base/json.h"
#include "suite/report.h"

namespace weir::suite {

namespace {

constexpr std::string_view kFormat = "weir-suite";
constexpr int64_t kVersion = 1;

// By the name that a member of Setting has in the file.
struct TextField {
  const char* name;
  std::string Setting::*field;
};
constexpr std::array kTexts = {TextField{"model", &Setting::model},
                               TextField{"url", &Setting::url},
                               TextField{"processor", &Setting::processor},
                               TextField{"isa", &Setting::isa},
                               TextField{"compute", &Setting::compute},
                               TextField{"kv", &Setting::kv},
                               TextField{"version", &Setting::version},
                               TextField{"commit", &Setting::commit},
                               TextField{"time", &Setting::time}};

void write_figure(JsonWriter& w, const Figure& f) {
  w.begin_object().field("part", f.part).field("name", f.name);
  if (!f.skipped.empty()) {
    w.field("skipped", f.skipped);
  } else if (!f.failure.empty()) {
    w.field("failure", f.failure);
  } else if (!f.text.empty()) {
    w.field("text", f.text);
  } else {
    w.field("value", f.value);
  }
  if (!f.note.empty()) w.field("note", f.note);
  if (!f.unit.empty()) w.field("unit", f.unit);
  if (f.limit)
    w.field(f.limit->kind == Limit::Kind::kAtMost ? "at_most" : "at_least", f.limit->value);
  if (f.better != Better::kNeither) {
    w.field("better", word_of(f.better));
    if (f.better != Better::kSame) w.field("tolerance", f.tolerance);
  }
  w.field("verdict", word_of(f.verdict())).end_object();
}

// Members of an object that may be absent, and then leave `out` as it is. False: of another type.
bool read(JsonObject object, const char* name, std::string& out) {
  const std::optional<JsonValue> value = json_get(object, name);
  std::string_view text;
  if (!value) return true;
  if (value->get(text) != simdjson::SUCCESS) return false;
  out = text;
  return true;
}
bool read(JsonObject object, const char* name, double& out) {
  const std::optional<JsonValue> value = json_get(object, name);
  return !value || value->get(out) == simdjson::SUCCESS;
}

tl::unexpected<Error> wrong(const std::string& name, const std::string& what) {
  return fail(ErrorCode::kConfig, name + ": expected a report of weir suite --json: " + what);
}

bool read_comparison(JsonObject object, Figure& figure) {
  std::string word;
  if (!read(object, "better", word) || !read(object, "tolerance", figure.tolerance)) return false;
  if (word.empty()) return true;
  for (const Better better : {Better::kMore, Better::kLess, Better::kSame}) {
    if (word != word_of(better)) continue;
    figure.better = better;
    return true;
  }
  return false;
}

std::optional<Figure> read_figure(JsonValue value) {
  JsonObject object;
  Figure f;
  if (value.get(object) != simdjson::SUCCESS) return std::nullopt;
  const bool all = read(object, "part", f.part) && read(object, "name", f.name) &&
                   read(object, "skipped", f.skipped) && read(object, "failure", f.failure) &&
                   read(object, "text", f.text) && read(object, "value", f.value) &&
                   read(object, "unit", f.unit) && read(object, "note", f.note) &&
                   read_comparison(object, f);
  if (!all || f.part.empty() || f.name.empty()) return std::nullopt;
  double bound = 0;
  if (!read(object, "at_most", bound)) return std::nullopt;
  if (json_get(object, "at_most")) f.limit = at_most(bound);
  if (!read(object, "at_least", bound)) return std::nullopt;
  if (json_get(object, "at_least")) f.limit = at_least(bound);
  return f;
}

Result<Setting> read_setting(JsonObject object, const std::string& name) {
  Setting setting;
  for (const TextField& each : kTexts)
    if (!read(object, each.name, setting.*each.field))
      return wrong(name, std::string("a string as '") + each.name + "'");
  double threads = 0;
  const std::optional<JsonValue> quick = json_get(object, "quick");
  if (!read(object, "threads", threads) || !(threads >= 0 && threads < 1e6))
    return wrong(name, "a number as 'threads'");
  if (quick && quick->get(setting.quick) != simdjson::SUCCESS)
    return wrong(name, "true or false as 'quick'");
  setting.threads = static_cast<int32_t>(threads);
  return setting;
}

}  // namespace

std::string report_json(const Report& report) {
  std::string out;
  JsonWriter w(out);
  w.begin_object().field("format", kFormat).field("format_version", kVersion);
  for (const TextField& each : kTexts)
    if (const std::string& text = report.setting.*each.field; !text.empty())
      w.field(each.name, text);
  w.field("threads", report.setting.threads).field("quick", report.setting.quick);
  w.field("passed", report.passed());
  w.key("parts").begin_array();
  for (const PartRun& part : report.parts) {
    w.begin_object().field("name", part.name).field("seconds", part.seconds);
    w.field("others", part.others).end_object();
  }
  w.end_array().key("figures").begin_array();
  for (const Figure& figure : report.figures) write_figure(w, figure);
  w.end_array();
  if (!report.against.empty()) {
    w.field("against", report.against).key("regressions").begin_array();
    for (const Regression& worse : report.regressions) {
      w.begin_object().field("part", worse.part).field("name", worse.name);
      w.field("what", worse.what).end_object();
    }
    w.end_array();
  }
  w.end_object();
  return out + "\n";
}

Result<Report> read_report(std::string_view json, const std::string& name) {
  const Result<JsonDoc> doc = JsonDoc::parse(json);
  if (!doc) return wrong(name, doc.error().message);
  JsonObject root;
  std::string format;
  double version = 0;
  if (doc->root().get(root) != simdjson::SUCCESS || !read(root, "format", format) ||
      format != kFormat || !read(root, "format_version", version))
    return wrong(name, "an object whose 'format' is '" + std::string(kFormat) + "'");
  if (version != static_cast<double>(kVersion))
    return wrong(
        name, "'format_version' " + std::to_string(kVersion) + ", found " + number_text(version));
  Report report;
  WEIR_ASSIGN(report.setting, read_setting(root, name));
  JsonArray figures;
  const std::optional<JsonValue> list = json_get(root, "figures");
  if (!list || list->get(figures) != simdjson::SUCCESS) return wrong(name, "an array as 'figures'");
  for (const JsonValue item : figures) {
    std::optional<Figure> figure = read_figure(item);
    if (!figure)
      return wrong(name, "figures with a part, a name and a value; found " + json_excerpt(item));
    report.figures.push_back(std::move(*figure));
  }
  return report;
}

}  // namespace weir::suite
