#include "sched/inbox.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <thread>

#include "base/trace.h"
#include "kv/hash128.h"

namespace weir::sched {

namespace {

// Of its tokens and its media.
uint64_t hash_of_prompt(const Request& request) {
  const auto tokens = static_cast<int32_t>(request.prompt.size());
  const std::array<MediaHash, 2> parts = {
      hash_within(*request.media, 0, tokens),
      kv::hash128({reinterpret_cast<const char*>(request.prompt.data()),
                   request.prompt.size() * sizeof(int32_t)})};
  return kv::hash128({reinterpret_cast<const char*>(&parts), sizeof parts})[0];
}

}  // namespace

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
  if (state_.disk != nullptr) identity.secret = state_.disk->secret();
  identity.arithmetic = static_cast<uint32_t>(state_.facts.compute);
  if (request->media) note_media(seq, identity);
  seq->salt = kv::PrefixCache::salt(identity);
  state_.scheduler.submit(seq);
}

// Where all tokens of a prompt see each other, what is remembered of one depends on all of them. And
// where a layer's window is shorter than a span that sees both ways, the first tokens of a span are
// needed longer than the window keeps them: such a span is always computed whole.
void Inbox::note_media(Sequence* seq, kv::PrefixIdentity& identity) const {
  const PromptMedia& media = *seq->media;
  const model::BothWays both_ways = state_.limits.both_ways;
  if (model::has_three_positions(*state_.facts.spec)) seq->rope_shift = shift_of(media);
  if (both_ways == model::BothWays::kPrompt) identity.media = hash_of_prompt(*seq->request);
  int32_t window = std::numeric_limits<int32_t>::max();
  for (const kv::PageGroup& group : state_.pages.groups())
    if (group.window > 0) window = std::min(window, group.window);
  for (int32_t from = 0;;) {
    const model::Mask span = span_after(media, both_ways, seq->prompt_length, from);
    if (span.begin == span.end) return;
    if (span.end - span.begin > window) seq->whole_prompt = true;
    from = span.end;
  }
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
