package compat

import (
	"context"
	"flag"
	"maps"
	"regexp"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

var offline = flag.Bool("offline", false, "compare what is sent, without an API server and what it fills in")

// unsent is a client that sends nothing.
type unsent struct{ client.Client }

func (unsent) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return nil
}
func (unsent) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }

var serverDefaults = map[*regexp.Regexp]string{
	regexp.MustCompile(`terminationMessagePath$`):                                               `"/dev/termination-log"`,
	regexp.MustCompile(`terminationMessagePolicy$`):                                             `"File"`,
	regexp.MustCompile(`fieldRef\.apiVersion$`):                                                 `"v1"`,
	regexp.MustCompile(`imagePullPolicy$`):                                                      ``,
	regexp.MustCompile(`httpGet\.scheme$`):                                                      `"HTTP"`,
	regexp.MustCompile(`(liveness|readiness|startup)Probe\.(successThreshold|timeoutSeconds)$`): `1`,
	regexp.MustCompile(`(liveness|readiness|startup)Probe\.periodSeconds$`):                     `10`,
	regexp.MustCompile(`(liveness|readiness|startup)Probe\.failureThreshold$`):                  `3`,
	regexp.MustCompile(`dnsPolicy$`):                                                            `"ClusterFirst"`,
	regexp.MustCompile(`schedulerName$`):                                                        `"default-scheduler"`,
	regexp.MustCompile(`\.serviceAccount$`):                                                     ``,
	regexp.MustCompile(`resources$`):                                                            `{}`,
	regexp.MustCompile(`(revisionHistoryLimit|progressDeadlineSeconds)$`):                       ``,
	regexp.MustCompile(`^spec\.(internalTrafficPolicy|sessionAffinity|type)$`):                  ``,
	regexp.MustCompile(`creationTimestamp$`):                                                    `null`,
	regexp.MustCompile(`\.protocol$`):                                                           `"TCP"`,
	regexp.MustCompile(`defaultMode$`):                                                          `420`,
	regexp.MustCompile(`volumeMode$`):                                                           `"Filesystem"`,
	regexp.MustCompile(`^(status|spec\.(networkConfig\.subdomainPolicy|startupPolicy|rolloutStrategy.*|leaderWorkerTemplate\.restartPolicy))$`): ``,
	regexp.MustCompile(`securityContext$`): `{}`,
	regexp.MustCompile(`readOnly$`):        `false`,
	regexp.MustCompile(`hostPath.type$`):   `""`,
}

// sent drops what an API server fills in.
func sent(all map[string]string) map[string]string {
	if !*offline {
		return all
	}
	maps.DeleteFunc(all, func(path, value string) bool {
		for re, v := range serverDefaults {
			if (v == "" || v == value) && re.MatchString(path) {
				return true
			}
		}
		return false
	})
	return all
}

var offlineScheme = scheme.New()
