#!/usr/bin/env bash
# Runs weir-check for ctest on the reference fixtures where they are (tools/test finds and unpacks
# them), else on the small part of them in tests/data. Exit code 77: skipped, with the reason.
#   check.sh WEIR_CHECK KIND
set -euo pipefail
data="$(cd "$(dirname "$0")" && pwd)/data"
case "$2" in
  families) exec "$1" families --stream-experts "${WEIR_FAMILIES:-$data/families}" ;;
  images | sounds)
    [ -n "${WEIR_FAMILIES:-}" ] || { echo "skipped: no fixtures of families (tools/test unpacks them)"; exit 77; }
    exec "$1" "$2" "$WEIR_FAMILIES" ;;
  formats)
    [ -n "${WEIR_FORMATS:-}" ] || { echo "skipped: no fixtures of formats (tools/test unpacks them)"; exit 77; }
    "$1" quantize "$WEIR_FORMATS"
    exec "$1" families --stream-experts "$WEIR_FORMATS" ;;
  gguf)
    # Checkpoints written as GGUF files must answer as they do, but for those with options that such
    # files cannot say.
    /usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "skipped: no python3-numpy"; exit 77; }
    out="$(mktemp -d)"
    trap 'rm -rf "$out"' EXIT
    families="${WEIR_FAMILIES:-$data/families}"
    write() {  # FIXTURE OPTION...
      from="$(find -L "$families" -maxdepth 2 -type d -name "$1" -print -quit)"
      if [ -z "$from" ]; then return; fi
      to="$out/$1${3:-}"
      mkdir "$to"
      "$data/../../tools/to_gguf" "$from" "$to/model.gguf" "${@:2}"
      cp "$from/expected.safetensors" "$from/meta.json" "$to"
    }
    for name in deepseek_v2 deepseek_v2_lite deepseek_v3 deepseek_v3_plain gemma2 gemma3_text gemma3_text_linear_rope \
        gemma4_text_dense gemma4_text_e2b gemma4_text_moe glm4_moe glm4_moe_lite glm4_moe_noqk gpt_oss granite \
        granitemoe granitemoeshared lfm2 lfm2_moe llama llama_bias_linear llama_llama3rope llama_yarn mistral mixtral \
        olmoe phi3 phi3_longrope_long phi3_longrope_short qwen2 qwen2_moe qwen3 qwen3_5_moe_text qwen3_5_text \
        qwen3_moe qwen3_next qwen3_yarn youtu; do
      write "$name" --all
    done
    for name in deepseek_v2 deepseek_v3 mixtral youtu; do write "$name" --all --old; done
    "$1" families --stream-experts "$out"
    if [ -n "${WEIR_FORMATS:-}" ]; then "$1" tokenizers "$WEIR_FORMATS/given"; fi ;;
  templates) exec "$1" templates ${WEIR_FIXTURES:+"$WEIR_FIXTURES/chat_templates"} "$data/chat_templates" ;;
  models)
    [ -n "${WEIR_MODELS:-}" ] || { echo "skipped: no reference models (WEIR_MODELS, ../shared/models)"; exit 77; }
    "$1" model "$WEIR_MODELS"
    exec "$1" model "$WEIR_MODELS" --compute fast ;;
  tokenizers)
    [ -n "${WEIR_TOKENIZERS:-}" ] || { echo "skipped: no tokenizer packages (tools/fetch_tokenizers, npm)"; exit 77; }
    exec "$1" tokenizers "$WEIR_FIXTURES/tokenizers" --npm "$WEIR_TOKENIZERS" ;;
esac
