// Package etcd removes what a component has left in the key-value store that
// graphs of the etcd backend find each other by. It speaks the store's JSON
// gateway, which every server has, and so needs no client library. It reads
// nothing and writes nothing else.
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
	"strings"
	"time"
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

// DeleteTree removes a key and everything below it, and nothing that merely
// begins with the same letters. It asks one server after the other and returns
// how many keys there were.
func (s *Store) DeleteTree(ctx context.Context, key string) (int64, error) {
	if strings.Trim(key, "/") == "" {
		return 0, fmt.Errorf("delete keys below %q: that is everything", key)
	}
	below := key + "/"
	end := key + string(rune('/'+1)) // the first key that is not below any more
	body, err := json.Marshal(map[string]any{"success": []any{
		map[string]any{"requestDeleteRange": deleteRange{Key: []byte(key)}},
		map[string]any{"requestDeleteRange": deleteRange{Key: []byte(below), End: []byte(end)}},
	}})
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, one := range s.servers {
		deleted, err := one.transact(ctx, body)
		if err == nil {
			return deleted, nil
		}
		errs = append(errs, fmt.Errorf("delete keys below %s at %s: %w", key, one.address, err))
	}
	return 0, errors.Join(errs...)
}

// deleteRange names keys; bytes become base64, as the gateway wants them.
type deleteRange struct {
	Key []byte `json:"key"`
	End []byte `json:"range_end,omitempty"`
}

func (s server) transact(ctx context.Context, body []byte) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/v3/kv/txn", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(text))
	}
	var answer struct {
		Succeeded bool `json:"succeeded"`
		Responses []struct {
			Delete struct {
				Deleted int64 `json:"deleted,string"`
			} `json:"response_delete_range"`
		} `json:"responses"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return 0, fmt.Errorf("read the answer: %w", err)
	}
	if !answer.Succeeded || len(answer.Responses) != 2 {
		return 0, fmt.Errorf("unexpected answer %s", text)
	}
	return answer.Responses[0].Delete.Deleted + answer.Responses[1].Delete.Deleted, nil
}
