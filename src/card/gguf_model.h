// A model in a GGUF file, or in parts of one: what its metadata and tensors say, in the words of
// the files that published checkpoints have beside their weights.
//
// Threads: plain values and pure functions.
#pragma once

#include <string>

#include "base/result.h"
#include "card/checkpoint.h"
#include "card/embedding_settings.h"
#include "card/generation_settings.h"
#include "card/model_files.h"
#include "card/tokenizer_settings.h"

namespace weir::card {

struct GgufModel {
  std::string config;  // The text of config.json.
  Checkpoint tensors;  // By their published names.
  TokenizerSettings tokenizer{};
  GenerationSettings generation{};
  EmbeddingSettings embedding{};
};

// REQUIRES: `files` are a GGUF file's. An error names the file and the key or tensor; kUnsupported
// for what is well-formed and not run: another architecture, a type of blocks, a file of adapters
// or of a projector.
Result<GgufModel> open_gguf(const ModelFiles& files);

// The keys of tokenizer.ggml.* as JSON, for Tokenizer::load_file() of src/text.
Result<std::string> gguf_tokenizer(const ModelFiles& files);

}  // namespace weir::card
