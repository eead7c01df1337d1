#include "program/foreign_options.h"

#include <algorithm>
#include <array>

namespace weir {

namespace {

struct ShortName {
  std::string_view name, option;
};
constexpr std::array kShortNames = {
    ShortName{"m", "model"}, ShortName{"c", "ctx-size"},  ShortName{"t", "threads"},
    ShortName{"a", "alias"}, ShortName{"np", "parallel"},
};

struct Answer {
  std::string_view names;  // Separated by spaces.
  std::string_view sentence;
};

constexpr std::array kOptions = {
    // The same thing under another name.
    Answer{"--max-model-len --num-ctx --max-seq-len --context-size", "Weir calls it --ctx-size"},
    Answer{"--served-model-name --model-name", "Weir calls it --alias"},
    Answer{"--max-num-seqs --n-parallel --num-parallel", "Weir calls it --parallel"},
    Answer{"-b --batch-size -ub --ubatch-size --max-num-batched-tokens --max-batched-tokens "
           "--num-batch",
           "Weir calls the most tokens of one step --prefill-size"},
    Answer{"-n --predict --n-predict --num-predict", "Weir calls it --max-tokens"},
    Answer{"-tb --threads-batch --num-thread --threads-http",
           "one team of --threads threads does everything"},
    Answer{"--temperature", "Weir calls it --temp"},
    Answer{"--repetition-penalty", "Weir calls it --repeat-penalty"},
    Answer{"--chat-template-file", "Weir calls it --chat-template"},
    Answer{"--tool-call-parser", "Weir calls it --tool-parser"},
    Answer{"--reasoning-parser", "Weir calls it --reasoning-format"},
    Answer{"--reasoning -rea --enable-reasoning --think", "Weir calls it --thinking"},
    Answer{"-ctk --cache-type-k -ctv --cache-type-v --kv-cache-dtype", "Weir calls it --kv-cache"},
    Answer{"--ssl-key-file --ssl-keyfile", "Weir calls it --tls-key"},
    Answer{"--ssl-cert-file --ssl-certfile", "Weir calls it --tls-cert"},
    Answer{"--allowed-origins --cors-origins --cors-allow-origins", "Weir calls it --cors"},
    Answer{"--uds --unix", "Weir calls it --unix-socket"},
    Answer{"-to --timeout", "Weir has --request-timeout, --queue-timeout and --idle-timeout"},
    Answer{"-v --verbose --log-verbose -lv --log-verbosity --verbosity --log-disable "
           "--disable-log-requests --no-enable-log-requests --uvicorn-log-level",
           "Weir has --log-level"},
    Answer{"--gpu-memory-utilization -fitt --fit-target --kv-cache-memory-bytes",
           "Weir has --mem-limit for all memory and --kv-memory for keys and values"},
    Answer{"--cpu-moe -cmoe --n-cpu-moe -ncmoe --moe-cache-mib --cpu-offload-gb --swap-space",
           "all computing is done by the processor; --stream-experts reads experts from disk where "
           "memory is short"},
    Answer{"--override-kv --hf-overrides --rope-scaling --rope-scale --rope-theta "
           "--rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor",
           "Weir takes this from config.json, of which --config-override replaces keys"},

    Answer{"-hf -hfr --hf-repo -hff --hf-file --revision",
           "a model of the Hugging Face hub is a model: --model ORG/NAME[@REVISION][:FILE]"},
    Answer{"-hft --hf-token",
           "a token on the command line is seen by all users of the machine: set HF_TOKEN"},
    Answer{"--download-dir", "models lie in Hugging Face's cache; HF_HOME says where"},

    // Always so.
    Answer{"-fa --flash-attn --flash-attention --no-flash-attn",
           "attention always works in blocks, without a matrix of all scores; there is nothing to "
           "switch"},
    Answer{"-cb --cont-batching --no-cont-batching -nocb --enable-chunked-prefill "
           "--no-enable-chunked-prefill -kvu --kv-unified",
           "batches are always continuous and prompts always computed in pieces"},
    Answer{"--jinja --no-jinja", "chat templates are always Jinja"},
    Answer{"--cache-prompt --no-cache-prompt --cache-reuse --enable-prefix-caching "
           "--no-enable-prefix-caching --cache-ram -cram",
           "prompts share what they begin with, unless --no-prefix-cache says otherwise"},
    Answer{"--metrics --slots --no-slots --props --enable-server-load-tracking",
           "/metrics, /slots and /props are always there; keys with a scope protect them "
           "(--api-key-file)"},
    Answer{"--embedding --embeddings --task --runner --convert",
           "/v1/embeddings is always there; --pooling says how"},
    Answer{"--rerank --reranking", "Weir has --reranker; a model that is one needs no option"},
    Answer{"--enable-auto-tool-choice", "tools always work; --tool-parser names their format"},
    Answer{"--warmup --no-warmup --enforce-eager --compilation-config",
           "nothing has to be compiled or warmed up"},
    Answer{"--trust-remote-code", "Weir never runs code of a model's folder, and needs none"},
    Answer{"--keep-alive --sleep-idle-seconds", "the model stays in memory"},
    Answer{"--mmap --no-mmap --mlock --load-mode --direct-io",
           "quantised weights are copied into memory at the start, others are mapped; there is "
           "nothing to switch"},
    Answer{"--numa --prio --poll --cpu-mask --cpu-range --cpu-strict -C -Cr",
           "Weir takes the cores that the system gives it (taskset, numactl, cpusets) and "
           "--threads"},

    // Not there.
    Answer{"-ngl --gpu-layers --n-gpu-layers --num-gpu -dev --device -sm --split-mode -ts "
           "--tensor-split -mg --main-gpu --no-kv-offload -nkvo --op-offload --main-device",
           "Weir computes on the processor: there are no layers to move to a GPU"},
    Answer{"--tensor-parallel-size -tp --pipeline-parallel-size -pp --data-parallel-size -dp "
           "--distributed-executor-backend --enable-expert-parallel",
           "Weir is one process on one machine; all its cores work together (--threads)"},
    Answer{"--lora --lora-scaled --lora-init-without-apply",
           "--lora-modules NAME=PATH loads an adapter; a request's 'lora', or POST /lora-adapters, "
           "gives its scale"},
    Answer{"-mu --model-url -dr --docker-repo",
           "Weir fetches models of the Hugging Face hub only: --model ORG/NAME[:FILE]"},
    Answer{"--draft --draft-max --draft-n --num-speculative-tokens",
           "--num-draft-tokens is the most drafts of a step; how many pay is measured"},
    Answer{"--draft-min --draft-p-min",
           "how many drafts pay is measured; a request may say speculative.n_min and .p_min"},
    Answer{"--spec-type --speculative-config", "--speculative says which drafts steps have"},
    Answer{"-md --model-draft --speculative-model", "--draft-model names the drafter's folder"},
    Answer{"--dflash", "--draft-model names the drafter's folder; its config.json says what it is"},
    Answer{"--dflash-block-size", "the drafter's config.json says it; --num-draft-tokens bounds it"},
    Answer{"--mmproj --mmproj-url --mmproj-auto",
           "a vision tower lies in the model's own folder, in its safetensors"},
    Answer{"--limit-mm-per-prompt", "--max-images bounds the images of a request"},
    Answer{"--allowed-local-media-path", "--media-path names the folder"},
    Answer{"--allowed-media-domains", "--allow-remote-media names the hosts"},
    Answer{"--dtype --quantization -q --load-format",
           "weights are used as they are stored, floats also in fewer bits (--quantize); --compute "
           "chooses the arithmetic"},
    Answer{"--gguf", "a GGUF file is a model: --model FILE.gguf"},
    Answer{"--tokenizer --tokenizer-mode", "the tokenizer is tokenizer.json in the model's folder"},
    Answer{"-s --seed", "a seed belongs to a request: its field is 'seed'"},
    Answer{"--context-shift --no-context-shift --keep",
           "what does not fit into the context is refused or ends, never forgotten"},
    Answer{"--slot-save-path --slot-prompt-similarity -sps", "Weir has no slots to save"},
    Answer{"--webui --no-webui --ui --no-ui --path", "Weir has no chat page to switch"},
    Answer{"--models-preset", "--models FILE reads it"},
    Answer{"--models-dir --models-max", "--models FILE names several models; memory bounds them"},
    Answer{"-p -f", "Weir is a server: prompts come in requests"},
    Answer{"--block-size --num-gpu-blocks-override", "Weir's pages have 32 tokens"},
};

constexpr std::array kWords = {
    Answer{"run chat", "weir --model DIR serves a model; any OpenAI client talks to it"},
    Answer{"download", "weir pull ORG/NAME fetches a model"},
    Answer{"push create cp import",
           "Weir makes and sends no models: it reads folders, GGUF files and the Hugging Face hub"},
    Answer{"ls", "weir list lists the models that are here"},
    Answer{"delete remove", "weir rm ORG/NAME deletes a model"},
    Answer{"ps show stop", "see /v1/models of the server, POST /models/unload, and 'weir info'"},
};

bool holds(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == name) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

template <size_t n>
std::string_view find_answer(const std::array<Answer, n>& answers, std::string_view name) {
  const auto found = std::ranges::find_if(
      answers, [&](const Answer& answer) { return holds(answer.names, name); });
  return found == answers.end() ? std::string_view() : found->sentence;
}

}  // namespace

std::string_view long_name(std::string_view short_option) {
  const auto found = std::ranges::find(kShortNames, short_option, &ShortName::name);
  return found == kShortNames.end() ? std::string_view() : found->option;
}

std::string_view short_name(std::string_view option) {
  const auto found = std::ranges::find(kShortNames, option, &ShortName::option);
  return found == kShortNames.end() ? std::string_view() : found->name;
}

std::string_view foreign_option(std::string_view flag) { return find_answer(kOptions, flag); }

std::string_view foreign_command(std::string_view word) { return find_answer(kWords, word); }

}  // namespace weir
