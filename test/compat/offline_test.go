package compat

import (
	"context"
	"maps"
	"regexp"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

// unsent is a client that sends nothing.
type unsent struct{ client.Client }

// Apply implements client.Client.
func (unsent) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return nil
}

var offlineScheme = scheme.New()

// serverDefaults are leaves that an API server fills in, with the value that it does;
// an empty one is any.
var serverDefaults = []struct {
	leaf  *regexp.Regexp
	value string
}{
	{regexp.MustCompile(`terminationMessagePath$`), `"/dev/termination-log"`},
	{regexp.MustCompile(`terminationMessagePolicy$`), `"File"`},
	{regexp.MustCompile(`fieldRef\.apiVersion$`), `"v1"`},
	{regexp.MustCompile(`(imagePullPolicy|\.serviceAccount|revisionHistoryLimit|progressDeadlineSeconds)$`), ``},
	{regexp.MustCompile(`httpGet\.scheme$`), `"HTTP"`},
	{regexp.MustCompile(`Probe\.(successThreshold|timeoutSeconds)$`), `1`},
	{regexp.MustCompile(`Probe\.periodSeconds$`), `10`},
	{regexp.MustCompile(`Probe\.failureThreshold$`), `3`},
	{regexp.MustCompile(`dnsPolicy$`), `"ClusterFirst"`},
	{regexp.MustCompile(`schedulerName$`), `"default-scheduler"`},
	{regexp.MustCompile(`(resources|securityContext)$`), `{}`},
	{regexp.MustCompile(`^spec\.(internalTrafficPolicy|sessionAffinity|type)$|^type$`), ``},
	{regexp.MustCompile(`creationTimestamp$`), `null`},
	{regexp.MustCompile(`\.protocol$`), `"TCP"`},
	{regexp.MustCompile(`defaultMode$`), `420`},
	{regexp.MustCompile(`volumeMode$`), `"Filesystem"`},
	{regexp.MustCompile(`readOnly$`), `false`},
	{regexp.MustCompile(`hostPath\.type$`), `""`},
	{regexp.MustCompile(`^spec\.(networkConfig\.subdomainPolicy|startupPolicy|leaderWorkerTemplate\.restartPolicy)$`), ``},
	{regexp.MustCompile(`^spec\.endpointPickerRef\.(failureMode|group)$`), ``},
}

// sent drops what an API server fills in.
func sent(all map[string]string) map[string]string {
	maps.DeleteFunc(all, func(path, value string) bool {
		for _, d := range serverDefaults {
			if (d.value == "" || d.value == value) && d.leaf.MatchString(path) {
				return true
			}
		}
		return false
	})
	return all
}
