// TemplateFixture: reads the folder and renders every pair.
#include "template_fixture.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "text/chat_template.h"

namespace weir::check {

namespace {

constexpr size_t kFileBytesMax = 64 << 20;

Result<JsonDoc> read_json(const std::string& path) {
  WEIR_ASSIGN(const std::string text, read_file(path, kFileBytesMax));
  Result<JsonDoc> doc = JsonDoc::parse(text);
  if (!doc) return fail(ErrorCode::kConfig, path + ": " + doc.error().message);
  if (!doc->root().is_object()) return fail(ErrorCode::kConfig, path + ": expected an object");
  return doc;
}

std::string to_json(JsonValue value) {
  std::string text;
  JsonWriter(text).value(value);
  return text;
}

// "expected `...`, found `...`" around the first byte that differs.
std::string difference(const std::string& context, std::string_view expected,
                       std::string_view found) {
  const auto [e, f] = std::mismatch(expected.begin(), expected.end(), found.begin(), found.end());
  const auto at = static_cast<size_t>(e - expected.begin());
  constexpr size_t kShown = 60;
  const size_t from = at < kShown / 2 ? 0 : at - kShown / 2;
  return context + ": at byte " + std::to_string(at) + " expected `" +
         std::string(expected.substr(from, kShown)) + "`, found `" +
         std::string(found.substr(std::min(from, found.size()), kShown)) + "`";
}

bool is_error(JsonValue recorded) {
  JsonObject object;
  return recorded.get(object) == simdjson::SUCCESS && !json_get(object, "ok");
}

// `never_renders`: all of the template's pairs are errors, so that it may not parse either.
void compare_pair(const Result<text::ChatTemplate>& chat_template, bool never_renders,
                  const std::string& context, const std::string& variables, JsonObject recorded,
                  TemplateComparison& out) {
  Result<std::string> found = tl::unexpected<Error>(Error{});
  if (chat_template) {
    found = chat_template->render(variables, kTemplateNow);
  } else {
    found = tl::unexpected<Error>(chat_template.error());
  }
  const std::optional<JsonValue> text = json_get(recorded, "ok");
  std::string_view expected;
  const bool fails = !text || text->get(expected) != simdjson::SUCCESS;
  if (fails && !chat_template && !never_renders) {
    out.differences.push_back(context + ": expected an error of rendering, found one of parsing: " +
                              found.error().message);
  } else if (fails && !found) {
    ++out.refused;
  } else if (fails) {
    out.differences.push_back(context + ": expected an error, found `" + found->substr(0, 60) +
                              "`");
  } else if (!found) {
    out.differences.push_back(context + ": " + found.error().message);
  } else if (*found != expected) {
    out.differences.push_back(difference(context, expected, *found));
  } else {
    ++out.same;
  }
}

}  // namespace

Result<std::vector<TemplateComparison>> compare_templates(const std::string& folder) {
  WEIR_ASSIGN(const JsonDoc contexts, read_json(folder + "/contexts.json"));
  WEIR_ASSIGN(const JsonDoc renders, read_json(folder + "/renders.json"));
  std::map<std::string, std::string> variables;
  const JsonObject context_list = contexts.root().get_object().value_unsafe();
  for (const auto& field : context_list) variables[std::string(field.key)] = to_json(field.value);
  std::vector<TemplateComparison> all;
  const JsonObject render_list = renders.root().get_object().value_unsafe();
  for (const auto& field : render_list) {
    TemplateComparison& out = all.emplace_back();
    out.name = field.key;
    WEIR_ASSIGN(std::string source, read_file(folder + "/templates/" + out.name, kFileBytesMax));
    const auto chat_template = text::ChatTemplate::parse(std::move(source));
    JsonObject pairs;
    if (field.value.get(pairs) != simdjson::SUCCESS)
      return fail(ErrorCode::kConfig, folder + "/renders.json: expected an object for " + out.name);
    const bool never_renders = std::all_of(pairs.begin(), pairs.end(),
                                           [](const auto& pair) { return is_error(pair.value); });
    for (const auto& pair : pairs) {
      const std::string context(pair.key);
      JsonObject recorded;
      if (!variables.contains(context) || pair.value.get(recorded) != simdjson::SUCCESS)
        return fail(ErrorCode::kConfig, folder + "/renders.json: expected {ok} or {err} for " +
                                            out.name + " with a context of contexts.json, found " +
                                            context);
      compare_pair(chat_template, never_renders, context, variables[context], recorded, out);
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

}  // namespace weir::check
