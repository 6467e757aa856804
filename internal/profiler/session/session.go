// Package session runs the profiler: it reads a configuration, searches, has the
// contenders measured if that is wanted, and hands over what it found. Every end
// is told, also that of a run which failed.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/blueprint"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/bundle"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/online"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/search"
)

// Sink is where a run tells how it goes.
type Sink interface {
	Progress(ctx context.Context, p profileoutput.Progress) error
	// Finish hands over the end; b is nil if the run failed before there was
	// anything to hand over.
	Finish(ctx context.Context, r profileoutput.Result, b *bundle.Bundle) error
}

// Run is one run of the profiler.
type Run struct {
	// Config is the text of the configuration, Catalog what is known of models
	// and GPUs.
	Config string
	// Base is the path of a graph to start from; empty leaves that to Config.
	Base    string
	Catalog perfmodel.Catalog
	Names   bundle.Names
	Sink    Sink
	// Runner measures; without one every run is offline.
	Runner func(*config.Config) (*online.Runner, error)
}

// Do runs to the end and returns how it ended. The error is that of telling.
func (r Run) Do(ctx context.Context) (profileoutput.Result, error) {
	b, err := r.find(ctx)
	// An interrupted run still has a moment to say so.
	after := context.WithoutCancel(ctx)
	if err != nil {
		end := bundle.Failure(err)
		switch {
		case ctx.Err() != nil:
			end.Reason = profileoutput.ReasonInterrupted
		case isMeasurement(err):
			end.Reason = profileoutput.ReasonMeasurement
		}
		return end, r.Sink.Finish(after, end, nil)
	}
	return b.Result, r.Sink.Finish(after, b.Result, b)
}

func (r Run) find(ctx context.Context) (*bundle.Bundle, error) {
	c, err := config.Parse(r.Config)
	if err != nil {
		return nil, err
	}
	var base []byte
	if path := cmp.Or(r.Base, c.Engine.Config); path != "" {
		if base, err = os.ReadFile(path); err != nil {
			return nil, config.Invalid{fmt.Sprintf("engine.config: %v", err)}
		}
	}
	found, options, err := bundle.Search(c, r.Catalog, base, r.Names)
	if err != nil {
		return nil, err
	}
	ranked := profileoutput.Progress{Done: len(found.Candidates), Total: len(found.Candidates), Stage: profileoutput.StageRanking, Best: found.Best().String()}
	if err := r.Sink.Progress(ctx, ranked); err != nil {
		return nil, err
	}
	if !c.Sweep.Offline && !c.Sweep.DryRun && r.Runner != nil {
		if err := r.measure(ctx, c, options, found); err != nil {
			return nil, err
		}
	}
	ranked.Stage, ranked.Best = profileoutput.StageWriting, found.Best().String()
	if err := r.Sink.Progress(ctx, ranked); err != nil {
		return nil, err
	}
	return bundle.Compose(c, options, found)
}

// measurement is a failure of every candidate that was tried.
type measurement struct{ error }

func (m measurement) Unwrap() error { return m.error }

func isMeasurement(err error) bool {
	_, ok := errors.AsType[measurement](err)
	return ok
}

// measure tries the contenders, best first, until the best one is measured and
// none that might be better is left.
func (r Run) measure(ctx context.Context, c *config.Config, o blueprint.Options, found *search.Outcome) error {
	runner, err := r.Runner(c)
	if err != nil {
		return err
	}
	if err := runner.RemoveLeftovers(ctx); err != nil {
		return err
	}
	contenders := found.Contenders(c.Sweep.Measured)
	var failures []error
	for i, candidate := range contenders {
		progress := profileoutput.Progress{Done: i, Total: len(contenders), Stage: profileoutput.StageMeasuring}
		if found.Best().Measured {
			progress.Best = found.Best().String()
		}
		if err := r.Sink.Progress(ctx, progress); err != nil {
			return err
		}
		trialOptions := o
		trialOptions.Name = online.TrialName(runner.Request, candidate.Name)
		trial, err := blueprint.Trial(candidate, trialOptions)
		if err != nil {
			return config.Invalid{err.Error()}
		}
		m, err := runner.Measure(ctx, trial, candidate, found.Problem)
		if ctx.Err() != nil {
			return fmt.Errorf("measure %s: %w", candidate, errors.Join(err, ctx.Err()))
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("measure %s: %w", candidate, err))
			found.Drop(candidate.Name, err.Error())
			continue
		}
		found.Correct(candidate.Name, m)
	}
	if len(failures) == len(contenders) {
		return measurement{errors.Join(failures...)}
	}
	found.Review()
	return nil
}
