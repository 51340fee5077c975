// mcc's command line: options in, a command run, errors printed. The only place that prints errors and chooses exit codes:
// 0 done, 1 diagnosed, 2 usage.
#include "compiler/Driver/Main.h"

#include "compiler/Driver/CalibrateCommand.h"
#include "compiler/Driver/CompileCommand.h"
#include "compiler/Driver/GoldenCommand.h"
#include "compiler/Driver/InspectCommand.h"
#include "compiler/Driver/RunCommand.h"
#include "compiler/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

namespace mcc {
namespace {

constexpr int usageError = 2;

// Returns "spec, mcc, fused, ...".
std::string phaseNames() {
  return llvm::join(llvm::map_range(phases(), [](const PhaseInfo &info) { return info.name.str(); }), ", ");
}

int report(llvm::Error error) {
  if (!error)
    return 0;
  llvm::outs().flush();
  llvm::handleAllErrors(std::move(error), [](const llvm::ErrorInfoBase &info) {
    if (!info.isA<Diagnosed>())
      llvm::errs() << "error: ";
    info.log(llvm::errs());
    llvm::errs() << "\n";
  });
  return 1;
}

int runInspect(int argc, char **argv) {
  CLI::App app("Prints what a spec, config.json, checkpoint or model folder says.", "mcc inspect");
  InspectOptions options;
  app.add_option("FILE", options.input, "spec.json, config.json, .safetensors, .index.json, .gguf or a folder")->required();
  app.add_flag("--spec", options.specOnly, "print the spec alone");
  app.add_flag("--tensors", options.tensorsOnly, "print the table of tensors alone");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : usageError;
  }
  return report(inspect(options));
}

int runCalibrate(int argc, char **argv) {
  CLI::App app("Measures this machine with mcc's own kernels: a profile for --machine.", "mcc calibrate");
  CalibrateOptions options;
  app.add_option("-o,--output", options.output, "the profile (default: standard output)");
  app.add_option("--threads", options.threads, "CPU threads (default: the physical cores this process may use)")->check(CLI::Range(1, 1024));
  app.add_option("--milliseconds", options.milliseconds, "time for samples of each device")->capture_default_str()->check(CLI::Range(1, 1000000));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : usageError;
  }
  return report(calibrate(options));
}

int runRun(int argc, char **argv) {
  CLI::App app("Runs a model's golden sequences on a back end and judges its tokens; exit 0 where every sequence is as expected.", "mcc run");
  RunOptions options;
  app.add_option("INPUTS", options.model.inputs, "[SPEC] CHECKPOINT, as mcc takes them")->required()->expected(1, 2);
  app.add_option("--backend", options.backend, "which (mcc backends lists them)")->capture_default_str();
  app.add_option("--sequences", options.sequences, "a golden file: prompts and the tokens that follow")->required();
  app.add_option("--ctx", options.model.context, "positions of the cache (default: the model's own, at most a quarter of RAM)")->check(CLI::Range(int64_t(1), int64_t(1) << 24));
  app.add_option("-o,--output", options.model.output, "folder for what the back end writes")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : usageError;
  }
  bool ok = false;
  int status = report(runBackend(options, ok));
  return status == 0 && !ok ? 1 : status;
}

int runGolden(int argc, char **argv) {
  CLI::App app("Writes a golden file: prompts, the tokens that a back end gives, and how near the second choice was.", "mcc golden");
  app.require_subcommand(1);
  CLI::App *record = app.add_subcommand("record", "run prompts and write what comes");
  GoldenOptions options;
  record->add_option("INPUTS", options.model.inputs, "[SPEC] CHECKPOINT, as mcc takes them")->required()->expected(1, 2);
  record->add_option("--backend", options.backend, "which (mcc backends lists them)")->capture_default_str();
  CLI::Option *tokens = record->add_option("--tokens", options.prompts, "a prompt as ids, 0,517,62; may be given several times")->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  record->add_option("-n", options.newTokens, "tokens after each such prompt")->capture_default_str()->check(CLI::Range(int64_t(1), int64_t(1) << 24));
  CLI::Option *sequences = record->add_option("--sequences", options.sequences, "a golden file whose prompts and lengths to take");
  record->add_option("--ctx", options.model.context, "positions of the cache (default: the model's own, at most a quarter of RAM)")->check(CLI::Range(int64_t(1), int64_t(1) << 24));
  record->add_option("-o,--output", options.output, "the file to write")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : usageError;
  }
  if (tokens->count() == 0 && sequences->count() == 0) {
    llvm::errs() << "error: no prompts; give --tokens or --sequences\n";
    return usageError;
  }
  return report(recordGolden(options));
}

int runBackends(int argc, char **argv) {
  CLI::App app("Lists the back ends, and why one cannot be used on this machine.", "mcc backends");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : usageError;
  }
  listBackends();
  return 0;
}

// Adds the options about devices; returns that of `gpuBytes`, whose absence says something.
CLI::Option *addPlacement(CLI::App &app, PlacementOptions &options, uint64_t &gpuBytes) {
  const auto tokens = CLI::Range(int64_t(0), int64_t(1) << 24);
  app.add_option("--placement", options.how, "devices of the ops: cpu, gpu, auto (by cost) or a file of rules")->capture_default_str();
  app.add_option("--machine", options.machine, "a machine's calibration (mcc calibrate), to place by cost");
  app.add_option("--expect-prompt", options.expectPrompt, "prompt tokens to place for")->capture_default_str()->check(CLI::Range(int64_t(1), int64_t(1) << 24));
  app.add_option("--expect-new", options.expectNew, "new tokens to place for")->capture_default_str()->check(tokens);
  app.add_flag("--explain", options.explain, "print why every op is where it is");
  return app.add_option("--gpu-memory", gpuBytes, "most bytes of GPU memory, 8G or the like (default 15/16 of the calibrated one's)")->transform(CLI::AsSizeValue(false));
}

int runCompile(int argc, char **argv) {
  CLI::App app("Compiles a neural model into a standalone executable and a weights file.\n\n"
               "  mcc MODEL_DIR -o out/                       a Hugging Face folder\n"
               "  mcc model.gguf -o out/                      one GGUF file\n"
               "  mcc config.json model.safetensors -o out/   a spec and a checkpoint\n"
               "  mcc config.json random:1 -o out/            made-up weights, for benchmarks\n"
               "  mcc inspect FILE                            what a file says (mcc inspect --help)\n"
               "  mcc calibrate -o machine.json               what this machine's devices take (mcc calibrate --help)\n"
               "  mcc run MODEL --sequences FILE -o out/      a golden file on a back end (mcc run --help)\n"
               "  mcc golden record MODEL --tokens 0,5 -o F   writes a golden file (mcc golden record --help)\n"
               "  mcc backends                                the back ends, and which are usable here",
               "mcc");
  CompileOptions options;
  std::string emit = "exe";
  uint64_t gpuBytes = 0;
  app.add_option("INPUTS", options.inputs, "[SPEC] CHECKPOINT, as above")->required()->expected(1, 2);
  app.add_option("-o,--output", options.output, "output folder (with --emit up to llvm: a file; default standard output)");
  app.add_option("--ctx", options.context, "positions of the cache (default: the model's own, at most a quarter of RAM)")->check(CLI::Range(int64_t(1), int64_t(1) << 24));
  app.add_option("--chunk", options.chunk, "most prompt tokens in one step (default 128, with a GPU 2048)")->check(CLI::Range(1, 4096));
  app.add_option("--target-cpu", options.targetCpu, "CPU to make code for, as clang's -mcpu")->capture_default_str();
  app.add_option("--tokenizer", options.tokenizer, "a tokenizer.json instead of the one beside the inputs");
  CLI::Option *gpuMemory = addPlacement(app, options.placement, gpuBytes);
  app.add_option("--emit", emit, "stop after a phase: " + phaseNames());
  app.set_version_flag("--version", "mcc " MCC_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : usageError;
  }
  if (gpuMemory->count() > 0)
    options.placement.gpuMemory = gpuBytes;
  std::optional<Phase> phase = parsePhase(emit);
  if (!phase || (*phase >= Phase::Obj && options.output.empty())) {
    if (!phase)
      llvm::errs() << "error: unknown phase '" << emit << "'; known are " << phaseNames() << "\n";
    else
      llvm::errs() << "error: no output folder; name one with -o\n";
    return usageError;
  }
  options.emit = *phase;
  return report(compile(options));
}

} // namespace

int mccMain(int argc, char **argv) {
  if (argc > 1 && llvm::StringRef(argv[1]) == "inspect")
    return runInspect(argc - 1, argv + 1);
  if (argc > 1 && llvm::StringRef(argv[1]) == "calibrate")
    return runCalibrate(argc - 1, argv + 1);
  if (argc > 1 && llvm::StringRef(argv[1]) == "run")
    return runRun(argc - 1, argv + 1);
  if (argc > 1 && llvm::StringRef(argv[1]) == "golden")
    return runGolden(argc - 1, argv + 1);
  if (argc > 1 && llvm::StringRef(argv[1]) == "backends")
    return runBackends(argc - 1, argv + 1);
  return runCompile(argc, argv);
}

} // namespace mcc
