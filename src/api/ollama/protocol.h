// Ollama's /api/chat and /api/generate as Protocols. Some of their requests want no answer, but the
// model loaded or unloaded.
//
// Threads: as Protocol; order() is the loop's, after prepare().
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/ollama/shape.h"
#include "api/prompt/protocol.h"

namespace weir::api::ollama {

// What a request without messages or a prompt asks for.
struct ModelOrder {
  std::string model{};  // As this server spells it.
  bool unload = false;
  std::optional<double> keep_alive_s{};
  AnswerFacts facts{};  // Of the answer.
};

class OllamaProtocol : public Protocol {
 public:
  // What prepare() found instead of an answer to compute: what it returned has no requests then.
  virtual const std::optional<ModelOrder>& order() const = 0;
  // How long the model stays after an answer, where the request says that.
  virtual std::optional<double> keep_alive_s() const = 0;
};

std::shared_ptr<OllamaProtocol> make_chat_protocol();
std::shared_ptr<OllamaProtocol> make_generate_protocol();

}  // namespace weir::api::ollama
