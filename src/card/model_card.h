// ModelCard: all that a model's files say, read once: config.json with its overrides, the tensors
// and how they are stored, and the settings of tokenizer, sampling, embeddings and scores. Model,
// text and api take values from it; none of them opens a file of the model by its name, or knows
// whether they were one GGUF file.
//
// Reading maps the weights and touches none of them.
//
// Threads: immutable once opened, but `config` belongs to one thread at a time (JsonDoc).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "card/checkpoint.h"
#include "card/embedding_settings.h"
#include "card/generation_settings.h"
#include "card/model_files.h"
#include "card/rerank_settings.h"
#include "card/tokenizer_settings.h"
#include "card/weight_format.h"

namespace weir::card {

// What Tokenizer::load_file() of src/text wants to know.
struct TokenizerFile {
  std::string name;
  FileView view;
  std::string made;    // Of a GGUF file's metadata, or of vocab.json and merges.txt in one.
  std::string config;  // The text of tokenizer_config.json; empty: none.

  std::string_view text() const { return made.empty() ? view.text() : made; }
};

struct ModelCard {
  // `overrides`: "KEY=VALUE" each, put into config.json (config_override.h). An error names the
  // file, and the folder it lies in.
  static Result<ModelCard> open(ModelFiles model_files,
                                std::span<const std::string> overrides = {});
  // The card of the files in a folder (ModelFiles::open()).
  static Result<ModelCard> open_folder(const std::string& folder,
                                       std::span<const std::string> overrides = {});

  // The first that is there of tokenizer.json, tekken.json, tiktoken.model, qwen.tiktoken,
  // tokenizer.model, mapped for as long as the view lives, and vocab.json with merges.txt; of a
  // GGUF file what its metadata says.
  Result<TokenizerFile> open_tokenizer() const;
  // An error about config.json that names only the file: with the folder.
  Error in_folder(Error error) const;

  ModelFiles files;
  JsonDoc config;
  WeightFormat weights;
  std::shared_ptr<const Checkpoint> tensors;  // A model that uses them in place keeps them.
  TokenizerSettings tokenizer;
  GenerationSettings generation;
  EmbeddingSettings embedding;
  RerankSettings rerank;
  // preprocessor_config.json or, where that is not there, processor_config.json: how images are
  // processed. As `config`, one thread's at a time.
  std::optional<JsonDoc> preprocessor;
};

}  // namespace weir::card
