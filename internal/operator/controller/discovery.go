package controller

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// discoveryPoller follows the optional APIs for an operator that may not watch their
// definitions: everybody may ask the API server what it serves.
type discoveryPoller struct {
	*optionalAPIs
	server   discovery.ServerResourcesInterface
	interval time.Duration
	clock    clock.WithTicker
	known    atomic.Pointer[snapshot.Capabilities]
}

// Served is what was found last.
func (s *discoveryPoller) Served() snapshot.Capabilities { return *s.known.Load() }

// setupDiscoveryPoller takes the place of the watch on definitions. What there is is known
// before the first reconcile.
func setupDiscoveryPoller(d *Deps, g *optionalAPIs) error {
	server, err := discovery.NewDiscoveryClientForConfigAndClient(d.GetConfig(), d.GetHTTPClient())
	if err != nil {
		return err
	}
	s := &discoveryPoller{optionalAPIs: g, server: server, interval: d.Config.Tenancy.Discovery.Duration, clock: clock.RealClock{}}
	have, err := observe.Served(server)
	if err != nil {
		return err
	}
	s.known.Store(&snapshot.Capabilities{})
	d.Facts.Served.Store(&have)
	return d.Add(s)
}

// Start looks until ctx ends.
func (s *discoveryPoller) Start(ctx context.Context) error {
	for {
		if err := s.poll(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "optional API discovery failed, retrying")
		}
		select {
		case <-s.clock.After(s.interval):
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *discoveryPoller) poll(ctx context.Context) error {
	have, err := observe.Served(s.server)
	if err != nil || maps.Equal(have, s.Served()) {
		return err
	}
	s.Facts.Served.Store(&have)
	for _, api := range snapshot.APIs {
		if have[api] && !s.Served()[api] {
			if err := s.startWatch(ctx, api); err != nil {
				return err // tried again: nothing is noted as known
			}
		}
	}
	s.known.Store(&have)
	return s.wakeEverybody(ctx)
}

// devicePoller waits for Kubernetes to serve claims to devices. No definition tells
// of that, and the server may be replaced by a later version at any time.
type devicePoller struct {
	*optionalAPIs
	server   discovery.ServerResourcesInterface
	interval time.Duration
	clock    clock.WithTicker
}

// setupDevices watches templates of claims from the start if they are served, and
// otherwise from when they are.
func setupDevices(ctx context.Context, d *Deps, g *optionalAPIs) error {
	server, err := discovery.NewDiscoveryClientForConfigAndClient(d.GetConfig(), d.GetHTTPClient())
	if err != nil {
		return err
	}
	p := &devicePoller{optionalAPIs: g, server: server, interval: d.Config.Tenancy.Discovery.Duration, clock: clock.RealClock{}}
	served, err := p.poll(ctx)
	if err != nil || served {
		return err
	}
	return d.Add(p)
}

// Start looks until they are served, or ctx ends.
func (p *devicePoller) Start(ctx context.Context) error {
	for {
		select {
		case <-p.clock.After(p.interval):
		case <-ctx.Done():
			return nil
		}
		served, err := p.poll(ctx)
		if err == nil && served {
			return p.wakeEverybody(ctx)
		}
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "device API discovery failed, retrying")
		}
	}
}

func (p *devicePoller) poll(ctx context.Context) (bool, error) {
	served, err := observe.ServesDevices(p.server)
	if err != nil || !served {
		return false, err
	}
	if err := p.startWatch(ctx, snapshot.APIDevices); err != nil {
		return false, err
	}
	p.Facts.Devices.Store(true)
	return true, nil
}
