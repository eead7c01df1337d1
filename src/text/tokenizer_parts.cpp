#include "text/tokenizer_parts.h"

#include "base/json.h"

namespace weir::text {

namespace {

void write_added(JsonWriter& writer, const TokenizerConfig::Tokens& added) {
  writer.key("added_tokens").begin_array();
  for (const auto& [id, token] : added) {
    writer.begin_object()
        .field("id", id)
        .field("content", std::string_view(token.content))
        .field("special", token.special)
        .field("single_word", token.single_word)
        .field("lstrip", token.strip_left)
        .field("rstrip", token.strip_right)
        .field("normalized", token.normalised)
        .end_object();
  }
  writer.end_array();
}

// A template names its tokens; here a name is the id.
void write_post_processor(JsonWriter& writer, const TokenizerRest& rest) {
  const auto tokens = [&](const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) {
      writer.begin_object().key("SpecialToken").begin_object();
      writer.field("id", std::string_view(std::to_string(id))).end_object().end_object();
    }
  };
  writer.key("post_processor").begin_object().field("type", "TemplateProcessing");
  writer.key("single").begin_array();
  tokens(rest.before);
  writer.raw(R"({"Sequence":{"id":"A"}})");
  tokens(rest.after);
  writer.end_array().key("special_tokens").begin_object();
  for (const std::vector<int32_t>* ids : {&rest.before, &rest.after}) {
    for (const int32_t id : *ids) {
      writer.key(std::to_string(id)).begin_object().key("ids").begin_array();
      writer.value(id).end_array().end_object();
    }
  }
  writer.end_object().end_object();
}

}  // namespace

std::string TokenizerRest::json() const {
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  if (!normaliser.empty()) writer.key("normalizer").raw(normaliser);
  if (!pre_tokenizer.empty()) writer.key("pre_tokenizer").raw(pre_tokenizer);
  if (!decoder.empty()) writer.key("decoder").raw(decoder);
  write_added(writer, added);
  write_post_processor(writer, *this);
  writer.end_object();
  return text;
}

TokenizerRest byte_level_rest(std::string_view pattern) {
  TokenizerRest rest;
  rest.pre_tokenizer = R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)";
  append_json_string(rest.pre_tokenizer, pattern);
  rest.pre_tokenizer +=
      R"(},"behavior":"Isolated"},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})";
  rest.decoder = R"({"type":"ByteLevel"})";
  return rest;
}

}  // namespace weir::text
