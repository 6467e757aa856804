//go:build pin

package addon

// Modules that publish manifests only. An import keeps their versions in go.mod, from which the build collects them.
import (
	_ "istio.io/api/label"
	_ "sigs.k8s.io/gateway-api-inference-extension/version"
)
