# How mcc's programs link MLIR and LLVM. mcc-mlir and mcc-llvm link mcc-mlir-library and mcc-llvm-library, which are the
# shared libraries (small programs, quick links while developing) except in executables with the property
# MCC_STATIC_LLVM: those take the archives, of which the linker keeps what is reached (about 50 MB for mcc), and with
# mcc_link_alone() need libc and libm only. That is what scripts/bundle ships.

# mcc_archives_of(RESULT ROOTS...): paths of the archives of the roots and of all that they link, found from the link
# interfaces of the imported targets. Debian's MLIR archives name the shared LLVM there, which is not followed.
function(mcc_archives_of result)
  set(pending ${ARGN})
  set(seen)
  set(archives)
  while(pending)
    list(POP_FRONT pending name)
    if(name IN_LIST seen OR NOT TARGET ${name})
      continue()
    endif()
    list(APPEND seen ${name})
    get_target_property(type ${name} TYPE)
    if(NOT type STREQUAL "STATIC_LIBRARY")
      continue()
    endif()
    list(APPEND archives $<TARGET_FILE:${name}>)
    get_target_property(linked ${name} INTERFACE_LINK_LIBRARIES)
    if(linked)
      string(REGEX REPLACE "\\$<LINK_ONLY:([^>]*)>" "\\1" linked "${linked}")
      list(APPEND pending ${linked})
    endif()
  endwhile()
  set(${result} ${archives} PARENT_SCOPE)
endfunction()

# mcc_choose_library(NAME SHARED ARCHIVES...): an interface that is SHARED or, where the executable asks, the archives.
function(mcc_choose_library name shared)
  string(REPLACE ";" "," archives "${ARGN}")
  set(static $<BOOL:$<TARGET_PROPERTY:MCC_STATIC_LLVM>>)
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE $<$<NOT:${static}>:${shared}> $<${static}:$<LINK_GROUP:RESCAN,${archives}>>)
endfunction()

llvm_map_components_to_libnames(llvmComponents ${LLVM_NATIVE_ARCH} Passes Linker BitReader IRReader Core Support TargetParser)
mcc_archives_of(llvmArchives ${llvmComponents})
mcc_archives_of(mlirArchives MLIRFuncDialect MLIRLLVMDialect MLIRLLVMToLLVMIRTranslation MLIRBuiltinToLLVMIRTranslation
  MLIRTargetLLVMIRExport MLIRTransforms MLIRPass MLIRIR MLIRParser)
# Support/Compression.cpp's libraries.
find_library(MCC_Z_ARCHIVE libz.a)
find_library(MCC_ZSTD_ARCHIVE libzstd.a)
mcc_choose_library(mcc-mlir-library MLIR ${mlirArchives})
mcc_choose_library(mcc-llvm-library LLVM ${llvmArchives} ${MCC_Z_ARCHIVE} ${MCC_ZSTD_ARCHIVE})

# mcc_link_alone(TARGET): links an executable so that it runs wherever glibc is.
function(mcc_link_alone target)
  set_target_properties(${target} PROPERTIES MCC_STATIC_LLVM ON)
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections -s)
endfunction()
