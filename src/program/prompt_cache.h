// The prompt cache on disk as the options have it (--disk-cache): where it lies, for which models
// there is one, and what it takes.
//
// Threads: any.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/result.h"
#include "kv/disk/disk_cache.h"
#include "kv/layout.h"
#include "model/model.h"
#include "program/memory_plan.h"
#include "program/model_choice.h"
#include "program/options.h"

namespace weir {

// --disk-cache-dir, or a folder of the user's caches. An error: there is no such place.
Result<std::string> prompt_cache_root(const Options& options);

// What blocks of this model's prompts have there.
kv::disk::PageShape prompt_cache_shape(const ModelFootprint& model);

// Why prompts of this model are not kept on disk; empty: they can be.
std::string prompt_cache_refusal(const ModelFootprint& model, const std::string& family);

// What changes a bit of what a model remembers, as 64 hexadecimal digits: its weights, its
// architecture, this program, the kernels and the format. Reads a little of each file of weights.
std::string prompt_cache_fingerprint(const Options& options, const ModelChoice& choice,
                                     const model::Model& model);

// Null: it is not asked for, or not to be had, which the log says then. `open_caches`: of the
// process, which share the space; outlives the cache.
std::unique_ptr<kv::disk::DiskCache> open_prompt_cache(const Options& options,
                                                       const ModelChoice& choice,
                                                       const model::Model& model,
                                                       const ModelFootprint& footprint,
                                                       std::atomic<int32_t>& open_caches);

// "12.3 GB on disk hold about 540,000 tokens (23 KiB each)"; of what --disk-cache would be, else.
std::string prompt_cache_note(const Options& options, const ModelFootprint& model,
                              const std::string& family);

}  // namespace weir
