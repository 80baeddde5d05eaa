#include "store/store.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <mutex>
#include <tuple>
#include <type_traits>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "store/choice_table.h"
#include "store/disk.h"
#include "store/fact_table.h"
#include "store/kernel_table.h"
#include "store/location.h"
#include "store/schema.h"
#include "store/trial_table.h"

namespace laneshift::store {
namespace {

using base::Cat;

// A hit writes last_used at most this often: a plan that is looked up in a loop must not write in a loop.
constexpr int64_t kTouchSeconds = 3600;

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Database OpenMemory() {
  Result<Database> memory = OpenFreshInMemory();
  LS_CHECK(memory.has_value(), "a database in memory cannot be opened: ", memory.error().message);
  return std::move(*memory);
}

}  // namespace

struct Store::State {
  explicit State(const StoreOptions& given) : options(given), memory(OpenMemory()) {
    if (!options.directory.empty() && options.directory != kInMemory) disk = OpenDisk(options);
    for (const std::string& warning : disk.warnings) LS_LOG(kStore, warn, warning);
    if (options.system_path.empty()) return;
    Result<Database> opened = OpenSystem(options.system_path, options.busy_timeout_ms);
    if (opened) {
      system = std::move(*opened);
    } else {
      LeaveSystem(opened.error());
    }
  }

  void LeaveSystem(const Error& error) {
    system.reset();
    Warn(Cat("system store ", options.system_path, ": ", error.message, "; doing without"));
  }

  // What the system database says, where there is one and it can be read.
  template <typename Read>
  typename std::invoke_result_t<Read, Database&>::value_type ReadSystem(Read read) {
    if (!system) return {};
    auto stored = read(*system);
    if (stored) return std::move(*stored);
    LeaveSystem(stored.error());
    return {};
  }

  // Memory holds only records that the disk refused, and is newer.
  template <typename Read>
  typename std::invoke_result_t<Read, Database&>::value_type ReadOwn(Read read) {
    auto remembered = read(memory);
    LS_CHECK(remembered.has_value(), "reading from memory failed: ", remembered.error().message);
    if (*remembered) return std::move(*remembered);
    if (disk.database) {
      auto stored = read(*disk.database);
      if (stored && *stored) return std::move(*stored);
      if (!stored) Degrade(stored.error(), /*keep_reading=*/false);
    }
    return {};
  }

  template <typename Read>
  typename std::invoke_result_t<Read, Database&>::value_type ReadEither(Read read) {
    auto own = ReadOwn(read);
    return own ? own : ReadSystem(read);
  }

  std::optional<KernelRecord> ReadKernelEither(const std::string& key) {
    const auto take = [&](Database& database) { return TakeKernel(database, key); };
    return options.system_kernels ? ReadEither(take) : ReadOwn(take);
  }

  // Of every layer, the newest first.
  template <typename Read>
  typename std::invoke_result_t<Read, Database&>::value_type ReadAll(Read read) {
    auto all = read(memory);
    LS_CHECK(all.has_value(), "reading from memory failed: ", all.error().message);
    const auto append = [&](auto more) {
      all->insert(all->end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    };
    if (disk.database) {
      auto stored = read(*disk.database);
      if (stored) {
        append(std::move(*stored));
      } else {
        Degrade(stored.error(), /*keep_reading=*/false);
      }
    }
    append(ReadSystem(read));
    return std::move(*all);
  }

  template <typename Write>
  Status WriteEither(Write write) {
    if (disk.writable) {
      Status written = write(*disk.database);
      if (written) return Ok();
      Degrade(written.error(), /*keep_reading=*/true);
    }
    return write(memory);
  }

  Status WriteKernelEither(const KernelRecord& record) {
    return WriteEither([&](Database& database) -> Status {
      LS_TRY(WriteKernel(database, record, Now()));
      if (options.max_code_bytes == 0) return Ok();
      return EvictKernels(database, options.max_code_bytes, record.key);
    });
  }

  // Disables the disk: no more writes, and no reads either unless it was a write that failed.
  void Degrade(const Error& error, bool keep_reading) {
    disk.writable = false;
    std::string what = Cat("store ", disk.path, ": ", error.message, "; ");
    if (error.code == ErrorCode::kCorrupt) {
      what += SetAsideDisk(disk, options.busy_timeout_ms);
    } else if (keep_reading) {
      what += "reading it, and writing to memory";
    } else {
      disk.database.reset();
      what += "using memory";
    }
    Warn(std::move(what));
  }

  // Only the first failure is reported to people; later ones are for debugging.
  void Warn(std::string text) {
    if (disk.warnings.empty()) {
      LS_LOG(kStore, warn, text);
      disk.warnings.push_back(std::move(text));
    } else {
      LS_LOG(kStore, info, text);
    }
  }

  // The record for the caller, after damaged records were moved and the use recorded if the database is writable.
  Result<std::optional<KernelRecord>> TakeKernel(Database& database, const std::string& key) {
    LS_ASSIGN(KernelRow row, ReadKernel(database, key));
    std::optional<KernelRecord> none;
    bool writable = &database == &memory || (disk.database && &database == &*disk.database && disk.writable);
    if (row.state == RowState::kMissing) return none;
    if (row.state != RowState::kSound) {
      Warn(Cat("store ", disk.path, ": the ", row.state == RowState::kDamaged ? "kernel " : "cubin of kernel ", key,
               " is damaged and will be recreated"));
    }
    if (writable) {
      Status noted = Ok();
      if (row.state != RowState::kSound) {
        noted = SetAsideKernel(database, key, row.state, Now());
      } else if (Now() - row.record.last_used >= kTouchSeconds) {
        noted = TouchKernel(database, key, Now());
      }
      // The record was read and is sound: a refused note must not lose it.
      if (!noted) Degrade(noted.error(), /*keep_reading=*/true);
    }
    if (row.state == RowState::kDamaged) return none;
    return std::optional(std::move(row.record));
  }

  StoreOptions options;
  std::mutex mutex;
  Database memory;
  Disk disk;
  std::optional<Database> system;
};

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Store Store::Open(const StoreOptions& options) { return Store(std::make_unique<State>(options)); }

bool Store::durable() const {
  std::lock_guard lock(state_->mutex);
  return state_->disk.writable;
}

std::optional<std::string> Store::warning() const {
  std::lock_guard lock(state_->mutex);
  if (state_->disk.warnings.empty()) return std::nullopt;
  return state_->disk.warnings.front();
}

Result<std::optional<KernelRecord>> Store::GetKernel(const std::string& key) {
  if (key.empty()) return MakeError(ErrorCode::kInvalidArgument, "a kernel needs a key");
  std::lock_guard lock(state_->mutex);
  return state_->ReadKernelEither(key);
}

Status Store::PutKernel(const KernelRecord& record) {
  if (record.key.empty()) return MakeError(ErrorCode::kInvalidArgument, "a kernel needs a key");
  if (record.ptx.empty()) return MakeError(ErrorCode::kInvalidArgument, Cat("kernel ", record.key, " has no PTX"));
  std::lock_guard lock(state_->mutex);
  return state_->WriteKernelEither(record);
}

Status Store::PutCubin(const std::string& key, const std::string& assembler, const std::string& bytes) {
  if (bytes.empty()) return MakeError(ErrorCode::kInvalidArgument, Cat("kernel ", key, ": the cubin is empty"));
  std::lock_guard lock(state_->mutex);
  std::optional<KernelRecord> kernel = state_->ReadKernelEither(key);
  if (!kernel) return MakeError(ErrorCode::kNotFound, Cat("no kernel ", key, " to add a cubin to"));
  // The whole record: memory may have to store it without the PTX of the first record.
  kernel->cubin = CubinRecord{assembler, bytes};
  return state_->WriteKernelEither(*kernel);
}

Result<std::vector<ChoiceRecord>> Store::GetChoices(const std::string& problem, const std::string& target,
                                                    const std::string& device) {
  std::lock_guard lock(state_->mutex);
  std::vector<ChoiceRecord> all =
      state_->ReadAll([&](Database& database) { return ReadChoices(database, problem, target, device); });
  // The strongest of each generator; among equals the one of the upper layer.
  std::vector<ChoiceRecord> strongest;
  for (ChoiceRecord& choice : all) {
    const auto same = std::find_if(strongest.begin(), strongest.end(),
                                   [&](const ChoiceRecord& other) { return other.generator == choice.generator; });
    if (same == strongest.end()) {
      strongest.push_back(std::move(choice));
    } else if (choice.source > same->source) {
      *same = std::move(choice);
    }
  }
  return strongest;
}

std::vector<ChoiceRecord> Store::GetPredictions(const std::string& problem, const std::string& target) {
  std::lock_guard lock(state_->mutex);
  return state_->ReadAll([&](Database& database) { return ReadPredictions(database, problem, target); });
}

Status Store::PutChoice(const ChoiceRecord& record) {
  if (record.problem.empty() || record.schedule.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "a choice needs a problem and a schedule");
  }
  if (!std::isfinite(record.time_us.value_or(0))) {
    return MakeError(ErrorCode::kInvalidArgument, Cat("the choice for ", record.problem, " has a time without end"));
  }
  std::lock_guard lock(state_->mutex);
  return state_->WriteEither([&](Database& database) { return WriteChoice(database, record, Now()); });
}

Result<std::vector<TrialRecord>> Store::GetTrials(const std::string& problem, const std::string& target,
                                                  const std::string& device) {
  std::lock_guard lock(state_->mutex);
  std::vector<TrialRecord> all =
      state_->ReadAll([&](Database& database) { return ReadTrials(database, problem, target, device); });
  // Layers may hold the same trial: a system database is merged from users' stores.
  std::vector<std::pair<std::string, TrialRecord>> named;
  for (TrialRecord& trial : all) named.emplace_back(TrialId(trial), std::move(trial));
  const auto order = [](const auto& named_trial) { return std::tie(named_trial.second.created, named_trial.first); };
  std::sort(named.begin(), named.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  std::vector<TrialRecord> trials;
  for (size_t i = 0; i < named.size(); ++i) {
    if (i == 0 || named[i].first != named[i - 1].first) trials.push_back(std::move(named[i].second));
  }
  return trials;
}

Status Store::PutTrial(const TrialRecord& record) {
  LS_TRY(CheckTrial(record));
  const TrialRecord canonical = CanonicalTrial(record, Now());
  std::lock_guard lock(state_->mutex);
  return state_->WriteEither([&](Database& database) { return WriteTrial(database, canonical); });
}

Result<std::optional<FactRecord>> Store::GetFact(const std::string& device, const std::string& name) {
  std::lock_guard lock(state_->mutex);
  return state_->ReadEither([&](Database& database) { return ReadFact(database, device, name); });
}

Result<std::vector<FactRecord>> Store::GetFacts(const std::string& device) {
  std::lock_guard lock(state_->mutex);
  std::vector<FactRecord> all = state_->ReadAll([&](Database& database) { return ReadFacts(database, device); });
  // For each name the one of the upper layer.
  std::vector<FactRecord> facts;
  for (FactRecord& fact : all) {
    const auto same = [&](const FactRecord& other) { return other.name == fact.name; };
    if (std::none_of(facts.begin(), facts.end(), same)) facts.push_back(std::move(fact));
  }
  return facts;
}

Status Store::PutFact(const FactRecord& record) {
  if (record.device.empty() || record.name.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "a fact needs a device and a name");
  }
  std::lock_guard lock(state_->mutex);
  return state_->WriteEither([&](Database& database) { return WriteFact(database, record, Now()); });
}

FlightLock Store::BeginFlight(const std::string& what, int timeout_ms) {
  std::string path;
  {
    std::lock_guard lock(state_->mutex);
    if (!state_->disk.writable) return {};
    path = state_->disk.path;
  }
  // Without the mutex: others may read while this one waits.
  return FlightLock::Acquire(path, what, timeout_ms);
}

StoreSummary Store::Stat() {
  std::lock_guard lock(state_->mutex);
  StoreSummary summary;
  auto count = [&](Database& database) -> Status {
    LS_ASSIGN(Statement select, database.Prepare("SELECT (SELECT count(*) FROM kernels), "
                                                 "(SELECT count(*) FROM kernels WHERE cubin IS NOT NULL), "
                                                 "(SELECT count(*) FROM choices), (SELECT count(*) FROM trials), "
                                                 "(SELECT count(*) FROM facts), "
                                                 "(SELECT count(*) FROM damaged), "
                                                 "(SELECT ifnull(sum(bytes), 0) FROM kernels)"));
    LS_ASSIGN(bool row, select.Step());
    LS_CHECK(row, "a query of counts yields a row");
    int64_t* fields[] = {&summary.kernels, &summary.cubins,  &summary.choices, &summary.trials,
                         &summary.facts,   &summary.damaged, &summary.bytes};
    for (int i = 0; i < 7; ++i) *fields[i] += select.IntegerAt(i);
    return Ok();
  };
  Disk& disk = state_->disk;
  if (disk.database) {
    if (Status counted = count(*disk.database); !counted) state_->Degrade(counted.error(), /*keep_reading=*/false);
  }
  Status counted = count(state_->memory);
  LS_CHECK(counted.has_value(), "counting memory failed: ", counted.error().message);
  if (state_->system) {
    summary.system_path = state_->options.system_path;
    const auto count_rows = [&](const char* sql) {
      return state_->ReadSystem([&](Database& database) { return database.Integer(sql); });
    };
    summary.system_kernels = count_rows("SELECT count(*) FROM kernels");
    summary.system_choices = count_rows("SELECT count(*) FROM choices");
  }
  summary.path = disk.path;
  summary.journal = disk.database ? disk.journal : "memory";
  summary.schema_version = static_cast<int64_t>(Migrations().size());
  summary.durable = disk.writable;
  summary.warnings = disk.warnings;
  return summary;
}

}  // namespace laneshift::store
