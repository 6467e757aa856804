package diagnosis

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

// longest bounds what a message may take of a status.
const longest = 320

// clip shortens a text to one line of bounded length, safe to show.
func clip(text string) string {
	text = sanitise.Line(text)
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

// kept is how variables and fields are called whose values are credentials.
const kept = `[a-z0-9_-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)`

// credentials are the ways in which programs print what they were to keep to
// themselves. A log is read by fewer people than a status is.
var credentials = []struct {
	shape *regexp.Regexp
	left  string
}{
	{regexp.MustCompile(`(://[^/\s:@]+:)[^/\s@]+@`), "${1}***@"},
	{regexp.MustCompile(`(?i)\b(bearer|basic) [A-Za-z0-9._~+/=-]{8,}`), "${1} ***"},
	{regexp.MustCompile(`\b(hf_|nvapi-|sk-|ghp_|AKIA)[A-Za-z0-9_-]{12,}`), "${1}***"},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`), "***"},
	{regexp.MustCompile(`(?i)(\b` + kept + `=["']?)[^\s"',;]{6,}`), "${1}***"},
	{regexp.MustCompile(`(?i)(\b` + kept + `["']\s*:\s*["'])[^"']+`), "${1}***"},
	{regexp.MustCompile(`(?i)(\b` + kept + `\s*:\s*)[^\s"',;]{16,}`), "${1}***"},
}

func redact(line string) string {
	for _, c := range credentials {
		line = c.shape.ReplaceAllString(line, c.left)
	}
	return line
}

// LastLine is the last line of a text that says something, without what would
// make it differ at each run, and without credentials that can be told as such.
func LastLine(text string) string {
	lines := strings.Split(sanitise.Text(text), "\n")
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
			return clip(redact(line))
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
