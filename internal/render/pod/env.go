package pod

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mergeEnv joins layers of environment by name, later layers winning, and
// brings the result into its one order.
func mergeEnv(layers ...[]corev1.EnvVar) []corev1.EnvVar {
	byName := map[string]corev1.EnvVar{}
	for _, layer := range layers {
		for _, v := range layer {
			byName[v.Name] = v
		}
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return orderEnv(names, byName)
}

// orderEnv sorts by name, except that a variable follows those it refers to:
// $(NAME) is only expanded for names that stand earlier in the list. Variables
// that refer to each other in a circle keep their order by name.
func orderEnv(names []string, byName map[string]corev1.EnvVar) []corev1.EnvVar {
	ordered := make([]corev1.EnvVar, 0, len(names))
	placed := map[string]bool{}
	var place func(name string)
	place = func(name string) {
		v, known := byName[name]
		if !known || placed[name] {
			return
		}
		placed[name] = true
		for _, referred := range references(v.Value) {
			place(referred)
		}
		ordered = append(ordered, v)
	}
	for _, name := range names {
		place(name)
	}
	return ordered
}

// references lists the names in $(NAME) expressions of a value; $$(NAME) is an
// escaped one.
func references(value string) []string {
	var names []string
	for {
		at := strings.Index(value, "$")
		if at < 0 || at+1 >= len(value) {
			return names
		}
		rest := value[at+1:]
		if rest[0] == '(' {
			if end := strings.IndexByte(rest, ')'); end > 0 {
				names = append(names, rest[1:end])
			}
		}
		value = rest[1:]
	}
}
