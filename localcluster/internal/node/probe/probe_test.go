package probe

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestRun(t *testing.T) {
	type turn struct {
		At time.Duration
		OK bool
	}
	for name, c := range map[string]struct {
		spec    corev1.Probe
		answers string        // one per question: y or n; the last one goes on
		from    time.Duration // before, the answer is no, and none is used up
		lasting time.Duration
		want    []turn
	}{
		"the first question waits for the initial delay": {
			corev1.Probe{InitialDelaySeconds: 7, PeriodSeconds: 10}, "y", 0, 30 * time.Second,
			[]turn{{7 * time.Second, true}},
		},
		"without a delay the first question is put at once": {
			corev1.Probe{PeriodSeconds: 10}, "y", 0, 5 * time.Second,
			[]turn{{0, true}},
		},
		"failures below the threshold change nothing": {
			corev1.Probe{PeriodSeconds: 1, FailureThreshold: 3}, "ynnynny", 0, 30 * time.Second,
			[]turn{{0, true}},
		},
		"the threshold of failures is the turn": {
			corev1.Probe{PeriodSeconds: 2, FailureThreshold: 3}, "ynnny", 0, 30 * time.Second,
			[]turn{{0, true}, {6 * time.Second, false}, {8 * time.Second, true}},
		},
		"success has a threshold too": {
			corev1.Probe{PeriodSeconds: 1, SuccessThreshold: 2, FailureThreshold: 1}, "yny", 0, 30 * time.Second,
			[]turn{{1 * time.Second, false}, {3 * time.Second, true}},
		},
		"a container that comes up in the first period is found soon, and not blamed": {
			corev1.Probe{PeriodSeconds: 10, FailureThreshold: 1}, "y", time.Second, 30 * time.Second,
			[]turn{{1500 * time.Millisecond, true}},
		},
		"after the first period a failure counts": {
			corev1.Probe{PeriodSeconds: 10, FailureThreshold: 2}, "n", 0, 30 * time.Second,
			[]turn{{20 * time.Second, false}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), c.lasting)
				defer cancel()
				n := 0
				check := func() error {
					if time.Since(begin) < c.from {
						return errors.New("not yet")
					}
					a := c.answers[min(n, len(c.answers)-1)]
					n++
					if a == 'y' {
						return nil
					}
					return errors.New("no")
				}
				var got []turn
				Run(ctx, &c.spec, begin, check, func(error) {}, func(ok bool) bool {
					got = append(got, turn{time.Since(begin), ok})
					return true
				})
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestRunEndsWhenTheCallerHasSeenEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		Run(t.Context(), &corev1.Probe{PeriodSeconds: 1}, time.Now(), func() error { asked++; return nil }, func(error) {}, func(bool) bool { return false })
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
}

func TestCheck(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/header" && r.Header.Get("X-A") != "b", r.URL.Path == "/bad":
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer srv.Close()
	at := netip.MustParseAddrPort(srv.Listener.Addr().String())
	// Where a connection starts nobody listens, nor can anybody while it is open.
	held, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	free := held.LocalAddr().(*net.TCPAddr).Port

	c := &corev1.Container{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: int32(at.Port())}}}
	get := func(path string, port intstr.IntOrString, headers ...corev1.HTTPHeader) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: port, HTTPHeaders: headers, Host: "elsewhere.example"}}
	}
	for name, tc := range map[string]struct {
		handler corev1.ProbeHandler
		ok      bool
	}{
		"a 200 is a success":          {get("/", intstr.FromInt32(int32(at.Port()))), true},
		"a port may be named":         {get("/", intstr.FromString("http")), true},
		"an unknown name is an error": {get("/", intstr.FromString("grpc")), false},
		"headers are sent":            {get("/header", intstr.FromString("http"), corev1.HTTPHeader{Name: "X-A", Value: "b"}), true},
		"a 503 is a failure":          {get("/bad", intstr.FromString("http")), false},
		"an open port is a success":   {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("http")}}, true},
		"a closed port is a failure":  {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(int32(free))}}, false},
		"no gRPC there is a failure":  {corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: int32(free)}}, false},
		"a program is never run":      {corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"false"}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := int32(1)
			if tc.ok {
				timeout = 60 // how long a good answer takes is not the question
			}
			err := NewProber().Check(&corev1.Probe{ProbeHandler: tc.handler, TimeoutSeconds: timeout}, c, at.Addr().String())
			if (err == nil) != tc.ok {
				t.Errorf("got %v, want success %v", err, tc.ok)
			}
		})
	}
}
