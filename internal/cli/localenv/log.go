package localenv

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
)

// Log is the end of what the operator, run by run, and the cluster's supervisor
// have said: what is left to read after a failure.
func (c *Cluster) Log(lines int) string {
	var files []string
	for _, pattern := range []string{
		filepath.Join("logs", "supervisor.log"),
		filepath.Join("pods", "*"+installation.Deployment+"*", "containers", "*", "*.log"),
	} {
		found, _ := filepath.Glob(filepath.Join(c.options.Dir, pattern)) // the pattern is a good one
		files = append(files, found...)
	}
	var text strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			content = []byte(err.Error()) // it may go while we look
		}
		all := strings.Split(strings.TrimSpace(string(content)), "\n")
		fmt.Fprintf(&text, "end of %s:\n%s\n", file, strings.Join(all[max(0, len(all)-lines):], "\n"))
	}
	return text.String()
}
