#include "ssd/read_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "measure/modelled_disk.h"
#include "ssd/temp_file.h"

namespace weir::ssd {
namespace {

using namespace std::chrono_literals;
using enum ReadClass;

constexpr uint64_t kBlock = kBlockBytes;
constexpr uint32_t kMiB = 1 << 20;
constexpr uint64_t kSeed = 11;

// A queue on a modelled disk with one file of 64 MiB: 1 ms for a MiB, and no latency.
class ReadQueueTest : public testing::Test {
 protected:
  ReadQueueTest() : disk_(model()), memory_(size_t{64} << 20) {
    disk_.add_file("weights", uint64_t{64} << 20,
                   [](uint64_t offset, auto out) { fill_words(kSeed, offset, out); });
    limits_.demand_window_bytes = 4 * kMiB;
    make_queue();
  }

  static measure::DiskModel model() {
    measure::DiskModel model;
    model.bytes_per_second = 1000.0 * kMiB;
    model.latency = 0ns;
    return model;
  }

  void make_queue() { queue_ = std::make_unique<ReadQueue>(disk_, limits_); }

  // MiB number `index` of the file, to the same place in memory.
  static Extent whole(uint64_t index, std::byte* memory) {
    return {0, index * kMiB, kMiB, kMiB, memory + index * kMiB};
  }
  ReadQueue::ReadId add(uint64_t index, ReadClass cls) {
    const auto id = queue_->add(whole(index, memory_.at(0)), cls, index);
    EXPECT_TRUE(id);
    return id.value_or(0);
  }
  bool right(uint64_t index) {
    return has_words(kSeed, index * kMiB, memory_.span(index * kMiB, kMiB));
  }

  // MiB numbers in the order in which the disk was asked for them.
  std::vector<uint64_t> sent() {
    std::vector<uint64_t> order;
    for (const DiskRead& read : disk_.submitted()) order.push_back(read.offset / kMiB);
    disk_.submitted().clear();
    return order;
  }
  // Owners in the order in which they land, without failures, until nothing is outstanding.
  std::vector<uint64_t> land_all() {
    std::vector<uint64_t> owners;
    while (true) {
      const auto landed = queue_->wait(60s);
      if (landed.empty()) return owners;
      for (const Landed& one : landed) {
        EXPECT_EQ(one.failure, nullptr) << one.failure->message;
        owners.push_back(one.owner);
      }
      queue_->check();
    }
  }
  // The failure of the one read that lands next.
  ReadFailure failure() {
    const auto landed = queue_->wait(60s);
    EXPECT_EQ(landed.size(), 1u);
    if (landed.size() != 1 || !landed[0].failure) return {};
    EXPECT_TRUE(landed[0].released);
    return *landed[0].failure;
  }
  uint64_t errors(ReadError error) {
    return queue_->stats().errors[static_cast<size_t>(error)].value();
  }

  measure::ModelledDisk disk_;
  ReadMemory memory_;
  QueueLimits limits_;
  std::unique_ptr<ReadQueue> queue_;
};

using Order = std::vector<uint64_t>;

// --- Order.

TEST_F(ReadQueueTest, ReadsLandOnceWithTheFilesBytes) {
  for (uint64_t i = 0; i < 10; ++i) add(i, kDemand);
  EXPECT_EQ(queue_->queued(kDemand), 10);
  EXPECT_EQ(land_all(), (Order{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  for (uint64_t i = 0; i < 10; ++i) EXPECT_TRUE(right(i));
  EXPECT_EQ(queue_->in_flight(), 0);
  EXPECT_FALSE(queue_->demand_outstanding());
  EXPECT_EQ(queue_->stats().reads[0].value(), 10u);
  EXPECT_EQ(queue_->stats().bytes[0].value(), 10u * kMiB);
}

TEST_F(ReadQueueTest, ClassesGoByPrecedenceAndFirstComeFirstWithin) {
  add(0, kSpeculative);
  add(1, kPrefill);
  add(2, kDemand);
  add(3, kPrefill);
  add(4, kDemand);
  EXPECT_EQ(land_all().size(), 5u);
  EXPECT_EQ(sent(), (Order{2, 4, 1, 3, 0}));
}

TEST_F(ReadQueueTest, NoMoreIsInFlightThanTheWindow) {
  for (uint64_t i = 0; i < 10; ++i) add(i, kDemand);
  queue_->submit();
  EXPECT_EQ(queue_->in_flight(), 4);
  disk_.advance(1ms);
  EXPECT_EQ(queue_->poll().size(), 1u);
  EXPECT_EQ(queue_->in_flight(), 4);
  EXPECT_EQ(sent(), (Order{0, 1, 2, 3, 4}));
}

TEST_F(ReadQueueTest, AReadAboveTheWindowGoesAlone) {
  limits_.demand_window_bytes = kMiB / 2;
  make_queue();
  add(0, kDemand);
  add(1, kDemand);
  queue_->submit();
  EXPECT_EQ(queue_->in_flight(), 1);
  EXPECT_EQ(land_all(), (Order{0, 1}));
}

TEST_F(ReadQueueTest, DemandDoesNotWaitForAWindowFullOfPrefill) {
  for (uint64_t i = 0; i < 8; ++i) add(i, kPrefill);
  queue_->submit();
  EXPECT_EQ(queue_->in_flight(), 4);
  add(20, kDemand);
  queue_->submit();
  EXPECT_EQ(sent(), (Order{0, 1, 2, 3, 20}));
  disk_.advance(1ms);
  queue_->poll();  // Demand in flight leaves three places for prefill, which has them.
  EXPECT_EQ(sent(), (Order{}));
}

TEST_F(ReadQueueTest, AtMostTwoSpeculativeReadsAreInTheKernelAndOnlyWhileTheDiskIsIdle) {
  for (uint64_t i = 0; i < 5; ++i) add(i, kSpeculative);
  add(9, kDemand);
  queue_->submit();
  EXPECT_EQ(sent(), (Order{9}));
  disk_.advance(1ms);
  queue_->poll();
  EXPECT_EQ(sent(), (Order{0, 1}));
  disk_.advance(1ms);
  queue_->poll();
  EXPECT_EQ(sent(), (Order{2}));
  add(10, kDemand);
  queue_->submit();  // Overtakes those in our queue, not those in the kernel.
  EXPECT_EQ(land_all(), (Order{1, 2, 10, 3, 4}));
}

TEST_F(ReadQueueTest, AReadThatStillWaitsCanBeDropped) {
  add(0, kSpeculative);
  add(1, kSpeculative);
  const auto third = add(2, kSpeculative);
  const auto first = add(3, kDemand);
  queue_->submit();
  EXPECT_FALSE(queue_->drop(first));
  EXPECT_TRUE(queue_->drop(third));
  EXPECT_FALSE(queue_->drop(third));
  EXPECT_EQ(queue_->queued(kSpeculative), 2);
  EXPECT_EQ(land_all(), (Order{3, 0, 1}));
  EXPECT_FALSE(queue_->drop(first));  // Landed.
  EXPECT_EQ(queue_->stats().dropped.value(), 1u);
}

TEST_F(ReadQueueTest, AnIdOfTheSamePlaceIsAnotherRead) {
  const auto old = add(0, kDemand);
  EXPECT_TRUE(queue_->drop(old));
  for (int i = 0; i < ReadQueue::kReadsMax; ++i) {
    EXPECT_NE(add(1, kSpeculative), old);
    EXPECT_FALSE(queue_->drop(old));
  }
}

TEST_F(ReadQueueTest, APromotedReadGoesBehindDemand) {
  const auto one = add(1, kSpeculative);
  add(2, kSpeculative);
  add(3, kDemand);
  add(4, kPrefill);
  queue_->promote(one, kDemand);
  queue_->promote(one, kSpeculative);  // Never down.
  EXPECT_EQ(queue_->queued(kDemand), 2);
  EXPECT_EQ(land_all(), (Order{3, 1, 4, 2}));
  EXPECT_EQ(queue_->stats().promoted.value(), 1u);
  EXPECT_EQ(queue_->stats().reads[static_cast<size_t>(kDemand)].value(), 2u);
}

TEST_F(ReadQueueTest, ASpeculativeReadInTheKernelBecomesTheDemandRead) {
  const auto id = add(0, kSpeculative);
  add(1, kSpeculative);
  add(2, kSpeculative);
  queue_->submit();
  EXPECT_FALSE(queue_->demand_outstanding());
  queue_->promote(id, kDemand);
  EXPECT_TRUE(queue_->demand_outstanding());
  queue_->check();
  queue_->submit();  // One speculative read less in the kernel, but demand is outstanding.
  EXPECT_EQ(sent(), (Order{0, 1}));
  EXPECT_EQ(land_all(), (Order{0, 1, 2}));
  EXPECT_EQ(queue_->stats().bytes[static_cast<size_t>(kDemand)].value(), kMiB);
}

TEST_F(ReadQueueTest, AFullPoolRefuses) {
  for (int i = 0; i < ReadQueue::kReadsMax; ++i) add(0, kPrefill);
  EXPECT_FALSE(queue_->add(whole(0, memory_.at(0)), kDemand, 0));
  EXPECT_EQ(land_all().size(), static_cast<size_t>(ReadQueue::kReadsMax));
  add(0, kDemand);
}

TEST_F(ReadQueueTest, ADiskWithoutRoomKeepsTheOrder) {
  measure::DiskModel narrow = model();
  narrow.depth = 2;
  measure::ModelledDisk disk(narrow);
  disk.add_file("weights", uint64_t{64} << 20,
                [](uint64_t offset, auto out) { fill_words(kSeed, offset, out); });
  ReadQueue queue(disk, limits_);
  for (uint64_t i = 0; i < 6; ++i) queue.add(whole(i, memory_.at(0)), kDemand, i);
  Order order;
  while (order.size() < 6) {
    for (const Landed& one : queue.wait(1s)) order.push_back(one.owner);
    EXPECT_LE(queue.in_flight(), 2);
  }
  EXPECT_EQ(order, (Order{0, 1, 2, 3, 4, 5}));
}

TEST_F(ReadQueueTest, WaitReturnsAtOnceWhenNothingIsOutstanding) {
  const auto begin = disk_.now();
  EXPECT_TRUE(queue_->wait(10s).empty());
  EXPECT_EQ(disk_.now(), begin);
}

TEST_F(ReadQueueTest, TimesAreCounted) {
  for (uint64_t i = 0; i < 4; ++i) add(i, kDemand);
  land_all();
  disk_.advance(1s);
  add(5, kDemand);
  land_all();
  EXPECT_EQ(queue_->stats().busy_ns.value(), 5'000'000u);
  EXPECT_EQ(queue_->stats().wait_ns.value(), 5'000'000u);
  EXPECT_EQ(queue_->stats().latency[0].count(), 5u);
  EXPECT_NEAR(queue_->stats().latency[0].sum(), 0.001 + 0.002 + 0.003 + 0.004 + 0.001, 1e-9);
}

// --- Faults.

TEST_F(ReadQueueTest, AShortReadIsContinuedAtABlock) {
  measure::DiskFault fault;
  fault.kind = measure::DiskFault::Kind::kShort;
  fault.bytes = 5 * kBlock + 100;
  disk_.add_fault(fault);
  add(0, kDemand);
  EXPECT_EQ(land_all(), (Order{0}));
  EXPECT_TRUE(right(0));
  ASSERT_EQ(disk_.submitted().size(), 2u);
  EXPECT_EQ(disk_.submitted()[1].offset, 5 * kBlock);
  EXPECT_EQ(disk_.submitted()[1].bytes, kMiB - 5 * kBlock);
  EXPECT_EQ(queue_->stats().short_reads.value(), 1u);
}

TEST_F(ReadQueueTest, ThreeShortReadsAreContinuedAFourthFails) {
  measure::DiskFault fault;
  fault.kind = measure::DiskFault::Kind::kShort;
  fault.bytes = 2 * kBlock;
  fault.times = 3;
  disk_.add_fault(fault);
  add(0, kDemand);
  EXPECT_EQ(land_all(), (Order{0}));
  EXPECT_TRUE(right(0));

  fault.times = 4;
  disk_.add_fault(fault);
  add(1, kDemand);
  const ReadFailure failed = failure();
  EXPECT_EQ(failed.error, EIO);
  EXPECT_EQ(failed.offset, kMiB);
  EXPECT_NE(failed.message.find("weights: expected 1048576 bytes at offset 1048576, found: 32768"),
            std::string::npos)
      << failed.message;
}

TEST_F(ReadQueueTest, TheEndOfTheFileBehindTheNeededBytesIsNoError) {
  disk_.truncate(0, 3 * kMiB + 700);
  const Extent last{0, 3 * kMiB, kBlock, 700, memory_.at(0)};
  ASSERT_TRUE(queue_->add(last, kDemand, 1));
  EXPECT_EQ(land_all(), (Order{1}));
  EXPECT_TRUE(has_words(kSeed, 3 * kMiB, memory_.span(0, 700)));
  EXPECT_EQ(queue_->stats().retries.value(), 0u);
}

TEST_F(ReadQueueTest, AFileThatEndsInsideTheNeededBytesFailsWithItsSizes) {
  disk_.truncate(0, kMiB + 5000);
  add(0, kDemand);
  EXPECT_EQ(land_all(), (Order{0}));
  for (const uint64_t index : {1, 2}) {  // Its end, and behind it.
    add(index, kDemand);
    const ReadFailure failed = failure();
    EXPECT_EQ(failed.error, 0);
    EXPECT_NE(failed.message.find("found: a file of 1053576 bytes (67108864 when"),
              std::string::npos)
        << failed.message;
  }
  EXPECT_EQ(errors(ReadError::kEnd), 2u);
  EXPECT_EQ(queue_->file_change(0), FileChange::kTruncated);
  EXPECT_EQ(queue_->stats().failures.value(), 2u);
}

TEST_F(ReadQueueTest, AnErrorOfTheDeviceIsTriedTwiceMoreAfterPauses) {
  measure::DiskFault fault;
  fault.error = EIO;
  fault.begin = 0;
  fault.end = kBlock;
  fault.times = 2;
  disk_.add_fault(fault);
  add(0, kDemand);
  const auto begin = disk_.now();
  EXPECT_EQ(land_all(), (Order{0}));
  EXPECT_EQ(disk_.now() - begin, 3ms + 1ms + 10ms);
  EXPECT_TRUE(right(0));
  EXPECT_EQ(errors(ReadError::kIo), 2u);

  fault.times = 3;
  disk_.add_fault(fault);
  add(0, kDemand);
  const ReadFailure failed = failure();
  EXPECT_EQ(failed.error, EIO);
  EXPECT_NE(failed.message.find("weights: expected 1048576 bytes at offset 0"), std::string::npos);
  EXPECT_NE(failed.message.find("Input/output error"), std::string::npos) << failed.message;
}

TEST_F(ReadQueueTest, OthersAreReadWhileOneWaitsForItsNextAttempt) {
  measure::DiskFault fault;
  fault.error = EIO;
  fault.end = kBlock;
  fault.times = -1;
  disk_.add_fault(fault);
  add(0, kDemand);
  for (uint64_t i = 1; i < 4; ++i) add(i, kDemand);
  Order landed;
  while (landed.size() < 4) {
    for (const Landed& one : queue_->wait(1s)) landed.push_back(one.owner);
    EXPECT_EQ(queue_->demand_outstanding(), landed.size() < 4);
  }
  EXPECT_EQ(landed, (Order{1, 2, 3, 0}));
}

TEST_F(ReadQueueTest, APausedReadCanBeDroppedOrPromoted) {
  measure::DiskFault fault;
  fault.error = EIO;
  fault.times = 2;
  disk_.add_fault(fault);
  const auto dropped = add(0, kSpeculative);
  const auto raised = add(1, kSpeculative);
  queue_->submit();
  disk_.advance(2ms);
  EXPECT_TRUE(queue_->poll().empty());
  EXPECT_EQ(queue_->queued(kSpeculative), 2);
  queue_->promote(raised, kDemand);
  queue_->check();
  EXPECT_TRUE(queue_->drop(dropped));
  queue_->check();
  EXPECT_EQ(land_all(), (Order{1}));
}

TEST_F(ReadQueueTest, ShortagesOfTheKernelAreTriedAgainButNotForEver) {
  for (const int error : {EAGAIN, EINTR, ENOMEM}) {
    measure::DiskFault fault;
    fault.error = error;
    fault.times = 9;
    disk_.add_fault(fault);
    add(0, kDemand);
    EXPECT_EQ(land_all(), (Order{0}));
  }
  EXPECT_EQ(errors(ReadError::kAgain), 18u);
  EXPECT_EQ(errors(ReadError::kMemory), 9u);
  measure::DiskFault fault;
  fault.error = ENOMEM;
  fault.times = -1;
  disk_.add_fault(fault);
  add(0, kDemand);
  const auto begin = disk_.now();
  EXPECT_EQ(failure().error, ENOMEM);
  EXPECT_LT(disk_.now() - begin, 1s);
}

TEST_F(ReadQueueTest, WhereODirectIsRefusedAllReadsInFlightAreMadeAgainThroughThePageCache) {
  disk_.refuse_direct(0);
  for (uint64_t i = 0; i < 4; ++i) add(i, kDemand);
  EXPECT_EQ(land_all().size(), 4u);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(right(i));
  EXPECT_EQ(disk_.submitted().size(), 8u);
  EXPECT_FALSE(disk_.leave_direct(0));
  const auto notice = queue_->take_notice();
  ASSERT_TRUE(notice);
  EXPECT_NE(notice->find("O_DIRECT refused"), std::string::npos) << *notice;

  measure::DiskFault fault;  // An EINVAL that has another reason.
  fault.error = EINVAL;
  fault.times = -1;
  disk_.add_fault(fault);
  add(0, kDemand);
  EXPECT_EQ(failure().error, EINVAL);
}

TEST_F(ReadQueueTest, ADiskThatIsSilentFor5SecondsStopsSpeculationUntilItAnswers) {
  measure::DiskFault fault;
  fault.kind = measure::DiskFault::Kind::kStall;
  fault.delay = 8s;
  disk_.add_fault(fault);
  add(0, kDemand);
  queue_->submit();
  disk_.advance(4s);
  queue_->poll();
  EXPECT_FALSE(queue_->stalled());
  disk_.advance(2s);
  queue_->poll();
  EXPECT_TRUE(queue_->stalled());
  EXPECT_EQ(queue_->stats().stalls.value(), 1u);
  const auto notice = queue_->take_notice();
  ASSERT_TRUE(notice);
  EXPECT_NE(notice->find("no read has completed"), std::string::npos) << *notice;
  add(1, kSpeculative);
  disk_.advance(1s);
  queue_->poll();
  EXPECT_EQ(sent(), (Order{0}));
  EXPECT_EQ(land_all(), (Order{0, 1}));
  EXPECT_FALSE(queue_->stalled());
  EXPECT_EQ(queue_->stats().stalls.value(), 1u);
}

TEST_F(ReadQueueTest, AStuckReadFailsButItsMemoryComesBackOnlyWithTheRead) {
  measure::DiskFault fault;
  fault.kind = measure::DiskFault::Kind::kStall;
  fault.delay = std::chrono::nanoseconds::max();
  fault.times = 4;
  disk_.add_fault(fault);
  std::vector<ReadQueue::ReadId> ids;
  for (uint64_t i = 0; i < 6; ++i) ids.push_back(add(i, kDemand));
  const auto landed = queue_->wait(100s);
  ASSERT_EQ(landed.size(), 6u);  // Four in the kernel, and two that could not go there.
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(landed[i].owner, i);
    ASSERT_TRUE(landed[i].failure);
    EXPECT_EQ(landed[i].failure->error, ETIMEDOUT);
    EXPECT_EQ(landed[i].released, i >= 4);
  }
  EXPECT_NE(landed[0].failure->message.find("found: nothing for 30 s"), std::string::npos);
  EXPECT_EQ(queue_->in_flight(), 4);
  EXPECT_FALSE(queue_->demand_outstanding());
  EXPECT_FALSE(queue_->drop(ids[0]));
  queue_->promote(ids[0], kDemand);
  queue_->check();

  disk_.release_stalls();
  EXPECT_EQ(land_all(), (Order{0, 1, 2, 3}));
  EXPECT_TRUE(right(0));
  EXPECT_EQ(queue_->in_flight(), 0);
  EXPECT_FALSE(queue_->stalled());
}

TEST_F(ReadQueueTest, OneStuckReadDoesNotKeepOthersWaiting) {
  measure::DiskFault fault;
  fault.kind = measure::DiskFault::Kind::kStall;
  fault.delay = std::chrono::nanoseconds::max();
  fault.end = kBlock;
  disk_.add_fault(fault);
  add(0, kDemand);
  uint64_t others = 0;
  bool stuck = false;
  while (!stuck && others < 1000) {
    add(1 + others % 8, kDemand);
    for (const Landed& one : queue_->wait(1s)) {
      stuck = stuck || one.failure;
      others += one.failure ? 0 : 1;
    }
    disk_.advance(100ms);
  }
  EXPECT_TRUE(stuck);
  EXPECT_GT(others, 200u);
  EXPECT_EQ(queue_->stats().stalls.value(), 0u);  // The disk has always answered something.
}

TEST_F(ReadQueueTest, ALateErrorOfAStuckReadLandsToo) {
  measure::DiskFault fault;
  fault.kind = measure::DiskFault::Kind::kStall;
  fault.delay = std::chrono::nanoseconds::max();
  disk_.add_fault(fault);
  add(0, kDemand);
  auto landed = queue_->wait(100s);
  ASSERT_EQ(landed.size(), 1u);
  EXPECT_FALSE(landed[0].released);
  disk_.truncate(0, kBlock);
  disk_.release_stalls();
  landed = queue_->wait(1s);
  ASSERT_EQ(landed.size(), 1u);
  ASSERT_TRUE(landed[0].failure);
  EXPECT_TRUE(landed[0].released);
  EXPECT_EQ(queue_->in_flight(), 0);
}

TEST_F(ReadQueueTest, FilesAreLookedAtEvery10Seconds) {
  add(0, kDemand);
  land_all();
  disk_.set_change(0, FileChange::kReplaced);
  disk_.advance(9s);
  queue_->poll();
  EXPECT_EQ(queue_->file_change(0), FileChange::kNone);
  disk_.advance(2s);
  queue_->poll();
  EXPECT_EQ(queue_->file_change(0), FileChange::kReplaced);
  EXPECT_EQ(queue_->stats().file_changes.value(), 1u);
  const auto notice = queue_->take_notice();
  ASSERT_TRUE(notice);
  EXPECT_NE(notice->find("file=weights how=replaced"), std::string::npos) << *notice;
  disk_.advance(20s);
  queue_->poll();
  EXPECT_EQ(queue_->stats().file_changes.value(), 1u);
}

TEST_F(ReadQueueTest, AFileChangedInPlaceIsReadOnlyByWhoKnowsAChecksum) {
  add(0, kDemand);
  EXPECT_EQ(land_all(), Order({0}));
  disk_.set_change(0, FileChange::kModified);
  disk_.advance(11s);
  queue_->poll();
  add(1, kDemand);
  const ReadFailure refused = failure();
  EXPECT_EQ(refused.error, ESTALE);
  EXPECT_TRUE(refused.message.starts_with("weights: expected ")) << refused.message;
  EXPECT_EQ(errors(ReadError::kChanged), 1u);
  Extent verified = whole(2, memory_.at(0));
  verified.verified = true;
  ASSERT_TRUE(queue_->add(verified, kDemand, 2));
  EXPECT_EQ(land_all(), Order({2}));
  disk_.set_change(0, FileChange::kNone);  // Found out at the next read.
  add(3, kDemand);
  EXPECT_EQ(land_all(), Order({3}));
  EXPECT_EQ(errors(ReadError::kChanged), 1u);
}

// What a look vouches for is what had landed before it.
TEST_F(ReadQueueTest, LooksAreCountedAndTheLastGoodOneOfEachFileIsKnown) {
  disk_.add_file("others", kMiB, [](uint64_t, auto) {});
  add(0, kDemand);
  land_all();
  const int64_t landed = queue_->looks();
  queue_->look_at_files_read();
  EXPECT_EQ(queue_->looks(), landed + 1) << "the file that was read, and no other";
  EXPECT_GT(queue_->good_look(0), landed);
  queue_->look_at_files_read();
  EXPECT_EQ(queue_->looks(), landed + 1) << "nothing was read since";
  EXPECT_FALSE(queue_->take_changed());

  add(1, kDemand);
  land_all();
  const int64_t later = queue_->looks();
  disk_.set_change(0, FileChange::kModified);
  queue_->look_at_files_read();
  EXPECT_TRUE(queue_->changed_in_place(0));
  EXPECT_LE(queue_->good_look(0), later);
  EXPECT_TRUE(queue_->take_changed());
  EXPECT_FALSE(queue_->take_changed()) << "told once";
  EXPECT_TRUE(queue_->describe_change(0).starts_with("weights: expected the file that was opened"));
}

TEST_F(ReadQueueTest, ABurstOfFailuresIsALineAndThenTheirNumber) {
  measure::DiskFault fault;
  fault.error = EIO;
  fault.times = -1;
  disk_.add_fault(fault);
  const auto fail_some = [&](int count) {
    for (int i = 0; i < count; ++i) {
      add(static_cast<uint64_t>(i), kDemand);
      EXPECT_EQ(failure().error, EIO);
    }
  };
  fail_some(30);
  auto line = queue_->take_notice();
  ASSERT_TRUE(line);
  EXPECT_TRUE(line->starts_with("ssd read failed class=demand weights: expected ")) << *line;
  EXPECT_FALSE(queue_->take_notice());
  disk_.advance(11s);
  line = queue_->take_notice();
  ASSERT_TRUE(line);
  EXPECT_EQ(*line, "ssd reads failed count=29 since the last line about one");
  EXPECT_FALSE(queue_->take_notice());
  fail_some(5);
  EXPECT_FALSE(queue_->take_notice()) << "the burst goes on";
  disk_.advance(11s);
  line = queue_->take_notice();
  ASSERT_TRUE(line);
  EXPECT_EQ(*line, "ssd reads failed count=5 since the last line about one");
  disk_.advance(11s);
  fail_some(1);
  line = queue_->take_notice();
  ASSERT_TRUE(line);
  EXPECT_TRUE(line->starts_with("ssd read failed class=demand")) << *line;
}

// --- Random operations.

// What the queue should hold, kept by hand.
class Model {
 public:
  struct Read {
    ReadClass cls = kDemand;
    uint64_t owner = 0;
    bool in_kernel = false;
  };

  void add(ReadQueue::ReadId id, ReadClass cls, uint64_t owner) {
    reads_[id] = {cls, owner, false};
    waiting_[static_cast<size_t>(cls)].push_back(id);
  }
  bool dropped(ReadQueue::ReadId id) {
    const auto read = reads_.find(id);
    if (read == reads_.end() || read->second.in_kernel) return false;
    std::erase(waiting_[static_cast<size_t>(read->second.cls)], id);
    reads_.erase(read);
    return true;
  }
  void promoted(ReadQueue::ReadId id, ReadClass cls) {
    const auto read = reads_.find(id);
    if (read == reads_.end() || cls >= read->second.cls) return;
    if (!read->second.in_kernel) {
      std::erase(waiting_[static_cast<size_t>(read->second.cls)], id);
      waiting_[static_cast<size_t>(cls)].push_back(id);
    }
    read->second.cls = cls;
  }
  // The disk was asked for it: it must be the first of the first class that waits.
  void sent(ReadQueue::ReadId id, int32_t speculative_max) {
    ASSERT_TRUE(reads_.contains(id));
    Read& read = reads_[id];
    const auto first = std::ranges::find_if(waiting_, [](auto& list) { return !list.empty(); });
    ASSERT_EQ(first - waiting_.begin(), static_cast<ptrdiff_t>(read.cls));
    ASSERT_EQ(first->front(), id);
    first->pop_front();
    read.in_kernel = true;
    if (read.cls != kSpeculative) return;
    EXPECT_LE(in_kernel(kSpeculative), speculative_max);
    EXPECT_EQ(in_kernel(kDemand) + in_kernel(kPrefill), 0);
  }
  void landed(uint64_t owner) {
    const auto read =
        std::ranges::find_if(reads_, [&](auto& entry) { return entry.second.owner == owner; });
    ASSERT_NE(read, reads_.end()) << "landed twice, or never sent";
    ASSERT_TRUE(read->second.in_kernel);
    reads_.erase(read);
  }
  int32_t in_kernel(ReadClass cls) const {
    return static_cast<int32_t>(std::ranges::count_if(
        reads_, [&](auto& entry) { return entry.second.in_kernel && entry.second.cls == cls; }));
  }
  int32_t waiting(ReadClass cls) const {
    return static_cast<int32_t>(waiting_[static_cast<size_t>(cls)].size());
  }
  bool empty() const { return reads_.empty(); }

 private:
  std::map<ReadQueue::ReadId, Read> reads_;
  std::array<std::deque<ReadQueue::ReadId>, kReadClasses> waiting_;
};

class RandomQueue : public testing::TestWithParam<uint64_t> {
 protected:
  static constexpr uint64_t kFileBytes = uint64_t{8} << 20;

  RandomQueue() : random_(GetParam()), memory_(kFileBytes) {
    measure::DiskModel model;
    model.bytes_per_second = 1e9;
    model.latency = std::chrono::microseconds(random_() % 500);
    model.completed_together = 1 + static_cast<int32_t>(random_() % 4);
    model.depth = 1 << (1 + random_() % 6);
    disk_ = std::make_unique<measure::ModelledDisk>(model);
    disk_->add_file("weights", kFileBytes,
                    [](uint64_t offset, auto out) { fill_words(kSeed, offset, out); });
    limits_.demand_window_bytes = (1 + random_() % 16) * 65536;
    limits_.speculative_window_bytes = (1 + random_() % 16) * 65536;
    limits_.speculative_reads = 1 + static_cast<int32_t>(random_() % 2);
    limits_.depth = 1 + static_cast<int32_t>(random_() % 40);
    queue_ = std::make_unique<ReadQueue>(*disk_, limits_);
  }

  Extent extent() {
    const uint32_t bytes = static_cast<uint32_t>((1 + random_() % 32) * kBlock);
    const uint64_t offset = random_() % ((kFileBytes - bytes) / kBlock + 1) * kBlock;
    return {0, offset, bytes, bytes, memory_.at(offset)};
  }

  std::mt19937_64 random_;
  ReadMemory memory_;
  QueueLimits limits_;
  std::unique_ptr<measure::ModelledDisk> disk_;
  std::unique_ptr<ReadQueue> queue_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, RandomQueue, testing::Range<uint64_t>(0, 20));

TEST_P(RandomQueue, AgreesWithASimpleModel) {
  Model model;
  std::vector<ReadQueue::ReadId> ids;
  uint64_t owners = 0;
  const auto see_sent = [&] {
    for (const DiskRead& read : disk_->submitted())
      model.sent(static_cast<ReadQueue::ReadId>(read.tag), limits_.speculative_reads);
    disk_->submitted().clear();
  };
  // poll() takes completions before it sends reads; so does a wait() behind a poll().
  const auto see = [&](std::span<const Landed> landed) {
    for (const Landed& one : landed) {
      EXPECT_EQ(one.failure, nullptr);
      model.landed(one.owner);
    }
    see_sent();
  };
  for (int step = 0; step < 3000 && !HasFatalFailure(); ++step) {
    const uint64_t choice = random_() % 100;
    if (choice < 55) {
      const auto cls = static_cast<ReadClass>(random_() % kReadClasses);
      if (const auto id = queue_->add(extent(), cls, owners)) {
        model.add(*id, cls, owners++);
        ids.push_back(*id);
      }
    } else if (choice < 62 && !ids.empty()) {
      const auto id = ids[random_() % ids.size()];
      EXPECT_EQ(queue_->drop(id), model.dropped(id));
    } else if (choice < 70 && !ids.empty()) {
      const auto id = ids[ids.size() - 1 - random_() % std::min<size_t>(ids.size(), 30)];
      const auto cls = static_cast<ReadClass>(random_() % kReadClasses);
      queue_->promote(id, cls);
      model.promoted(id, cls);
    } else if (choice < 80) {
      queue_->submit();
      see_sent();
    } else if (choice < 95) {
      disk_->advance(std::chrono::microseconds(random_() % 300));
      see(queue_->poll());
    } else {
      see(queue_->poll());
      see(queue_->wait(std::chrono::microseconds(random_() % 2000)));
    }
    queue_->check();
    for (const auto cls : {kDemand, kPrefill, kSpeculative})
      EXPECT_EQ(queue_->queued(cls), model.waiting(cls));
    EXPECT_EQ(queue_->demand_outstanding(), model.waiting(kDemand) + model.in_kernel(kDemand) > 0);
    EXPECT_LE(queue_->in_flight(), limits_.depth);
  }
  for (int i = 0; i < 20000 && !model.empty() && !HasFatalFailure(); ++i) {
    see(queue_->poll());
    see(queue_->wait(1s));
  }
  EXPECT_TRUE(model.empty());
}

TEST_P(RandomQueue, WithFaultsEveryOwnerLandsOnceAndOnlyWithTheRightBytes) {
  struct Asked {
    Extent extent;
    int landings = 0;
    bool stuck = false;
  };
  constexpr size_t kStepReadsMax = 3, kSteps = 300, kPlaceBytes = 32 * kBlock;
  ReadMemory places(kSteps * kStepReadsMax * kPlaceBytes);  // No two reads share theirs.
  std::vector<Asked> asked;
  const auto see = [&](std::span<const Landed> landed) {
    for (const Landed& one : landed) {
      Asked& read = asked[one.owner];
      EXPECT_TRUE(read.landings == 0 || (read.landings == 1 && read.stuck));
      ++read.landings;
      read.stuck = !one.released;
      if (one.failure)
        EXPECT_NE(one.failure->message, "");
      else
        EXPECT_TRUE(has_words(kSeed, read.extent.offset, {read.extent.to, read.extent.needed}));
    }
  };
  for (int step = 0; step < static_cast<int>(kSteps); ++step) {
    if (random_() % 3 == 0) {
      measure::DiskFault fault;
      fault.kind = static_cast<measure::DiskFault::Kind>(random_() % 3);
      constexpr int kErrnos[] = {EIO, EAGAIN, ENOMEM, EINTR, EINVAL, ENODATA};
      fault.error = kErrnos[random_() % 6];
      fault.times = static_cast<int32_t>(1 + random_() % 4);
      fault.begin = random_() % kFileBytes;
      fault.end = fault.begin + (uint64_t{1} << 20);
      fault.bytes = static_cast<uint32_t>(random_() % 40000);
      fault.delay = random_() % 4 == 0 ? std::chrono::nanoseconds::max()
                                       : std::chrono::nanoseconds(random_() % 40'000'000'000);
      disk_->add_fault(fault);
    }
    for (uint64_t n = random_() % (kStepReadsMax + 1); n > 0; --n) {
      asked.push_back({extent()});
      asked.back().extent.to = places.at((asked.size() - 1) * kPlaceBytes);
      const auto cls = static_cast<ReadClass>(random_() % kReadClasses);
      if (!queue_->add(asked.back().extent, cls, asked.size() - 1)) asked.pop_back();
    }
    if (random_() % 50 == 0) disk_->release_stalls();
    see(queue_->wait(std::chrono::milliseconds(random_() % 100)));
    queue_->check();
  }
  disk_->release_stalls();
  for (int i = 0; i < 2000; ++i) {
    see(queue_->wait(10s));
    disk_->release_stalls();
  }
  for (const Asked& read : asked) {
    EXPECT_GE(read.landings, 1);
    EXPECT_FALSE(read.stuck);
  }
  EXPECT_EQ(queue_->in_flight(), 0);
}

// --- Real disks.

TEST(ReadQueueOnFiles, ReadsThroughEveryDisk) {
  TempFolder folder;
  constexpr uint64_t kFileBytes = (uint64_t{8} << 20) + 1234;
  const std::string path = folder.write("weights", kSeed, kFileBytes);
  for (const bool uring : {true, false}) {
    for (const bool direct : {true, false}) {
      DiskOptions options;
      options.uring = uring;
      options.direct = direct;
      auto disk = Disk::create(options);
      ASSERT_TRUE(disk);
      ASSERT_TRUE((*disk)->open_file(path));
      ReadMemory memory(kFileBytes + kBlock);
      ReadQueue queue(**disk, {});
      std::mt19937_64 random(3);
      uint64_t owners = 0;
      std::vector<uint32_t> pieces;
      for (uint64_t offset = 0; offset < kFileBytes; offset += pieces.back()) {
        pieces.push_back(static_cast<uint32_t>((1 + random() % 100) * kBlock));
        const auto left = static_cast<uint32_t>(kFileBytes - offset);
        if (pieces.back() > left) pieces.back() = (left + kBlock - 1) / kBlock * kBlock;
        const Extent extent{0, offset, pieces.back(), std::min(left, pieces.back()),
                            memory.at(offset)};
        ASSERT_TRUE(queue.add(extent, static_cast<ReadClass>(random() % kReadClasses), owners++));
      }
      uint64_t landed = 0;
      while (landed < owners) {
        const auto some = queue.wait(20s);
        ASSERT_FALSE(some.empty()) << (*disk)->mode();
        for (const Landed& one : some) EXPECT_EQ(one.failure, nullptr) << one.failure->message;
        landed += some.size();
        queue.check();
      }
      EXPECT_TRUE(has_words(kSeed, 0, memory.span(0, kFileBytes))) << (*disk)->mode();
    }
  }
}

TEST(ReadQueueOnFiles, AFileCutWhileItIsReadFailsByName) {
  TempFolder folder;
  const std::string path = folder.write("weights", kSeed, 2 * kMiB);
  auto disk = Disk::create({});
  ASSERT_TRUE((*disk)->open_file(path));
  std::filesystem::resize_file(path, kMiB);
  ReadMemory memory(2 * kMiB);
  ReadQueue queue(**disk, {});
  queue.add({0, kMiB / 2, kMiB, kMiB, memory.at(0)}, kDemand, 1);
  const auto landed = queue.wait(20s);
  ASSERT_EQ(landed.size(), 1u);
  ASSERT_TRUE(landed[0].failure);
  EXPECT_EQ(landed[0].failure->error, 0);
  EXPECT_NE(landed[0].failure->message.find(path), std::string::npos);
  EXPECT_EQ(queue.file_change(0), FileChange::kTruncated);
}

}  // namespace
}  // namespace weir::ssd
