package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/why"
)

// definitions compares what is installed with what this program would install. What
// differs is looked at again: an operator that has just been installed may be serving
// a version in this moment.
func definitions(ctx context.Context, p target) (findings []finding, err error) {
	for again := range 4 {
		if again > 0 {
			select {
			case <-time.After(2 * time.Second):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		findings, err = compareDefinitions(ctx, p)
		if err != nil || !slices.ContainsFunc(findings, func(f finding) bool { return f.verdict == wrong }) {
			break
		}
	}
	return findings, err
}

// compareDefinitions compares by a dry run.
func compareDefinitions(ctx context.Context, p target) ([]finding, error) {
	shipped, err := installation.Installer{Client: p.WithWatch}.DefinitionsHere(ctx)
	if err != nil {
		return nil, err
	}
	var findings []finding
	for _, definition := range shipped {
		live := definition.DeepCopy()
		err := p.Get(ctx, client.ObjectKeyFromObject(definition), live)
		if apierrors.IsNotFound(err) {
			findings = append(findings, finding{verdict: wrong, what: definition.GetName() + " is not installed", todo: "kubectl dynamo install"})
			continue
		}
		if err != nil {
			return nil, err
		}
		next := definition.DeepCopy()
		err = p.Apply(ctx, client.ApplyConfigurationFromUnstructured(next), client.FieldOwner("kubectl-dynamo-doctor"), client.ForceOwnership, client.DryRunAll)
		if err != nil {
			return nil, err
		}
		if next.GetGeneration() != live.GetGeneration() {
			findings = append(findings, finding{verdict: wrong, what: definition.GetName() + " is of another version", todo: "kubectl dynamo install, or use the kubectl-dynamo of the installed version"})
		}
	}
	if len(findings) == 0 {
		findings = append(findings, finding{what: fmt.Sprintf("%d definitions of the API are up to date", len(shipped))})
	}
	return findings, nil
}

// Operators are those that are installed, whatever they are called.
func Operators(ctx context.Context, from client.Reader) ([]appsv1.Deployment, error) {
	var list appsv1.DeploymentList
	err := from.List(ctx, &list, client.MatchingLabels{"control-plane": "controller-manager", "app.kubernetes.io/name": "dynamo-operator"})
	return list.Items, err
}

func operator(ctx context.Context, p target) ([]finding, error) {
	deployments, err := Operators(ctx, p)
	if err != nil {
		return nil, err
	}
	if len(deployments) == 0 {
		return []finding{{verdict: wrong, what: "the operator is not installed", todo: "kubectl dynamo install"}}, nil
	}
	var findings []finding
	for i := range deployments {
		d := &deployments[i]
		f := finding{what: fmt.Sprintf("operator %s/%s: %d of %d replicas are ready", d.Namespace, d.Name, d.Status.ReadyReplicas, d.Status.Replicas)}
		switch {
		case d.Status.ReadyReplicas == 0:
			f.verdict, f.todo = wrong, fmt.Sprintf("kubectl -n %s logs deploy/%s", d.Namespace, d.Name)
			diagnosis, known, err := why.Operator(ctx, p.Cluster, d)
			if err != nil {
				return nil, err
			}
			if known {
				f.what, f.todo = f.what+": "+diagnosis.Cause, diagnosis.Todo
			}
		case d.Status.ReadyReplicas < 2:
			f.verdict, f.todo = note, "with two replicas webhooks are served while a node is away"
		}
		findings = append(findings, f)
	}
	return findings, nil
}

// webhooks looks at every registration that judges our kinds: whether somebody
// serves it and whether that somebody is trusted.
func webhooks(ctx context.Context, p target) ([]finding, error) {
	var list admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := p.List(ctx, &list); err != nil {
		return nil, err
	}
	var findings []finding
	for i := range list.Items {
		judges := slices.DeleteFunc(list.Items[i].Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return !ours(w) })
		if len(judges) == 0 {
			continue
		}
		if f, untrusted := empty(list.Items[i].Name, judges); untrusted {
			findings = append(findings, f)
			continue
		}
		f, err := served(ctx, p, list.Items[i].Name, judges[0].ClientConfig)
		if err != nil {
			return nil, err
		}
		findings = append(findings, f)
	}
	if len(findings) == 0 {
		findings = append(findings, finding{verdict: note, what: "no webhook is registered: what cannot work is told in status, not refused"})
	}
	return findings, nil
}

func ours(webhook admissionregistrationv1.ValidatingWebhook) bool {
	return slices.ContainsFunc(webhook.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(rule.APIGroups, "nvidia.com")
	})
}

// empty tells of webhooks whose certificate nothing can verify: each call of them
// fails.
func empty(name string, judges []admissionregistrationv1.ValidatingWebhook) (finding, bool) {
	for i := range judges {
		if len(judges[i].ClientConfig.CABundle) > 0 {
			continue
		}
		what := "refused"
		if policy := judges[i].FailurePolicy; policy != nil && *policy == admissionregistrationv1.Ignore {
			what = "admitted without being judged"
		}
		return finding{
			verdict: wrong,
			what:    fmt.Sprintf("webhook %s of %s trusts no authority (its caBundle is empty): every object is %s", judges[i].Name, name, what),
			todo:    "put ca.crt into the Secret of the certificate, or set webhook.caBundle of the chart (certificate.caBundle); with cert-manager, see that its cainjector runs",
		}, true
	}
	return finding{}, false
}

func served(ctx context.Context, p target, name string, to admissionregistrationv1.WebhookClientConfig) (finding, error) {
	f := finding{what: "webhooks of " + name}
	expires, err := expiry(to.CABundle)
	switch {
	case err != nil:
		f.verdict, f.what, f.todo = wrong, f.what+": "+err.Error(), "restart the operator, or mend the certificate that it is given"
		return f, nil
	case time.Until(expires) < 0:
		f.verdict, f.what, f.todo = wrong, f.what+" trust a certificate that has expired", "restart the operator, or mend the certificate that it is given"
		return f, nil
	}
	f.what += ", trusted until " + expires.Format(time.DateOnly)
	if to.Service == nil {
		return f, nil
	}
	var slices discoveryv1.EndpointSliceList
	if err := p.List(ctx, &slices, client.InNamespace(to.Service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: to.Service.Name}); err != nil {
		return f, err
	}
	ready := 0
	for i := range slices.Items {
		for _, endpoint := range slices.Items[i].Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready++
			}
		}
	}
	if ready == 0 {
		f.verdict, f.what = wrong, f.what+fmt.Sprintf(": nobody serves %s/%s", to.Service.Namespace, to.Service.Name)
		f.todo = "bring the operator back, or delete the ValidatingWebhookConfiguration " + name
	}
	return f, nil
}

// expiry is when the last authority of a bundle ends.
func expiry(bundle []byte) (time.Time, error) {
	var last time.Time
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return last, fmt.Errorf("the authority cannot be read: %w", err)
		}
		if authority.NotAfter.After(last) {
			last = authority.NotAfter
		}
	}
	if last.IsZero() {
		return last, fmt.Errorf("no authority is trusted")
	}
	return last, nil
}
