// A linear layer, and an activation of what it gives.
#include "encoder/layers/products.h"

namespace weir::encoder {

namespace {

class ProjectLayer final : public Layer {
 public:
  ProjectLayer(const LayerSource& source, const Project& op) : op_(op), products_(source.width) {
    if (op.turned)
      products_.add(source.binder.turned(op.module, op.width, source.width));
    else if (op.side > 1)
      products_.add(source.binder.squares(op.module, op.width, source.width, op.side, op.bias));
    else
      products_.add(source, op.module, op.width, op.bias);
    products_.finish_adding(source);
  }

  void run(const Pass& pass) const override {
    if (products_.prepares()) {
      claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
        products_.prepare(pass, pass.rows, begin, end);
      });
      pass.barrier();
    }
    products_.run(pass, pass.rows, 0, pass.count(), [&](const Block& block) {
      for (int32_t r = 0; r < block.rows; ++r) {
        float* y = block.row_of(r);
        if (op_.act) pass.ops.act(*op_.act, block.columns(), y);
        std::copy_n(y, block.columns(),
                    pass.next + int64_t{block.row + r} * op_.width + block.begin);
      }
    });
  }

 private:
  Project op_;
  Products products_;
};

}  // namespace

std::unique_ptr<Layer> make(const LayerSource& source, const Project& op, int32_t& width) {
  width = op.width;
  return std::make_unique<ProjectLayer>(source, op);
}

}  // namespace weir::encoder
