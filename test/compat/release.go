package compat

// release lists every reason to differ from release 1.4.1 of the original.
var release = []*reason{}
