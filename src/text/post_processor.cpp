#include "text/post_processor.h"

#include <string>
#include <string_view>

#include "text/json_fields.h"
#include "text/vocabulary.h"

namespace weir::text {

namespace {

constexpr int kDepthMax = 8;
constexpr size_t kTokensMax = 64;

Error wrong(std::string_view what, std::string_view name = {}, std::string_view rest = {}) {
  std::string message = "tokenizer.json: post_processor";
  message.append(what).append(name.substr(0, 64)).append(rest);
  return {ErrorCode::kConfig, std::move(message)};
}

Result<int32_t> token_id(JsonValue json) {
  int64_t id = 0;
  if (json.get(id) != simdjson::SUCCESS || id < 0 || id >= kVocabularyIdMax)
    return tl::unexpected(wrong(": expected the id of a token"));
  return static_cast<int32_t>(id);
}

class Reader {
 public:
  Result<PostProcessor> read(JsonValue json) {
    WEIR_TRY(add(json, 0));
    return std::move(result_);
  }

 private:
  Result<void> add(JsonValue json, int depth) {
    JsonFields fields(json, "tokenizer.json: post_processor");
    const std::string_view type = fields.text("type");
    WEIR_TRY(fields.status());
    if (type == "ByteLevel") return {};  // Moves offsets, which we do not have.
    if (type == "Sequence") {
      const JsonArray parts = fields.array("processors");
      WEIR_TRY(fields.status());
      if (depth > kDepthMax)
        return tl::unexpected(wrong(": expected at most 8 levels of Sequence"));
      for (const JsonValue part : parts) WEIR_TRY(add(part, depth + 1));
      return {};
    }
    if (has_template_) return tl::unexpected(wrong(": expected one template, found two"));
    has_template_ = true;
    if (type == "TemplateProcessing") return add_template(json);
    if (type == "RobertaProcessing" || type == "BertProcessing") return add_pair(json);
    return tl::unexpected(wrong(" ", type, " is not supported"));
  }

  // {"cls": ["<s>", 0], "sep": ["</s>", 2]}.
  Result<void> add_pair(JsonValue json) {
    JsonFields fields(json, "tokenizer.json: post_processor");
    const JsonArray cls = fields.array("cls"), sep = fields.array("sep");
    WEIR_TRY(fields.status());
    for (const auto& [pair, ids] :
         {std::pair{cls, &result_.before}, std::pair{sep, &result_.after}}) {
      JsonValue value;
      if (pair.size() != 2 || pair.at(1).get(value) != simdjson::SUCCESS)
        return tl::unexpected(wrong(": expected cls and sep as [token, id]"));
      WEIR_ASSIGN(const int32_t id, token_id(value));
      ids->push_back(id);
    }
    return {};
  }

  Result<void> add_template(JsonValue json) {
    JsonFields fields(json, "tokenizer.json: post_processor");
    const JsonArray single = fields.array("single");
    WEIR_TRY(fields.status());
    bool seen = false;
    for (const JsonValue piece : single) {
      JsonFields parts(piece, "tokenizer.json: post_processor.single");
      if (const auto sequence = parts.value("Sequence")) {
        JsonFields which(*sequence, "tokenizer.json: post_processor.single.Sequence");
        const std::string_view name = which.text("id");
        WEIR_TRY(which.status());
        if (name != "A" || seen) return tl::unexpected(wrong(".single: expected sequence A once"));
        seen = true;
        continue;
      }
      const JsonObject token = parts.object("SpecialToken");
      WEIR_TRY(parts.status());
      WEIR_TRY(add_token(fields, token, seen ? result_.after : result_.before));
    }
    if (!seen) return tl::unexpected(wrong(".single: expected sequence A once"));
    return {};
  }

  // {"id": "<s>"}, whose ids are in the processor's `special_tokens`.
  Result<void> add_token(JsonFields& processor, JsonObject token, std::vector<int32_t>& to) {
    JsonFields fields(token, "tokenizer.json: post_processor.single.SpecialToken");
    const std::string_view name = fields.text("id");
    const JsonObject tokens = processor.object("special_tokens");
    WEIR_TRY(fields.status());
    WEIR_TRY(processor.status());
    const std::optional<JsonValue> entry = json_get(tokens, name);
    if (!entry) return tl::unexpected(wrong(".special_tokens: expected ", name, ", found nothing"));
    JsonFields definition(*entry, "tokenizer.json: post_processor.special_tokens");
    const JsonArray ids = definition.array("ids");
    WEIR_TRY(definition.status());
    for (const JsonValue value : ids) {
      WEIR_ASSIGN(const int32_t id, token_id(value));
      if (to.size() >= kTokensMax) return tl::unexpected(wrong(": expected at most 64 tokens"));
      to.push_back(id);
    }
    return {};
  }

  PostProcessor result_;
  bool has_template_ = false;
};

}  // namespace

Result<PostProcessor> PostProcessor::parse(std::optional<JsonValue> json) {
  if (!json) return PostProcessor{};
  return Reader().read(*json);
}

}  // namespace weir::text
