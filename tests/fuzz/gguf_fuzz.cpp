// A GGUF file: any bytes give metadata and tensors that lie within the file, or an error; and what
// is made of them (config.json, tokenizer) is made without harm.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "card/gguf.h"
#include "card/gguf_architecture.h"
#include "card/gguf_config.h"

namespace {

void read_values(const weir::card::GgufMetadata& metadata) {
  for (const auto& [key, value] : metadata.values()) {
    value.integers();
    value.numbers();
    value.texts();
    value.text();
    if (value.kind_text().empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto head = card::gguf_head_bytes("fuzz", bytes);
  if (head && head->value_or(0) > size) std::abort();
  auto parsed = card::parse_gguf("fuzz", bytes);
  if (!parsed) return 0;
  if (!head || !*head) std::abort();  // What was read must have had an end.
  read_values(parsed->metadata);
  volatile unsigned sum = 0;
  for (const card::GgufTensor& tensor : parsed->tensors) {
    if (tensor.offset > size || tensor.bytes() > size - tensor.offset) std::abort();
    for (uint64_t i = 0; i < tensor.bytes(); ++i) sum = sum + data[tensor.offset + i];
  }
  const card::GgufValue* name = parsed->metadata.find("general.architecture");
  const auto text = name == nullptr ? std::nullopt : name->text();
  const auto* architecture = text ? card::gguf_architecture(*text, parsed->metadata) : nullptr;
  if (architecture == nullptr) return 0;
  std::vector<card::GgufPart> parts;
  parts.push_back({FileView::borrow("fuzz", bytes), *std::move(parsed)});
  const auto config = card::GgufConfig(parts, *architecture).finish();
  if (config && config->empty()) std::abort();
  return 0;
}
