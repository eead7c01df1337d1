// A GGUF file: any bytes give metadata and tensors that lie within the file, or an error; what is
// made of them (config.json, settings, the tensors of a checkpoint, a tokenizer) is made without
// harm, and the tokenizer works.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>

#include "card/gguf.h"
#include "card/gguf_model.h"
#include "tokenizer_check.h"

namespace {

using namespace weir;

void read_values(const card::GgufMetadata& metadata) {
  for (const auto& [key, value] : metadata.values()) {
    value.integers();
    value.numbers();
    value.texts();
    value.text();
    if (value.kind_text().empty()) std::abort();
  }
}

template <class Numbers>
void touch(const Numbers& bytes) {
  volatile unsigned sum = 0;
  for (const auto byte : bytes) sum = sum + static_cast<unsigned>(byte);
}

void read_model(card::GgufPart part, std::span<const std::byte> bytes) {
  const size_t count = part.header.tensors.size();
  std::vector<card::GgufPart> parts;
  parts.push_back(std::move(part));
  const auto model = card::read_gguf(std::move(parts));
  if (!model) {
    CHECK(!model.error().message.empty());
    return;
  }
  CHECK(!model->config.empty());
  CHECK(model->tensors.tensors().size() <= count);
  for (const card::StoredTensor& stored : model->tensors.tensors()) {
    CHECK(!stored.name.empty());
    const auto* begin = static_cast<const std::byte*>(stored.tensor.data);
    CHECK(begin >= bytes.data() && begin <= bytes.data() + bytes.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto head = card::gguf_head_bytes("fuzz", bytes);
  if (head && head->value_or(0) > size) std::abort();
  auto parsed = card::parse_gguf("fuzz", bytes);
  if (!parsed) return 0;
  if (!head || !*head) std::abort();  // What was read must have had an end.
  read_values(parsed->metadata);
  for (const card::GgufTensor& tensor : parsed->tensors) {
    if (tensor.offset > size || tensor.bytes() > size - tensor.offset) std::abort();
    touch(bytes.subspan(tensor.offset, tensor.bytes()));
  }
  card::GgufPart part = {FileView::borrow("fuzz", bytes), *std::move(parsed)};
  const auto tokenizer = card::read_gguf_tokenizer(part);
  read_model(std::move(part), bytes);
  if (tokenizer) text::check_file(text::kGgufTokenizer, *tokenizer, "");
  return 0;
}
