package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root of the repository: commands in the guides are meant to be typed there.
const root = "../.."

// Marks of blocks.
const (
	toRun    = "sh"      // commands that the test runs
	notToRun = "console" // commands that it cannot run, with the reason
	output   = "text"    // what is printed, or a drawing
)

// block is a fenced block of a page.
type block struct {
	line int
	mark string
	text string
	// comments stand right above it.
	comments []string
}

// comment is what a comment above the block says after a keyword.
func (b block) comment(keyword string) (string, bool) {
	for _, c := range b.comments {
		if c == keyword {
			return "", true
		}
		if rest, found := strings.CutPrefix(c, keyword+": "); found {
			return rest, true
		}
	}
	return "", false
}

// blocks of a page, in order. Those of a list are indented, and lose that.
func blocks(page string) []block {
	var all []block
	var comments []string
	var current *block
	indent, number := "", 0
	for line := range strings.Lines(page) {
		number++
		bare := strings.TrimSpace(line)
		switch {
		case current != nil && bare == "```":
			all, current = append(all, *current), nil
		case current != nil:
			current.text += strings.TrimPrefix(line, indent)
		case strings.HasPrefix(bare, "```"):
			indent, _, _ = strings.Cut(line, "```")
			current = &block{line: number, mark: bare[3:], comments: comments}
			comments = nil
		case strings.HasPrefix(bare, "<!-- ") && strings.HasSuffix(bare, " -->"):
			comments = append(comments, bare[5:len(bare)-4])
		case bare != "":
			comments = nil
		}
	}
	return all
}

func TestBlocksAreReadWithWhatStandsAboveThem(t *testing.T) {
	t.Parallel()
	got := blocks("a\n<!-- far -->\nb\n<!-- first: true -->\n```sh\nyes\nand yes\n```\n1. c\n\n   <!-- not run: why -->\n   ```console\n   no\n     still\n   ```\n")
	want := []block{
		{line: 5, mark: "sh", text: "yes\nand yes\n", comments: []string{"first: true"}},
		{line: 12, mark: "console", text: "no\n  still\n", comments: []string{"not run: why"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(block{})); diff != "" {
		t.Error(diff)
	}
}

// pages are the Markdown files of the repository; localcluster is a module with
// documents of its own.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "charts/*/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			found[name] = string(text)
		}
	}
	if len(found) < 20 {
		t.Fatalf("%d pages only", len(found))
	}
	return found
}

// TestEveryBlockSaysWhatItIs so that no command is left unrun by oversight.
func TestEveryBlockSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for name, page := range pages(t) {
		if strings.HasPrefix(name, "docs/design/") {
			continue // drawings
		}
		for _, b := range blocks(page) {
			_, excused := b.comment("not run")
			switch {
			case !slices.Contains([]string{toRun, notToRun, output, "yaml", "lua"}, b.mark):
				t.Errorf("%s:%d: a block is marked %q", name, b.line, b.mark)
			case b.mark == notToRun && !excused:
				t.Errorf("%s:%d: commands that are not run, and no comment above says why", name, b.line)
			case b.mark == toRun && !strings.HasPrefix(name, "docs/guide/"):
				t.Errorf("%s:%d: only commands of guides are run", name, b.line)
			case b.mark == output && regexp.MustCompile(`(?m)^(\$ )?(kubectl|helm|make|bin/\S+) `).MatchString(b.text):
				t.Errorf("%s:%d: commands are marked as output", name, b.line)
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$") //nolint:gocritic // both lines of a fence begin one
)

// TestLinksLeadSomewhere within the repository: to a file, and to a heading of it.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	tracked := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	}
	all, followed := pages(t), 0
	for name, page := range all {
		for _, match := range link.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
			target := match[1]
			if strings.Contains(target, "://") {
				continue
			}
			followed++
			path, anchor, _ := strings.Cut(target, "#")
			to := filepath.Join(filepath.Dir(name), path)
			if path == "" {
				to = name
			}
			if !tracked(to) {
				t.Errorf("%s links to %s, which is not there", name, target)
			} else if anchor != "" && !slices.Contains(anchors(all[to]), anchor) {
				t.Errorf("%s links to %s, and %s has no such heading", name, target, to)
			}
		}
	}
	if followed < 100 {
		t.Errorf("%d links only", followed)
	}
}

// anchors are the names that a page's headings have in links.
func anchors(page string) []string {
	var names []string
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(match[1]))
		names = append(names, name)
	}
	return names
}

// TestGuidesAreListed in the table of contents, so that each can be found.
func TestGuidesAreListed(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for name := range all {
		path, below := strings.CutPrefix(name, "docs/")
		if below && strings.Contains(path, "/") && !strings.Contains(all["docs/README.md"], "("+path+")") {
			t.Errorf("docs/README.md does not name %s", path)
		}
	}
}

var (
	verb   = regexp.MustCompile(`\bmake ([a-z][a-z0-9-]+)\b`)
	inline = regexp.MustCompile("`[^`\n]+`")
)

// TestWhatCountsSecondsIsRun: what tests hold against seconds only on a machine of its own
// is held by the verb that has one.
func TestWhatCountsSecondsIsRun(t *testing.T) {
	t.Parallel()
	text, err := exec.CommandContext(t.Context(), "make", "-C", root, "--dry-run", "scaling-e2e").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var patterns []string
	for line := range strings.Lines(string(text)) {
		if _, run, ok := strings.Cut(line, " -run "); ok && strings.Contains(line, "./test/e2e") && strings.Contains(line, " -scaling") {
			pattern, _, _ := strings.Cut(strings.Trim(run, "'"), "'")
			patterns = append(patterns, pattern)
		}
	}
	for _, test := range []string{
		"TestPublishedPlannersFollowUpstreamsScenario", "TestReplicasThatNoNodeHasRoomForAreGivenUp", "TestAClusterIsLikeItsSimulation",
		"TestOnABareCluster/#00/a_graph_sleeps_when_nobody_asks,_and_wakes_without_losing_a_request", "TestOnABareCluster/#00/a_wake_adds_little_to_a_start",
	} {
		if !slices.ContainsFunc(patterns, func(pattern string) bool { return runs(t, pattern, test) }) {
			t.Errorf("%s is run by none of %q", test, patterns)
		}
	}
}

// runs reports whether go test -run has a test run, each part of whose name has a part of
// the pattern.
func runs(t *testing.T, pattern, test string) bool {
	t.Helper()
	parts, names := strings.Split(pattern, "/"), strings.Split(test, "/")
	for i, name := range names {
		if i < len(parts) && !regexp.MustCompile(parts[i]).MatchString(name) {
			return false
		}
	}
	return true
}

// TestVerbsExist: what a page says to make is in the Makefile, and the list of
// verbs that make prints knows it.
func TestVerbsExist(t *testing.T) {
	t.Parallel()
	listed, err := exec.CommandContext(t.Context(), "make", "-C", root, "--no-print-directory", "help").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range pages(t) {
		code := inline.FindAllString(page, -1)
		for _, b := range blocks(page) {
			if b.mark == toRun || b.mark == notToRun {
				code = append(code, b.text)
			}
		}
		for _, match := range verb.FindAllStringSubmatch(strings.Join(code, "\n"), -1) {
			if !strings.Contains(string(listed), "  make "+match[1]+" ") {
				t.Errorf("%s: make %s is no verb", name, match[1])
			}
		}
	}
}
