package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/testkit/rbacaudit"
)

// keepUsage is where make rights wants to know what was done in this run.
var keepUsage = flag.String("rights", "", "`folder` to leave in what accounts did, for the proof of their rights")

// checkRights looks for requests that were refused in any cluster of this run:
// what the roles give is too little then. Whether it is too much is for make
// rights to say, which looks at more than one run.
func checkRights() error {
	logs, err := filepath.Glob(filepath.Join(dir, "*", "logs", "audit.log"))
	if err != nil {
		return err
	}
	holders, err := rbacaudit.Shipped()
	if err != nil {
		return err
	}
	used := rbacaudit.NewUsage()
	for _, path := range logs {
		log, err := os.Open(path)
		if err != nil {
			return err
		}
		err = used.Read(log, holders)
		log.Close()
		if err != nil {
			return err
		}
	}
	if *keepUsage != "" {
		if err := rbacaudit.Keep(*keepUsage, "e2e", logs); err != nil {
			return err
		}
	}
	var problems []string
	for right, example := range used.Missing() {
		problems = append(problems, fmt.Sprintf("denied: %s %s (%s)", right.Verb, right.Resource, example))
	}
	fmt.Printf("rights: %d used, %d missing\n", len(used.Used), len(problems))
	if len(problems) > 0 {
		slices.Sort(problems)
		return fmt.Errorf("rights:\n%s", strings.Join(problems, "\n"))
	}
	return nil
}
