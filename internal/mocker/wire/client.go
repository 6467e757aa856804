package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// ErrNotAccepted means the worker never took the request: nothing answered at
// its address, or it said it is leaving. Only such a request may be sent to
// another worker without doing anything twice.
var ErrNotAccepted = errors.New("worker did not accept the request")

// ErrBroken means the stream ended before its last chunk.
var ErrBroken = errors.New("worker went away in the middle of the answer")

// Client calls workers.
type Client struct {
	http *http.Client
	way  way
}

// NewClient returns a client that reaches pods through the forward proxy given
// as URL, or directly when it is empty.
func NewClient(proxy string) (*Client, error) {
	dial, err := NewDialer(proxy)
	if err != nil {
		return nil, err
	}
	// Keep-alive connections would make a dead worker look like a broken
	// stream; tens of idle ones per worker are kept for throughput.
	transport := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 32, DisableCompression: true}
	return &Client{http: &http.Client{Transport: transport}}, nil
}

// Call sends a request. The stream must be closed.
func (c *Client) Call(ctx context.Context, url string, request Request) (*Stream, error) {
	begin := time.Now()
	request.Waited += c.way.usual()
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encode request %s: %w", request.ID, err)
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", url, err)
	}
	post.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(post)
	if err != nil {
		if _, ok := errors.AsType[*dialError](err); ok {
			return nil, fmt.Errorf("%w: %w", ErrNotAccepted, err)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		err := fmt.Errorf("worker %s answered %s: %s", url, response.Status, strings.TrimSpace(string(text)))
		if response.StatusCode == http.StatusServiceUnavailable {
			return nil, fmt.Errorf("%w: %w", ErrNotAccepted, err)
		}
		return nil, err
	}
	return &Stream{body: response.Body, lines: bufio.NewReader(response.Body), begin: begin, way: &c.way}, nil
}

// Stream is an answer under way.
type Stream struct {
	body  io.ReadCloser
	lines *bufio.Reader
	ended bool
	begin time.Time
	way   *way
}

// Next returns the next chunk, io.EOF after the last.
func (s *Stream) Next() (Chunk, error) {
	if s.ended {
		return Chunk{}, io.EOF
	}
	for {
		line, err := s.lines.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && err == nil {
			var chunk Chunk
			if err := json.Unmarshal(data, &chunk); err != nil {
				return Chunk{}, fmt.Errorf("%w: %w", ErrBroken, err)
			}
			s.ended = chunk.FinishReason != ""
			if chunk.Took > 0 {
				s.way.learn(time.Since(s.begin) - chunk.Took)
			}
			return chunk, nil
		}
		if err != nil {
			return Chunk{}, fmt.Errorf("%w: %w", ErrBroken, err)
		}
	}
}

// Close ends the call; the worker stops producing.
func (s *Stream) Close() { _ = s.body.Close() }
