// A whole server in the test's process: HTTP over a socket, the real engine, and a model that says
// the alphabet. Which token follows which is written down, so answers are known to the byte.
#pragma once

#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/api.h"
#include "api/without_timings.h"
#include "net/test_server.h"
#include "sched/engine_runner.h"
#include "sched/fake_model.h"

namespace weir::api {

using net::RawClient;
using namespace std::chrono_literals;

// Tokens 0..255 are bytes; kEnd ends an answer; kMark is a special token that does not; the last
// three mark the places of an infill, if the tokenizer names them so.
inline constexpr int32_t kEnd = 256, kMark = 257, kPrefix = 258, kSuffix = 259, kMiddle = 260;
inline constexpr int32_t kVocab = 261;
// Width of a hidden state: see hidden_of().
inline constexpr int32_t kHidden = 4;

// What follows a token: upper-case letters go round for ever; after ']', which ends every chat
// prompt, comes a greeting with a two-byte character, then the end; after '0' and '3' bytes that
// are no characters; after '5' a space; after kMiddle an upper-case letter.
inline std::array<int32_t, kVocab> successors() {
  std::array<int32_t, kVocab> next{};
  next.fill(kEnd);
  const auto chain = [&](std::string_view text) {
    for (size_t i = 0; i + 1 < text.size(); ++i)
      next[static_cast<uint8_t>(text[i])] = static_cast<uint8_t>(text[i + 1]);
  };
  chain("ABCDEFGHIJKLMNOPQRSTUVWXYZA");
  chain("]hey \xc3\xa9!");
  chain(
      "0\xff"
      "12");
  chain(
      "3\xe2"
      "4");
  next['5'] = ' ';
  next[kMiddle] = 'K';
  return next;
}

// The state after a token: its id, 1, -2 and the square root of the id.
inline std::array<float, kHidden> hidden_of(int32_t token) {
  const auto id = static_cast<float>(token);
  return {id, 1, -2, std::sqrt(id)};
}

class AlphabetModel final : public model::Model {
 public:
  explicit AlphabetModel(int32_t context)
      : logits_(size_t{kRows} * kVocab), hidden_(size_t{kRows} * kHidden) {
    spec_.vocab_size = kVocab;
    spec_.hidden_size = kHidden;
    spec_.context_max = options_.context_max = context;
    options_.rows_max = kRows;
    spec_.sublayers.push_back({.op = model::Attention{}});
    needs_ = {kv::PagedNeed{.heads = 1, .k_dim = 1, .v_dim = 1}};
  }

  model::ModelMemory memory() const override { return {}; }
  model::TokenWork token_work() const override { return {}; }

  using Model::forward;
  void forward(const model::Forward& pass, int member) override {
    const model::Batch& batch = pass.batch;
    if (member == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(step_us.load()));
      pass.sink.while_beginning();
      pass.sink.while_ending();
    }
    pass.team.barrier(member);
    for (int32_t i; (i = pass.team.claim()) < std::ssize(batch.wanted);) {
      const model::Wanted& wanted = batch.wanted[static_cast<size_t>(i)];
      const bool hidden = wanted.kind == model::Wanted::kHidden;
      const int32_t width = hidden ? kHidden : kVocab;
      const model::Rows rows = {
          .data = (hidden ? hidden_ : logits_).data() + int64_t{wanted.row_begin} * width,
          .count = wanted.rows,
          .width = width};
      for (int32_t r = 0; r < rows.count; ++r) {
        int32_t token = batch.tokens[static_cast<size_t>(wanted.row_begin + r)];
        if (token < 0) token = batch.before[-token - 1].token;
        if (hidden) {
          std::ranges::copy(hidden_of(token), rows.row(r).begin());
        } else {
          std::ranges::fill(rows.row(r), 0.0f);
          rows.row(r)[static_cast<size_t>(next_[static_cast<size_t>(token)])] = 30;
        }
      }
      pass.sink.on_rows(i, 0, rows, member);
    }
  }

  std::atomic<int64_t> step_us{0};  // How long a step takes.

 private:
  static constexpr int32_t kRows = 512;
  const std::array<int32_t, kVocab> next_ = successors();
  std::vector<float> logits_, hidden_;  // By row.
};

// tokenizer.json of a byte-level BPE without merges: one token a byte, by GPT-2's names of bytes.
// `strips`: decoding takes a space from the beginning, as with Llama 2's tokenizer. `doubles`: the
// token of '!' says it twice, so that one alone cannot be written.
inline std::string byte_tokenizer_json(bool strips = false, bool infills = false,
                                       bool doubles = false) {
  std::string out = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)";
  const auto added = [&](int32_t id, const char* content) {
    out += R"({"id":)" + std::to_string(id) + R"(,"content":")" + content +
           R"(","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)"
           R"("special":true})";
  };
  added(kEnd, "<end>");
  out += ',';
  added(kMark, infills ? "<|file_sep|>" : "<mark>");
  for (const auto& [id, name] :
       {std::pair{kPrefix, "prefix"}, {kSuffix, "suffix"}, {kMiddle, "middle"}}) {
    out += ',';
    added(id, (std::string(infills ? "<|fim_" : "<|no_") + name + "|>").c_str());
  }
  out += R"(],"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,)"
         R"("trim_offsets":true,"use_regex":false},"post_processor":null,)"
         R"("decoder":{"type":"Sequence","decoders":[{"type":"ByteLevel","add_prefix_space":true,)"
         R"("trim_offsets":true,"use_regex":true})" +
         std::string(strips ? R"(,{"type":"Strip","content":" ","start":1,"stop":0})" : "") +
         R"(]},"model":{"type":"BPE","dropout":null,"unk_token":null,)"
         R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,)"
         R"("byte_fallback":false,"vocab":{)";
  uint32_t unprintable = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const uint32_t code = printable ? byte : unprintable++;
    std::string name;
    if (code < 0x80) {
      name += static_cast<char>(code);
    } else {
      name += static_cast<char>(0xc0 | code >> 6);
      name += static_cast<char>(0x80 | (code & 63));
    }
    if (doubles && byte == '!') name += '!';
    if (byte > 0) out += ',';
    append_json_string(out, name);
    out += ':' + std::to_string(byte);
  }
  return out + R"(},"merges":[]}})";
}

struct TestOptions {
  ApiConfig config{};  // Model, machinery and template are filled in.
  int32_t context = 4096;
  int32_t queue_max = 64;
  int32_t running_max = 64;
  int64_t step_us = 0;
  bool with_template = true;
  std::string chat_template{};  // Instead of the usual one.
  bool strips_space = false;    // The tokenizer, from the beginning of a text.
  bool infills = false;         // It has the tokens for that.
  bool doubles_mark = false;    // It cannot write one exclamation mark alone.
  net::HttpLimits limits{};
};

class TestApi {
 public:
  explicit TestApi(TestOptions options = {}) : model_(options.context) {
    model_.step_us = options.step_us;
    sched::RunnerOptions runner;
    runner.engine.queue_max = options.queue_max;
    runner.engine.running_max = std::min(options.running_max, options.queue_max);
    runner.engine.context_max = options.context;
    runner.page_count = options.context / kernels::kPageTokens * 8;
    runner.wake = [this] { loop_.wake(); };
    runner_ = std::make_unique<sched::EngineRunner>(model_, sched::test_ops(), runner);

    auto tokenizer = text::Tokenizer::load(
        byte_tokenizer_json(options.strips_space, options.infills, options.doubles_mark));
    CHECK(tokenizer.has_value());
    tokenizer_ = std::move(*tokenizer);
    auto parsed = text::ChatTemplate::parse(
        !options.chat_template.empty()
            ? options.chat_template
            : "{% for m in messages %}[{{ m.role }}]{{ m.content }}"
              "{% for call in m.tool_calls or [] %}{{ call.function | tojson }}{% endfor %}"
              "{% endfor %}"
              "{% if tools %}[tools]{% for tool in tools %}{{ tool.function.name }}{% endfor %}"
              "{% endif %}"
              "{% if add_generation_prompt %}[assistant]{% endif %}");
    CHECK(parsed.has_value());
    template_ = std::make_unique<text::ChatTemplate>(std::move(*parsed));

    ApiConfig config = options.config;
    if (config.model_id.empty()) config.model_id = "m";
    config.created = 1700000000;
    config.context_max = options.context;
    config.vocab_size = kVocab;
    config.hidden_size = kHidden;
    config.defaults.eos_ids = {kEnd};
    config.tokenizer = tokenizer_.get();
    if (options.with_template) config.chat_template = template_.get();
    config.engine = &runner_->handle();
    config.loop = &loop_;
    config.version = "0.0.1";
    config.commit = "abc1234";
    api_ = std::make_unique<Api>(std::move(config));
    server_ = std::make_unique<net::HttpServer>(
        loop_, options.limits,
        [this](net::HttpRequest&& request, net::HttpResponderPtr responder) {
          api_->handle(std::move(request), std::move(responder));
        },
        &Api::error_body);
    server_->error_headers([this](int status, const net::HttpRequest& request) {
      return api_->error_headers(status, request);
    });
    server_->wants_body(
        [this](const net::HttpRequest& request) { return api_->wants_body(request); });
    api_->set_http_stats(&server_->stats());
    CHECK(server_->listen_tcp("127.0.0.1", 0).has_value());
    thread_ = std::thread([this] { loop_.run(); });
  }

  // Asks until it holds, for at most 5 s.
  bool eventually(const std::function<bool()>& holds) const {
    const auto begin = std::chrono::steady_clock::now();
    while (!holds()) {
      if (net::elapsed_ms(begin) > 5'000) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }
  template <class F>
  auto on_loop(F call) {
    return net::run_on_loop(loop_, std::move(call));
  }

  // Every test ends with this: clients gone, nothing of ours is left with the engine.
  ~TestApi() {
    EXPECT_TRUE(eventually([this] { return on_loop([this] { return api_->idle(); }); }));
    EXPECT_EQ(engine().open(), 0);
    loop_.stop();
    thread_.join();
    server_.reset();
    api_.reset();
    runner_->stop();
  }

  net::RawClient::Response get(const std::string& path, const std::string& headers = {}) const {
    RawClient client(port());
    client.send(net::get(path, headers));
    return client.read_response();
  }
  net::RawClient::Response post(const std::string& path, const std::string& body,
                                const std::string& headers = {}) const {
    RawClient client(port());
    client.send(net::post(path, body, headers));
    return client.read_response();
  }
  net::RawClient::Response chat(const std::string& more = {}) const {
    return post("/v1/chat/completions", chat_body(more));
  }
  net::RawClient::Response complete(const std::string& more = {}) const {
    return post("/v1/completions", R"({"model":"m","prompt":"A","temperature":0)" + more + "}");
  }
  static std::string chat_body(const std::string& more = {}) {
    return R"({"model":"m","messages":[{"role":"user","content":"Hi"}],"temperature":0)" + more +
           "}";
  }

  uint16_t port() const { return server_->port(); }
  Api& api() { return *api_; }
  AlphabetModel& model() { return model_; }
  sched::EngineHandle& engine() { return runner_->handle(); }
  void stop_engine() { runner_->stop(); }

 private:
  AlphabetModel model_;
  net::Loop loop_;
  std::unique_ptr<sched::EngineRunner> runner_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::unique_ptr<text::ChatTemplate> template_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<net::HttpServer> server_;
  std::thread thread_;
};

// The code of an error in OpenAI's shape, or what is wrong with the shape.
inline std::string error_code(const std::string& body) {
  const auto doc = JsonDoc::parse(body);
  if (!doc) return "not JSON: " + body;
  const auto error = json_get(doc->root().get_object().value_unsafe(), "error");
  if (!error) return "no error: " + body;
  const JsonObject object = error->get_object().value_unsafe();
  for (const char* key : {"message", "type", "param", "code"})
    if (object.at_key(key).error() != simdjson::SUCCESS) return "lacks " + std::string(key);
  const auto code = json_get(object, "code");
  return code ? std::string(code->get_string().value_unsafe()) : "null";
}

// Replaces every run of at least `length` characters of `set` after `prefix` by `name`.
inline void replace_runs(std::string& text, std::string_view prefix, std::string_view set,
                         size_t length, std::string_view name) {
  for (size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;) {
    at += prefix.size();
    const size_t end = std::min(text.find_first_not_of(set, at), text.size());
    if (end - at >= length) text.replace(at, end - at, name);
  }
}

// Replaces what differs from run to run, ids and times; leaves timings out.
inline std::string normalised(std::string text) {
  replace_runs(text, R"("id":"chatcmpl-)", "0123456789abcdef", 32, "ID");
  replace_runs(text, R"("id":"cmpl-)", "0123456789abcdef", 32, "ID");
  replace_runs(text, R"("created":)", "0123456789", 10, "TIME");
  return without_timings(std::move(text));
}

}  // namespace weir::api
