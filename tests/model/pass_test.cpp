// Who computes what in a phase: whatever the sizes and whichever member is fast, each row, block
// and column of a weight is claimed exactly once.
#include "model/pass.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "kernels/cpu_ops.h"

namespace weir::model {
namespace {

constexpr int kMembersMax = 17;
constexpr int32_t kColumnsMax = 2'000;
constexpr int32_t kK = 128;
constexpr int32_t kGroup = 64;

struct Sink final : RowSink {
  void on_rows(int32_t, int32_t, Rows, int) override {}
};

class PassTest : public testing::Test {
 protected:
  // Sets the number of members and of rows that passes have from now on.
  void begin(int members, int32_t rows) {
    if (team_ == nullptr || team_->members() != members)
      team_ = std::make_unique<ThreadTeam>(members);
    tokens_.assign(static_cast<size_t>(rows), 0);
    batch_.tokens = tokens_;
  }
  Pass pass(int member) {
    return {.batch = batch_,
            .kv = *kv_,
            .ops = kernels::ops_for(kernels::Isa::kScalar),
            .team = *team_,
            .ws = workspace_,
            .sink = sink_,
            .reads = nullptr,
            .member = member};
  }
  int32_t random(int32_t least, int32_t most) {
    return std::uniform_int_distribution<int32_t>(least, most)(random_);
  }
  // More often few than many, and a multiple of something as often as not.
  int32_t random_columns() {
    const int32_t most = random(0, 1) ? 200 : kColumnsMax;
    const int32_t multiple = std::vector{1, 16, 64, 128}[static_cast<size_t>(random(0, 3))];
    return std::max(random(1, most) / multiple * multiple, 1);
  }
  // A quantised weight of some size. Its memory holds no numbers: nothing computes with them.
  Linear random_linear() {
    Linear weight;
    weight.n = random_columns();
    weight.k = kK << random(0, 6);
    weight.held = Held::kCodes;
    weight.int8 = true;
    weight.quant = {.n = weight.n,
                    .k = weight.k,
                    .group = kGroup,
                    .bits = random(0, 1) ? 8 : 4,
                    .words = words_.data(),
                    .scales = scales_.data()};
    return weight;
  }

  template <size_t kCount>
  void share_out(const std::array<Linear, kCount>& weights, int32_t multiple);

  std::mt19937 random_{7};
  std::unique_ptr<ThreadTeam> team_;
  std::vector<int32_t> tokens_;
  Batch batch_;
  Result<kv::KvCache> kv_ =
      kv::KvCache::create(std::vector<kv::MemoryNeed>{}, kernels::FloatType::kF16, 1);
  Workspace workspace_;
  Sink sink_;
  // As much as the largest weight may take.
  std::vector<uint8_t> words_ = std::vector<uint8_t>(size_t{kColumnsMax + 16} * (kK << 6));
  std::vector<uint8_t> scales_ =
      std::vector<uint8_t>(size_t{kColumnsMax + 16} * (kK << 6) / kGroup * 8);
};

// How often each of `count` things was claimed: a counter for each member, added up.
class Claims {
 public:
  Claims(int members, int64_t count)
      : counts_(static_cast<size_t>(members), std::vector<int>(static_cast<size_t>(count))) {}

  void add(int member, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      ++counts_[static_cast<size_t>(member)].at(static_cast<size_t>(i));
  }
  std::vector<int> sum() const {
    std::vector<int> total(counts_[0].size());
    for (const std::vector<int>& counts : counts_)
      for (size_t i = 0; i < total.size(); ++i) total[i] += counts[i];
    return total;
  }

 private:
  std::vector<std::vector<int>> counts_;
};

std::vector<int> once(int64_t count) { return std::vector<int>(static_cast<size_t>(count), 1); }

TEST_F(PassTest, EveryRowIsClaimedOnceInRangesThatAreNotEmpty) {
  for (int members = 1; members <= kMembersMax; ++members) {
    for (int round = 0; round < 10; ++round) {
      begin(members, random(1, 1'200));
      const int32_t first = random(0, pass(0).rows() - 1);
      const RowRange within = {first, random(first, pass(0).rows())};
      Claims claims(members, pass(0).rows());
      team_->run([&](int member) {
        claim_rows(pass(member), within, [&](int32_t from, int32_t to) {
          EXPECT_LT(from, to);
          EXPECT_LE(to - from, 16);
          claims.add(member, from, to);
        });
      });
      std::vector<int> expected(static_cast<size_t>(pass(0).rows()));
      std::fill(expected.begin() + within.begin, expected.begin() + within.end, 1);
      ASSERT_EQ(claims.sum(), expected)
          << members << " members, rows from " << within.begin << " to " << within.end;
    }
  }
}

TEST_F(PassTest, EveryBlockInSharesIsClaimedOnceAndTheNextOneIsOfTheSameShare) {
  for (int members = 1; members <= kMembersMax; ++members) {
    for (int round = 0; round < 10; ++round) {
      begin(members, 1);
      const int64_t count = random(0, 1) ? random(0, 40) : random(0, 1'000);
      Claims claims(members, count);
      team_->run([&](int member) {
        claim_in_shares(pass(member), count, [&](int64_t block, int64_t next) {
          claims.add(member, block, block + 1);
          // The last block of a share has none after it.
          bool last = false;
          for (int64_t share = 1; share <= members; ++share)
            last |= block + 1 == count * share / members;
          EXPECT_EQ(next, last ? -1 : block + 1);
        });
      });
      ASSERT_EQ(claims.sum(), once(count)) << count << " blocks for " << members;
    }
  }
}

// All blocks of all shares, in order, and then the same as members claim them.
template <size_t kCount>
void PassTest::share_out(const std::array<Linear, kCount>& weights, int32_t multiple) {
  std::array<const Linear*, kCount> pointers;
  for (size_t i = 0; i < kCount; ++i) pointers[i] = &weights[i];
  const ColumnShares<kCount> shares(pass(0), pointers, multiple);
  const int32_t unit = std::max(multiple, pass(0).rows() > 16 ? 32 : 16);
  const auto is_empty = [](const ColumnRange& range) { return range.begin == range.end; };

  // Each range goes on where the one before it ended, so that no column is left out or met twice.
  ColumnRange place;
  for (int32_t share = 0; share < team_->members(); ++share) {
    bool ended = false;
    for (int32_t block = 0; block < shares.blocks(); ++block) {
      const auto ranges = shares.ranges(share, block);
      EXPECT_FALSE(ended && !is_empty(ranges[0])) << "a claim after an empty one";
      ended = is_empty(ranges[0]);
      const kernels::NextWeights first = shares.first_weights(share, block);
      EXPECT_EQ(first.words, shares.weights_of(ranges[0]).words);
      EXPECT_EQ(first.words == nullptr, ended);
      for (size_t i = 0; i < kCount; ++i) {
        if (is_empty(ranges[i])) {
          for (size_t later = i; later < kCount; ++later) EXPECT_TRUE(is_empty(ranges[later]));
          break;
        }
        if (place.end == weights[place.weight].n) place = {place.weight + 1, 0, 0};
        ASSERT_EQ(ranges[i].weight, place.weight);
        ASSERT_EQ(ranges[i].begin, place.end);
        place = ranges[i];
        ASSERT_LT(place.begin, place.end);
        EXPECT_EQ(place.begin % unit, 0);
        EXPECT_TRUE(place.end % unit == 0 || place.end == weights[place.weight].n);
      }
    }
    EXPECT_EQ(shares.first_weights(share, shares.blocks()).words, nullptr);
  }
  EXPECT_EQ(place.weight, kCount - 1);
  EXPECT_EQ(place.end, weights[kCount - 1].n);

  std::vector<Claims> claims;
  for (const Linear& weight : weights) claims.emplace_back(team_->members(), weight.n);
  const kernels::NextWeights after = {.words = words_.data() + 1};
  team_->run([&](int member) {
    const uint8_t* expected = nullptr;  // The words promised as next ones by the claim before.
    claim_columns(pass(member), shares, after,
                  [&](const ColumnRange& range, const kernels::NextWeights& next) {
                    claims[range.weight].add(member, range.begin, range.end);
                    EXPECT_NE(next.words, nullptr);
                    if (team_->members() == 1 && expected != nullptr) {
                      EXPECT_EQ(shares.weights_of(range).words, expected);
                    }
                    expected = next.words;
                  });
    if (team_->members() == 1) {
      EXPECT_EQ(expected, after.words);
    }
  });
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(claims[i].sum(), once(weights[i].n));
}

TEST_F(PassTest, EveryColumnOfEveryWeightIsComputedOnce) {
  for (int members = 1; members <= kMembersMax; ++members) {
    for (int round = 0; round < 12; ++round) {
      begin(members, random(0, 1) ? random(1, 20) : random(1, 600));
      const int32_t multiple = 16 << random(0, 3);
      const std::array weights = {random_linear(), random_linear(), random_linear()};
      SCOPED_TRACE(testing::Message()
                   << members << " members, " << pass(0).rows() << " rows, columns " << weights[0].n
                   << ' ' << weights[1].n << ' ' << weights[2].n << " of k " << weights[0].k
                   << ", multiple " << multiple);
      share_out<1>({weights[0]}, multiple);
      share_out<2>({weights[0], weights[1]}, multiple);
      share_out<3>(weights, multiple);
      if (HasFailure()) return;
    }
  }
}

TEST_F(PassTest, ALargeShareEndsInSmallerBlocks) {
  begin(2, 1);
  const Linear weight = [&] {
    Linear large = random_linear();
    large.n = large.quant.n = 1'024;
    large.k = large.quant.k = 1'024;
    large.quant.bits = 8;  // 64 columns in 64 KiB.
    return large;
  }();
  const ColumnShares<1> shares(pass(0), {&weight}, 16);
  std::vector<int32_t> sizes;
  for (int32_t block = 0; block < shares.blocks(); ++block) {
    const ColumnRange range = shares.ranges(1, block)[0];
    sizes.push_back(range.end - range.begin);
  }
  EXPECT_EQ(sizes, (std::vector<int32_t>{64, 64, 64, 64, 64, 64, 64, 16, 16, 16, 16}));
}

}  // namespace
}  // namespace weir::model
