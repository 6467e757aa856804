package launch

import (
	"path"
	"strings"
)

// wrapper describes a program that does nothing but start another one.
type wrapper struct {
	// values counts the words each option takes; others take none.
	values map[string]int
	// skip is how many plain words come before the wrapped command.
	skip int
}

var wrappers = map[string]wrapper{
	"mpirun": {values: map[string]int{
		"-n": 1, "-np": 1, "-H": 1, "--host": 1, "-host": 1, "--hostfile": 1, "-x": 1,
		"--mca": 2, "-mca": 2, "--map-by": 1, "--bind-to": 1, "--rank-by": 1, "--wdir": 1,
	}},
	"mpiexec":              {values: map[string]int{"-n": 1, "-np": 1, "-x": 1, "--mca": 2}},
	"trtllm-llmapi-launch": {},
	"nohup":                {},
	"setsid":               {},
	"time":                 {},
	"stdbuf":               {values: map[string]int{"-o": 1, "-e": 1, "-i": 1}},
	"nice":                 {values: map[string]int{"-n": 1}},
	"timeout":              {values: map[string]int{"-k": 1, "-s": 1}, skip: 1},
	"numactl":              {values: map[string]int{"-N": 1, "-m": 1, "-C": 1}},
	"tini":                 {values: map[string]int{"-e": 1}},
	"dumb-init":            {},
	"sudo":                 {values: map[string]int{"-u": 1}},
	"nsys":                 {values: map[string]int{"-o": 1, "-t": 1}, skip: 1},
	"uv":                   {values: map[string]int{"--with": 1, "--python": 1}, skip: 1},
}

// unwrap returns the command a wrapper starts; nil when words are no wrapper's.
func unwrap(words []string) []string {
	w, ok := wrappers[path.Base(words[0])]
	if !ok {
		return nil
	}
	skip := w.skip
	for i := 1; i < len(words); i++ {
		switch word := words[i]; {
		case word == "--":
			return words[i+1:]
		case strings.HasPrefix(word, "-"):
			i += w.values[word]
		case skip > 0:
			skip--
		default:
			return words[i:]
		}
	}
	return nil
}
