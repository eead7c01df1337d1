// JSON in templates: variables read from it, and the filters tojson (json.dumps, as transformers
// calls it) and from_json.
//
// Threads: each call works for one Runtime.
#pragma once

#include "jinja/builtin.h"

namespace weir {
class JsonDoc;
}

namespace weir::jinja {

// The value of a JSON document. Its strings borrow the document, which must outlive the rendering.
Value value_of_json(Runtime& rt, const JsonDoc& doc);

// tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)
Value filter_tojson(const Call& call);
// from_json: not Jinja's, but some templates expect it.
Value filter_from_json(const Call& call);

}  // namespace weir::jinja
