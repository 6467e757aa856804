package commandline

import "strings"

// Quote returns word written so that a shell reads it back as that one word,
// nothing expanded. Plain words stay as they are.
func Quote(word string) string {
	if word == "" {
		return "''"
	}
	if strings.IndexFunc(word, needsQuoting) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Join quotes every word and joins them with blanks.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Quote(word)
	}
	return strings.Join(quoted, " ")
}

func needsQuoting(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("@%_+=:,./-", r)
}
