package worker

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// announce prints the lines of an engine's log that carry the size of its
// key-value cache; profilers search the log for them.
func (c Config) announce(out io.Writer) {
	tokens := c.Engine.Blocks * c.Engine.BlockSize
	now := time.Now()
	switch c.Backend {
	case "vllm", "mocker":
		stamp := now.Format("01-02 15:04:05")
		fmt.Fprintf(out, "INFO %s [kv_cache_utils.py] GPU KV cache size: %s tokens\n", stamp, thousands(tokens))
		fmt.Fprintf(out, "INFO %s [kv_cache_utils.py] Maximum concurrency for %s tokens per request: %.2fx\n", stamp, thousands(c.Context), float64(tokens)/float64(c.Context))
	case "sglang":
		stamp := now.Format("2006-01-02 15:04:05")
		fmt.Fprintf(out, "[%s] KV Cache is allocated. #tokens: %d, K size: 0.00 GB, V size: 0.00 GB\n", stamp, tokens)
	case "trtllm":
		stamp := now.Format("01/02/2006-15:04:05")
		fmt.Fprintf(out, "[%s] [TRT-LLM] [I] Allocated 0.00 GiB for max tokens in paged KV cache (%d).\n", stamp, tokens)
	}
}

// thousands writes 40960 as 40,960.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
