// weir-load, run as a program against a small server that speaks just enough of the API.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <future>

#include "base/json.h"
#include "test_server.h"

namespace weir::net {
namespace {

const std::string kProgram = std::string(WEIR_BUILD_DIR) + "/weir-load";

// A model whose every token is "w ", one each `token_ms`.
class FakeModel {
 public:
  FakeModel()
      : server(
            loop, HttpLimits{},
            [this](HttpRequest request, HttpResponderPtr responder) {
              handle(std::move(request), std::move(responder));
            },
            [](int, std::string_view, const HttpRequest&) {
              return std::pair<std::string, std::string>("text/plain", "e");
            }) {
    EXPECT_TRUE(server.listen_tcp("127.0.0.1", 0));
    loop.every(2, [this] { tick(); });
    thread_ = std::thread([this] { loop.run(); });
  }
  ~FakeModel() {
    loop.stop();
    thread_.join();
  }

  // Waits for the loop's thread: what it has written until now may be read.
  void settle() {
    std::promise<void> settled;
    loop.post([&] { settled.set_value(); });
    settled.get_future().wait();
  }

  // Of the loop's thread; read after settle().
  std::vector<std::string> bodies;
  std::string authorization;
  int closed = 0;
  size_t most_at_once = 0;
  // Set before the run.
  size_t streams_max = 1'000;  // 429 beyond.
  bool without_done = false;
  bool with_error_event = false;

  Loop loop;
  HttpServer server;

 private:
  struct Open {
    HttpResponderPtr responder;
    int64_t left = 0, total = 0;
    bool is_gone = false;
  };

  static std::string chunk(const std::string& content, const std::string& finish) {
    return "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + content +
           "\"},\"finish_reason\":" + finish + "}],\"usage\":null}\n\n";
  }
  static std::string usage(int64_t output) {
    return "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":" + std::to_string(output) + "}";
  }

  void handle(HttpRequest request, HttpResponderPtr responder) {
    if (request.path == "/v1/models")
      return responder->respond(200, {}, "{\"data\":[{\"id\":\"fake/model\"}]}");
    authorization = request.header("authorization");
    bodies.push_back(request.body);
    std::erase_if(open_, [](const auto& open) { return open->is_gone; });
    if (open_.size() >= streams_max) return responder->respond(429, {}, "{}");
    const Result<JsonDoc> doc = JsonDoc::parse(request.body);
    ASSERT_TRUE(doc);
    int64_t tokens = 0;
    bool stream = false;
    ASSERT_EQ(doc->root()["max_tokens"].get(tokens), simdjson::SUCCESS);
    ASSERT_EQ(doc->root()["stream"].get(stream), simdjson::SUCCESS);
    if (!stream)
      return responder->respond(
          200, {{"Content-Type", "application/json"}},
          "{\"choices\":[{\"text\":\"w\",\"finish_reason\":\"length\"}]," + usage(tokens) + "}");
    auto open = std::make_shared<Open>(Open{responder, tokens, tokens, false});
    responder->on_closed([this, weak = std::weak_ptr<Open>(open)] {
      ++closed;
      if (const auto left = weak.lock()) left->is_gone = true;
    });
    responder->start_stream(200, {{"Content-Type", "text/event-stream; charset=utf-8"}});
    responder->write(chunk("", "null"));
    open_.push_back(std::move(open));
    most_at_once = std::max(most_at_once, open_.size());
  }

  void tick() {
    std::erase_if(open_, [](const auto& open) { return open->is_gone; });
    for (const auto& open : open_) {
      open->responder->write(chunk("w ", "null"));
      if (--open->left > 0) continue;
      if (with_error_event)
        open->responder->write("data: {\"error\":{\"message\":\"broken\"}}\n\n");
      open->responder->write(chunk("", "\"length\""));
      open->responder->write("data: {\"choices\":[]," + usage(open->total) + "}\n\n");
      if (!without_done) open->responder->write("data: [DONE]\n\n");
      open->responder->end_stream();
      open->is_gone = true;
    }
  }

  std::vector<std::shared_ptr<Open>> open_;
  std::thread thread_;
};

struct Outcome {
  int status = -1;
  std::string output;
};

Outcome run_program(const std::string& arguments) {
  Outcome run;
  FILE* pipe = ::popen((kProgram + " " + arguments + " 2>&1").c_str(), "r");
  std::array<char, 4096> bytes;
  while (const size_t count = std::fread(bytes.data(), 1, bytes.size(), pipe))
    run.output.append(bytes.data(), count);
  const int status = ::pclose(pipe);
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

double number(const JsonDoc& doc, std::string_view pointer) {
  double value = -1;
  if (doc.root().at_pointer(pointer).get(value) != simdjson::SUCCESS) {
    int64_t integer = -1;
    EXPECT_EQ(doc.root().at_pointer(pointer).get(integer), simdjson::SUCCESS) << pointer;
    value = static_cast<double>(integer);
  }
  return value;
}

class WeirLoad : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(kProgram.c_str(), X_OK) != 0) GTEST_SKIP() << kProgram << " is not built";
  }
  JsonDoc run_json(FakeModel& model, const std::string& arguments, int expected_status = 0) {
    const Outcome run =
        run_program("--port " + std::to_string(model.server.port()) + " --json - " + arguments);
    model.settle();
    EXPECT_EQ(run.status, expected_status) << run.output;
    Result<JsonDoc> doc = JsonDoc::parse(run.output);
    EXPECT_TRUE(doc) << run.output;
    return doc ? std::move(*doc) : *JsonDoc::parse("{}");
  }
};

TEST_F(WeirLoad, ClosedLoopMeasuresEveryRequestOnKeptConnections) {
  FakeModel model;
  const JsonDoc doc = run_json(model,
                               "--clients 4 --requests 5 --output-tokens 4:8 --api-key key "
                               "--warmup 3 --slo-ttft 1000 --slo-tpot 1000 --pid " +
                                   std::to_string(::getpid()));
  EXPECT_EQ(number(doc, "/ok"), 20);
  EXPECT_EQ(number(doc, "/failed"), 0);
  EXPECT_EQ(number(doc, "/good"), 20);
  EXPECT_EQ(number(doc, "/connections"), 4);
  EXPECT_EQ(number(doc, "/prompt_tokens"), 140);
  EXPECT_EQ(number(doc, "/by_status/200"), 20);
  EXPECT_EQ(number(doc, "/ttft_ms/count"), 20);
  EXPECT_GE(number(doc, "/server/memory_mib"), 1);
  // A token each 2 ms, first and last included; the machine may be slow, never fast.
  EXPECT_GE(number(doc, "/itl_ms/p50"), 1.5);
  EXPECT_GE(number(doc, "/tpot_ms/p50"), 1.5);
  EXPECT_GE(number(doc, "/e2e_ms/max"), number(doc, "/ttft_ms/max"));
  EXPECT_EQ(model.authorization, "Bearer key");
  EXPECT_EQ(model.bodies.size(), 23u);
  EXPECT_LE(model.most_at_once, 4u);
  int64_t tokens = 0;
  for (size_t i = 3; i < model.bodies.size(); ++i) {
    int64_t one = 0;
    ASSERT_EQ(JsonDoc::parse(model.bodies[i])->root()["max_tokens"].get(one), simdjson::SUCCESS);
    EXPECT_TRUE(one >= 4 && one <= 8);
    tokens += one;
  }
  EXPECT_EQ(number(doc, "/output_tokens"), static_cast<double>(tokens));
  EXPECT_EQ(number(doc, "/itl_ms/count"), static_cast<double>(tokens - 20));
}

TEST_F(WeirLoad, TheSameSeedMakesTheSameWorkInBothLoops) {
  const auto bodies = [this](const std::string& arguments) {
    FakeModel model;
    run_json(model, "--output-tokens 2:4 --prompt-words 3:9 --prefix-words 4 " + arguments);
    std::vector<std::string> sorted = model.bodies;
    std::ranges::sort(sorted);
    return sorted;
  };
  const auto closed = bodies("--clients 3 --requests 4 --seed 9");
  EXPECT_EQ(closed, bodies("--rate 400 --requests 12 --seed 9"));
  EXPECT_NE(closed, bodies("--clients 3 --requests 4 --seed 10"));
  ASSERT_EQ(closed.size(), 12u);
  EXPECT_NE(closed.front(), closed.back());
  EXPECT_NE(closed[0].find("\"model\":\"fake/model\""), std::string::npos) << closed[0];
  EXPECT_NE(closed[0].find("\"ignore_eos\":true"), std::string::npos) << closed[0];
}

TEST_F(WeirLoad, OpenLoopCountsRefusalsApartAndKeepsItsRate) {
  FakeModel model;
  model.streams_max = 2;
  const JsonDoc doc = run_json(model, "--rate 200 --duration 0.5 --output-tokens 20");
  EXPECT_GT(number(doc, "/refused"), 0);
  EXPECT_GT(number(doc, "/ok"), 0);
  EXPECT_EQ(number(doc, "/refused"), number(doc, "/by_status/429"));
  EXPECT_EQ(number(doc, "/refusal_ms/count"), number(doc, "/refused"));
  // 100 expected, standard deviation 10.
  const double sent = number(doc, "/ok") + number(doc, "/refused");
  EXPECT_GT(sent, 50);
  EXPECT_LT(sent, 150);
}

TEST_F(WeirLoad, AbortsTheirShareAndTheServerNotices) {
  FakeModel model;
  const JsonDoc doc =
      run_json(model, "--clients 2 --requests 20 --output-tokens 10 --abort-share 0.5");
  EXPECT_EQ(number(doc, "/ok") + number(doc, "/aborted"), 40);
  EXPECT_GT(number(doc, "/aborted"), 8);
  EXPECT_LT(number(doc, "/aborted"), 32);
  // On a busy machine an answer may have been written to its end before its client leaves.
  EXPECT_LE(model.closed, number(doc, "/aborted"));
  EXPECT_GT(model.closed, number(doc, "/aborted") / 2);
}

TEST_F(WeirLoad, AStreamWithoutDoneOrWithAnErrorFails) {
  {
    FakeModel model;
    model.without_done = true;
    const JsonDoc doc = run_json(model, "--requests 3 --output-tokens 2", 1);
    EXPECT_EQ(number(doc, "/errors/no [DONE]"), 3);
  }
  FakeModel model;
  model.with_error_event = true;
  const JsonDoc doc = run_json(model, "--requests 3 --output-tokens 2", 1);
  EXPECT_EQ(number(doc, "/errors/error event: broken"), 3);
  EXPECT_EQ(number(doc, "/ok"), 0);
}

TEST_F(WeirLoad, LeavesTheFirstRequestOfEachClientOut) {
  FakeModel model;
  const JsonDoc doc = run_json(model, "--clients 3 --requests 4 --output-tokens 2 --drop-first");
  EXPECT_EQ(number(doc, "/ok"), 9);
  EXPECT_EQ(model.bodies.size(), 12u);
}

TEST_F(WeirLoad, AsksCompletionsForWholeAnswers) {
  FakeModel model;
  const JsonDoc doc =
      run_json(model, "--endpoint completions --no-stream --requests 3 --output-tokens 6");
  EXPECT_EQ(number(doc, "/ok"), 3);
  EXPECT_EQ(number(doc, "/output_tokens"), 18);
  EXPECT_NE(model.bodies.at(0).find("\"prompt\":\""), std::string::npos);
}

TEST_F(WeirLoad, HoldsIdleConnections) {
  FakeModel model;
  const JsonDoc doc = run_json(model, "--clients 0 --idle 300 --duration 0.1");
  EXPECT_EQ(number(doc, "/idle_open"), 300);
  EXPECT_EQ(number(doc, "/ok"), 0);
}

TEST_F(WeirLoad, SaysWhatIsWrong) {
  uint16_t port = 0;
  {
    FakeModel model;
    port = model.server.port();
  }
  const Outcome down = run_program("--port " + std::to_string(port));
  EXPECT_EQ(down.status, 2);
  EXPECT_NE(down.output.find("connection refused; is the server up?"), std::string::npos)
      << down.output;
  const Outcome bad = run_program("--output-tokens 9:3");
  EXPECT_EQ(bad.status, 2);
  EXPECT_NE(bad.output.find("expected 1 <= LOW <= HIGH"), std::string::npos) << bad.output;
  const Outcome help = run_program("--help");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.output.find("--burstiness"), std::string::npos);
  // Without a server it does not spin: 5 requests fail, a millisecond apart.
  const Outcome failing = run_program("--model m --requests 5 --port " + std::to_string(port));
  EXPECT_EQ(failing.status, 1);
  EXPECT_NE(failing.output.find("error, 5 times: cannot connect"), std::string::npos)
      << failing.output;
}

TEST_F(WeirLoad, PrintsATable) {
  FakeModel model;
  const Outcome run = run_program("--port " + std::to_string(model.server.port()) +
                                  " --requests 4 --output-tokens 3 --slo-ttft 500");
  EXPECT_EQ(run.status, 0);
  for (const char* text : {"fake/model, closed loop", "4 ok, 0 failed", "\nTTFT ", "\nTPOT ",
                           "\nITL ", "\nE2E ", "\ngoodput "})
    EXPECT_NE(run.output.find(text), std::string::npos) << text << " in:\n" << run.output;
}

}  // namespace
}  // namespace weir::net
