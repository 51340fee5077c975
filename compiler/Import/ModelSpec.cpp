#include "compiler/Import/ModelSpec.h"
