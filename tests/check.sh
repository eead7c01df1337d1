#!/usr/bin/env bash
# Runs weir-check for ctest on the reference fixtures where they are (tools/test finds and unpacks
# them), else on the small part of them in tests/data. Exit code 77: skipped, with the reason.
#   check.sh WEIR_CHECK KIND
set -euo pipefail
data="$(cd "$(dirname "$0")" && pwd)/data"
case "$2" in
  families) exec "$1" families --stream-experts "${WEIR_FAMILIES:-$data/families}" ;;
  formats)
    [ -n "${WEIR_FORMATS:-}" ] || { echo "skipped: no fixtures of formats (tools/test unpacks them)"; exit 77; }
    "$1" quantize "$WEIR_FORMATS"
    exec "$1" families --stream-experts "$WEIR_FORMATS" ;;
  templates) exec "$1" templates ${WEIR_FIXTURES:+"$WEIR_FIXTURES/chat_templates"} "$data/chat_templates" ;;
  models)
    [ -n "${WEIR_MODELS:-}" ] || { echo "skipped: no reference models (WEIR_MODELS, ../shared/models)"; exit 77; }
    "$1" model "$WEIR_MODELS"
    exec "$1" model "$WEIR_MODELS" --compute fast ;;
  tokenizers)
    [ -n "${WEIR_TOKENIZERS:-}" ] || { echo "skipped: no tokenizer packages (tools/fetch_tokenizers, npm)"; exit 77; }
    exec "$1" tokenizers "$WEIR_FIXTURES/tokenizers" --npm "$WEIR_TOKENIZERS" ;;
esac
