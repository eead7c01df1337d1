#include "base/progress.h"

#include <gtest/gtest.h>

#include "base/thread_team.h"

namespace weir {
namespace {

TEST(ProgressTest, MovesOnByWhatItsThreadNotesWhileItIsAttached) {
  Progress progress;
  note_progress();
  EXPECT_EQ(progress.count(), 0u);
  {
    const Progress::Scope scope(progress);
    note_progress();
    progress.move_on();
    EXPECT_EQ(progress.count(), 2u);
  }
  note_progress();
  EXPECT_EQ(progress.count(), 2u);
}

// Of each run and each barrier that the leader of a team comes to, whatever the others do.
TEST(ProgressTest, ATeamNotesItsRunsAndBarriers) {
  for (const int members : {1, 2, 4}) {
    ThreadTeam team(members);
    Progress progress;
    const Progress::Scope scope(progress);
    for (uint32_t i = 1; i <= 20; ++i) {
      team.run([&](int member) {
        team.barrier(member);
        team.barrier(member);
      });
      EXPECT_EQ(progress.count(), 3 * i) << members;
    }
  }
}

}  // namespace
}  // namespace weir
