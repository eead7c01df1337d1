// Which answers are ended so that a newcomer to a full queue finds room.
#include "api/access/queue_room.h"

#include <gtest/gtest.h>

namespace weir::api {
namespace {

using Ended = std::optional<std::vector<size_t>>;

TEST(QueueRoom, IsMadeByTheLatestAnswerOfTheCallerThatHasMost) {
  const std::vector<QueuedAnswer> answers = {{.caller = 1, .choices = 1},
                                             {.caller = 1, .choices = 1},
                                             {.caller = 1, .choices = 1},
                                             {.caller = 2, .choices = 1},
                                             {.caller = 2, .choices = 1}};
  EXPECT_EQ(make_room(answers, 1, 3, 1), Ended(std::vector<size_t>{2}));
  EXPECT_EQ(make_room(answers, 2, 3, 1), Ended(std::vector<size_t>{2, 4}));
}

TEST(QueueRoom, IsNotMadeByWhatTheEngineComputes) {
  const std::vector<QueuedAnswer> answers = {{.caller = 1, .choices = 2},
                                             {.caller = 1, .choices = 2, .begun = 2},
                                             {.caller = 1, .choices = 1, .fixed = true}};
  EXPECT_EQ(make_room(answers, 1, 2, 1), Ended(std::vector<size_t>{0}));
  EXPECT_EQ(make_room(std::span(answers).subspan(1), 1, 2, 1), std::nullopt);
}

TEST(QueueRoom, IsMadeByAnswersThatHaveBegunInPartAtLast) {
  const std::vector<QueuedAnswer> answers = {{.caller = 1, .choices = 128},
                                             {.caller = 1, .choices = 128, .begun = 1}};
  EXPECT_EQ(make_room(answers, 1, 2, 1), Ended(std::vector<size_t>{0}));
  EXPECT_EQ(make_room(answers, 129, 2, 1), Ended(std::vector<size_t>{0, 1}));
}

TEST(QueueRoom, IsMadeOnlyByCallersThatHaveMoreThanTheNewcomerThen) {
  const std::vector<QueuedAnswer> answers = {
      {.caller = 1, .choices = 4}, {.caller = 2, .choices = 3}, {.caller = 2, .choices = 1}};
  EXPECT_EQ(make_room(answers, 1, 1, 1), std::nullopt);
  EXPECT_EQ(make_room(answers, 1, 3, 4), std::nullopt);
  EXPECT_EQ(make_room(answers, 1, 3, 3), Ended(std::vector<size_t>{2}));
  EXPECT_EQ(make_room(answers, 3, 3, 3), Ended(std::vector<size_t>{2, 0}));
}

TEST(QueueRoom, IsMadeByNobodyIfItIsNotEnough) {
  const std::vector<QueuedAnswer> answers = {{.caller = 1, .choices = 3}};
  EXPECT_EQ(make_room(answers, 4, 2, 1), std::nullopt);
}

}  // namespace
}  // namespace weir::api
