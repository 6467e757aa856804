package installation

import (
	"context"
	"errors"
	"fmt"
	"io"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conversionJob publishes a converter.
const conversionJob = "dynamo-operator-conversion"

// Converter installs a converter and waits until v1beta1 is served by it. What a Job
// runs cannot be changed, so one of an earlier installation goes first.
func (i Installer) Converter(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetKind() == "Job" {
			if err := i.Delete(ctx, []*unstructured.Unstructured{object}); err != nil {
				return err
			}
		}
	}
	if err := i.Operator(ctx, objects); err != nil {
		return err
	}
	return until(ctx, "Job "+conversionJob+" to complete", func(ctx context.Context) error {
		job := &batchv1.Job{}
		if err := i.Client.Get(ctx, types.NamespacedName{Namespace: i.deployment().Namespace, Name: conversionJob}, job); err != nil {
			return err
		}
		for _, c := range job.Status.Conditions {
			switch {
			case c.Status != corev1.ConditionTrue:
			case c.Type == batchv1.JobComplete:
				return nil
			case c.Type == batchv1.JobFailed:
				return permanent{fmt.Errorf("publish the converter: %s; kubectl -n %s logs job/%s", c.Message, job.Namespace, conversionJob)}
			}
		}
		return errors.New("it has not completed")
	})
}

// RemoveConverter removes a converter, once nothing is served that it converts. Its
// certificate goes with it.
func (i Installer) RemoveConverter(ctx context.Context, objects []*unstructured.Unstructured, out io.Writer) error {
	if err := i.WithdrawBeta(ctx, out); err != nil {
		return err
	}
	if err := i.Delete(ctx, objects); err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: i.deployment().Namespace, Name: "dynamo-operator-converter-cert"}}
	return client.IgnoreNotFound(i.Client.Delete(ctx, secret))
}
