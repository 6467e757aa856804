// Package convert turns manifests of our API from one version into the other,
// without a cluster, by the code that converts on a cluster.
package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/output"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/crdschema"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

const help = `Print manifests of nvidia.com in another version, without a cluster.

Graphs, components, scaling adapters and requests are converted as a cluster
would convert them. What the new version cannot say is kept in an annotation, so
that nothing is lost on the way back, and is named on standard error. The
annotation nvidia.com/written-as says that the manifest was written in the other
version and still means what it meant there; remove it, and the payload beside
it, to make the manifest one of its new version alone.

A document that its own version does not allow is an error, because fields that
it does not know would be lost. Other documents, and kinds that have one version,
are printed as they are.`

// versions are what objects can be converted to.
var versions = []string{conversion.Alpha, conversion.Beta}

type options struct {
	files  []string
	to     string
	output output.Format
}

// Command is the verb.
func Command() *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:     "convert -f FILE --to VERSION",
		Short:   "Print manifests in another version of the API, without a cluster",
		Long:    help,
		Example: "  kubectl dynamo convert -f graph.yaml --to v1beta1\n  kubectl get dgd chat -o yaml | kubectl dynamo convert -f - --to v1beta1 -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.InOrStdin(), sanitise.Document(cmd.OutOrStdout()), cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	input.Flag(flags, &o.files)
	flags.StringVar(&o.to, "to", "", "version to convert to: "+strings.Join(versions, " or "))
	flags.StringVarP((*string)(&o.output), "output", "o", string(output.YAML), "yaml or json")
	input.Require(flags, "to")
	return command
}

// run prints all or nothing.
func (o options) run(stdin io.Reader, out, notes io.Writer) error {
	if o.to != conversion.Alpha && o.to != conversion.Beta {
		return fmt.Errorf("--to %q: %s", o.to, strings.Join(versions, " or "))
	}
	if err := o.output.Validate(); err != nil {
		return err
	}
	documents, err := input.Read(o.files, stdin)
	if err != nil {
		return err
	}
	if len(documents) == 0 {
		return fmt.Errorf("no object in %s", strings.Join(o.files, ", "))
	}
	var objects []map[string]any
	var problems []error
	for _, d := range documents {
		object, err := convert(d, o.to, notes)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", d, err))
			continue
		}
		objects = append(objects, object)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return o.output.Write(out, objects, true)
}

// convert converts one document and says what became of it.
func convert(d input.Document, to string, notes io.Writer) (map[string]any, error) {
	group, version, _ := strings.Cut(d.GetAPIVersion(), "/")
	switch {
	case group != v1alpha1.GroupName:
		fmt.Fprintf(notes, "%s: printed as it is, it is of another API\n", d)
		return d.Object, nil
	case !conversion.Convertible(d.GetKind()):
		fmt.Fprintf(notes, "%s: printed as it is, the kind has one version\n", d)
		return d.Object, nil
	}
	schema, known, err := crdschema.OfVersion(d.GetKind(), version)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, fmt.Errorf("apiVersion %q: %s", d.GetAPIVersion(), strings.Join(versions, " or "))
	}
	if problems := schema.Check(d.Object); len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	raw, err := d.MarshalJSON()
	if err != nil {
		return nil, err
	}
	result, err := conversion.Convert(raw, group+"/"+to)
	if err != nil {
		return nil, err
	}
	converted := &unstructured.Unstructured{}
	if err := json.Unmarshal(result.JSON, &converted.Object); err != nil {
		return nil, err
	}
	if version == to {
		fmt.Fprintf(notes, "%s: is %s already\n", d, to)
		return converted.Object, nil
	}
	for _, field := range conversion.Kept(converted) {
		fmt.Fprintf(notes, "%s: kept in an annotation, %s cannot say it: %s\n", d, to, field)
	}
	for _, part := range result.Ignored {
		fmt.Fprintf(notes, "%s: warning: a payload in its annotations contradicts the object and was ignored: %s\n", d, part)
	}
	return converted.Object, nil
}
