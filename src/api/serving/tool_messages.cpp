#include "api/serving/tool_messages.h"

#include "api/output/call_grammar.h"
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
constexpr std::string_view kProbeResult =
    R"(,{"role":"tool","name":"weir_probe_name","tool_call_id":"weirprobe",)"
    R"("content":"weir_probe_result"})";

class Probe {
 public:
  Probe(const text::ChatTemplate& chat_template, const TemplateVariables& special_tokens)
      : template_(chat_template), special_tokens_(special_tokens) {}

  // Empty if the template refuses them.
  std::string render(std::string_view messages, std::string_view tools) const {
    std::string variables;
    JsonWriter json(variables);
    json.begin_object().key("messages").raw(concat({"[", messages, "]"}));
    if (!tools.empty()) json.key("tools").raw(tools);
    json.field("add_generation_prompt", true);
    for (const auto& [name, text] : special_tokens_) json.field(name, text);
    json.end_object();
    return template_.render(variables, /*now=*/0).value_or(std::string());
  }

  bool shows(std::string_view word, std::string_view messages, std::string_view tools) const {
    return render(messages, tools).find(word) != std::string::npos;
  }

 private:
  const text::ChatTemplate& template_;
  const TemplateVariables& special_tokens_;
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
  MessageWriter(const TemplateTools& written, const output::CallFormat& format, std::string& out)
      : written_(written), format_(format), json_(out) {
    json_.begin_array();
  }

  // What stands before everything else: in the system message, or in the user's first one.
  void describe(std::string description) { description_ = std::move(description); }

  void message(JsonObject message) {
    const std::string_view role = text_of(message, "role");
    if (written_.system && role != "system" && !description_.empty())
      write("system", std::exchange(description_, {}));
    std::string text(text_of(message, "content"));
    if (role == "tool" && !written_.results) {
      append(results_, concat({kResultBegin, text, kResultEnd}));
      return;
    }
    if (role == "user")
      text = with_waiting(text);
    else if (!results_.empty())
      write("user", with_waiting({}));
    if (role == "system" && written_.system) append(text, std::exchange(description_, {}));
    JsonArray calls;
    const auto value = json_get(message, "tool_calls");
    const bool as_text = !written_.calls && value && !value->get(calls);
    if (as_text) append(text, calls_of(calls, format_), "\n");
    json_.begin_object();
    for (const auto [key, member] : message) {
      if (key == "content")
        json_.field(key, text);
      else if (!as_text || key != "tool_calls")
        json_.field(key, member);
    }
    json_.end_object();
  }

  void finish() {
    if (!results_.empty() || !description_.empty()) write("user", with_waiting({}));
    json_.end_array();
  }

 private:
  static void append(std::string& text, std::string_view more, std::string_view between = "\n\n") {
    if (!text.empty() && !more.empty()) text += between;
    text += more;
  }

  // A message of the user, after what waits for one.
  std::string with_waiting(std::string_view own_text) {
    std::string text = std::exchange(description_, {});
    append(text, std::exchange(results_, {}));
    append(text, own_text);
    return text;
  }

  void write(std::string_view role, std::string_view text) {
    json_.begin_object().field("role", role).field("content", text).end_object();
  }

  const TemplateTools& written_;
  const output::CallFormat& format_;
  JsonWriter json_;
  std::string description_;  // That waits for a message to stand in,
  std::string results_;      // and these too.
};

}  // namespace

TemplateTools probe_template(const text::ChatTemplate& chat_template,
                             const TemplateVariables& special_tokens) {
  const Probe probe(chat_template, special_tokens);
  TemplateTools written;
  const std::string user(kProbeUser), with_system = std::string(kProbeSystem) + user;
  if (probe.render(user, {}).empty() && probe.render(with_system, {}).empty()) return written;
  written.system = probe.shows("weir_probe_system", with_system, {});
  written.tools = probe.shows("weir_probe_name", user, kProbeTools) ||
                  probe.shows("weir_probe_name", with_system, kProbeTools);
  const std::string_view tools = written.tools ? kProbeTools : std::string_view();
  const auto history = [&](std::string_view call) { return concat({user, call, kProbeResult}); };
  written.calls = probe.shows("weir_probe_place", history(kProbeCall), tools);
  written.results =
      probe.shows("weir_probe_result", history(written.calls ? kProbeCall : kProbeText), tools);
  return written;
}

Result<std::string> write_tools_into(const std::string& messages, const std::string& tools,
                                     const TemplateTools& written,
                                     const output::CallFormat& format) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(messages, kDepthMax));
  JsonArray array;
  CHECK(doc.root().get(array) == simdjson::SUCCESS);
  std::string out;
  MessageWriter writer(written, format, out);
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
