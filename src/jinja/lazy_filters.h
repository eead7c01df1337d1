// The filters that return generators: map, select, reject and their kin, items, unique.
//
// Threads: each call works for one Runtime.
#pragma once

#include "jinja/builtin.h"

namespace weir::jinja {

Value filter_items(const Call& call);
Value filter_map(const Call& call);
Value filter_select(const Call& call);
Value filter_reject(const Call& call);
Value filter_selectattr(const Call& call);
Value filter_rejectattr(const Call& call);
Value filter_unique(const Call& call);

}  // namespace weir::jinja
