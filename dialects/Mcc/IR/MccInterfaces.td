// Interfaces of the `mcc` dialect.
#ifndef MCC_DIALECTS_MCC_IR_MCCINTERFACES
#define MCC_DIALECTS_MCC_IR_MCCINTERFACES

include "mlir/IR/OpBase.td"

def Mcc_PlacedOpInterface : OpInterface<"PlacedOpInterface"> {
  let cppNamespace = "::mcc::ir";
  let description = [{
    An op (or weight, or cache) that placement gives a device. Before the `placed` phase the device may be absent.
  }];
  let methods = [
    InterfaceMethod<"Returns the device, or nothing before placement.", "std::optional<::mcc::ir::Device>", "getPlacement", (ins), "", [{
      return $_op.getDevice();
    }]>,
    InterfaceMethod<"Sets the device.", "void", "setPlacement", (ins "::mcc::ir::Device":$device), "", [{
      $_op.setDevice(device);
    }]>,
  ];
}

#endif
