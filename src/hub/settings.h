// Settings: where the hub is, where its files are kept here, and who asks. By the environment
// variables of huggingface_hub, so that both programs share one cache and one token.
//
// Threads: any; a value.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace weir::hub {

struct Settings {
  std::string endpoint = "https://huggingface.co";  // HF_ENDPOINT; without a slash at its end.
  // The first of HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub,
  // ~/.cache/huggingface/hub. Absolute.
  std::string cache;
  // HF_TOKEN, HUGGING_FACE_HUB_TOKEN, or the file HF_TOKEN_PATH or HF_HOME/token. Empty: none, and
  // with HF_HUB_DISABLE_IMPLICIT_TOKEN. It goes to the endpoint and nowhere else: no message, log
  // line, other host or command line may hold it.
  std::string token;
  bool offline = false;                             // HF_HUB_OFFLINE: no request at all.
  std::chrono::milliseconds metadata_time{10'000};  // HF_HUB_ETAG_TIMEOUT.

  // Errors name the variable, never a token.
  static Result<Settings> from_environment();
};

}  // namespace weir::hub
