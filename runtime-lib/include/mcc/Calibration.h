/* The kernels that calibration measures, as native code: the C ABI between a generated object and libmccrt.a.
 *
 * `mcc calibrate` makes an object with such a table and a main() that calls mccrt_calibrate; the object of a model that may
 * use a GPU carries one with its own formats (MccProgram::calibration), so that the executable can place itself anew.
 * Kernels have the signatures of kernels/cpu/Kernels.h; those of the table ignore arguments that calibration leaves empty
 * (bias, residual, norms, an activation), as code for a launch without them does.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MccCalibrationLinear {
  uint64_t format;       /* mcc::Format */
  void (*run)(void);     /* as mcc_cpu_linear_FORMAT */
} MccCalibrationLinear;

struct MccGpuCalibrator;
struct MccMachineCalibrator;

typedef struct MccCalibration {
  uint64_t linearCount;
  const MccCalibrationLinear *linears;
  void (*add)(void);       /* as mcc_cpu_add */
  void (*attention)(void); /* as mcc_cpu_attention */
  const struct MccGpuCalibrator *gpu; /* of libmccrt-cuda.a (runtime-lib/calibrate/GpuCalibrator.h); null without */
  /* What measures with this table (runtime-lib/calibrate/CalibrateMachine.h): named here, so that executables without a
   * table are linked without it. */
  const struct MccMachineCalibrator *machine;
} MccCalibration;

/* main() of the program that `mcc calibrate` makes: prints a profile (runtime-lib/placement/Profile.h) on standard output.
 * Returns the exit status. */
int mccrt_calibrate(const MccCalibration *calibration, int argc, char **argv);

#ifdef __cplusplus
}
#endif
