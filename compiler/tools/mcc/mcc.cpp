// mcc: the compiler. All of it is in compiler/Driver.
#include "compiler/Driver/Main.h"

int main(int argc, char **argv) { return mcc::mccMain(argc, argv); }
