#include "program/prompt_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_size.h"
#include "base/log.h"
#include "kernels/cpu_ops.h"
#include "net/digest.h"
#include "program/commit.h"

namespace weir {

namespace {

// Of each file of weights: its header, and this many pieces of 4 KiB, evenly spread. With its size
// and when it was written they tell one file from another without reading gigabytes.
constexpr size_t kSamples = 64;
constexpr size_t kSampleBytes = 4096;
constexpr size_t kHeaderBytesMax = size_t{16} << 20;

// Of safetensors: its length is the first number. Other formats have none that we would know here.
size_t header_bytes(std::string_view file) {
  uint64_t length = 0;
  if (file.size() < sizeof length) return file.size();
  std::memcpy(&length, file.data(), sizeof length);
  const uint64_t most = std::min(file.size() - sizeof length, kHeaderBytesMax);
  return static_cast<size_t>(sizeof length + std::min(length, most));
}

void add_file(net::Digest& digest, const FileView& file) {
  const std::string_view bytes = file.text();
  digest.add(std::to_string(bytes.size()) + "\n");
  struct stat state {};
  if (file.mapped() && ::stat(file.name().c_str(), &state) == 0)
    digest.add(std::to_string(state.st_mtim.tv_sec) + "." + std::to_string(state.st_mtim.tv_nsec));
  digest.add(bytes.substr(0, header_bytes(bytes)));
  for (size_t i = 0; i < kSamples; ++i)
    digest.add(bytes.substr(bytes.size() / kSamples * i, kSampleBytes));
}

}  // namespace

kv::disk::PageShape prompt_cache_shape(const ModelFootprint& model) {
  return kv::disk::PageShape::of(model.kv_groups, model.checkpoint_bytes);
}

Result<std::string> prompt_cache_root(const Options& options) {
  if (!options.disk_cache_dir.empty()) return options.disk_cache_dir;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/')
    return std::string(xdg) + "/weir/prompts";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return std::string(home) + "/.cache/weir/prompts";
  return fail(ErrorCode::kConfig,
              "--disk-cache: expected --disk-cache-dir, XDG_CACHE_HOME or HOME, found none");
}

std::string prompt_cache_refusal(const ModelFootprint& model, const std::string& family) {
  const kv::disk::PageShape shape = prompt_cache_shape(model);
  if (shape.bytes_of(shape.all()) == 0) return family + " remembers nothing of its tokens";
  const int64_t most = std::ranges::max(shape.page_bytes);
  if (most > kv::disk::kPageBytesMax)
    return family + ": expected pages and states of at most " +
           human_bytes(kv::disk::kPageBytesMax) + " each, found one of " + human_bytes(most);
  return {};
}

std::string prompt_cache_fingerprint(const Options& options, const ModelChoice& choice,
                                     const model::Model& model) {
  net::Digest digest(net::Digest::Kind::kSha256);
  const auto differs = model.prompts_differ_from();
  for (const std::string& part :
       {std::string(kVersion), std::string(commit()), std::string(kernels::isa_name(choice.isa)),
        kernels::processor_name(), std::string(word_of(choice.compute)),
        std::string(choice.kv_format.name()), std::to_string(options.quantize),
        std::to_string(differs.value_or(-1)), model::describe(model.spec()),
        model.memory().formats})
    digest.add(part + "\n");
  for (const std::string& change : options.config_override) digest.add(change + "\n");
  for (const FileView& file : model.files().all) add_file(digest, file);
  return digest.finish();
}

std::unique_ptr<kv::disk::DiskCache> open_prompt_cache(const Options& options,
                                                       const ModelChoice& choice,
                                                       const model::Model& model,
                                                       const ModelFootprint& footprint,
                                                       std::atomic<int32_t>& open_caches) {
  if (options.disk_cache == 0) return nullptr;
  const auto off = [](const std::string& why) {
    log::warn("disk cache is off: " + why);
    return nullptr;
  };
  if (!options.prefix_cache) return off("--no-prefix-cache leaves nothing to keep");
  if (const std::string why = prompt_cache_refusal(footprint, model.spec().family); !why.empty())
    return off(why);
  const Result<std::string> root = prompt_cache_root(options);
  if (!root) return off(root.error().message);
  Result<std::unique_ptr<kv::disk::DiskCache>> cache = kv::disk::DiskCache::open(
      {.root = *root,
       .fingerprint = prompt_cache_fingerprint(options, choice, model),
       .shape = prompt_cache_shape(footprint),
       .limits = {.bytes_max = options.disk_cache, .free_bytes_min = options.disk_reserve},
       .open_caches = &open_caches});
  if (!cache) return off(cache.error().message);
  log::info("disk cache " + *root + " has " + human_bytes((*cache)->bytes()) + " of " +
            human_bytes(options.disk_cache) + ", " +
            std::to_string(int64_t{(*cache)->blocks()} * kv::kPageTokens) +
            " tokens of prompts, which anyone who reads the folder can read");
  return std::move(*cache);
}

std::string prompt_cache_note(const Options& options, const ModelFootprint& model,
                              const std::string& family) {
  if (const std::string why = prompt_cache_refusal(model, family); !why.empty())
    return "not for this model: " + why;
  // A whole page of a text has its place among eight in an extent, if it has no bytes of its own.
  const kv::disk::PageShape shape = prompt_cache_shape(model);
  constexpr int64_t kLeast = kv::disk::kBlockBytes / kv::disk::kExtentBlocksMax;
  const int64_t page = std::max(shape.page_bytes[0], kLeast);
  const int64_t tokens = options.disk_cache / page * kv::kPageTokens;
  std::string each = human_bytes(page / kv::kPageTokens) + " a token";
  const int32_t blocks = std::min(kv::blocks_for(model.context_max), kv::disk::kChainBlocksMax);
  if (const int64_t end = shape.side_bytes(blocks); end > 0)
    each += ", and " + human_bytes(end) + " for each end of a prompt or an answer";
  if (options.disk_cache == 0) return "off (--disk-cache SIZE): " + each;
  return human_bytes(options.disk_cache) + " hold " + std::to_string(tokens) + " tokens, " + each;
}

}  // namespace weir
