#include "suite/chat.h"

namespace weir::suite {

Request chat(const Run& run, const Chat& of) {
  Request request{.path = "/v1/chat/completions", .body = {}};
  JsonWriter json(request.body);
  json.begin_object().field("model", run.model_id()).key("messages").begin_array();
  json.begin_object().field("role", "user").field("content", of.message).end_object().end_array();
  json.field("max_tokens", of.max_tokens).field("temperature", of.temperature);
  json.field("seed", of.seed);
  if (of.more) of.more(json);
  json.end_object();
  return request;
}

Result<bool> needs_chat(Run& run, const Endpoint& at, const std::string& name) {
  const Answer answer = at.ask(chat(run, {.message = "Hello", .max_tokens = 1}));
  if (answer.error.empty()) return true;
  if (answer.status != 400 && answer.status != 404) return fail(ErrorCode::kIo, answer.error);
  run.skip(name, "the server does not chat: " + answer.error);
  return false;
}

}  // namespace weir::suite
