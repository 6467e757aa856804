package rendezvous

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// hello is what a node says of itself, once, as one line of JSON.
type hello struct {
	Node  string `json:"node"`
	First int    `json:"first"`
	Count int    `json:"count"`
	Size  int    `json:"size"`
	Shape string `json:"shape,omitempty"`
	GPUs  int    `json:"gpus,omitempty"`
	// Token is how a leader recognises itself behind its own name.
	Token string `json:"token,omitempty"`
}

// notice is what the leader answers, one line each: that the node is welcome,
// that the group is complete, or why not.
type notice struct {
	Welcome  bool   `json:"welcome,omitempty"`
	Complete bool   `json:"complete,omitempty"`
	Refused  string `json:"refused,omitempty"`
	Failed   string `json:"failed,omitempty"`
}

// Refused is a leader's final word: trying again would not help.
type Refused struct{ Why string }

func (r *Refused) Error() string { return "the leader refused this node: " + r.Why }

func asRefused(err error) (*Refused, bool) { return errors.AsType[*Refused](err) }

// messageTimeout bounds one line: who connects and says nothing is a probe.
const messageTimeout = 10 * time.Second

func send(conn net.Conn, message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode message to %s: %w", conn.RemoteAddr(), err)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(messageTimeout))
	_, err = conn.Write(append(line, '\n'))
	return err
}

func receive(reader *bufio.Reader, message any) error {
	line, err := reader.ReadSlice('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, message)
}
