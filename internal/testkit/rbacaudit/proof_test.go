package rbacaudit

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// usage names the folder in which runs of clusters have left what was done.
var usage = flag.String("usage", "", "prove the shipped roles against the logs in this folder")

// TestTheShippedRolesAreUsed is the end of make rights.
func TestTheShippedRolesAreUsed(t *testing.T) {
	if *usage == "" {
		t.Skip("needs what all tests with clusters did: run make rights")
	}
	shipped, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(*usage, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs in %s: %v", *usage, err)
	}
	used := NewUsage()
	for _, path := range logs {
		log, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := used.Read(log, shipped); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		log.Close()
	}
	proof := Prove(shipped, used, Held)
	proof.Print(os.Stdout)
	for _, problem := range proof.Problems() {
		t.Error(problem)
	}
}
