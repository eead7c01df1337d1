#include "sched/inbox.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "base/trace.h"

namespace weir::sched {

void Inbox::drain() {
  const trace::Scope scope(trace::Kind::kEngine, "inbox");
  for (size_t i = 0; i < state_.handle.inbox_.capacity(); ++i) {
    const std::optional<Message> message = state_.handle.inbox_.try_pop();
    if (!message) return;
    if (message->kind == Message::Kind::kSubmit) {
      submit(message->request);
    } else {
      cancel(message->request);
    }
  }
}

void Inbox::submit(Request* request) {
  Sequence* seq = state_.sequences.take(request);
  seq->params = request->sampling;
  kv::PrefixIdentity identity = request->shared_by();
  identity.length_class = length_class_.of(seq->prompt_length);
  identity.format = static_cast<uint32_t>(state_.pages.format().kind());
  identity.arithmetic = static_cast<uint32_t>(state_.facts.compute);
  seq->salt = kv::PrefixCache::salt(identity);
  state_.scheduler.submit(seq);
}

// The request may have finished and be gone, so its address is all that is looked at. A new one at
// the same address is submitted later than this message was sent, and is not known here yet. One
// whose rows are all planned is not found: its log finishes with the step that runs.
void Inbox::cancel(const Request* request) {
  const OpenSequences& open = state_.scheduler.open();
  for (const std::span<Sequence* const> list : {open.running(), open.waiting()}) {
    const auto found = std::ranges::find(list, request, &Sequence::request);
    if (found == list.end()) continue;
    if ((*found)->in_slab) {  // Its memory is being written to.
      (*found)->cancelled = true;
      return;
    }
    state_.published = true;
    state_.finish(*found, FinishReason::kCancelled);
    return;
  }
}

// The count of open requests rises before a thread that submits looks whether we drain.
void Inbox::close() {
  EngineHandle& handle = state_.handle;
  handle.draining_.store(true, std::memory_order_seq_cst);
  while (true) {
    drain();
    for (Sequence& seq : state_.sequences.all())
      if (seq.request != nullptr) state_.finish(&seq, FinishReason::kCancelled);
    if (handle.open_.load(std::memory_order_seq_cst) == 0) return;
    std::this_thread::yield();
  }
}

}  // namespace weir::sched
