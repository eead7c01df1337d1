#include "api/serving/tool_messages.h"

#include <algorithm>

#include "api/output/call_grammar.h"
#include "api/request/message_content.h"
#include "base/check.h"
#include "base/concat.h"
#include "base/json.h"

namespace weir::api {

namespace {

// A body's depth, and that of arguments, which were strings in it.
constexpr size_t kDepthMax = 1024;

constexpr std::string_view kResultBegin = "<tool_response>\n", kResultEnd = "\n</tool_response>";

// --- The probe. Words that no template holds; an id as the strictest ones want it (Mistral's).
constexpr std::string_view kProbeTools =
    R"([{"type":"function","function":{"name":"weir_probe_name","description":"Probes.",)"
    R"("parameters":{"type":"object","properties":{"place":{"type":"string",)"
    R"("description":"A place."}},"required":["place"]}}}])";
constexpr std::string_view kProbeUser = R"({"role":"user","content":"Hello."})";
constexpr std::string_view kProbeSystem = R"({"role":"system","content":"weir_probe_system"},)";
constexpr std::string_view kProbeCall =
    R"(,{"role":"assistant","content":"","tool_calls":[{"id":"weirprobe","type":"function",)"
    R"("function":{"name":"weir_probe_name","arguments":{"place":"weir_probe_place"}}}]})";
constexpr std::string_view kProbeText = R"(,{"role":"assistant","content":"I call it."})";
constexpr std::string_view kProbeResultBegin =
    R"(,{"role":"tool","name":"weir_probe_name","tool_call_id":"weirprobe","content":)";
constexpr std::string_view kProbeResult = R"("weir_probe_result"})";
constexpr std::string_view kProbeImageResult =
    R"([{"type":"text","text":"weir_probe_result"},{"type":"image"}]})";
constexpr std::string_view kProbeSoundResult =
    R"([{"type":"text","text":"weir_probe_result"},{"type":"audio"}]})";
constexpr std::string_view kProbeWords = R"({"role":"user","content":"weir_probe_words"})";
constexpr std::string_view kProbeParts =
    R"({"role":"user","content":[{"type":"text","text":"weir_probe_words"}]})";
constexpr std::string_view kProbeImage =
    R"({"role":"user","content":[{"type":"image"},{"type":"text","text":"weir_probe_words"}]})";
constexpr std::string_view kProbeSound =
    R"({"role":"user","content":[{"type":"audio"},{"type":"text","text":"weir_probe_words"}]})";

constexpr Medium kMedia[] = {Medium::kPicture, Medium::kSound};

class Probe {
 public:
  Probe(const text::ChatTemplate& chat_template, const TemplateVariables& special_tokens)
      : template_(chat_template), special_tokens_(special_tokens) {}

  // From now on content that is a string is shown as a list of one part.
  void write_in_parts() { in_parts_ = true; }

  // Empty if the template refuses them.
  std::string render(std::string_view messages, std::string_view tools) const {
    std::string variables;
    JsonWriter json(variables);
    json.begin_object().key("messages");
    const std::string list = concat({"[", messages, "]"});
    if (in_parts_)
      write_messages(list, json);
    else
      json.raw(list);
    if (!tools.empty()) json.key("tools").raw(tools);
    json.field("add_generation_prompt", true);
    for (const auto& [name, text] : special_tokens_) json.field(name, text);
    json.end_object();
    return template_.render(variables, /*now=*/0).value_or(std::string());
  }

  bool shows(std::string_view word, std::string_view messages, std::string_view tools) const {
    return render(messages, tools).find(word) != std::string::npos;
  }
  // The same of a list of parts: one that is written as the value that it is shows its types.
  bool shows_parts(std::string_view word, std::string_view messages) const {
    const std::string text = render(messages, {});
    return text.find(word) != std::string::npos && text.find("'type'") == std::string::npos &&
           text.find("\"type\"") == std::string::npos;
  }

 private:
  static void write_messages(std::string_view list, JsonWriter& json) {
    const Result<JsonDoc> doc = JsonDoc::parse(list);
    JsonArray messages;
    CHECK(doc && doc->root().get(messages) == simdjson::SUCCESS);
    json.begin_array();
    for (const JsonValue message : messages) {
      JsonObject members;
      CHECK(message.get(members) == simdjson::SUCCESS);
      json.begin_object();
      for (const auto [key, member] : members) {
        json.key(key);
        if (key == "content")
          MessageContent::read(member).write_parts(json);
        else
          json.value(member);
      }
      json.end_object();
    }
    json.end_array();
  }

  const text::ChatTemplate& template_;
  const TemplateVariables& special_tokens_;
  bool in_parts_ = false;
};

// --- What is written instead.

std::string_view text_of(JsonObject object, std::string_view key) {
  std::string_view text;
  const auto value = json_get(object, key);
  return value && value->get(text) == simdjson::SUCCESS ? text : std::string_view();
}

std::string description_of(JsonArray tools, const output::CallFormat& format) {
  std::string text = "You can call functions. These are there, each as JSON:\n";
  for (const JsonValue tool : tools) {
    JsonWriter(text += '\n').value(tool["function"].value());
  }
  text +=
      "\n\nTo call one, write its name and its arguments, a JSON object, in exactly this form:\n\n";
  const output::WrittenCall example{"NAME", R"({"PARAMETER": "VALUE"})"};
  text += output::write_calls(format, {&example, 1});
  text +=
      "\n\nThen end your turn: the next message has the result. Call a function when the answer "
      "needs it; otherwise answer in plain text.";
  return text;
}

std::string calls_of(JsonArray calls, const output::CallFormat& format) {
  std::vector<output::WrittenCall> written;
  for (const JsonValue call : calls) {
    JsonObject function;
    if (call["function"].get(function) != simdjson::SUCCESS) continue;
    output::WrittenCall& one = written.emplace_back();
    one.name = text_of(function, "name");
    if (const auto arguments = json_get(function, "arguments"))
      JsonWriter(one.arguments).value(*arguments);
  }
  return output::write_calls(format, written);
}

class MessageWriter {
 public:
  MessageWriter(const TemplateTools& written, const output::CallFormat& format,
                const MediaMarks& marks, std::string& out)
      : written_(written), format_(format), marks_(marks), json_(out) {
    json_.begin_array();
  }

  // What stands before everything else: in the system message, or in the user's first one.
  void describe(std::string description) { description_ = MessageContent(std::move(description)); }

  void message(JsonObject message) {
    const std::string_view role = text_of(message, "role");
    if (written_.system && role != "system" && !description_.empty())
      write("system", std::exchange(description_, {}));
    MessageContent content;
    if (const auto value = json_get(message, "content")) content = MessageContent::read(*value);
    if (role == "tool" && !written_.results) {
      content.prefix(kResultBegin);
      content.add_text(kResultEnd, "");
      waiting_.append(content, kBetween);
      return;
    }
    if (role == "tool") {
      keep_for_user(content);
    } else if (role == "user") {
      content = with_waiting(content);
    } else if (!waiting_.empty()) {
      write("user", with_waiting({}));
    }
    if (role == "system" && written_.system)
      content.append(std::exchange(description_, {}), kBetween);
    JsonArray calls;
    const auto value = json_get(message, "tool_calls");
    const bool as_text = !written_.calls && value && !value->get(calls);
    if (as_text) content.append(MessageContent(calls_of(calls, format_)));
    json_.begin_object();
    for (const auto [key, member] : message) {
      if (key == "content")
        write_content(content);
      else if (!as_text || key != "tool_calls")
        json_.field(key, member);
    }
    json_.end_object();
  }

  void finish() {
    if (!waiting_.empty() || !description_.empty()) write("user", with_waiting({}));
    json_.end_array();
  }

 private:
  static constexpr std::string_view kBetween = "\n\n";

  // The media of a result that the template would not show.
  void keep_for_user(MessageContent& content) {
    for (const Medium medium : kMedia) {
      if (written_.result_media.of(medium)) continue;
      for (size_t dropped = content.drop(medium); dropped > 0; --dropped)
        waiting_.add_medium(medium);
    }
  }

  // A message of the user, after what waits for one.
  MessageContent with_waiting(const MessageContent& own) {
    MessageContent content = std::exchange(description_, {});
    content.append(std::exchange(waiting_, {}), kBetween);
    content.append(own, kBetween);
    return content;
  }

  void write(std::string_view role, const MessageContent& content) {
    json_.begin_object().field("role", role);
    write_content(content);
    json_.end_object();
  }

  void write_content(const MessageContent& content) {
    json_.key("content");
    const bool in_parts = content.media() > 0 ? shows_all(content) : !written_.strings;
    if (in_parts)
      content.write_parts(json_);
    else
      json_.value(std::string_view(content.text_with(marks_)));
  }

  bool shows_all(const MessageContent& content) const {
    return std::ranges::all_of(kMedia, [&](Medium medium) {
      return written_.media.of(medium) || !content.has(medium);
    });
  }

  const TemplateTools& written_;
  const output::CallFormat& format_;
  const MediaMarks marks_;
  JsonWriter json_;
  MessageContent description_;  // That waits for a message to stand in,
  MessageContent waiting_;      // and results and media of results.
};

}  // namespace

TemplateTools probe_template(const text::ChatTemplate& chat_template,
                             const TemplateVariables& special_tokens,
                             const MediaMarks& marks) {
  Probe probe(chat_template, special_tokens);
  TemplateTools written;
  written.strings = probe.shows("weir_probe_words", kProbeWords, {}) ||
                    !probe.shows_parts("weir_probe_words", kProbeParts);
  if (!written.strings) probe.write_in_parts();
  const auto shows = [&](std::string_view mark, const std::string_view messages) {
    return !mark.empty() && probe.shows_parts(mark, messages);
  };
  written.media = {.images = shows(marks.image, kProbeImage),
                   .sounds = shows(marks.sound, kProbeSound)};
  const std::string user(kProbeUser), with_system = std::string(kProbeSystem) + user;
  if (probe.render(user, {}).empty() && probe.render(with_system, {}).empty()) return written;
  written.system = probe.shows("weir_probe_system", with_system, {});
  written.tools = probe.shows("weir_probe_name", user, kProbeTools) ||
                  probe.shows("weir_probe_name", with_system, kProbeTools);
  const std::string_view tools = written.tools ? kProbeTools : std::string_view();
  const auto history = [&](std::string_view call, std::string_view result) {
    return concat({user, call, kProbeResultBegin, result});
  };
  written.calls = probe.shows("weir_probe_place", history(kProbeCall, kProbeResult), tools);
  const std::string_view call = written.calls ? kProbeCall : kProbeText;
  written.results = probe.shows("weir_probe_result", history(call, kProbeResult), tools);
  if (written.results)
    written.result_media = {
        .images = written.media.images && shows(marks.image, history(call, kProbeImageResult)),
        .sounds = written.media.sounds && shows(marks.sound, history(call, kProbeSoundResult))};
  return written;
}

Result<std::string> write_tools_into(const std::string& messages, const std::string& tools,
                                     const TemplateTools& written, const output::CallFormat& format,
                                     const MediaMarks& marks) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(messages, kDepthMax));
  JsonArray array;
  CHECK(doc.root().get(array) == simdjson::SUCCESS);
  std::string out;
  MessageWriter writer(written, format, marks, out);
  if (!tools.empty() && !written.tools) {
    WEIR_ASSIGN(const JsonDoc tools_doc, JsonDoc::parse(tools, kDepthMax));
    JsonArray functions;
    CHECK(tools_doc.root().get(functions) == simdjson::SUCCESS);
    writer.describe(description_of(functions, format));
  }
  for (const JsonValue element : array) {
    JsonObject message;
    CHECK(element.get(message) == simdjson::SUCCESS);
    writer.message(message);
  }
  writer.finish();
  return out;
}

}  // namespace weir::api
