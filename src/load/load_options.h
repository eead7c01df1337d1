// LoadOptions: the load that is made, and what is to be told of it: what weir-load takes on its
// command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::load {

struct Range {
  int32_t low = 0, high = 0;  // Both included.
};

inline const std::string kRestName = "rest";

// A kind of request beside the others, as a share of all.
struct MixClass {
  std::string name;
  double share = 0;
  Range prompt_words, output_tokens;
};

struct LoadOptions {
  // Where.
  std::string host = "127.0.0.1";
  uint16_t port = 5413;
  std::string unix_path;
  bool tls = false;
  std::string ca_file;    // Empty: the system's.
  bool insecure = false;  // Whatever certificate the server has.
  std::string api_key;
  std::string model;  // Empty: the first of /v1/models.

  // How.
  int32_t clients = 1;    // Closed loop: each sends its next request when the last is answered.
  int64_t requests = 0;   // Per client; in all for an open loop. 0: until the duration ends.
  double duration_s = 0;  // 0: until the requests are done.
  double rate = 0;        // Open loop: requests a second. 0: closed loop.
  double burstiness = 1;  // Shape of the gamma-distributed gaps: 1 is Poisson, less is burstier.
  int32_t connections_max = 10'000;  // Open loop: arrivals beyond are counted, not sent.
  int64_t warmup = 0;                // Requests before the measurement, not measured.
  bool drop_first = false;           // Leave each client's first request out of the figures.
  int32_t idle = 0;                  // Idle connections held meanwhile.
  double timeout_s = 300;            // Of one request.

  // What.
  bool chat = true;  // Else /v1/completions.
  bool stream = true;
  bool ignore_eos = true;
  Range prompt_words{32, 128};
  Range output_tokens{32, 64};
  std::vector<MixClass> mix;  // What is left of the shares is the class kRestName.
  int32_t prefix_words = 0;   // Of them all the same.
  // Conversations that go on at once, each request with all that came before; 0: each stands alone.
  int32_t sessions = 0;
  int32_t turns = 6;  // Of a conversation, after which another begins.
  double temperature = 0;
  uint64_t seed = 1;
  double abort_share = 0;  // Of the streams, broken off by the client on the way.

  // What to tell.
  double slo_ttft_ms = 0;  // 0: none.
  double slo_tpot_ms = 0;
  double slo_e2e_ms = 0;
  int32_t pid = 0;        // Of the server, for its CPU time and memory.
  std::string json_path;  // "-": standard output, and no table.
  std::string log_path;   // A JSON object a line for each measured request.

  // "http://host:5413", "https://[::1]/v1", whose paths are known: host, port and tls. The text
  // says what was expected; empty: it was.
  std::string set_url(const std::string& url);
  // For the header Host.
  std::string authority() const;
  bool has_objectives() const { return slo_ttft_ms > 0 || slo_tpot_ms > 0 || slo_e2e_ms > 0; }
  // Of all requests, the rest first.
  int32_t class_count() const { return 1 + static_cast<int32_t>(mix.size()); }
  const std::string& class_name(int32_t index) const;
};

}  // namespace weir::load
