package launch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// What scripts use to look at their GPUs before they start an engine.

// gpuFields are the properties of a GPU that can be asked for: idle ones, of the
// kind that the local cluster's nodes have.
var gpuFields = map[string]func(i int) string{
	"index":              strconv.Itoa,
	"uuid":               func(i int) string { return fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", i) },
	"name":               func(int) string { return "NVIDIA H200" },
	"gpu_name":           func(int) string { return "NVIDIA H200" },
	"memory.total":       func(int) string { return "143771" },
	"memory.used":        func(int) string { return "0" },
	"memory.free":        func(int) string { return "143771" },
	"utilization.gpu":    func(int) string { return "0" },
	"utilization.memory": func(int) string { return "0" },
	"driver_version":     func(int) string { return "570.00" },
}

// nvidiaSMI lists the GPUs that the container has. No process ever uses them.
func nvidiaSMI(_ context.Context, c command, args []string) int {
	gpus, err := c.env.GPUs()
	if err != nil {
		fmt.Fprintf(c.streams.Err, "nvidia-smi: %v\n", err)
		return 1
	}
	var fields []string
	names := false
	for _, arg := range args {
		switch {
		case arg == "-L" || arg == "--list-gpus":
			for i := range gpus {
				fmt.Fprintf(c.streams.Out, "GPU %d: %s (UUID: %s)\n", i, gpuFields["name"](i), gpuFields["uuid"](i))
			}
		case strings.HasPrefix(arg, "--query-gpu="):
			fields = strings.Split(strings.TrimPrefix(arg, "--query-gpu="), ",")
		case strings.HasPrefix(arg, "--format="):
			names = !strings.Contains(arg, "noheader")
		}
	}
	if fields == nil {
		return 0
	}
	if names {
		fmt.Fprintln(c.streams.Out, strings.Join(fields, ", "))
	}
	for i := range gpus {
		row := make([]string, len(fields))
		for k, field := range fields {
			value, ok := gpuFields[strings.TrimSpace(field)]
			if !ok {
				fmt.Fprintf(c.streams.Err, "Field %q is not a valid field to query.\n", field)
				return 2
			}
			row[k] = value(i)
		}
		fmt.Fprintln(c.streams.Out, strings.Join(row, ", "))
	}
	return 0
}

// grep knows -c, -q, -v, -i and -E, on its input or on files.
func grep(_ context.Context, c command, args []string) int {
	var pattern string
	var files []string
	has := map[rune]bool{}
	given := false
	for _, arg := range args {
		switch {
		case len(arg) > 1 && arg[0] == '-' && !given:
			for _, letter := range strings.TrimLeft(arg, "-") {
				has[letter] = true
			}
		case !given:
			pattern, given = arg, true
		default:
			files = append(files, arg)
		}
	}
	if has['i'] {
		pattern = "(?i)" + pattern
	}
	expression, err := regexp.Compile(pattern)
	if err != nil {
		fmt.Fprintf(c.streams.Err, "grep: %v\n", err)
		return 2
	}
	found := 0
	err = lines(c, files, func(line string) {
		if expression.MatchString(line) == has['v'] {
			return
		}
		found++
		if !has['c'] && !has['q'] {
			fmt.Fprintln(c.streams.Out, line)
		}
	})
	if err != nil {
		fmt.Fprintf(c.streams.Err, "grep: %v\n", err)
		return 2
	}
	if has['c'] {
		fmt.Fprintln(c.streams.Out, found)
	}
	if found == 0 {
		return 1
	}
	return 0
}

// The programs of awk that are played: a column, and how many rows have more
// than so much in one.
var (
	awkColumn = regexp.MustCompile(`^\s*\{\s*print \$(\d+);?\s*\}\s*$`)
	awkAbove  = regexp.MustCompile(`^\s*\{.*\(?\(?\$(\d+)\+0\)?\s*>\s*(\d+)\)\s*(\w+)\+\+;?\s*\}\s*END\s*\{\s*print (\w+)\+0;?\s*\}\s*$`)
)

// awk knows '{print $N}' and counting the rows whose field is above a limit.
func awk(_ context.Context, c command, args []string) int {
	separator, program := "", ""
	var files []string
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "-F" && i+1 < len(args):
			i++
			separator = args[i]
		case strings.HasPrefix(arg, "-F"):
			separator = arg[2:]
		case program == "":
			program = arg
		default:
			files = append(files, arg)
		}
	}
	split := strings.Fields
	if separator != "" {
		split = func(line string) []string { return strings.Split(line, separator) }
	}
	field := func(line, number string) string {
		n, _ := strconv.Atoi(number) // digits
		if all := split(line); n > 0 && n <= len(all) {
			return all[n-1]
		}
		return ""
	}
	var err error
	if m := awkColumn.FindStringSubmatch(program); m != nil {
		err = lines(c, files, func(line string) { fmt.Fprintln(c.streams.Out, field(line, m[1])) })
	} else if m := awkAbove.FindStringSubmatch(program); len(m) > 4 && m[3] == m[4] {
		limit, _ := strconv.ParseFloat(m[2], 64) // digits
		above := 0
		err = lines(c, files, func(line string) {
			if value, err := strconv.ParseFloat(strings.TrimSpace(field(line, m[1])), 64); err == nil && value > limit {
				above++
			}
		})
		fmt.Fprintln(c.streams.Out, above)
	} else {
		err = fmt.Errorf("only {print $N} and counting rows above a limit are played, not %q", program)
	}
	if err != nil {
		fmt.Fprintf(c.streams.Err, "awk: %v\n", err)
		return 2
	}
	return 0
}

// lines reads files, or the input without any.
func lines(c command, files []string, each func(string)) error {
	read := func(r io.Reader) error {
		scanner := bufio.NewScanner(r)
		for scanner.Scan() {
			each(scanner.Text())
		}
		return scanner.Err()
	}
	if len(files) == 0 {
		if c.streams.In == nil {
			return nil
		}
		return read(c.streams.In)
	}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		err = read(file)
		_ = file.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
