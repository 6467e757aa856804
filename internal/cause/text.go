package cause

import (
	"regexp"
	"slices"
	"strings"
)

// longest bounds what a message may take of a status.
const longest = 320

// clip shortens a text to one line of bounded length.
func clip(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	runes := []rune(text)
	if len(runes) <= longest {
		return text
	}
	return string(runes[:longest-1]) + "…"
}

// stamps are the ways in which log lines begin with what differs each time: a
// time, a process, a thread.
var stamps = []*regexp.Regexp{
	regexp.MustCompile(`^\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[\s:|-]*`),
	regexp.MustCompile(`^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\]]*\] `),
	regexp.MustCompile(`^\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?[\s:|-]*`),
	regexp.MustCompile(`^\([^()]*pid=\d+[^()]*\) *`),
	regexp.MustCompile(`^(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)? *`),
}

// terminal is colour.
var terminal = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// LastLine is the last line of a text that says something, without what would
// make it differ at each run.
func LastLine(text string) string {
	lines := strings.Split(terminal.ReplaceAllString(text, ""), "\n")
	for _, line := range slices.Backward(lines) {
		line := strings.TrimSpace(line)
		for again := true; again; {
			again = false
			for _, s := range stamps {
				if rest := s.ReplaceAllString(line, ""); rest != line {
					line, again = rest, true
				}
			}
		}
		if line = strings.TrimSpace(line); line != "" {
			return clip(line)
		}
	}
	return ""
}

// lastClause is what an error that was wrapped many times is about.
func lastClause(text string) string {
	text = strings.TrimSpace(text)
	if i := strings.LastIndex(text, ": "); i >= 0 {
		return text[i+2:]
	}
	return text
}
