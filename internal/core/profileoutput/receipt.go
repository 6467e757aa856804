package profileoutput

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Receipt is the SHA-256 of everything a profiler handed over, by ConfigMap and
// key. The container that wrote the ConfigMaps leaves it as its termination
// message: who may write ConfigMaps can change what stands in them, but not the
// status of a pod.
type Receipt map[string]string

// Add receipts the content of a ConfigMap, key by key.
func (r Receipt) Add(configMap string, data map[string]string) {
	for key, value := range data {
		r[configMap+"/"+key] = Sum(value)
	}
}

// Sum is the SHA-256 of a text.
func Sum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// receiptMessage is a Receipt among other termination messages.
type receiptMessage struct {
	Digests Receipt `json:"sha256"`
}

// Text is the receipt as a termination message.
func (r Receipt) Text() string { return text(receiptMessage{r}) }

// ParseReceipt reads a termination message.
func ParseReceipt(message string) (Receipt, error) {
	var m receiptMessage
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		return nil, fmt.Errorf("parse the termination message: %w", err)
	}
	if len(m.Digests) == 0 {
		return nil, errors.New("parse the termination message: there are no digests in it")
	}
	return m.Digests, nil
}

// Proven returns what of a ConfigMap is receipted. That something receipted is
// missing or is not what it was is an error.
func (r Receipt) Proven(configMap string, data map[string]string) (map[string]string, error) {
	proven := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r)) {
		key, ours := strings.CutPrefix(name, configMap+"/")
		if !ours {
			continue
		}
		value, found := data[key]
		if !found {
			return nil, fmt.Errorf("key %s of ConfigMap %s is gone", key, configMap)
		}
		if Sum(value) != r[name] {
			return nil, fmt.Errorf("key %s of ConfigMap %s is not what the profiler wrote", key, configMap)
		}
		proven[key] = value
	}
	return proven, nil
}
