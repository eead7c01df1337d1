#include "fit/fit_json.h"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace weir::fit {

namespace {

// A member, and the number that it stands for.
struct Bytes {
  const char* name;
  int64_t ModelFootprint::*field;
};
constexpr Bytes kBytes[] = {
    {"packed", &ModelFootprint::packed_weights}, {"mapped", &ModelFootprint::mapped_weights},
    {"scratch", &ModelFootprint::scratch},       {"state", &ModelFootprint::state_bytes},
    {"experts", &ModelFootprint::experts},       {"expert_cycle", &ModelFootprint::expert_cycle}};
struct Count {
  const char* name;
  int32_t ModelFootprint::*field;
};
constexpr Count kCounts[] = {{"slab_rows", &ModelFootprint::slab_rows},
                             {"context", &ModelFootprint::context_max},
                             {"vocab", &ModelFootprint::vocab_size},
                             {"hidden", &ModelFootprint::hidden_size}};
// Of models that take images or sounds only.
constexpr Bytes kMediaBytes[] = {{"tower", &ModelFootprint::image_tower},
                                 {"tower_scratch", &ModelFootprint::image_scratch},
                                 {"sounds", &ModelFootprint::sound_encoder},
                                 {"sounds_scratch", &ModelFootprint::sound_scratch}};
constexpr Count kSpanRows = {"span_rows", &ModelFootprint::span_rows_max};

}  // namespace

void write_json(JsonWriter& w, const Fit& fit) {
  w.begin_object().field("verdict", word_of(fit.verdict)).field("text", describe(fit));
  if (fit.verdict == Verdict::kUnknown) {
    w.field("reason", fit.reason).end_object();
    return;
  }
  w.field("options", fit.flags);
  w.field("context", fit.context).field("context_max", fit.context_max);
  w.field("needed", fit.needed).field("limit", fit.limit).field("limit_from", fit.limit_from);
  if (fit.verdict == Verdict::kNo) w.field("lacks", fit.lacks);
  if (fit.experts > 0) w.field("expert_memory", fit.expert_bytes).field("experts", fit.experts);
  w.end_object();
}

void write_json(JsonWriter& w, const Speed& speed) {
  const auto range = [&](const char* name, double middle) {
    w.key(name).begin_object();
    w.field("low", kSpeedLow * middle).field("high", kSpeedHigh * middle).end_object();
  };
  w.begin_object();
  range("decode", speed.decode);
  if (speed.prompt > 0) range("prompt", speed.prompt);
  w.end_object();
}

void write_json(JsonWriter& w, const ModelFootprint& model) {
  w.begin_object();
  for (const Bytes& one : kBytes) w.field(one.name, model.*one.field);
  for (const Count& one : kCounts) w.field(one.name, model.*one.field);
  if (model.takes_media()) {
    for (const Bytes& one : kMediaBytes) w.field(one.name, model.*one.field);
    w.field(kSpanRows.name, model.*kSpanRows.field);
  }
  w.key("pages").begin_array();
  for (const kv::MemoryLayout::Group& group : model.kv_groups)
    w.begin_object().field("window", group.window).field("bytes", group.page_bytes).end_object();
  w.end_array().end_object();
}

Result<ModelFootprint> read_footprint(JsonValue value) {
  constexpr int64_t kBytesMax = int64_t{1} << 50;
  ModelFootprint model;
  JsonObject object;
  const auto wrong = [](const std::string& what) {
    return fail(ErrorCode::kConfig, "footprint: expected " + what + ", found something else");
  };
  const auto number = [](JsonObject from, const char* name, int64_t max, int64_t& out) {
    const auto member = json_get(from, name);
    return member && member->get(out) == simdjson::SUCCESS && out >= 0 && out <= max;
  };
  if (value.get(object) != simdjson::SUCCESS) return wrong("an object");
  const bool takes_media = json_get(object, kMediaBytes[0].name).has_value();
  std::vector<Bytes> all_bytes(std::begin(kBytes), std::end(kBytes));
  std::vector<Count> all_counts(std::begin(kCounts), std::end(kCounts));
  if (takes_media) {
    all_bytes.insert(all_bytes.end(), std::begin(kMediaBytes), std::end(kMediaBytes));
    all_counts.push_back(kSpanRows);
  }
  for (const Bytes& one : all_bytes)
    if (!number(object, one.name, kBytesMax, model.*one.field))
      return wrong(std::string("bytes as '") + one.name + "'");
  for (const Count& one : all_counts) {
    int64_t count = 0;
    if (!number(object, one.name, INT32_MAX, count))
      return wrong(std::string("a count as '") + one.name + "'");
    model.*one.field = static_cast<int32_t>(count);
  }
  JsonArray pages;
  const auto list = json_get(object, "pages");
  if (!list || list->get(pages) != simdjson::SUCCESS || pages.size() == 0 ||
      pages.size() > static_cast<size_t>(kv::kGroupsMax))
    return wrong("1 to " + std::to_string(kv::kGroupsMax) + " groups as 'pages'");
  model.kv_groups.clear();
  for (const JsonValue item : pages) {
    JsonObject group;
    int64_t window = 0, bytes = 0;
    if (item.get(group) != simdjson::SUCCESS || !number(group, "window", INT32_MAX, window) ||
        !number(group, "bytes", kBytesMax, bytes))
      return wrong("a window and bytes of each group");
    model.kv_groups.push_back({.window = static_cast<int32_t>(window), .page_bytes = bytes});
  }
  return model;
}

}  // namespace weir::fit
