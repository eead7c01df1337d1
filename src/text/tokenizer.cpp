#include "text/tokenizer.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/gguf_tokenizer.h"
#include "text/json_fields.h"
#include "text/merged_vocabulary.h"
#include "text/normaliser.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/sentencepiece.h"
#include "text/tiktoken.h"
#include "text/tokenizer_config.h"
#include "text/unigram.h"

namespace weir::text {

namespace {

// Positions in a word are 32 bits. Requests are limited far below.
constexpr size_t kTextBytesMax = size_t{1} << 30;

// All tokens' texts together; the largest known vocabulary has two MB.
constexpr size_t kPiecesBytesMax = size_t{256} << 20;

using Model = std::variant<Bpe, Unigram>;

Result<Model> parse_model(std::optional<JsonValue> json) {
  if (!json) return fail(ErrorCode::kConfig, "tokenizer.json: expected a model, found nothing");
  JsonFields fields(*json, "tokenizer.json: model");
  std::string_view type = fields.text("type", "");
  WEIR_TRY(fields.status());
  if (type.empty()) {  // Old files do not say.
    const std::optional<JsonValue> vocabulary = fields.value("vocab");
    if (fields.value("merges")) {
      type = "BPE";
    } else if (vocabulary && vocabulary->is_array()) {
      type = "Unigram";
    }
  }
  if (type == "BPE") return Bpe::parse(*json);
  if (type == "Unigram") return Unigram::parse(*json);
  return fail(ErrorCode::kConfig, "tokenizer.json: model: expected type BPE or Unigram, found " +
                                      std::string(type.substr(0, 64)));
}

// What a stream asks of every token, in one place.
struct Piece {
  uint32_t begin : 31 = 0;  // Of its text; it ends where the next begins.
  uint32_t is_special : 1 = 0;
};
static_assert(kPiecesBytesMax < size_t{1} << 31);

struct Scratch {
  Bpe::Scratch bpe;
  Unigram::Scratch unigram;
  std::vector<AddedTokens::Part> parts, normalised_parts;
  Words words;
  std::string segment;
};

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(Model m) : model(std::move(m)) {}

  Model model;
  Normaliser normaliser;
  PreTokenizer pre_tokenizer;
  AddedTokens added;
  PostProcessor post_processor;
  Decoder decoder;
  int32_t id_end = 0;
  std::string pieces;              // Side by side by id.
  std::vector<Piece> piece_table;  // id_end + 1 of them.

  const Vocabulary& vocabulary() const {
    return std::visit([](const auto& m) -> const Vocabulary& { return m.vocabulary(); }, model);
  }
  // An added token's text or the model's.
  std::string_view token(int32_t id) const {
    return added.contains(id) ? added.content(id) : vocabulary().token(id);
  }
  bool has(int32_t id) const { return added.contains(id) || vocabulary().has(id); }

  Result<void> fill_pieces();
  void encode_segment(bool at_start, bool special, Scratch& scratch,
                      std::vector<int32_t>& ids) const;
  void encode_words(Scratch& scratch, std::vector<int32_t>& ids) const;
};

Result<void> Tokenizer::Impl::fill_pieces() {
  id_end = std::max(vocabulary().id_end(), added.id_end());
  piece_table.reserve(static_cast<size_t>(id_end) + 1);
  for (int32_t id = 0; id < id_end; ++id) {
    piece_table.push_back({static_cast<uint32_t>(pieces.size()), added.is_special(id)});
    if (has(id) && !decoder.append_piece(pieces, token(id)))
      return fail(ErrorCode::kConfig,
                  "tokenizer.json: decoder: a regular expression takes too long with token " +
                      std::string(token(id).substr(0, 64)));
    if (pieces.size() > kPiecesBytesMax)
      return fail(ErrorCode::kConfig, "tokenizer.json: expected at most " +
                                          std::to_string(kPiecesBytesMax) +
                                          " bytes of text in all tokens, found more");
  }
  piece_table.push_back({static_cast<uint32_t>(pieces.size()), false});
  return {};
}

// scratch.segment: a text without added tokens that are sought before normalisation.
void Tokenizer::Impl::encode_segment(bool at_start, bool special, Scratch& scratch,
                                     std::vector<int32_t>& ids) const {
  if (!normaliser.apply(scratch.segment)) at_start = false;
  const std::string_view text = scratch.segment;
  if (text.empty()) return;
  added.find(text, true, special, scratch.normalised_parts);
  for (const AddedTokens::Part& part : scratch.normalised_parts) {
    if (part.id) {
      ids.push_back(*part.id);
      continue;
    }
    scratch.words.text.assign(text.substr(part.begin, part.end - part.begin));
    scratch.words.words.assign(1, {0, scratch.words.text.size(), at_start && part.begin == 0});
    pre_tokenizer.run(scratch.words);
    encode_words(scratch, ids);
  }
}

void Tokenizer::Impl::encode_words(Scratch& scratch, std::vector<int32_t>& ids) const {
  if (const Bpe* bpe = std::get_if<Bpe>(&model)) {
    for (const Words::Word& word : scratch.words.words)
      bpe->encode(scratch.words.view(word), scratch.bpe, ids);
  } else if (const Unigram* unigram = std::get_if<Unigram>(&model)) {
    for (const Words::Word& word : scratch.words.words)
      unigram->encode(scratch.words.view(word), scratch.unigram, ids);
  }
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::load(std::string_view json) {
  auto parsed = JsonDoc::parse(json);
  if (!parsed)
    return fail(ErrorCode::kConfig, "tokenizer.json: " + std::move(parsed.error().message));
  const JsonDoc doc = std::move(*parsed);
  JsonFields fields(doc.root(), "tokenizer.json");
  WEIR_TRY(fields.status());
  WEIR_ASSIGN(Model model, parse_model(fields.value("model")));
  return build(std::make_unique<Impl>(std::move(model)), doc.root());
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::load_file(std::string_view name,
                                                        std::string_view bytes,
                                                        std::string_view config) {
  if (name == "tokenizer.json") return load(bytes);
  const auto read = [&]() -> Result<TokenizerParts> {
    if (name == "tekken.json") return read_tekken(bytes);
    if (name == kGgufTokenizer) return read_gguf_tokenizer(bytes);
    WEIR_ASSIGN(const TokenizerConfig settings, TokenizerConfig::parse(config));
    if (name == "vocab.json") return read_merged_vocabulary(bytes, settings);
    // A line of tiktoken's begins with a base64 digit, a SentencePiece model with its first piece.
    if (name == "tokenizer.model" && bytes.starts_with('\n'))
      return read_sentencepiece(bytes, settings);
    return read_tiktoken(bytes, settings);
  };
  WEIR_ASSIGN(TokenizerParts parts, read());
  WEIR_ASSIGN(const JsonDoc rest, JsonDoc::parse(parts.rest.json()));
  auto tokenizer = build(std::make_unique<Impl>(std::move(parts.model)), rest.root());
  // The parts' messages are about the tokenizer.json that the file was read as.
  if (!tokenizer)
    return fail(ErrorCode::kConfig,
                std::string(name) + ", read as " + std::move(tokenizer.error().message));
  return tokenizer;
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::build(std::unique_ptr<Impl> impl, JsonValue rest) {
  JsonFields fields(rest, "tokenizer.json");
  WEIR_ASSIGN(impl->normaliser, Normaliser::parse(fields.value("normalizer")));
  WEIR_ASSIGN(impl->pre_tokenizer, PreTokenizer::parse(fields.value("pre_tokenizer")));
  WEIR_ASSIGN(impl->added, AddedTokens::parse(fields.value("added_tokens"), impl->vocabulary(),
                                              impl->normaliser));
  WEIR_ASSIGN(impl->post_processor, PostProcessor::parse(fields.value("post_processor")));
  WEIR_ASSIGN(impl->decoder, Decoder::parse(fields.value("decoder")));
  WEIR_TRY(impl->fill_pieces());
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(impl)));
}

void Tokenizer::encode(std::string_view text, const EncodeOptions& options,
                       std::vector<int32_t>& ids) const {
  CHECK(text.size() <= kTextBytesMax);
  std::string repaired;
  if (!valid_utf8(text)) {
    append_valid_utf8(repaired, text);
    text = repaired;
  }
  const PostProcessor& around = impl_->post_processor;
  if (options.add_special) ids.insert(ids.end(), around.before.begin(), around.before.end());
  Scratch scratch;
  impl_->added.find(text, false, options.parse_special, scratch.parts);
  for (const AddedTokens::Part& part : scratch.parts) {
    if (part.id) {
      ids.push_back(*part.id);
    } else {
      scratch.segment.assign(text.substr(part.begin, part.end - part.begin));
      impl_->encode_segment(part.begin == 0, options.parse_special, scratch, ids);
    }
  }
  if (options.add_special) ids.insert(ids.end(), around.after.begin(), around.after.end());
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<int32_t> ids;
  encode(text, options, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    if (impl_->has(id) && !(skip_special && is_special(id))) tokens.emplace_back(impl_->token(id));
  }
  return impl_->decoder.decode(std::move(tokens));
}

std::string_view Tokenizer::piece(int32_t id) const {
  if (id < 0 || id >= impl_->id_end) return {};
  const auto index = static_cast<size_t>(id);
  const uint32_t begin = impl_->piece_table[index].begin, end = impl_->piece_table[index + 1].begin;
  return std::string_view(impl_->pieces).substr(begin, end - begin);
}

bool Tokenizer::is_special(int32_t id) const {
  return id >= 0 && id < impl_->id_end && impl_->piece_table[static_cast<size_t>(id)].is_special;
}

bool Tokenizer::strips_leading_space() const { return leading_spaces_stripped() > 0; }

size_t Tokenizer::leading_spaces_stripped() const { return impl_->decoder.leading_spaces(); }

std::optional<int32_t> Tokenizer::id(std::string_view token) const {
  if (const std::optional<int32_t> added = impl_->added.find_id(token)) return added;
  return impl_->vocabulary().find(token);
}

int32_t Tokenizer::vocab_size() const { return impl_->id_end; }

std::vector<int32_t> Tokenizer::surrounding_ids() const {
  std::vector<int32_t> ids = impl_->post_processor.before;
  ids.insert(ids.end(), impl_->post_processor.after.begin(), impl_->post_processor.after.end());
  return ids;
}

}  // namespace weir::text
