// GgufArchitecture: one of the architectures that GGUF files name, and what its published
// checkpoint calls things: a table, so that families need not know of GGUF files.
//
// Threads: constants and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace weir::card {

class GgufConfig;
struct GgufPart;

struct GgufArchitecture {
  // A module of a layer and what its published name is within the layer. Where the first ends in a
  // suffix (".weight", ".bias", ".scale"), the second is the whole name of a tensor. An asterisk at
  // the end of the first is a number, and stands in the second where that number belongs.
  using Names = std::span<const std::pair<std::string_view, std::string_view>>;

  std::string_view name;          // `general.architecture`.
  std::string_view architecture;  // Of config.json.
  // Where several have the name: what a file must have for this one; else the first is it.
  enum class Variant : uint8_t {
    kDense,
    kMixture,
    kSigmoid,  // A mixture, whose router is a sigmoid.
  } variant = Variant::kDense;
  // Rows of q and k, and their biases, lie so that neighbours turn together.
  bool paired_rows = false;
  // Norms that mean w + 1 are stored as that sum.
  bool norms_are_sums = false;
  Names names{};  // Beside those that all have, or in their place.
  // Writes the keys of config.json that not all architectures have. Null: none.
  void (*keys)(GgufConfig& config) = nullptr;
};

// Null if it is not known. The first of `parts` has the metadata. REQUIRES: there is one.
const GgufArchitecture* gguf_architecture(std::string_view name, std::span<const GgufPart> parts);
// "llama, qwen2, ...", for messages.
std::string gguf_architecture_names();

// The published name of a tensor; its own where the tables do not have it, so that what binds
// weights refuses it by name.
std::string published_name(const GgufArchitecture& architecture, std::string_view tensor);

}  // namespace weir::card
