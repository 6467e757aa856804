// Package lora calls engines: it loads, lists and unloads adapters over
// HTTP, and keeps slow engines from holding up the others. It does not decide
// which calls to make. What it is pointed at cannot make it do anything else: it goes to
// addresses of pods alone, follows no redirect, sends no credentials and reads
// no more than it needs.
package lora

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
)

// Port is where engines serve the LoRA API.
const Port = 9090

const (
	// answerLimit is far more than the list of all adapters that an engine can
	// hold.
	answerLimit = 1 << 20
	// messageLimit keeps what engines say from filling a status.
	messageLimit = 256
)

// Client speaks the LoRA API.
type Client struct {
	http *http.Client
}

// NewClient makes a client. The proxy is the only one it will use; nil means to
// go straight, whatever the environment says.
func NewClient(proxy *url.URL) *Client {
	transport := &http.Transport{
		DialContext: (&net.Dialer{}).DialContext,
		// Calls are rare, and a connection that an engine has closed meanwhile
		// would fail the next one.
		DisableKeepAlives:      true,
		DisableCompression:     true, // or a small answer could become a large one
		MaxResponseHeaderBytes: 64 << 10,
	}
	if proxy != nil {
		transport.Proxy = http.ProxyURL(proxy)
	}
	return &Client{http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is what engines reply. The status in it decides, not the HTTP code:
// engines report failures with code 200.
type answer struct {
	Status  string         `json:"status"`
	Message string         `json:"message"`
	LoRAs   map[string]any `json:"loras"`
}

// Load has an engine load an adapter; one that it has already is success.
func (c *Client) Load(ctx context.Context, engine netip.Addr, a loraplan.Adapter) error {
	body, err := json.Marshal(map[string]any{"lora_name": a.Name, "source": map[string]string{"uri": a.URI}})
	if err != nil {
		return err
	}
	_, err = c.call(ctx, http.MethodPost, engine, "", body)
	return err
}

// List asks an engine for the names of its adapters, sorted.
func (c *Client) List(ctx context.Context, engine netip.Addr) ([]string, error) {
	got, err := c.call(ctx, http.MethodGet, engine, "", nil)
	return slices.Sorted(maps.Keys(got.LoRAs)), err
}

// Unload has an engine drop an adapter, and says whether it had it. Engines call it
// an error if they do not, in words of their own; their list tells.
func (c *Client) Unload(ctx context.Context, engine netip.Addr, name string) (had bool, err error) {
	if _, err := address(engine, name); err != nil {
		return false, err
	}
	_, failed := c.call(ctx, http.MethodDelete, engine, name, nil)
	if failed == nil || ctx.Err() != nil {
		return true, failed
	}
	if names, err := c.List(ctx, engine); err != nil || slices.Contains(names, name) {
		return true, failed
	}
	return false, nil
}

func (c *Client) call(ctx context.Context, method string, engine netip.Addr, name string, body []byte) (answer, error) {
	target, err := address(engine, name)
	if err != nil {
		return answer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("User-Agent", "dynamo-operator")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, answerLimit+1))
	if err != nil {
		return answer{}, err
	}
	if len(text) > answerLimit {
		return answer{}, fmt.Errorf("the answer is longer than %d bytes", answerLimit)
	}
	var got answer
	if err := json.Unmarshal(text, &got); err != nil || got.Status == "" {
		return answer{}, fmt.Errorf("HTTP %d without a status in the answer", response.StatusCode)
	}
	if got.Status != "success" {
		return answer{}, errors.New(plain(fmt.Sprintf("the engine answered %s: %s", got.Status, got.Message)))
	}
	return got, nil
}

// address is the URL of an engine's adapters, or of one of them. Slashes in a
// name stay slashes; it has been seen to that they lead nowhere else.
func address(engine netip.Addr, name string) (string, error) {
	engine = engine.Unmap()
	if !engine.IsValid() || !engine.IsGlobalUnicast() || engine.Zone() != "" {
		return "", fmt.Errorf("%s is not the address of a pod", engine)
	}
	target := url.URL{Scheme: "http", Host: net.JoinHostPort(engine.String(), strconv.Itoa(Port)), Path: "/v1/loras"}
	if name != "" {
		if fault := loraplan.NameFault(name); fault != "" {
			return "", fmt.Errorf("adapter name %q %s", name, fault)
		}
		target.Path += "/" + name
	}
	return target.String(), nil
}

// plain makes what an engine said fit for a status: one line, printable, short.
func plain(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	if len(text) <= messageLimit {
		return text
	}
	return strings.ToValidUTF8(text[:messageLimit], "") + "..."
}
