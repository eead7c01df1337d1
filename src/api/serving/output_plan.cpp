#include "api/serving/output_plan.h"

#include <algorithm>

#include "api/output/call_grammar.h"
#include "api/serving/api_config.h"
#include "base/log.h"
#include "grammar/parts.h"

namespace weir::api {

namespace {

using grammar::GrammarSource;
using output::CallFormat;
using output::ReasoningFormat;

std::string_view template_with_tools(const ApiConfig& config) {
  if (config.tool_use_template) return config.tool_use_template->source();
  return config.chat_template ? std::string_view(config.chat_template->source())
                              : std::string_view();
}

bool in_reasoning_markers(const ReasoningFormat& format, std::string_view text) {
  return text.size() > 1 && (format.open.find(text) != std::string_view::npos ||
                             format.close.find(text) != std::string_view::npos ||
                             format.after.find(text) != std::string_view::npos ||
                             format.before_content.find(text) != std::string_view::npos);
}

std::vector<int32_t> marker_tokens(const OutputFormats& formats, const text::Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.is_special(id)) continue;
    const std::string_view text = tokenizer.piece(id);
    if ((formats.calls && is_marker(*formats.calls, text)) ||
        (formats.reasoning && in_reasoning_markers(*formats.reasoning, text)))
      ids.push_back(id);
  }
  return ids;
}

bool is_callable(const GenerateRequest& request, const std::string& name) {
  return request.callable.empty() ||
         std::ranges::find(request.callable, name) != request.callable.end();
}

// Parameters that the schema says are strings and nothing else.
std::vector<std::string> string_parameters(const std::string& schema) {
  std::vector<std::string> names;
  const Result<JsonDoc> doc = JsonDoc::parse(schema.empty() ? "{}" : schema);
  JsonObject object, properties;
  if (!doc || doc->root().get(object) != simdjson::SUCCESS) return names;
  const auto found = json_get(object, "properties");
  if (!found || found->get(properties) != simdjson::SUCCESS) return names;
  for (const auto [name, value] : properties) {
    JsonObject parameter;
    std::string_view type;
    if (value.get(parameter) != simdjson::SUCCESS) continue;
    const auto stated = json_get(parameter, "type");
    if (stated && stated->get(type) == simdjson::SUCCESS && type == "string")
      names.emplace_back(name);
  }
  return names;
}

bool ends_with(std::string_view prompt, std::string_view marker) {
  while (!prompt.empty() &&
         std::string_view(" \t\r\n").find(prompt.back()) != std::string_view::npos)
    prompt.remove_suffix(1);
  return prompt.ends_with(marker);
}

class Planner {
 public:
  Planner(const OutputFormats& formats, const GenerateRequest& request, std::string_view prompt,
          bool inputs_bound)
      : request_(request), inputs_bound_(inputs_bound) {
    if (request.may_call()) calls_ = formats.calls;
    if (request.must_call() && !calls_) calls_ = &output::generic_calls();
    reasoning_ = formats.reasoning;
    begun_ = reasoning_ && ends_with(prompt, reasoning_->open);
    closed_ = reasoning_ && ends_with(prompt, reasoning_->close);
    is_content_ = request.reasoning_format ? *request.reasoning_format == "none"
                                           : formats.reasoning_is_content;
  }

  OutputPlan plan() const {
    OutputPlan plan;
    bind(plan);
    if (!closed_) plan.reasoning = reasoning_;
    plan.reasoning_begun = begun_;
    if (!calls_ && !reasoning_) return plan;
    auto parser = std::make_shared<output::ParserOptions>();
    parser->calls = calls_;
    if (calls_) {
      for (const ToolFunction& function : request_.functions)
        if (is_callable(request_, function.name))
          parser->functions.push_back({function.name, string_parameters(function.parameters)});
      plan.short_call_ids = calls_->short_ids;
    }
    parser->parallel = parallel();
    parser->calls_bound = calls_ && plan.grammar;
    parser->reasoning = reasoning_;
    parser->begins_in_reasoning = begun_;
    parser->reasoning_is_content = is_content_;
    plan.parser = std::move(parser);
    return plan;
  }

 private:
  bool parallel() const { return request_.parallel_tool_calls; }

  bool has_strict() const {
    return std::ranges::any_of(request_.functions, [&](const ToolFunction& function) {
      return (function.strict || function.input) && is_callable(request_, function.name);
    });
  }

  // A named call is one call; one that is only required, as many as are asked for at once.
  std::string calls_part(bool forced) const {
    output::CallBinding binding;
    binding.format = calls_;
    binding.forced = forced;
    binding.parallel = parallel() && request_.tool_choice != ToolChoice::kNamed;
    for (const ToolFunction& function : request_.functions) {
      if (!is_callable(request_, function.name)) continue;
      binding.functions.push_back(
          {function.name, function.parameters, function.strict, function.field, function.input});
      if (!inputs_bound_) binding.functions.back().input.reset();
    }
    return output::calls_part(binding);
  }

  std::string form_part() const {
    std::string form = grammar::source_part(*request_.grammar);
    if (!reasoning_ || reasoning_->before_content.empty() || is_content_) return form;
    std::string part = "{\"seq\":[{\"text\":";
    append_json_string(part, reasoning_->before_content);
    return part + "}," + form + "]}";
  }

  // What the answer may be after its reasoning, as a part; empty: anything.
  std::string answer() const {
    if (request_.must_call()) return calls_part(true);
    if (request_.grammar) {
      const std::string form = form_part();
      if (!calls_) return form;
      return "{\"any\":[" + form + "," + calls_part(true) + "]}";
    }
    return calls_ && (calls_->native_grammar || has_strict()) ? calls_part(false) : std::string();
  }

  void bind(OutputPlan& plan) const {
    plan.grammar_field = request_.grammar ? request_.grammar_field : "tools";
    // Reasoning comes before the form, unless the client is to see all of it as content.
    const bool reasons = reasoning_ && !closed_ && (begun_ || !is_content_);
    if (!calls_ && !reasons) {
      plan.grammar = request_.grammar;  // As it is: those without reasoning share it.
      return;
    }
    std::string part = answer();
    if (part.empty()) return;
    if (reasons) part = output::behind_reasoning(*reasoning_, begun_, part);
    plan.grammar.emplace();
    plan.grammar->kind = GrammarSource::Kind::kParts;
    plan.grammar->text = std::move(part);
  }

  const GenerateRequest& request_;
  const bool inputs_bound_;
  const CallFormat* calls_ = nullptr;
  const ReasoningFormat* reasoning_ = nullptr;
  bool begun_ = false, closed_ = false;  // By the prompt.
  bool is_content_ = false;
};

}  // namespace

OutputFormats choose_formats(const ApiConfig& config) {
  OutputFormats formats;
  const std::string_view source = template_with_tools(config);
  const auto probe = [&](const text::ChatTemplate& chat_template) {
    return probe_template(chat_template, config.special_tokens, media_marks(config));
  };
  if (config.chat_template) formats.chat_writes = probe(*config.chat_template);
  formats.tool_use_writes =
      config.tool_use_template ? probe(*config.tool_use_template) : formats.chat_writes;
  const bool described = !formats.tool_use_writes.tools;
  if (described)
    log::event(log::Level::kInfo,
               "the chat template does not write tools: they are described in a message", {});
  if (config.tool_parser == "auto") {
    formats.calls = output::detect_calls(source);
    if (described && (!formats.calls || formats.calls == &output::generic_calls()))
      formats.calls = &output::described_calls();
  } else if (config.tool_parser != "none") {
    formats.calls = output::find_calls(config.tool_parser);
  }
  formats.reasoning = output::detect_reasoning(source);
  if (config.reasoning_format == "deepseek" && !formats.reasoning)
    formats.reasoning = output::find_reasoning("think");
  formats.reasoning_is_content = config.reasoning_format == "none";
  formats.markers = marker_tokens(formats, *config.tokenizer);
  return formats;
}

OutputPlan plan_output(const OutputFormats& formats, const GenerateRequest& request,
                       std::string_view prompt, bool inputs_bound) {
  return Planner(formats, request, prompt, inputs_bound).plan();
}

}  // namespace weir::api
