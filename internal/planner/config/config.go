// Package config reads what a planner is told, in the forms in which planners of both
// revisions are started: flags, a JSON or YAML document, the environment. It reads no
// cluster. What ours does otherwise is accepted and said, what it cannot do is refused.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/original"
	"github.com/dynamo-operator/dynamo-operator/internal/core/price"
)

// Mode is what of a graph is scaled.
type Mode string

// The modes.
const (
	Disaggregated Mode = "disagg"
	PrefillOnly   Mode = "prefill"
	DecodeOnly    Mode = "decode"
	Aggregated    Mode = "agg"
)

// Policy is who decides.
type Policy string

// The policies.
const (
	Native   Policy = "native"
	Original Policy = "original"
)

// Config is what a planner is told.
type Config struct {
	// Idle planners stay up and decide nothing: those that arbitrate among graphs, which
	// the operator does.
	Idle bool
	// Graph is the DynamoGraphDeployment, Namespace where it is; empty is that of the pod.
	Graph, Namespace string
	Mode             Mode
	Policy           Policy
	// Advisory planners decide and write nothing.
	Advisory bool
	// Interval is how often the original decides; Tick how often ours does.
	Interval, Tick time.Duration
	// Pause is how long a need must be gone before replicas are taken away, at least.
	Pause time.Duration
	// Budget is the most GPUs; 0 is no limit.
	Budget int
	Floors decision.Vector
	// GPUs of one replica where they are given; else the graph says.
	GPUs    decision.Vector
	Profile string
	// GPU is what replicas of a role have, by which they are priced, and timed without a
	// profile; empty if nobody says so.
	GPU [decision.Roles]string
	// Price of a GPU and hour in dollars, of each role; 0 is that of the table.
	Price        [decision.Roles]float64
	TTFT, ITL    time.Duration
	Predictor    original.Predictor
	Log1p        bool
	QLevel       float64
	QTrend       float64
	RNoise       float64
	NoCorrection bool
	// Model is the one whose requests count; empty is the workers'.
	Model string
	// Port has metrics and decisions, and SystemPort answers probes; 0 is none.
	Port, SystemPort int
	// Listen is the address to listen on; empty is any. Proxy is where pods are asked
	// through; empty is straight.
	Listen, Proxy string
	// Notes are what is done otherwise than the words say, for the log.
	Notes []string
}

// Usage is an error of who starts a planner.
type Usage struct{ Why string }

func (u Usage) Error() string { return u.Why }

// flag is an argument of either revision. Keys of the document have the same names with
// underscores.
type flag struct {
	names []string
	// set takes a value; a switch is given "true" or "false".
	set    func(c *Config, value string) error
	toggle bool
	// general ones are set before the others, which say more, whatever their order.
	general bool
	// idle is why it has no effect; empty if it has.
	idle string
}

const (
	direct   = "frontends are asked directly"
	oneLoop  = "there is one loop, of 5 s"
	measured = "replicas are timed by a profile or the performance model, and by what requests got"
	foreseen = "the forecast with the least error speaks"
	operator = "the operator arbitrates"
	unserved = "nothing is served there"
)

// flags are all that either revision knows.
var flags = []flag{
	{names: []string{"environment"}, set: environment},
	{names: []string{"namespace"}, idle: "the graph is found by its name"},
	{names: []string{"backend"}, set: oneOf("vllm", "sglang", "trtllm", "mocker")},
	{names: []string{"mode"}, set: func(c *Config, v string) error {
		c.Mode = Mode(v)
		return oneOf(string(Disaggregated), string(PrefillOnly), string(DecodeOnly), string(Aggregated))(c, v)
	}},
	{names: []string{"policy"}, set: func(c *Config, v string) error {
		c.Policy = Policy(v)
		return oneOf(string(Native), string(Original))(c, v)
	}},
	{names: []string{"no-operation"}, toggle: true, set: advisory},
	{names: []string{"advisory"}, toggle: true, set: advisory},
	{names: []string{"adjustment-interval", "throughput-adjustment-interval", "throughput-adjustment-interval-seconds"}, set: seconds(func(c *Config) *time.Duration { return &c.Interval })},
	{names: []string{"scale-down-pause"}, set: seconds(func(c *Config) *time.Duration { return &c.Pause })},
	{names: []string{"max-gpu-budget"}, set: integer(func(c *Config) *int { return &c.Budget })},
	{names: []string{"min-endpoint"}, general: true, set: func(c *Config, v string) error {
		return errors.Join(floor(decision.Prefill)(c, v), floor(decision.Decode)(c, v))
	}},
	{names: []string{"prefill-min-endpoint"}, set: floor(decision.Prefill)},
	{names: []string{"decode-min-endpoint"}, set: floor(decision.Decode)},
	{names: []string{"prefill-engine-num-gpu"}, set: integer(func(c *Config) *int { return &c.GPUs[decision.Prefill] })},
	{names: []string{"decode-engine-num-gpu"}, set: integer(func(c *Config) *int { return &c.GPUs[decision.Decode] })},
	{names: []string{"profile-results-dir"}, set: text(func(c *Config) *string { return &c.Profile })},
	{names: []string{"gpu"}, general: true, set: func(c *Config, v string) error { c.GPU = [decision.Roles]string{v, v}; return nil }},
	{names: []string{"prefill-gpu"}, set: text(func(c *Config) *string { return &c.GPU[decision.Prefill] })},
	{names: []string{"decode-gpu"}, set: text(func(c *Config) *string { return &c.GPU[decision.Decode] })},
	{names: []string{"price-per-gpu-hour"}, general: true, set: func(c *Config, v string) error {
		err := dollars(decision.Prefill)(c, v)
		c.Price[decision.Decode] = c.Price[decision.Prefill]
		return err
	}},
	{names: []string{"prefill-price-per-gpu-hour"}, set: dollars(decision.Prefill)},
	{names: []string{"decode-price-per-gpu-hour"}, set: dollars(decision.Decode)},
	{names: []string{"ttft", "ttft-ms"}, set: milliseconds(func(c *Config) *time.Duration { return &c.TTFT })},
	{names: []string{"itl", "itl-ms"}, set: milliseconds(func(c *Config) *time.Duration { return &c.ITL })},
	{names: []string{"load-predictor"}, set: predictor},
	{names: []string{"load-predictor-log1p", "kalman-log1p"}, toggle: true, set: boolean(func(c *Config) *bool { return &c.Log1p })},
	{names: []string{"kalman-q-level"}, set: number(func(c *Config) *float64 { return &c.QLevel })},
	{names: []string{"kalman-q-trend"}, set: number(func(c *Config) *float64 { return &c.QTrend })},
	{names: []string{"kalman-r"}, set: number(func(c *Config) *float64 { return &c.RNoise })},
	{names: []string{"no-correction"}, toggle: true, set: boolean(func(c *Config) *bool { return &c.NoCorrection })},
	{names: []string{"model-name"}, set: text(func(c *Config) *string { return &c.Model })},
	{names: []string{"metric-reporting-prometheus-port", "prometheus-port"}, set: integer(func(c *Config) *int { return &c.Port })},

	{names: []string{"kalman-min-points"}, idle: "the original does not use it either"},
	{names: []string{"log-dir"}, idle: "the log goes to standard error"},
	{names: []string{"load-predictor-warmup-trace"}, idle: foreseen},
	{names: []string{"prophet-window-size"}, idle: foreseen},
	{names: []string{"metric-pulling-prometheus-endpoint"}, idle: direct},
	{names: []string{"throughput-metrics-source"}, idle: direct},
	{names: []string{"optimization-target"}, idle: "both targets are kept"},
	{names: []string{"pre-deployment-sweeping-mode"}, idle: measured},
	{names: []string{"enable-throughput-scaling"}, toggle: true, idle: oneLoop},
	{names: []string{"enable-load-scaling"}, toggle: true, idle: oneLoop},
	{names: []string{"load-adjustment-interval", "load-adjustment-interval-seconds"}, idle: oneLoop},
	{names: []string{"load-min-observations"}, idle: oneLoop},
	{names: []string{"load-learning-window"}, idle: oneLoop},
	{names: []string{"load-scaling-down-sensitivity"}, idle: oneLoop},
	{names: []string{"load-metric-samples"}, idle: oneLoop},
	{names: []string{"prefill-scale-up-queue-tokens"}, idle: measured},
	{names: []string{"prefill-scale-down-queue-tokens"}, idle: measured},
	{names: []string{"decode-scale-up-kv-rate"}, idle: measured},
	{names: []string{"decode-scale-down-kv-rate"}, idle: measured},
	{names: []string{"min-gpu-budget"}, idle: "floors are replicas of each role"},
	{names: []string{"total-gpu-power-limit"}, idle: "no budget of power is kept"},
	{names: []string{"global-planner-namespace"}, idle: operator},
	{names: []string{"live-dashboard-port"}, idle: unserved + "; /decisions is on the port of metrics"},
	{names: []string{"control-api-port"}, idle: unserved},
	{names: []string{"report-interval-hours"}, idle: "decisions are at /decisions"},
	{names: []string{"report-output-dir"}, idle: "decisions are at /decisions"},
	{names: []string{"scheduling"}, idle: oneLoop},
	{names: []string{"plugin-registration"}, set: func(*Config, string) error { return errors.New("plugins are not run") }},
}

func oneOf(values ...string) func(*Config, string) error {
	return func(_ *Config, v string) error {
		if !slices.Contains(values, v) {
			return fmt.Errorf("want one of %s", strings.Join(values, ", "))
		}
		return nil
	}
}

func environment(c *Config, v string) error {
	switch v {
	case "kubernetes":
		return nil
	case "global-planner":
		c.note("environment", operator+", so it is as kubernetes")
		return nil
	case "virtual":
		return errors.New("only planners in Kubernetes are played")
	default:
		return errors.New("want kubernetes or global-planner")
	}
}

func predictor(c *Config, v string) error {
	c.Predictor = original.Constant
	switch v {
	case "constant":
	case "kalman":
		c.Predictor = original.Kalman
	case "arima", "prophet":
		c.note("load-predictor", foreseen)
	default:
		return errors.New("want arima, constant, kalman or prophet")
	}
	return nil
}

// advisory is said by two names, and either is enough: who is told once to write nothing does not.
func advisory(c *Config, v string) error {
	told, err := strconv.ParseBool(v)
	c.Advisory = c.Advisory || told
	return err
}

func text(at func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error { *at(c) = v; return nil }
}

func boolean(at func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, v string) (err error) { *at(c), err = strconv.ParseBool(v); return err }
}

func integer(at func(*Config) *int) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < -1 || n > 1<<20 {
			return errors.New("want a whole number")
		}
		*at(c) = n
		return nil
	}
}

func floor(role decision.Role) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 1<<20 {
			return errors.New("want a whole number that is not negative")
		}
		c.Floors[role] = n
		return nil
	}
}

func number(at func(*Config) *float64) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || !(n >= 0) || math.IsInf(n, 0) {
			return errors.New("want a number that is not negative")
		}
		*at(c) = n
		return nil
	}
}

// dollars reads the price of a GPU and hour, of which many can be added up.
func dollars(role decision.Role) func(*Config, string) error {
	return func(c *Config, v string) error {
		err := number(func(c *Config) *float64 { return &c.Price[role] })(c, v)
		if err == nil && c.Price[role] > price.Highest {
			return fmt.Errorf("want at most %d dollars", price.Highest)
		}
		return err
	}
}

// span reads a time in a unit; it is more than nothing and less than a day.
func span(unit time.Duration, at func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || !(n > 0) || n*float64(unit) > float64(24*time.Hour) {
			return errors.New("want a positive number")
		}
		*at(c) = time.Duration(n * float64(unit))
		return nil
	}
}

func seconds(at func(*Config) *time.Duration) func(*Config, string) error {
	return span(time.Second, at)
}

func milliseconds(at func(*Config) *time.Duration) func(*Config, string) error {
	return span(time.Millisecond, at)
}

func (c *Config) note(name, why string) {
	c.Notes = append(c.Notes, "--"+name+" has no effect: "+why)
}

// Machine is what a planner finds around it.
type Machine struct {
	Env map[string]string
	// Files are those of the container, by paths without the first slash.
	Files fs.FS
	// Dir is the working directory, which other paths are taken from; empty is the root.
	Dir string
}

// New reads the words that a container is started with.
func New(words []string, m Machine) (Config, error) {
	c := Config{
		Graph: m.Env["DYN_PARENT_DGD_K8S_NAME"], Namespace: m.Env["POD_NAMESPACE"], Mode: Disaggregated, Policy: Native,
		Interval: 180 * time.Second, Tick: 5 * time.Second, Budget: 8, Floors: decision.Vector{1, 1}, Profile: "profiling_results", GPU: [decision.Roles]string{m.Env["MOCKER_GPU"], m.Env["MOCKER_GPU"]},
		TTFT: 500 * time.Millisecond, ITL: 50 * time.Millisecond, Predictor: original.Constant, QLevel: 1, QTrend: 0.1, RNoise: 10,
		Listen: m.Env["DYNAMO_LISTEN_HOST"], Proxy: m.Env["DYNAMO_FORWARD_PROXY"],
	}
	for name, at := range map[string]*int{"PLANNER_PROMETHEUS_PORT": &c.Port, "DYN_SYSTEM_PORT": &c.SystemPort} {
		if v := m.Env[name]; v != "" {
			if err := integer(func(*Config) *int { return at })(&c, v); err != nil {
				return c, Usage{fmt.Sprintf("environment %s=%s: %v", name, v, err)}
			}
		}
	}
	arguments, idle, err := arguments(words, m.Env)
	if err != nil {
		return c, err
	}
	c.Idle = idle
	var told []setting
	for i := 0; i < len(arguments); i++ {
		name, value, inline := strings.Cut(arguments[i], "=")
		if !strings.HasPrefix(name, "--") {
			return c, Usage{fmt.Sprintf("argument %q: want --name or --name=value", arguments[i])}
		}
		name = strings.TrimPrefix(name, "--")
		f, document, err := find(name, idle)
		if err != nil {
			return c, err
		}
		switch {
		case inline:
		case !document && f.toggle:
			value = "true"
		case i+1 == len(arguments):
			return c, Usage{fmt.Sprintf("argument --%s: a value is missing", name)}
		default:
			i++
			value = arguments[i]
		}
		if !document {
			told = append(told, setting{f, name, value})
			continue
		}
		keys, err := c.document(value, m)
		if err != nil {
			return c, err
		}
		told = append(told, keys...)
	}
	if err := c.set(told); err != nil {
		return c, err
	}
	c.Budget = max(0, c.Budget)
	c.Port, c.SystemPort = max(0, c.Port), max(0, c.SystemPort)
	if !c.Idle && c.Graph == "" {
		return c, Usage{"environment DYN_PARENT_DGD_K8S_NAME is missing: it names the graph"}
	}
	return c, nil
}

// setting is an argument with its value.
type setting struct {
	flag
	name, value string
}

func (c *Config) set(told []setting) error {
	first, then := []setting{}, []setting{}
	for _, s := range told {
		if s.general {
			first = append(first, s)
		} else {
			then = append(then, s)
		}
	}
	for _, s := range append(first, then...) {
		if s.flag.set != nil {
			if err := s.flag.set(c, s.value); err != nil {
				return Usage{fmt.Sprintf("argument --%s=%s: %v", s.name, s.value, err)}
			}
		}
		if s.idle != "" {
			c.note(s.name, s.idle)
		}
	}
	return nil
}

// document reads a document of arguments, as text or from a file. Its keys grow with
// every release, so one that nobody knows is said and passed over.
func (c *Config) document(value string, m Machine) ([]setting, error) {
	body := []byte(value)
	if !strings.HasPrefix(strings.TrimSpace(value), "{") {
		if m.Files == nil { // as who reads a graph from afar
			c.Notes = append(c.Notes, "--config "+value+" is not there: the defaults count")
			return nil, nil
		}
		file := value
		if !path.IsAbs(file) {
			file = path.Join("/", m.Dir, file)
		}
		var err error
		body, err = fs.ReadFile(m.Files, strings.TrimPrefix(path.Clean(file), "/"))
		if errors.Is(err, fs.ErrNotExist) {
			// Budget and floors are in it: replicas are not to be taken away for want of a mount.
			c.Advisory = true
			c.Notes = append(c.Notes, "--config "+value+" is not there: what the defaults decide is told, and nothing is written")
			return nil, nil
		} else if err != nil {
			return nil, Usage{fmt.Sprintf("argument --config: %v", err)}
		}
	}
	var keys map[string]any
	if err := yaml.Unmarshal(body, &keys); err != nil {
		return nil, Usage{fmt.Sprintf("argument --config: %v", err)}
	}
	names := make([]string, 0, len(keys))
	for key := range keys {
		names = append(names, key)
	}
	slices.Sort(names)
	var told []setting
	for _, key := range names {
		name := strings.ReplaceAll(key, "_", "-")
		f, known := exact(name)
		if !known {
			c.Notes = append(c.Notes, fmt.Sprintf("--config: key %s is not known, the nearest is %s", key, strings.ReplaceAll(nearest(name), "-", "_")))
			continue
		}
		if keys[key] == nil || f.toggle && keys[key] == false && f.set == nil {
			continue
		}
		if list, ok := keys[key].([]any); ok && len(list) == 0 {
			continue
		}
		told = append(told, setting{f, name, plain(keys[key])})
	}
	return told, nil
}

func plain(value any) string {
	if n, ok := value.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

func exact(name string) (flag, bool) {
	for _, f := range flags {
		if slices.Contains(f.names, name) {
			return f, true
		}
	}
	return flag{}, false
}

// find is the argument of a name or of a beginning that no other has. A planner that
// arbitrates has arguments of its own, none of which counts here.
func find(name string, arbiter bool) (f flag, document bool, err error) {
	if name == "config" {
		return flag{}, true, nil
	}
	if f, known := exact(name); known {
		return f, false, nil
	}
	var found []flag
	for _, f := range flags {
		if slices.ContainsFunc(f.names, func(n string) bool { return strings.HasPrefix(n, name) }) {
			found = append(found, f)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], false, nil
	case arbiter:
		return flag{names: []string{name}, idle: operator}, false, nil
	case len(found) > 1:
		return flag{}, false, Usage{fmt.Sprintf("argument --%s could be --%s or --%s", name, found[0].names[0], found[1].names[0])}
	default:
		return flag{}, false, Usage{fmt.Sprintf("argument --%s is not known; the nearest is --%s", name, nearest(name))}
	}
}

// nearest is the name with the fewest differences.
func nearest(name string) string {
	best, least := "", math.MaxInt
	for _, f := range flags {
		for _, n := range f.names {
			if d := distance(name, n); d < least {
				best, least = n, d
			}
		}
	}
	return best
}

// distance is how many letters are to be changed, added or left out.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

var (
	python   = regexp.MustCompile(`^python[0-9.]*$`)
	shells   = []string{"sh", "bash", "dash"}
	programs = []string{"dynamo-planner", "planner_sla"}
)

// Commands are the names of programs under which a planner is started, in order.
func Commands() []string { return []string{"bash", "planner_sla", "python", "python3", "sh"} }

// arguments are those of a planner, out of the words of a container: bare, after -m and
// a module, after an interpreter, or in a line of a shell.
func arguments(words []string, env map[string]string) (flags []string, arbiter bool, err error) {
	for len(words) > 0 {
		name := path.Base(words[0])
		switch {
		case words[0] == "-m" && len(words) > 1:
			return words[2:], strings.HasPrefix(words[1], "dynamo.global_planner"), nil
		case slices.Contains(programs, name):
			words = words[1:]
		case python.MatchString(name), name == "exec", name == "-u":
			words = words[1:]
		case slices.Contains(shells, name) && len(words) > 2 && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c"):
			if words, err = line(words[2], env); err != nil {
				return nil, false, err
			}
		case len(words) == 1 && strings.Contains(words[0], " ") && !strings.HasPrefix(words[0], "-"):
			// What is left of a shell's line once its command was replaced.
			if words, err = line(words[0], env); err != nil {
				return nil, false, err
			}
		default:
			return words, false, nil
		}
	}
	return nil, false, nil
}

var exits = regexp.MustCompile(`^\s*exit\s+(\d{1,3})\s*$`)

// Exit is the status of a shell's line that does nothing but end, as probes of
// published manifests are.
func Exit(words []string) (status int, ends bool) {
	if len(words) != 3 || !slices.Contains(shells, path.Base(words[0])) || words[1] != "-c" {
		return 0, false
	}
	match := exits.FindStringSubmatch(words[2])
	if match == nil {
		return 0, false
	}
	status, err := strconv.Atoi(match[1])
	return status, err == nil
}

// line is the command of a shell's line that starts a planner. Variables are those of
// the environment; nothing else is expanded, and nothing is run.
func line(source string, env map[string]string) ([]string, error) {
	file, err := commandline.Parse(source)
	if err != nil {
		return nil, Usage{err.Error()}
	}
	for _, call := range commandline.Calls(file) {
		words, err := expand.Fields(&expand.Config{Env: expand.FuncEnviron(func(name string) string { return env[name] })}, call.Args...)
		if err != nil {
			return nil, Usage{fmt.Sprintf("%q: %v", source, err)}
		}
		if slices.ContainsFunc(words, func(w string) bool { return w == "-m" || slices.Contains(programs, path.Base(w)) }) {
			return words, nil
		}
	}
	return nil, Usage{fmt.Sprintf("%q starts no planner", source)}
}
