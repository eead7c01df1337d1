// What a model takes, said by the headers of its files, is what it takes when it is loaded: to the
// byte, for every fixture.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "card/default_model.h"
#include "fit/local_headers.h"
#include "kernels/cpu_ops.h"
#include "program/expert_streaming.h"
#include "program/loaded_model.h"
#include "program/model_choice.h"

namespace weir::fit {
namespace {

namespace fs = std::filesystem;

constexpr MemoryLimit kLimit = {.bytes = int64_t{64} << 30, .from = {}};

Options options_with(bool stream, int32_t bits) {
  Options options;
  options.threads = 2;
  options.stream_experts = stream;
  options.quantize = bits;
  return options;
}

// All that a plan knows of a model, and what a token costs; or why there is none.
std::string text_of(const model::Model& model, kv::Format kv_format, const MediaTowers& towers) {
  const Result<ModelFootprint> m = footprint(model, kv_format, towers);
  if (!m) return "error: " + m.error().message;
  std::ostringstream out;
  out << "packed " << m->packed_weights << " mapped " << m->mapped_weights << " scratch "
      << m->scratch << " state " << m->state_bytes << " slab " << m->slab_rows << " context "
      << m->context_max << " vocab " << m->vocab_size << " hidden " << m->hidden_size << " experts "
      << m->experts << " cycle " << m->expert_cycle;
  for (const auto& group : m->kv_groups)
    out << " pages " << group.window << ":" << group.page_bytes;
  if (m->takes_media())
    out << " tower " << m->image_tower << ":" << m->image_scratch << " sounds " << m->sound_encoder
        << ":" << m->sound_scratch << " span " << m->span_rows_max;
  out << " token " << model.token_work().weight_bytes << ":" << model.token_work().macs;
  return out.str();
}

std::string planned(Result<card::ModelCard> card, const Options& options) {
  if (!card) return "error: " + card.error().message;
  const Result<ModelChoice> choice = choose_model(options, std::move(*card));
  if (!choice) return "error: " + choice.error().message;
  const Result<std::unique_ptr<model::Model>> model =
      bind_model(choice->model_card, model_options(options, *choice), kLimit,
                 kernels::ops_for(choice->isa), choice->threads);
  if (!model) return "error: " + model.error().message;
  const Result<MediaTowers> towers =
      bind_media_towers(*choice, kernels::ops_for(choice->isa), choice->threads);
  return towers ? text_of(**model, choice->kv_format, *towers) : "error: " + towers.error().message;
}

std::string from_headers(const std::string& path, const Options& options) {
  return planned(card::ModelCard::open(headers_of(path)), options);
}

// Folders with a model's config.json or GGUF files, below those that hold the fixtures.
std::vector<std::string> fixtures() {
  std::vector<std::string> roots;
  for (const char* variable : {"WEIR_FAMILIES", "WEIR_FORMATS"})
    if (const char* root = std::getenv(variable)) roots.emplace_back(root);
  if (roots.empty()) roots.push_back(WEIR_SOURCE_DIR "/tests/data/families");
  std::set<std::string> folders;
  for (const std::string& root : roots)
    for (const auto& entry :
         fs::recursive_directory_iterator(root, fs::directory_options::follow_directory_symlink)) {
      if (entry.path().filename() == "config.json" || entry.path().extension() == ".gguf")
        folders.insert(entry.path().parent_path().string());
    }
  return {folders.begin(), folders.end()};
}

bool is_error(const std::string& text) { return text.starts_with("error"); }

TEST(Footprint, OfHeadersIsThatOfTheFiles) {
  const std::vector<std::string> folders = fixtures();
  int dense = 0, streamed = 0;
  for (const std::string& folder : folders) {
    for (const bool stream : {false, true}) {
      const Options options = options_with(stream, 0);
      const std::string whole = planned(card::ModelCard::open_folder(folder), options);
      if (is_error(whole)) continue;  // An adapter, say, or no experts to stream.
      ++(stream ? streamed : dense);
      EXPECT_EQ(from_headers(folder, options), whole) << folder << (stream ? ", streamed" : "");
    }
  }
  EXPECT_GE(dense, std::getenv("WEIR_FAMILIES") && std::getenv("WEIR_FORMATS") ? 200 : 2);
  EXPECT_GE(streamed, std::getenv("WEIR_FAMILIES") ? 30 : 1);
}

TEST(Footprint, OfHeadersIsThatOfTheFilesWhereFloatsAreQuantised) {
  int compared = 0;
  for (const std::string& folder : fixtures()) {
    if (++compared % 8 != 0) continue;  // A sample: the way is the same for all.
    const Options options = options_with(false, 4);
    const std::string whole = planned(card::ModelCard::open_folder(folder), options);
    if (is_error(whole)) continue;
    EXPECT_EQ(from_headers(folder, options), whole) << folder;
  }
}

// After its weights are packed and its experts open.
TEST(Footprint, IsThatOfTheLoadedModel) {
  const std::vector<std::string> folders = fixtures();
  int loaded_count = 0;
  for (const char* name : {"llama", "qwen3_moe", "qwen3_next", "mlxconv_qwen3_next", "mamba",
                           "gemma3_text", "deepseek_v3", "gguf_qwen3_q4_k_m", "gguf_qwen3moe_q8_0",
                           "gptq_qwen3_desc_act", "gguf_llama_split", "gemma3", "smolvlm", "qwen2_5_vl",
                           "fastvlm"}) {
    const auto found = std::ranges::find_if(
        folders, [&](const std::string& folder) { return fs::path(folder).filename() == name; });
    if (found == folders.end()) continue;
    for (const bool stream : {false, true}) {
      const Options options = options_with(stream, 0);
      const std::string expected = from_headers(*found, options);
      if (is_error(expected)) continue;
      Result<card::ModelCard> card = card::ModelCard::open_folder(*found);
      ASSERT_TRUE(card);
      const Result<ModelChoice> choice = choose_model(options, std::move(*card));
      ASSERT_TRUE(choice);
      ThreadTeam team(choice->threads);
      std::atomic<int> open_caches{0};
      const Result<LoadedModel> loaded = load_model(options, *choice, kLimit, team, open_caches);
      ASSERT_TRUE(loaded) << *found << ": " << loaded.error().message;
      EXPECT_EQ(text_of(*loaded->model, choice->kv_format, loaded->towers), expected) << *found;
      ++loaded_count;
    }
  }
  EXPECT_GE(loaded_count, std::getenv("WEIR_FAMILIES") ? 12 : 2);
}

TEST(Footprint, ErrorsOfHeadersNameTheModelAndTheKey) {
  std::vector<card::ModelFiles::Beginning> files = {
      {"config.json", R"({"architectures": ["NoSuchForCausalLM"]})", 0}};
  files[0].bytes = files[0].head.size();
  const std::string error =
      planned(card::ModelCard::open(card::ModelFiles::beginnings("org/name", files)), {});
  EXPECT_NE(error.find("org/name"), std::string::npos) << error;
  files[0].head = R"({"architectures": ["LlamaForCausalLM"]})";
  files[0].bytes = files[0].head.size();
  files.push_back({"model.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10), 10});
  const std::string lacks =
      planned(card::ModelCard::open(card::ModelFiles::beginnings("org/name", files)), {});
  EXPECT_NE(lacks.find("org/name/config.json"), std::string::npos) << lacks;
}

}  // namespace
}  // namespace weir::fit
