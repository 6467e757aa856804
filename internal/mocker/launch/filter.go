package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// sed knows s/REGEXP/TEXT/[g], which is what multinode scripts use to write
// the address of a group's member.
func sed(_ context.Context, c command, args []string) int {
	var expression string
	for i, arg := range args {
		if arg == "-e" && i+1 < len(args) || arg == "-E" || arg == "-r" || arg == "-n" {
			continue
		}
		expression = arg
		break
	}
	substitute, err := substitution(expression)
	if err != nil {
		fmt.Fprintf(c.streams.Err, "sed: %v\n", err)
		return 1
	}
	if c.streams.In == nil {
		return 0
	}
	text, err := io.ReadAll(c.streams.In)
	if err != nil {
		return 1
	}
	for line := range strings.Lines(string(text)) {
		body := strings.TrimSuffix(line, "\n")
		fmt.Fprint(c.streams.Out, substitute(body)+line[len(body):])
	}
	return 0
}

func substitution(expression string) (func(string) string, error) {
	if len(expression) < 4 || expression[0] != 's' {
		return nil, fmt.Errorf("only s/regexp/text/ is played, not %q", expression)
	}
	separator := regexp.QuoteMeta(expression[1:2])
	field := `((?:\\.|[^\\` + separator + `])*)` + separator
	form, err := regexp.Compile(`^s` + separator + field + field + `(\w*)$`)
	if err != nil {
		return nil, err
	}
	fields := form.FindStringSubmatch(expression)
	if fields == nil {
		return nil, fmt.Errorf("unterminated %q", expression)
	}
	pattern, err := regexp.Compile(fields[1])
	if err != nil {
		return nil, err
	}
	replacement, global := escaped.ReplaceAllString(fields[2], "$1"), strings.Contains(fields[3], "g")
	return func(line string) string {
		if global {
			return pattern.ReplaceAllLiteralString(line, replacement)
		}
		at := pattern.FindStringIndex(line)
		if at == nil {
			return line
		}
		return line[:at[0]] + replacement + line[at[1]:]
	}, nil
}

var escaped = regexp.MustCompile(`\\(.)`)

// curl gets one URL of this very pod: it serves exec probes. "localhost" is the
// address the pod's processes listen on.
func curl(ctx context.Context, c command, args []string) int {
	var address string
	failOnError := false
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "-o" || arg == "-m" || arg == "--max-time" || arg == "-H" || arg == "-X" || arg == "-w":
			i++
		case strings.HasPrefix(arg, "--fail") || strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "f"):
			failOnError = true
		case !strings.HasPrefix(arg, "-"):
			address = arg
		}
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		fmt.Fprintf(c.streams.Err, "curl: no URL in %q\n", args)
		return 3
	}
	switch u.Hostname() {
	case "localhost", "127.0.0.1", "0.0.0.0":
		if host := c.env["DYNAMO_LISTEN_HOST"]; host != "" {
			u.Host = host + ":" + u.Port()
		}
	default:
		fmt.Fprintf(c.streams.Err, "curl: the mock engine asks only its own pod, not %s\n", u.Host)
		return 6
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return 3
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Fprintf(c.streams.Err, "curl: %v\n", err)
		return 7
	}
	defer response.Body.Close()
	if failOnError && response.StatusCode >= 400 {
		return 22
	}
	_, _ = io.Copy(c.streams.Out, response.Body)
	return 0
}

var jqFilter = regexp.MustCompile(`^\s*\.([A-Za-z0-9_.]*)\s*(?:(==|!=)\s*(.+?))?\s*$`)

// jq knows ".a.b" and ".a.b == VALUE", with -e telling by the exit status.
func jq(_ context.Context, c command, args []string) int {
	var filter string
	byStatus := false
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			byStatus = byStatus || strings.Contains(arg, "e")
		} else {
			filter = arg
		}
	}
	parts := jqFilter.FindStringSubmatch(filter)
	if parts == nil {
		fmt.Fprintf(c.streams.Err, "jq: only .path and .path == value are played, not %q\n", filter)
		return 3
	}
	var value any
	if c.streams.In == nil || json.NewDecoder(c.streams.In).Decode(&value) != nil {
		return 2
	}
	for _, key := range strings.FieldsFunc(parts[1], func(r rune) bool { return r == '.' }) {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	if parts[2] != "" {
		var other any
		if err := json.Unmarshal([]byte(parts[3]), &other); err != nil {
			fmt.Fprintf(c.streams.Err, "jq: %v\n", err)
			return 3
		}
		value = (fmt.Sprint(value) == fmt.Sprint(other)) == (parts[2] == "==")
	}
	text, err := json.Marshal(value)
	if err != nil {
		return 5
	}
	fmt.Fprintln(c.streams.Out, string(text))
	if byStatus && (value == nil || value == false) {
		return 1
	}
	return 0
}
