package activator

import (
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// server has one Lease, as an API server has it.
type server struct {
	*testing.T
	mu      sync.Mutex
	lease   coordinationv1.Lease
	most    int                         // no annotation of more bytes is taken
	meddled func(*coordinationv1.Lease) // somebody else writes after each read so many times
	meddles int
	times   []time.Time
}

func newServer(t *testing.T, most int) (*server, *KubernetesLease) {
	s := &server{T: t, most: most}
	s.lease.Name, s.lease.ResourceVersion = "chat-activation", "1"
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	client, err := typed.NewForConfig(&rest.Config{Host: listening.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return s, &KubernetesLease{leases: client.Leases("lab"), name: "chat-activation", pod: "chat-frontend-0"}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		_ = json.NewEncoder(w).Encode(s.lease)
		if s.meddles > 0 {
			s.meddles--
			s.meddled(&s.lease)
			s.changed()
		}
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		s.Error(err)
	}
	if strings.Contains(string(text), `"annotations":null`) {
		s.Error("what others wrote is removed")
	}
	var patch coordinationv1.Lease
	if err := json.Unmarshal(text, &patch); err != nil {
		s.Errorf("%s: %v", text, err)
	}
	refuse := func(e *apierrors.StatusError) {
		w.WriteHeader(int(e.ErrStatus.Code))
		_ = json.NewEncoder(w).Encode(e.ErrStatus)
	}
	if patch.ResourceVersion != "" && patch.ResourceVersion != s.lease.ResourceVersion {
		refuse(apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, s.lease.Name, errors.New("it was changed")))
		return
	}
	for _, value := range patch.Annotations {
		if len(value) > s.most {
			refuse(apierrors.NewInvalid(schema.GroupKind{Kind: "Lease"}, s.lease.Name, nil))
			return
		}
	}
	patch.ResourceVersion = ""
	text, err = json.Marshal(patch)
	if err != nil {
		s.Error(err)
	}
	if err := json.Unmarshal(text, &s.lease); err != nil { // onto what there is, as a merge does
		s.Error(err)
	}
	s.changed()
	_ = json.NewEncoder(w).Encode(s.lease)
}

func (s *server) changed() {
	n, err := strconv.Atoi(s.lease.ResourceVersion)
	if err != nil {
		s.Error(err)
	}
	s.lease.ResourceVersion = strconv.Itoa(n + 1)
	if at := s.lease.Spec.RenewTime; at != nil {
		s.times = append(s.times, at.Time)
	}
}

func TestRenew(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	long := strings.Repeat("m", mostBytes/4)
	for rule, c := range map[string]struct {
		models []string
		most   int
		want   map[string]string
	}{
		"models and the last start are remembered": {[]string{"a", "b"}, mostBytes, map[string]string{
			v1alpha1.AnnotationActivationModels: `["a","b"]`, v1alpha1.AnnotationActivationSeconds: "2.0",
		}},
		"names that are too long together are cut": {[]string{"a", long, long, long, long, "z"}, mostBytes, map[string]string{
			v1alpha1.AnnotationActivationModels: `["a","` + long + `","` + long + `","` + long + `"]`, v1alpha1.AnnotationActivationSeconds: "2.0",
		}},
		"the time is told where nothing else fits": {[]string{"a", "b"}, 2, map[string]string{}},
	} {
		t.Run(rule, func(t *testing.T) {
			s, lease := newServer(t, c.most)
			if err := lease.Renew(t.Context(), Told{LastRequest: at, Models: c.models, Start: 2 * time.Second}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]time.Time{at}, s.times); diff != "" {
				t.Fatalf("written (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, s.lease.Annotations, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := fitting(slices.Repeat([]string{"m"}, 2*mostModels)); len(got) != mostModels {
		t.Errorf("%d models are written", len(got))
	}
}

// TestTheTimeOfALeaseNeverGoesBack: frontends write at any moment what they knew a while
// before, and an older time puts a graph to sleep that serves.
func TestTheTimeOfALeaseNeverGoesBack(t *testing.T) {
	now := time.Now().Truncate(time.Microsecond)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	renewed := func(at time.Time) func(*coordinationv1.Lease) {
		return func(l *coordinationv1.Lease) { l.Spec.RenewTime = &metav1.MicroTime{Time: at} }
	}
	for rule, c := range map[string]struct {
		stored  time.Time
		meddled time.Time // by another frontend between our read and our write
		told    time.Time
		want    time.Time
	}{
		"a later request is told":                            {stored: ago(time.Minute), told: ago(time.Second), want: ago(time.Second)},
		"what is stored is later":                            {stored: ago(time.Second), told: ago(time.Minute), want: ago(time.Second)},
		"what is stored is a little ahead of this clock":     {stored: ago(-30 * time.Second), told: now, want: ago(-30 * time.Second)},
		"what is stored cannot be":                           {stored: ago(-time.Hour), told: now, want: now},
		"another writes a later one at the same moment":      {stored: ago(time.Hour), meddled: ago(time.Second), told: ago(time.Minute), want: ago(time.Second)},
		"another writes an earlier one at the same moment":   {stored: ago(time.Hour), meddled: ago(time.Minute), told: ago(time.Second), want: ago(time.Second)},
		"a Lease that nobody has renewed takes what is told": {told: ago(time.Minute), want: ago(time.Minute)},
	} {
		t.Run(rule, func(t *testing.T) {
			s, lease := newServer(t, mostBytes)
			if !c.stored.IsZero() {
				renewed(c.stored)(&s.lease)
			}
			if !c.meddled.IsZero() {
				s.meddled, s.meddles = renewed(c.meddled), 1
			}
			if err := lease.Renew(t.Context(), Told{LastRequest: c.told, Models: []string{"a"}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s.lease.Spec.RenewTime.Time, cmpopts.EquateApproxTime(time.Microsecond)); diff != "" {
				t.Errorf("renewTime (-want +got):\n%s", diff)
			}
			if got := s.lease.Annotations[v1alpha1.AnnotationActivationModels]; got != `["a"]` {
				t.Errorf("models are %s", got)
			}
		})
	}
}

// TestTwoFrontendsRenewOneLease write as fast as they can, each what it knew a moment ago.
func TestTwoFrontendsRenewOneLease(t *testing.T) {
	s, lease := newServer(t, mostBytes)
	chance := rand.New(rand.NewPCG(1, 1))
	begin := time.Now()
	var all sync.WaitGroup
	for range 2 {
		lags := make([]time.Duration, 50)
		for i := range lags {
			lags[i] = time.Duration(chance.IntN(5000)) * time.Millisecond
		}
		all.Go(func() {
			for _, lag := range lags {
				if err := lease.Renew(t.Context(), Told{LastRequest: time.Now().Add(-lag)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if len(s.times) == 0 || s.times[len(s.times)-1].Before(begin.Add(-time.Second)) {
		t.Errorf("the last time is one of %v", s.times)
	}
	for i := 1; i < len(s.times); i++ {
		if s.times[i].Before(s.times[i-1]) {
			t.Fatalf("write %d: %s after %s", i, s.times[i], s.times[i-1])
		}
	}
}

func TestRead(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for rule, c := range map[string]struct {
		annotations map[string]string
		want        Told
	}{
		"nothing": {nil, Told{LastRequest: at}},
		"what activators and the operator write": {map[string]string{
			v1alpha1.AnnotationActivationModels: `["a"]`, v1alpha1.AnnotationActivationDeclared: `["b"]`, v1alpha1.AnnotationActivationSeconds: "1.5",
		}, Told{LastRequest: at, Models: []string{"a"}, Declared: []string{"b"}, Start: 1500 * time.Millisecond}},
		"what nobody can read is not known": {map[string]string{
			v1alpha1.AnnotationActivationModels: `a`, v1alpha1.AnnotationActivationDeclared: `{}`, v1alpha1.AnnotationActivationSeconds: "-1",
		}, Told{LastRequest: at}},
	} {
		t.Run(rule, func(t *testing.T) {
			s, lease := newServer(t, mostBytes)
			s.lease.Annotations, s.lease.Spec.RenewTime = c.annotations, &metav1.MicroTime{Time: at}
			got, err := lease.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateApproxTime(0)); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}
