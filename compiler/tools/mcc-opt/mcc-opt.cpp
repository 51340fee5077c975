// mcc-opt: runs passes and phases on the text of any phase from mcc to llvm.
#include "compiler/Pipelines/Pipelines.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mcc::registerDialects(registry);
  mcc::registerPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "mcc's passes on the text of a phase", registry));
}
