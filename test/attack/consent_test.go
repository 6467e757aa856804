package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/core/requestplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

// Roles that are less than edit.
var (
	createsGraphs  = rbacv1.PolicyRule{APIGroups: []string{"nvidia.com"}, Resources: []string{"dynamographdeployments"}, Verbs: []string{"create"}}
	onlyRequests   = allOf("nvidia.com", "dynamographdeploymentrequests")
	onlyConfigMaps = allOf("", "configmaps")
)

// says is nil once a request has a reason under a condition.
func (s *scene) says(ns, name, kind string, reasons ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		r := &v1alpha1.DynamoGraphDeploymentRequest{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, r); err != nil {
			return err
		}
		c := conditions.FindStatusCondition(r.Status.Conditions, kind)
		for _, reason := range reasons {
			if c != nil && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("%s: %+v", r.Status.State, r.Status.Conditions)
	}
}

// grants makes an account in a namespace that allows requests from another, with
// a ClusterRole there.
func (s *scene) grants(ns, from, role string) *corev1.ServiceAccount {
	s.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, GenerateName: "consenting-", Annotations: map[string]string{v1alpha1.AnnotationAllowRequestsFrom: from},
	}}
	s.create(account)
	s.Cleanup(func() { s.Client.Delete(context.Background(), account) })
	if role != "" {
		s.bind(ns, role, account)
	}
	return account
}

// author may do everything in one namespace, and make graphs in another.
func (s *scene) author(ns, target string) client.WithWatch {
	s.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "author-"}}
	s.create(account)
	s.bind(ns, "edit", account)
	s.bind(target, s.role(createsGraphs), account)
	return s.as(account)
}

func (s *scene) ask(as client.Client, r *unstructured.Unstructured) {
	s.Helper()
	if err := as.Create(s.ctx, r); err != nil {
		s.Fatalf("create a request: %v", err)
	}
}

// graphIn is nil once a graph is there.
func (s *scene) graphIn(ns, name string) func(context.Context) error {
	return s.exists(&v1alpha1.DynamoGraphDeployment{ObjectMeta: meta(ns, name)})
}

// goesTo is what came of a request for another namespace: a graph there, or a word
// on why not.
func (s *scene) goesTo(ns, target, name string, heldBy ...func(context.Context) error) outcome {
	s.Helper()
	held1 := func(ctx context.Context) error {
		var errs []error
		for _, held := range heldBy {
			err := held(ctx)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	if s.either("a graph in "+target+", or a word on why not", s.graphIn(target, name), held1) {
		return gotThrough("graph %s/%s was made", target, name)
	}
	r := &v1alpha1.DynamoGraphDeploymentRequest{}
	if err := s.Client.Get(s.ctx, types.NamespacedName{Namespace: ns, Name: name}, r); err != nil {
		s.Fatal(err)
	}
	var said []string
	for _, c := range r.Status.Conditions {
		said = append(said, c.Type+" "+c.Reason+" "+c.Message)
	}
	return held("%s", strings.Join(said, "; "))
}

var _ = add(
	attack{
		name: "an edited record has the graph of a request made in another namespace", finding: "S1",
		heldBy: []barrier{design("what was accepted stands in the request's status, and no ConfigMap is read for it")},
		try: func(s *scene) outcome {
			ns, victim := s.namespace(nil), s.namespace(nil)
			tenant := s.tenant(ns, "edit")
			s.ask(tenant, requestOf(ns, "r", ""))
			record := &corev1.ConfigMap{ObjectMeta: meta(ns, "dgdr-input-r")}
			s.eventually("the record to be edited", func(ctx context.Context) error {
				return tenant.Patch(ctx, record.DeepCopy(), merge(`{"data":{"spec.json":`+quote(specOf(requestFor(ns, victim)))+`}}`))
			})
			return s.goesTo(ns, victim, "r", s.graphIn(ns, "r"))
		},
	},
	attack{
		name: "a record that was there before the request has its graph made in another namespace", finding: "S1",
		heldBy: []barrier{design("what was accepted stands in the request's status, and no ConfigMap is read for it")},
		try: func(s *scene) outcome {
			ns, victim := s.namespace(nil), s.namespace(nil)
			tenant := s.tenant(ns, "edit")
			record := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: ns, Name: "dgdr-input-r", Annotations: map[string]string{v1alpha1.AnnotationProfilingAttempt: "1"},
					Labels: map[string]string{v1alpha1.LabelRequestName: "r", v1alpha1.LabelRequestNamespace: ns, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
				},
				Data: map[string]string{"spec.json": specOf(requestFor(ns, victim)), "config.yaml": "{}"},
			}
			if err := tenant.Create(s.ctx, record); err != nil {
				s.Fatal(err)
			}
			s.ask(tenant, requestOf(ns, "r", ""))
			return s.goesTo(ns, victim, "r", s.graphIn(ns, "r"), s.says(ns, "r", v1alpha1.ConditionProfiling, v1alpha1.ReasonNameConflict))
		},
	},
	attack{
		name: "somebody who may write ConfigMaps alone chooses what a request of another runs", finding: "S1",
		heldBy: []barrier{code(requestplan.GuardOutput)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			tenant := s.tenant(ns, s.role(onlyConfigMaps))
			s.create(requestOf(ns, "r", ""))
			stop := s.overwrite(tenant, ns)
			defer stop()
			generated := func(ctx context.Context) (string, error) {
				r := &v1alpha1.DynamoGraphDeploymentRequest{}
				if err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: "r"}, r); err != nil {
					return "", err
				}
				if r.Status.GeneratedDeployment == nil {
					return "", fmt.Errorf("%s: %+v", r.Status.State, r.Status.Conditions)
				}
				return string(r.Status.GeneratedDeployment.Raw), nil
			}
			chosen := func(evil bool) func(context.Context) error {
				return func(ctx context.Context) error {
					text, err := generated(ctx)
					if err == nil && strings.Contains(text, `"evil"`) != evil {
						err = errors.New("it is the other graph")
					}
					return err
				}
			}
			refused := s.says(ns, "r", v1alpha1.ConditionSpecGenerated, v1alpha1.ReasonOutputNotProven)
			if s.either("a graph, or a word on why not", chosen(true), func(ctx context.Context) error {
				if err := refused(ctx); err != nil {
					return chosen(false)(ctx)
				}
				return nil
			}) {
				s.ready(ns, "r")
				return gotThrough("the graph of the ConfigMap runs")
			}
			return held("the request does not take what its profiler did not write")
		},
	},
	attack{
		name: "a request has a graph made where nobody agreed to it", finding: "S1",
		heldBy: []barrier{code(requestplan.GuardConsent), code(requestplan.GuardPolicy)},
		try: func(s *scene) outcome {
			ns, victim := s.namespace(nil), s.namespace(nil)
			s.grants(victim, ns+"-other", "edit")
			s.ask(s.author(ns, victim), requestFor(ns, victim))
			return s.goesTo(ns, victim, "r", s.says(ns, "r", v1alpha1.ConditionValidation, v1alpha1.ReasonNamespaceNotGranted))
		},
	},
	attack{
		name: "a request goes on where consent was withdrawn", finding: "S1",
		heldBy: []barrier{code(requestplan.GuardConsent), code(requestplan.GuardPolicy)},
		try: func(s *scene) outcome {
			ns, victim := s.namespace(nil), s.namespace(nil)
			account := s.grants(victim, ns, "edit")
			s.ask(s.author(ns, victim), requestFor(ns, victim))
			s.eventually("the request to be accepted", s.says(ns, "r", v1alpha1.ConditionValidation, v1alpha1.ReasonValidationPassed))
			if err := s.Client.Patch(s.ctx, account, merge(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationAllowRequestsFrom+`":null}}}`)); err != nil {
				s.Fatal(err)
			}
			return s.goesTo(ns, victim, "r",
				s.says(ns, "r", v1alpha1.ConditionSpecGenerated, v1alpha1.ReasonNamespaceNotGranted),
				s.says(ns, "r", v1alpha1.ConditionDeploymentReady, v1alpha1.ReasonNamespaceNotGranted))
		},
	},
	attack{
		name: "an account that may make no graphs allows them to requests", finding: "S1",
		heldBy: []barrier{code(requestplan.GuardConsent), code(requestplan.GuardPolicy)},
		try: func(s *scene) outcome {
			ns, victim := s.namespace(nil), s.namespace(nil)
			s.grants(victim, ns, "")
			s.ask(s.author(ns, victim), requestFor(ns, victim))
			return s.goesTo(ns, victim, "r", s.says(ns, "r", v1alpha1.ConditionValidation, v1alpha1.ReasonGrantInsufficient))
		},
	},
	attack{
		name: "a graph from another namespace runs as an account of its target", finding: "S1",
		heldBy: []barrier{code(requestplan.GuardAccount), code(requestplan.GuardPolicy)},
		try: func(s *scene) outcome {
			ns, victim := s.namespace(nil), s.namespace(nil)
			s.grants(victim, ns, "edit")
			author := s.author(ns, victim)
			base := &corev1.ConfigMap{ObjectMeta: meta(ns, "base"), Data: map[string]string{"disagg.yaml": borrowing}}
			if err := author.Create(s.ctx, base); err != nil {
				s.Fatal(err)
			}
			r := requestFor(ns, victim)
			if err := unstructured.SetNestedMap(r.Object, map[string]any{"name": "base"}, "spec", "profilingConfig", "configMapRef"); err != nil {
				s.Fatal(err)
			}
			s.ask(author, r)
			return s.goesTo(ns, victim, "r", s.says(ns, "r", v1alpha1.ConditionDeploymentReady, v1alpha1.ReasonDeploymentRefused))
		},
	},
	attack{
		name: "a request has a graph made in a namespace of the system", finding: "S1",
		heldBy: []barrier{policy(requestPolicy), code(validation.GuardReserved), code(requestplan.GuardPolicy)},
		try:    func(s *scene) outcome { return s.intoReserved("kube-system") },
	},
	attack{
		name: "a request has a graph made beside the operator", finding: "S1",
		heldBy: []barrier{policy(requestPolicy), code(validation.GuardReserved), code(requestplan.GuardPolicy)},
		try:    func(s *scene) outcome { return s.intoReserved(installation.Namespace) },
	},
	attack{
		name: "somebody who may make no graphs has a request make one", finding: "S1",
		heldBy: []barrier{policy(requestPolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			tenant := s.tenant(ns, s.role(onlyRequests))
			return s.refused(tenant.Create(s.ctx, requestOf(ns, "r", "")))
		},
	},
	attack{
		name: "somebody who may make no graphs has a profiler of their own run", finding: "S1",
		heldBy: []barrier{policy(requestPolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			tenant := s.tenant(ns, s.role(onlyRequests))
			return s.refused(tenant.Create(s.ctx, ofOurs("DynamoGraphDeploymentRequest", ns, "r",
				`{model: m, backend: vllm, profilingConfig: {profilerImage: "registry.example/evil:1", config: {}}}`)))
		},
	},
	attack{
		name: "a request is changed by somebody who may make no graphs", finding: "S1",
		heldBy: []barrier{policy(requestPolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			tenant := s.tenant(ns, s.role(onlyRequests))
			r := ofOurs("DynamoGraphDeploymentRequest", ns, "r", `{model: nobody/knows-1B, backend: vllm, profilingConfig: {profilerImage: "dynamo-profiler:dev", config: {sweep: {useAiConfigurator: true, aicSystem: h200_sxm}}}}`)
			s.create(r)
			s.eventually("the request to fail, after which it may be changed", func(ctx context.Context) error {
				seen := &v1alpha1.DynamoGraphDeploymentRequest{}
				if err := s.Client.Get(ctx, client.ObjectKeyFromObject(r), seen); err != nil {
					return err
				}
				if seen.Status.State != v1alpha1.RequestStateFailed {
					return fmt.Errorf("%s: %+v", seen.Status.State, seen.Status.Conditions)
				}
				return nil
			})
			return s.refused(tenant.Patch(s.ctx, r, merge(`{"spec":{"profilingConfig":{"profilerImage":"registry.example/evil:1"}}}`)))
		},
	},
)

// borrowing is a graph to start from that names an account.
const borrowing = `apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: base}
spec:
  services:
    Frontend:
      componentType: frontend
      replicas: 1
      extraPodSpec: {serviceAccountName: default, mainContainer: {image: "registry.example/vllm-runtime:1"}}
    Worker:
      componentType: worker
      replicas: 1
      extraPodSpec:
        serviceAccountName: default
        mainContainer: {image: "registry.example/vllm-runtime:1", command: [python3, -m, dynamo.vllm], args: [--model, Qwen/Qwen3-0.6B]}
`

// intoReserved asks for a graph where pods are worth more than their namespace,
// as somebody who may make graphs everywhere, with consent of an account there.
func (s *scene) intoReserved(target string) outcome {
	s.Helper()
	ns := s.namespace(nil)
	s.grants(target, ns, "edit")
	name := "r-" + ns
	err := s.everywhere(ns, "edit").Create(s.ctx, requestOf(ns, name, elsewhereIn(target)))
	if err != nil {
		return s.refused(err)
	}
	s.Cleanup(func() {
		s.Client.Delete(context.Background(), &v1alpha1.DynamoGraphDeployment{ObjectMeta: meta(target, name)})
	})
	return s.goesTo(ns, target, name, s.says(ns, name, v1alpha1.ConditionValidation, v1alpha1.ReasonValidationFailed))
}

// overwrite goes on replacing a request's output by another, until it is stopped.
func (s *scene) overwrite(as client.Client, ns string) (stop func()) {
	s.Helper()
	evil := profileoutput.Result{State: profileoutput.Succeeded, GeneratedDeployment: `apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: r, annotations: {evil: "yes"}}
spec: ` + idle}
	patch := merge(`{"data":{"result.json":` + quote(evil.Text()) + `}}`)
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			err := as.Patch(ctx, &corev1.ConfigMap{ObjectMeta: meta(ns, "dgdr-output-r")}, patch)
			if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
				s.Errorf("edit the output: %v", err)
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func specOf(r *unstructured.Unstructured) string {
	text, err := json.Marshal(r.Object["spec"])
	if err != nil {
		panic(err) // it was read from YAML
	}
	return string(text)
}

// quote writes a text as a string of JSON.
func quote(text string) string {
	written, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string
	}
	return string(written)
}
