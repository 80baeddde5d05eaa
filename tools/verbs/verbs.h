// The verbs of the program: one file each. A verb adds its options to the command line, and runs when it was named.
#pragma once

#include <functional>
#include <string>

#include "laneshift/engine.h"
#include "tools/settings.h"

namespace CLI {
class App;
}

namespace laneshift::tools {

// Runs the verb and returns the exit code. An Error is printed by main and becomes its exit code.
using Verb = std::function<Result<int>()>;

Verb AddRun(CLI::App& app, const Settings& settings);
Verb AddCompile(CLI::App& app, const Settings& settings);
// Elements and metadata of a sparse A from a dense one, and back.
Verb AddCompress(CLI::App& app, const Settings& settings);
Verb AddInspect(CLI::App& app, const Settings& settings);
Verb AddExplain(CLI::App& app, const Settings& settings);
Verb AddEmulate(CLI::App& app, const Settings& settings);
Verb AddProbe(CLI::App& app, const Settings& settings);
Verb AddDoctor(CLI::App& app, const Settings& settings);
Verb AddBench(CLI::App& app, const Settings& settings);
Verb AddTune(CLI::App& app, const Settings& settings);
Verb AddVerifyAssembler(CLI::App& app, const Settings& settings);
// Numbers in files to elements with scale factors of blocks, and back.
Verb AddQuantize(CLI::App& app, const Settings& settings);
Verb AddDequantize(CLI::App& app, const Settings& settings);
Verb AddDb(CLI::App& app, const Settings& settings);
Verb AddCompileFunction(CLI::App& app, const Settings& settings);
// Explains verbs, and the keys of problems and schedules.
Verb AddHelp(CLI::App& app, const Settings& settings);
// Shell scripts, and manual pages; both from the table of `app`.
Verb AddCompletion(CLI::App& app, const Settings& settings);
Verb AddMan(CLI::App& app, const Settings& settings);
Verb AddWorker(CLI::App& app, const Settings& settings);
Verb AddContactPart(CLI::App& app, const Settings& settings);

}  // namespace laneshift::tools
