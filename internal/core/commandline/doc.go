// Package commandline reads and writes command lines: the words of an argument
// vector, and shell strings as a tree of commands.
//
// It knows the part of the POSIX shell that container manifests use: simple
// commands with assignments and redirections, pipes, lists, if, for, while,
// until, case, groups, here-documents, parameter, command and arithmetic
// expansion. It refuses functions, aliases, globbing and job control.
//
// It is pure: nothing is run, no file and no environment is read. Who wants
// "$HOME" expanded passes the variables in.
package commandline
