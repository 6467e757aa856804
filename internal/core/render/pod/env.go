package pod

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mergeEnv joins layers of environment by name, later layers winning, and
// brings the result into its one order.
func mergeEnv(layers ...[]corev1.EnvVar) []corev1.EnvVar {
	all := slices.Concat(layers...)
	slices.SortStableFunc(all, func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	merged := all[:0]
	for i, v := range all {
		if i+1 == len(all) || all[i+1].Name != v.Name {
			merged = append(merged, v)
		}
	}
	return orderEnv(merged)
}

// setEnv puts variables behind the others, in the place of those of the same names: the
// server takes no name twice.
func setEnv(env []corev1.EnvVar, set ...corev1.EnvVar) []corev1.EnvVar {
	names := envNames(set)
	kept := slices.DeleteFunc(slices.Clone(env), func(v corev1.EnvVar) bool { return slices.Contains(names, v.Name) })
	return append(kept, set...)
}

// orderEnv keeps the order by name, except that a variable follows those it
// refers to: $(NAME) is only expanded for names that stand earlier in the list.
// Variables that refer to each other in a circle keep their order by name.
func orderEnv(byName []corev1.EnvVar) []corev1.EnvVar {
	if !slices.ContainsFunc(byName, func(v corev1.EnvVar) bool { return strings.Contains(v.Value, "$(") }) {
		return byName
	}
	ordered := make([]corev1.EnvVar, 0, len(byName))
	placed := make([]bool, len(byName))
	var place func(i int)
	place = func(i int) {
		if placed[i] {
			return
		}
		placed[i] = true
		for _, referred := range references(byName[i].Value) {
			if at, known := slices.BinarySearchFunc(byName, referred, func(v corev1.EnvVar, name string) int { return cmp.Compare(v.Name, name) }); known {
				place(at)
			}
		}
		ordered = append(ordered, byName[i])
	}
	for i := range byName {
		place(i)
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
