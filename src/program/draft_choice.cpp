#include "program/draft_choice.h"

#include <algorithm>
#include <string>

#include "base/concat.h"
#include "base/json.h"
#include "model/drafts/draft_spec.h"
#include "model/families.h"
#include "text/tokenizer.h"

namespace weir {

namespace {

using model::DraftSpec;

// The kind that --speculative asks for; none: whatever there is.
std::optional<DraftSpec::Kind> kind_of(Speculative speculative) {
  switch (speculative) {
    case Speculative::kDraft:
      return DraftSpec::kModel;
    case Speculative::kEagle3:
      return DraftSpec::kEagle3;
    case Speculative::kMtp:
      return DraftSpec::kMtp;
    case Speculative::kDflash:
      return DraftSpec::kDflash;
    case Speculative::kAuto:
    case Speculative::kOff:
    case Speculative::kNgram:
      break;
  }
  return std::nullopt;
}

Result<std::unique_ptr<text::Tokenizer>> load_tokenizer(const card::ModelCard& card) {
  WEIR_ASSIGN(const card::TokenizerFile file, card.open_tokenizer());
  return text::Tokenizer::load_file(file.name, file.text(), file.config);
}

// What the two take for a token is the same text: else drafts would be another language's.
Result<void> check_vocabularies(const card::ModelCard& model, const card::ModelCard& draft) {
  WEIR_ASSIGN(const auto of_model, load_tokenizer(model));
  WEIR_ASSIGN(const auto of_draft, load_tokenizer(draft));
  const int32_t shared = std::min(of_model->vocab_size(), of_draft->vocab_size());
  const auto quoted = [](std::string_view piece) {
    std::string out;
    append_json_string(out, piece.substr(0, 40));
    return out;
  };
  for (int32_t id = 0; id < shared; ++id)
    if (of_model->piece(id) != of_draft->piece(id))
      return fail(ErrorCode::kConfig,
                  concat({"--draft-model: expected the model's vocabulary, in which token ",
                          std::to_string(id), " is ", quoted(of_model->piece(id)), "; found ",
                          quoted(of_draft->piece(id)), " in ", draft.files.where()}));
  return {};
}

Result<DraftChoice> from_folder(const Options& options, const card::ModelCard& model) {
  if (options.speculative == Speculative::kOff || options.speculative == Speculative::kNgram)
    return fail(ErrorCode::kConfig,
                concat({"--draft-model: expected --speculative auto or the drafter's kind beside "
                        "it; found --speculative ",
                        word_of(options.speculative)}));
  WEIR_ASSIGN(card::ModelCard draft, card::ModelCard::open_folder(options.draft_model));
  const DraftSpec::Kind kind = model::draft_kind(draft.config.root());
  const auto wanted = kind_of(options.speculative);
  if (wanted && *wanted != kind)
    return fail(ErrorCode::kConfig, concat({"--draft-model: expected a drafter of kind ",
                                            model::kind_name(*wanted), " (--speculative), found ",
                                            model::kind_name(kind), " in ", draft.files.where()}));
  if (kind == DraftSpec::kModel) WEIR_TRY(check_vocabularies(model, draft));
  return DraftChoice{.card = std::make_shared<const card::ModelCard>(std::move(draft))};
}

}  // namespace

Result<DraftChoice> choose_drafter(const Options& options, const card::ModelCard& model) {
  if (!options.draft_model.empty()) return from_folder(options, model);
  if (options.speculative != Speculative::kAuto && options.speculative != Speculative::kMtp)
    return kind_of(options.speculative)
               ? Result<DraftChoice>(
                     fail(ErrorCode::kConfig,
                          concat({"--speculative ", word_of(options.speculative),
                                  ": expected --draft-model FOLDER beside it; found none"})))
               : DraftChoice{};
  const Result<model::ModelSpec> spec = model::spec_from_config(model.config.root());
  if (!spec) return DraftChoice{};  // What binds the model says what is wrong.
  const bool module = model::has_draft_module(*spec, model);
  // Its experts would all stay in memory, beside those that had to be left on disk.
  if (options.stream_experts && options.speculative == Speculative::kAuto) return DraftChoice{};
  if (options.speculative == Speculative::kMtp && !module)
    return fail(ErrorCode::kConfig,
                "--speculative mtp: expected a model whose checkpoint has a module that predicts "
                "further tokens (MTP), or --draft-model FOLDER beside it; found neither");
  // A module that cannot be used is no reason not to start, unless it was asked for.
  if (module && options.speculative == Speculative::kAuto &&
      !model::draft_spec(*spec, model, nullptr))
    return DraftChoice{};
  return DraftChoice{.card = nullptr, .module = module};
}

}  // namespace weir
