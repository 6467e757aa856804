package launch

import (
	"cmp"
	"strings"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// Settings reads what a program was told, value by value, and keeps the first error.
// Values are asked for by the names of a variable and of flags, which go over it.
type Settings struct {
	commandline.Args
	Env podenv.Env
	Err error
}

// Settings are what the program was told.
func (p Program) Settings() *Settings {
	return &Settings{Args: commandline.NewLooseArgs(p.Args), Env: p.Env}
}

// Fail notes an error, if it is one.
func (s *Settings) Fail(err error) { s.Err = cmp.Or(s.Err, err) }

// Text is a flag's value.
func (s *Settings) Text(byDefault string, flags ...string) string {
	if v, ok := s.Value(flags...); ok {
		return v
	}
	return byDefault
}

// Path is a flag's value as the container was told it, if it names a file.
func (s *Settings) Path(byDefault string, flags ...string) string {
	path, err := s.Env.ContainerPath(s.Text(byDefault, flags...))
	s.Fail(err)
	return path
}

// Int is a whole number.
func (s *Settings) Int(byDefault int, names ...string) int {
	variable, flags := split(names)
	n, err := s.Env.Int(variable, byDefault)
	s.Fail(err)
	n, err = s.Args.Int(n, flags...)
	s.Fail(err)
	return n
}

// Float is a number.
func (s *Settings) Float(byDefault float64, names ...string) float64 {
	variable, flags := split(names)
	f, err := s.Env.Float(variable, byDefault)
	s.Fail(err)
	f, err = s.Args.Float(f, flags...)
	s.Fail(err)
	return f
}

// Duration is that of a variable.
func (s *Settings) Duration(byDefault time.Duration, variable string) time.Duration {
	d, err := s.Env.Duration(variable, byDefault)
	s.Fail(err)
	return d
}

// split tells the variable, which comes first if there is one, from the flags.
func split(names []string) (variable string, flags []string) {
	if strings.HasPrefix(names[0], "-") {
		return "", names
	}
	return names[0], names[1:]
}
