// Unit: which claims of a stage are computed between two steps of the text's model.
//
// A stage has phases, and each of these a number of claims (pass.h). A unit is the next of them, in
// order, as many as have the work that is asked for. A stage's run() goes through all of its phases
// each time; those that are done, and those that are not yet due, have no claims. What a claim
// computes depends on no unit, so bits do not depend on where stages are cut.
//
// Threads: each member has its own, and all come to the same claims.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::encoder {

class Unit {
 public:
  struct Claims {
    int64_t begin = 0, end = 0;

    bool empty() const { return begin == end; }
  };

  // Of the stage's claims so many are done. `work`: multiply-adds that this unit has, rounded up to
  // a claim for each of `members`: fewer would leave some of them idle.
  Unit(int64_t done, int64_t work, int members) : done_(done), left_(work), members_(members) {}

  // The stage's next phase has so many claims, of `each` multiply-adds at most: those of this unit.
  Claims next_phase(int64_t count, int64_t each) {
    const int64_t before = passed_;
    passed_ += count;
    if (passed_ <= done_ || left_ <= 0) return {};
    const int64_t begin = done_ - before;
    const int64_t round = members_ * std::max<int64_t>(each, 1);
    const int64_t rounds = (left_ - 1) / round + 1;
    const int64_t taken = std::min(count - begin, rounds * members_);
    work_ += taken * each;
    left_ = begin + taken < count ? 0 : left_ - taken * each;
    done_ += taken;
    claimed_ = true;
    return {begin, begin + taken};
  }
  // Something was claimed since this was last asked: what follows waits for it.
  bool take_claimed() {
    const bool claimed = claimed_;
    claimed_ = false;
    return claimed;
  }

  // After the stage's last phase:
  int64_t done() const { return done_; }
  int64_t work() const { return work_; }
  bool ends_stage() const { return done_ == passed_; }

 private:
  int64_t done_;
  int64_t left_;
  int64_t members_;
  int64_t passed_ = 0;  // Claims of the phases so far.
  int64_t work_ = 0;
  bool claimed_ = false;
};

}  // namespace weir::encoder
