// A drafter's checkpoint as config.json (the first line) and a safetensors header (the rest), with
// zeros for data: beside a small model it is a drafter, which drafts, or an error, in bounded
// memory. So it is as a model's own checkpoint, which may have a module that drafts.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/concat.h"
#include "base/thread_team.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/batch_builder.h"
#include "model/decoder.h"
#include "model/drafts/drafter.h"
#include "safetensors_data.h"

namespace {

using weir::model::Decoder;

constexpr size_t kHeaderBytesMax = size_t{1} << 18;
constexpr size_t kDataBytesMax = size_t{4} << 20;
constexpr int32_t kTokens = 40, kDrafts = 3;

std::string file_of(std::string_view header) {
  const uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  file += header;
  file.resize(file.size() + weir::safetensors_data_bytes(header, kDataBytesMax));
  return file;
}

weir::Result<weir::card::ModelCard> card_of(std::string_view config, const std::string& file) {
  return weir::card::ModelCard::open(weir::card::ModelFiles::embedded(
      "fuzz", {{"config.json", std::as_bytes(std::span(config))},
               {"model.safetensors", std::as_bytes(std::span(file))}}));
}

// Of Qwen3's kind: three layers, 16 wide, 40 tokens.
constexpr std::string_view kModelConfig =
    R"({"architectures":["Qwen3ForCausalLM"],"vocab_size":40,"hidden_size":16,)"
    R"("intermediate_size":24,"num_hidden_layers":3,"num_attention_heads":2,)"
    R"("num_key_value_heads":1,"head_dim":16,"max_position_embeddings":128,)"
    R"("tie_word_embeddings":true})";

std::string model_header() {
  std::string header = "{";
  size_t at = 0;
  const auto add = [&](const std::string& name, size_t n, size_t k) {
    const size_t end = at + n * std::max<size_t>(k, 1) * 4;
    header += weir::concat({header.size() > 1 ? ",\"" : "\"", name,
                            R"(.weight":{"dtype":"F32","shape":[)", std::to_string(n),
                            k == 0 ? "" : "," + std::to_string(k), R"(],"data_offsets":[)",
                            std::to_string(at), ",", std::to_string(end), "]}"});
    at = end;
  };
  add("model.embed_tokens", 40, 16);
  add("model.norm", 16, 0);
  for (const char* layer : {"0", "1", "2"}) {
    const std::string in = weir::concat({"model.layers.", layer, "."});
    for (const char* norm :
         {"input_layernorm", "post_attention_layernorm", "self_attn.q_norm", "self_attn.k_norm"})
      add(in + norm, 16, 0);
    add(in + "self_attn.q_proj", 32, 16);
    add(in + "self_attn.k_proj", 16, 16);
    add(in + "self_attn.v_proj", 16, 16);
    add(in + "self_attn.o_proj", 16, 32);
    add(in + "mlp.gate_proj", 24, 16);
    add(in + "mlp.up_proj", 24, 16);
    add(in + "mlp.down_proj", 16, 24);
  }
  return header + "}";
}

class NoSink final : public weir::model::RowSink {
 public:
  void on_rows(int32_t, int32_t, weir::model::Rows, int) override {}
};

// A prompt, and the tokens that the drafter makes after it.
void draft(Decoder& model) {
  weir::ThreadTeam team(1);
  model.pack(team, {});
  CHECK(!model.drafter()->describe().empty());
  auto cache = weir::kv::KvCache::create(model.memory_needs(), weir::kernels::FloatType::kF32, 2);
  CHECK(cache.has_value());
  model.drafter()->use(*cache);
  const std::array<int32_t, 2> pages = {1, 0};
  const std::array<int32_t, 4> tokens = {1, 2, 3, 4};
  weir::model::BatchBuilder batch;
  batch.add_slice({.prompt_length = 3, .memory = {.tables = pages.data()}});
  batch.add_tokens(std::span(tokens).first(3));
  NoSink sink;
  model.forward(batch.batch(), *cache, sink, team, 0);
  const weir::model::DraftSlice slice = {.memory = {.tables = pages.data()},
                                         .tokens = tokens,
                                         .computed = 3,
                                         .covered = 32,
                                         .guesses = true};
  model.drafter()->keep_up({&slice, 1}, team);
  std::array<int32_t, kDrafts> drafts{};
  weir::model::DraftTask task = {
      .memory = {.tables = pages.data()}, .position = 4, .tokens = drafts};
  model.drafter()->draft({&task, 1}, team);
  CHECK(task.count >= 0 && task.count <= kDrafts);
  for (const int32_t token : std::span(drafts).first(static_cast<size_t>(task.count)))
    CHECK(token >= 0);
}

void bind(const weir::card::ModelCard& card, const weir::card::ModelCard* files) {
  const weir::model::ModelOptions options = {
      .rows_max = 8,
      .context_max = kTokens,
      .draft = weir::model::DraftOptions{
          .card = files, .drafts_max = kDrafts, .quantise_bits = 4, .vocabulary = 16}};
  auto model = Decoder::bind(card, options, weir::kernels::ops_for(weir::kernels::Isa::kScalar), 1);
  if (model)
    draft(**model);
  else
    CHECK(!model.error().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string model_file = file_of(model_header());
  static const auto model = card_of(kModelConfig, model_file);
  CHECK(model.has_value());
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = input.find('\n');
  if (line == std::string_view::npos || size > kHeaderBytesMax) return 0;
  const std::string file = file_of(input.substr(line + 1));
  const auto card = card_of(input.substr(0, line), file);
  if (!card) {
    CHECK(!card.error().message.empty());
    return 0;
  }
  bind(*model, &*card);
  bind(*card, nullptr);
  return 0;
}
