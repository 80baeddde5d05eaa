// The tables `trials` and `samples`, with the names that they refer to (`devices`, `problems`, `schedules`): what was
// measured, candidate by candidate.
//
// A trial is never changed: its id is the fingerprint of all that it says, so writing it twice is writing it once.
// Thread-safety: none; the owner of the Database serialises.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "store/database.h"
#include "store/records.h"

namespace laneshift::store {

std::string_view VerdictName(Verdict verdict);
std::optional<Verdict> VerdictFrom(std::string_view name);

std::string_view TimingOrderName(TimingOrder order);  // "interleaved", "series"
std::optional<TimingOrder> TimingOrderFrom(std::string_view name);

// The trial's fingerprint, as 32 hex digits.
std::string TrialId(const TrialRecord& record);

// As stored: `created` filled in, `detail` one line of UTF-8.
TrialRecord CanonicalTrial(TrialRecord record, int64_t now);

// kInvalidArgument: no problem, target, device or schedule, or a time that is not finite.
Status CheckTrial(const TrialRecord& record);

// The sound trials of a problem on a device, oldest first; those of equal age in the order of their ids.
Result<std::vector<TrialRecord>> ReadTrials(Database& database, const std::string& problem, const std::string& target,
                                            const std::string& device);

// Every row, in the order of ids. `stored_id` is not the trial's own where the row is damaged.
Status VisitTrials(Database& database,
                   const std::function<Status(const TrialRecord& record, const std::string& stored_id)>& visit);

// The trial and its samples, inside of the caller's transaction, in the place of a damaged row of its id. False if it
// was there already, and sound.
// REQUIRES: CheckTrial(record); canonical.
Result<bool> InsertTrial(Database& database, const TrialRecord& record);
// The same in a separate transaction.
Status WriteTrial(Database& database, const TrialRecord& record);

}  // namespace laneshift::store
