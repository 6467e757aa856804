// Package models is the verb that tells which models and adapters there are and
// which pods have them. It reads what the operator reported and asks no engine.
package models

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
)

// Command is the verb.
func Command() *cobra.Command {
	var flags connect.Flags
	var everywhere bool
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List models and adapters, and the pods that have them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := flags.Cluster()
			if err != nil {
				return err
			}
			namespace := cluster.Namespace
			if everywhere {
				namespace = ""
			}
			var list v1alpha1.DynamoModelList
			if err := cluster.List(cmd.Context(), &list, client.InNamespace(namespace)); err != nil {
				return fmt.Errorf("list models: %w", err)
			}
			return Write(cmd.OutOrStdout(), list.Items, everywhere)
		},
	}
	flags.Add(cmd.Flags())
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "of every namespace")
	return cmd
}

// Write prints a line for each pod of each model, in the order of their names.
func Write(w io.Writer, models []v1alpha1.DynamoModel, namespaces bool) error {
	if len(models) == 0 {
		_, err := fmt.Fprintln(w, "No models found.")
		return err
	}
	models = slices.Clone(models)
	slices.SortFunc(models, func(a, b v1alpha1.DynamoModel) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	row := func(namespace string, cells ...string) {
		if namespaces {
			cells = append([]string{namespace}, cells...)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	row("NAMESPACE", "NAME", "TYPE", "MODEL", "BASE", "READY", "POD", "STATE")
	for i := range models {
		m := &models[i]
		ready := fmt.Sprintf("%d/%d", m.Status.ReadyEndpoints, m.Status.TotalEndpoints)
		head := []string{m.Name, string(cmp.Or(m.Spec.ModelType, v1alpha1.ModelTypeBase)), m.Spec.ModelName, m.Spec.BaseModelName, ready}
		if len(m.Status.Endpoints) == 0 {
			row(m.Namespace, append(head, "-", Overall(m))...)
		}
		for n, e := range m.Status.Endpoints {
			if n == 0 {
				row(m.Namespace, append(head, e.PodName, State(m, e))...)
				continue
			}
			row("", "", "", "", "", "", e.PodName, State(m, e))
		}
	}
	return table.Flush()
}

// State says how far one pod is.
func State(m *v1alpha1.DynamoModel, e v1alpha1.ModelEndpoint) string {
	switch {
	case e.Error != "":
		return e.Error
	case e.Ready && m.Spec.ModelType == v1alpha1.ModelTypeLoRA:
		return "loaded"
	case e.Ready:
		return "served"
	default:
		return "loading"
	}
}

// Overall says why a model is nowhere.
func Overall(m *v1alpha1.DynamoModel) string {
	for _, kind := range []string{v1alpha1.ConditionValid, v1alpha1.ConditionEndpointsReady} {
		if c := meta.FindStatusCondition(m.Status.Conditions, kind); c != nil && c.Status == "False" {
			return c.Message
		}
	}
	return "not looked at yet"
}
