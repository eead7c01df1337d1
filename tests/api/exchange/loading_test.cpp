#include "api/exchange/loading.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "api/recorded_responder.h"

namespace weir::api {
namespace {

using Values = std::vector<std::string>;

TEST(LoadingAnswers, SayWhenToComeAgainAlsoToPages) {
  const LoadingAnswers loading({"*"});
  net::HttpRequest request;
  request.method = "POST";
  request.path = "/v1/chat/completions";
  request.headers = {{"origin", "https://a.example"}, {"x-request-id", "mine"}};
  RecordedResponder answer;
  loading.answer(request, answer);
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("still loading"), std::string::npos);
  EXPECT_EQ(answer.values("Retry-After"), Values{"1"});
  EXPECT_EQ(answer.values("retry-after-ms"), Values{"1000"});
  EXPECT_EQ(answer.values("x-request-id"), Values{"mine"});
  EXPECT_EQ(answer.values("Access-Control-Allow-Origin"), Values{"*"});
  EXPECT_EQ(answer.values("Content-Type"), Values{"application/json"});

  request.path = "/v1/messages";
  loading.answer(request, answer);
  EXPECT_NE(answer.body.find("overloaded_error"), std::string::npos) << answer.body;
}

// A browser would never send the request, and its page never learn why.
TEST(LoadingAnswers, LetPreflightsPass) {
  const LoadingAnswers loading({"https://a.example"});
  net::HttpRequest request;
  request.method = "OPTIONS";
  request.path = "/v1/chat/completions";
  request.headers = {{"origin", "https://a.example"},
                     {"access-control-request-method", "POST"},
                     {"access-control-request-headers", "authorization"}};
  RecordedResponder answer;
  loading.answer(request, answer);
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(answer.values("Access-Control-Allow-Origin"), Values{"https://a.example"});
  EXPECT_EQ(answer.values("Access-Control-Allow-Headers"), Values{"authorization"});
  EXPECT_TRUE(answer.body.empty());
}

}  // namespace
}  // namespace weir::api
