// Package bundle is the profiler without the world: from a configuration to the
// problem that is searched, and from what was found to everything that is handed
// over. It opens no file and reaches no cluster.
package bundle

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/core/price"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/blueprint"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/interpolation"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/report"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/search"
)

// Names are those of the objects a run leaves.
type Names struct{ Graph, ProfileData string }

// Problem is what a configuration asks to be searched, and how graphs are made
// of what is found. base is the user's graph, or empty.
func Problem(c *config.Config, catalog perfmodel.Catalog, base []byte, names Names) (search.Problem, blueprint.Options, error) {
	none := func(err error) (search.Problem, blueprint.Options, error) {
		return search.Problem{}, blueprint.Options{}, err
	}
	h := c.Hardware.Defaulted()
	o := blueprint.Options{
		Name: names.Graph, Backend: c.Engine.Backend, Model: c.Deployment.Model, Cache: c.Deployment.Cache, Image: c.Deployment.Image,
		MaxContext: c.Engine.MaxContextLength, PerNode: h.GPUsPerNode, Goal: c.SLA, Budget: h.Budget, ProfileData: names.ProfileData, Planner: c.Planner,
		Request: c.Request,
	}
	if len(base) > 0 {
		graph, err := blueprint.Parse(base)
		if err != nil {
			return none(config.Invalid{err.Error()})
		}
		o.Base = graph
	}
	modes, err := o.Modes(c.Sweep.Modes)
	if err != nil {
		return none(config.Invalid{err.Error()})
	}
	name := cmp.Or(c.Sweep.ModelID, c.Deployment.Model)
	if name == "" {
		return none(config.Invalid{"deployment.model: needed"})
	}
	model, err := catalog.Model(name)
	if err != nil {
		return none(err)
	}
	if h.GPU == "" {
		return none(&perfmodel.UnknownError{Kind: "gpu", Name: "", Known: gpus(catalog)})
	}
	gpu, err := catalog.GPU(h.GPU)
	if err != nil {
		return none(err)
	}
	hour := h.PricePerGPUHour
	if hour == 0 {
		hour, _ = price.Hour(gpu.Name)
	}
	return search.Problem{
		Catalog: catalog, Model: model, GPU: gpu, Engine: perfmodel.Engine(c.Engine.Backend), Goal: c.SLA, MaxContext: c.Engine.MaxContextLength,
		MinGPUs: h.MinGPUsPerEngine, MaxGPUs: h.MaxGPUsPerEngine, PerNode: h.GPUsPerNode, Budget: h.Budget, Most: h.Most, Modes: modes, PricePerHour: hour,
	}, o, nil
}

// Search finds what a configuration asks for: with the engine that it names, or
// with the best of all; and where nothing fits a node, over several.
func Search(c *config.Config, catalog perfmodel.Catalog, base []byte, names Names) (*search.Outcome, blueprint.Options, error) {
	engines := []config.Backend{c.Engine.Backend}
	if c.Engine.Backend == config.Auto {
		engines = []config.Backend{config.VLLM, config.SGLang, config.TRTLLM}
	}
	var best *search.Outcome
	var made blueprint.Options
	var failed error
	for _, engine := range engines {
		one := *c
		one.Engine.Backend = engine
		found, options, err := searchOne(&one, catalog, base, names)
		switch {
		case err != nil:
			failed = cmp.Or(failed, err)
		case best == nil || better(found, best):
			best, made = found, options
		}
	}
	if best == nil {
		return nil, blueprint.Options{}, failed
	}
	return best, made, nil
}

func searchOne(c *config.Config, catalog perfmodel.Catalog, base []byte, names Names) (*search.Outcome, blueprint.Options, error) {
	problem, options, err := Problem(c, catalog, base, names)
	if err != nil {
		return nil, options, err
	}
	found, err := search.Solve(problem)
	if _, none := errors.AsType[*search.InfeasibleError](err); none && c.Request != nil && problem.Most > problem.MaxGPUs {
		problem.MaxGPUs = problem.Most
		found, err = search.Solve(problem)
	}
	return found, options, err
}

// better reports whether one engine is to be preferred to another that was tried
// before it. Small differences do not decide.
func better(found, best *search.Outcome) bool {
	a, b := found.Best(), best.Best()
	const clearly = 1.02
	switch {
	case a.Met() != b.Met():
		return a.Met()
	case found.Problem.Goal.RequestRate > 0 && a.GPUs != b.GPUs:
		return a.GPUs < b.GPUs
	default:
		return a.TokensPerGPU > clearly*b.TokensPerGPU
	}
}

func gpus(c perfmodel.Catalog) []string {
	var all []string
	for _, g := range c.GPUs {
		all = append(all, g.Name)
	}
	return all
}

// Bundle is everything that a run hands over.
type Bundle struct {
	Result     profileoutput.Result
	HTML, Text string
	Figures    []report.Figure
	Data       interpolation.Data
	// Final is the graph that was asked for: of engines, or of mock engines.
	Final string

	ofRequest bool // of v1beta1
}

// Compose makes graphs, profile and report of what was found.
func Compose(c *config.Config, o blueprint.Options, found *search.Outcome) (*Bundle, error) {
	best, p := found.Best(), found.Problem
	b := &Bundle{}
	var err error
	if b.Data, err = profile(c, p, best); err != nil {
		return nil, err
	}
	graph, err := blueprint.Graph(best, o)
	if err != nil {
		return nil, config.Invalid{err.Error()}
	}
	r := profileoutput.Result{
		State: profileoutput.Succeeded, Reason: profileoutput.ReasonTargetsMet, SLAMet: best.Met(), TTFTMs: best.TTFT.Value, ITLMs: best.ITL.Value,
		Targets: targets(p, best), Remedy: strings.Join(found.Remedies, "; "), Chosen: best.String(), GPUs: best.GPUs, ProfileData: o.ProfileData,
		TokensPerGPU: best.TokensPerGPU, CostPerMillion: best.CostPerMillion, RequestRate: best.Rate, Measured: best.Measured,
		ModelFingerprint: fingerprint(p),
	}
	if r.GeneratedDeployment, err = o.YAML(graph); err != nil {
		return nil, err
	}
	if r.MockerDeployment, err = o.YAML(blueprint.Mocker(best, o)); err != nil {
		return nil, err
	}
	b.Final = r.GeneratedDeployment
	if c.Request != nil && c.Request.Mocker {
		b.Final = r.MockerDeployment
	}
	b.ofRequest = c.Request != nil
	r.Message = fmt.Sprintf("%s meets the goal: ttft %.4g ms, itl %.4g ms, %.0f tokens a second and GPU", best, best.TTFT.Value, best.ITL.Value, best.TokensPerGPU)
	if !best.Met() {
		r.Reason = profileoutput.ReasonTargetsMissed
		r.Message = fmt.Sprintf("no configuration meets the goal; the closest, %s: %s", best, best.Missed())
		if len(found.Remedies) > 0 {
			r.Message += "; what would: " + found.Remedies[0]
		}
		if c.SLA.Strict {
			r.State = profileoutput.Failed
		}
	}
	b.Result = r
	err = b.report(c, found)
	return b, err
}

// fingerprint tells which constants an answer rests on.
func fingerprint(p search.Problem) string {
	for _, k := range p.Catalog.Constants {
		if k.Engine == p.Engine {
			text, err := json.Marshal(k)
			if err != nil {
				panic(err) // plain numbers
			}
			sum := sha256.Sum256(text)
			return hex.EncodeToString(sum[:6])
		}
	}
	return ""
}

func (b *Bundle) report(c *config.Config, found *search.Outcome) error {
	p := found.Problem
	r := report.Report{
		Title: "SLA profile of " + p.Model.Name, Model: p.Model.Name, GPU: p.GPU.Name, Engine: string(p.Engine), Goal: c.SLA, Outcome: found, Warnings: c.Warnings,
		Source: "estimates of the performance model (constants " + fingerprint(p) + "), with the band that nine of ten measurements fell in",
		Price:  fmt.Sprintf("at $%.2f for a GPU and hour, by the built-in table", p.PricePerHour),
	}
	if found.Best().Measured {
		r.Source = "measured on deployed engines where marked, otherwise estimates of the performance model with their band"
	}
	if c.Hardware.PricePerGPUHour > 0 {
		r.Price = fmt.Sprintf("at the given $%.2f for a GPU and hour", p.PricePerHour)
	}
	if c.Deployment.Image == "" && (c.Request == nil || blueprint.EngineImage(c.Request.Image, config.VLLM) == "") {
		r.Warnings = append(r.Warnings, "no image was given (deployment.dgdImage): graphs made from a template name a placeholder")
	}
	b.Text, b.Figures = r.Text(), r.Figures()
	var err error
	b.HTML, err = r.HTML()
	return err
}

func targets(p search.Problem, c search.Candidate) []profileoutput.Target {
	all := []profileoutput.Target{
		{Name: "ttft", Unit: " ms", Want: p.Goal.TTFT, Got: c.TTFT.Value, Low: c.TTFT.Low, High: c.TTFT.High, Met: c.TTFT.Value <= p.Goal.TTFT},
		{Name: "itl", Unit: " ms", Want: p.Goal.ITL, Got: c.ITL.Value, Low: c.ITL.Low, High: c.ITL.High, Met: c.ITL.Value <= p.Goal.ITL},
	}
	if want := p.Goal.RequestRate; want > 0 {
		all = append(all, profileoutput.Target{Name: "requestRate", Unit: "/s", Want: want, Got: c.Rate, Low: c.Rate, High: c.Rate, Met: c.Rate >= want})
	}
	return all
}

// profile tabulates the chosen engines for planner and mock engine.
func profile(c *config.Config, p search.Problem, best search.Candidate) (interpolation.Data, error) {
	of := func(w search.Worker) (*perfmodel.Estimator, error) {
		return p.Catalog.Estimator(perfmodel.Setup{Model: p.Model, GPU: p.GPU, Engine: p.Engine, Parallel: w.Layout.Parallel, Pool: best.Prefill != nil})
	}
	first := best.Decode
	if best.Prefill != nil {
		first = *best.Prefill
	}
	prefill, err := of(first)
	if err != nil {
		return interpolation.Data{}, err
	}
	decode, err := of(best.Decode)
	if err != nil {
		return interpolation.Data{}, err
	}
	context := p.Model.Context
	if p.MaxContext > 0 {
		context = min(context, p.MaxContext)
	}
	ranks := best.Decode.Layout.Ranks()
	return interpolation.Tabulate(interpolation.Timer{
		Prefill: func(n int) float64 { return cmp.Or(best.FirstFactor, 1) * milliseconds(prefill.FirstToken(n, 0).Value) },
		Decode: func(sequences, context int) float64 {
			return cmp.Or(best.StepFactor, 1) * milliseconds(decode.Decode(max(1, sequences/ranks), float64(context)).Value)
		},
		PrefillGPUs: first.Layout.GPUs(), PrefillRanks: first.Layout.Ranks(),
		DecodeGPUs: best.Decode.Layout.GPUs(), DecodeRanks: ranks,
		MaxTokens: decode.Memory().Tokens, Context: context,
	}, c.Sweep.PrefillPoints, c.Sweep.DecodePoints)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ConfigMap holds the profile in the form that graphs mount.
func (b *Bundle) ConfigMap(name string) (*corev1.ConfigMap, error) {
	prefill, decode, err := b.Data.JSON()
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Data: map[string]string{profileoutput.KeyPrefillData: prefill, profileoutput.KeyDecodeData: decode},
	}, nil
}

// Files are the bundle as a folder, by path.
func (b *Bundle) Files() (map[string][]byte, error) {
	profile, err := b.ConfigMap(b.Result.ProfileData)
	if err != nil {
		return nil, err
	}
	document, err := yaml.Marshal(profile)
	if err != nil {
		return nil, fmt.Errorf("write profile data: %w", err)
	}
	prefill, decode, err := b.Data.NPZ()
	if err != nil {
		return nil, err
	}
	with := func(graph string) []byte { return fmt.Appendf(nil, "%s---\n%s", document, graph) }
	files := map[string][]byte{
		profileoutput.KeyGraph: with(b.Result.GeneratedDeployment), profileoutput.KeyMockerGraph: with(b.Result.MockerDeployment),
		profileoutput.KeyReportHTML: []byte(b.HTML), profileoutput.KeyReportText: []byte(b.Text), profileoutput.KeyResult: []byte(b.Result.Text()),
		profileoutput.KeyPrefillData: []byte(profile.Data[profileoutput.KeyPrefillData]), profileoutput.KeyDecodeData: []byte(profile.Data[profileoutput.KeyDecodeData]),
		"selected_prefill_interpolation/raw_data.npz": prefill, "selected_decode_interpolation/raw_data.npz": decode,
	}
	if b.ofRequest {
		delete(files, profileoutput.KeyGraph)
		delete(files, profileoutput.KeyMockerGraph)
		files[profileoutput.KeyFinalGraph] = with(b.Final)
	}
	for _, f := range b.Figures {
		files["figures/"+f.Name+".svg"] = []byte(f.SVG)
	}
	return files, nil
}

// Failure is the result of a run that ended with an error.
func Failure(err error) profileoutput.Result {
	r := profileoutput.Result{State: profileoutput.Failed, Reason: profileoutput.ReasonInternal, Message: err.Error()}
	var unknown *perfmodel.UnknownError
	switch {
	case config.IsInvalid(err):
		r.Reason = profileoutput.ReasonInvalidConfig
	case errors.As(err, &unknown) && unknown.Kind == "gpu" && unknown.Name == "":
		r.Reason = profileoutput.ReasonUnknownGPU
		r.Message = "the GPU is not known: set sweep.aicSystem or hardware.gpuType to one of " + strings.Join(unknown.Known, ", ") + ", or enable GPU discovery"
	case errors.As(err, &unknown) && unknown.Kind == "gpu":
		r.Reason = profileoutput.ReasonUnknownGPU
	case errors.As(err, &unknown) && unknown.Kind == "model":
		r.Reason = profileoutput.ReasonUnknownModel
	default:
		if _, ok := errors.AsType[*search.InfeasibleError](err); ok {
			r.Reason = profileoutput.ReasonNoConfiguration
		}
	}
	return r
}
