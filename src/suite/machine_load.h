// MachineLoad: which share of the machine's cores other programs take, so that a figure which they
// spoilt can be told from one that is bad.
//
// Threads: its owner's.
#pragma once

namespace weir::suite {

class MachineLoad {
 public:
  // `running_s`: processor time that children of this process have had which still run.
  explicit MachineLoad(double running_s);
  // Since the construction, 0 to 1.
  double others_share(double running_s) const;
  double seconds() const;

 private:
  double begin_s_ = 0;
  double all_s_ = 0;  // Processor time of the machine,
  double own_s_ = 0;  // and of this process and its children.
};

}  // namespace weir::suite
