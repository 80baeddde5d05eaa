// `laneshift db`: the store's contents and their maintenance. The verbs are in db_contents.cc and db_upkeep.cc.
#include "tools/db.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/number_option.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

constexpr const char* kFooter = R"(
Examples:
  laneshift db stat
  laneshift db show gemm m=4096 n=4096 k=4096
  laneshift db export results.jsonl --only choices --only trials
  laneshift db merge host1/laneshift.db host2.jsonl
  laneshift db prune --older-than 90 --max-code 512M --dry-run
  laneshift db seal system.db

FILE is a database, a directory that holds one, or JSON lines ("-": standard input). Without one, or without --store, it
is the own store (LANESHIFT_CACHE_DIR).

Exit codes: 0 ok, 1 damage or differences were found, or something broke, 2 usage, 3 a file of a newer laneshift or of
another program, 4 no such file.)";

// One row a verb.
struct DbVerb {
  const char* name;
  const char* what;
  void (*add)(CLI::App& app, DbOptions& options);
  Result<int> (*run)(const DbOptions& options, const Settings& settings);
};

void AddFile(CLI::App& app, DbOptions& options, const char* what, bool required) {
  app.add_option("file", options.files, what)->type_name("FILE")->required(required)->expected(required ? 1 : 0, 1);
}
void AddNothing(CLI::App&, DbOptions&) {}
void AddOnly(CLI::App& app, DbOptions& options) {
  app.add_option("--only", options.only, "choices, trials, facts or kernels; repeatable")
      ->type_name("choices|trials|facts|kernels")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}
void AddList(CLI::App& app, DbOptions& options) {
  AddOnly(app, options);
  AddFull(app, options.view);
}
void AddShow(CLI::App& app, DbOptions& options) {
  AddFull(app, options.view);
  app.add_option("name", options.words, "a problem, or the key of a kernel")->type_name("WORD")->required();
}
void AddExport(CLI::App& app, DbOptions& options) {
  AddFile(app, options, "destination; \"-\" or nothing: standard output", false);
  AddOnly(app, options);
}
void AddMerge(CLI::App& app, DbOptions& options) {
  app.add_option("file", options.files, "databases or JSON lines")->type_name("FILE")->required();
  app.add_flag("--with-kernels", options.with_kernels,
               "also their kernels, whose code then runs with your rights; otherwise kernels are compiled again");
}
void AddDiff(CLI::App& app, DbOptions& options) {
  app.add_option("file", options.files, "one to compare with your store, or two")
      ->type_name("FILE")
      ->required()
      ->expected(1, 2);
}
void AddVerify(CLI::App& app, DbOptions& options) {
  AddFile(app, options, "the database to check; else the own one", false);
}
void AddPrune(CLI::App& app, DbOptions& options) {
  app.add_option("--older-than", options.older_than_days, "kernels not used, and trials not made, for this many days")
      ->type_name("DAYS")
      ->check(RealNumber(0, 36500));
  app.add_option("--max-code", options.max_code, "the code beyond this many bytes (K, M and G are understood)")
      ->type_name("BYTES")
      ->transform(ByteCount(0));
  app.add_flag("--other-generators", options.other_generators,
               "kernels, choices and trials of all revisions of the code generator but this program's");
  app.add_flag("--damaged", options.damaged, "records that checksums refused, kept for inspection");
  app.add_flag("--dry-run", options.dry_run, "print what would be removed, and remove nothing");
}
void AddSeal(CLI::App& app, DbOptions& options) { AddFile(app, options, "the new file", true); }

constexpr DbVerb kVerbs[] = {
    {"stat", "What the store holds and where it is", AddNothing, DbStat},
    {"list", "One line a record", AddList, DbList},
    {"show", "Everything about a problem, or one kernel with its PTX", AddShow, DbShow},
    {"export", "The records as JSON lines", AddExport, DbExport},
    {"import", "Takes records from JSON lines (the same as merge)", AddMerge, DbMerge},
    {"merge", "Takes the records of other stores; in any order and any number of times", AddMerge, DbMerge},
    {"diff", "What two stores say differently; exit code 1 if they do", AddDiff, DbDiff},
    {"verify", "Checks the file and every checksum; exit code 1 if something is damaged", AddVerify, DbVerify},
    {"prune", "Removes what is old, large or of other generators", AddPrune, DbPrune},
    {"seal", "Writes a compact read-only database, to be read under others' stores", AddSeal, DbSeal},
};

}  // namespace

Verb AddDb(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand("db", "Look after the store of kernels, choices and trials");
  verb->require_subcommand(1);
  verb->footer(kFooter);
  auto options = std::make_shared<DbOptions>();
  std::vector<std::pair<CLI::App*, const DbVerb*>> subverbs;
  for (const DbVerb& row : kVerbs) {
    CLI::App* sub = verb->add_subcommand(row.name, row.what);
    row.add(*sub, *options);
    sub->add_option("--store", options->store, "the database to work on; default: your store")->type_name("FILE");
    sub->add_flag("--json", options->json, "JSON on stdout, one object per line");
    sub->footer(kFooter);
    subverbs.emplace_back(sub, &row);
  }
  return [options, settings, subverbs]() -> Result<int> {
    for (const auto& [sub, row] : subverbs) {
      if (sub->parsed()) return row->run(*options, settings);
    }
    return MakeError(ErrorCode::kInvalidArgument, "db needs one of its verbs; see laneshift db --help");
  };
}

}  // namespace laneshift::tools
