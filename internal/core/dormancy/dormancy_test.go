package dormancy

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// signal is a Lease of yesterday with a last request.
func signal(lastRequest time.Duration) *Signal {
	return &Signal{Made: ago(24 * time.Hour), Renewed: ago(lastRequest)}
}

// forged is one with a request of next year, which was written so long ago.
func forged(written time.Duration) *Signal {
	return &Signal{Made: ago(24 * time.Hour), Renewed: now.AddDate(1, 0, 0), Written: ago(written)}
}

func TestDecide(t *testing.T) {
	const after = 15 * time.Minute
	long := ago(20 * time.Hour)
	for name, c := range map[string]struct {
		seen  Seen
		phase Phase
		again time.Duration
	}{
		"serves while requests come, and is looked at when it may sleep": {
			Seen{Was: Active, Signal: signal(time.Minute), Ready: true, ReadySince: long}, Active, 14 * time.Minute,
		},
		"sleeps once none came for so long": {
			Seen{Was: Active, Signal: signal(after), Ready: true, ReadySince: long}, Dormant, 0,
		},
		"sleeps on without being looked at": {
			Seen{Was: Dormant, Signal: signal(9 * time.Hour), Ready: true, ReadySince: long}, Dormant, 0,
		},
		"wakes with a request": {
			Seen{Was: Dormant, Signal: signal(time.Second), Ready: true, ReadySince: long}, Waking, wakingAgain,
		},
		"wakes until it is ready": {
			Seen{Was: Waking, Signal: signal(after + time.Minute)}, Waking, wakingAgain,
		},
		"is awake when it is ready": {
			Seen{Was: Waking, Signal: signal(time.Second), Ready: true, ReadySince: now}, Active, after,
		},
		"serves for the time even if it took longer to start": {
			Seen{Was: Waking, Signal: signal(after + time.Minute), Ready: true, ReadySince: ago(time.Minute)}, Active, 14 * time.Minute,
		},
		"gives up on workers that do not get ready": {
			Seen{Was: Waking, Signal: signal(giveUp)}, Dormant, 0,
		},
		"does not sleep while workers are replaced": {
			Seen{Was: Active, Signal: signal(9 * time.Hour), Ready: true, ReadySince: long, Rolling: true}, Active, wakingAgain,
		},
		"is not waking when a ready graph fails": {
			Seen{Was: Active, Signal: signal(after)}, Active, wakingAgain,
		},
		"a new graph starts first": {
			Seen{Signal: &Signal{Made: now}}, Waking, wakingAgain,
		},
		"the Lease counts from when it was made": {
			Seen{Was: Active, Signal: &Signal{Made: ago(time.Minute)}, Ready: true, ReadySince: long}, Active, 14 * time.Minute,
		},
		"without a Lease a sleeping graph sleeps": {
			Seen{Was: Dormant, Ready: true, ReadySince: long}, Dormant, wakingAgain,
		},
		"without a Lease a graph is not put to sleep": {
			Seen{Was: Active, Ready: true, ReadySince: long}, Active, wakingAgain,
		},
		"a clock that is a little ahead wakes": {
			Seen{Was: Dormant, Signal: signal(-30 * time.Second), Ready: true, ReadySince: long}, Waking, wakingAgain,
		},
		"a request of next year does not keep a graph awake": {
			Seen{Was: Active, Signal: signal(-365 * 24 * time.Hour), Ready: true, ReadySince: long}, Dormant, 0,
		},
		"a request of next year wakes nothing": {
			Seen{Was: Dormant, Signal: signal(-365 * 24 * time.Hour), Ready: true, ReadySince: long}, Dormant, 0,
		},
		"a time of next year of a graph that serves counts as of when it was written": {
			Seen{Was: Active, Signal: forged(time.Minute), Ready: true, ReadySince: long}, Active, 14 * time.Minute,
		},
		"and does not keep it awake for longer": {
			Seen{Was: Active, Signal: forged(after), Ready: true, ReadySince: long}, Dormant, 0,
		},
		"nor if it is written as of next year": {
			Seen{Was: Active, Signal: forged(-365 * 24 * time.Hour), Ready: true, ReadySince: long}, Dormant, 0,
		},
		"and wakes nothing": {
			Seen{Was: Dormant, Signal: forged(time.Second), Ready: true, ReadySince: long}, Dormant, 0,
		},
		"when a time that can be was written is all the same": {
			Seen{Was: Active, Signal: &Signal{Made: ago(24 * time.Hour), Renewed: ago(after), Written: now}, Ready: true, ReadySince: long}, Dormant, 0,
		},
		"a request of before the Lease is none": {
			Seen{Was: Active, Signal: &Signal{Made: ago(time.Minute), Renewed: time.Unix(0, 0)}, Ready: true, ReadySince: long}, Active, 14 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.seen.Now = now
			d := Decide(Settings{After: after}, c.seen)
			if diff := cmp.Diff(c.phase, d.Phase); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.again, d.Again); diff != "" {
				t.Error(diff)
			}
			if d.Asleep() != (c.phase == Dormant) {
				t.Errorf("asleep: %t", d.Asleep())
			}
		})
	}
}

// TestAGraphLivesThroughItsPhases plays a day: nothing a Lease can say makes workers end
// within the time of a request.
func TestAGraphLivesThroughItsPhases(t *testing.T) {
	s := Settings{After: time.Minute}
	var was Phase
	var sleeps, wakes int
	made, ready := ago(time.Hour), time.Time{}
	last := made
	for second := range 3600 {
		at := made.Add(time.Duration(second) * time.Second)
		if second%300 == 200 {
			last = at
		}
		if ready.IsZero() && was != Dormant && second%40 == 39 {
			ready = at
		}
		d := Decide(s, Seen{Now: at, Signal: &Signal{Made: made, Renewed: last}, Was: was, Ready: !ready.IsZero() || was == Dormant, ReadySince: ready})
		switch {
		case was != Dormant && d.Asleep():
			sleeps++
			ready = time.Time{}
			if idle := at.Sub(last); idle < s.After {
				t.Fatalf("second %d: sleeps %s after a request", second, idle)
			}
		case was == Dormant && !d.Asleep():
			wakes++
			if at != last {
				t.Fatalf("second %d: wakes without a request", second)
			}
		}
		was = d.Phase
	}
	if sleeps != 13 || wakes != 12 {
		t.Errorf("slept %d times, woke %d times", sleeps, wakes)
	}
}

// TestWhateverHappensNobodyIsForgotten plays requests, starts that take their time or
// never end, rollouts and restarts of the operator at random.
func TestWhateverHappensNobodyIsForgotten(t *testing.T) {
	for seed := range uint64(200) {
		chance := rand.New(rand.NewPCG(seed, 1))
		s := Settings{After: time.Duration(10+chance.IntN(3600)) * time.Second}
		made := now
		var was Phase
		var sleeps int
		last, ready, begun := made, time.Time{}, made
		var start time.Duration
		for at := made; at.Before(made.Add(6 * time.Hour)); at = at.Add(5 * time.Second) {
			if chance.IntN(400) == 0 {
				last = at
			}
			if start == 0 { // one in ten never gets ready
				if start = time.Duration(10+chance.IntN(300)) * time.Second; chance.IntN(10) == 0 {
					start = 24 * time.Hour
				}
			}
			if was != Dormant && ready.IsZero() && at.Sub(begun) >= start {
				ready = at
			}
			seen := Seen{
				Now: at, Signal: &Signal{Made: made, Renewed: last}, Was: was, Rolling: chance.IntN(50) == 0,
				Ready: !ready.IsZero() || was == Dormant, ReadySince: ready,
			}
			d := Decide(s, seen)
			idle := at.Sub(last)
			switch {
			case !d.Asleep() && d.Again <= 0:
				t.Fatalf("seed %d: %s is not looked at again", seed, d.Phase)
			case was == Dormant && d.Asleep() && idle < s.After:
				t.Fatalf("seed %d: sleeps on %v after a request", seed, idle)
			case was != Dormant && d.Asleep() && (idle < s.After || seen.Ready && !ready.IsZero() && at.Sub(ready) < s.After || seen.Rolling):
				t.Fatalf("seed %d: falls asleep %v after a request and %v after it was ready, of %+v", seed, idle, at.Sub(ready), seen)
			case d.Phase == Waking && seen.Ready && !seen.Rolling && was != Dormant:
				t.Fatalf("seed %d: still wakes when it is ready", seed)
			case d.Phase == Waking && !seen.Rolling && idle >= max(s.After, giveUp):
				t.Fatalf("seed %d: wakes for nobody for %v", seed, idle)
			}
			if was == Dormant && !d.Asleep() {
				begun, start = at, 0
			}
			if d.Asleep() && was != Dormant {
				sleeps++
				ready = time.Time{}
			}
			was = d.Phase
		}
		if sleeps == 0 && s.After < 10*time.Minute {
			t.Errorf("seed %d: it never slept, after %v", seed, s.After)
		}
	}
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		after, timeout string
		want           Settings
		on             bool
	}{
		"a time switches it on":             {"15m", "", Settings{15 * time.Minute, defaultTimeout}, true},
		"requests may be held for less":     {"1h30m", "90s", Settings{90 * time.Minute, 90 * time.Second}, true},
		"a time to hold that is none":       {"15m", "long", Settings{15 * time.Minute, defaultTimeout}, true},
		"a time to hold beyond what it may": {"15m", "2h", Settings{15 * time.Minute, defaultTimeout}, true},
		"nothing":                           {"", "5m", Settings{}, false},
		"no time":                           {"soon", "", Settings{}, false},
		"a number without a unit":           {"900", "", Settings{}, false},
		"less than a start can take":        {"1s", "", Settings{}, false},
		"never":                             {"100000h", "", Settings{}, false},
		"a time before the request":         {"-15m", "", Settings{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, on := Read(map[string]string{v1alpha1.AnnotationScaleToZeroAfter: c.after, v1alpha1.AnnotationActivationTimeout: c.timeout})
			if diff := cmp.Diff(c.want, got); diff != "" || on != c.on {
				t.Errorf("on is %t: %s", on, diff)
			}
		})
	}
}

func TestRenewalIsRareAndBeforeSleep(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{
		10 * time.Second: 10 * time.Second / 3, time.Minute: 20 * time.Second, 15 * time.Minute: 30 * time.Second, 0: time.Second,
	} {
		if got := (Settings{After: after}).Renewal(); got != want {
			t.Errorf("after %s: every %s, want %s", after, got, want)
		}
	}
}

func TestWhatIsToldIsReadAgain(t *testing.T) {
	condition := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionDormant, Status: status, Reason: reason}}
	}
	for want, conditions := range map[Phase][]metav1.Condition{
		"":      nil,
		Dormant: condition(metav1.ConditionTrue, v1alpha1.ReasonIdle),
		Waking:  condition(metav1.ConditionFalse, v1alpha1.ReasonWaking),
		Active:  condition(metav1.ConditionFalse, v1alpha1.ReasonActive),
	} {
		if got := Told(conditions); got != want {
			t.Errorf("%v tells %q, want %q", conditions, got, want)
		}
	}
	if got := Told(condition(metav1.ConditionFalse, v1alpha1.ReasonDormancyUnsupported)); got != "" {
		t.Errorf("a graph that cannot sleep is %q", got)
	}
}

func TestFromLease(t *testing.T) {
	lease := &coordinationv1.Lease{}
	lease.CreationTimestamp = metav1.NewTime(ago(time.Hour))
	if diff := cmp.Diff(Signal{Made: ago(time.Hour)}, FromLease(lease)); diff != "" {
		t.Error(diff)
	}
	renewed := metav1.NewMicroTime(ago(time.Minute))
	lease.Spec.RenewTime = &renewed
	if diff := cmp.Diff(Signal{Made: ago(time.Hour), Renewed: ago(time.Minute)}, FromLease(lease)); diff != "" {
		t.Error(diff)
	}
	entry := func(fields string, written time.Duration) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: "m", FieldsV1: metav1.NewFieldsV1(fields), Time: &metav1.Time{Time: ago(written)}}
	}
	lease.ManagedFields = []metav1.ManagedFieldsEntry{
		{}, entry(`{"f:metadata":{}}`, 0), entry(`{"f:spec":{"f:holderIdentity":{},"f:renewTime":{}}}`, time.Second), entry(`{"f:spec":null}`, 0), entry(`{`, 0),
		entry(`{"f:spec":{"f:renewTime":{}}}`, time.Hour),
	}
	want := Signal{Made: ago(time.Hour), Renewed: ago(time.Minute), Written: ago(time.Second)}
	if diff := cmp.Diff(want, FromLease(lease)); diff != "" {
		t.Error(diff)
	}
	lease.ManagedFields = Renewal(lease.ManagedFields)
	if diff := cmp.Diff(want, FromLease(lease)); diff != "" || len(lease.ManagedFields) != 1 || lease.ManagedFields[0].Manager != "" {
		t.Errorf("what is kept, %+v, says %s", lease.ManagedFields, diff)
	}
}

func TestDeclared(t *testing.T) {
	long := strings.Repeat("m", MostDeclared)
	for _, c := range []struct {
		rule   string
		models []string
		want   string
	}{
		{"none", nil, `[]`},
		{"each once, in order", []string{"b", "a", "b"}, `["a","b"]`},
		{"as JSON", []string{`a"b`}, `["a\"b"]`},
		{"what there is no room for is left out", []string{"a", long, "z"}, `["a","z"]`},
	} {
		if diff := cmp.Diff(c.want, Declared(c.models)); diff != "" {
			t.Errorf("%s: %s", c.rule, diff)
		}
	}
}
