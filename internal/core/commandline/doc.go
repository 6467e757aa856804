// Package commandline reads and writes command lines: the words of an argument
// vector, and shell strings as the syntax tree of mvdan.cc/sh, in which every
// word has its place in the source.
//
// It is pure: nothing is run, no file and no environment is read.
package commandline
