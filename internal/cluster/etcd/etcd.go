// Package etcd removes what a component has left in the key-value store that
// graphs of the etcd backend find each other by. What a living lease holds is an
// instance's, perhaps of somebody else, and goes with that instance. It speaks the
// store's JSON gateway, which every server has, and so needs no client library. It
// reads no value and writes nothing.
package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// patience is how long one server is given to answer.
const patience = 5 * time.Second

// Store is a cluster of servers.
type Store struct {
	servers []server
}

type server struct {
	address string // as it was given, for messages
	base    string
	client  *http.Client
}

// New reads addresses as engines do: separated by commas, each a host and port,
// a URL, or a Unix socket (unix:///path).
func New(addresses string) (*Store, error) {
	s := &Store{}
	for address := range strings.SplitSeq(addresses, ",") {
		if address = strings.TrimSpace(address); address == "" {
			continue
		}
		one, err := newServer(address)
		if err != nil {
			return nil, err
		}
		s.servers = append(s.servers, one)
	}
	if len(s.servers) == 0 {
		return nil, fmt.Errorf("no address of an etcd server in %q", addresses)
	}
	return s, nil
}

func newServer(address string) (server, error) {
	// Never through a proxy that the environment happens to name.
	transport := &http.Transport{MaxIdleConns: 1, IdleConnTimeout: time.Minute}
	s := server{address: address, client: &http.Client{Transport: transport, Timeout: patience}}
	if path, isSocket := strings.CutPrefix(address, "unix://"); isSocket {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		s.base = "http://localhost"
		return s, nil
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return server{}, fmt.Errorf("etcd address %q is neither host:port nor a URL", s.address)
	}
	s.base = strings.TrimSuffix(u.String(), "/")
	return s, nil
}

// Tree is the key below which a component keeps what it says about itself.
func Tree(dynamoNamespace, service string) string {
	return "/" + dynamoNamespace + "/components/" + service
}

// page is how many keys are looked at and removed at once: a transaction of etcd
// takes at most 128 operations.
const page = 100

// DeleteLeft removes what instances of a component have left at its key and
// below, and nothing that merely begins with the same letters: keys without a
// lease. The others vanish by themselves seconds after the instance that holds the
// lease. It asks one server after the other and returns how many keys it removed.
func (s *Store) DeleteLeft(ctx context.Context, dynamoNamespace, service string) (int64, error) {
	if dynamoNamespace == "" || service == "" {
		return 0, fmt.Errorf("delete keys of service %q in Dynamo namespace %q: that would be those of others", service, dynamoNamespace)
	}
	key := Tree(dynamoNamespace, service)
	var errs []error
	for _, one := range s.servers {
		deleted, err := one.deleteTree(ctx, key)
		if err == nil {
			return deleted, nil
		}
		errs = append(errs, fmt.Errorf("delete keys below %s at %s: %w", key, one.address, err))
	}
	return 0, errors.Join(errs...)
}

func (s server) deleteTree(ctx context.Context, key string) (int64, error) {
	itself, err := s.deleteRange(ctx, keys{Key: []byte(key), End: []byte(key + "\x00")})
	if err != nil {
		return 0, err
	}
	below, err := s.deleteRange(ctx, keys{Key: []byte(key + "/"), End: []byte(key + string(rune('/'+1)))}) // the first key that is not below any more
	return itself + below, err
}

// keys names those from one to before another; bytes become base64, as the
// gateway wants them.
type keys struct {
	Key []byte `json:"key"`
	End []byte `json:"range_end,omitempty"`
}

// found is what the store tells of a key when it is not asked for the value: not
// whether a lease holds it. Numbers of 64 bits are text.
type found struct {
	Key     []byte `json:"key"`
	Changed int64  `json:"mod_revision,string"`
}

// deleteRange removes the keys of a range that no lease holds, page by page.
func (s server) deleteRange(ctx context.Context, in keys) (int64, error) {
	var deleted int64
	for {
		var answer struct {
			KVs  []found `json:"kvs"`
			More bool    `json:"more"`
		}
		question := struct {
			keys
			Limit    int  `json:"limit"`
			KeysOnly bool `json:"keys_only"`
		}{in, page, true}
		if err := s.ask(ctx, "/v3/kv/range", question, &answer); err != nil {
			return deleted, err
		}
		n, err := s.deleteUnheld(ctx, answer.KVs)
		if deleted += n; err != nil {
			return deleted, err
		}
		if !answer.More || len(answer.KVs) == 0 {
			return deleted, nil
		}
		in.Key = slices.Concat(answer.KVs[len(answer.KVs)-1].Key, []byte{0}) // the next possible key
	}
}

// deleteUnheld removes those of some keys that no lease holds and that nobody has
// written since they were read: one that was may be another's by now. Each key is
// a transaction in one of all.
func (s server) deleteUnheld(ctx context.Context, kvs []found) (deleted int64, err error) {
	type operation = map[string]any
	var each []operation
	for _, kv := range kvs {
		conditions := []operation{{"key": kv.Key, "target": "MOD", "result": "EQUAL", "modRevision": strconv.FormatInt(kv.Changed, 10)}}
		if !guard.OwnKeys.Off() {
			conditions = append(conditions, operation{"key": kv.Key, "target": "LEASE", "result": "EQUAL", "lease": "0"})
		}
		each = append(each, operation{"requestTxn": operation{
			"compare": conditions, "success": []operation{{"requestDeleteRange": keys{Key: kv.Key}}},
		}})
	}
	if len(each) == 0 {
		return 0, nil
	}
	var answer struct {
		Responses []struct {
			One struct {
				Succeeded bool `json:"succeeded"`
			} `json:"response_txn"`
		} `json:"responses"`
	}
	if err := s.ask(ctx, "/v3/kv/txn", operation{"success": each}, &answer); err != nil {
		return 0, err
	}
	for _, r := range answer.Responses {
		if r.One.Succeeded {
			deleted++
		}
	}
	return deleted, nil
}

// longestAnswer bounds what is read of one: a page of the longest keys.
const longestAnswer = 4 << 20

func (s server) ask(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(text))
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}
