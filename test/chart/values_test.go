package chart

import (
	"strings"
	"testing"
)

// TestValuesOfTheOriginalChart takes the keys that values files of the original
// platform chart have: each is accepted, or refused with what to do instead.
func TestValuesOfTheOriginalChart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values  string
		refused string // part of the message
	}{
		{"dynamo-operator: {enabled: true}", ""},
		{"dynamo-operator: {enabled: false}", ""},
		{"dynamo-operator: {natsAddr: 'nats://nats:4222'}", ""},
		{"dynamo-operator: {nats: {enabled: true}}", "set dynamo-operator.natsAddr"},
		{"dynamo-operator: {etcdAddr: 'etcd:2379'}", ""},
		{"dynamo-operator: {modelExpressURL: 'http://express:8001'}", ""},
		{"dynamo-operator: {discoveryBackend: kubernetes}", ""},
		{"dynamo-operator: {discoveryBackend: etcd, etcdAddr: 'etcd:2379'}", ""},
		{"dynamo-operator: {discoveryBackend: etcd}", "needs dynamo-operator.etcdAddr"},
		{"dynamo-operator: {discoveryBackend: consul}", "kubernetes or etcd"},
		{"dynamo-operator: {namespaceRestriction: {enabled: true}, webhook: {enabled: false}}", ""},
		{"dynamo-operator: {namespaceRestriction: {enabled: true, targetNamespace: team-a}, webhook: {enabled: false}}", ""},
		{"dynamo-operator: {namespaceRestriction: {enabled: true}}", "no right to register webhooks"},
		{"dynamo-operator: {namespaceRestriction: {lease: {duration: 60s, renewInterval: 20s}}}", ""},
		{"dynamo-operator: {controllerManager: {tolerations: [{operator: Exists}]}}", ""},
		{"dynamo-operator: {controllerManager: {affinity: {nodeAffinity: {}}}}", ""},
		{"dynamo-operator: {controllerManager: {leaderElection: {id: dynamo.nvidia.com, namespace: kube-system}}}", ""},
		{"dynamo-operator: {controllerManager: {leaderElection: {id: mine}}}", "find each other by one name"},
		{"dynamo-operator: {controllerManager: {manager: {image: {repository: r, tag: t, pullPolicy: Always}}}}", ""},
		{"dynamo-operator: {controllerManager: {manager: {args: ['--log-format=text']}}}", ""},
		{"dynamo-operator: {controllerManager: {manager: {resources: {limits: {cpu: 1}}}}}", ""},
		{"dynamo-operator: {controllerManager: {manager: {containerSecurityContext: {runAsUser: 1}}}}", ""},
		{"dynamo-operator: {controllerManager: {kubeRbacProxy: {image: {tag: x}}}}", "authenticates who reads its metrics"},
		{"dynamo-operator: {controllerManager: {replicas: 1, serviceAccount: {annotations: {a: b}}}}", ""},
		{"dynamo-operator: {imagePullSecrets: [{name: s}]}", ""},
		{"dynamo-operator: {kubernetesClusterDomain: corp.local}", ""},
		{"dynamo-operator: {metricsService: {enabled: true, type: ClusterIP}}", ""},
		{"dynamo-operator: {metricsService: {ports: [{name: https, port: 8443, protocol: TCP, targetPort: metrics}]}}", ""},
		{"dynamo-operator: {nameOverride: other}", ""},
		{"dynamo-operator: {fullnameOverride: other}", ""},
		{"dynamo-operator: {dynamo: {groveTerminationDelay: 4h}}", ""},
		{"dynamo-operator: {dynamo: {internalImages: {debugger: 'python:3.12-slim'}}}", "ephemeral containers"},
		{"dynamo-operator: {dynamo: {enableRestrictedSecurityContext: true}}", "never had an effect"},
		{"dynamo-operator: {dynamo: {dockerRegistry: {useKubernetesSecret: true, server: r, username: u, password: p}}}", ""},
		{"dynamo-operator: {dynamo: {dockerRegistry: {useKubernetesSecret: true, existingSecretName: s}}}", "found by its registry"},
		{"dynamo-operator: {dynamo: {dockerRegistry: {secure: false}}}", "had no effect"},
		{"dynamo-operator: {dynamo: {dockerRegistry: {useKubernetesSecret: true}}}", "needs the registry"},
		{"dynamo-operator: {dynamo: {components: {serviceAccount: {annotations: {a: b}}}}}", ""},
		{"dynamo-operator: {dynamo: {ingress: {enabled: true, className: nginx, tlsSecretName: tls}}}", ""},
		{"dynamo-operator: {dynamo: {istio: {enabled: true, gateway: istio-system/gw}}}", ""},
		{"dynamo-operator: {dynamo: {ingressHostSuffix: example.com}}", ""},
		{"dynamo-operator: {dynamo: {virtualServiceSupportsHTTPS: true}}", "gateway decides"},
		{"dynamo-operator: {dynamo: {metrics: {prometheusEndpoint: 'http://p:9090'}}}", ""},
		{"dynamo-operator: {dynamo: {mpiRun: {secretName: mpi}}}", ""},
		{"dynamo-operator: {dynamo: {mpiRun: {sshKeygen: {enabled: true}}}}", "there is no Job"},
		{"dynamo-operator: {webhook: {enabled: false}}", ""},
		{"dynamo-operator: {webhook: {certificateSecret: {name: s, external: true}, caBundle: " + bundle + "}}", ""},
		{"dynamo-operator: {webhook: {certificateSecret: {name: s, external: true}, caBundle: Q0E=}}", "holds no certificate"},
		{"dynamo-operator: {webhook: {caBundle: " + bundle + "}}", "needs webhook.certificateSecret.external"},
		{"dynamo-operator: {webhook: {certificateValidity: 30}}", ""},
		{"dynamo-operator: {webhook: {certGenerator: {image: {tag: latest}}}}", "makes and rotates its certificates"},
		{"dynamo-operator: {webhook: {failurePolicy: Ignore, timeoutSeconds: 5}}", ""},
		{"dynamo-operator: {webhook: {failurePolicy: Perhaps}}", "failurePolicy"},
		{"dynamo-operator: {webhook: {namespaceSelector: {matchLabels: {a: b}}}}", "exceptNamespaces"},
		{"dynamo-operator: {webhook: {certManager: {enabled: true, certificate: {duration: 100h}}}}", ""},
		{"dynamo-operator: {webhook: {certManager: {enabled: true}, certificateSecret: {external: true}}}", "exclude each other"},
		{"dynamo-operator: {nonsense: 1}", "nonsense"},
		{"nonsense: 1", "nonsense"},
		{"grove: {enabled: false}", ""},
		{"grove: {enabled: true}", "by its own chart"},
		{"kai-scheduler: {enabled: false}", ""},
		{"kai-scheduler: {enabled: true}", "by its own chart"},
		{"etcd: {enabled: false}", ""},
		{"etcd: {enabled: true, auth: {rbac: {create: false}}}", "etcd is not a part of this chart"},
		{"nats: {enabled: false}", ""},
		{"nats: {config: {jetstream: {enabled: true}}}", "NATS is not a part of this chart"},
		{"kai-scheduler: {global: {tolerations: []}}", "by its own chart"},
		{"nats: {enabled: true, natsBox: {enabled: false}}", "NATS is not a part of this chart"},
	} {
		t.Run(c.values, func(t *testing.T) {
			t.Parallel()
			_, err := template(t.Context(), c.values)
			switch {
			case c.refused == "" && err != nil:
				t.Error(err)
			case c.refused != "" && err == nil:
				t.Error("is accepted")
			case c.refused != "" && !strings.Contains(err.Error(), c.refused):
				t.Errorf("want a message with %q, got: %v", c.refused, err)
			}
		})
	}
}
