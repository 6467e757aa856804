package resilience

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/openloop"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/process"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

var (
	cells    = flag.String("cells", "", "run cells of the matrix whose name matches this")
	cellRate = flag.Float64("rate", 16, "requests a second of each cell of the matrix")
)

// shape is how many replicas a graph has of each role; without prefill, decode does all.
type shape struct {
	name            string
	decode, prefill int
}

// event is something that happens to a rollout.
type event struct {
	name string
	run  func(*cell)
	// alone needs a node where nothing else is.
	alone bool
	// breaks what cells beside it stand on.
	breaks bool
}

// The values of isolation: none replaces pods in place, paired gives each generation
// frontends of its own.
const (
	shared  = "shared"
	inPlace = "none"
	paired  = "paired"
)

const (
	onDeployment = "deployment"
	onLWS        = "lws"
	onGrove      = "grove"
)

// The matrix.
var (
	shapes        = []shape{{"1D1P", 1, 1}, {"2D2P", 2, 2}, {"4D2P", 4, 2}, {"agg1", 1, 0}}
	orchestrators = []string{onDeployment, onLWS, onGrove}
	isolations    = []string{shared, inPlace, paired}
	events        = []event{
		{name: "image", run: (*cell).image},
		{name: "slow-decode", run: (*cell).slowDecode},
		{name: "crashing-decode", run: (*cell).crashingDecode},
		{name: "refused-card", run: (*cell).refusedCard},
		{name: "no-spare-u0", run: (*cell).noSpare, alone: true},
		{name: "no-spare-u1", run: (*cell).noSpareOneMissing, alone: true},
		{name: "revert", run: (*cell).reverts},
		{name: "a-b-c", run: (*cell).twoChanges},
		{name: "scale", run: (*cell).scales},
		{name: "kill-operator", run: (*cell).killsOperator},
		{name: "kill-apiserver", run: (*cell).killsServer, breaks: true},
		{name: "kill-node", run: (*cell).killsNode, breaks: true},
		{name: "long-answers", run: (*cell).longAnswers},
		{name: "restart", run: (*cell).restarts},
	}
)

func dimensions() []int { return []int{len(shapes), len(orchestrators), len(isolations), len(events)} }

// allowed says which cells there are. Frontends that Grove runs are in no generation. Where
// ready is all that counts and old and new workers have their frontends in common, a card
// that these refuse takes every replica.
func allowed(v []int) bool {
	isolation := isolations[v[2]]
	return (isolation != paired || orchestrators[v[1]] != onGrove) && (isolation != inPlace || events[v[3]].name != "refused-card")
}

// cell is one of the matrix: a graph, what happens to it, and what is seen meanwhile.
type cell struct {
	world
	shape        shape
	orchestrator string
	isolation    string
	event        event
	random       *rand.Rand
	// unavailable is how many replicas of a role may be missing where no GPU is spare.
	unavailable int
	tag         int
	tokens      int
	// reverted is how often a change was taken back.
	reverted int

	// faulty is since when a fault that was injected excuses what fails.
	mu     sync.Mutex
	faulty time.Time
	began  time.Time
}

// patience is for one cell, and parallel how many run at once.
const (
	patience = 8 * time.Minute
	parallel = 2
)

var (
	// node is the one that cells without a spare GPU have for themselves, one after another.
	node sync.Mutex
	// others are cells that must not be there while a node or the API server is lost.
	others sync.RWMutex
)

// row is what came of a cell.
type row struct {
	name                      string
	took                      time.Duration
	asked, failed, excused    int
	lowestReady, lowestRouted int
	floor                     int
	states, polls             int
	reverted                  int
	// faulty says that a fault was injected, inPlace that what is ready counts alone.
	faulty, inPlace bool
}

func TestRolloutMatrix(t *testing.T) {
	if !*asked {
		t.Skip("takes minutes and measures: make resilience runs it")
	}
	wanted := regexp.MustCompile(*cells)
	var mu sync.Mutex
	var rows []row
	var played [][]int
	began := time.Now()
	slots := make(chan struct{}, parallel)
	reserve(t, "node-5")
	t.Run("cells", func(t *testing.T) {
		for n, v := range pairwise(dimensions(), *seed, allowed) {
			c := &cell{shape: shapes[v[0]], orchestrator: orchestrators[v[1]], isolation: isolations[v[2]], event: events[v[3]], random: rand.New(rand.NewPCG(*seed, uint64(n)))}
			name := strings.Join([]string{c.shape.name, c.orchestrator, c.isolation, c.event.name}, "/")
			if !wanted.MatchString(name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				r := c.play(t, fmt.Sprintf("cell-%d", n))
				r.name = name
				mu.Lock()
				defer mu.Unlock()
				rows = append(rows, r)
				played = append(played, v)
			})
		}
	})
	var asked, failed, excused, reverted int
	for _, r := range rows {
		asked, failed, excused, reverted = asked+r.asked, failed+r.failed, excused+r.excused, reverted+r.reverted
		summary.Line(t, "%-42s %5.0f s  %5d requests, %d failed, %d excused; floor %d: ready at least %d in %d states, routed at least %d in %d looks",
			r.name, r.took.Seconds(), r.asked, r.failed, r.excused, r.floor, r.lowestReady, r.states, r.lowestRouted, r.polls)
	}
	covered, possible, all := coverage(dimensions(), played, allowed)
	summary.Line(t, "rollout matrix, seed %d: %d cells cover %d of %d pairs (%d more are in no cell that there is) in %.0f min; %d of %d open-loop requests failed, %d were excused by a fault that was injected; %s; %d reverts at random moments",
		*seed, len(rows), covered, possible, all-possible, time.Since(began).Minutes(), failed, asked, excused, lowest(rows), reverted)
	if *cells == "" && !t.Failed() && (covered < possible || asked < leastAsked || reverted < leastReverts || time.Since(began) > longestMatrix) {
		t.Errorf("of the whole matrix, at least %d requests and %d reverts are to be seen within %v", leastAsked, leastReverts, longestMatrix)
	}
}

// lowest tells of the cell that had the least beyond its floor. Where a fault was injected,
// or no replica of a role is promised, nothing is.
func lowest(rows []row) string {
	var least *row
	promised := 0
	for i, r := range rows {
		if r.faulty || r.floor == 0 {
			continue
		}
		promised++
		if least == nil || r.margin() < least.margin() {
			least = &rows[i]
		}
	}
	if least == nil {
		return "no cell promised any capacity"
	}
	return fmt.Sprintf("capacity against the floor at the lowest %+d (%d of at least %d, %s), in %d cells that promise any", least.margin(), least.floor+least.margin(), least.floor, least.name, promised)
}

// margin is what was beyond the floor at the lowest: of what is ready and, where that
// counts, of what a frontend knew.
func (r row) margin() int {
	if r.inPlace {
		return r.lowestReady - r.floor
	}
	return min(r.lowestReady, r.lowestRouted) - r.floor
}

// What the whole matrix has to show, and in which time.
const (
	leastAsked    = 20000
	leastReverts  = 10
	longestMatrix = 90 * time.Minute
)

// play runs one cell.
func (c *cell) play(t *testing.T, namespace string) row {
	if c.event.breaks {
		others.Lock()
		defer others.Unlock()
	} else {
		others.RLock()
		defer others.RUnlock()
	}
	if c.event.alone {
		node.Lock()
		defer node.Unlock()
	}
	c.world = newWorld(t, namespace, patience)
	c.tokens = 20
	if c.event.name == "no-spare-u1" {
		c.unavailable = 1
	}
	c.apply(c.manifest())
	c.answers()
	c.eventually("its first generation", func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := c.cluster.Client.Get(ctx, c.key(graphName), dgd); err != nil {
			return err
		}
		if dgd.Annotations[v1alpha1.AnnotationGeneration] == "" {
			return errors.New("no generation is recorded")
		}
		return nil
	})
	c.began = time.Now()
	ended := c.watch()
	stop, outcomes := c.users()
	c.event.run(c)
	took := time.Since(c.began)
	seen := ended()
	stop()
	return c.judge(seen, <-outcomes, took)
}

// users ask in an open loop until they are stopped.
func (c *cell) users() (context.CancelFunc, <-chan []openloop.Outcome) {
	ctx, stop := context.WithCancel(c.ctx)
	c.Cleanup(stop)
	done := make(chan []openloop.Outcome, 1)
	arrivals := openloop.Poisson(*cellRate, patience, c.random.Uint64()) // drawn here: the event draws, too
	go func() {
		done <- openloop.Run(ctx, arrivals, func(n int) error {
			tokens := c.tokens
			if c.event.name == "long-answers" && n%20 == 0 {
				tokens = 4000 // longer than any grace
			}
			ask, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), 2*longest)
			defer cancel()
			err := c.cluster.Chat(ask, c.url(), modelName, fmt.Sprintf("question %d", n), tokens, func(string) {})
			if err != nil && tokens > c.tokens {
				err = tooLong{err}
			}
			return err
		})
	}()
	return stop, done
}

// tooLong is what became of a request that outlived the grace of its worker.
type tooLong struct{ error }

func (c *cell) judge(s *seen, outcomes []openloop.Outcome, took time.Duration) row {
	floor := c.floor()
	r := row{reverted: c.reverted, faulty: !c.faulty.IsZero(), inPlace: !c.exchanges(), took: took, asked: len(outcomes), floor: floor, lowestReady: s.ready, lowestRouted: s.routed, states: s.states, polls: s.polls}
	for _, o := range openloop.Failed(outcomes) {
		if c.excused(o) {
			r.excused++
			continue
		}
		r.failed++
		if r.failed <= 10 {
			c.Errorf("planned at %.1f s, failed at %.1f s: %v", o.Planned.Seconds(), o.Ended.Seconds(), o.Err)
		}
	}
	if r.failed > 0 {
		c.Errorf("%d of %d requests failed", r.failed, r.asked)
	}
	if !r.faulty && (r.margin() < 0 || s.states == 0 || s.polls == 0) {
		c.Errorf("of at least %d replicas of each role, %d were ready at the lowest of %d states (%s), and %d known to a frontend at the lowest of %d looks (%s)",
			floor, s.ready, s.states, s.readyAt, s.routed, s.polls, s.routedAt)
	}
	return r
}

// fails notes that a fault is injected now that excuses what fails.
func (c *cell) fails() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faulty = time.Now()
}

// excused are failures for which a fault that was injected is the reason: all that ended
// in the minute after it, what outlived its grace, and everything where no replica of a
// role is promised.
func (c *cell) excused(o openloop.Outcome) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ended := c.began.Add(o.Ended)
	return errors.As(o.Err, &tooLong{}) || c.floor() == 0 || !c.faulty.IsZero() && ended.After(c.faulty) && ended.Before(c.faulty.Add(time.Minute))
}

// exchanges reports whether generations are exchanged; otherwise pods are replaced in place.
func (c *cell) exchanges() bool { return c.isolation != inPlace }

// lists reports whether what frontends list counts, rather than what is ready.
func (c *cell) lists() bool { return c.isolation == shared }

// entry is the component by whose number traffic divides among generations.
func (c *cell) entry() string {
	if c.isolation == paired {
		return frontend
	}
	return "decode"
}

// parts is how many components a generation has.
func (c *cell) parts() int {
	if c.isolation == paired {
		return len(c.roles()) + 1
	}
	return len(c.roles())
}

// floor is how many replicas of each role have to serve, counted in the scarcest. In place,
// LeaderWorkerSets and Grove take one away before they make another.
func (c *cell) floor() int {
	least := func(n int) int {
		missing := c.missing(n)
		if !c.exchanges() && c.orchestrator != onDeployment {
			missing = max(1, missing)
		}
		return n - missing
	}
	floor := least(c.shape.decode)
	if c.shape.prefill > 0 {
		floor = min(floor, least(c.shape.prefill))
	}
	if c.isolation == paired {
		floor = min(floor, frontends)
	}
	return floor
}

const (
	frontend  = "Frontend"
	frontends = 2
)

const image = "vllm-runtime:1.%d.0"

// manifest is the graph as it is at first. Nothing hides a failure: no request migrates,
// and no decode worker prefills for another.
func (c *cell) manifest() string {
	var b strings.Builder
	fmt.Fprintf(&b, `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: %s
  annotations: {%s: %s, %s: "off", %s: "%t"}
spec:
  backendFramework: sglang
  services:
    %s:
      componentType: frontend
      replicas: %d
      extraPodSpec: {mainContainer: {image: "%s", command: [python3, -m, dynamo.frontend], args: [%s]}}
`, graphName, v1alpha1.AnnotationRolloutIsolation, c.isolation, v1alpha1.AnnotationRolloutAnalysis, v1alpha1.AnnotationEnableGrove, c.orchestrator == onGrove, frontend, frontends, fmt.Sprintf(image, 4), c.frontendArgs())
	for _, role := range c.roles() {
		fmt.Fprintf(&b, `    %s:
      componentType: %s
      replicas: %d
      annotations: {%s: "%d"}
      envs: [{name: MOCKER_SLOWDOWN, value: "2"}, {name: MOCKER_STARTUP_DELAY, value: 3s}]
      resources: {limits: {gpu: "%d"}}
%s      extraPodSpec: {%smainContainer: {image: "%s", command: [python3, -m, dynamo.sglang], args: ["%s"]}}
`, role.name, role.kind, role.replicas, v1alpha1.AnnotationMaxUnavailable, c.missing(role.replicas), c.gpus(role.replicas), c.multinode(), c.placed(), fmt.Sprintf(image, 4), strings.Join(c.args(role.kind), `", "`))
	}
	return b.String()
}

type role struct {
	name, kind string
	replicas   int
}

func (c *cell) roles() []role {
	if c.shape.prefill == 0 {
		return []role{{"decode", "worker", c.shape.decode}}
	}
	return []role{{"decode", "decode", c.shape.decode}, {"prefill", "prefill", c.shape.prefill}}
}

// missing is how many of so many replicas may be: a quarter, as by default, unless the
// event is about that number.
func (c *cell) missing(replicas int) int {
	if c.event.alone {
		return c.unavailable
	}
	return replicas / 4
}

func (c *cell) frontendArgs() string {
	if c.shape.prefill > 0 {
		return "--enforce-disagg"
	}
	return ""
}

// nodes is how many pods a replica has.
func (c *cell) nodes() int {
	if c.orchestrator == onLWS {
		return 2
	}
	return 1
}

func (c *cell) multinode() string {
	if c.nodes() > 1 {
		return fmt.Sprintf("      multinode: {nodeCount: %d}\n", c.nodes())
	}
	return ""
}

// gpus has a graph fill its node where none is to be left: half of it by each role.
func (c *cell) gpus(replicas int) int {
	if !c.event.alone {
		return 1
	}
	return gpusPerNode / len(c.roles()) / (replicas * c.nodes())
}

func (c *cell) placed() string {
	if c.event.alone {
		return "nodeSelector: {kubernetes.io/hostname: node-5}, tolerations: [{key: resilience, operator: Exists}], "
	}
	return ""
}

func (c *cell) args(kind string) []string {
	args := []string{"--model-path", modelName}
	if c.nodes() > 1 {
		gpus := 0
		for _, r := range c.roles() {
			if r.kind == kind {
				gpus = c.gpus(r.replicas) * c.nodes()
			}
		}
		args = append(args, "--tp", fmt.Sprint(gpus))
	}
	if kind == "decode" || kind == "prefill" {
		args = append(args, "--disaggregation-mode", kind)
	}
	return args
}

// change gives all workers another image, and decode variables of its own.
func (c *cell) change(tag int, decode ...string) {
	c.Helper()
	c.tag = tag
	var services []string
	for _, r := range c.roles() {
		more := ""
		if r.name == "decode" && len(decode) > 0 {
			more = fmt.Sprintf(`,"envs":[{"name":"MOCKER_SLOWDOWN","value":"2"},%s]`, strings.Join(decode, ","))
		} else if r.name == "decode" {
			more = `,"envs":[{"name":"MOCKER_SLOWDOWN","value":"2"},{"name":"MOCKER_STARTUP_DELAY","value":"3s"}]`
		}
		services = append(services, fmt.Sprintf(`%q:{"extraPodSpec":{"mainContainer":{"image":%q}}%s}`, r.name, fmt.Sprintf(image, tag), more))
	}
	c.patch("{" + strings.Join(services, ",") + "}")
}

func variable(name, value string) string { return fmt.Sprintf(`{"name":%q,"value":%q}`, name, value) }

// rollout waits until that of the last change is so.
func (c *cell) rollout(what string, is func(*v1alpha1.DynamoGraphDeployment, *v1alpha1.RolloutStatus) bool) {
	c.Helper()
	c.eventually("the rollout to be "+what, patient(func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := c.cluster.Client.Get(ctx, c.key(graphName), dgd); err != nil {
			return err
		}
		if st := dgd.Status.Rollout; st == nil || dgd.Status.ObservedGeneration != dgd.Generation || !is(dgd, st) {
			return fmt.Errorf("rollout %+v", st)
		}
		return nil
	}))
}

// completed waits until all workers run the image of the last change, and no others.
func (c *cell) completed() {
	c.Helper()
	if c.exchanges() {
		c.rollout("completed", func(_ *v1alpha1.DynamoGraphDeployment, st *v1alpha1.RolloutStatus) bool {
			return st.Phase == string(generation.PhaseCompleted)
		})
	} else {
		c.eventually("the graph to be ready again", patient(c.isReady))
	}
	c.eventually("only its pods to be left", patient(func(ctx context.Context) error {
		var list corev1.PodList
		if err := c.cluster.Client.List(ctx, &list, client.InNamespace(c.namespace)); err != nil {
			return err
		}
		generations := map[string]bool{}
		for _, p := range list.Items {
			if isWorker(p) && p.Spec.Containers[0].Image != fmt.Sprintf(image, c.tag) {
				return fmt.Errorf("%s runs %s", p.Name, p.Spec.Containers[0].Image)
			}
			if id, in := p.Labels[v1alpha1.LabelGeneration]; in {
				generations[id] = true // the image of frontends stays
			}
		}
		if len(generations) != 1 {
			return fmt.Errorf("pods of %d generations", len(generations))
		}
		return nil
	}))
}

// moment waits for a random time within which a rollout of this size is under way.
func (c *cell) moment(most time.Duration) {
	select {
	case <-time.After(time.Duration(c.random.Int64N(int64(most)))):
	case <-c.ctx.Done():
	}
}

// stays waits for so long, during which what is promised has to hold.
func (c *cell) stays(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.ctx.Done():
	}
}

func (c *cell) image() {
	c.change(5)
	c.completed()
}

func (c *cell) slowDecode() {
	c.change(5, variable("MOCKER_STARTUP_DELAY", "12s"))
	c.completed()
}

// crashingDecode never comes up; what serves is untouched, and the way back is open.
func (c *cell) crashingDecode() {
	stable := c.old(c.members())
	c.change(5, variable("MOCKER_STARTUP_DELAY", "1h"), variable("MOCKER_CRASH_AFTER", "2s"))
	c.eventually("a new decode worker to fail", patient(func(context.Context) error {
		for _, p := range c.workers() {
			if p.Labels[v1alpha1.LabelComponent] == "decode" && p.Spec.Containers[0].Image == fmt.Sprintf(image, 5) &&
				slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 }) {
				return nil
			}
		}
		return errors.New("none")
	}))
	c.stays(10 * time.Second)
	if c.exchanges() { // in place, prefill goes on by itself
		c.untouched(stable)
	}
	c.change(4)
	c.completed()
	if c.exchanges() {
		c.untouched(stable)
	}
}

// refusedCard is ready, and known to no frontend: as one whose card they refuse. Frontends
// of its generation alone know no other, and refuse none.
func (c *cell) refusedCard() {
	if !c.lists() {
		c.otherCard()
		return
	}
	stable := c.old(c.members())
	c.change(5, variable("MOCKER_REGISTRATION_DELAY", "1h"))
	c.eventually("a decode worker that is ready", patient(func(context.Context) error {
		for _, p := range c.workers() {
			if p.Labels[v1alpha1.LabelComponent] == "decode" && p.Spec.Containers[0].Image == fmt.Sprintf(image, 5) && isReady(p) {
				return nil
			}
		}
		return errors.New("none")
	}))
	c.stays(15 * time.Second)
	c.untouched(stable)
	c.change(4)
	c.completed()
	c.untouched(stable)
}

// otherCard is one that frontends refuse which know that of the workers before.
func (c *cell) otherCard() {
	c.tag = 5
	services := map[string]any{}
	for _, r := range c.roles() {
		services[r.name] = map[string]any{"extraPodSpec": map[string]any{"mainContainer": map[string]any{
			"image": fmt.Sprintf(image, c.tag), "args": append(c.args(r.kind), "--context-length", "4096"),
		}}}
	}
	text, err := json.Marshal(services)
	if err != nil {
		c.Fatal(err)
	}
	c.patch(string(text))
	c.completed()
}

func (c *cell) noSpare() {
	if !c.exchanges() && c.orchestrator != onDeployment {
		c.noSpareOneMissing() // they make room by themselves
		return
	}
	stable := c.old(c.members())
	c.change(5)
	if !c.exchanges() {
		c.eventually("a worker without a node", patient(func(context.Context) error {
			for _, p := range c.workers() {
				if p.Spec.NodeName == "" {
					return nil
				}
			}
			return errors.New("all have one")
		}))
		c.stays(10 * time.Second)
		c.untouched(stable)
		c.change(4)
		c.completed()
		return
	}
	c.rollout("blocked", func(_ *v1alpha1.DynamoGraphDeployment, st *v1alpha1.RolloutStatus) bool {
		return st.Phase == string(generation.PhaseBlocked) && st.Reason == string(generation.ReasonNoSpareGPU)
	})
	c.untouched(stable)
	c.change(4)
	c.completed()
	c.untouched(stable)
}

func (c *cell) noSpareOneMissing() {
	c.change(5)
	c.completed()
}

// reverts changes the image and takes it back at random moments of its rollout; pods that
// had not been told to go by then stay. What is taken back before it is seen is no rollout.
func (c *cell) reverts() {
	const times = 3
	for n := range times {
		c.change(5 + n)
		if c.exchanges() {
			c.rollout("under way", func(_ *v1alpha1.DynamoGraphDeployment, st *v1alpha1.RolloutStatus) bool {
				return !generation.Phase(st.Phase).Ended()
			})
		}
		c.moment(15 * time.Second)
		c.change(4)
		c.completed()
		c.reverted++
	}
}

// restarts replaces every pod of the graph by one that is told the same.
func (c *cell) restarts() {
	before := map[types.UID]bool{}
	for _, p := range c.pods(c.ctx) {
		before[p.UID] = true
	}
	dgd := &v1alpha1.DynamoGraphDeployment{}
	dgd.Namespace, dgd.Name = c.namespace, graphName
	if err := c.cluster.Client.Patch(c.ctx, dgd, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"restart":{"id":"1"}}}`))); err != nil {
		c.Fatal(err)
	}
	c.eventually("the restart to be completed", patient(func(ctx context.Context) error {
		if err := c.cluster.Client.Get(ctx, c.key(graphName), dgd); err != nil {
			return err
		}
		if r := dgd.Status.Restart; r == nil || r.Phase != v1alpha1.RestartPhaseCompleted {
			return fmt.Errorf("restart %+v", r)
		}
		return nil
	}))
	c.eventually("only new pods to be left", patient(func(ctx context.Context) error {
		for _, p := range c.pods(ctx) {
			if before[p.UID] {
				return errors.New(p.Name + " is an old one")
			}
		}
		return nil
	}))
}

func (c *cell) twoChanges() {
	c.change(5)
	c.moment(15 * time.Second)
	c.change(6)
	c.completed()
}

func (c *cell) scales() {
	c.change(5)
	c.moment(15 * time.Second)
	c.patch(fmt.Sprintf(`{"decode":{"replicas":%d}}`, c.shape.decode+1))
	c.completed()
	c.eventually("one decode worker more", patient(func(context.Context) error {
		n := 0
		for _, p := range c.workers() {
			if p.Labels[v1alpha1.LabelComponent] == "decode" && isReady(p) {
				n++
			}
		}
		if n != (c.shape.decode+1)*c.nodes() {
			return fmt.Errorf("%d pods", n)
		}
		return nil
	}))
}

func (c *cell) killsOperator() {
	c.change(5)
	c.moment(15 * time.Second)
	var list corev1.PodList
	if err := c.cluster.Client.List(c.ctx, &list, client.InNamespace(localenv.OperatorKey.Namespace), client.MatchingLabels{"control-plane": "controller-manager"}); err != nil {
		c.Fatal(err)
	}
	killed := 0
	for _, p := range list.Items {
		if pid, err := process.InPod(p.UID); err == nil && process.Kill(pid) == nil { // it may have ended since
			killed++
		}
	}
	if killed == 0 {
		c.Fatalf("no operator runs in %d pods", len(list.Items))
	}
	c.completed()
}

// killsServer has workers register late. Frontends of all generations are asked which they
// know; elsewhere what is ready counts, and a worker that cannot register is ready.
func (c *cell) killsServer() {
	c.change(5)
	c.moment(15 * time.Second)
	if !c.lists() {
		c.fails()
	}
	pids, err := process.Of(filepath.Dir(c.cluster.Kubeconfig), "kube-apiserver")
	if err == nil {
		err = process.Kill(pids[0])
	}
	if err != nil {
		c.Fatal(err)
	}
	c.completed()
}

// killsNode takes a node with a worker of the graph off the network until its pods are
// given up.
func (c *cell) killsNode() {
	c.change(5)
	c.moment(15 * time.Second)
	workers := c.workers()
	if len(workers) == 0 {
		c.Fatal("no workers")
	}
	name := workers[c.random.IntN(len(workers))].Spec.NodeName
	if name == "" {
		c.Logf("the pod that was chosen is on no node; none is lost")
		c.completed()
		return
	}
	c.fails()
	away := &chaos{world: c.world}
	if err := away.mark(name, `"true"`); err != nil {
		c.Fatal(err)
	}
	c.stays(20 * time.Second)
	c.eventually("the node to come back", patient(func(context.Context) error { return away.mark(name, "null") }))
	c.completed()
}

func (c *cell) longAnswers() {
	c.change(5)
	c.completed()
}

// isWorker reports whether a pod is one of a generation that is no frontend.
func isWorker(p corev1.Pod) bool {
	_, in := p.Labels[v1alpha1.LabelGeneration]
	return in && p.Labels[v1alpha1.LabelComponent] != frontend
}

// workers are the pods of generations, but for frontends.
func (c *cell) workers() []corev1.Pod {
	var all []corev1.Pod
	for _, p := range c.pods(c.ctx) {
		if isWorker(p) && p.DeletionTimestamp == nil {
			all = append(all, p)
		}
	}
	return all
}

// members are the pods of generations, frontends among them where those are in such.
func (c *cell) members() []corev1.Pod {
	return slices.DeleteFunc(c.pods(c.ctx), func(p corev1.Pod) bool {
		_, in := p.Labels[v1alpha1.LabelGeneration]
		return !in || p.DeletionTimestamp != nil
	})
}

func (c *cell) untouched(stable func([]corev1.Pod) error) {
	c.Helper()
	if err := stable(c.members()); err != nil {
		c.Error(err)
	}
}

// seen is what was seen of a cell from outside: of its pods, and of one of its frontends
// at a time.
type seen struct {
	mu                sync.Mutex
	ready, routed     int
	states, polls     int
	readyAt, routedAt string
}

// note keeps the lowest, from the first on that is in full.
func (s *seen) note(low *int, at *string, count *int, full int, now map[string]map[string]int, c *cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := serving(now, c.parts(), c.entry())
	if *count == 0 && n < full {
		return
	}
	if *count == 0 || n < *low {
		*low, *at = n, fmt.Sprint(now)
	}
	*count++
}

// serving is how many replicas serve in generations that have all roles, of the scarcest:
// by number, and where support is concerned by what the worst-served generation would be
// if all requests met it.
func serving(by map[string]map[string]int, parts int, entry string) int {
	entries, complete := 0, []map[string]int{}
	for _, g := range by {
		if len(g) == parts {
			complete = append(complete, g)
			entries += g[entry]
		}
	}
	least := entries
	for _, g := range complete {
		for role, n := range g {
			if role != entry {
				least = min(least, n*entries/g[entry])
			}
		}
	}
	return least
}

// watch looks at every state of the pods, and asks frontends four times a second, until
// the returned function is called.
func (c *cell) watch() func() *seen {
	c.Helper()
	s, full := &seen{}, c.floor()
	ctx, stop := context.WithCancel(c.ctx)
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			c.followPods(ctx, func(now map[string]map[string]int) { s.note(&s.ready, &s.readyAt, &s.states, full, now, c) })
		}
	})
	all.Go(func() {
		for tick := time.NewTicker(250 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			if now, err := c.known(ctx); err == nil {
				s.note(&s.routed, &s.routedAt, &s.polls, full, now, c)
			}
		}
	})
	return func() *seen { stop(); all.Wait(); return s }
}

// followPods watches until the watch ends, as it does when the server is killed.
func (c *cell) followPods(ctx context.Context, each func(map[string]map[string]int)) {
	var list corev1.PodList
	if err := patient(func(ctx context.Context) error {
		return c.cluster.Client.List(ctx, &list, client.InNamespace(c.namespace))
	})(ctx); err != nil {
		c.stays(time.Second)
		return
	}
	changes, err := c.cluster.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(c.namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		c.stays(time.Second)
		return
	}
	defer changes.Stop()
	now := map[types.UID]corev1.Pod{}
	for _, p := range list.Items {
		now[p.UID] = p
	}
	for {
		each(c.count(now))
		select {
		case <-ctx.Done():
			return
		case e, more := <-changes.ResultChan():
			pod, is := e.Object.(*corev1.Pod)
			if !more || !is {
				return
			}
			now[pod.UID] = *pod
			if e.Type == watch.Deleted {
				delete(now, pod.UID)
			}
		}
	}
}

// count is how many replicas of each role are ready, by generation. Only workers are on
// several nodes; one that is counts as the least ready of its pods.
func (c *cell) count(pods map[types.UID]corev1.Pod) map[string]map[string]int {
	ready := map[string]map[string]int{}
	for _, p := range pods {
		if id, worker := p.Labels[v1alpha1.LabelGeneration]; worker && isReady(p) {
			if ready[id] == nil {
				ready[id] = map[string]int{}
			}
			ready[id][p.Labels[v1alpha1.LabelComponent]]++
		}
	}
	for _, g := range ready {
		for r := range g {
			if r != frontend {
				g[r] /= c.nodes()
			}
			if g[r] == 0 {
				delete(g, r)
			}
		}
	}
	return ready
}

// known is how many workers a frontend sends requests to, by Dynamo namespace. Of those that
// see one generation each, all are asked, and counted themselves.
func (c *cell) known(ctx context.Context) (map[string]map[string]int, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if c.isolation != paired {
		return c.listed(ctx, c.url())
	}
	var list corev1.PodList
	if err := c.cluster.Client.List(ctx, &list, client.InNamespace(c.namespace), client.MatchingLabels{v1alpha1.LabelComponent: frontend}); err != nil {
		return nil, err
	}
	var all []listing
	for _, p := range list.Items {
		if !isReady(p) {
			continue
		}
		by, err := c.listed(ctx, fmt.Sprintf("http://%s:8000", p.Status.PodIP))
		if err != nil {
			return nil, err
		}
		all = append(all, listing{p.Labels[v1alpha1.LabelGeneration], by})
	}
	return byGeneration(all), nil
}

// listing is what a frontend of one generation sends requests to, by Dynamo namespace. One
// that sees a single namespace does not name it.
type listing struct {
	generation string
	by         map[string]map[string]int
}

// byGeneration is how many workers all frontends of a generation have, and how many those
// are.
func byGeneration(all []listing) map[string]map[string]int {
	known, count := map[string]map[string]int{}, map[string]int{}
	for _, one := range all {
		workers := map[string]int{}
		for _, of := range one.by {
			for kind, n := range of {
				workers[kind] += n
			}
		}
		if known[one.generation] == nil {
			known[one.generation] = workers
		}
		for kind, n := range known[one.generation] {
			known[one.generation][kind] = min(n, workers[kind])
		}
		count[one.generation]++
	}
	for id, n := range count {
		maps.DeleteFunc(known[id], func(_ string, workers int) bool { return workers == 0 })
		known[id][frontend] = n
	}
	return known
}

// listed is how many workers the frontend at an address sends requests to, by Dynamo
// namespace.
func (c *cell) listed(ctx context.Context, url string) (map[string]map[string]int, error) {
	var answer struct {
		Namespaces []struct {
			Namespace string         `json:"namespace"`
			Workers   map[string]int `json:"workers"`
		} `json:"namespaces"`
	}
	if err := c.get(ctx, url+"/v1/models/"+modelName+"/ready", &answer); err != nil {
		return nil, err
	}
	by := map[string]map[string]int{}
	for _, n := range answer.Namespaces {
		by[n.Namespace] = map[string]int{}
		for kind, workers := range n.Workers {
			if workers > 0 {
				by[n.Namespace][cmp.Or(map[string]string{"aggregated": "decode"}[kind], kind)] += workers
			}
		}
	}
	return by, nil
}
