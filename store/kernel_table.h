// The table `kernels`: rows in and out of one Database, checksums included. Policy (where, what on failure) is
// store.h's.
//
// Thread-safety: none; the owner of the Database serialises.
#pragma once

#include <functional>

#include "store/database.h"
#include "store/records.h"

namespace laneshift::store {

enum class RowState { kMissing, kSound, kCubinDamaged, kDamaged };

struct KernelRow {
  RowState state = RowState::kMissing;
  KernelRecord record;  // without the cubin if that is damaged; empty if the row is
};

Result<KernelRow> ReadKernel(Database& database, const std::string& key);
// Replaces a row of the same key; its cubin stays if the new record has none and the PTX is the same.
Status WriteKernel(Database& database, const KernelRecord& record, int64_t now);
// Every row, in the order of keys.
Status VisitKernels(Database& database,
                    const std::function<Status(const std::string& key, const KernelRow& row)>& visit);
// Inside of the caller's transaction, whatever is there, times included.
Status ReplaceKernel(Database& database, const KernelRecord& record);
// Removes the kernels that were not used for longest, until the code of the others is within `max_bytes`; `keep` stays
// in any case.
Status EvictKernels(Database& database, int64_t max_bytes, const std::string& keep);
// No row, no effect.
Status WriteCubin(Database& database, const std::string& key, const CubinRecord& cubin);
Status TouchKernel(Database& database, const std::string& key, int64_t now);
// Moves a damaged row into the table `damaged`.
Status SetAsideKernel(Database& database, const std::string& key, RowState state, int64_t now);

}  // namespace laneshift::store
